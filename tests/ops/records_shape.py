"""Records of primitives that move, repeat and join elements."""

from __future__ import annotations

import numpy as np

from minigrad.errors import ShapeError
from tests.opinfo import LAYOUTS, RAGGED, draw, f32, fails, fortran, ragged, record, s, shaped

AXIS = fails(ShapeError, "axes go from", np.ones((2, 3)), axis=5)
E02 = (0, 2)


def summed(x, shape):
    """Down to a shape, by a loop over all elements."""
    out = np.zeros(shape, x.dtype)
    for place in np.ndindex(*x.shape):
        there = place[len(place) - len(shape) :]
        out[tuple(0 if n == 1 else i for i, n in zip(there, shape, strict=True))] += x[place]
    return out


record(
    "broadcast_to",
    lambda x, shape: np.broadcast_to(x, shape),
    shaped(
        (2, 1),
        {"shape": (3, 2, 4)},
        {"shape": (2, 2)},
        more=[
            s(draw(), shape=(2,)),
            s(draw(0, 1), shape=(0, 3)),
            s(fortran(draw(3, 2)), shape=(4, 3, 2)),
        ],
    ),
    [
        fails(ShapeError, "compared from the right", np.ones((2, 3)), shape=(3, 2)),
        fails(ShapeError, "compared from the right", np.ones(2), shape=()),
    ],
    holomorphic=True,
)
record(
    "unbroadcast",
    summed,
    shaped((2, 3, 2), {"shape": (3, 1)}, {"shape": (1, 1, 2)}, {"shape": ()}, {"shape": (2, 3, 2)}),
    [ragged(shape=())],
    holomorphic=True,
)
record(
    "reshape",
    lambda x, shape: np.reshape(x, shape),
    shaped(
        (2, 3),
        {"shape": (3, 2)},
        {"shape": (-1,)},
        {"shape": (1, 6, 1)},
        more=[s(draw(), shape=(1, 1)), s(draw(1), shape=()), s(draw(0, 2), shape=(2, 0, 3))],
    ),
    [fails(ShapeError, "must multiply to 6", np.ones((2, 3)), shape=(4, 2)), ragged(shape=(2,))],
    holomorphic=True,
)
record(
    "permute_dims",
    lambda x, axes: np.transpose(x, axes),
    shaped(
        (2, 3, 4),
        {"axes": None},
        {"axes": (1, 2, 0)},
        {"axes": (-1, 0, -2)},
        more=[s(draw(), axes=None)],
    ),
    [
        fails(ShapeError, "name each axis once; swapaxes", np.ones((2, 3)), axes=(0, 1, 2)),
        RAGGED,
    ],
    holomorphic=True,
)
record(
    "swapaxes",
    lambda x, axis1, axis2: np.swapaxes(x, axis1, axis2),
    shaped((2, 3, 4), {"axis1": 0, "axis2": -1}, {"axis1": 1, "axis2": 2}),
    [fails(ShapeError, "axes go from", np.ones(2), axis1=0, axis2=1)],
    holomorphic=True,
)
record(
    "expand_dims",
    lambda x, axis: np.expand_dims(x, axis),
    shaped((2, 3), {"axis": 0}, {"axis": -1}, {"axis": (0, 2)}, more=[s(draw(), axis=0)]),
    [AXIS],
    holomorphic=True,
)
record(
    "squeeze",
    lambda x, axis: np.squeeze(x, axis),
    shaped(
        (1, 3, 1),
        {"axis": None},
        {"axis": 0},
        {"axis": (0, -1)},
        more=[s(fortran(draw(2, 1, 3)), axis=1)],
    ),
    [fails(ShapeError, "only axes of length 1", np.ones((2, 3)), axis=0), AXIS],
    holomorphic=True,
)


def flat(x, start, end):
    start, end = start % max(x.ndim, 1), end % max(x.ndim, 1)
    size = int(np.prod(x.shape[start : end + 1]))
    return x.reshape(*x.shape[:start], size, *x.shape[end + 1 :])


record(
    "flatten",
    flat,
    shaped(
        (2, 3, 2),
        {"start": 0, "end": -1},
        {"start": 1, "end": 2},
        {"start": 0, "end": 1},
        more=[s(draw(), start=0, end=-1), s(draw(0, 3), start=0, end=-1)],
    ),
    [RAGGED],
    holomorphic=True,
)

# -- lists ---------------------------------------------------------------------------------

same = draw(2, 3)
JOINED = [
    s(*(layout(draw(2, 3)) for _ in range(3)), axis=k % 2) for k, layout in enumerate(LAYOUTS)
]
JOINED += [
    s(same, draw(2, 3), same, axis=1),
    s(draw(2, 3), axis=0),
    s(draw(2, 3), f32(draw(2, 3)), axis=-1),
]
record(
    "concat",
    lambda *x, axis: np.concatenate(x, axis),
    [*JOINED, s(draw(2, 1), draw(2, 3), draw(2, 0), axis=1), s(draw(0), draw(2), axis=0)],
    [
        fails(
            ShapeError,
            "all sizes but that of the joined axis",
            np.ones((2, 3)),
            np.ones((2, 2)),
            axis=0,
        ),
        fails(ShapeError, "give at least one value"),
        fails(ShapeError, "use stack", np.ones(()), np.ones(()), axis=0),
    ],
    holomorphic=True,
)
record(
    "stack",
    lambda *x, axis: np.stack(x, axis),
    [*JOINED, s(draw(), draw(), axis=0)],
    [
        fails(ShapeError, "one shape", np.ones(2), np.ones(3)),
        fails(ShapeError, "give at least one value"),
    ],
    holomorphic=True,
)
record(
    "sum",
    lambda *x: sum(x[1:], x[0]),
    [s(*a.args) for a in JOINED],
    [
        fails(ShapeError, "use add, which broadcasts", np.ones(2), np.ones(3)),
        fails(ShapeError, "nothing to add"),
    ],
    holomorphic=True,
)
record(
    "split_like",
    lambda x, shapes, axis: np.split(x, np.cumsum([n[axis] for n in shapes])[:-1], axis),
    shaped(
        (4, 3),
        {"shapes": [(1, 3), (3, 3)], "axis": 0},
        {"shapes": [(4, 1), (4, 0), (4, 2)], "axis": 1},
    ),
    [fails(ShapeError, "axes go from", np.ones(3), shapes=[(1, 1), (2, 1)], axis=1)],
    holomorphic=True,
)
record(
    "split",
    lambda x, num_or_sections, axis: np.split(
        x,
        num_or_sections
        if isinstance(num_or_sections, int)
        else [k for k in (1, 3) if k < x.shape[axis]],
        axis,
    ),
    shaped(
        (4, 4),
        {"num_or_sections": 2, "axis": 0},
        {"num_or_sections": [1, 2, -1], "axis": 1},
        {"num_or_sections": [1, 2, 1], "axis": -1},
    ),
    [
        fails(ShapeError, "one of them may be -1", np.ones(3), num_or_sections=2),
        fails(ShapeError, "do not add up", np.ones(3), num_or_sections=[1, 1]),
    ],
    holomorphic=True,
)
record(
    "unbind",
    lambda x, axis: [np.take(x, k, axis) for k in range(x.shape[axis])],
    shaped((2, 3), {"axis": 0}, {"axis": -1}),
    [AXIS],
    holomorphic=True,
)
