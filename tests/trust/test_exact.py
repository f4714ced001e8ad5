"""Exact: on whole numbers every gradient of a polynomial is a whole number, and must be that number.

The oracle is forward mode in Python's own integers, which never round and never overflow.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.trust import readings
from tests.trust.random_functions import TABLE, Dual, Duals, Plan, RandomFunction, Writer, run

LINEAR = ("neg", "times", "plus")
LIMIT = 2**52  #: float64 holds every whole number up to here


class WholeWriter(Writer):
    """Writes plans of steps that keep whole numbers whole."""

    def one(self) -> None:
        getattr(
            self, self.pick(("_plain", "_plain", "_pair", "_pair", "_fold", "_move", "_join"))
        )()

    def _plain(self) -> None:
        op = self.pick((*LINEAR, "square", "relu"))
        self.add(op, self.place(), attr=int(self.pick((2, -3, 5))))

    def _pair(self) -> None:
        a = self.place()
        fits = [k for k, s in enumerate(self.shapes) if s in (self.shapes[a], ())]
        self.add(self.pick(("add", "sub", "mul")), a, self.pick(fits))

    def _fold(self) -> None:
        a = self.place()
        self.add("sum", a, attr=self.pick((None, *range(len(self.shapes[a])))))

    def _move(self) -> None:
        a, b = self.place(lambda s: s == (2, 3)), self.place(lambda s: s == (3, 2))
        if a is not None and b is not None and self.rng.random() < 0.5:
            self.add("matmul", a, b)
        elif a is not None:
            op = self.pick(("transpose", "row", "unbind"))
            self.add(op, a, attr=-1 if op == "row" else None)

    def _join(self) -> None:
        a, b = self.place(lambda s: s == (3,)), self.place(lambda s: s == (3,))
        if a is not None:
            self.add("stack", a, b)


def whole_function(seed: int) -> RandomFunction:
    """A polynomial of whole numbers from -3 to 3, none 0: relu has no kink there."""
    rng = np.random.default_rng(seed)
    shapes = [((), (3,), (2, 3), (3, 2))[int(k)] for k in rng.integers(0, 4, 3)]
    args = tuple(rng.integers(1, 4, s) * rng.choice([-1, 1], s) * 1.0 for s in shapes)
    writer = WholeWriter(rng, list(shapes), 0)
    for _ in range(int(rng.integers(1, 12))):
        writer.one()
    total = writer.add("sum", len(writer.shapes) - 1)
    return RandomFunction(Plan(tuple(writer.steps), (total,)), args)


def exactly(function: RandomFunction) -> tuple[int, list[np.ndarray]]:
    """Value and gradients in Python's integers: one pass of forward mode for each element."""
    at = [np.array(a.astype(int), dtype=object) for a in function.args]
    grads = [np.zeros(a.shape, dtype=object) for a in at]
    value = None
    for k, a in enumerate(at):
        for place in np.ndindex(*a.shape):
            unit = [np.full(x.shape, 0, dtype=object) for x in at]
            unit[k][place] = 1
            out = run(function.plan, [Dual(x, d) for x, d in zip(at, unit, strict=True)], Duals)[0]
            value, grads[k][place] = out.x, out.d
    return value, grads


def largest(function: RandomFunction) -> float:
    """The largest number on the way, roughly: that of the function of absolute values."""
    values = [Dual(np.abs(a), np.ones_like(a)) for a in function.args]
    size = 0.0
    for step in function.plan.steps:
        op = {"sub": "add", "neg": "plus"}.get(step.op, step.op)
        attr = abs(step.attr) if op in ("times", "plus") else step.attr
        found = TABLE[op][2](attr, *(values[i] for i in step.inputs))
        values += found if isinstance(found, list) else [found]
        size = max(size, *(float(np.max([np.max(v.x), np.max(v.d)])) for v in values[-3:]))
    return size


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_gradients_of_polynomials_are_exact(first):
    exact = 0
    for seed in range(first, first + 100):
        function = whole_function(seed)
        if largest(function) > LIMIT:
            continue
        exact += 1
        value, grads = exactly(function)
        for reading in (readings.eager, readings.eager_graph, readings.interpreted):
            found = reading(function, function.args)
            assert found[0] == value, (seed, reading.__name__)
            for got, want in zip(found[1], grads, strict=True):
                assert (got == want).all(), (seed, reading.__name__)
    assert exact > 60
