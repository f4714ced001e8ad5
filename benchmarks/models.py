"""The loss of each workload, written once: ``ops`` is a library's vocabulary.

    linear(x, w, b)  matmul  relu  tanh  sigmoid  split4(z)  conv(x, k, c)  pool(x)  rows(x)  total(x)
    mse(h, y)  cross_entropy(z, classes)  fold(cell, state, xs)

and values know ``+`` and ``*``.  So all libraries compute the same thing with the calls their users would write.
"""
from __future__ import annotations

from typing import Any


def loss(w: Any, ops: Any, params: Any, x: Any, y: Any, start: Any = None) -> Any:
    """The loss of a workload, in a library's own values."""
    return MODELS[w.model](w, ops, params, x, y, start)


def mlp(w: Any, ops: Any, p: Any, x: Any, y: Any, start: Any) -> Any:
    act, last = getattr(ops, w.facts["act"]), len(p) - 2
    for k in range(0, last, 2):
        x = act(ops.linear(x, p[k], p[k + 1]))
    return getattr(ops, w.facts["loss"])(ops.linear(x, p[last], p[last + 1]), y)


def fan_out(w: Any, ops: Any, p: Any, x: Any, y: Any, start: Any) -> Any:
    (v,), (first, *others) = p, w.facts["factors"]
    total = v * first
    for c in others:
        total = total + v * c
    return ops.total(total)


def cnn(w: Any, ops: Any, p: Any, x: Any, y: Any, start: Any) -> Any:
    k1, c1, k2, c2, wo, bo = p
    h = ops.pool(ops.relu(ops.conv(x, k1, c1)))
    h = ops.pool(ops.relu(ops.conv(h, k2, c2)))
    return ops.cross_entropy(ops.linear(ops.rows(h), wo, bo), y)


def elman(w: Any, ops: Any, p: Any, xs: Any, y: Any, start: Any) -> Any:
    wx, wh, b, wo, bo = p

    def cell(h: Any, x: Any) -> Any:
        return ops.tanh(ops.linear(x, wx, b) + ops.matmul(h, wh))

    return ops.cross_entropy(ops.linear(ops.fold(cell, start, xs), wo, bo), y)


def lstm(w: Any, ops: Any, p: Any, xs: Any, y: Any, start: Any) -> Any:
    wx, wh, b, wo, bo = p

    def cell(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = ops.split4(ops.linear(x, wx, b) + ops.matmul(h, wh))
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c

    h, _ = ops.fold(cell, (start, start), xs)
    return ops.cross_entropy(ops.linear(h, wo, bo), y)


def neurons(w: Any, ops: Any, p: Any, x: Any, y: Any, start: Any) -> Any:
    numbers, sizes = iter(p), w.facts["sizes"]
    layers = [[[next(numbers) for _ in range(a + 1)] for _ in range(b)] for a, b in zip(sizes, sizes[1:])]
    losses = 0.0
    for point, sign in zip(w.facts["points"], w.facts["signs"]):
        h = point
        for depth, layer in enumerate(layers):
            h = [sum((v * a for v, a in zip(weights, h)), bias) for *weights, bias in layer]
            if depth < len(layers) - 1:
                h = [ops.relu(v) for v in h]
        losses = ops.relu(h[0] * -sign + 1.0) + losses
    return losses * (1 / len(w.facts["signs"])) + sum((v * v for v in p[1:]), p[0] * p[0]) * w.facts["alpha"]


MODELS = {"mlp": mlp, "fan_out": fan_out, "cnn": cnn, "elman": elman, "lstm": lstm, "neurons": neurons}
