"""What no test of the table of primitives, and of the operators made from it, looked at until a mutant survived."""

from __future__ import annotations

import functools
from contextlib import contextmanager

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import DTypeError, RuleError
from minigrad.primitives.registry import REGISTRY
from minigrad.viz.rules import rule_texts
from tests.trust.pieces import leaf


@contextmanager
def made(kernel, **options):
    """A primitive of one's own, for a while."""
    function = mg.primitive(**options)(kernel) if options else mg.primitive(kernel)
    try:
        yield function
    finally:
        REGISTRY.pop(function.primitive.type)


def third(x, y, *, by=2):
    """Something of three."""
    return x * y * by


def test_a_row_of_the_table_says_what_the_kernel_takes():
    with made(third) as function:
        row = function.primitive
        assert REGISTRY["third"] is row
        assert (row.inputs, row.attrs, row.outputs) == (("x", "y"), {"by": 2}, ("out",))
        assert (row.optional, row.list_input, row.broadcasts, row.view) == (
            frozenset(),
            None,
            False,
            False,
        )
        assert (row.function is function, row.doc, repr(row)) == (
            True,
            "Something of three.",
            "<primitive third>",
        )
        assert (function.__name__, function.__doc__) == ("third", "Something of three.")
    with made(lambda *x, axis=0: np.stack(x, axis), type="row_of") as function:
        row = function.primitive
        assert (row.inputs, row.list_input, row.attrs) == (("x",), "x", {"axis": 0})
        assert function.__name__ == "row_of"


def test_what_the_wanted_rules_read_is_told_in_the_order_of_the_declaration():
    with made(third) as function:
        function.grad(
            x=lambda y, out_grad, by, y_shape: out_grad * y * by,
            y=lambda by, out, x, out_grad: out_grad * x * by,
        )
        row = function.primitive
        assert row.differentiable == ("x", "y")
        assert row.reads() == ("x", "y", "out", "out_grad", "by", "y_shape")
        assert row.reads({"x"}) == ("y", "out_grad", "by", "y_shape")
        assert row.saved() == ("x", "y", "out")
        assert (row.saved({"x"}), row.saved({"y"}), row.saved(())) == (("y",), ("x", "out"), ())


def test_rules_of_inputs_are_declared_one_after_the_other():
    with made(third, type="other_name") as function:
        assert (function.__name__, function.primitive.type) == ("third", "other_name")
        assert function.grad(x=lambda y, out_grad: out_grad * y * 2) is function
        assert function.grad(y=lambda x, out_grad: out_grad * x * 2) is function
        assert mg.gradcheck(function, (leaf(3.0), leaf(5.0)))


def test_functions_of_the_package_that_are_made_of_others_name_the_line_of_the_user():
    x = leaf([1.0, 2.0])
    for y in (
        mg.outer(x, x),
        mg.kron(x, x),
        mg.stack([x, x]),
        x[[0]],
        2.0 - x,
        mg.mse(x, [0.0, 0.0]),
    ):
        assert "test_holes_in_registry.py" in y.grad_fn.where()


def test_a_rule_for_all_inputs_runs_once():
    called = []

    def both(x, y, out_grad):
        called.append(1)
        return out_grad * y * 2, out_grad * x * 2

    with made(third) as function:
        assert function.grad(both) is both
        assert len(list(function.primitive.wanted_rules())) == 1
        x, y = leaf(3.0), leaf(5.0)
        function(x, y).backward()
        assert (float(x.grad), float(y.grad), called) == (10.0, 6.0, [1])


def test_a_rule_for_all_inputs_leaves_out_those_without_gradient():
    with made(third, nondiff=("y",)) as function:
        function.grad(lambda y, out_grad: (out_grad * y * 2,))
        assert function.primitive.differentiable == ("x",)
        x = leaf(3.0)
        function(x, leaf(5.0)).backward()
        assert float(x.grad) == 10.0


def test_a_rule_may_take_its_attrs_behind_a_star_as_the_kernel_does():
    with made(third) as function:
        function.grad(x=lambda y, out_grad, *, by: out_grad * y * by)
        x = leaf(3.0)
        function(x, 5.0, by=7).backward()
        assert float(x.grad) == 35.0
        assert mg.gradgradcheck(lambda x: function(x * x, 5.0), x)
        assert rule_texts(function.primitive, {}) == ("g·y·by",)


