"""Who writes and who reads a name: what every pass asks before it moves or removes an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...grad_names import EMPTY
from ...static.program.block import Block
from ...static.program.operator import Operator
from ...static.program.program import Program
from ...static.program.transform import forget_gone
from ...static.program.variable import plain_variable


def written_once(block: Block) -> set[str]:
    """Names that exactly one operator of the block writes and that do not outlive the run."""
    counts: dict[str, int] = {}
    for op in block.ops:
        for name in op.output_names:
            counts[name] = counts.get(name, 0) + 1
    return {n for n, k in counts.items() if k == 1 and not is_state(block, n)}


def is_state(block: Block, name: str) -> bool:
    """Whether a name outlives the run."""
    var = block.find_var(name)
    return var is not None and var.persistable


def never_written(program: Program) -> set[str]:
    """Data, and state that is only read."""
    written = {n for b in program.blocks for op in b.ops for n in op.output_names}
    lasting = {n for n, v in program.global_block().vars.items() if v.is_data or v.persistable}
    return lasting - written


def held_names(program: Program) -> set[str]:
    """Names in the attrs of control operators: what enters and leaves blocks keeps its name."""
    return {n for block in program.blocks for op in block.ops for n in op.block_names}


def names_read(program: Program, op: Operator) -> set[str]:
    """All names an operator reads, its blocks included."""
    names = {n for n in op.input_names if n != EMPTY}
    for index in op.sub_blocks.values():
        for inner in program.blocks[index].ops:
            names |= names_read(program, inner)
    return names


def names_inside(program: Program, op: Operator) -> set[str]:
    """All names that belong to the blocks of an operator."""
    names: set[str] = set()
    for index in op.sub_blocks.values():
        names |= program.blocks[index].vars.keys()
        for inner in program.blocks[index].ops:
            names |= names_inside(program, inner)
    return names


def replace_inputs(op: Operator, same: dict[str, str]) -> None:
    """Let an operator read other names."""
    if same and not same.keys().isdisjoint(op.input_names):
        for slot, names in op.inputs.items():
            op.inputs[slot] = [same.get(n, n) for n in names]


def rename(op: Operator, names: Mapping[str, str]) -> None:
    """Let an operator read and write other names."""
    for slots in (op.inputs, op.outputs):
        for slot, listed in slots.items():
            slots[slot] = [names.get(n, n) for n in listed]


def replace_in_readers(block: Block, same: dict[str, str]) -> None:
    """Let every block that looks names up in this one read other names."""
    for other in block.program.blocks:
        if other is block or any(seen is block for seen in other.lookup()):
            visible = {a: b for a, b in same.items() if other is block or a not in other.vars}
            for op in other.ops:
                replace_inputs(op, visible)


def forget_unused(program: Program, keep: set[str]) -> None:
    """Remove the variables that no operator names any more."""
    named = {n for b in program.blocks for op in b.ops for n in [*op.input_names, *op.output_names]}
    named |= held_names(program) | keep
    for block in program.blocks:
        block.vars = {
            n: v for n, v in block.vars.items() if n in named or v.persistable or v.is_data
        }
    forget_gone(program)
    program.changed()


class Rewriting:
    """A block, and who makes each name that is written once."""

    def __init__(self, block: Block) -> None:
        self.block, once = block, written_once(block)
        self.makers = {n: op for op in block.ops for n in op.output_names if n in once}

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a variable."""
        return self.block.var(name).shape

    def add(self, origin: Operator, kind: str, inputs: Any, attrs: Any, shape: Any) -> Operator:
        """An operator in no block yet, for a new value; messages and comments call it by the name of ``origin``."""
        like = self.block.var(origin.output_names[0])
        name = self.block.program.unique_name(kind)
        self.block.vars[name] = plain_variable(self.block, name, shape, like.dtype, False)
        op = Operator(kind, inputs, {"out": [name]}, attrs, origin.role, origin.forward_op)
        return op.at(origin)

    def reshape(self, origin: Operator, name: str, shape: tuple[int, ...]) -> Operator:
        """The value of a name in another shape."""
        return self.add(origin, "reshape", {"x": [name]}, {"shape": shape}, shape)
