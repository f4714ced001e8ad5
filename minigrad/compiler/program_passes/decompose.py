"""Grad ops become primitives: what ``tanh_grad`` does, as multiplications and a difference."""

from __future__ import annotations

from ...static.backward.second import written_out
from ...static.program.block import Block
from ...static.program.op_info import find_info
from ...static.program.operator import Operator
from ...static.program.program import Program
from .names import rename


def decompose(program: Program) -> Program:
    """A copy in which every grad op is written out in primitives; loops keep their grad blocks, also written out.

    >>> from minigrad import static
    >>> import minigrad as mg
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", 3.0); y = w * w; pairs = static.append_backward(y)
    >>> [op.type for op in decompose(prog).global_block().ops]
    ['mul', 'fill_constant', 'mul', 'mul', 'sum']
    """
    decomposed = program.clone()
    for block in list(decomposed.blocks):
        ops: list[Operator] = []
        for op in block.ops:
            ops += _primitives(block, op)
        block.ops = ops
    decomposed.history.append("decompose")
    decomposed.changed()
    return decomposed


def _primitives(block: Block, op: Operator) -> list[Operator]:
    info = find_info(op.type)
    if info is None or not info.is_grad or info.forward is None:
        return [op]
    parts, alias = written_out(block, op)
    for part in parts:
        part.forward_op, part.role = op.forward_op, op.role
    by_inner: dict[str, list[str]] = {}
    for name, inner in alias.items():
        by_inner.setdefault(inner, []).append(name)
    for inner, names in by_inner.items():
        _give_names(block, op, parts, inner, names)
    return parts


def _give_names(
    block: Block, op: Operator, parts: list[Operator], inner: str, names: list[str]
) -> None:
    """The last primitive writes the gradient's own name; further names, and values passed on, are copies."""
    made_here = [p for p in parts if inner in p.output_names]
    if made_here:
        first, names = names[0], names[1:]
        for part in parts:
            rename(part, {inner: first})
        block.vars.pop(inner, None)
        inner = first
    for name in names:
        copy = Operator("assign", {"x": [inner]}, {"out": [name]}, {}, op.role, op.forward_op)
        parts.append(copy.at(op))
