"""The last line of an op's error: what to do, found from the shapes and what NumPy said."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any


def read_tables(path: Path) -> dict[str, dict[str, str]]:
    """Section → name → advice.  Imported with the package, so it is no more than its lines ask for."""
    tables: dict[str, dict[str, str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line[:1] == "[":
            table = tables[line.strip("[]")] = {}
        elif line and line[0] != "#":
            name, _, advice = line.partition(" = ")
            table[name] = advice
    return tables


def repair(args: Sequence[Any], attrs: dict[str, Any], cause: Exception, usual: str = "") -> str:
    """How to repair a call whose kernel raised ``cause``; empty if nothing is known.

    >>> import numpy as np
    >>> repair([np.zeros((2, 3)), np.zeros(2)], {}, ValueError("could not be broadcast together"))
    'sizes are compared from the right and must be equal or 1; add an axis with expand_dims'
    """
    text = str(cause)
    shapes = [tuple(s) for a in args if (s := getattr(a, "shape", None)) is not None]
    if "must be an integer array" in text or re.search("from dtype.'float.*to dtype.'int", text):
        return "indices are integers: indices.astype(int)"
    if "object is not callable" in text or "no attribute '__name__'" in text:
        return "pass a function there, as in lambda x: mg.sum(x * x)"
    if "Cannot interpret" in text:
        return "sizes are one shape, ((2, 3)); a dtype is float, int, bool or its name"
    if "object is not iterable" in text:
        return "pass a list, a tuple or an array there"
    if isinstance(cause, TypeError | AttributeError):
        for name in ("axis", "axes"):
            if isinstance(axes := attrs.get(name), list):
                return f"{name}={tuple(axes)}, a tuple"
        return usual
    for words, advice in _BY_SHAPES.items():
        if words in text:
            return advice(shapes, attrs)
    return next((advice for words, advice in _SENTENCES.items() if words in text), "")


def _axes(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    n = max(map(len, shapes), default=0)
    return f"axes go from {-n} to {n - 1} here" if n else "a single number has no axes"


def _order(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    n = max(map(len, shapes), default=0)
    return f"name each of the {n} axes once; swapaxes(axis1, axis2) exchanges two"


def _product(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    size = prod(shapes[0]) if shapes else 1
    return f"the sizes must multiply to {size}; one of them may be -1"


def _matmul(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    if len(shapes) < 2 or not shapes[0] or not shapes[1]:
        return "a matrix product needs at least one axis on each side; a number scales with *"
    x, y = shapes[0], shapes[1]
    if len(x) > 2 and len(y) == 2 and prod(x[1:]) == y[0]:
        return f"all {y[0]} numbers of an example in one row: x.flatten(start=1), nn.Flatten()"
    return (
        f"the last axis of the first ({x[-1]}) must be as long as the rows of the second "
        f"({y[-2] if len(y) > 1 else y[0]}); perhaps one of them is meant transposed (x.mT)"
    )


#: words of NumPy's error → what finds the advice from the shapes
_BY_SHAPES: dict[str, Callable[..., str]] = {
    "matmul": _matmul,
    "not aligned": _matmul,
    "axes don't match": _order,
    "out of bounds for array of dimension": _axes,
    "out of range for": _axes,
    "cannot reshape": _product,
}
_SENTENCES = read_tables(Path(__file__).with_suffix(".ini"))["NumPy"]
