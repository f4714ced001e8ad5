"""Formulas read from the code that ran."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from minigrad.primitives.registry import REGISTRY, primitive
from minigrad.viz.adapters.formula import (
    backward_formulas,
    computed,
    formula_lines,
    forward_formulas,
    names_in,
    parsed,
    put_in,
    written,
)
from minigrad.viz.picture import draw
from tests.pieces import leaf
from tests.viz import linked_nodes as ln


class Tanh(ln.Function):
    def forward(self, x):
        return np.tanh(x)

    def backward(self, gy):
        y = self.outputs[0]().data
        return (1 - y * y) * gy


class Div(ln.Function):
    def forward(self, x0, x1):
        return x0 / x1

    def backward(self, gy):
        x0, x1 = self.inputs
        return gy / x1.data, -gy * x0.data / x1.data**2


class Power(ln.Function):
    def __init__(self, c):
        self.c = c

    def forward(self, x):
        return x**self.c

    def backward(self, gy):
        x = self.inputs[0].data
        return self.c * x ** (self.c - 1) * gy


class Relu(ln.Function):
    def forward(self, x):
        return np.maximum(x, 0)

    def backward(self, gy):
        """Passes where x is positive."""
        (x,) = self.inputs
        return gy * (x.data > 0)


class Nested(ln.Function):
    def forward(self, x):
        return x - (x - (x + 1))

    def backward(self, gy):
        return gy / (gy / gy) - (gy - gy) * 2


class Matmul(ln.Function):
    def forward(self, x, w):
        return x @ w

    def backward(self, gy):
        x, w = self.inputs[0].data, self.inputs[1].data
        return gy @ w.T, x.T @ gy


class Branching(ln.Function):
    def forward(self, x):
        if x > 0:
            return x
        return -x

    def backward(self, gy):
        gx = 0
        for _ in range(3):
            gx = gx + gy
        return gx


class Unknown(ln.Function):
    def forward(self, *xs):
        return xs[0]

    def backward(self, gy):
        return helper * gy  # noqa: F821


@pytest.mark.parametrize(
    ("function", "forward", "backward"),
    [
        (ln.Square(), ("y = x²",), ("gx = 2·x·gy",)),
        (ln.Exp(), ("y = eˣ",), ("gx = eˣ·gy",)),
        (ln.Add(), ("y = x0 + x1",), ("gx0 = gy", "gx1 = gy")),
        (ln.Mul(), ("y = x0·x1",), ("gx0 = gy·x1", "gx1 = gy·x0")),
        (Tanh(), ("y = tanh(x)",), ("gx = (1 − y²)·gy",)),
        (Div(), ("y = x0 / x1",), ("gx0 = gy / x1", "gx1 = −gy·x0 / x1²")),
        (Power(3), ("y = x^c",), ("gx = c·x^(c − 1)·gy",)),
        (Relu(), ("y = maximum(x, 0)",), ("gx = gy·(x > 0)",)),
        (Nested(), ("y = x − (x − (x + 1))",), ("gx = gy / (gy / gy) − (gy − gy)·2",)),
        (Matmul(), ("y = x @ w",), ("gx0 = gy @ wᵀ", "gx1 = xᵀ @ gy")),
    ],
)
def test_straight_code_becomes_a_formula(function, forward, backward):
    assert formula_lines("y", forward_formulas(function)) == forward
    assert formula_lines("gx", backward_formulas(function)) == backward


@pytest.mark.parametrize("function", [Branching(), Unknown(), object(), ln.Halves()])
def test_code_that_is_not_a_plain_formula_gives_none(function):
    assert backward_formulas(function) == ()


@pytest.mark.parametrize(
    ("code", "formula"),
    [
        ("x - (y - g)", "x − (y − g)"),
        ("x * (y / g)", "x·y / g"),
        ("g * (x % y)", "g·(x % y)"),
        ("g * x % y", "g·x % y"),
        ("x % (y % g)", "x % (y % g)"),
        ("-(x % y)", "−(x % y)"),
        ("x // (y * g)", "x // (y·g)"),
        ("x // y * g", "(x // y)·g"),
    ],
)
def test_brackets_stand_where_a_remainder_would_be_taken_of_something_else(code, formula):
    assert written(parsed(code)) == formula


def test_numbers_are_put_in_only_when_all_are_known_and_few():
    (result,) = backward_formulas(ln.Square())
    assert put_in(result, {"x": np.array(0.5), "gy": np.array(-3.0)}) == "2·0.5·(-3)"
    assert put_in(result, {"x": np.ones(5), "gy": np.ones(5)}) == ""
    assert put_in(result, {"x": np.array(0.5)}) == ""


@pytest.mark.parametrize(
    ("kind", "arity"),
    [(ln.Square, 1), (ln.Exp, 1), (ln.Add, 2), (ln.Mul, 2), (Div, 2), (Matmul, 2)],
)
def test_a_computed_formula_is_what_the_code_computes(kind, arity):
    random = np.random.default_rng(0)
    inputs = [ln.Variable(random.normal(size=(2, 2)) + 3) for _ in range(arity)]
    f = kind()
    y = f(*inputs)
    gy = random.normal(size=(2, 2))
    names = ["x0", "x1"] if kind in (ln.Add, ln.Mul, Div) else ["x", "w"]
    values = dict(zip(names, [v.data for v in inputs], strict=False)) | {"gy": gy, "y": y.data}
    expected = f.backward(gy)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(backward_formulas(f), expected, strict=True):
        np.testing.assert_allclose(computed(ours, values), theirs)


def test_a_class_whose_method_is_replaced_is_read_again(monkeypatch):
    assert formula_lines("gx", backward_formulas(ln.Square())) == ("gx = 2·x·gy",)
    monkeypatch.setattr(ln.Square, "backward", ln.Exp.backward)
    assert formula_lines("gx", backward_formulas(ln.Square())) == ("gx = eˣ·gy",)


def test_what_a_formula_reads_is_known():
    assert [sorted(names_in(f)) for f in backward_formulas(ln.Mul())] == [
        ["gy", "x1"],
        ["gy", "x0"],
    ]
    assert sorted({*names_in(*backward_formulas(Power(2)))}) == ["gy", "x"]


def test_a_rule_that_only_has_the_name_of_a_lambda_has_no_formula():
    @primitive
    def third(x):
        return x * 3.0

    del REGISTRY["third"]  # other tests go through it
    rule = functools.partial(lambda factor, out_grad: out_grad * factor, 3.0)
    third.grad(x=functools.update_wrapper(rule, lambda out_grad: out_grad * 3.0))
    node = next(n for n in draw(third(leaf(2.0))).graph if n.kind == "grad_op")
    assert not any(node.lines)
