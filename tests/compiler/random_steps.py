"""Random programs to compile, drawn from a seed: expressions, loops and branches, trainings of small networks.

A compiled step keeps memory from call to call, so each is called several times, with other feeds every time, and held
against the interpreter: results and parameters, bit for bit if the step is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import minigrad as mg
from minigrad import static
from minigrad.errors import MinigradError
from minigrad.static.run import interpreter

CALLS = 5


SHAPES = ((), (3,), (4,), (2, 3), (3, 4), (3, 1), (2, 3, 4), (1, 2, 4, 4))


LARGEST = 2000  #: elements of a value


@dataclass
class Drawn:
    """A program, what is fetched of it, and how its feeds are drawn."""

    program: Any
    fetch: list[Any]
    feeds: dict[str, Callable[[np.random.Generator], np.ndarray]]


class Mismatch(AssertionError):
    """A compiled step and the interpreter differ."""


def check(seed: int, calls: int = CALLS) -> None:
    """Call an exact and an inexact step of a random program, and compare each call."""
    drawn = draw(seed)
    for exact in (True, False):
        step = static.compile(drawn.program, fetch=drawn.fetch, exact=exact)
        executor, rng = static.Executor(), np.random.default_rng(seed)
        for call in range(calls):
            feed = {name: make(rng) for name, make in drawn.feeds.items()}
            expected = executor.run(drawn.program, feed, drawn.fetch)
            where = f"seed {seed}, {'exact' if exact else 'inexact'}, call {call + 1}"
            for variable, ours, theirs in zip(drawn.fetch, step(feed), expected, strict=True):
                compare(f"{where}: {getattr(variable, 'name', variable)}", ours, theirs, exact)
            for name, value in step.parameters.items():
                theirs = executor.scope.values.get(
                    name, value
                )  # not what only blocks that did not run read
                compare(f"{where}: parameter {name}", value, theirs, exact)


def in_c(drawn: Drawn, exact: bool) -> Any:
    """A step of compiled C."""
    settings = {"fetch": drawn.fetch, "exact": exact, "backend": "c", "max_steps": 8}
    return static.compile(drawn.program, **settings)


def check_c(seed: int, steps: Any = (), calls: int = 2) -> None:
    """The same for steps of compiled C; sums have another order there, so the last bits may differ.

    Where they decide (RMSprop divides a gradient that is nothing but rounding by its own size), results may be as far
    apart as those of the interpreter are from those of one whose every operator rounds otherwise.
    """
    try:
        _check_c(seed, steps, calls, False)
    except Mismatch:
        _check_c(seed, (), calls, True)


def _check_c(seed: int, steps: Any, calls: int, trembling: bool) -> None:
    drawn = draw(seed)
    for exact, step in zip(
        (True, False), steps or map(partial(in_c, drawn), (True, False)), strict=True
    ):
        rng, executors = np.random.default_rng(seed), [static.Executor()]
        executors += [Trembling()] * trembling
        for call in range(calls):
            feed = {name: make(rng) for name, make in drawn.feeds.items()}
            expected = [e.run(drawn.program, feed, drawn.fetch) for e in executors]
            where = f"seed {seed}, C, {'exact' if exact else 'inexact'}, call {call + 1}"
            for variable, ours, *theirs in zip(drawn.fetch, step(feed), *expected, strict=True):
                what = f"{where}: {getattr(variable, 'name', variable)}"
                compare(what, ours, theirs[0], False, theirs[-1])
            for name, value in step.parameters.items():
                theirs = [e.scope.values.get(name, value) for e in executors]
                compare(f"{where}: parameter {name}", value, theirs[0], False, theirs[-1])


class Trembling(static.Executor):
    """An interpreter whose every operator rounds otherwise."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        rng, run_op = np.random.default_rng(0), interpreter.run_op

        def trembled(value: Any) -> Any:
            a = np.asarray(value)
            if a.dtype.kind != "f":
                return value
            return (a * (1 + rng.choice([-4, 4], a.shape) * np.finfo(a.dtype).eps)).astype(a.dtype)

        def run_otherwise(*op: Any) -> Any:
            return [(name, trembled(value)) for name, value in run_op(*op)]

        with mock.patch.object(interpreter, "run_op", run_otherwise):
            return super().run(*args, **kwargs)


