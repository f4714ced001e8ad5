"""The floor: the fastest step we know how to write in NumPy, in memory that is made once.

Every call writes to a buffer (``out=``), constants are arrays without axes, transposed views are kept.  A library that allocates cannot get below it;
a compiler that plans its buffers may, by doing something cleverer than the straight line.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from floor_cnn import cnn
from workloads import LEARNING_RATE, F, Workload

Array = np.ndarray[Any, Any]
dot, add, sub, mul, div, tanh, exp = np.dot, np.add, np.subtract, np.multiply, np.divide, np.tanh, np.exp
add_up = np.add.reduce
ONE, TWO, HALF = np.array(1, F), np.array(2, F), np.array(0.5, F)


class Floor:
    """The peer: ``grads()`` and ``step()``."""

    def __init__(self, w: Workload) -> None:
        if w.model == "neurons":
            raise NotImplementedError("by hand is the floor")
        self.w = w
        write = hvp if w.v is not None else {"mlp": mlp, "fan_out": fan_out, "elman": recurrent, "lstm": recurrent, "cnn": cnn}[w.model]
        self.found = [np.empty_like(p) for p in w.params]
        self.compute: Callable[[], None] = write(w, self.found)
        self.rate = np.array(LEARNING_RATE)
        self.pairs = list(zip(w.params, self.found))

    def grads(self) -> list[Array]:
        self.compute()
        return [g.copy() for g in self.found]

    def step(self) -> None:
        self.compute()
        if self.w.updates:
            for p, g in self.pairs:
                mul(g, self.rate, g)
                sub(p, g, p)


def empty(*shape: int) -> Array:
    return np.empty(shape, F)


def cross_entropy(z: Array, classes: Array, g: Array) -> Callable[[], Any]:
    """The loss at logits ``z``; its gradient goes to ``g``.  ``z`` is used up."""
    n = len(z)
    top, total, share = empty(n, 1), empty(n, 1), np.array(1 / n, F)
    onehot = np.zeros_like(z)
    onehot[np.arange(n), classes] = 1
    picked = np.empty_like(z)

    def run() -> Any:
        np.maximum.reduce(z, 1, None, top, True)
        sub(z, top, z)
        mul(z, onehot, picked)
        exp(z, g)
        add_up(g, 1, None, total, True)
        div(g, total, g)
        np.log(total, total)
        loss = (add_up(total, None) - add_up(picked, None)) * share
        sub(g, onehot, g)
        mul(g, share, g)
        return loss

    return run


def mlp(w: Workload, found: list[Array]) -> Callable[[], None]:
    layers, n = len(w.params) // 2, len(w.x)
    weights, biases = w.params[::2], w.params[1::2]
    values = [w.x, *(empty(n, b.size) for b in biases)]
    slopes = [empty(n, b.size) for b in biases]
    squares, masks = [np.empty_like(s) for s in slopes], [np.empty(s.shape, bool) for s in slopes]
    zeros = [np.zeros_like(s) for s in slopes]
    up, back = [v.T for v in values], [a.T for a in weights]
    last, relu = slopes[-1], w.facts["act"] == "relu"
    if w.facts["loss"] == "mse":
        flat, share = last.reshape(-1), np.array(2 / last.size, F)

        def loss() -> Any:
            sub(values[-1], w.y, last)
            value = dot(flat, flat)
            mul(last, share, last)
            return value
    else:
        loss = cross_entropy(values[-1], w.y, last)

    def compute() -> None:
        for k in range(layers):
            z = values[k + 1]
            dot(values[k], weights[k], z)
            add(z, biases[k], z)
            if k < layers - 1:
                np.maximum(z, zeros[k], out=z) if relu else tanh(z, z)
        loss()
        for k in range(layers - 1, -1, -1):
            g = slopes[k]
            dot(up[k], g, found[2 * k])
            add_up(g, 0, None, found[2 * k + 1])
            if k:
                below, v = slopes[k - 1], values[k]
                dot(g, back[k], below)
                if relu:
                    np.greater(v, zeros[k - 1], masks[k - 1])
                    mul(below, masks[k - 1], below)
                else:
                    s = squares[k - 1]
                    mul(v, v, s)
                    sub(ONE, s, s)
                    mul(below, s, below)

    return compute


def hvp(w: Workload, found: list[Array]) -> Callable[[], None]:
    layers, n = len(w.params) // 2, len(w.x)
    weights, biases, dirs, turns = w.params[::2], w.params[1::2], w.v[::2], w.v[1::2]  # type: ignore[index]

    def like() -> list[Array]:
        return [empty(n, b.size) for b in biases]

    values, moves, curves, slopes, bends, spare, other = [w.x, *like()], [None, *like()], like(), like(), like(), like(), like()
    scratch = [np.empty_like(a) for a in weights]
    up, drift = [v.T for v in values], [None, *(m.T for m in moves[1:])]  # type: ignore[union-attr]
    back, sway = [a.T for a in weights], [a.T for a in dirs]
    rows, mse = empty(n, 1), w.facts["loss"] == "mse"
    share = np.array(2 / values[-1].size if mse else 1 / n, F)
    probabilities = np.empty_like(values[-1])
    gradient = None if mse else cross_entropy(values[-1], w.y, slopes[-1])

    def at_loss() -> None:
        g, dg, dz = slopes[-1], bends[-1], moves[-1]
        if mse:
            sub(values[-1], w.y, g)
            mul(g, share, g)
            mul(dz, share, dg)
            return
        gradient()  # type: ignore[misc]
        exp(values[-1], probabilities)
        add_up(probabilities, 1, None, rows, True)
        div(probabilities, rows, probabilities)
        mul(probabilities, dz, dg)
        add_up(dg, 1, None, rows, True)
        mul(probabilities, rows, spare[-1])
        sub(dg, spare[-1], dg)
        mul(dg, share, dg)

    def compute() -> None:
        for k in range(layers):
            z, dz = values[k + 1], moves[k + 1]
            dot(values[k], weights[k], z)
            add(z, biases[k], z)
            dot(values[k], dirs[k], dz)
            add(dz, turns[k], dz)
            if k:
                dot(moves[k], weights[k], spare[k])
                add(dz, spare[k], dz)
            if k < layers - 1:
                tanh(z, z)
                mul(z, z, curves[k])
                sub(ONE, curves[k], curves[k])
                mul(dz, curves[k], dz)
        at_loss()
        for k in range(layers - 1, -1, -1):
            g, dg = slopes[k], bends[k]
            dot(up[k], dg, found[2 * k])
            add_up(dg, 0, None, found[2 * k + 1])
            if not k:
                return
            dot(drift[k], g, scratch[k])
            add(found[2 * k], scratch[k], found[2 * k])
            below, bend, one, two = slopes[k - 1], bends[k - 1], spare[k - 1], other[k - 1]
            dot(g, back[k], below)
            dot(dg, back[k], bend)
            dot(g, sway[k], one)
            add(bend, one, bend)
            mul(bend, curves[k - 1], bend)
            mul(below, values[k], two)
            mul(two, moves[k], two)
            mul(two, TWO, two)
            sub(bend, two, bend)
            mul(below, curves[k - 1], below)

    return compute


def fan_out(w: Workload, found: list[Array]) -> Callable[[], None]:
    (x,), (gx,) = w.params, found
    factors = [np.array(c, F) for c in w.facts["factors"]]
    total, part, g = np.empty_like(x), np.empty_like(x), np.ones_like(x)

    def compute() -> None:
        total.fill(0)
        for c in factors:
            mul(x, c, part)
            add(total, part, total)
        add_up(total, None)
        gx.fill(0)
        for c in factors:
            mul(g, c, part)
            add(gx, part, gx)

    return compute


def recurrent(w: Workload, found: list[Array]) -> Callable[[], None]:
    """Elman network and LSTM, step by step; gates of an LSTM are i, f, g, o."""
    wx, wh, b, wo, bo = w.params
    gwx, gwh, gb, gwo, gbo = found
    steps, (n, h), wide = len(w.x), w.start.shape, len(b)
    z, gz, part = [empty(n, wide) for _ in w.x], empty(n, wide), empty(n, wide)
    hs, cs, tcs = ([w.start, *(empty(n, h) for _ in w.x)] for _ in range(3))
    gates = [[v[:, k : k + h] for k in range(0, wide, h)] for v in [*z, gz, part]]
    gate_slopes, parts = gates[-2], gates[-1]
    x_up, h_up, wh_back, wo_back = [x.T for x in w.x], [v.T for v in hs], wh.T, wo.T
    logits, g, gh, gc, one, two = empty(n, len(bo)), empty(n, len(bo)), empty(n, h), empty(n, h), empty(n, h), empty(n, h)
    more = [np.empty_like(p) for p in (wx, wh, b)]
    loss, lstm = cross_entropy(logits, w.y, g), w.model == "lstm"

    def sigmoid(v: Array) -> None:
        mul(v, HALF, v)
        tanh(v, v)
        mul(v, HALF, v)
        add(v, HALF, v)

    def forward(t: int) -> None:
        v = z[t]
        dot(w.x[t], wx, v)
        add(v, b, v)
        dot(hs[t], wh, part)
        add(v, part, v)
        if not lstm:
            tanh(v, hs[t + 1])
            return
        i, f, c, o = gates[t]
        sigmoid(v[:, : 2 * h])
        tanh(c, c)
        sigmoid(o)
        new = cs[t + 1]
        mul(f, cs[t], new)
        mul(i, c, one)
        add(new, one, new)
        tanh(new, tcs[t + 1])
        mul(o, tcs[t + 1], hs[t + 1])

    def slope(t: int) -> None:
        if not lstm:
            mul(hs[t + 1], hs[t + 1], one)
            sub(ONE, one, one)
            mul(gh, one, gz)
            return
        (i, f, c, o), tc = gates[t], tcs[t + 1]
        gi, gf, gg, go = gate_slopes
        mul(gh, o, one)
        mul(tc, tc, two)
        sub(ONE, two, two)
        mul(one, two, one)
        add(gc, one, gc)
        mul(gc, c, gi)
        mul(gc, cs[t], gf)
        mul(gc, i, gg)
        mul(gh, tc, go)
        sub(ONE, z[t], part)  # the slopes of the gates: s (1 - s), and 1 - g g
        mul(part, z[t], part)
        mul(c, c, parts[2])
        sub(ONE, parts[2], parts[2])
        mul(gz, part, gz)
        mul(gc, f, gc)

    def compute() -> None:
        for t in range(steps):
            forward(t)
        dot(hs[-1], wo, logits)
        add(logits, bo, logits)
        loss()
        dot(h_up[-1], g, gwo)
        add_up(g, 0, None, gbo)
        dot(g, wo_back, gh)
        gc.fill(0)
        for t in range(steps - 1, -1, -1):
            slope(t)
            into = found if t == steps - 1 else more
            dot(x_up[t], gz, into[0])
            dot(h_up[t], gz, into[1])
            add_up(gz, 0, None, into[2])
            if into is more:
                for total, own in zip((gwx, gwh, gb), more):
                    add(total, own, total)
            if t:
                dot(gz, wh_back, gh)

    return compute
