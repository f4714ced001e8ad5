"""Recomputation: keep the checkpoints, compute the other forward values once more in the backward part.

Checkpoints cut the forward operators into segments.  Before the grad ops of a segment stand copies of those of its
operators whose values they read, under the names ``v@RECOMPUTE``; after the last checkpoint all values are still there.
The copies compute the same from the same, so gradients stay equal to the last bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ...errors import did_you_mean, wrong
from ...grad_names import again
from ..program.arguments import name_of, several
from ..program.block import Block
from ..program.op_info import CONTROL
from ..program.operator import Operator


def recompute_segments(
    block: Block, ops: list[Operator], checkpoints: Iterable[Any]
) -> list[Operator]:
    """The raw grad ops, with recomputing operators before each segment's.  Errors: `ProgramError`."""
    kept = _names(block, checkpoints)
    segment, number = dict[int, int](), 0  # operator → its segment, which ends with a checkpoint
    writers = defaultdict[str, list[Operator]](list)
    for op in block.ops:
        segment[id(op)] = number
        number += not kept.isdisjoint(op.output_names)
        for name in op.output_names:
            writers[name].append(op)
    last = max(segment.values(), default=0)
    maker = {
        n: made[0] for n, made in writers.items() if n not in kept and _is_remade(block, n, made)
    }
    of = [segment.get(id(op.copy_of or op.forward_op), last) for op in ops]
    read = defaultdict[int, list[str]](list)  # segment → what its grad ops read
    for op, number in zip(ops, of, strict=True):
        read[number] += op.reads or ()
    fresh: dict[int, set[str]] = {last: set()}  # segment → the names that are computed again
    out: list[Operator] = []
    for op, number in zip(ops, of, strict=True):
        if number not in fresh:
            needed = set[int]()
            for name in read[number]:  # which grows on the way
                made = maker.get(name)
                if made is not None and segment[id(made)] == number and id(made) not in needed:
                    needed.add(id(made))
                    read[number] += made.input_names
            fresh[number] = {n for n, made in maker.items() if id(made) in needed}
            out += [_copy(made, fresh[number]) for made in block.ops if id(made) in needed]
        if number != last:
            _redirect(op, fresh[number])
        out.append(op)
    return out


def _names(block: Block, checkpoints: Iterable[Any]) -> set[str]:
    names = [name_of(item, "checkpoints") for item in several(checkpoints)]
    for name in names:
        if name not in block.vars:
            what = f"checkpoints names {name!r}, which is no variable of block {block.idx}"
            raise wrong(f"{what}{did_you_mean(name, block.vars)}")
    return set(names)


def _is_remade(block: Block, name: str, writers: list[Operator]) -> bool:
    """Whether a value can be computed again: one operator without blocks made it, for this run only."""
    var = block.vars.get(name)
    lasting = var is None or var.persistable or var.is_data
    return len(writers) == 1 and writers[0].type not in CONTROL and not lasting


def _copy(op: Operator, fresh: set[str]) -> Operator:
    copy = op.copy()
    copy.role, copy.copy_of = "backward", op
    _redirect(copy, fresh)
    copy.reads = tuple(n for n in op.input_names if n not in fresh)
    copy.outputs = {s: [again(n) for n in names] for s, names in copy.outputs.items()}
    return copy


def _redirect(op: Operator, fresh: set[str]) -> None:
    """Let an operator read the values that were computed again."""
    op.reads = tuple(n for n in op.reads or () if n not in fresh)
    for slot, names in op.inputs.items():
        op.inputs[slot] = [again(n) if n in fresh else n for n in names]
