"""The corpus read by the engines that the course builds, step by step.

A case is Python that calls ``mg.…``.  Here ``mg`` is what a step offers: where a step has no such function or
operator, it cannot express the case, and `Inexpressible` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tests.steps.literate import load
from tests.trust.readings import Found

STEPS = Path(__file__).parents[2] / "steps"


class Inexpressible(Exception):
    """The step has no such operation."""


class Offer:
    """What stands for ``mg``: the functions a step has."""

    def __init__(self, functions: dict[str, Callable[..., Any]]) -> None:
        self.functions = functions

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self.functions:
            raise Inexpressible(name)
        return self.functions[name]


def offered(function: Callable[..., Any], offer: Offer) -> Callable[..., Any]:
    """The function with another ``mg``, and so are the functions of the corpus that it calls."""
    space = dict(function.__globals__)
    for name, value in space.items():
        if isinstance(value, FunctionType) and value.__globals__ is function.__globals__:
            space[name] = FunctionType(value.__code__, space, name, value.__defaults__)
    space["mg"] = offer
    return FunctionType(function.__code__, space, argdefs=function.__defaults__)


@cache
def module(number: int) -> ModuleType:
    (path,) = STEPS.glob(f"step{number:02}_*.py")
    return load(path.stem)


def read(number: int, function: Callable[..., Any], args: Any) -> Found:
    """Value and gradients by one step's engine.  Raises `Inexpressible`."""
    if number not in KINDS:
        raise Inexpressible(f"step {number} has no engine of its own")
    if len({a.shape for a in args}) > 1 and number not in SPREADING:
        raise Inexpressible("broadcasting")
    try:
        return KINDS[number](module(number), function, args)
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        raise Inexpressible(str(error)) from error


# -- engines of objects: steps 6 to 12 -----------------------------------------------------


def by_objects(step: ModuleType, function: Callable[..., Any], args: Any) -> Found:
    """Variables or Tensors with operators, backward from the result."""
    nodes = hasattr(step, "Tensor")
    leaves = [
        step.Tensor(a, requires_grad=True) if nodes else step.Variable(a.copy()) for a in args
    ]
    names = ("exp", "square", "sin", "cos", "tanh", "log", "add", "mul", "neg", "unbind")
    offer = {n: getattr(step, n) for n in names if hasattr(step, n)}
    if hasattr(step, "stack"):
        offer["stack"] = lambda rows: step.stack(*rows)
    if hasattr(leaves[0], "sum"):
        offer["sum"] = lambda x, axis=None, keepdims=False: x.sum(axis, keepdims)
        offer["reshape"] = lambda x, shape: x.reshape(*shape)
        offer["broadcast_to"] = lambda x, shape: x.broadcast_to(*shape)
        offer["permute_dims"] = lambda x: x.T
    out = offered(function, Offer(offer))(*leaves)
    if np.shape(out.data):
        raise Inexpressible("the result is no single number")
    value = np.asarray(out.data)
    out.backward()
    return value, [gradient(x, a) for x, a in zip(leaves, args, strict=True)]


def gradient(leaf: Any, a: np.ndarray) -> np.ndarray:
    g = leaf.grad
    return (
        np.zeros_like(a)
        if g is None
        else np.asarray(getattr(g, "data", g) if not isinstance(g, np.ndarray) else g)
    )


# -- engines of names: steps 14 to 19 ------------------------------------------------------


class Named:
    """A variable of a program that is being written: Python's operators append an op."""

    def __init__(self, book: Any, name: str, shape: Any) -> None:
        self.book, self.name, self.shape = book, name, shape

    def __add__(self, other: Any) -> Named:
        return self.book.op("add", self, other)

    def __radd__(self, other: Any) -> Named:
        return self.book.op("add", other, self)

    def __sub__(self, other: Any) -> Named:
        return self.book.op("sub", self, other)

    def __rsub__(self, other: Any) -> Named:
        return self.book.op("sub", other, self)

    def __mul__(self, other: Any) -> Named:
        return self.book.op("mul", self, other)

    def __rmul__(self, other: Any) -> Named:
        return self.book.op("mul", other, self)

    def __matmul__(self, other: Any) -> Named:
        if len(self.shape) != 2 or len(other.shape) != 2:
            raise Inexpressible("products of matrices only")
        return self.book.op("matmul", self, other)

    def __pow__(self, n: int) -> Named:
        return self.book.op("square", self) if n == 2 else self.book.power(self, n)


