"""Bugs that the tests of this folder found, each as the shortest program that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import minigrad as mg
from minigrad.primitives.registry import REGISTRY


def leaf(value):
    return mg.tensor(value, requires_grad=True)


def test_a_graph_can_be_walked_in_two_pieces():
    """The first piece freed the saved values of the second."""
    x = leaf(2.0)
    h = x * x
    y = h * h
    (g,) = mg.grad(y, h)
    h.backward(g)
    assert float(x.grad) == 4 * 2.0**3


@pytest.mark.parametrize("ask", ["backward", "grad"])
def test_what_hangs_off_the_way_to_the_inputs_sees_no_incomplete_gradient(ask):
    """The gradient of u is 7; on the way to a alone only 2 of it arrives."""
    a, b, seen = leaf(2.0), leaf(3.0), []
    u = b * 1.0
    u.retain_grad()
    u.register_hook(seen.append)
    b.register_hook(seen.append)
    y = a * u + u * 5.0
    if ask == "backward":
        y.backward(inputs=[a])
    else:
        mg.grad(y, a)
    assert u.grad is None
    assert b.grad is None
    assert not seen


def test_a_changed_value_off_the_way_to_the_inputs_does_not_matter():
    a, b = leaf(2.0), leaf(3.0)
    h = b * 1.0
    y = h * h + a * 5.0
    h.add_(1.0)
    assert float(mg.grad(y, a)[0]) == 5.0


@contextmanager
def a_primitive(kernel, rule, **options) -> Iterator:
    made = mg.primitive(kernel, **options)
    made.grad(rule)
    try:
        yield made
    finally:
        REGISTRY.pop(made.primitive.type)


@pytest.mark.parametrize("hooked", [False, True])
def test_a_rule_may_give_one_array_to_two_inputs(hooked):
    """Both leaves held the same memory, and what was added to one arrived at the other."""

    def kernel(x, y):
        return x + y

    def rule(out_grad):
        both = out_grad * 2.0
        return both, both

    with a_primitive(kernel, rule, type="twice_the_same") as add:
        p, q = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        a = p * 10.0
        z = add(p, q)
        if hooked:
            z.register_hook(lambda g: g)
        (a + z).backward(np.ones(2))
        assert p.grad.tolist() == [12.0, 12.0]
        assert q.grad.tolist() == [2.0, 2.0]
        assert not np.shares_memory(p.grad.data, q.grad.data)


def test_a_joint_rule_of_an_elementwise_primitive_is_summed_back():
    def kernel(x, y):
        return x * y

    def rule(x, y, out_grad):
        return out_grad * y, out_grad * x

    with a_primitive(kernel, rule, type="joint_product", broadcasts=True) as times:
        p, q = leaf([1.0, 2.0]), leaf([[3.0], [4.0]])
        times(p, q).backward(np.ones((2, 2)))
        assert p.grad.tolist() == [7.0, 7.0]
        assert q.grad.tolist() == [[3.0], [3.0]]


def test_a_retained_gradient_accumulates_as_every_gradient_does():
    """The second backward overwrote it; PyTorch adds."""
    x = leaf(2.0)
    h = x * 3.0
    h.retain_grad()
    y = h * h
    y.backward(retain_graph=True)
    y.backward()
    assert float(h.grad) == 24.0


def test_an_input_that_retains_its_gradient_gets_it_once():
    x = leaf(2.0)
    h = x * 3.0
    h.retain_grad()
    (h * h).backward(inputs=[h])
    assert float(h.grad) == 12.0


def test_gradients_with_a_graph_have_memory_of_their_own():
    """Both leaves held the very same Tensor; a change of one gradient in place changed the other."""
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    mg.backward(x + y, np.ones(2), create_graph=True)
    assert not np.shares_memory(x.grad.data, y.grad.data)
    x = leaf(3.0)
    (x * x).backward(create_graph=True)
    g, x.grad = x.grad, None
    (g * g).backward()
    assert float(x.grad) == 24.0


def test_a_constant_array_that_becomes_a_number_leaves_the_order_in_memory():
    """Two gradients of one value, added, lie row by row; as a number they let a sum go column by column."""
    prog = mg.static.Program()
    with mg.static.program_guard(prog):
        x, s = mg.static.data("x", (23, 17)), mg.static.data("s", ())
        y = s / (mg.square(x.T) + 1.0)
        pairs = mg.static.append_backward(y.sum() + y.mean(), [s])
    fetch = [pairs[0][1]]
    rng, step = np.random.default_rng(0), None
    for _ in range(20):
        feed = {"x": rng.uniform(0.1, 1, (23, 17)), "s": np.float64(1.3)}
        step = step or mg.static.compile(prog, feed=feed, fetch=fetch)
        assert step(**feed)[0] == mg.static.Executor().run(prog, feed, fetch)[0]


@pytest.mark.parametrize("op", [mg.normalize, mg.layer_norm, mg.var, mg.std])
def test_a_tensor_for_an_axis_is_refused_at_once_by_ops_inside_ops(op):
    with pytest.raises(mg.MinigradError, match="is ambiguous"):
        op(mg.ones([2, 3]), axis=mg.zeros([3]))
