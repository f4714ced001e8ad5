"""Values that are gone: a grad op that reads what a later operator has overwritten is an error when it is built."""

from __future__ import annotations

from ...errors import ProgramError
from ...grad_names import EMPTY
from ..program.block import Block
from ..program.operator import Operator, Ops
from .fan_in import outputs_of, written_twice


def check_overwritten(block: Block, ops: Ops) -> None:
    """A value that a grad op reads must still be there: an error that names both operators if it was overwritten."""
    last = _overwritten(block)
    if not last:
        return
    position = {id(op): k for k, op in enumerate(block.ops)}
    for op in ops:
        source = op.copy_of or op.forward_op
        at = position.get(id(source))
        if source is None or at is None:
            continue
        for name in op.reads or ():
            k = last.get(name, -1)
            if k > at or (k == at and name in source.input_names):
                writer = block.ops[k]
                what = (
                    f"{op.type} needs the value that {name!r} had at #{at} {source.type}, but #{k} "
                )
                what += f"{writer.type} overwrites it.\n  read at {source.source_line}\n"
                what += f"  overwritten at {writer.source_line}\n  repair: {repair(writer)}"
                raise ProgramError(what)


def repair(writer: Operator) -> str:
    """What to do about an operator that overwrites a value that gradients need."""
    if writer.role == "optimize":
        how = "pairs = static.append_backward(loss), then optimizer.apply_gradients(pairs)"
        return f"append all backward parts before the first update: {how}"
    return f"give the result of {writer.type} a name of its own"


def _overwritten(block: Block) -> dict[str, int]:
    """The names that hold several values in a block, with the operator that wrote the last one."""
    written = outputs_of(block.ops)
    repeated = written_twice(written)
    for name in written:
        var = block.vars.get(name)
        if var is None or var.is_data or var.persistable:
            repeated.add(name)
    repeated.discard(EMPTY)
    if not repeated:
        return {}
    return {n: k for k, op in enumerate(block.ops) for n in op.output_names if n in repeated}