class Book:
    """Writes ops of one step; a number becomes a variable of the other operand's shape."""

    def __init__(self, step: ModuleType) -> None:
        self.step, self.count = step, 0
        if "matmul" not in step.OPS and "add" not in step.OPS:
            raise Inexpressible("no table")

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def op(self, type: str, *inputs: Any, **attrs: Any) -> Named:
        if type not in self.step.OPS:
            raise Inexpressible(type)
        shape = next(x.shape for x in inputs if isinstance(x, Named))
        named = [x if isinstance(x, Named) else self.constant(x, shape) for x in inputs]
        if type in ("add", "sub", "mul") and len({x.shape for x in named}) > 1:
            raise Inexpressible("broadcasting")
        return self.append(type, named, attrs)

    def power(self, x: Named, n: int) -> Named:
        return self.op("power", x, n=n)

    def offer(self) -> Offer:
        names = {
            "sum": "reduce_sum",
            "mean": "mean",
            "exp": "exp",
            "square": "square",
            "tanh": "tanh",
            "sigmoid": "sigmoid",
        }
        return Offer({n: lambda x, t=t: self.op(t, x) for n, t in names.items()})


class ProgramBook(Book):
    """Blocks of a Program: steps 17 to 19."""

    def __init__(self, step: ModuleType) -> None:
        super().__init__(step)
        self.block = step.Program().blocks[0]

    def leaf(self, a: np.ndarray) -> Named:
        name = self.fresh()
        self.block.create_var(name, a.shape, persistable=True)
        return Named(self, name, a.shape)

    def constant(self, value: Any, shape: Any) -> Named:
        name = self.fresh()
        self.block.append_op("fill_constant", out=name, shape=shape, value=float(value))
        return Named(self, name, shape)

    def append(self, type: str, inputs: list[Named], attrs: Any) -> Named:
        name = self.fresh()
        made = self.block.append_op(type, *(x.name for x in inputs), out=name, **attrs)
        return Named(self, name, made.shape)


def by_program(step: ModuleType, function: Callable[..., Any], args: Any) -> Found:
    """The program written down, its backward part appended, then run."""
    book = ProgramBook(step)
    leaves = [book.leaf(a) for a in args]
    out = offered(function, book.offer())(*leaves)
    if out.shape:
        raise Inexpressible("the result is no single number")
    pairs = {p.name: g.name for p, g in step.append_backward(book.block.var(out.name))}
    scope = step.run(book.block.program, {x.name: a for x, a in zip(leaves, args, strict=True)})
    grads = [
        scope[pairs[x.name]] if x.name in pairs else np.zeros_like(a)
        for x, a in zip(leaves, args, strict=True)
    ]
    return np.asarray(scope[out.name]), [np.asarray(g) for g in grads]


class NetBook(Book):
    """Operators that run at once and become a network: steps 14 and 15."""

    def __init__(self, step: ModuleType) -> None:
        super().__init__(step)
        self.scope, self.ops = step.Scope(), []

    def leaf(self, a: np.ndarray) -> Named:
        name = self.fresh()
        self.scope[name] = np.array(a)
        return Named(self, name, a.shape)

    def constant(self, value: Any, shape: Any) -> Named:
        return self.leaf(np.full(shape, float(value)))

    def append(self, type: str, inputs: list[Named], attrs: Any) -> Named:
        name = self.fresh()
        slots = self.step.find(type).inputs
        given = {slot: x.name for slot, x in zip(slots, inputs, strict=True)}
        op = self.step.Operator(type, given, {"out": name}, attrs)
        op.run(self.scope)
        self.ops.append(op)
        return Named(self, name, np.shape(self.scope[name]))


def by_net(step: ModuleType, function: Callable[..., Any], args: Any) -> Found:
    """The network of all operators, and the network that ``backward`` makes of it."""
    book = NetBook(step)
    leaves = [book.leaf(a) for a in args]
    out = offered(function, book.offer())(*leaves)
    if out.shape or not book.ops:
        raise Inexpressible("the result is no single number")
    net = step.NetOp(book.ops)
    for name in net.outputs["out"]:  # whatever leaves the network needs a gradient
        book.scope[name + "@GRAD"] = np.full(np.shape(book.scope[name]), float(name == out.name))
    step.backward(net).run(book.scope)
    found = [
        book.scope[x.name + "@GRAD"] if x.name + "@GRAD" in book.scope else np.zeros_like(a)
        for x, a in zip(leaves, args, strict=True)
    ]
    return np.asarray(book.scope[out.name]), [np.asarray(g) for g in found]


#: Steps 1 to 5 have no operators, 13, 16 and 20 no engine of this kind.  Steps 14 and 17 do not add up the gradients
#: of a name that is read twice: that is the mistake which steps 15 and 18 show and repair.
KINDS: dict[int, Callable[..., Found]] = {
    **dict.fromkeys(range(6, 13), by_objects),
    **dict.fromkeys((14, 15), by_net),
    **dict.fromkeys((17, 18, 19), by_program),
}
REPAIRED_BY = {14: 15, 17: 18}
#: steps whose gradients are summed over stretched axes
SPREADING = (9,)
