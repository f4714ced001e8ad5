"""Records of reductions, statistics, scans, softmax and normalisation."""

from __future__ import annotations

from itertools import product

import numpy as np

from minigrad.errors import DTypeError, ShapeError
from tests.opinfo import RAGGED, Sample, draw, f32, fails, record, s, shaped

AXIS = fails(ShapeError, "axes go from -2 to 1 here", np.ones((2, 3)), axis=5)
WORD = fails(DTypeError, "attrs of the type", np.ones((2, 3)), axis="rows")
FAILS = [AXIS, WORD, RAGGED]


def attrs(**more):
    """Axes of every kind."""
    return [
        {"axis": axis, "keepdims": keep, **more}
        for axis, keep in [(None, False), (1, False), ((0, 2), True), (-1, True), ((0, -1), False)]
    ]


def reduction(low=-2.0, high=2.0, **more) -> list[Sample]:
    extra = {"keepdims": False, **more}
    return shaped(
        (2, 3, 2),
        *attrs(**more),
        low=low,
        high=high,
        more=[
            s(draw(low=low, high=high), axis=None, **extra),
            s(draw(0, 3), axis=1, **extra),
            s(draw(3, low=low, high=high), axis=0, **extra),
            s(f32(draw(3, 4)), axis=0, **extra),
            s(draw(1, 4, low=low, high=high), axis=0, **extra),
        ],
    )


def mean_of(x, axis, keepdims=False):
    return np.mean(x, axis=axis, keepdims=keepdims)


def variance(x, axis, correction, keepdims):
    d = x - x.mean(axis=axis, keepdims=True)
    n = x.size / max(np.sum(d * d, axis=axis).size, 1) - correction
    return np.sum(d * d, axis=axis, keepdims=keepdims) / (n or np.nan)


record(
    "reduce_sum",
    lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims),
    [*reduction(), s(np.arange(6).reshape(2, 3), axis=0, keepdims=False)],
    FAILS,
    holomorphic=True,
)
record(
    "mean",
    mean_of,
    [*reduction(), s(np.arange(6), axis=0, keepdims=False)],
    FAILS,
    holomorphic=True,
    domain="all numbers; NaN over no elements",
)
record(
    "reduce_prod",
    lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims),
    [
        *reduction(),
        s(np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]), axis=1, keepdims=False),
        s(np.array([[0.0, 2.0], [4.0, 3.0]]), axis=None, keepdims=False),
    ],
    [*FAILS],
    holomorphic=True,
)
for _name, _function in [("reduce_max", np.max), ("reduce_min", np.min)]:
    record(
        _name,
        lambda x, axis, keepdims, f=_function: f(x, axis=axis, keepdims=keepdims),
        reduction(),
        [*FAILS, fails(ShapeError, "no identity", np.ones((0, 3)), axis=0)],
        domain="at least one element",
    )
for _name, _function in [("reduce_any", np.any), ("reduce_all", np.all)]:
    record(
        _name,
        lambda x, axis, keepdims, f=_function: f(x, axis=axis, keepdims=keepdims),
        [s(np.round(a.args[0]), **a.attrs) for a in reduction()],
        [AXIS, WORD],
    )
record(
    "tie_share",
    lambda x, out, axis, keepdims: share(x, axis),
    [
        s(np.round(x), np.max(np.round(x), **a), **a)
        for a, x in product(attrs(), [draw(2, 3, 2), f32(draw(2, 3, 2))])
    ],
    [fails(ShapeError, "out of range", np.ones((2, 3)), np.ones(2), axis=7)],
)


def share(x, axis):
    top = x == np.max(x, axis=axis, keepdims=True)
    return (top / top.sum(axis=axis, keepdims=True)).astype(x.dtype)


# -- the maps back -------------------------------------------------------------------------


def back(x, shape, axis, keepdims):
    """A reduced value, wide again."""
    if axis is not None and not keepdims:
        x = np.expand_dims(x, tuple(a % len(shape) for a in np.atleast_1d(axis)))
    return np.broadcast_to(x, shape)


def wide(**more) -> list[Sample]:
    shape, found = (2, 3, 2), []
    for k, a in enumerate([*attrs(**more), *attrs(**more)]):
        x = np.sum(draw(*shape), axis=a["axis"], keepdims=a["keepdims"])
        found.append(s(np.asarray(f32(x) if k > 5 else x), shape=shape, **a))
    return found


NARROW = [
    fails(ShapeError, "out of range", np.ones(2), shape=(2, 3), axis=4),
    fails(ShapeError, "broadcast", np.ones(5), shape=(2, 3), axis=0),
]


def count(shape, axis):
    return np.ones(shape).sum(axis=axis).flat[0]


record("expand_reduced", back, wide(), NARROW, holomorphic=True)
record(
    "over_count",
    lambda x, shape, axis, correction: divided(x, count(shape, axis) - correction),
    [s(a.args[0], shape=(2, 3, 2), axis=a.attrs["axis"], correction=1) for a in wide()],
    [fails(ShapeError, "out of range", np.ones(2), shape=(2, 3), axis=4)],
    holomorphic=True,
)


def divided(x, n):
    n = float(n) if n > 0 else float("nan")
    return x / n
