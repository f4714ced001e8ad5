"""The gradients of each workload as one would write them in NumPy without a library, allocating as it goes."""
from __future__ import annotations

from typing import Any

import numpy as np
from workloads import F, Workload


def by_hand(w: Workload) -> list[np.ndarray]:
    """The gradients, or the Hessian-vector product, one array per parameter."""
    return _hvp(w) if w.v is not None else _GRADIENTS[w.model](w)


def softmax_cross_entropy(z: np.ndarray, t: np.ndarray) -> tuple[Any, np.ndarray]:
    """Loss and gradient with respect to the logits."""
    p = softmax(z)
    rows = np.arange(len(t))
    loss = -np.log(p[rows, t]).mean()
    p[rows, t] -= 1
    return loss, p / F(len(t))


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


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


def _hvp(w: Workload) -> list[np.ndarray]:
    """H·v of an MLP with tanh: every line of forward and backward, and its derivative in the direction v."""
    layers = len(w.params) // 2
    h, dh = w.x, np.zeros_like(w.x)
    values = []
    for k in range(layers):
        a, b, da, db = (*w.params[2 * k : 2 * k + 2], *w.v[2 * k : 2 * k + 2])  # type: ignore[index]
        values.append((h, dh))
        z, dz = h @ a + b, h @ da + db
        if k:
            dz += dh @ a
        if k < layers - 1:
            h = np.tanh(z)
            dh = (1 - h * h) * dz
    if w.facts["loss"] == "mse":
        g, dg = (z - w.y) * F(2 / z.size), dz * F(2 / z.size)
    else:
        p, (_, g) = softmax(z), softmax_cross_entropy(z, w.y)
        dg = p * dz
        dg = (dg - p * dg.sum(axis=1, keepdims=True)) / F(len(z))
    made: list[np.ndarray] = [None] * len(w.params)  # type: ignore[list-item]
    for k in range(layers - 1, -1, -1):
        h, dh = values[k]
        made[2 * k], made[2 * k + 1] = h.T @ dg, dg.sum(axis=0)
        if k:
            made[2 * k] += dh.T @ g
            a, da = w.params[2 * k], w.v[2 * k]  # type: ignore[index]
            below, slope = g @ a.T, 1 - h * h
            dg = (dg @ a.T + g @ da.T) * slope - 2 * below * h * dh
            g = below * slope
    return made


def _fan_out(w: Workload) -> list[np.ndarray]:
    (x,), (first, *others) = w.params, w.facts["factors"]
    total = x * first
    for c in others:
        total = total + x * c
    total.sum()
    g, gx = np.ones_like(x), np.zeros_like(x)
    for c in w.facts["factors"]:
        gx += g * c
    return [gx]


def _elman(w: Workload) -> list[np.ndarray]:
    wx, wh, b, wo, bo = w.params
    h = w.start
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


def _lstm(w: Workload) -> list[np.ndarray]:
    wx, wh, b, wo, bo = w.params
    n = wh.shape[0]
    h = c = w.start
    tape = []
    for x in w.x:
        z = x @ wx + h @ wh + b
        i, f, o = (1 / (1 + np.exp(-z[:, k * n : k * n + n])) for k in (0, 1, 3))
        g = np.tanh(z[:, 2 * n : 3 * n])
        new = f * c + i * g
        tc = np.tanh(new)
        tape.append((h, c, i, f, g, o, tc))
        h, c = o * tc, new
    _, d = softmax_cross_entropy(h @ wo + bo, w.y)
    gwo, gbo, dh = h.T @ d, d.sum(axis=0), d @ wo.T
    gwx, gwh, gb, dc = np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(b), np.zeros_like(c)
    for t in range(len(w.x) - 1, -1, -1):
        h, c, i, f, g, o, tc = tape[t]
        dc = dc + dh * o * (1 - tc * tc)
        parts = dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g), dh * tc * o * (1 - o)
        dz = np.concatenate(parts, axis=1)
        dc = dc * f
        gwx += w.x[t].T @ dz
        gwh += h.T @ dz
        gb += dz.sum(axis=0)
        dh = dz @ wh.T
    return [gwx, gwh, gb, gwo, gbo]