def compare(what: str, ours: Any, theirs: Any, exact: bool, near: Any = None) -> None:
    """The same bits, the sign of zeros included; without ``exact`` the same numbers.

    ``near`` is what a run gave whose last bits are others: so much is no difference.
    """
    a, b = np.asarray(ours), np.asarray(theirs)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        raise Mismatch(f"{what}: {a.dtype}{list(a.shape)} is not {b.dtype}{list(b.shape)}")
    if exact or a.dtype.kind != "f":
        same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        if same and a.dtype.kind == "f":
            same = np.array_equal(np.signbit(a) & (a == a), np.signbit(b) & (b == b))
    else:
        tolerance = 1e-8 if a.dtype == np.float64 else 1e-3
        size = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
        room = 0.0 if near is None else 10 * np.nan_to_num(np.abs(b - np.asarray(near)), posinf=0)
        same = np.allclose(a, b, tolerance, tolerance * size + room, equal_nan=True)
    if not same:
        raise Mismatch(f"{what}: {a!r} is not {b!r}")


def draw(seed: int) -> Drawn:
    """The program of a seed; half of them are expressions."""
    rng = np.random.default_rng(seed)
    families = (expressions, expressions, expressions, convolutions, recurrences, handed_on)
    family = families[seed % len(families)]
    program = static.Program()
    feeds: dict[str, Any] = {}
    with static.program_guard(program):
        fetch = family(rng, feeds)
    return Drawn(program, fetch, feeds)


def normal(shape: tuple[int, ...], dtype: Any = np.float64) -> Callable[[Any], np.ndarray]:
    return lambda rng: np.asarray(rng.normal(size=shape) * 0.7, dtype)


