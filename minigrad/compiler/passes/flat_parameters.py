"""Slabs: parameters, gradients and what is remembered of them lie in one array of each kind, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...static.program.program import Operator, Program

#: every array in a slab starts at a multiple of so many bytes
ALIGN = 64


def state_slabs(program: Program) -> list[list[str]]:
    """The names of persistable variables that updates of one kind treat alike, slot by slot."""
    found: list[list[str]] = []
    for group in _groups(program.global_block().ops):
        for slot in group[0].outputs:
            names = [n for op in group for n in op.outputs.get(slot, ())]
            held = [program.global_block().var(n) for n in names]
            fits = len(names) == len(set(names)) == len(group) and len({v.dtype for v in held}) == 1
            if fits and all(v.persistable for v in held):  # clipping makes values on the way
                found.append(names)
    taken: set[str] = set()
    out = []
    for names in found:
        if taken.isdisjoint(names):
            out.append(names)
            taken.update(names)
    return out


def _groups(ops: list[Operator]) -> list[list[Operator]]:
    """Neighbouring update operators of one type with the same attrs."""
    groups: list[list[Operator]] = []
    for op in ops:
        if op.role != "optimize":
            groups.append([])
        elif groups and groups[-1] and alike(groups[-1][0], op):
            groups[-1].append(op)
        else:
            groups.append([op])
    return [g for g in groups if len(g) > 1]


def alike(a: Any, b: Any) -> bool:
    """Whether two update operators do the same to other variables."""
    same = a.type == b.type and a.attrs == b.attrs and a.inputs.keys() == b.inputs.keys()
    return bool(same)


def slab_name(names: list[str]) -> str:
    """What a slab is called; no variable's name has a space."""
    return " ".join(names)


def in_slab(
    dtype: np.dtype[Any], shapes: list[tuple[int, ...]]
) -> tuple[int, list[tuple[int, int]]]:
    """The length of a slab and the place of each array in it.

    >>> in_slab(np.dtype("float64"), [(2, 3), (3,)])
    (16, [(0, 6), (8, 11)])
    """
    step = ALIGN // dtype.itemsize
    places, at = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        places.append((at, at + size))
        at += -(-size // step) * step
    return at, places
