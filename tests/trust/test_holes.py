"""What no test looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError, GradError, ShapeError
from minigrad.primitives.registry import REGISTRY
from tests.trust.pieces import leaf

# -- backward and its walk -----------------------------------------------------------------


def test_backward_with_a_graph_keeps_what_it_walked_unless_told_otherwise():
    x = leaf(3.0)
    y = x * x
    y.backward(create_graph=True)
    y.backward()
    assert float(x.grad) == 12.0
    z = x * x
    z.backward(create_graph=True, retain_graph=False)
    with pytest.raises(GradError):
        z.backward()
    x.grad = None


def test_gradients_have_a_graph_also_where_recording_is_off():
    x = leaf(2.0)
    y = x * x * x
    with mg.no_grad():
        (g,) = mg.grad(y, x, create_graph=True)
    assert g.requires_grad
    assert float(mg.grad(g, x)[0]) == 12.0


def test_backward_starts_from_tensors_only():
    for root in (np.ones(()), 3.0, None):
        with pytest.raises(DTypeError, match="backward starts from a Tensor"):
            mg.backward(root)


def test_gradients_of_chosen_inputs_have_memory_of_their_own():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seed = np.ones(2)
    mg.backward(x + y, seed, inputs=[x, y])
    assert not np.shares_memory(x.grad._data, y.grad._data)
    assert not np.shares_memory(x.grad._data, seed)


@pytest.mark.parametrize("hooked", [False, True])
def test_a_node_that_no_gradient_reaches_is_passed_over(hooked):
    """A rule may give None; what lies behind it on that side is then not run."""

    def kernel(x, y):
        return x * y

    made = mg.primitive(kernel, type="half_blind")
    made.grad(lambda y, out_grad: (out_grad * y, None))
    try:
        a, b = leaf(2.0), leaf(3.0)
        out = made(a * 1.0, b * 5.0)
        if hooked:
            out.register_hook(lambda g: g)
        out.backward()
        assert float(a.grad) == 15.0
        assert b.grad is None
    finally:
        REGISTRY.pop(made.primitive.type)


@pytest.mark.parametrize("hooked", [False, True])
def test_a_sum_of_gradients_changes_no_gradient_that_somebody_else_holds(hooked):
    """x gets one array from two places, and one of them is the seed's own."""
    x, y = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    seed = np.array([1.0, 10.0])
    h = x + y
    if hooked:
        h.register_hook(lambda g: None)
    mg.backward([h + x], [seed])
    assert x.grad.tolist() == [2.0, 20.0]
    assert y.grad.tolist() == [1.0, 10.0]
    assert seed.tolist() == [1.0, 10.0]


def test_gradients_have_no_graph_unless_it_is_asked_for():
    x = leaf(3.0)
    assert not mg.grad(x * x, x)[0].requires_grad
    y = x * x
    mg.backward(y)
    assert not x.grad.requires_grad
    with pytest.raises(GradError):
        mg.backward(y)


@pytest.mark.parametrize("hooked", [False, True])
def test_a_third_input_gets_its_gradient(hooked):
    x, w, b = leaf(np.ones((2, 3))), leaf(np.ones((3, 4))), leaf(np.zeros(4))
    y = mg.linear(x, w, b)
    if hooked:
        y.register_hook(lambda g: None)
    mg.backward(y, np.arange(8.0).reshape(2, 4))
    assert b.grad.tolist() == [4.0, 6.0, 8.0, 10.0]
    p, q = leaf(2.0), leaf(5.0)
    (mg.where(True, p, q) * 3.0).backward()
    assert (float(p.grad), float(q.grad)) == (3.0, 0.0)


@pytest.mark.parametrize("kind", ["tensor hook", "prehook"])
def test_a_hook_that_returns_another_shape_is_named(kind):
    x = leaf([1.0, 2.0])
    h = x * 2.0
    if kind == "tensor hook":
        h.register_hook(lambda g: mg.tensor(1.0))
    else:
        h.grad_fn.register_prehook(lambda grads: (mg.tensor(1.0),))
    with pytest.raises(ShapeError, match="hook returned"):
        h.sum().backward()


def test_what_a_hook_makes_of_a_gradient_is_differentiated_again():
    """The gradient of x³ times itself: (3x²)² has the slope 36x³."""
    x = leaf(2.0)
    h = x * 1.0
    handle = h.register_hook(lambda g: g * g)
    (g,) = mg.grad(h * h * h, x, create_graph=True)
    handle.remove()
    assert float(g) == 144.0
    assert float(mg.grad(g, x)[0]) == 288.0


@pytest.mark.parametrize("kind", ["prehook", "hook"])
def test_a_node_with_hooks_has_second_derivatives_too(kind):
    x = leaf(2.0)
    y = x * x * x
    if kind == "prehook":
        y.grad_fn.register_prehook(lambda grads: None)
    else:
        y.grad_fn.register_hook(lambda inputs, outputs: None)
    (g,) = mg.grad(y, x, create_graph=True)
    assert float(mg.grad(g, x)[0]) == 12.0


def test_a_prehook_changes_the_gradients_of_all_outputs_of_a_node():
    x = leaf([1.0, 2.0])
    a, b = mg.unbind(x)
    a.grad_fn.register_prehook(lambda grads: tuple(g * 10.0 for g in grads))
    (a * 1.0 + b * 2.0).backward()
    assert x.grad.tolist() == [10.0, 20.0]


def test_errors_say_the_name_of_a_tensor_that_has_one():
    x, y = leaf(1.0), mg.tensor(2.0, requires_grad=True, name="weights")
    with pytest.raises(GradError, match=r"input 0 \(weights\) of grad"):
        mg.grad(x * x, y)
    with pytest.raises(GradError, match=r"input 0 of grad"):
        mg.grad(y * y, x)


# -- rules ---------------------------------------------------------------------------------


def test_division_that_is_safe_gives_zero_and_no_warning():
    found = mg.ops.elementwise.safe_div(np.array([1.0, 1.0, 3.0]), np.array([0.0, 2.0, 1.0]))
    assert found.tolist() == [0.0, 0.5, 3.0]


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("as_array", [False, True])
def test_second_derivatives_of_powers_at_zero(exponent, as_array):
    x = leaf([0.0, 2.0])
    y = x ** (mg.tensor([exponent, exponent]) if as_array else exponent)
    (g,) = mg.grad(y.sum(), x, create_graph=True)
    second = mg.grad(g.sum(), x)[0].tolist() if g.requires_grad else [0.0, 0.0]
    slope = exponent * (exponent - 1)
    assert second == [slope if exponent == 2.0 else 0.0, slope * 2.0 ** max(exponent - 2, 0)]
