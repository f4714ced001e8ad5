"""Kernels called by slots: values go in by the slots of an operator, and come out in the order of its names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    args, options = arguments(p, slots, attrs)
    return results(p, p.kernel(*args, **options))


def arguments(
    p: Primitive,
    slots: Mapping[str, Sequence[Any]],
    attrs: Mapping[str, Any],
    shape: Callable[[Any], Any] = np.shape,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a kernel is called with: values and numbers for its inputs, and its attrs.

    ``shape`` gives the shape of a value in a slot ``<attr>_like``: for values of another kind than arrays.
    """
    args: list[Any] = []
    for name in p.inputs:
        if name == p.list_input:
            args.extend(slots.get(name, ()))
        else:
            values = slots.get(name)
            args.append(values[0] if values else attrs.get(name))
    options = {}
    for a in p.attrs:
        like = slots.get(f"{a}_like")
        if like:
            options[a] = like_value(a, [shape(v) for v in like])
        elif a in attrs:
            options[a] = attrs[a]
    return tuple(args), options


def like_value(attr: str, shapes: list[Any]) -> Any:
    """What a slot ``<attr>_like`` says: one shape; for the attr ``shapes`` a list of them."""
    return shapes if attr == "shapes" else shapes[0]


def results(p: Primitive, out: Any) -> list[Any]:
    """What a kernel returned as a list: a value for each output, or for each place of its list."""
    return list(out) if p.list_output or len(p.outputs) > 1 else [out]


def targets(p: Primitive, op: Operator) -> list[str]:
    """The names these values get; `EMPTY` for those nobody wants."""
    return [n for s in p.outputs for n in op.outputs.get(s, [EMPTY])]
