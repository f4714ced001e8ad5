"""Random programs from a seed, as plain data: the same recipe runs eagerly, as a Program, and in NumPy-free differences.

A recipe is a list of steps on a stack of vectors of one length.  Eager control flow is Python's own, so the static
`while`, `cond` and `recurrent` are compared with what they mean.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static

SIZE = 3
UNARY = (
    "tanh",
    "sin",
    "exp_small",
    "square",
    "neg",
    "sigmoid",
    "scale",
    "sqrt_abs",
    "clone",
    "reverse",
    "cumsum",
    "slice_pad",
)
BINARY = (
    "add",
    "sub",
    "mul",
    "div_safe",
    "maximum",
    "concat_split",
    "stack_sum",
    "outer",
    "where",
    "add_n",
)


@dataclass
class Recipe:
    """``steps`` on a list of values, first x, then the parameters; ``result`` picks what is summed to the loss."""

    inputs: list[list[float]]
    steps: list[Any] = field(default_factory=list)
    result: list[int] = field(default_factory=list)
    blocked: list[int] = field(default_factory=list)  # steps whose result gets no gradient


def recipe(seed: int, size: int = 40) -> Recipe:
    """A recipe of 1 to ``size`` steps."""
    rng = random.Random(seed)
    inputs = [
        [round(rng.uniform(-1.2, 1.2), 3) for _ in range(SIZE)] for _ in range(rng.randint(1, 4))
    ]
    made = Recipe(inputs)
    made.steps = _steps(rng, len(inputs), rng.randint(1, size), depth=2)
    total = len(inputs) + len(made.steps)
    made.result = sorted(rng.sample(range(total), min(total, rng.randint(1, 3))))
    made.blocked = [k for k in range(len(made.steps)) if rng.random() < 0.04]
    return made


def _steps(rng: random.Random, available: int, count: int, depth: int) -> list[Any]:
    steps: list[Any] = []
    for _ in range(count):
        n = available + len(steps)
        pick = lambda n=n: (
            rng.randrange(max(0, n - 6), n) if rng.random() < 0.7 else rng.randrange(n)
        )
        kind = rng.random()
        if depth and kind < 0.06:
            steps.append(
                (
                    "while",
                    rng.randint(0, 3),
                    [pick() for _ in range(rng.randint(1, 3))],
                    _body(rng, n, depth),
                    rng.randrange(3),
                )
            )
        elif depth and kind < 0.12:
            steps.append(
                ("cond", pick(), _body(rng, n, depth), _body(rng, n, depth), rng.randrange(2))
            )
        elif depth and kind < 0.15:
            steps.append(("rnn", rng.randint(0, 3), pick(), pick(), _body(rng, n, depth)))
        elif kind < 0.55:
            steps.append((rng.choice(UNARY), pick()))
        else:
            a = pick()
            steps.append((rng.choice(BINARY), a, a if rng.random() < 0.15 else pick()))
    return steps


def _body(rng: random.Random, n: int, depth: int) -> tuple[list[Any], list[int], list[int]]:
    """Steps of a block; offsets, from the end, of what it returns; steps whose result gets no gradient."""
    steps = _steps(rng, n + 3, rng.randint(1, 4), depth - 1)
    blocked = [k for k in range(len(steps)) if rng.random() < 0.04]
    return steps, [rng.randint(1, len(steps) + 2) for _ in range(3)], blocked


def run(made: Recipe, inputs: list[Any], engine: Any) -> Any:
    """The loss of a recipe; ``engine`` knows control flow."""
    values = list(inputs)
    for k, step in enumerate(made.steps):
        value = apply(step, values, engine)
        values.append(engine.block(value) if k in made.blocked else value)
    parts = [values[k].sum() for k in made.result]
    total = parts[0]
    for p in parts[1:]:
        total = total + p
    return total * 1.0


def apply(step: Any, values: list[Any], engine: Any) -> Any:
    kind = step[0]
    if kind == "while":
        _, count, starts, body, chosen = step
        results = engine.loop(
            count, [values[k] for k in starts], lambda *s: returned(body, values, s, engine)
        )
        return results[chosen % len(starts)]
    if kind == "cond":
        _, on, yes, no, chosen = step
        p = values[on]
        results = engine.cond(
            p,
            lambda: returned(yes, values, (p,), engine)[:2],
            lambda: returned(no, values, (p,), engine)[:2],
        )
        return results[chosen]
    if kind == "rnn":
        _, length, x, h, body = step
        return engine.rnn(
            length, values[x], values[h], lambda xt, s: returned(body, values, (xt, s), engine)
        )
    if kind in UNARY:
        return unary(kind, values[step[1]])
    return binary(kind, values[step[1]], values[step[2]])


def returned(body: Any, values: list[Any], local: tuple[Any, ...], engine: Any) -> list[Any]:
    """Run the steps of a block on the values around it and its own (three places, repeated if need be)."""
    steps, offsets, blocked = body
    inner = [*values, *(local[k % len(local)] for k in range(3))]
    for k, step in enumerate(steps):
        value = mg.tanh(apply(step, inner, engine))
        inner.append(engine.block(value) if k in blocked else value)
    return [inner[-k] for k in offsets]


def unary(kind: str, a: Any) -> Any:
    if kind in ("tanh", "sin", "square", "neg", "sigmoid", "clone", "cumsum"):
        return getattr(mg, kind)(mg.tanh(a) if kind == "square" else a)
    if kind == "exp_small":
        return mg.exp(mg.tanh(a))
    if kind == "scale":
        return 0.5 * a - 0.25
    if kind == "sqrt_abs":
        return mg.sqrt(a * a + 0.5)
    if kind == "reverse":
        return mg.flip(a)
    head, tail = mg.split(a, [1, SIZE - 1])
    return mg.concat([tail, head * 2.0])  # slice_pad


def binary(kind: str, a: Any, b: Any) -> Any:
    if kind == "div_safe":
        return a / (b * b + 1.0)
    if kind == "maximum":
        return mg.maximum(a, b + 0.013)
    if kind == "concat_split":
        first, _, third = mg.split(mg.concat([a, b, a]), 3)
        return first * 0.5 + third
    if kind == "stack_sum":
        return mg.sum(mg.stack([a, b]), axis=0)
    if kind == "outer":
        grid = mg.reshape(a, [SIZE, 1]) * mg.tanh(b)
        return mg.mean(grid, axis=1)
    if kind == "where":
        return mg.where(a > b + 0.017, a, b * 2.0)
    if kind == "add_n":
        return mg.add_n(a, b, a)
    if kind == "mul":
        return mg.tanh(a) * b
    return getattr(mg, kind)(a, b)


class Eager:
    """Control flow is Python's."""

    def block(self, value: Any) -> Any:
        return value.detach()

    def loop(self, count: int, state: list[Any], body: Any) -> list[Any]:
        for _ in range(count):
            state = body(*state)[: len(state)]
        return state

    def cond(self, p: Any, yes: Any, no: Any) -> Any:
        return yes() if float(p.sum().item()) > 0.0 else no()

    def rnn(self, length: int, x: Any, h: Any, body: Any) -> Any:
        outs = []
        for t in range(length):
            y, h = body(x * float(t + 1), h)[:2]
            outs.append(y)
        for y in outs:
            h = h + y
        return h


