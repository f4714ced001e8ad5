"""Random functions that can be read by any engine: plans of steps, with loops and choices inside.

A plan knows shapes and indices, not arrays.  `run` carries it out in a world: Tensors, Variables, or dual numbers,
which carry a derivative forward and share no code with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static

Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = ((), (3,), (2, 3), (3, 2), (2, 1))


@dataclass(frozen=True)
class Step:
    """One operation; ``inputs`` are places in the list of values, ``plans`` the blocks it holds."""

    op: str
    inputs: tuple[int, ...]
    attr: Any = None
    plans: tuple[Plan, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Steps, and the places of what comes out; a plan inside a step sees all values before it."""

    steps: tuple[Step, ...]
    outs: tuple[int, ...]


@dataclass(frozen=True)
class RandomFunction:
    """A plan and the arguments to call it with."""

    plan: Plan
    args: tuple[np.ndarray, ...]

    @property
    def straight(self) -> bool:
        return not any(s.plans for s in self.plan.steps)

    def __call__(self, *values: Any) -> Any:
        world = (
            Duals if isinstance(values[0], Dual) else Programs if is_variable(values) else Tensors
        )
        return run(self.plan, list(values), world)[0]


def is_variable(values: Any) -> bool:
    return isinstance(values[0], static.Variable)


def run(plan: Plan, values: list[Any], world: Any) -> list[Any]:
    """Carry out a plan; nested plans start from the values made so far."""
    values = list(values)
    for step in plan.steps:
        given = [values[i] for i in step.inputs]
        if step.op == "while":
            found = world.repeat(step, given, values)
        elif step.op == "cond":
            found = world.choose(step, given[0], values)
        else:
            found = world.apply(step, given)
        values += found if isinstance(found, list) else [found]
    return [values[k] for k in plan.outs]


# -- the table of operations ---------------------------------------------------------------


@dataclass(frozen=True)
class Dual:
    """A value and its derivative along one direction."""

    x: Any
    d: Any


