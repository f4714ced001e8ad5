"""Stand-ins: arrays without memory of their own, with the shapes and dtypes of a program's variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...primitives.registry import Primitive

if TYPE_CHECKING:
    from .variable import Variable


def stand_in(shape: tuple[int, ...], dtype: np.dtype[Any], size: int, mask: bool = True) -> Any:
    """An array that costs no memory: ones (zeros for integers, so that it can be an index)."""
    filled = (
        np.asarray(mask) if dtype.kind == "b" else np.asarray(0 if dtype.kind in "iu" else 1, dtype)
    )
    return np.broadcast_to(filled, tuple(size if n < 0 else n for n in shape))


def matched(shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Shapes that are broadcast together, with open sizes closed where another operand knows them.

    >>> matched([(-1, 2), (4, 2), (-1,)])
    [(4, 2), (4, 2), (2,)]
    """
    rank = max(map(len, shapes), default=0)
    known = [1] * rank
    for shape in shapes:
        for k, n in enumerate(reversed(shape)):
            known[k] = n if n > 1 else known[k]
    return [
        tuple(
            known[len(s) - 1 - k] if n < 0 and known[len(s) - 1 - k] > 1 else n
            for k, n in enumerate(s)
        )
        for s in shapes
    ]


def stand_ins(
    p: Primitive, variables: dict[str, list[Variable]], size: int, mask: bool
) -> dict[str, list[Any]]:
    """A stand-in for every variable; constant masks stand for themselves."""
    flat = [v for vs in variables.values() for v in vs]
    shapes = [v.shape for v in flat]
    closed = iter(matched(shapes) if p.broadcasts else shapes)
    out: dict[str, list[Any]] = {}
    for slot, vs in variables.items():
        out[slot] = []
        for v in vs:
            shape, known = next(closed), known_mask(v)
            out[slot].append(stand_in(shape, v.dtype, size, mask) if known is None else known)
    return out


def known_mask(v: Variable) -> Any:
    """A constant mask stands for itself, since shapes may depend on it."""
    if v.dtype.kind != "b" or not v.persistable:
        return None
    return v.program.initial.get(v.name)