class EveryWay(Eager):
    """Both branches of a cond, all steps a loop may have: a gradient that can flow at all flows."""

    def loop(self, count: int, state: list[Any], body: Any) -> list[Any]:
        total = [s * 1.0 for s in state]
        for _ in range(len(state)):
            state = body(*state)[: len(state)]
            total = [a + b for a, b in zip(total, state, strict=True)]
        return total

    def cond(self, p: Any, yes: Any, no: Any) -> Any:
        return [a + b for a, b in zip(yes(), no(), strict=True)]

    def rnn(self, length: int, x: Any, h: Any, body: Any) -> Any:
        total = h * 1.0
        for _ in range(2):
            y, h = body(x, h)[:2]
            total = total + y + h
        return total


def reached(made: Recipe) -> list[bool]:
    """For each input, whether any gradient can flow to it from the loss, whatever runs."""
    leaves = [mg.tensor(v, requires_grad=True) for v in made.inputs]
    loss = run(made, leaves, EveryWay())
    if loss.requires_grad:
        loss.backward()
    return [x.grad is not None for x in leaves]


class Static:
    """Control flow is operators with blocks."""

    def block(self, value: Any) -> Any:
        if not value.persistable and not value.is_data:
            made = value * 1.0
            made.stop_gradient = True
            return made
        return value

    def loop(self, count: int, state: list[Any], body: Any) -> list[Any]:
        n = len(state)
        out = static.while_loop(
            lambda i, *s: i < count, lambda i, *s: [i + 1, *body(*s)[:n]], [np.asarray(0), *state]
        )
        return out[1:]

    def cond(self, p: Any, yes: Any, no: Any) -> Any:
        return static.cond(p.sum() > 0.0, yes, no)

    def rnn(self, length: int, x: Any, h: Any, body: Any) -> Any:
        seq = np.arange(1.0, length + 1.0).reshape(length, 1) * np.ones((length, SIZE))
        scaled = mg.reshape(x, [1, SIZE]) * seq

        def step(xt: Any, s: Any) -> Any:
            y, s = body(xt, s)[:2]
            return [y], [s]

        (ys,), (last,) = static.static_rnn(step, [scaled], [h])
        return last + mg.sum(ys, axis=0)


def eager(made: Recipe) -> tuple[float, list[np.ndarray]]:
    """Loss and gradients by the eager engine."""
    leaves = [mg.tensor(v, requires_grad=True) for v in made.inputs]
    loss = run(made, leaves, Eager())
    if not loss.requires_grad:
        return float(loss.item()), [np.zeros(SIZE) for _ in leaves]
    loss.backward()
    return float(loss.item()), [
        np.zeros(SIZE) if x.grad is None else x.grad.numpy() for x in leaves
    ]


def program(made: Recipe) -> tuple[Any, Any, list[Any]]:
    """The program of a recipe with its backward part: (program, loss, gradients or None)."""
    prog = static.Program()
    with static.program_guard(prog):
        inputs = [static.parameter(f"p{k}", v) for k, v in enumerate(made.inputs)]
        loss = run(made, inputs, Static())
        pairs = {p.name: g for p, g in static.append_backward(loss)}
    return prog, loss, [pairs.get(f"p{k}") for k in range(len(inputs))]


def values_of(prog: Any, loss: Any, grads: list[Any]) -> tuple[float, list[np.ndarray]]:
    names = [loss.name, *(g.name for g in grads if g is not None)]
    found = iter(static.Executor().run(prog, fetch_list=names))
    total = float(next(found))
    return total, [np.zeros(SIZE) if g is None else next(found) for g in grads]


def differences(
    prog: Any, loss: Any, made: Recipe, along: list[np.ndarray], step: float = 1e-6
) -> float:
    """The slope of the program's own loss in a direction, with its inputs moved; blocked values move too."""
    ends = []
    for sign in (1, -1):
        executor = static.Executor()
        for k, (v, d) in enumerate(zip(made.inputs, along, strict=True)):
            executor.scope.values[f"p{k}"] = np.asarray(v) + sign * step * d
        ends.append(float(executor.run(prog, fetch_list=[loss])[0]))
    return (ends[0] - ends[1]) / (2 * step)