def by_slope(value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Callable[..., Dual]:
    return lambda attr, a: Dual(value(a.x), slope(a.x) * a.d)


def linear(function: Callable[..., Any]) -> Callable[..., Any]:
    def dual(attr: Any, *given: Dual) -> Any:
        out = function(attr, *(a.x for a in given))
        along = function(attr, *(a.d for a in given))
        if isinstance(out, list):
            return [Dual(o, d) for o, d in zip(out, along, strict=True)]
        return Dual(out, along)

    return dual


def softmax(attr: Any, a: Dual) -> Dual:
    e = np.exp(a.x - a.x.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    return Dual(y, y * (a.d - (y * a.d).sum(-1, keepdims=True)))


def larger(attr: Any, a: Dual, b: Dual) -> Dual:
    share = np.where(a.x == b.x, 0.5, a.x > b.x)
    return Dual(np.maximum(a.x, b.x), share * a.d + (1 - share) * b.d)


def swapped(attr: Any, x: Any) -> Any:
    return np.transpose(x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


#: name → how many inputs, on Values, on dual numbers
TABLE: dict[str, tuple[int, Callable[..., Any], Callable[..., Any]]] = {
    "sin": (1, lambda k, x: mg.sin(x), by_slope(np.sin, np.cos)),
    "tanh": (1, lambda k, x: mg.tanh(x), by_slope(np.tanh, lambda x: 1 - np.tanh(x) ** 2)),
    "sigmoid": (
        1,
        lambda k, x: mg.sigmoid(x),
        by_slope(sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x))),
    ),
    "neg": (1, lambda k, x: -x, by_slope(np.negative, lambda x: -1.0)),
    "square": (1, lambda k, x: mg.square(x), by_slope(np.square, lambda x: 2 * x)),
    "relu": (1, lambda k, x: mg.relu(x), by_slope(lambda x: np.maximum(x, 0), lambda x: x > 0)),
    "times": (1, lambda k, x: x * k, lambda k, a: Dual(a.x * k, a.d * k)),
    "plus": (1, lambda k, x: k + x, lambda k, a: Dual(a.x + k, a.d)),
    "add": (2, lambda k, x, y: x + y, linear(lambda k, x, y: x + y)),
    "sub": (2, lambda k, x, y: x - y, linear(lambda k, x, y: x - y)),
    "mul": (2, lambda k, x, y: x * y, lambda k, a, b: Dual(a.x * b.x, a.x * b.d + a.d * b.x)),
    "div": (
        2,
        lambda k, x, y: x / (mg.square(y) + 1.0),
        lambda k, a, b: Dual(
            a.x / (b.x**2 + 1),
            a.d / (b.x**2 + 1) - a.x * 2 * b.x * b.d / (b.x**2 + 1) ** 2,
        ),
    ),
    "larger": (2, lambda k, x, y: mg.maximum(x, y), larger),
    "matmul": (
        2,
        lambda k, x, y: x @ y,
        lambda k, a, b: Dual(a.x @ b.x, a.x @ b.d + a.d @ b.x),
    ),
    "sum": (1, lambda k, x: mg.sum(x, axis=k), linear(lambda k, x: np.sum(x, axis=k))),
    "mean": (1, lambda k, x: mg.mean(x, axis=k), linear(lambda k, x: np.mean(x, axis=k))),
    "softmax": (1, lambda k, x: mg.softmax(x, axis=-1), softmax),
    "transpose": (1, lambda k, x: mg.permute_dims(x), linear(swapped)),
    "row": (1, lambda k, x: x[k], linear(lambda k, x: x[k])),
    "unbind": (1, lambda k, x: mg.unbind(x), linear(lambda k, x: list(x))),
    "stack": (2, lambda k, x, y: mg.stack([x, y]), linear(lambda k, x, y: np.stack([x, y]))),
    "stop": (1, lambda k, x: stopped(x), lambda k, a: Dual(a.x, np.zeros_like(a.d))),
}

ELEMENTWISE = ("sin", "tanh", "sigmoid", "neg", "square", "relu", "times", "plus", "stop")
BINARY = ("add", "sub", "mul", "div", "larger")


def stopped(x: Any) -> Any:
    """The value without its gradient, in the way of each engine."""
    if isinstance(x, mg.Tensor):
        return x.detach()
    made = mg.assign(x)
    made.stop_gradient = True
    return made


@cache
def out_shapes(op: str, attr: Any, *shapes: Shape) -> list[Shape]:
    """The shapes an operation gives: those of NumPy on zeros."""
    found = TABLE[op][2](attr, *(Dual(np.zeros(s), np.zeros(s)) for s in shapes))
    return [f.x.shape for f in found] if isinstance(found, list) else [np.shape(found.x)]


# -- the worlds ----------------------------------------------------------------------------


class Tensors:
    """Python's own loops and branches."""

    @staticmethod
    def apply(step: Step, given: list[Any]) -> Any:
        return TABLE[step.op][1](step.attr, *given)

    @staticmethod
    def repeat(step: Step, carried: list[Any], values: list[Any]) -> Any:
        for _ in range(step.attr):
            carried = run(step.plans[0], [*values, *carried], Tensors)
        return [c * 1.0 for c in carried]

    @staticmethod
    def choose(step: Step, value: Any, values: list[Any]) -> Any:
        return run(step.plans[float(mg.sum(value)) <= step.attr], values, Tensors)


class Programs:
    """Operators that hold blocks."""

    apply = Tensors.apply

    @staticmethod
    def repeat(step: Step, carried: list[Any], values: list[Any]) -> Any:
        def body(i: Any, *now: Any) -> Any:
            return i + 1, *run(step.plans[0], [*values, *now], Programs)

        outs = static.while_loop(lambda i, *now: i < step.attr, body, [0, *carried])
        return [c * 1.0 for c in outs[1:]]

    @staticmethod
    def choose(step: Step, value: Any, values: list[Any]) -> Any:
        plans = step.plans
        return static.cond(
            mg.sum(value) > step.attr,
            lambda: run(plans[0], values, Programs),
            lambda: run(plans[1], values, Programs),
        )


class Unrolled(Programs):
    """Loops written out, operators of choice kept."""

    repeat = Tensors.repeat


class Taken(Tensors):
    """Loops written out, and of every choice the branch that an eager run takes.

    The choices are noted on Tensors (``noted``) and followed on Variables, in the same order.
    """

    def __init__(self) -> None:
        self.noted: list[bool] = []
        self.followed = 0

    def repeat(self, step: Step, carried: list[Any], values: list[Any]) -> Any:
        for _ in range(step.attr):
            carried = run(step.plans[0], [*values, *carried], self)
        return [c * 1.0 for c in carried]

    def choose(self, step: Step, value: Any, values: list[Any]) -> Any:
        if isinstance(value, static.Variable):
            other = self.noted[self.followed]
            self.followed += 1
        else:
            other = float(mg.sum(value)) <= step.attr
            self.noted.append(other)
        return run(step.plans[other], values, self)


class Duals:
    """Values with a derivative."""

    @staticmethod
    def apply(step: Step, given: list[Any]) -> Any:
        return TABLE[step.op][2](step.attr, *given)

    @staticmethod
    def repeat(step: Step, carried: list[Any], values: list[Any]) -> Any:
        for _ in range(step.attr):
            carried = run(step.plans[0], [*values, *carried], Duals)
        return carried

    @staticmethod
    def choose(step: Step, value: Any, values: list[Any]) -> Any:
        return run(step.plans[float(np.sum(value.x)) <= step.attr], values, Duals)


# -- drawing -------------------------------------------------------------------------------


class Writer:
    """Writes a random plan; ``shapes`` are those of the values so far."""

    def __init__(self, rng: np.random.Generator, shapes: list[Shape], depth: int) -> None:
        self.rng, self.shapes, self.depth = rng, shapes, depth
        self.steps: list[Step] = []

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def place(self, fits: Callable[[Shape], bool] = lambda s: True) -> int | None:
        """A value of a fitting shape; new ones are likelier than old ones."""
        fitting = [k for k, s in enumerate(self.shapes) if fits(s)]
        if not fitting:
            return None
        recent = fitting[-6:] if self.rng.random() < 0.7 else fitting
        return int(self.pick(recent))

    def add(self, op: str, *inputs: int, attr: Any = None) -> int:
        self.steps.append(Step(op, inputs, attr))
        self.shapes += out_shapes(op, attr, *(self.shapes[i] for i in inputs))
        return len(self.shapes) - 1

    def one(self) -> None:
        """One random step, of a kind that fits."""
        kind = self.pick(KINDS if self.depth else KINDS[:-2])
        getattr(self, f"_{kind}")()

    def _elementwise(self) -> None:
        self.add(self.pick(ELEMENTWISE), self.place(), attr=float(self.pick((0.5, -1.5, 2.0))))

    def _binary(self) -> None:
        a = self.place()
        fits = [k for k, s in enumerate(self.shapes) if broadcasts(self.shapes[a], s)]
        b = self.pick(fits[-6:])
        self.add(self.pick(BINARY), *((a, b) if self.rng.random() < 0.5 else (b, a)))

    def _reduce(self) -> None:
        a = self.place()
        axes = [None, *range(len(self.shapes[a]))]
        self.add(self.pick(("sum", "mean")), a, attr=self.pick(axes))

    def _move(self) -> None:
        a = self.place(lambda s: len(s) == 2)
        if a is not None:
            op = self.pick(("transpose", "row", "unbind", "softmax"))
            self.add(op, a, attr=-1 if op == "row" else None)

    def _join(self) -> None:
        a, b = self.place(lambda s: s == (3,)), self.place(lambda s: s == (3,))
        if a is not None:
            self.add("stack", a, b)

    def _matmul(self) -> None:
        a, b = self.place(lambda s: s == (2, 3)), self.place(lambda s: s == (3, 2))
        if a is not None and b is not None:
            self.add("tanh", self.add("matmul", a, b))

    def _while(self) -> None:
        carried = tuple(self.place() for _ in range(int(self.rng.integers(1, 4))))
        shapes = [self.shapes[c] for c in carried]
        body = self.inner([*self.shapes, *shapes], shapes)
        self.steps.append(Step("while", carried, int(self.rng.integers(0, 4)), (body,)))
        self.shapes += shapes

    def _cond(self) -> None:
        shape = self.pick(self.shapes)
        plans = tuple(self.inner(list(self.shapes), [shape]) for _ in range(2))
        self.steps.append(Step("cond", (self.place(),), float(self.rng.normal()), plans))
        self.shapes.append(shape)

    def inner(self, shapes: list[Shape], results: list[Shape]) -> Plan:
        """A plan of a few steps whose results have given shapes."""
        inner = Writer(self.rng, shapes, self.depth - 1)
        for _ in range(int(self.rng.integers(0, 4))):
            inner.one()
        outs = []
        for shape in results:
            a, b = (inner.place(lambda s, shape=shape: s == shape) for _ in range(2))
            op = self.pick(("add", "sub", "mul"))
            outs.append(inner.add("tanh", inner.add(op, inner.add("times", a, attr=0.5), b)))
        return Plan(tuple(inner.steps), tuple(outs))


KINDS = (*("elementwise", "binary") * 3, "reduce", "move", "join", "matmul", "while", "cond")


def broadcasts(a: Shape, b: Shape) -> bool:
    try:
        return np.broadcast_shapes(a, b) in (a, b)
    except ValueError:
        return False


def draw(seed: int, steps: int = 12, depth: int = 2) -> RandomFunction:
    """A random function of three arguments that returns one number; the same for the same seed."""
    return write(np.random.default_rng(seed), steps, depth)


def write(rng: Any, steps: int, depth: int) -> RandomFunction:
    """A random function made by the choices of a generator; long ones are rarer than short ones."""
    shapes = [SHAPES[int(rng.integers(0, len(SHAPES)))] for _ in range(3)]
    args = tuple(np.asarray(rng.uniform(-1, 1, s)) for s in shapes)
    writer = Writer(rng, list(shapes), depth)
    for _ in range(1 + int(steps * rng.random() ** 2)):
        writer.one()
    total = writer.add("sum", len(writer.shapes) - 1)
    for _ in range(3):
        k = int(rng.integers(0, len(writer.shapes)))
        part = writer.add("times", writer.add("mean", k), attr=1.5)
        total = writer.add("add", total, part)
    return RandomFunction(Plan(tuple(writer.steps), (total,)), args)


class Choices:
    """The part of NumPy's generator that is used here, made of a list of numbers: Hypothesis can shrink it."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.numbers = iter(numbers)

    def integers(self, low: int, high: int | None = None) -> int:
        low, high = (0, low) if high is None else (low, high)
        return low + next(self.numbers, 0) % (high - low)

    def random(self) -> float:
        return self.integers(0, 1000) / 1000

    def uniform(self, low: float, high: float, shape: Shape) -> Any:
        n = int(np.prod(shape))
        flat = [low + (high - low) * (self.integers(0, 97) + 0.37) / 97 for _ in range(n)]
        return np.reshape(flat, shape)

    def normal(self) -> float:
        return self.integers(0, 200) / 100 - 1.003
