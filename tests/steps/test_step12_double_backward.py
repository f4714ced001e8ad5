"""Step 12: the gradient of the gradient."""

import numpy as np
import pytest
from literate import cells, load, verdict_on

step = load("step12_double_backward")


def leaf(value):
    return step.Tensor(value, requires_grad=True)


def orders(f, number, count):
    """The derivatives of f at a number, from order 0 on."""
    x = leaf(number)
    found = [f(x)]
    for _ in range(count):
        found.append(step.grad(found[-1], x, create_graph=True))
    return [float(each.data) for each in found]


def nodes(tensor):
    return len(step.count_edges(tensor.grad_fn))


def test_first_and_second_derivative_of_the_quartic():
    x = leaf(2.0)
    y = x**4 - 2 * x**2
    slope = step.grad(y, x, create_graph=True)
    assert repr(slope) == "tensor(24., grad_fn=<AddBackward0>)"
    assert repr(step.grad(slope, x)) == "tensor(44.)"
    assert x.grad is None


def test_the_same_by_backward_and_clearing():
    x = leaf(2.0)
    (x**4 - 2 * x**2).backward(create_graph=True)
    slope, x.grad = x.grad, None
    slope.backward()
    assert (slope.data, x.grad.data) == (24, 44)


def test_the_mistake_gradients_accumulate_in_the_second_walk_too():
    x = leaf(2.0)
    (x**4 - 2 * x**2).backward(create_graph=True)
    x.grad.backward()
    assert x.grad.data == 68


def test_without_the_switch_a_gradient_is_a_constant():
    x = leaf(2.0)
    y = x**4
    y.backward()
    assert x.grad.grad_fn is None
    with pytest.raises(RuntimeError, match=r"from tensor\(32\.\): it depends on no tensor"):
        x.grad.backward()
    assert step.grad(x**4, x).grad_fn is None
    assert step.MODE["record"]


def test_derivatives_of_the_hyperbolic_tangent_to_order_six():
    x = 1.0
    t = np.tanh(x)
    p = np.polynomial.Polynomial([0, 1])  # the n-th derivative is a polynomial in tanh
    expected = []
    for _ in range(7):
        expected.append(p(t))
        p = p.deriv() * np.polynomial.Polynomial([1, 0, -1])
    np.testing.assert_allclose(orders(step.tanh, x, 6), expected, rtol=1e-12)


def test_the_sizes_of_these_graphs():
    x = leaf(1.0)
    y, sizes = step.tanh(x), []
    for _ in range(7):
        sizes.append(nodes(y))
        y = step.grad(y, x, create_graph=True)
    assert sizes == [2, 5, 8, 20, 50, 128, 338]


def test_the_sine_comes_back_after_four_derivatives():
    s, c = np.sin(0.5), np.cos(0.5)
    np.testing.assert_allclose(orders(step.sin, 0.5, 4), [s, c, -s, -c, s], rtol=1e-14)


def test_every_row_of_the_table_in_second_order():
    known = {
        "exp": (lambda x: step.exp(x), [np.exp(0.7)] * 3),
        "log": (lambda x: step.log(x), [np.log(0.7), 1 / 0.7, -1 / 0.49]),
        "cos": (lambda x: step.cos(x), [np.cos(0.7), -np.sin(0.7), -np.cos(0.7)]),
        "reciprocal": (lambda x: 1 / x, [1 / 0.7, -1 / 0.49, 2 / 0.343]),
        "division": (lambda x: (x * x) / (x * 3), [0.7 / 3, 1 / 3, 0]),
        "power": (lambda x: x**3, [0.343, 3 * 0.49, 4.2]),
        "product": (lambda x: x * -x - x, [-0.49 - 0.7, -2.4, -2]),
    }
    for name, (f, expected) in known.items():
        np.testing.assert_allclose(
            orders(f, 0.7, 2), expected, rtol=1e-12, atol=1e-14, err_msg=name
        )


def test_a_kept_result_that_nobody_else_holds_can_be_derived():
    x = leaf(0.5)
    slope = step.grad(step.exp(x) * 1.0, x, create_graph=True)
    assert step.grad(slope, x).data == np.exp(0.5)


def test_mixed_derivatives_are_symmetric():
    x, y = leaf(0.3), leaf(-0.8)
    f = step.sin(x * y) * step.exp(x) / y
    fx, fy = step.grad(f, x, y, create_graph=True)
    fxy = step.grad(fx, y, create_graph=True)
    fyx = step.grad(fy, x, create_graph=True)
    assert abs(fxy.data - fyx.data) < 1e-14
    assert abs(fxy.data) > 0.1


def test_second_derivatives_go_through_several_outputs():
    x = leaf([2.0, 3.0])
    p, q = step.unbind(x)
    slope = step.grad(p**3 * q, x, create_graph=True)
    assert slope.data.tolist() == [36, 8]
    assert step.grad(slope, x, grad_output=[1.0, 0.0]).data.tolist() == [36, 12]


def test_the_third_derivative_of_the_square_at_zero_is_zero():
    assert orders(lambda x: x**2, 0.0, 3) == [0, 0, 2, 0]
    assert orders(lambda x: x**2.0, 0.0, 3) == [0, 0, 2, 0]


def test_the_mistake_zero_times_infinity():
    source = next(text for text in cells("step12_double_backward", "mistake") if "oldpow" in text)
    notebook = vars(load("step12_double_backward"))  # formulas look for names where they are
    exec(source, notebook)
    assert repr(notebook["y"]) == "tensor(nan, grad_fn=<MulBackward0>)"