def _cnn(w: Workload) -> list[np.ndarray]:
    k1, c1, k2, c2, wo, bo = w.params
    z1, columns1 = _convolve(w.x, k1, c1)
    r1 = np.maximum(z1, 0)
    p1, first1 = _pool(r1)
    z2, columns2 = _convolve(p1, k2, c2)
    r2 = np.maximum(z2, 0)
    p2, first2 = _pool(r2)
    flat = p2.reshape(len(p2), -1)
    _, d = softmax_cross_entropy(flat @ wo + bo, w.y)
    gwo, gbo = flat.T @ d, d.sum(axis=0)
    g = _unpool((d @ wo.T).reshape(p2.shape), first2) * (r2 > 0)
    gk2, gc2 = _filter_gradients(g, columns2, k2)
    g = _unpool(_back_to_image(g, k2), first1) * (r1 > 0)
    gk1, gc1 = _filter_gradients(g, columns1, k1)
    return [gk1, gc1, gk2, gc2, gwo, gbo]


def _convolve(x: np.ndarray, k: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """3×3 filters with a border of zeros: the windows as rows, one product."""
    n, channels, height, width = x.shape
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * height * width, channels * 9)
    out = columns @ k.reshape(len(k), -1).T + c
    return out.reshape(n, height, width, len(k)).transpose(0, 3, 1, 2), columns


def _filter_gradients(g: np.ndarray, columns: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = g.transpose(0, 2, 3, 1).reshape(-1, len(k))
    return (rows.T @ columns).reshape(k.shape), rows.sum(axis=0)


def _back_to_image(g: np.ndarray, k: np.ndarray) -> np.ndarray:
    n, filters, height, width = g.shape
    windows = (g.transpose(0, 2, 3, 1).reshape(-1, filters) @ k.reshape(filters, -1)).reshape(n, height, width, k.shape[1], 3, 3)
    wide = np.zeros((n, k.shape[1], height + 2, width + 2), F)
    for i in range(3):
        for j in range(3):
            wide[:, :, i : i + height, j : j + width] += windows[..., i, j].transpose(0, 3, 1, 2)
    return wide[:, :, 1:-1, 1:-1]


def _pool(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest of each 2×2 window, and which of the four it was."""
    n, c, height, width = x.shape
    four = x.reshape(n, c, height // 2, 2, width // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, height // 2, width // 2, 4)
    first = four.argmax(axis=4)[..., None]
    return np.take_along_axis(four, first, 4)[..., 0], first


def _unpool(g: np.ndarray, first: np.ndarray) -> np.ndarray:
    n, c, height, width = g.shape
    four = np.zeros((*g.shape, 4), F)
    np.put_along_axis(four, first, g[..., None], 4)
    return four.reshape(n, c, height, width, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * height, 2 * width)


def _neurons(w: Workload) -> list[np.ndarray]:
    """What the scalar network really costs: whole layers at once."""
    numbers, sizes = np.array(w.params), w.facts["sizes"]
    layers, at = [], 0
    for a, b in zip(sizes, sizes[1:]):
        layers.append(numbers[at : at + (a + 1) * b].reshape(b, a + 1))
        at += (a + 1) * b
    h, y = np.array(w.facts["points"]), np.array(w.facts["signs"])
    values = []
    for depth, layer in enumerate(layers):
        values.append(h)
        h = h @ layer[:, :-1].T + layer[:, -1]
        if depth < len(layers) - 1:
            h = np.maximum(h, 0)
    g = (-y * (1 - y * h[:, 0] > 0) / len(y))[:, None]
    grads: list[np.ndarray] = []
    for h, layer in zip(reversed(values), reversed(layers)):
        own = np.concatenate([g.T @ h, g.sum(axis=0)[:, None]], axis=1) + 2 * w.facts["alpha"] * layer
        grads.insert(0, own.ravel())
        g = (g @ layer[:, :-1]) * (h > 0)
    return list(np.concatenate(grads))


_GRADIENTS = {"mlp": _mlp, "fan_out": _fan_out, "elman": _elman, "lstm": _lstm, "cnn": _cnn, "neurons": _neurons}