def test_a_rule_may_be_the_method_of_an_object():
    class Slope:
        def of_x(self, y, out_grad):
            return out_grad * y * 2

    with made(third) as function:
        function.grad(x=Slope().of_x)
        x = leaf(3.0)
        function(x, 5.0).backward()
        assert float(x.grad) == 10.0


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda f: f.grad(z=lambda out_grad: out_grad), "'third' has no input 'z'"),
        (lambda f: f.grad(x=lambda outgrad: outgrad), "names 'outgrad'.*did you mean 'out_grad'"),
        (lambda f: f.grad(x=lambda y_size, out_grad: out_grad), "for x names 'y_size'"),
        (lambda f: f.grad(lambda *more: more), "for x, y names 'more'"),
        (lambda f: f.grad(x=functools.partial(lambda k, b: k, 1)), "names 'b'"),
    ],
)
def test_a_rule_that_names_nothing_is_refused(declare, words):
    with made(third) as function, pytest.raises(RuleError, match=words):
        declare(function)


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (
            lambda: mg.primitive(lambda x, **k: x, type="any"),
            r"takes \*\*k\n.*\n  repair: name its attrs",
        ),
        (lambda: mg.primitive(lambda x: x), "a primitive needs a name, and '<lambda>' is none"),
        (lambda: mg.primitive(lambda x: x, type="a b"), "'a b' is none"),
        (
            lambda: mg.primitive(third, type="exp"),
            r"'exp' is registered already: minigrad.*\n.*\n  repair: .*type='exp_2'",
        ),
    ],
)
def test_a_kernel_that_cannot_be_declared_is_refused(declare, words):
    before = dict(REGISTRY)
    with pytest.raises(RuleError, match=words):
        declare()
    assert before == REGISTRY


def test_a_second_definition_is_refused_outside_of_a_notebook():
    with made(third), pytest.raises(RuleError, match="type 'third' is registered already"):
        mg.primitive(third)


def test_a_kernel_may_be_a_function_of_numpy_or_a_partial_one():
    with made(np.vectorize(lambda x: x + 1.0, excluded=()).pyfunc, type="plus_one") as function:
        assert function(2.0) == 3.0
    with made(functools.wraps(third)(functools.partial(third, by=5)), type="by_five") as function:
        function.grad(x=lambda y, out_grad: out_grad * y * 5)
        x = leaf(2.0)
        function(x, 3.0).backward()
        assert float(x.grad) == 15.0


# -- operators -----------------------------------------------------------------------------


def variable(dtype="float64"):
    program = static.Program()
    with static.program_guard(program):
        return static.data("x", [2], dtype)


def test_operators_stand_on_both_sides_of_arrays_and_numbers():
    x = mg.tensor([1.0, 2.0])
    a = np.array([4.0, 8.0])
    for made_, expected in (
        (a - x, [3.0, 6.0]), (x - a, [-3.0, -6.0]), (a / x, [4.0, 4.0]), (a**x, [4.0, 64.0]), (a % x, [0.0, 0.0]),
        (a // x, [4.0, 4.0]), (a @ x, 20.0), (a < x, [False, False]), (a >= x, [True, True]), (a == x, [False, False]),
        (a != x, [True, True]), (9.0 - x, [8.0, 7.0]), (2.0**x, [2.0, 4.0]), (np.maximum(a, x), [4.0, 8.0]),
        (np.minimum(a, x), [1.0, 2.0]), (np.minimum(x, a), [1.0, 2.0]), (np.float64(9.0) - x, [8.0, 7.0]),
    ):  # fmt: skip
        assert isinstance(made_, mg.Tensor) and made_.tolist() == expected
    assert (~(x > 1.5)).tolist() == [True, False]
    assert (
        (True & (x > 1.5)).tolist()
        == (np.array([True, True]) & (x > 1.5)).tolist()
        == [False, True]
    )
    assert x.T.shape == (2,) and mg.zeros([2, 3, 4]).mT.shape == (2, 4, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.add(x, 1.0, out=np.zeros(2)), "np.add does not know Tensors(?s:.*)detach"),
        (lambda x: np.add.reduce(x), "np.add does not know Tensors"),
        (lambda x: np.exp(x), r"use mg.exp\(x\) if it exists, or x.detach\(\).numpy\(\)"),
        (lambda x: np.exp(variable()), r"np.exp does not know Variables(?s:.*)use mg.exp\(x\) if it exists$"),
        (lambda x: x & 1, "& takes truth values, not float64"),
        (lambda x: (x > 1.0) | 3, "| takes truth values, not 3"),
        (lambda x: ~variable(), r"~ takes truth values(?s:.*)~\(x != 0\)"),
        (lambda x: 2 ^ (x > 1.0), r"\^ takes truth values, not 2(?s:.*)\(x != 0\) \^ …, or call mg.logical_xor"),
    ],
)  # fmt: skip
def test_what_would_lose_a_gradient_or_look_at_bits_is_refused(call, words):
    with pytest.raises(DTypeError, match=words.replace("| takes", r"\| takes")):
        call(leaf([1.0, 2.0]))


def test_variables_take_truth_values_and_arrays_on_either_side():
    x = variable("bool")
    with static.program_guard(x.block.program):
        for made_ in (x & x, ~x, np.array([True, False]) | x, True ^ x):
            assert isinstance(made_, static.Variable) and made_.dtype == np.bool_