def data(feeds: dict[str, Any], name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    feeds[name] = normal(shape, dtype)
    return static.data(name, list(shape), dtype)


def parameter(rng: Any, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    scale = 1 / np.sqrt(max(1, int(np.prod(shape[1:]))))
    return static.parameter(name, (rng.normal(size=shape) * scale).astype(dtype))


# -- expressions ---------------------------------------------------------------------------


def expressions(rng: np.random.Generator, feeds: dict[str, Any]) -> list[Any]:
    """Values of all kinds, some fetched; for most, gradients, for some of these, updates."""
    dtype = np.float32 if rng.random() < 0.3 else np.float64
    values = []
    for k in range(int(rng.integers(1, 4))):
        shape = SHAPES[int(rng.integers(1, len(SHAPES)))]
        values.append(data(feeds, f"x{k}", shape, dtype))
    for k in range(int(rng.integers(1, 4))):
        values.append(parameter(rng, f"w{k}", SHAPES[int(rng.integers(0, len(SHAPES) - 1))], dtype))
    feeds["n"] = lambda rng: np.asarray(rng.integers(0, 4))
    grow = Growth(rng, values, static.data("n", [], np.int64))
    for _ in range(int(rng.integers(2, 16))):
        grow.one()
    floats = [v for v in grow.values if v.dtype.kind == "f"]
    fetch = [floats[int(k)] for k in rng.integers(0, len(floats), 3)]
    if rng.random() < 0.3:
        return fetch
    weights = [float(w) for w in rng.normal(size=4)]
    parts = [floats[int(k)] for k in rng.integers(0, len(floats), 4)]
    loss = sum((mg.tanh(p).sum() * w for p, w in zip(parts, weights, strict=True)), start=0.0)
    return [*fetch, loss, *trained(rng, loss, plain=rng.random() < 0.5)]


def trained(rng: np.random.Generator, loss: Any, plain: bool = False) -> list[Any]:
    """Gradients of a loss, or a training step of it; returns what else may be fetched."""
    try:
        if plain:
            pairs = static.append_backward(loss)
            return [gradient for _, gradient in pairs]
        optimizers: Any = (
            lambda: mg.optim.SGD(lr=0.1),
            lambda: mg.optim.SGD(lr=0.05, momentum=0.9, nesterov=True),
            lambda: mg.optim.SGD(lr=0.05, weight_decay=0.1, clip=mg.optim.clip_by_norm(0.5)),
            lambda: mg.optim.Adam(lr=0.01),
            lambda: mg.optim.RMSprop(lr=0.01),
        )
        pairs = optimizers[int(rng.integers(len(optimizers)))]().minimize(loss)
        return [g for _, g in pairs] if rng.random() < 0.5 else []
    except MinigradError:  # nothing to train
        return []


class Growth:
    """Appends one random operator after the other."""

    def __init__(self, rng: np.random.Generator, values: list[Any], count: Any, depth: int = 2):
        self.rng, self.values, self.count, self.depth = rng, list(values), count, depth

    def one(self) -> None:
        """One more value, if the drawn operator takes what it is given."""
        tables = (UNARY, UNARY, MOVES, MOVES, MOVES, PAIRS, PAIRS, BLOCKS)
        table: Any = tables[int(self.rng.integers(len(tables) - (self.depth == 0)))]
        make = table[int(self.rng.integers(len(table)))]
        a, b = self.pick(), self.pick()
        try:
            made = make(self, a) if table in (UNARY, MOVES) else make(self, a, b)
        except (MinigradError, IndexError, ValueError):
            return
        if made is None or -1 in made.shape or int(np.prod(made.shape)) > LARGEST:
            return
        self.values.append(made)

    def pick(self) -> Any:
        recent = self.values[-5:] if self.rng.random() < 0.7 else self.values
        return recent[int(self.rng.integers(len(recent)))]

    def axis(self, x: Any) -> int:
        return int(self.rng.integers(len(x.shape)))

    def maybe_axis(self, x: Any) -> int | None:
        return None if not x.shape or self.rng.random() < 0.3 else self.axis(x)

    def number(self) -> float:
        return float(self.rng.normal())

    def index(self, x: Any, repeats: bool = True) -> Any:
        """An index of slices, numbers and lists of places."""
        parts: list[Any] = []
        for size in x.shape[: int(self.rng.integers(1, len(x.shape) + 1))]:
            kind = int(self.rng.integers(6))
            places = self.rng.integers(0, size, 2)
            if not repeats:
                places = self.rng.permutation(size)[:2]
            forms = (
                slice(None),
                slice(int(places.min()), None),
                slice(None, None, -1),
                slice(None, None, 2),
                int(places[0]),
                np.asarray(places),
            )
            parts.append(forms[kind])
        return tuple(parts)

    def inner(self, state: list[Any], like: Any) -> Any:
        """A value of the shape of ``like`` from a few operators in a block."""
        grow = Growth(self.rng, [*self.values[-4:], *state], self.count, self.depth - 1)
        for _ in range(int(self.rng.integers(1, 4))):
            grow.one()
        fitting = [v for v in grow.values if v.shape == like.shape and v.dtype == like.dtype]
        result = fitting[-1] if fitting else state[0]
        return mg.tanh(result * 0.9 + 0.05 * mg.tanh(grow.values[-1].sum()))


UNARY = (
    lambda g, x: mg.tanh(x),
    lambda g, x: mg.sin(x),
    lambda g, x: mg.sigmoid(x),
    lambda g, x: mg.relu(x),
    lambda g, x: mg.square(mg.tanh(x)),
    lambda g, x: mg.exp(mg.tanh(x)),
    lambda g, x: mg.sqrt(x * x + 0.5),
    lambda g, x: mg.softmax(x, axis=g.axis(x)),
    lambda g, x: mg.cumsum(x, axis=g.axis(x)),
    lambda g, x: x * g.number(),
    lambda g, x: x + g.number(),
    lambda g, x: -x,
    lambda g, x: mg.clone(x),
    lambda g, x: mg.zeros_like(x) + 0.5,
    lambda g, x: mg.sum(x, axis=g.maybe_axis(x)),
    lambda g, x: mg.mean(x, axis=g.maybe_axis(x), keepdims=True),
    lambda g, x: mg.max(x, axis=g.maybe_axis(x)),
    lambda g, x: mg.std(x, axis=g.maybe_axis(x)),
    lambda g, x: mg.logsumexp(x, axis=g.maybe_axis(x)),
    lambda g, x: mg.layer_norm(x, x.shape[-1]),
)


MOVES = (
    lambda g, x: mg.permute_dims(x),
    lambda g, x: mg.swapaxes(x, 0, len(x.shape) - 1),
    lambda g, x: mg.permute_dims(x, tuple(int(k) for k in g.rng.permutation(len(x.shape)))),
    lambda g, x: mg.reshape(x, [-1]),
    lambda g, x: mg.reshape(x, [x.shape[-1], -1]),
    lambda g, x: mg.expand_dims(x, 0),
    lambda g, x: mg.squeeze(x),
    lambda g, x: mg.flip(x, axis=g.axis(x)),
    lambda g, x: mg.roll(x, 1, axis=g.axis(x)),
    lambda g, x: mg.sort(x, axis=g.axis(x)),
    lambda g, x: mg.tile(x, [2] * len(x.shape)),
    lambda g, x: mg.broadcast_to(x, (2, *x.shape)),
    lambda g, x: mg.diagonal(x),
    lambda g, x: mg.tril(x),
    lambda g, x: mg.pad(x, [tuple(map(int, g.rng.integers(0, 3, 2))) for _ in x.shape]),
    lambda g, x: mg.pad(x, 1, value=float(g.rng.choice([0.0, -0.0, 1.0]))),
    lambda g, x: x[g.index(x)],
    lambda g, x: x[g.index(x)],
    lambda g, x: x[:, np.array([1, 0])] if x.shape[1] > 1 else None,
    lambda g, x: mg.take(x, g.rng.integers(0, x.shape[0], 3), axis=0),
    lambda g, x: mg.split(x, [1, x.shape[0] - 1])[1],
    lambda g, x: mg.unbind(x)[-1],
    lambda g, x: mg.max_pool2d(mg.reshape(x, [1, 1, *x.shape[-2:]]), 2, stride=1),
    lambda g, x: mg.avg_pool2d(mg.reshape(x, [1, 1, *x.shape[-2:]]), 2, padding=1),
)


def written(g: Growth, x: Any, y: Any) -> Any:
    """``x`` with a part of ``y`` written into it."""
    index = g.index(x, repeats=False)
    part = x[index]
    value = mg.broadcast_to(mg.tanh(y).sum(), part.shape) if y.shape != part.shape else y
    return mg.setitem(x, value, index)


PAIRS = (
    lambda g, a, b: a + b,
    lambda g, a, b: a - b,
    lambda g, a, b: mg.tanh(a) * b,
    lambda g, a, b: a / (b * b + 1.0),
    lambda g, a, b: mg.maximum(a, b),
    lambda g, a, b: mg.where(a > b, a, b * 0.5),
    lambda g, a, b: mg.where(a > 0.0, a, 0.0) + b,
    lambda g, a, b: mg.tanh(a) @ b,
    lambda g, a, b: mg.tanh(a) @ mg.permute_dims(a),
    lambda g, a, b: mg.concat([a, b], axis=g.axis(a)),
    lambda g, a, b: mg.concat([a * 2.0, mg.sin(a), a], axis=g.axis(a)),
    lambda g, a, b: mg.stack([a, a + 1.0, b if b.shape == a.shape else -a]),
    lambda g, a, b: mg.outer(mg.flatten(a, 0)[:5], mg.flatten(b, 0)[:5]),
    lambda g, a, b: mg.add_n(a, a * 0.5, a),
    lambda g, a, b: a[0] + a[-1],
    lambda g, a, b: mg.index_add(a, np.array([0, 0]), mg.stack([a[0], a[-1]])),
    written,
    written,
)


def loop(g: Growth, a: Any, b: Any) -> Any:
    """A while loop of a number of steps that is fed."""

    def body(i: Any, h: Any) -> Any:
        return i + 1, g.inner([h], h)

    return static.while_loop(lambda i, h: i < g.count, body, [0, mg.tanh(a)])[1]


def branch(g: Growth, a: Any, b: Any) -> Any:
    """A choice that depends on what is fed."""
    # not 0: what is normalized adds up to a number of rounding errors, whose sign is nobody's
    return static.cond(b.sum() > 0.1, lambda: g.inner([a], a), lambda: g.inner([a * 0.5], a))


def recurrence(g: Growth, a: Any, b: Any) -> Any:
    """A recurrent block over the rows of a value."""
    start = mg.zeros_like(a[0])

    def step(x: Any, h: Any) -> Any:
        h = g.inner([h * 0.5 + x], h)
        return [h * x], [h]

    outs, last = static.static_rnn(step, [a], [start])
    return outs[0] + last[0]


BLOCKS = (loop, branch, branch, recurrence)


# -- networks ------------------------------------------------------------------------------

ACTIVATIONS = (mg.relu, mg.tanh, mg.sigmoid, mg.leaky_relu, mg.silu)


def convolutions(rng: np.random.Generator, feeds: dict[str, Any]) -> list[Any]:
    """A training step of a convolutional network, padded by itself or by hand."""
    dtype = np.float32 if rng.random() < 0.3 else np.float64
    channels, fetch = int(rng.integers(1, 3)), []
    h = data(feeds, "x", (2, channels, *map(int, rng.integers(5, 9, 2))), dtype)
    for k in range(int(rng.integers(1, 3))):
        filters, size = int(rng.integers(1, 4)), int(rng.integers(1, min(h.shape[-2:]) + 1))
        if rng.random() < 0.3:
            h = mg.pad(h, [(0, 0), (0, 0), (1, 1), (1, 0)])
        w = parameter(rng, f"k{k}", (filters, channels, size, size), dtype)
        c = parameter(rng, f"c{k}", (filters,), dtype) if rng.random() < 0.7 else None
        h = mg.conv2d(h, w, c, stride=int(rng.integers(1, 3)), padding=int(rng.integers(0, size)))
        activation = ACTIVATIONS[int(rng.integers(len(ACTIVATIONS)))]
        pool = (mg.max_pool2d, mg.avg_pool2d)[int(rng.integers(2))]
        h = activation(h) if rng.random() < 0.8 else h
        if min(h.shape[-2:]) > 2 and rng.random() < 0.7:
            h = pool(h, kernel_size=2, stride=int(rng.integers(1, 3)), padding=int(rng.integers(2)))
        h = activation(h) if rng.random() < 0.3 else h
        if rng.random() < 0.3:
            fetch.append(h)
        channels = filters
    return [*fetch, *classified(rng, feeds, mg.flatten(h, start=1), dtype)]


def recurrences(rng: np.random.Generator, feeds: dict[str, Any]) -> list[Any]:
    """A training step of a recurrent network: written out, or as a recurrent block; plain, or with gates."""
    dtype = np.float32 if rng.random() < 0.3 else np.float64
    rows, hidden = (int(k) for k in rng.integers(2, 6, 2))
    gated, block = rng.random() < 0.5, rng.random() < 0.5
    steps = int(rng.integers(2, 6)) if block or rng.random() < 0.8 else 10
    xs = data(feeds, "xs", (steps, rows, 3), dtype)
    xs = mg.tanh(xs) if rng.random() < 0.3 else xs
    start = data(feeds, "start", (rows, hidden), dtype)
    wide = hidden * (4 if gated else 1)
    wx, wh = parameter(rng, "wx", (3, wide), dtype), parameter(rng, "wh", (hidden, wide), dtype)
    b = parameter(rng, "b", (wide,), dtype)

    def cell(x: Any, h: Any, c: Any) -> Any:
        z = mg.linear(x, wx, b) + h @ wh
        if not gated:
            return mg.tanh(z), c
        i, f, g, o = mg.split(z, 4, axis=1)
        c = mg.sigmoid(f) * c + mg.sigmoid(i) * mg.tanh(g)
        return mg.sigmoid(o) * mg.tanh(c), c

    def step(x: Any, h: Any, c: Any) -> Any:
        h, c = cell(x, h, c)
        return [h], [h, c]

    h, c = start, start * 0.5
    if block:
        (ys,), (h, c) = static.static_rnn(step, [xs], [h, c])
        h = h + ys.mean(axis=0)
    else:
        order = [range(steps), range(steps)[::-1], rng.integers(0, steps, steps)]
        for k in order[int(rng.integers(3))]:
            h, c = cell(xs[int(k)], h, c)
    return classified(rng, feeds, h, dtype)


def handed_on(rng: np.random.Generator, feeds: dict[str, Any]) -> list[Any]:
    """A loop whose step hands on some of what it carries under other names; its starts are read again behind it."""
    shape = SHAPES[int(rng.integers(1, 4))]
    x, u = data(feeds, "x", shape), parameter(rng, "u", shape)
    feeds["n"] = lambda rng: np.asarray(rng.integers(0, 4))
    count = static.data("n", [], np.int64)
    makers = (
        lambda a, b: mg.tanh(x / (1.0 + b * b)),
        lambda a, b: mg.tanh(a * b),
        lambda a, b: mg.sin(b) * u,
        lambda a, b: b * 0.9,
        lambda a, b: b,
        lambda a, b: b,
    )
    starts = [(x * u * 0.5, mg.tanh(u), x, u * 0.9)[k] for k in rng.integers(0, 4, 3)]
    drawn = [(makers[int(rng.integers(6))], rng.integers(0, 3, 2)) for _ in starts]

    def body(i: Any, *state: Any) -> Any:
        return i + 1, *(make(state[k], state[m]) for make, (k, m) in drawn)

    _, *ends = static.while_loop(lambda i, *state: i < count, body, [0, *starts])
    loss = mg.sum((ends[0] + ends[1] * 0.69) * starts[0]) + mg.mean(starts[1] * ends[2]) * 0.5
    return [loss, *(g for _, g in static.append_backward(loss))]


def classified(rng: np.random.Generator, feeds: dict[str, Any], h: Any, dtype: Any) -> list[Any]:
    """A last layer, its loss, a training step."""
    rows, classes = h.shape[0], 3
    w = parameter(rng, "w", (h.shape[1], classes), dtype)
    y = mg.linear(h, w, parameter(rng, "bias", (classes,), dtype))
    if rng.random() < 0.5:
        feeds["t"] = lambda rng: rng.integers(0, classes, rows)
        loss = mg.cross_entropy(y, static.data("t", [rows], np.int64))
    else:
        loss = mg.mse(y, data(feeds, "t", (rows, classes), dtype))
    return [loss, *trained(rng, loss)]
