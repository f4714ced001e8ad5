"""Records of scans, statistics, softmax and order."""

from __future__ import annotations

import numpy as np

from minigrad.errors import ShapeError
from tests.opinfo import (
    RAGGED,
    draw,
    f32,
    fails,
    record,
    s,
    shaped,
)
from tests.ops.records_reduce import AXIS, FAILS, WORD, reduction, variance

# -- scans ---------------------------------------------------------------------------------


def scan(f):
    def reference(x, axis, reverse):
        x, axis = (x.ravel(), 0) if axis is None else (x, axis)
        return np.flip(f(np.flip(x, axis), axis=axis), axis) if reverse else f(x, axis=axis)

    return reference


SCANS = [
    {"axis": 0, "reverse": False},
    {"axis": -1, "reverse": True},
    {"axis": None, "reverse": False},
    {"axis": None, "reverse": True},
    {"axis": 1, "reverse": False},
]
ZEROS = [s(np.array([2.0, 0.0, 3.0, 0.0, 4.0]), **a) for a in SCANS[2:4]]
EMPTY = s(draw(0, 3), axis=1, reverse=False)
record(
    "cumsum",
    scan(np.cumsum),
    shaped((2, 3), *SCANS, more=[EMPTY, s(np.arange(3), **SCANS[0])]),
    [AXIS, RAGGED],
    holomorphic=True,
)
record(
    "cumprod",
    scan(np.cumprod),
    shaped((2, 3), *SCANS, more=[EMPTY, *ZEROS]),
    [AXIS, RAGGED],
    holomorphic=True,
)


def shifted(x, axis, by, fill):
    out = np.roll(x, by, axis)
    if x.shape[axis]:
        np.moveaxis(out, axis, 0)[0 if by > 0 else -1] = fill
    return out


record(
    "shift",
    shifted,
    shaped(
        (2, 3),
        {"axis": 1, "by": 1, "fill": 0},
        {"axis": 0, "by": -1, "fill": 1},
        more=[s(draw(0, 2), axis=0, by=1, fill=0)],
    ),
    [fails(ShapeError, "axes go from", np.ones(2), axis=3, by=1)],
    holomorphic=True,
)


def recurred(a, b, axis, reverse):
    out = np.zeros(b.shape, np.result_type(a, b))
    for place in np.ndindex(*b.shape):
        total, factor, at = 0.0, 1.0, list(place)
        while 0 <= at[axis] < b.shape[axis]:
            total, factor = total + factor * b[tuple(at)], factor * a[tuple(at)]
            at[axis] += 1 if reverse else -1
        out[place] = total
    return out


record(
    "recurrence",
    recurred,
    [
        s(f(draw(2, 3)), f(draw(2, 3)), axis=axis, reverse=reverse)
        for axis, reverse in [(0, False), (1, False), (0, True), (1, True)]
        for f in (np.array, f32)
    ],
    [fails(ShapeError, "axes", np.ones(2), np.ones(2), axis=2)],
    holomorphic=True,
)

# -- statistics ----------------------------------------------------------------------------

for _name, _root in [("var", False), ("std", True)]:
    record(
        _name,
        lambda x, axis, correction, keepdims, root=_root: (
            variance(x, axis, correction, keepdims) ** (0.5 if root else 1)
        ),
        [
            *reduction(correction=0)[:6],
            *reduction(correction=1)[1:11],
            s(f32(draw(3, 4)), axis=0, correction=0, keepdims=False),
        ],
        FAILS,
        holomorphic=True,
        domain="more elements than the correction",
    )
record(
    "l2_norm",
    lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims)),
    reduction(),
    FAILS,
    holomorphic=True,
)
record(
    "p_norm",
    lambda x, p, axis, keepdims: (
        np.sum(np.where(np.real(x) < 0, -x, x) ** p, axis=axis, keepdims=keepdims) ** (1 / p)
    ),
    [
        *reduction(p=3.0),
        *reduction(p=1.5)[:4],
        s(np.array([[3, -4]]), p=3.0, axis=1, keepdims=False),
    ],
    [
        fails(IndexError, "axes go from", np.ones((2, 3)), p=3.0, axis=5),
        fails(TypeError, "attrs of the type", np.ones((2, 3)), p="three"),
    ],
    holomorphic=True,
)
record(
    "logsumexp",
    lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
    reduction(),
    FAILS,
    holomorphic=True,
)
ONE_AXIS = [{"axis": -1}, {"axis": 0}, {"axis": 1}]
record(
    "normalize",
    lambda x, axis, eps: (
        (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(variance(x, axis, 0, True) + eps)
    ),
    shaped((2, 3, 2), {"axis": (0, 2), "eps": 1e-3}, {"axis": -1, "eps": 0.1}),
    FAILS,
    holomorphic=True,
)
record(
    "softmax",
    lambda x, axis: np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True),
    shaped((2, 3), *ONE_AXIS[:2], more=[s(draw(0, 3), axis=1), s(draw(3), axis=0)]),
    FAILS,
    holomorphic=True,
)
record(
    "log_softmax",
    lambda x, axis: x - np.log(np.exp(x).sum(axis=axis, keepdims=True)),
    shaped((2, 3), *ONE_AXIS[:2], more=[s(draw(0, 3), axis=1), s(draw(3), axis=0)]),
    FAILS,
    holomorphic=True,
)

# -- order ---------------------------------------------------------------------------------


def sorted_of(x, axis, descending):
    return -np.sort(-x, axis) if descending else np.sort(x, axis)


ORDERS = [{"axis": -1, "descending": False}, {"axis": 0, "descending": True}]
record("sort", sorted_of, shaped((3, 4), *ORDERS), FAILS)
record(
    "argsort",
    lambda x, axis, descending: np.argsort(-x if descending else x, axis, kind="stable").reshape(
        x.shape
    ),
    shaped((3, 4), *ORDERS, more=[s(np.array([1, 1, 0, 1]), axis=0, descending=True)]),
    FAILS,
)
record(
    "topk",
    lambda x, k, axis, largest: (
        np.take(sorted_of(x, axis, largest), range(k), axis),
        np.take(np.argsort(-x if largest else x, axis, kind="stable"), range(k), axis),
    ),
    shaped((3, 4), {"k": 2, "axis": -1, "largest": True}, {"k": 3, "axis": 0, "largest": False}),
    [fails(ShapeError, "choose k from 0 to 3", np.ones(3), k=4)],
)
for _name, _function in [("arg_max", np.argmax), ("arg_min", np.argmin)]:
    record(
        _name,
        lambda x, axis, keepdims, f=_function: f(x, axis=axis, keepdims=keepdims),
        shaped((3, 4), {"axis": None, "keepdims": False}, {"axis": 1, "keepdims": True}),
        [AXIS, WORD],
    )
