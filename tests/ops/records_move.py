"""Records of borders, repetitions, order, triangles and diagonals."""

from __future__ import annotations

import numpy as np

from minigrad.errors import DTypeError, ShapeError
from tests.opinfo import (
    LAYOUTS,
    draw,
    fails,
    record,
    s,
    shaped,
)
from tests.ops.records_shape import AXIS

# -- borders and repetitions ---------------------------------------------------------------

PADS = [
    {"pad_width": 1, "value": 0.0},
    {"pad_width": (0, 2), "value": 1.5},
    {"pad_width": ((1, 0), (2, 1)), "value": 0.0},
]
record(
    "pad",
    lambda x, pad_width, value: np.pad(x, pad_width, constant_values=value),
    shaped((2, 3), *PADS, more=[s(draw(0, 2), pad_width=1, value=0.0)]),
    [
        fails(ShapeError, "a pair for each axis", np.ones((2, 3)), pad_width=(1, 2, 3)),
        fails(ShapeError, "slice to make smaller", np.ones(2), pad_width=-1),
    ],
    holomorphic=True,
)


def cropped(x, pad_width):
    pairs = np.broadcast_to(pad_width, (x.ndim, 2))
    return x[tuple(slice(a, n - b) for n, (a, b) in zip(x.shape, pairs, strict=True))]


record(
    "crop",
    cropped,
    shaped((4, 5), *({"pad_width": a["pad_width"]} for a in PADS)),
    [fails(ShapeError, "a pair for each", np.ones((2, 3)), pad_width=(1, 2, 3))],
    holomorphic=True,
)
TILES = [
    {"repetitions": 2},
    {"repetitions": (2, 1)},
    {"repetitions": (3, 1, 2)},
    {"repetitions": (0, 1)},
]
record(
    "tile",
    lambda x, repetitions: np.tile(x, repetitions),
    shaped((2, 3), *TILES),
    [fails(ShapeError, "count from 0", np.ones(2), repetitions=-1)],
    holomorphic=True,
)


def untiled(x, shape, repetitions):
    where = np.tile(np.arange(np.prod(shape)).reshape(shape), repetitions).ravel()
    out = np.zeros(int(np.prod(shape)), x.dtype)
    np.add.at(out, where, x.ravel())
    return out.reshape(shape)


record(
    "untile",
    untiled,
    [
        s(np.tile(layout(draw(2, 3)), t["repetitions"]), shape=(2, 3), **t)
        for t in TILES[:3]
        for layout in LAYOUTS[:3]
    ],
    [fails(ShapeError, "must multiply", np.ones(5), shape=(2,), repetitions=2)],
    holomorphic=True,
)
record(
    "flip",
    lambda x, axis: np.flip(x, axis),
    shaped((2, 3), {"axis": None}, {"axis": 0}, {"axis": (0, 1)}, more=[s(draw(), axis=None)]),
    [AXIS],
    holomorphic=True,
)
record(
    "roll",
    lambda x, shift, axis: np.roll(x, shift, axis),
    shaped(
        (3, 4),
        {"shift": 1, "axis": None},
        {"shift": -2, "axis": 1},
        {"shift": (1, 2), "axis": (0, 1)},
    ),
    [fails(ShapeError, "axes go from", np.ones(2), shift=1, axis=3)],
    holomorphic=True,
)

# -- triangles and diagonals ---------------------------------------------------------------

FLAT = fails(ShapeError, "is not possible", np.ones(()), k=0)
for _name, _function in [("tril", np.tril), ("triu", np.triu)]:
    record(
        _name,
        lambda x, k, f=_function: f(x, k),
        shaped((2, 3, 3), {"k": 0}, {"k": 1}, {"k": -1}, more=[s(draw(2, 4), k=0)]),
        [fails(DTypeError, "attrs of the type", np.ones((2, 2)), k="up")],
        holomorphic=True,
    )
DIAGONALS = [
    {"offset": 0, "axis1": 0, "axis2": 1},
    {"offset": 1, "axis1": 1, "axis2": 2},
    {"offset": -1, "axis1": -2, "axis2": -1},
    {"offset": 0, "axis1": 2, "axis2": 0},
]
record(
    "diagonal",
    lambda x, offset, axis1, axis2: np.diagonal(x, offset, axis1, axis2),
    shaped((3, 4, 3), *DIAGONALS),
    [fails(ShapeError, "is not possible", np.ones(3), offset=0)],
    holomorphic=True,
)


def put(x, shape, offset, axis1, axis2):
    where = np.diagonal(np.arange(np.prod(shape)).reshape(shape), offset, axis1, axis2).ravel()
    out = np.zeros(int(np.prod(shape)), x.dtype)
    out[where] = x.ravel()
    return out.reshape(shape)


record(
    "put_diagonal",
    put,
    [
        s(np.array(np.diagonal(layout(draw(3, 4, 3)), **d)), shape=(3, 4, 3), **d)
        for d in DIAGONALS
        for layout in LAYOUTS[:2]
    ],
    [fails(ShapeError, "is not possible", np.ones(5), shape=(3, 3))],
    holomorphic=True,
)