def test_newton_needs_seven_steps():
    x = leaf(2.0)
    for _ in range(7):
        slope = step.grad(x**4 - 2 * x**2, x, create_graph=True)
        x = leaf(x.data - slope.data / step.grad(slope, x).data)
    assert abs(x.data - 1) < 1e-15


def test_grad_touches_no_grad_of_any_leaf():
    x, y = leaf(2.0), leaf(3.0)
    assert [g.data for g in step.grad(x * y, x, y)] == [3, 2]
    assert step.grad(x * y, x).data == 3
    assert x.grad is None
    assert y.grad is None


def test_grad_at_a_result_in_between_and_at_the_very_tensor():
    x = leaf(2.0)
    c = x * 3
    assert step.grad(c, c, create_graph=True).data == 1
    assert step.grad(c * c, c).data == 12
    assert step.grad(x, x).data == 1
    p, q = step.unbind(leaf([5.0, 7.0]))
    assert [g.data for g in step.grad(q * 3 + p, p, q)] == [1, 3]


def test_create_graph_keeps_what_was_saved_and_the_default_frees_it():
    x = leaf(2.0)
    y = x * x
    step.grad(y, x, create_graph=True)
    step.grad(y, x)
    with pytest.raises(RuntimeError, match="a second time"):
        step.grad(y, x)
    y = x * x
    y.backward(create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_an_input_that_plays_no_part_is_named():
    x, other = leaf(2.0), leaf(5.0)
    with pytest.raises(RuntimeError, match=r"does not depend on input 1, tensor\(5\., requires"):
        step.grad(x * x, x, other)
    with pytest.raises(RuntimeError, match=r"does not depend on input 0, tensor\(5\.\)"):
        step.grad(x * 5, step.Tensor(5.0))


def test_a_value_changed_between_the_two_walks_is_found():
    x = leaf(0.5)
    h = x * 1
    slope = step.grad(step.sin(h), x, create_graph=True)
    h.add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        step.grad(slope, x)


def test_numbers_of_earlier_steps():
    x = leaf(0.5)
    y = step.exp(x**2) ** 2
    y.backward()
    assert (str(y.data), str(x.grad.data)) == ("1.648721270700128", "3.297442541400256")
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    e = (a + b) * d
    assert repr(e) == "tensor(20., grad_fn=<MulBackward0>)"
    assert repr(e.grad_fn.next_functions) == "((<AddBackward0>, 0), (<AccumulateGrad>, 0))"
    e.backward()
    assert [t.grad.data for t in (a, b, d)] == [4, 4, 5]
    x = leaf(2.0)
    s = x**2
    (s**2 + s**2).backward()
    assert x.grad.data == 64
    x = leaf(3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.data == 12


def test_b_is_the_graph_of_the_gradient():
    mg = pytest.importorskip("minigrad.viz")
    x = leaf(0.5)
    slope = step.grad(step.sin(x), x, create_graph=True)
    graph = mg.draw(slope).graph
    backward = [n.name for n in graph.nodes.values() if n.kind in ("grad_op", "accumulate")]
    assert sorted(backward) == ["AccumulateGrad", "CosBackward0", "MulBackward0"]


MUTANTS = {
    "create_graph is ignored": ("with record(create_graph):", "with record(False):"),
    "always recorded": ("with record(create_graph):", "with record(True):"),
    "create_graph is not passed on": ("retain_graph, create_graph)\n", "retain_graph)\n"),
    "create_graph frees": (
        "retain_graph = create_graph if retain_graph is None else retain_graph",
        "retain_graph = bool(retain_graph)",
    ),
    "retain_graph is ignored": (
        "retain_graph = create_graph if retain_graph is None else retain_graph",
        "retain_graph = create_graph",
    ),
    "grad fills .grad": ("if wanted and isinstance(node, AccumulateGrad):", "if False:"),
    "the slot of a wanted edge is lost": ("{each: grads[each[1]] for", "{each: grads[0] for"),
    "kept values are constants": (
        "        return tensor\n\n\nclass Node",
        "        return Tensor(tensor.data)\n\n\nclass Node",
    ),
    "a kept result forgets its node": (
        "return Tensor(self.data, grad_fn=node)",
        "return Tensor(self.data)",
    ),
    "the version is not compared": ("if tensor.version != self.version:", "if False:"),
    "power without its extra case": (" if n else grad * 0", ""),
    "power ends one order too early": ("if n else grad * 0", "if n > 1 else grad * 0"),
    "tanh": ("grad * (1 - out * out)", "grad * (1 - out)"),
    "second input is not named": ("on input {number}, {inputs[number]}", "on {inputs[0]}"),
    "an unreached input is silent": (
        "        if each is None and not allow_unused:",
        "        if False:",
    ),
    "overwrite in the slot": ("grad if slots[slot] is None else slots[slot] + grad", "grad"),
    "overwrite at the leaf": (
        "(zero if self.variable.grad is None else self.variable.grad) + grad",
        "zero + grad",
    ),
    "stack is no operation": (
        "return results(StackBackward0(*rows), np.stack([row.data for row in rows]))[0]",
        "return Tensor(np.stack([row.data for row in rows]))",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step12_double_backward", *MUTANTS[name]).startswith("killed")
