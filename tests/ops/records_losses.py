"""Records of losses, dropout and optimizer updates."""

from __future__ import annotations

import numpy as np

from minigrad.errors import DTypeError, ShapeError
from tests.opinfo import (
    LAYOUTS,
    binary,
    draw,
    f32,
    fails,
    record,
    s,
    unary,
)

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
    [
        fails(ShapeError, "indices count from 0", np.ones((2, 3)), np.array([0, 3])),
    ],
    holomorphic=True,
)
record(
    "binary_entropy",
    lambda x, target: -(target * np.log(x) + (1 - target) * np.log(1 - x)),
    binary((0.1, 0.9), (0.1, 0.9)),
    [fails(ShapeError, "compared from the right", np.ones(2) / 2, np.ones(3))],
    holomorphic=True,
    domain="0 <= x <= 1; logarithms end at -100",
)

FULL = [a for a in unary() if np.size(a.args[0])]


def per_element(x, n):
    return x / (float(n) if n else float("nan"))


def of_reduction(squares, reduction):
    if reduction == "mean":
        return per_element(np.sum(squares), np.size(squares))
    return squares if reduction == "none" else np.sum(squares)


record(
    "mse",
    lambda x, y, reduction="mean": of_reduction((x - y) ** 2, reduction),
    [
        s(*a.args, **more)
        for a in binary()
        if np.size(a.args[0]) and np.shape(a.args[0]) == np.shape(a.args[1])
        for more in ({}, {"reduction": "sum"}, {"reduction": "none"})
    ],
    [fails(ShapeError, "reshape one of them", np.ones(2), np.ones(3))],
    holomorphic=True,
)
record(
    "mean_square_slope",
    lambda x, y: per_element(2 * x * y, np.size(x)),
    [
        s(a.args[0], f32(draw()) if getattr(a.args[0], "dtype", None) == np.float32 else draw())
        for a in FULL
    ],
    [
        fails(ShapeError, "rows of a list", [[1.0], [1.0, 2.0]], np.ones(())),
        fails(DTypeError, "pass Tensors", "text", np.ones(())),
    ],
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
