"""Programs from programs: copy, copy for testing, keep what some targets need."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy

from ...errors import wrong
from .block import Block
from .operator import Operator, Ops, names_of
from .program import Program
from .variable import Variable
from .verify import verify

_COPIED = ("initial", "history", "error_clips", "inputs", "outputs", "backward_calls", "_counts")


def copy_program(program: Program) -> Program:
    """An independent copy: blocks, variables, operators, start values."""
    copy = Program()
    copy.blocks = []
    operators: dict[int, Operator] = {}
    for block in program.blocks:
        copy.blocks.append(Block(copy, block.idx, block.parent, block.forward_block))
        copy_into(copy.blocks[-1], block, operators, {})
    for op in operators.values():
        op.forward_op = operators.get(id(op.forward_op))
        op.copy_of = operators.get(id(op.copy_of))
    copy.pruned = [p._replace(op=operators.get(id(p.op), p.op)) for p in program.pruned]
    for name in _COPIED:
        setattr(copy, name, deepcopy(getattr(program, name)))
    return copy


def copy_into(
    target: Block, source: Block, operators: dict[int, Operator], names: Mapping[str, str]
) -> None:
    """Add copies of all that a block holds, under other names for some; ``operators``: id of the old one → the new one.

    Blocks inside, and links from operator to operator, are those of the source.
    """
    for name, v in source.vars.items():
        flags = v.persistable, v.trainable, v.is_data, v._stop, v._derived_stop
        new = names.get(name, name)
        target.vars[new] = Variable(target, new, v.shape, v.dtype, *flags)
    target.written.update(names.get(n, n) for n in source.written)
    for op in source.ops:
        operators[id(op)] = op.copy(names)
        target.ops.append(operators[id(op)])


def clone(program: Program, for_test: bool) -> Program:
    """A copy; for testing with dropout switched off, and of the backward part only what forward operators read."""
    copy = copy_program(program)
    if for_test:
        _no_running_statistics(program)
        shown = set[str]()
        for block in copy.blocks:
            _keep(block, _for_test(block, shown))
            for op in block.ops:
                shown.update(op.block_names)
                if op.type in ("dropout", "dropout_grad"):
                    op.attrs["p"] = 0.0
        copy.history.append("clone(for_test)")
        drop_unused(copy, set(copy.outputs))
    return verify(copy)


def _for_test(block: Block, shown: set[str]) -> list[Operator]:
    """The forward operators, and the backward ones that they need: a penalty on a gradient is part of the loss.

    ``shown``: what operators with blocks, in the blocks before, read of these.  A grad block is kept whole, or dropped
    with its operator.
    """
    if block.forward_block >= 0:
        return block.ops

    def stays(op: Operator, used: bool) -> bool:
        lasting = any(n in block.vars and block.vars[n].persistable for n in op.output_names)
        return op.role == "forward" or (used and not lasting)

    return needed_ops(block.ops, shown, stays)


def needed_ops(
    ops: Ops,
    names: Iterable[str],
    stays: Callable[[Operator, bool], bool] = lambda op, used: used,
) -> list[Operator]:
    """The operators that make what the names need; ``stays`` decides on each, told whether it is used."""
    needed, kept = set(names), list[Operator]()
    for op in reversed(ops):
        if stays(op, not needed.isdisjoint(op.output_names)):
            kept.append(op)
            needed.update(op.input_names)
    return kept[::-1]


def _keep(block: Block, ops: list[Operator]) -> None:
    """Keep only these operators of a block; what its backward calls noted speaks of them.

    Where the operator that made a target is gone, the values that it read stand for the target.
    """
    kept = {id(op) for op in ops}
    for call in block.program.backward_calls:
        if call.block == block.idx:
            targets, reached = set(call.targets), set[str]()
            for op in reversed(block.ops[: call.begin(block)]):
                written = targets.intersection(op.output_names)
                targets -= written  # what wrote these names before made other values
                if id(op) in kept:
                    reached |= written
                elif written:
                    targets.update(n for n in op.input_names if n in call.gradients)
            call.targets = [n for n in call.gradients if n in targets | reached]
    block.ops = ops


def _no_running_statistics(program: Program) -> None:
    """Errors: `ProgramError` if training moves statistics that its forward operators do not use.

    `nn.BatchNorm` moves them with ``sgd``; parameters and the state of optimizers are told apart by
    who reads them.
    """
    ops = [op for block in program.blocks for op in block.ops]
    read = {n for op in ops if op.role == "forward" for n in op.input_names}
    variables = program.global_block().vars
    for op in ops:
        if op.type == "sgd" and op.role == "optimize":
            (name,) = op.outputs["param_out"]
            if name not in read and name in variables and not variables[name].trainable:
                raise wrong(
                    "clone(for_test=True) would normalise with the statistics of the batch: "
                    f"{name!r} is moved at {op.source_line}, and no forward operator reads it",
                    "call the network after net.eval() in a program of its own, and run that "
                    "with the same Executor",
                )


def prune(program: Program, targets) -> Program:
    """A copy with only the operators of the root block that the targets need, and the blocks these hold."""
    copy = copy_program(program)
    block = copy.global_block()
    wanted = set(names_of(copy, targets, "prune", root=True))
    if not wanted:
        raise wrong("prune needs at least one target to keep", "program.prune([loss])")
    _keep(block, needed_ops(block.ops, wanted))
    copy.history.append("prune")
    drop_unused(copy, wanted)
    return verify(copy)


def drop_unused(program: Program, keep: set[str]) -> None:
    """Remove blocks no operator holds and variables no operator names."""
    held = {0}
    for block in program.blocks:  # those that hold others come first
        if block.idx in held:
            held.update(index for op in block.ops for index in op.sub_blocks.values())
    new_index = {old: k for k, old in enumerate(sorted(held))}
    program.blocks = [program.blocks[k] for k in new_index]
    used = set(keep)
    for block in program.blocks:
        block.idx = new_index[block.idx]
        block.parent = new_index.get(block.parent, -1)
        block.forward_block = new_index.get(block.forward_block, -1)
        for op in block.ops:
            used.update(op.input_names, op.output_names, op.block_names)
            for attr, index in op.sub_blocks.items():
                op.attrs[attr] = new_index[index]
    for block in program.blocks:
        kept = ("data", "param")
        block.vars = {n: v for n, v in block.vars.items() if n in used or v.kind in kept}
        block.written &= block.vars.keys()
    root = program.blocks[0].vars
    program.initial = {n: v for n, v in program.initial.items() if n in root}
    program.outputs = [n for n in program.outputs if n in root]
    known = {v.name for v in program.all_variables()}
    program.error_clips = {n: c for n, c in program.error_clips.items() if n in known}
    program.backward_calls = [
        c
        for c in program.backward_calls
        if c.block in held and not known.isdisjoint(c.gradients.values())
    ]
    for call in program.backward_calls:
        call.block = new_index[call.block]
    program.changed()
    program.pruned = []
