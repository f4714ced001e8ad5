"""Records of losses, convolution, pooling, dropout and optimizer updates."""

from __future__ import annotations

import numpy as np

from minigrad.errors import ShapeError
from tests.opinfo import LAYOUTS, binary, draw, f32, fails, record, s, shaped

# -- losses --------------------------------------------------------------------------------


def soft(x, axis):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


classes = np.array([0, 2, 1, 2])
LABELLED = [s(layout(draw(4, 3)), classes, axis=-1) for layout in LAYOUTS]
LABELLED += [
    s(draw(3, 4), classes, axis=0),
    s(draw(2, 3, 2), np.array([[0, 2], [1, 1]]), axis=1),
    s(draw(3), np.array(1), axis=-1),
]
WRONG = [
    fails(ShapeError, "count classes from 0", np.ones((2, 3)), np.array([0, 3])),
    fails(ShapeError, "integers of shape [2]", np.ones((2, 3)), np.array([0])),
]


def picked(x, target, axis):
    return np.take_along_axis(x, np.expand_dims(target, axis), axis)


record(
    "cross_entropy",
    lambda x, target, axis: (-picked(np.log(soft(x, axis)), target, axis)).mean(),
    LABELLED,
    WRONG,
    holomorphic=True,
)
record(
    "softmax_less_target",
    lambda x, target, axis: (
        (soft(x, axis) - np.moveaxis(np.eye(x.shape[axis], dtype=x.dtype)[target], -1, axis))
        / target.size
    ),
    LABELLED,
    WRONG,
    holomorphic=True,
)
record(
    "binary_entropy",
    lambda x, target: -(target * np.log(x) + (1 - target) * np.log(1 - x)),
    binary((0.1, 0.9), (0.1, 0.9), twice=False),
    [fails(ShapeError, "compared from the right", np.ones(2) / 2, np.ones(3))],
    holomorphic=True,
    domain="0 <= x <= 1; logarithms end at -100",
)

# -- convolution, by loops -----------------------------------------------------------------


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
    + [s(np.zeros((0, 2, 4, 3)), draw(2, 2, 2, 2), **HOW[0])],
    [
        fails(ShapeError, MISFIT, np.ones((1, 3, 4, 4)), np.ones((1, 2, 2, 2))),
        fails(
            ShapeError,
            "a smaller window, or more padding",
            np.ones((1, 1, 2, 2)),
            np.ones((1, 1, 3, 3)),
        ),
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
    [fails(ShapeError, "w is [channels of x", np.ones((1, 3, 4, 4)), np.ones((2, 2, 2, 2)))],
    holomorphic=True,
)

# -- pooling, by loops ---------------------------------------------------------------------


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
WIDE = fails(ShapeError, "at most half", np.ones((1, 1, 4, 4)), kernel_size=2, padding=2)
record(
    "max_pool2d",
    lambda x, **how: pooled(x, **how, top=True),
    shaped((1, 2, 4, 5), *POOLS),
    [THREE, WIDE],
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


def first_winner(values):
    """The first largest place of a window, per image and channel."""
    n, c = values.shape[:2]
    best = values.reshape(n, c, -1).argmax(-1)
    return best


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

# -- chance and updates --------------------------------------------------------------------


def dropped(x, seed, p):
    kept = np.random.default_rng(np.ravel(seed)).random(np.shape(x), np.float32) >= p
    scale = np.ones((), np.result_type(x, np.float16) if isinstance(x, np.ndarray) else float) / (
        1 - p
    )
    return np.where(kept, x, 0) * scale


record(
    "dropout",
    dropped,
    [s(layout(draw(4, 5)), seed, p=p) for seed, layout in enumerate(LAYOUTS) for p in (0.3, 0.5)]
    + [s(draw(0, 3), 1, p=0.5)],
    [fails(ShapeError, "0 <= p < 1", np.ones(2), 0, p=1.0)],
    holomorphic=True,
)


def state(n, f=np.array):
    return [f(draw(2, 3, low=0.1, high=2.0)) for _ in range(n)]


def updates(n, *last, **attrs):
    return [s(*state(n, layout), *last, 0.1, **attrs) for layout in (*LAYOUTS, np.array, f32)]


NO_FIT = fails(ShapeError, "compared from the right", np.ones(2), np.ones(3), 0.1)
record("sgd", lambda p, g, lr: p - lr * g, updates(2), [NO_FIT])
record(
    "momentum",
    lambda p, g, v, lr, mu, use_nesterov: (
        p - lr * (g + mu * (mu * v + g) if use_nesterov else mu * v + g),
        mu * v + g,
    ),
    [*updates(3, mu=0.9, use_nesterov=False), *updates(3, mu=0.5, use_nesterov=True)],
    [fails(ShapeError, "compared", np.ones(2), np.ones(3), np.ones(2), 0.1)],
)
record(
    "adagrad",
    lambda p, g, m, lr, epsilon: (p - lr * g / (np.sqrt(m + g**2) + epsilon), m + g**2),
    updates(3, epsilon=1e-3),
    [fails(ShapeError, "compared", np.ones(2), np.ones(3), np.ones(2), 0.1)],
)
record(
    "rmsprop",
    lambda p, g, m, lr, rho, epsilon: (
        p - lr * g / (np.sqrt(rho * m + (1 - rho) * g**2) + epsilon),
        rho * m + (1 - rho) * g**2,
    ),
    updates(3, rho=0.8, epsilon=1e-3),
    [fails(ShapeError, "compared", np.ones(2), np.ones(3), np.ones(2), 0.1)],
)


def adam(p, g, m, v, step, lr, beta1, beta2, epsilon, weight_decay):
    m, v, t = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2, step + 1
    new = (
        p
        - lr * weight_decay * p
        - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
    )
    return new, m, v, t


record(
    "adam",
    adam,
    [
        a
        for step, decay in [(0, 0.0), (3, 0.1)]
        for a in updates(4, step, beta1=0.8, beta2=0.9, epsilon=1e-3, weight_decay=decay)
    ],
    [fails(ShapeError, "compared", np.ones(2), np.ones(3), np.ones(2), np.ones(2), 0, 0.1)],
    float32=1e-4,
)
