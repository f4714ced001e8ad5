"""Kernels called by slots: values go in by the slots of an operator, and come out in the order of its names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...primitives.registry import Primitive
from ..program.operator import EMPTY

if TYPE_CHECKING:
    from ..program.operator import Operator


def run_kernel(p: Primitive, slots: dict[str, list[Any]], attrs: dict[str, Any]) -> list[Any]:
    """The results of a kernel, called with values by slot.

    Numbers may stand in attrs; the shapes of the values in a slot ``<attr>_like`` stand for that attr.
    """
    args: list[Any] = []
    for name in p.inputs:
        if name == p.list_input:
            args.extend(slots.get(name, ()))
        else:
            given = slots.get(name)
            args.append(given[0] if given else attrs.get(name))
    kept = {}
    for a in p.attrs:
        like = slots.get(f"{a}_like")
        if like:
            kept[a] = like_value(a, [np.shape(v) for v in like])
        elif a in attrs:
            kept[a] = attrs[a]
    return results(p, p.kernel(*args, **kept))


def like_value(attr: str, shapes: list[Any]) -> Any:
    """What a slot ``<attr>_like`` says: one shape; for the attr ``shapes`` a list of them."""
    return shapes if attr == "shapes" else shapes[0]


def results(p: Primitive, out: Any) -> list[Any]:
    """What a kernel returned as a list: a value for each output, or for each place of its list."""
    return list(out) if p.list_output or len(p.outputs) > 1 else [out]


def targets(p: Primitive, op: Operator) -> list[str]:
    """The names these values get; `EMPTY` for those nobody wants."""
    return [n for s in p.outputs for n in op.outputs.get(s, [EMPTY])]
