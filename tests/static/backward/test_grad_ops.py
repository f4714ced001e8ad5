"""How a grad op reads its slots, on arrays and on Variables; which gradients a call hands out."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import minigrad as mg
from minigrad import nets, static
from minigrad.errors import RuleError
from minigrad.primitives.registry import REGISTRY
from minigrad.static.program.variable import ShapeOf
from minigrad.static.run.kernels import _sum_back, shape_of


@contextmanager
def primitive(kernel, rule, **facts):
    """A primitive of the user, for as long as the block lasts."""
    made = mg.primitive(kernel, type="of_a_test", **facts)
    made.grad(x=rule)
    try:
        yield made
    finally:
        REGISTRY.pop("of_a_test")


def slope_in_a_program(function, at):
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", np.shape(at))
        (g,) = static.gradients(mg.sum(function(x)), [x])
    return static.Executor().run(prog, {"x": at}, [g])[0].tolist()


def slope(function, at):
    x = mg.tensor(at, requires_grad=True)
    return mg.grad(mg.sum(function(x)), x)[0].tolist()


def test_a_rule_that_is_added_later_is_asked_too():
    with primitive(lambda x, y: x * y, lambda y, out_grad: out_grad * y) as product:
        assert slope_in_a_program(lambda x: product(x, x), 3.0) == 3.0
        product.grad(y=lambda x, out_grad: out_grad * x)
        assert slope_in_a_program(lambda x: product(x, x), 3.0) == 6.0
        both = nets.Operator("of_a_test", {"x": "a", "y": "b"}, {"out": "c"})
        assert nets.Backward(both).output_names == ["a@GRAD", "b@GRAD"]


@pytest.mark.parametrize("way", [slope, slope_in_a_program])
def test_an_attr_whose_name_ends_like_a_gradient_is_an_attr(way):
    kernel = lambda x, *, tilt_grad=2.0: np.multiply(x, tilt_grad)
    rule = lambda out_grad, tilt_grad: out_grad * tilt_grad
    with primitive(kernel, rule) as tilted:
        assert way(lambda x: tilted(x, tilt_grad=3.0), [1.0, 2.0]) == [3.0, 3.0]
        assert way(tilted, [1.0]) == [2.0]


def test_a_primitive_has_a_name():
    with pytest.raises(RuleError, match="a primitive needs a name, and '<lambda>' is none"):
        mg.primitive(lambda x: x)


@pytest.mark.parametrize("way", [slope, slope_in_a_program])
def test_a_rule_may_read_a_list_of_outputs(way):
    kernel = lambda x: [np.multiply(x, x), np.multiply(x, 10.0)]
    rule = lambda out, out_grad: out_grad[0] * out[1] / 5.0 + out_grad[1] * 10.0
    facts = {"list_output": True, "infer": lambda given, attrs: [given["x"][0]] * 2}
    with primitive(kernel, rule, **facts) as both:
        assert way(lambda x: both(x)[0] + both(x)[1], [1.0, 2.0]) == [12.0, 14.0]


def test_the_shape_of_a_value_is_known_or_asked_for_when_the_program_runs():
    prog = static.Program()
    with static.program_guard(prog):
        known, opened = static.data("known", [2, 3]), static.data("opened", [-1, 3])
    assert shape_of(known) == (2, 3)
    assert isinstance(shape_of(opened), ShapeOf)
    assert shape_of(np.ones((2, 3))) == (2, 3)
    assert shape_of(2.0) == shape_of(np.float64(2.0)) == ()


def test_a_gradient_is_summed_back_only_where_it_has_to_be():
    array = np.ones((2, 3))
    assert _sum_back(array, np.zeros((2, 3))) is array
    assert _sum_back(array, np.zeros(3)).tolist() == [2.0, 2.0, 2.0]
    assert float(_sum_back(np.float64(5.0), 2.0)) == 5.0
    assert float(_sum_back(np.float64(5.0) * np.ones(2), 2.0)) == 10.0
    prog = static.Program()
    with static.program_guard(prog):
        wide, row, opened = (
            static.data(n, s) for n, s in [("a", [2, 3]), ("b", [3]), ("c", [-1, 3])]
        )
        assert _sum_back(wide, wide) is wide
        assert prog.global_block().ops == []
        assert _sum_back(wide, row).shape == (3,)
        assert _sum_back(opened, opened).shape == (-1, 3)
    first, second = prog.global_block().ops
    assert (first.attrs, set(first.inputs)) == ({"shape": (3,)}, {"x"})
    assert second.inputs == {"x": ["c"], "shape_like": ["c"]}


def test_a_parameter_of_another_loss_is_in_no_pair():
    prog = static.Program()
    with static.program_guard(prog):
        w, u = static.parameter("w", 2.0), static.parameter("u", 3.0)
        first = static.append_backward(w * w)
        second = static.append_backward(u * u)
    assert [v.name for v, _ in first] == ["w"]
    assert [v.name for v, _ in second] == ["u"]


def test_a_gradient_that_is_asked_for_and_excluded_is_excluded():
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        x.stop_gradient = False
        static.append_backward(mg.sum(x * w), no_grad_set=[x])
    assert not prog.global_block().has_var("x@GRAD")
    assert prog.global_block().has_var("w@GRAD")


def test_whole_numbers_have_no_gradient_in_a_program():
    prog = static.Program()
    with static.program_guard(prog):
        x, n = static.data("x", [2]), static.data("n", [2], dtype="int64")
        by_n, by_x = static.gradients(mg.sum(x * n), [n, x])
    assert by_n is None
    feed = {"x": [1.0, 2.0], "n": [3, 4]}
    assert static.Executor().run(prog, feed, [by_x])[0].tolist() == [3.0, 4.0]


def test_one_rule_for_two_inputs_gives_both_gradients_in_a_program():
    made = mg.primitive(lambda x, y: x * 2.0 + y * 3.0, type="of_a_test_of_two")
    made.grad(lambda out_grad: (out_grad * 2.0, out_grad * 3.0))
    try:
        prog = static.Program()
        with static.program_guard(prog):
            x, y = static.data("x", [2]), static.data("y", [2])
            both = static.gradients(mg.sum(made(x, y)), [x, y])
        feed = {"x": [1.0, 1.0], "y": [1.0, 1.0]}
        found = [g.tolist() for g in static.Executor().run(prog, feed, both)]
    finally:
        REGISTRY.pop("of_a_test_of_two")
    assert found == [[2.0, 2.0], [3.0, 3.0]]


def test_second_derivatives_of_joined_parts_of_which_one_is_of_open_size():
    at = {"a": np.full((2, 3), 2.0), "b": np.full((1, 3), 3.0)}
    prog = static.Program()
    with static.program_guard(prog):
        parts = [static.data("a", [2, 3]), static.data("b", [-1, 3])]
        first = static.gradients(mg.sum(mg.concat(parts) ** 3), parts)
        second = static.gradients([mg.sum(g) for g in first], parts)
    found = static.Executor().run(prog, at, second)
    assert [g.tolist() for g in found] == [[[12.0] * 3] * 2, [[18.0] * 3]]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_values_that_are_joined_flat_have_gradients_of_first_and_second_order(parts):
    at, weights = np.arange(4.0).reshape(2, 2) - 1.5, np.arange(1.0, 4.0 * parts + 1)

    def joined(x):
        values = [x, x * 2.0, x * x][:parts]
        return (mg.concat(values, axis=None) ** 3.0 * weights).sum()

    leaf = mg.tensor(at, requires_grad=True)
    (first,) = mg.grad(joined(leaf), leaf, create_graph=True)
    (second,) = mg.grad((first * first).sum(), leaf)
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2, 2])
        x.stop_gradient = False
        (g,) = static.gradients(joined(x), [x])
        (h,) = static.gradients((g * g).sum(), [x])
    for read in (program, static.decompose(program)):
        found = static.Executor().run(read, {"x": at}, [g.name, h.name])
        np.testing.assert_allclose(found[0], first.detach().numpy())
        np.testing.assert_allclose(found[1], second.numpy())
    step = static.compile(program, fetch=[g, h])
    np.testing.assert_allclose(step(x=at)[1], second.numpy())
