"""Records of indexing and scattering."""

from __future__ import annotations

import numpy as np

from minigrad.errors import ShapeError
from tests.opinfo import LAYOUTS, draw, f32, fails, record, s, shaped

BASIC = [
    1,
    -1,
    slice(1, None),
    slice(None, None, -2),
    (slice(None), 1),
    (..., 0),
    (None, 1),
    (0, slice(0, 2), None),
    (),
]
OUTSIDE = fails(ShapeError, "indices count from 0", np.ones(3), index=7)
record(
    "getitem",
    lambda x, index: x[index],
    shaped((3, 4), *({"index": i} for i in BASIC)),
    [OUTSIDE, fails(ShapeError, "one index per axis", np.ones(3), index=(0, 0))],
    holomorphic=True,
)


def placed(x, shape, index):
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


record(
    "put_zeros",
    placed,
    [
        s(np.asarray(layout(draw(3, 4))[i]), shape=(3, 4), index=i)
        for i, layout in zip(BASIC, LAYOUTS * 2, strict=False)
    ],
    [fails(ShapeError, "indices count from 0", np.ones(()), shape=(3,), index=7)],
    holomorphic=True,
)


def put(x, y, index):
    out = np.array(x, np.result_type(x, y) if np.iscomplexobj(y) else x.dtype)
    out[index] = y
    return out


record(
    "setitem",
    put,
    [
        *(s(draw(3, 4), np.array(draw(3, 4)[i]), index=i) for i in BASIC),
        s(draw(3, 4), draw(), index=0),
        s(draw(3, 4), 2.0, index=1),
        s(f32(draw(3, 4)), f32(draw(4)), index=slice(0, 2)),
        s(draw(3), draw(1), index=...),
    ],
    [
        fails(ShapeError, "indices count from 0", np.ones(3), 1.0, index=7),
        fails(ShapeError, "broadcast", np.ones(3), np.ones(2), index=slice(None)),
    ],
    holomorphic=True,
)

# -- index arrays --------------------------------------------------------------------------

twice, mask = np.array([1, 1, 0, 2, 1]), np.array([True, False, True])
grid = np.array([[0, 1], [1, 1]])
FANCY = [
    (("array",), (twice,)),
    (("array", slice(1, 3)), (np.array([2, 0]),)),
    (("array",), (mask,)),
    (("array", "array"), (np.array([0, 1, 1]), np.array([3, 0, 0]))),
    ((slice(None), "array"), (grid,)),
    (("array", None, "array"), (np.array([0, 2]), np.array([1, 1]))),
    (("array",), (np.array([], int),)),
    ((..., "array"), (np.array([-1, -1]),)),
    (("array", 0), (grid,)),
    (("array", "array"), (grid, np.array([0, 3]))),
]


def filled(template, index):
    index = iter(index)
    return tuple(next(index) if isinstance(t, str) else t for t in template)


def added(x, *index, shape, template):
    where = np.arange(np.prod(shape)).reshape(shape)[filled(template, index)]
    out = np.zeros(int(np.prod(shape)), x.dtype)
    for place, value in zip(where.ravel(), x.ravel(), strict=True):
        out[place] += value
    return out.reshape(shape)


record(
    "gather",
    lambda x, *index, template: x[filled(template, index)],
    [
        *(s(draw(3, 4), *i, template=t) for t, i in FANCY),
        *(s(layout(draw(3, 4)), twice, template=("array",)) for layout in LAYOUTS),
    ],
    [
        fails(ShapeError, "indices count from 0", np.ones(3), np.array([5]), template=("array",)),
        fails(ShapeError, "one index per axis", np.ones(3), np.array([True]), template=("array",)),
    ],
    holomorphic=True,
)
record(
    "scatter",
    added,
    [
        *(s(draw(3, 4)[filled(t, i)], *i, shape=(3, 4), template=t) for t, i in FANCY),
        s(f32(draw(5, 4)), twice, shape=(3, 4), template=("array",)),
    ],
    [
        fails(
            ShapeError,
            "indices count from 0",
            np.ones(1),
            np.array([5]),
            shape=(3,),
            template=("array",),
        )
    ],
    holomorphic=True,
)


def overwritten(x, y, *index, template):
    where = np.arange(x.size).reshape(x.shape)[filled(template, index)]
    out = np.array(x, np.result_type(x, y) if np.iscomplexobj(y) else x.dtype).ravel()
    for place, value in zip(where.ravel(), np.broadcast_to(y, where.shape).ravel(), strict=True):
        out[place] = value
    return out.reshape(x.shape)


