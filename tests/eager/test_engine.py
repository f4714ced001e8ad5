"""Semantics of backward: accumulation, seeds, retaining, hooks, modes, order."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import GradError


def leaf(value, **kw):
    return mg.tensor(value, requires_grad=True, **kw)


def test_gradients_accumulate_over_calls_and_are_none_before():
    x = leaf(3.0)
    assert x.grad is None
    (x * x).backward()
    (x * x).backward()
    assert float(x.grad) == 12


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda x: x + x, 2),
        (lambda x: (x + x) + x, 3),
        (lambda x: x * x * x, 12),
        (lambda x: (x * x) ** 2 + (x * x) ** 2, 64),
    ],
)
def test_a_value_used_several_times_gets_the_sum(function, expected):
    x = leaf(2.0)
    function(x).backward()
    assert float(x.grad) == expected


def test_fifty_doublings_take_fifty_steps():
    x = y = leaf(1.0)
    for _ in range(50):
        y = y + y
    y.backward()
    assert float(x.grad) == 2.0**50


def test_no_seed_for_one_element_and_a_seed_in_the_shape_of_the_output_otherwise():
    x = leaf([[1.0]])
    (x * 2).backward()
    assert x.grad.tolist() == [[2.0]]
    y = leaf([1.0, 2.0])
    (y * y).backward(mg.tensor([1.0, 10.0]))
    assert y.grad.tolist() == [2.0, 40.0]
    with pytest.raises(ValueError, match=r"in the shape of the output"):
        (y * y).backward(mg.tensor([1.0]))


def test_backward_frees_saved_values_and_not_the_graph():
    x = leaf(3.0)
    s = x.sum()
    s.backward()
    s.backward()
    assert float(x.grad) == 2
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(GradError, match="second time"):
        y.backward()
    assert y.grad_fn.next_functions[0][0].variable is x


def test_a_leaf_is_its_own_gradient():
    x = leaf(3.0)
    x.backward()
    assert float(x.grad) == 1


def test_grad_returns_and_does_not_write():
    x, y = leaf(2.0), leaf(5.0)
    z = x * y
    h = z * z
    gx, gz = mg.grad(h, [x, z])
    assert (float(gx), float(gz)) == (2 * 10 * 5, 20) and x.grad is None and z.grad is None
    with pytest.raises(GradError, match="allow_unused"):
        mg.grad(x * 2, y)
    assert mg.grad(x * 2, y, allow_unused=True) == (None,)
    assert mg.grad(x * 2, y, materialize_grads=True)[0].tolist() == 0


def test_grad_with_several_outputs_and_seeds():
    x = leaf([1.0, 2.0])
    (g,) = mg.grad([x * 2, x * x], x, [mg.tensor([1.0, 1.0]), mg.tensor([1.0, 3.0])])
    assert g.tolist() == [4.0, 14.0]


def test_grad_of_an_input_given_twice():
    x = leaf(3.0)
    a, b = mg.grad(x * x, [x, x])
    assert float(a) == float(b) == 6


def test_backward_inputs_restricts_what_is_written():
    a, b = leaf(2.0), leaf(3.0)
    c = a * b
    (c * c).backward(inputs=[b, c])
    assert a.grad is None and float(b.grad) == 24 and float(c.grad) == 12


def test_create_graph_gives_derivatives_of_any_order():
    x = leaf(2.0)
    y = x**4 - 2 * x**2
    (g,) = mg.grad(y, x, create_graph=True)
    (h,) = mg.grad(g, x, create_graph=True)
    (t,) = mg.grad(h, x)
    assert (float(g), float(h), float(t)) == (24, 44, 48)


def test_tanh_to_order_six():
    x = leaf(1.0)
    y = mg.tanh(x)
    values = []
    for _ in range(6):
        (y,) = mg.grad(y, x, create_graph=True)
        values.append(float(y))
    t = np.tanh(1.0)
    assert np.isclose(values[0], 1 - t * t) and np.isclose(values[1], -2 * t * (1 - t * t))
    assert np.isclose(values[2], (1 - t * t) * (6 * t * t - 2))


def test_the_third_derivative_of_a_square_at_zero_is_zero():
    x = leaf(0.0)
    y = x**2
    for expected in (0.0, 2.0):
        (y,) = mg.grad(y, x, create_graph=True)
        assert float(y) == expected
    (third,) = mg.grad(y, x, materialize_grads=True, allow_unused=True)
    assert float(third) == 0.0


def test_double_backward_accumulates_into_grad():
    x = leaf(3.0)
    y = x * x
    y.backward(create_graph=True)
    assert float(x.grad) == 6 and x.grad.requires_grad
    g = x.grad
    x.grad = None
    (g * g).backward()
    assert float(x.grad) == 2 * 6 * 2


def test_retain_grad_keeps_the_gradient_of_a_non_leaf():
    x = leaf(2.0)
    h = x * 3
    h.retain_grad()
    assert h.retains_grad and not h.is_leaf
    (h * h).backward()
    assert float(h.grad) == 12 and float(x.grad) == 36


def test_order_of_hooks_tensor_retain_pre_rule_post():
    log = []
    x = leaf(2.0)
    h = x * 3
    h.register_hook(lambda g: log.append("tensor"))
    h.retain_grad()
    h.grad_fn.register_prehook(lambda gs: log.append("pre"))
    h.grad_fn.register_hook(lambda gi, go: log.append("post"))
    x.register_hook(lambda g: log.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: log.append(f"accumulated {float(t.grad)}"))
    (h * 1.0).backward()
    assert log == ["tensor", "pre", "post", "leaf", "accumulated 3.0"]


def test_a_tensor_hook_may_replace_the_gradient_and_be_removed():
    x = leaf(2.0)
    y = x * 3
    handle = y.register_hook(lambda g: g * 10)
    (y * 1.0).backward()
    assert float(x.grad) == 30
    handle.remove()
    x.grad = None
    (x * 3 * 1.0).backward()
    assert float(x.grad) == 3


def test_node_hooks_see_and_replace_gradients():
    x, y = leaf(2.0), leaf(5.0)
    z = x * y
    seen = []
    z.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    z.grad_fn.register_hook(
        lambda gi, go: seen.append(([float(g) for g in gi], [float(g) for g in go]))
    )
    z.backward()
    assert seen == [([10.0, 4.0], [2.0])] and float(x.grad) == 10


def test_an_accumulator_runs_as_soon_as_its_last_user_has():
    log = []
    x, y = leaf(2.0), leaf(3.0)
    a = x * y
    b = mg.sin(a)
    c = b * x
    for name, t in (("x", x), ("y", y), ("a", a), ("b", b)):
        t.register_hook(lambda g, name=name: log.append(name))
    w = leaf(1.0)
    w.register_hook(lambda g: log.append("w"))
    (c + w).backward()
    assert log.index("w") < log.index("b") < log.index("a") < log.index("x")


def test_the_newest_node_runs_first():
    log = []
    x = leaf(1.0)
    a = x * 2
    b = x * 3
    a.register_hook(lambda g: log.append("a"))
    b.register_hook(lambda g: log.append("b"))
    (a + b).backward()
    assert log == ["b", "a"]


def test_no_grad_leaves_no_graph_and_is_restored_after_an_exception():
    x = leaf(2.0)
    with pytest.raises(KeyError), mg.no_grad():
        assert not mg.is_grad_enabled() and not (x * x).requires_grad
        raise KeyError
    assert mg.is_grad_enabled() and (x * x).requires_grad
    with mg.no_grad(), mg.enable_grad():
        assert (x * x).requires_grad
    with mg.set_grad_enabled(False):
        assert not (x * x).requires_grad

    @mg.no_grad()
    def f():
        return x * x

    assert not f().requires_grad and mg.is_grad_enabled()


def test_detach_cuts_the_graph():
    x = leaf(3.0)
    y = (x * x).detach()
    assert not y.requires_grad and y.is_leaf
    (y * x).backward()
    assert float(x.grad) == 9


def test_gradients_have_the_dtype_of_their_leaf():
    x = leaf(np.float32([1, 2]))
    w = leaf([3.0, 4.0])
    (x * w).sum().backward()
    assert x.grad.dtype == np.float32 and w.grad.dtype == np.float64


def test_float32_never_upcasts():
    x = leaf(np.float32([1, 2]))
    y = ((x * 2.0 + 1).exp().log() / 3).mean()
    assert y.dtype == np.float32
    y.backward()
    assert x.grad.dtype == np.float32


def test_zero_dimensional_results_stay_arrays():
    x = leaf(2.0)
    y = x * x
    assert y.shape == () and isinstance(y.data, np.ndarray)
    y.backward()
    assert isinstance(x.grad.data, np.ndarray) and x.grad.data.shape == ()


def test_empty_arrays_work():
    x = leaf(np.zeros((0, 3)))
    (x * 2).sum().backward()
    assert x.grad.shape == (0, 3)


def test_broadcasting_is_undone():
    a, b = leaf(np.ones((3, 1))), leaf(np.ones(4))
    (a * b).sum().backward()
    assert a.grad.tolist() == [[4.0]] * 3 and b.grad.tolist() == [3.0] * 4


def test_in_place_ops_keep_the_graph_right():
    x = leaf([1.0, 2.0])
    y = x * 3
    y.add_(1.0)
    y.mul_(mg.tensor([2.0, 5.0]))
    assert y.tolist() == [8.0, 35.0] and y._version == 2
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 15.0]


def test_setitem_blocks_the_old_values_and_lets_the_new_ones_through():
    x, v = leaf([1.0, 2.0, 3.0]), leaf(7.0)
    y = x * 1.0
    y[1] = v
    (y * mg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 100.0] and float(v.grad) == 10


def test_iteration_and_length():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2 and [t.tolist() for t in x] == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(TypeError):
        len(leaf(1.0))


def test_arrays_on_the_left_defer_to_tensors():
    x = leaf([1.0, 2.0])
    y = np.array([3.0, 4.0]) * x
    assert isinstance(y, mg.Tensor)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert isinstance(np.float64(2.0) - x, mg.Tensor) and (np.float64(2.0) - x).tolist() == [
        1.0,
        0.0,
    ]


def test_hooks_on_the_accumulate_grad_of_a_leaf_run_where_its_grad_is_written():
    x = leaf([1.0, 2.0])
    log = []
    end = (x * 1).grad_fn.next_functions[0][0]
    end.register_prehook(lambda grads: log.append("pre") or (grads[0] * 10,))
    post = end.register_hook(lambda grad_inputs, grad_outputs: log.append((grad_inputs, x.grad)))
    x.register_hook(lambda g: log.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    (x * 3).sum().backward()
    assert log[:3] == ["tensor", "pre", "accumulated"]
    assert log[3][0] == () and log[3][1].tolist() == x.grad.tolist() == [30.0, 30.0]
    log.clear()
    assert mg.grad((x * 3).sum(), x)[0].tolist() == [3.0, 3.0]
    assert log == ["tensor"]
    mg.backward((x * 3).sum(), inputs=[x])
    assert x.grad.tolist() == [60.0, 60.0]
    post.remove()
    end.register_hook(lambda grad_inputs, grad_outputs: grad_outputs)
    with pytest.raises(RuntimeError, match=r"returned something(.|\n)*repair.*register_prehook"):
        (x * 3).sum().backward()
    assert x.grad.tolist() == [60.0, 60.0]


def test_a_walk_with_a_graph_can_be_drawn_and_explained():
    x = leaf([1.0, 2.0])
    y = (x * x * x).sum()
    (g,) = mg.grad(y, x, create_graph=True)
    assert "[ 3., 12.]" in str(mg.why(x))
    assert "MulBackward0" in mg.draw(y).svg and mg.draw(g.sum()).svg
