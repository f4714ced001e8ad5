"""Records of convolution; the references are loops over places."""

from __future__ import annotations

import numpy as np

from minigrad.errors import ShapeError
from tests.opinfo import (
    LAYOUTS,
    draw,
    f32,
    fails,
    record,
    s,
)


def pair(v):
    return (v, v) if isinstance(v, int) else v


def taps(shape, kernel, count, stride, padding, dilation):
    """Every (output place, window place, input place inside the image)."""
    for out in np.ndindex(*count):
        for k in np.ndindex(*kernel):
            at = tuple(
                o * st + i * d - p
                for o, st, i, d, p in zip(out, stride, k, dilation, padding, strict=True)
            )
            if all(0 <= a < n for a, n in zip(at, shape, strict=True)):
                yield out, k, at


def geometry(size, kernel, stride, padding, dilation):
    how = pair(stride), pair(padding), pair(dilation)
    count = [
        (n + 2 * p - d * (k - 1) - 1) // t + 1
        for n, k, t, p, d in zip(size, kernel, *how, strict=True)
    ]
    return (size, kernel, count, *how)


def convolved(x, w, b=None, *, stride, padding, dilation, groups):
    where = geometry(x.shape[2:], w.shape[2:], stride, padding, dilation)
    out = np.zeros((len(x), len(w), *where[2]), np.result_type(x, w))
    for f in range(len(w)):
        group = slice(
            f // (len(w) // groups) * w.shape[1], (f // (len(w) // groups) + 1) * w.shape[1]
        )
        for o, k, at in taps(*where):
            out[:, f, *o] += (x[:, group, *at] * w[f, :, *k]).sum(1)
    return out if b is None else out + b[:, None, None]


def from_outputs(x, w, shape, stride, padding, dilation, groups):
    where = geometry(shape[2:], w.shape[2:], stride, padding, dilation)
    out = np.zeros(shape, np.result_type(x, w))
    for f in range(len(w)):
        group = slice(
            f // (len(w) // groups) * w.shape[1], (f // (len(w) // groups) + 1) * w.shape[1]
        )
        for o, k, at in taps(*where):
            out[:, group, *at] += x[:, f, *o][:, None] * w[f, :, *k]
    return out


def of_filters(x, y, shape, stride, padding, dilation, groups):
    where = geometry(x.shape[2:], shape[2:], stride, padding, dilation)
    out = np.zeros(shape, np.result_type(x, y))
    for f in range(shape[0]):
        group = slice(
            f // (shape[0] // groups) * shape[1], (f // (shape[0] // groups) + 1) * shape[1]
        )
        for o, k, at in taps(*where):
            out[f, :, *k] += (x[:, group, *at] * y[:, f, *o][:, None]).sum(0)
    return out


HOW = [
    {"stride": 1, "padding": 0, "dilation": 1, "groups": 1},
    {"stride": (2, 1), "padding": 1, "dilation": 1, "groups": 1},
    {"stride": 1, "padding": (0, 2), "dilation": (1, 2), "groups": 1},
    {"stride": 2, "padding": 1, "dilation": 1, "groups": 2},
]
IMAGES = np.ones((1, 1, 4, 4)), np.ones((1, 1, 2, 2))
NO_WINDOWS = [
    fails(ShapeError, "count from 1", *IMAGES, stride=0),
    fails(ShapeError, "count from 1", *IMAGES, dilation=0),
    fails(ShapeError, "padding [-1, -1] from 0", *IMAGES, padding=-1),
    fails(ShapeError, "keeps the size", *IMAGES, padding=(0, (1, 2))),
    fails(ShapeError, "windows of odd size", *IMAGES, padding="same"),
]
CASES = []
for _k, _layout in enumerate((*LAYOUTS, np.array, f32)):
    _how = HOW[_k % 4]
    _x, _w = _layout(draw(2, 2, 4, 3)), _layout(draw(2, 2 // _how["groups"], 2, 2))
    CASES.append((_x, _w, _layout(draw(2)), _how))
MISFIT = "w is [out, channels / groups, height, width]"
record(
    "conv2d",
    convolved,
    [s(x, w, *([b] if k % 2 else []), **how) for k, (x, w, b, how) in enumerate(CASES)]
    + [s(np.zeros((0, 2, 4, 3)), draw(2, 2 // how["groups"], 2, 2), **how) for how in HOW],
    [
        fails(ShapeError, MISFIT, np.ones((1, 3, 4, 4)), np.ones((1, 2, 2, 2))),
        fails(
            ShapeError,
            "a smaller window, or more padding",
            np.ones((1, 1, 2, 2)),
            np.ones((1, 1, 3, 3)),
        ),
        *NO_WINDOWS,
    ],
    holomorphic=True,
)
record(
    "conv2d_input",
    from_outputs,
    [s(convolved(x, w, **how), w, shape=x.shape, **how) for x, w, _, how in CASES],
    [
        fails(
            ShapeError,
            "do not stand behind [8, 8] windows",
            np.ones((1, 1, 2, 2)),
            np.ones((1, 1, 2, 2)),
            shape=(1, 1, 9, 9),
        )
    ],
    holomorphic=True,
)
record(
    "conv2d_weight",
    of_filters,
    [s(x, convolved(x, w, **how), shape=w.shape, **how) for x, w, _, how in CASES],
    [
        fails(
            ShapeError,
            "do not stand behind [3, 3] windows",
            np.ones((1, 1, 4, 4)),
            np.ones((1, 1, 2, 2)),
            shape=(1, 1, 2, 2),
        )
    ],
    holomorphic=True,
)


def transposed(x, w, b=None, *, stride, padding, output_padding, dilation, groups):
    how = zip(
        x.shape[2:],
        w.shape[2:],
        *map(pair, (stride, padding, dilation, output_padding)),
        strict=True,
    )
    size = [(n - 1) * t - 2 * p + d * (k - 1) + e + 1 for n, k, t, p, d, e in how]
    out = from_outputs(
        x, w, (len(x), w.shape[1] * groups, *size), stride, padding, dilation, groups
    )
    return out if b is None else out + b[:, None, None]


record(
    "conv_transpose2d",
    transposed,
    [
        s(
            x,
            w,
            *([np.resize(b, w.shape[1] * how["groups"]).astype(x.dtype)] if k % 2 else []),
            **how,
            output_padding=1 if how["stride"] == 2 else 0,
        )
        for k, (x, w, b, how) in enumerate(CASES)
    ],
    [
        fails(ShapeError, "w is [channels of x", np.ones((1, 3, 4, 4)), np.ones((2, 2, 2, 2))),
        *NO_WINDOWS,
    ],
    holomorphic=True,
)
