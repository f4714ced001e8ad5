"""Recomputation: keep the checkpoints, compute the other forward values once more in the backward part.

Checkpoints cut the forward operators into segments.  Before the grad ops of a segment stand copies of those of its
operators whose values they read, under the names ``v@RECOMPUTE``; after the last checkpoint all values are still there.
The copies compute the same from the same, so gradients stay equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import ProgramError, did_you_mean, user_line
from ...grad_names import again, is_again
from ..program.arguments import name_of, several
from ..program.block import Block
from ..program.op_info import CONTROL
from ..program.operator import Operator


def recompute_segments(
    block: Block, ops: list[Operator], checkpoints: Iterable[Any]
) -> list[Operator]:
    """The raw grad ops, with recomputing operators before each segment's.  Errors: `ProgramError`."""
    names = _names(block, checkpoints)
    segment = _segments(block, names)
    again = _Again(block, names, segment)
    last = max(segment.values(), default=0)
    by_segment: dict[int, list[Operator]] = {}
    for op in ops:
        of = segment.get(id(op.copy_of or op.forward_op), last)
        by_segment.setdefault(of, []).append(op)
    out: list[Operator] = []
    done = {last}
    for op in ops:
        of = segment.get(id(op.copy_of or op.forward_op), last)
        if of not in done:
            done.add(of)
            out += again.copies(of, by_segment[of])
        if of != last:
            again.redirect(op, of)
        out.append(op)
    return out


def _names(block: Block, checkpoints: Iterable[Any]) -> set[str]:
    names = [name_of(item, "checkpoints") for item in several(checkpoints)]
    for name in names:
        if name not in block.vars:
            what = f"checkpoints names {name!r}, which is no variable of block {block.idx}"
            what += f"{did_you_mean(name, block.vars)}\n  at {user_line()}"
            raise ProgramError(what)
    return set(names)


def _segments(block: Block, kept: set[str]) -> dict[int, int]:
    """Operator id → number of its segment; a checkpoint ends the segment of the operator that makes it."""
    segment, number = {}, 0
    for op in block.ops:
        segment[id(op)] = number
        number += not kept.isdisjoint(op.output_names)
    return segment


class _Again:
    """Which values of a segment are computed again, and under which names."""

    def __init__(self, block: Block, kept: set[str], segment: dict[int, int]) -> None:
        writers: dict[str, list[Operator]] = {}
        for op in block.ops:
            for name in op.output_names:
                writers.setdefault(name, []).append(op)
        self.block = block
        self.maker: dict[tuple[int, str], Operator] = {
            (segment[id(made[0])], n): made[0]
            for n, made in writers.items()
            if len(made) == 1
            and n not in kept
            and made[0].type not in CONTROL
            and _temporary(block, n)
        }
        self.copied: dict[int, str] = {}

    def copies(self, of: int, grads: list[Operator]) -> list[Operator]:
        """Copies of the operators whose values these grad ops read, in forward order."""
        waiting = [n for op in grads for n in op.reads or ()]
        needed: set[int] = set()
        while waiting:
            op = self.maker.get((of, waiting.pop()))
            if op is not None and id(op) not in needed:
                needed.add(id(op))
                waiting += op.input_names
        self.fresh = {n for (s, n), op in self.maker.items() if s == of and id(op) in needed}
        return [self._copy(op, of) for op in self.block.ops if id(op) in needed]

    def _copy(self, op: Operator, of: int) -> Operator:
        copy = op.copy()
        copy.role, copy.copy_of = "backward", op
        self.redirect(copy, of)
        copy.reads = tuple(n for n in copy.input_names if not is_again(n))
        copy.outputs = {s: [again(n) for n in names] for s, names in copy.outputs.items()}
        return copy

    def redirect(self, op: Operator, of: int) -> None:
        """Let an operator read the values that were computed again."""
        op.reads = tuple(n for n in op.reads or () if n not in self.fresh)
        for slot, names in op.inputs.items():
            op.inputs[slot] = [again(n) if n in self.fresh else n for n in names]


def _temporary(block: Block, name: str) -> bool:
    var = block.vars.get(name)
    return var is not None and not var.persistable and not var.is_data
