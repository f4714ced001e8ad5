"""Shapes and dtypes that a Program cannot find by running a kernel on stand-ins.

An ``infer`` function gets ``inputs``, slot → list of (shape, dtype), where -1 is an open size, and
the attrs; it returns one (shape, dtype) per output.  A ``shape`` may come as a slot ``shape_like``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Inputs = dict[str, list[tuple[tuple[int, ...], Any]]]


def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes can be those of one value; -1 is an open size."""
    return a == b or (
        len(a) == len(b) and all(m == n or -1 in (m, n) for m, n in zip(a, b, strict=True))
    )


def shape_attr(inputs: Inputs, attrs: dict[str, Any]) -> list[tuple[tuple[int, ...], Any]]:
    """The output has the shape that an attr says: ops that are the way back of another op."""
    like = inputs.get("shape_like")
    dtypes = [d for slot in ("x", "y", "w") for _, d in inputs.get(slot, []) if d.kind in "fc"]
    shape = like[0][0] if like else tuple(attrs["shape"])
    return [(shape, np.result_type(*dtypes) if dtypes else inputs["x"][0][1])]


def reshaped(inputs: Inputs, attrs: dict[str, Any]) -> list[tuple[tuple[int, ...], Any]]:
    """`reshape`: sizes are checked where all are known."""
    ((shape, dtype),) = inputs["x"]
    if "shape_like" in inputs:
        return [(inputs["shape_like"][0][0], dtype)]
    wanted = attrs["shape"]
    wanted = (wanted,) if isinstance(wanted, int) else tuple(wanted)
    if -1 not in shape:
        wanted = np.broadcast_to(0, shape).reshape(wanted).shape
    return [(wanted, dtype)]


def broadcasted(inputs: Inputs, attrs: dict[str, Any]) -> list[tuple[tuple[int, ...], Any]]:
    """`broadcast_to`: shapes are checked where all sizes are known."""
    ((shape, dtype),) = inputs["x"]
    ((out, _),) = shape_attr(inputs, attrs)
    if -1 not in shape and -1 not in out:
        np.broadcast_to(np.broadcast_to(0, shape), out)
    return [(out, dtype)]


def like_x(inputs: Inputs, attrs: dict[str, Any]) -> list[tuple[tuple[int, ...], Any]]:
    """`inv` and `cholesky`: stand-ins have no inverse."""
    ((shape, dtype),) = inputs["x"]
    return [(shape, np.result_type(dtype, np.float32))]


def solved(inputs: Inputs, attrs: dict[str, Any]) -> list[tuple[tuple[int, ...], Any]]:
    """`solve`, with a vector or matrices on the right."""
    ((a, a_dtype),), ((b, b_dtype),) = inputs["a"], inputs["b"]
    shape = a[:-1] if len(b) == 1 else (*np.broadcast_shapes(a[:-2], b[:-2]), *b[-2:])
    return [(shape, np.result_type(a_dtype, b_dtype, np.float32))]
