"""Open sizes become numbers: what the shapes of the feeds decide about all other shapes."""

from __future__ import annotations

from collections.abc import Mapping

from ...grad_names import GRAD
from ...static.program.block import Block
from ...static.program.infer import infer_outputs
from ...static.program.op_info import find_info
from ...static.program.operator import Operator
from ...static.program.program import Program
from ...static.program.variable import Variable


def specialise(program: Program, shapes: Mapping[str, tuple[int, ...]]) -> Program:
    """A copy in which the data have these shapes, and every other variable the shape that follows.

    Errors: `ShapeError` where an operator does not accept the sizes.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [-1, 3]); y = x.sum(axis=1)
    >>> y.shape, specialise(prog, {"x": (8, 3)}).global_block().var(y.name).shape
    ((-1,), (8,))
    """
    specialised = program.clone()
    root = specialised.global_block()
    for name, shape in shapes.items():
        root.vars[name].shape = tuple(shape)
    if any(-1 in v.shape for v in specialised.all_variables()):
        _block(root)
    specialised.history.append("specialise")
    return specialised


def _block(block: Block) -> None:
    for op in block.ops:
        info = find_info(op.type)
        if op.sub_blocks:
            _control(block, op)
        elif info is not None and info.is_grad:
            _like_their_forward(block, op.output_names)
        else:
            infer_outputs(block, op)  # closes the sizes that are known now


def _control(block: Block, op: Operator) -> None:
    program = block.program
    inner = [program.blocks[index] for index in op.sub_blocks.values()]
    if op.type.endswith("_grad"):
        for sub in inner:
            _like_their_forward(sub, list(sub.vars))
    else:
        _entering(block, op, inner[0])
    for sub in inner:
        _block(sub)
    if op.type.endswith("_grad"):
        _like_their_forward(block, op.output_names)
    else:
        _leaving(block, op, inner)


def _entering(block: Block, op: Operator, body: Block) -> None:
    """Values that a loop hands to its body."""
    for local, start in zip(op.attrs.get("carried", ()), op.inputs.get("x", ()), strict=True):
        body.vars[local].shape = block.var(start).shape
    for local, seq in zip(op.attrs.get("steps", ()), op.inputs.get("seq", ()), strict=True):
        body.vars[local].shape = block.var(seq).shape[1:]


def _leaving(block: Block, op: Operator, inner: list[Block]) -> None:
    """Values that come out of a control operator."""
    if op.type == "cond":
        for k, name in enumerate(op.outputs["out"]):
            a = inner[0].var(op.attrs["true_out"][k]).shape
            b = inner[1].var(op.attrs["false_out"][k]).shape
            block.var(name).shape = tuple(m if m == n else -1 for m, n in zip(a, b, strict=True))
        return
    for name, start in zip(op.outputs["out"], op.inputs["x"], strict=True):
        block.var(name).shape = block.var(start).shape
    for name, local in zip(
        op.outputs.get("stacked", ()), op.attrs.get("step_out", ()), strict=True
    ):
        length = block.var(op.inputs["seq"][0]).shape[0]
        block.var(name).shape = (length, *inner[0].var(local).shape)


def _like_their_forward(block: Block, names: list[str]) -> None:
    """Gradients have the shape of what they are the gradient of."""
    for name in names:
        var = block.vars.get(name)
        if var is not None and -1 in var.shape:
            source = _forward_of(block, name)
            if source is not None:
                var.shape = source.shape


def _forward_of(block: Block, name: str) -> Variable | None:
    while GRAD in name:
        name = name[: name.rindex(GRAD)]
        source = block.find_var(name)
        if source is not None and -1 not in source.shape:
            return source
    return None
