"""The workloads: data, parameters, and one training step by hand in NumPy, which all peers are compared with.

    W1    MLP 784-128-64-10, batch 32, relu, cross-entropy, SGD step
    W1s   MLP 8-16-16-1, batch 16, tanh, mean squared error, SGD step (all overhead)
    W1b   MLP 784-512-512-10, batch 256
    W4    one variable used 1,000 times
    W6e   Elman network, 50 steps, 64 hidden, batch 16, cross-entropy at the end

Everything is float32; parameters are ``[W1, b1, W2, b2, …]`` with ``W`` of shape (in, out), or ``[Wx, Wh, b, Wo, bo]``.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

F = np.float32
LEARNING_RATE = F(1e-3)

MLPS = {
    "W1": ([784, 128, 64, 10], 32, "relu", "cross_entropy"),
    "W1s": ([8, 16, 16, 1], 16, "tanh", "mse"),
    "W1b": ([784, 512, 512, 10], 256, "relu", "cross_entropy"),
}
NAMES = [*MLPS, "W4", "W6e"]


@dataclass
class Workload:
    """Data of one workload; every peer gets a fresh copy."""

    name: str
    params: list[np.ndarray]
    x: Any = None
    y: Any = None
    facts: dict[str, Any] = field(default_factory=dict)


def make(name: str) -> Workload:
    """The same numbers in every process."""
    r = np.random.RandomState(0)
    if name in MLPS:
        sizes, n, act, loss = MLPS[name]
        gain = 2.0 if act == "relu" else 1.0
        params = []
        for a, b in zip(sizes, sizes[1:]):
            params += [(r.randn(a, b) * np.sqrt(gain / a)).astype(F), (r.randn(b) * 0.1).astype(F)]
        y = r.randn(n, sizes[-1]).astype(F) if loss == "mse" else r.randint(0, sizes[-1], n)
        return Workload(name, params, r.randn(n, sizes[0]).astype(F), y, {"act": act, "loss": loss})
    if name == "W4":
        return Workload(name, [r.randn(1000).astype(F)], facts={"factors": [float(v) for v in r.randn(1000).astype(F)]})
    if name == "W6e":
        s = 1 / np.sqrt(64)
        shapes = [(64, 64), (64, 64), (64,), (64, 10), (10,)]
        params = [(r.randn(*shape) * (s if len(shape) == 2 else 0.1)).astype(F) for shape in shapes]
        return Workload(name, params, r.randn(50, 16, 64).astype(F), r.randint(0, 10, 16))
    raise KeyError(name)


def softmax_cross_entropy(z: np.ndarray, t: np.ndarray) -> tuple[Any, np.ndarray]:
    """Loss and gradient with respect to the logits."""
    z = z - z.max(axis=1, keepdims=True)
    e = np.exp(z)
    p = e / e.sum(axis=1, keepdims=True)
    rows = np.arange(len(t))
    loss = -np.log(p[rows, t]).mean()
    p[rows, t] -= 1
    return loss, p / F(len(t))


def by_hand(w: Workload) -> list[np.ndarray]:
    """The gradients, written as one would write them in NumPy without a library."""
    if w.name in MLPS:
        return _mlp(w)
    if w.name == "W4":
        return _fan_out(w)
    return _elman(w)


def _mlp(w: Workload) -> list[np.ndarray]:
    layers = len(w.params) // 2
    values, h = [w.x], w.x
    for k in range(layers):
        h = h @ w.params[2 * k] + w.params[2 * k + 1]
        if k < layers - 1:
            h = np.maximum(h, 0) if w.facts["act"] == "relu" else np.tanh(h)
            values.append(h)
    if w.facts["loss"] == "mse":
        d = h - w.y
        (d * d).mean()
        g = d * F(2 / d.size)
    else:
        _, g = softmax_cross_entropy(h, w.y)
    grads: list[np.ndarray] = [None] * len(w.params)  # type: ignore[list-item]
    for k in range(layers - 1, -1, -1):
        v = values[k]
        grads[2 * k], grads[2 * k + 1] = v.T @ g, g.sum(axis=0)
        if k:
            g = g @ w.params[2 * k].T
            g = g * (v > 0) if w.facts["act"] == "relu" else g * (1 - v * v)
    return grads


def _fan_out(w: Workload) -> list[np.ndarray]:
    (x,) = w.params
    total = None
    for c in w.facts["factors"]:
        total = x * c if total is None else total + x * c
    total.sum()  # type: ignore[union-attr]
    g, gx = np.ones_like(x), np.zeros_like(x)
    for c in w.facts["factors"]:
        gx += g * c
    return [gx]


def _elman(w: Workload) -> list[np.ndarray]:
    wx, wh, b, wo, bo = w.params
    h = np.zeros((w.x.shape[1], wh.shape[0]), F)
    states = [h]
    for x in w.x:
        h = np.tanh(x @ wx + h @ wh + b)
        states.append(h)
    _, g = softmax_cross_entropy(h @ wo + bo, w.y)
    gwo, gbo, dh = h.T @ g, g.sum(axis=0), g @ wo.T
    gwx, gwh, gb = np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(b)
    for t in range(len(w.x) - 1, -1, -1):
        dz = dh * (1 - states[t + 1] * states[t + 1])
        gwx += w.x[t].T @ dz
        gwh += states[t].T @ dz
        gb += dz.sum(axis=0)
        dh = dz @ wh.T
    return [gwx, gwh, gb, gwo, gbo]
