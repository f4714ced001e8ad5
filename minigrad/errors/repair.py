"""The last line of an op's error: what to do, found from the shapes and what NumPy said."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any


def repair(args: Sequence[Any], attrs: dict[str, Any], cause: Exception) -> str:
    """How to repair a call whose kernel raised ``cause``; empty if nothing is known.

    >>> import numpy as np
    >>> repair([np.zeros((2, 3)), np.zeros(2)], {}, ValueError("could not be broadcast together"))
    'sizes are compared from the right and must be equal or 1; add an axis with expand_dims'
    """
    text = str(cause)
    shapes = [tuple(s) for a in args if (s := getattr(a, "shape", None)) is not None]
    if "must be an integer array" in text or re.search("from dtype.'float.*to dtype.'int", text):
        return "indices are integers: indices.astype(int)"
    if isinstance(cause, TypeError | AttributeError):
        for name in ("axis", "axes"):
            if isinstance(axes := attrs.get(name), list):
                return f"{name}={tuple(axes)}, a tuple"
        return "pass Tensors, arrays or numbers, and attrs of the type the docstring names"
    for needle, advice in _ADVICE:
        if needle in text:
            return advice(shapes, attrs)
    return ""


def _axes(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    n = max(map(len, shapes), default=0)
    return f"axes go from {-n} to {n - 1} here" if n else "a single number has no axes"


def _order(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    n = max(map(len, shapes), default=0)
    return f"name each of the {n} axes once; swapaxes(axis1, axis2) exchanges two"


def _product(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    size = 1
    for n in shapes[0] if shapes else ():
        size *= n
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


def _broadcast(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    return "sizes are compared from the right and must be equal or 1; add an axis with expand_dims"


def _says(sentence: str) -> Callable[..., str]:
    return lambda shapes, attrs: sentence


_ADVICE: list[tuple[str, Callable[..., str]]] = [
    ("matmul", _matmul),
    ("not aligned", _matmul),
    ("axes don't match", _order),
    ("out of bounds for array of dimension", _axes),
    ("out of range for", _axes),
    ("cannot reshape", _product),
    ("broadcast", _broadcast),
    ("out of bounds", _says("indices count from 0, or from -1 backwards")),
    ("zero-dimensional", _says("a single number has no axis to join along; use stack")),
    ("concatenat", _says("all sizes but that of the joined axis must be equal")),
    (
        "input arrays must have same number",
        _says("all need equally many axes; add one with expand_dims"),
    ),
    ("index", _says("one index per axis: numbers, slices, None, ..., integer arrays or a mask")),
    ("repeated axis", _says("name each axis once")),
    ("zero-size array", _says("only sum, prod, any and all are defined for no elements")),
    ("negative dimensions", _says("sizes and repetitions count from 0")),
    ("same shape", _says("bring all values to one shape first")),
    ("inhomogeneous", _says("rows of a list must be equally long")),
    (
        "Singular",
        _says("the matrix has no inverse; add a small multiple of eye(n), or use another method"),
    ),
    (
        "positive definite",
        _says("the matrix must be symmetric with positive eigenvalues; try x @ x.mT + eye(n)"),
    ),
    (
        "Integers to negative integer powers",
        _says("a float as the base: x.astype(float) ** -1, or 2.0 ** -1"),
    ),
    (
        "same number of dimensions",
        _says("indices have an axis for each axis of x; add one with expand_dims"),
    ),
    ("size not equal to one", _says("only axes of length 1 can be squeezed")),
    ("einstein", _says("one letter per axis of each operand, as in 'ij,jk->ik'")),
    ("operand", _says("one letter per axis of each operand, as in 'ij,jk->ik'")),
    ("subscript", _says("one letter per axis of each operand, as in 'ij,jk->ik'")),
]
