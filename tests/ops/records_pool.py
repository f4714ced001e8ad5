"""Records of pooling; the references are loops over windows."""

from __future__ import annotations

import numpy as np

from minigrad.errors import ShapeError
from tests.opinfo import (
    LAYOUTS,
    draw,
    fails,
    record,
    s,
    shaped,
)
from tests.ops.records_conv import pair


def pool_windows(x, kernel_size, stride, padding, value):
    kernel, p = pair(kernel_size), pair(padding)
    x = np.pad(x, ((0, 0), (0, 0), (p[0],) * 2, (p[1],) * 2), constant_values=value)
    t = kernel if stride is None else pair(stride)
    rows, cols = ((n - k) // u + 1 for n, k, u in zip(x.shape[2:], kernel, t, strict=True))
    return (
        x,
        [
            (
                (i, j),
                (
                    slice(None),
                    slice(None),
                    slice(i * t[0], i * t[0] + kernel[0]),
                    slice(j * t[1], j * t[1] + kernel[1]),
                ),
            )
            for i in range(rows)
            for j in range(cols)
        ],
        (rows, cols),
    )


def pooled(x, kernel_size, stride, padding, top):
    wide, places, count = pool_windows(x, kernel_size, stride, padding, -np.inf if top else 0)
    out = np.zeros((*x.shape[:2], *count), x.dtype)
    for (i, j), where in places:
        out[:, :, i, j] = wide[where].max((2, 3)) if top else wide[where].mean((2, 3))
    return out


POOLS = [
    {"kernel_size": 2, "stride": None, "padding": 0},
    {"kernel_size": (2, 3), "stride": 1, "padding": (1, 1)},
    {"kernel_size": 3, "stride": 2, "padding": 1},
]
THREE = fails(
    ShapeError, "images are [batch, channels, height, width]", np.ones((4, 4)), kernel_size=2
)
NONE = fails(ShapeError, "count from 1", np.ones((1, 1, 4, 4)), kernel_size=0)
WIDE = fails(ShapeError, "at most half", np.ones((1, 1, 4, 4)), kernel_size=2, padding=2)
record(
    "max_pool2d",
    lambda x, **how: pooled(x, **how, top=True),
    shaped((1, 2, 4, 5), *POOLS),
    [THREE, WIDE, NONE],
)
record(
    "avg_pool2d",
    lambda x, **how: pooled(x, **how, top=False),
    shaped((1, 2, 4, 5), *POOLS),
    [THREE, WIDE],
    holomorphic=True,
)


def unpooled(x, shape, kernel_size, stride, padding):
    wide, places, _ = pool_windows(np.zeros(shape, x.dtype), kernel_size, stride, padding, 0)
    for (i, j), where in places:
        wide[where] += (x[:, :, i, j] / wide[where][0, 0].size)[:, :, None, None]
    p, q = pair(padding)
    return wide[:, :, p : p + shape[2], q : q + shape[3]]


record(
    "avg_unpool",
    unpooled,
    [
        s(pooled(layout(draw(1, 2, 4, 5)), **how, top=False), shape=(1, 2, 4, 5), **how)
        for how in POOLS
        for layout in LAYOUTS[:3]
    ],
    [fails(ShapeError, "images are", np.ones((2, 2)), shape=(4, 4), kernel_size=2)],
    holomorphic=True,
)


def unpool_top(y, x, top, kernel_size, stride, padding):
    wide, places, _ = pool_windows(x, kernel_size, stride, padding, -np.inf)
    out = np.zeros(wide.shape, np.asarray(y).dtype)
    for (i, j), where in places:
        for n, c in np.ndindex(*x.shape[:2]):
            flat = wide[where][n, c].argmax()
            a, b = np.unravel_index(flat, wide[where][n, c].shape)
            out[n, c, where[2].start + a, where[3].start + b] += y[n, c, i, j]
    p, q = pair(padding)
    return out[:, :, p : p + x.shape[2], q : q + x.shape[3]]


def pick_top(y, x, top, kernel_size, stride, padding):
    wide, places, count = pool_windows(x, kernel_size, stride, padding, -np.inf)
    values, _, _ = pool_windows(y, kernel_size, stride, padding, 0)
    out = np.zeros((*x.shape[:2], *count), y.dtype)
    for (i, j), where in places:
        for n, c in np.ndindex(*x.shape[:2]):
            out[n, c, i, j] = values[where][n, c].ravel()[wide[where][n, c].argmax()]
    return out


TOPS = [(f(np.round(draw(1, 2, 4, 5))), how) for how in POOLS for f in LAYOUTS[:3]]
record(
    "max_unpool",
    unpool_top,
    [
        s(
            draw(*pooled(x, **how, top=True).shape).astype(x.dtype),
            x,
            pooled(x, **how, top=True),
            **how,
        )
        for x, how in TOPS
    ],
    [fails(ShapeError, "images are", np.ones(2), np.ones((4, 4)), np.ones(2), kernel_size=2)],
    holomorphic=True,
)
record(
    "max_pick",
    pick_top,
    [s(draw(*x.shape).astype(x.dtype), x, pooled(x, **how, top=True), **how) for x, how in TOPS],
    [fails(ShapeError, "images are", np.ones(2), np.ones((4, 4)), np.ones(2), kernel_size=2)],
    holomorphic=True,
)
