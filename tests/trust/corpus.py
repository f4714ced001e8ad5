"""One list of tiny functions, each the smallest that shows one thing; every reading runs all of them.

A case is a function of a few arrays that returns one number.  ``program`` is the same function written with
operators that hold blocks, where Python's own ``if`` and ``while`` cannot be recorded in a program; ``straight``
says that both readings run the same operations in the same order, so their numbers agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static


@dataclass(frozen=True)
class Case:
    """A function, where to call it, and how its readings compare."""

    name: str
    function: Callable[..., Any]
    args: tuple[np.ndarray, ...]
    program: Callable[..., Any] | None = None
    straight: bool = True

    @property
    def traced(self) -> Callable[..., Any]:
        return self.program or self.function


CASES: list[Case] = []


def numbers(*shape: int, seed: int = 0, low: float = 0.3, high: float = 1.7) -> np.ndarray:
    """Numbers away from every kink and pole, the same each time."""
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(low, high, shape))


def case(name: str, function: Callable[..., Any], *shapes: tuple[int, ...], **facts: Any) -> None:
    args = tuple(numbers(*shape, seed=k) for k, shape in enumerate(shapes))
    CASES.append(Case(name, function, args, **facts))


def twice_negated(x: Any) -> Any:
    for _ in range(2):
        x = -x
    return x


# -- who uses a value, and how often -------------------------------------------------------

case("a value itself", lambda x: x * 1.0, ())
case("a value and itself", lambda x: x + x, ())
case("a value times itself", lambda x: x * x, ())
case("a value three times", lambda x: x * x * x + x, ())
case("two branches meet", lambda x: (x * 2.0) * mg.sin(x), ())
case("a diamond of diamonds", lambda x: (lambda a: (a + a) * (a * a))(x * x + x), ())
case("an argument that is not used on the way", lambda x, y: x * 2.0 + y * 0.0, (), ())
case("an early value used late", lambda x, y: mg.exp(mg.sin(x * y)) * x, (), ())
case("fan-out of five", lambda x: mg.sum(x + x * 2.0 + x * 3.0 + mg.exp(x) + mg.sin(x)), (3,))
case("a result nobody wants", lambda x, y: (mg.exp(y), x * y)[1], (), ())
case("a shared factor", lambda x, y, z: x * y + x * z + x, (), (), ())
case("a chain of signs", twice_negated, ())
case("a long chain", lambda x: [x := mg.sin(x) for _ in range(20)][-1], ())
case("a sum of many", lambda x: sum((x * float(k) for k in range(1, 8)), x), ())
case("add_n of one value", lambda x: mg.add_n([x, x * 2.0, x]), ())
case("a detour through zero", lambda x: x * 0.0 + x, ())

# -- arithmetic ----------------------------------------------------------------------------

case("quotient", lambda x, y: mg.sum(x / y), (4,), (4,))
case("power", lambda x: mg.sum(x**3), (4,))
case("power of two values", lambda x, y: mg.sum(x**y), (3,), (3,))
case("numbers from the left", lambda x: mg.sum(2.0 / (1.0 - x * 3.0) + 1.0 * x), (3,))
case("exponential of a logarithm", lambda x: mg.sum(mg.exp(mg.log(x) * 2.0)), (3,))
case("square root of a square", lambda x: mg.sum(mg.sqrt(x * x + 1.0)), (3,))
case("all of trigonometry", lambda x: mg.sum(mg.sin(x) * mg.cos(x) + mg.tanh(x)), (2, 3))
case("angle of a point", lambda x, y: mg.sum(mg.atan2(x, y)), (3,), (3,))
case("absolute value of a difference", lambda x, y: mg.sum(mg.abs(x - y * 3.0)), (3,), (3,))
case("larger of two", lambda x, y: mg.sum(mg.maximum(x, y) * mg.minimum(x, y)), (4,), (4,))
case("clipped", lambda x: mg.sum(mg.clip(x * x, 0.5, 1.5)), (6,))
case("picked by a condition", lambda x, y: mg.sum(mg.where(x > y, x * y, x + y)), (5,), (5,))

# -- broadcasting --------------------------------------------------------------------------

case("a number against a vector", lambda x, y: mg.sum(x * y), (), (4,))
case("a row against a matrix", lambda x, y: mg.sum((x + y) * x), (2, 3), (3,))
case("a column against a row", lambda x, y: mg.sum(mg.exp(x * y)), (3, 1), (1, 4))
case("both sides stretched", lambda x, y: mg.sum(x / y), (2, 1, 3), (4, 1))
case("a stretched value used twice", lambda x, y: mg.sum(x * y + mg.sin(y)), (3, 2), (2,))
case("a bias", lambda x, w, b: mg.sum(mg.tanh(x @ w + b)), (4, 3), (3, 2), (2,))

# -- reductions and shapes -----------------------------------------------------------------

case("sum over one axis", lambda x: mg.sum(mg.sum(x, axis=0) ** 2), (3, 4))
case("mean over the last axis", lambda x: mg.sum(mg.mean(x, axis=-1, keepdims=True) * x), (3, 4))
case("product", lambda x: mg.prod(x), (4,))
case("largest element", lambda x: mg.max(x * x) + mg.min(x), (5,))
case("variance", lambda x: mg.var(x) + mg.std(x), (5,))
case("log of a sum of exponentials", lambda x: mg.sum(mg.logsumexp(x, axis=1)), (2, 3))
case("softmax", lambda x: mg.sum(mg.softmax(x, axis=-1) ** 2), (2, 3))
case("running sums", lambda x: mg.sum(mg.cumsum(x, axis=0) ** 2), (4,))
case(
    "reshape and back",
    lambda x: mg.sum(mg.reshape(mg.reshape(x, shape=(6,)), shape=(3, 2)) ** 2),
    (2, 3),
)
case("transpose", lambda x, y: mg.sum(mg.permute_dims(x) * y), (2, 3), (3, 2))
case("a slice", lambda x: mg.sum(x[1:3] ** 2) + x[0], (4,))
case("overlapping slices", lambda x: mg.sum(x[:-1] * x[1:]), (5,))
case("the same element twice", lambda x: mg.sum(mg.take(x, np.array([0, 0, 2]), axis=0) ** 2), (3,))
case(
    "split, changed, joined",
    lambda x: (lambda p: mg.sum(mg.concat([p[1] * 2.0, p[0]]) ** 2))(mg.split(x, 2)),
    (6,),
)
case("one part of a split", lambda x: mg.sum(mg.split(x, 3)[1] ** 2), (6,))
case("stacked with itself", lambda x, y: mg.sum(mg.stack([x, y, x]) ** 2), (3,), (3,))
case("broadcast on purpose", lambda x: mg.sum(mg.broadcast_to(x, shape=(3, 2)) ** 2), (2,))
case(
    "padded and rolled",
    lambda x: mg.sum(mg.roll(mg.pad(x, ((1, 2),)), 1, axis=0) * 2.0 * mg.pad(x, ((0, 3),))),
    (4,),
)

# -- matrices and nets ---------------------------------------------------------------------

case("matrix times vector", lambda a, x: mg.sum(a @ x), (3, 4), (4,))
case("a quadratic form", lambda a, x: mg.sum(x @ a * x), (3, 3), (3,))
case("matrices in a batch", lambda a, b: mg.sum((a @ b) ** 2), (2, 3, 4), (4, 2))
case(
    "weights shared by two layers", lambda x, w: mg.sum(mg.tanh(mg.tanh(x @ w) @ w)), (2, 3), (3, 3)
)
case(
    "weights shared with their transpose",
    lambda x, w: mg.sum((mg.tanh(x @ w) @ mg.permute_dims(w) - x) ** 2),
    (4, 3),
    (3, 2),
)
case("inverse and determinant", lambda a: mg.sum(mg.inv(a + 3.0 * mg.eye(2))) + mg.det(a), (2, 2))
case("convolution", lambda x, w: mg.sum(mg.conv2d(x, w) ** 2), (1, 1, 4, 4), (2, 1, 3, 3))
case("pooling", lambda x: mg.sum(mg.max_pool2d(x, kernel_size=2) ** 2), (1, 1, 4, 4))
case("cross entropy", lambda x: mg.cross_entropy(x, np.array([2, 0])), (2, 3))
case("mean squared error", lambda x, w, y: mg.mse(x @ w, y), (4, 3), (3, 1), (4, 1))


# -- choices and loops ---------------------------------------------------------------------


def by_value(x: Any) -> Any:
    return x * x if float(x) > 0.5 else mg.exp(x)


def by_value_program(x: Any) -> Any:
    return static.cond(x > 0.5, lambda: x * x, lambda: mg.exp(x))


def repeated(x: Any, n: int = 4) -> Any:
    y = x * 1.0
    for _ in range(n):
        y = mg.sin(y) * x
    return y


def repeated_program(x: Any, n: int = 4) -> Any:
    def body(i: Any, y: Any) -> Any:
        return i + 1, mg.sin(y) * x

    return static.while_loop(lambda i, y: i < n, body, [0, x * 1.0])[1]


def until_large(x: Any) -> Any:
    y = x * 1.0
    while float(y) < 10.0:
        y = y * y + x if float(y) > 2.0 else y * 2.0
    return y


def until_large_program(x: Any) -> Any:
    def body(y: Any) -> Any:
        return [static.cond(y > 2.0, lambda: y * y + x, lambda: y * 2.0)]

    return static.while_loop(lambda y: y < 10.0, body, [x * 1.0])[0]


def nested(x: Any) -> Any:
    total = x * 0.0
    for _ in range(3):
        y = x * 1.0
        for _ in range(2):
            y = mg.sin(y) + x
        total = total + y * x
    return total


def nested_program(x: Any) -> Any:
    def inner(j: Any, y: Any) -> Any:
        return j + 1, mg.sin(y) + x

    def outer(i: Any, total: Any) -> Any:
        y = static.while_loop(lambda j, y: j < 2, inner, [0, x * 1.0])[1]
        return i + 1, total + y * x

    return static.while_loop(lambda i, t: i < 3, outer, [0, x * 0.0])[1]


def recurrent(x: Any, w: Any, u: Any, h: Any) -> Any:
    total = 0.0
    for t in range(x.shape[0]):
        h = mg.tanh(x[t] @ w + h @ u)
        total = total + mg.sum(h * h)
    return total + mg.sum(h)


def recurrent_program(x: Any, w: Any, u: Any, h: Any) -> Any:
    def step(row: Any, state: Any) -> Any:
        new = mg.tanh(row @ w + state @ u)
        return [mg.sum(new * new)], [new]

    stacked, final = static.static_rnn(step, [x], [h])
    return mg.sum(stacked[0]) + mg.sum(final[0])


case("a choice by value", by_value, (), program=by_value_program, straight=False)
case("a loop of four steps", repeated, (), program=repeated_program, straight=False)
case("a loop that runs until", until_large, (), program=until_large_program, straight=False)
case("a loop in a loop", nested, (), program=nested_program, straight=False)
case(
    "a recurrent net",
    recurrent,
    (3, 2),
    (2, 2),
    (2, 2),
    (2,),
    program=recurrent_program,
    straight=False,
)