record(
    "index_put",
    overwritten,
    [
        *(s(draw(3, 4), np.array(draw(3, 4)[filled(t, i)]), *i, template=t) for t, i in FANCY),
        s(draw(3, 4), 0.5, twice, template=("array",)),
        s(draw(3, 4), draw(4), twice, template=("array",)),
        s(f32(draw(3)), f32(draw(5)), twice, template=("array",)),
    ],
    [
        fails(
            ShapeError, "indices count from 0", np.ones(3), 1.0, np.array([5]), template=("array",)
        ),
        fails(
            ShapeError, "broadcast", np.ones(3), np.ones(3), np.array([1, 2]), template=("array",)
        ),
    ],
    holomorphic=True,
)


def winners(x, *index, template):
    where = np.arange(x.size).reshape(x.shape)[filled(template, index)]
    flat = where.ravel().tolist()
    return np.array([v not in flat[k + 1 :] for k, v in enumerate(flat)], bool).reshape(where.shape)


record(
    "put_winners",
    winners,
    [s(draw(3, 4), *i, template=t) for t, i in FANCY],
    [fails(ShapeError, "indices count from 0", np.ones(3), np.array([5]), template=("array",))],
)

# -- along an axis -------------------------------------------------------------------------


def untaken(x, indices, shape, axis):
    where = np.take(np.arange(np.prod(shape)).reshape(shape), indices, axis)
    return added(x, where, shape=(int(np.prod(shape)),), template=("array",)).reshape(shape)


AXES = [{"axis": 0}, {"axis": -1}, {"axis": None}, {"axis": 1}]
record(
    "take",
    lambda x, indices, axis: np.take(x, indices, axis=axis),
    [
        *(s(layout(draw(3, 4)), twice, **a) for layout in LAYOUTS[:3] for a in AXES),
        s(draw(3, 4), np.array(1), axis=0),
        s(draw(3, 4), np.array([], int), axis=1),
        s(draw(3, 4), -grid, axis=0),
    ],
    [fails(ShapeError, "indices count from 0", np.ones(3), np.array([7]), axis=0)],
    holomorphic=True,
)
record(
    "untake",
    untaken,
    [
        s(f(np.take(draw(3, 4), i, **a)), i, shape=(3, 4), **a)
        for a in AXES
        for i in (twice, grid)
        for f in (np.array, f32)
    ],
    [fails(ShapeError, "indices count from 0", np.ones(1), np.array([7]), shape=(3,), axis=0)],
    holomorphic=True,
)
rows = np.array([[0, 0, 1, 1], [1, 1, 0, 1]])
cols = np.array([[3, 0, 0], [1, 1, 2], [0, 1, 0]])
PLACES = [
    (rows, {"axis": 0}),
    (cols, {"axis": 1}),
    (cols, {"axis": -1}),
    (rows[:, :1], {"axis": 0}),
]
record(
    "take_along_axis",
    lambda x, indices, axis: np.take_along_axis(x, indices, axis),
    [s(layout(draw(3, 4)), i, **a) for i, a in PLACES for layout in LAYOUTS[:3]],
    [fails(ShapeError, "indices count from 0", np.ones(3), np.array([7]), axis=0)],
    holomorphic=True,
)


def added_along(x, indices, shape, axis):
    where = np.take_along_axis(np.arange(np.prod(shape)).reshape(shape), indices, axis)
    return added(x, where, shape=(int(np.prod(shape)),), template=("array",)).reshape(shape)


record(
    "add_along_axis",
    added_along,
    [
        s(f(np.take_along_axis(draw(3, 4), i, **a)), i, shape=(3, 4), **a)
        for i, a in PLACES
        for f in (np.array, f32)
    ],
    [fails(ShapeError, "the same number", np.ones(2), np.array([0, 1]), shape=(3, 4), axis=0)],
    holomorphic=True,
)
record(
    "index_add",
    lambda x, indices, y, axis: (
        x + untaken(np.broadcast_to(y, np.take(x, indices, axis).shape), indices, x.shape, axis)
    ),
    [
        *(
            s(draw(3, 4), i, np.take(draw(3, 4), i, **a), **a)
            for a in (AXES[0], AXES[3], AXES[1])
            for i in (twice, grid % 3)
        ),
        s(f32(draw(3)), twice, f32(draw(5)), axis=0),
        s(draw(3, 4), twice, draw(4), axis=0),
    ],
    [fails(ShapeError, "indices count from 0", np.ones(3), np.array([7]), np.ones(1), axis=0)],
    holomorphic=True,
)
record(
    "scatter_add",
    lambda x, indices, y, axis: x + added_along(y, indices, x.shape, axis),
    [
        s(
            f(draw(3, 4)),
            i,
            f(np.array(draw(*np.take_along_axis(np.ones((3, 4)), i, **a).shape))),
            **a,
        )
        for i, a in PLACES[:3]
        for f in (np.array, f32, np.asfortranarray)
    ],
    [
        fails(
            ShapeError,
            "array is not broadcastable",
            np.ones(3),
            np.array([0]),
            np.ones(2),
            axis=0,
        )
    ],
    holomorphic=True,
)
