"""Records of rows chosen by a mask and put together again."""

from __future__ import annotations

import numpy as np

from minigrad.errors import ShapeError
from tests.opinfo import draw, fails, record, s

MASKS = [
    np.array(m, bool)
    for m in ([1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1], [1], [], [0, 1, 1, 0], [1, 0, 0, 0, 1])
]
ONE = np.array([True, False])


def width(mask):
    return [(), (2,), (2, 3)][len(mask) % 3]


record(
    "select_rows",
    lambda x, mask: np.compress(mask, x, axis=0),
    [s(draw(len(m), *width(m)), m) for m in MASKS],
    [fails(ShapeError, "repair: one bool per row", draw(3), ONE)],
    holomorphic=True,
)


def spread(x, mask):
    rows = iter(x)
    return np.array(
        [next(rows) if m else np.zeros(x.shape[1:], x.dtype) for m in mask], x.dtype
    ).reshape(len(mask), *x.shape[1:])


record(
    "spread_rows",
    spread,
    [s(draw(int(m.sum()), *width(m)), m) for m in MASKS],
    [fails(ShapeError, "repair: one row for each place", draw(3), ONE)],
    holomorphic=True,
)


def merged(mask, yes, no):
    yes_rows, no_rows = iter(yes), iter(no)
    rows = [next(yes_rows) if m else next(no_rows) for m in mask]
    return np.array(rows, yes.dtype).reshape(len(mask), *yes.shape[1:])


record(
    "merge_rows",
    merged,
    [s(m, draw(int(m.sum()), *width(m)), draw(int((~m).sum()), *width(m))) for m in MASKS],
    [fails(ShapeError, "take both from the same mask", ONE, draw(2), draw(1))],
    holomorphic=True,
)
