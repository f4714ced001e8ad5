"""What no test of backward's long walk looked at until a mutant survived."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from minigrad.eager import backward as backward_module
from minigrad.errors import AnomalyError
from minigrad.primitives.registry import REGISTRY
from tests.trust.pieces import Stop, leaf
from tests.trust.test_state import interrupted


def hooked_graph():
    """x is used three times, y and u once; between their users stand others."""
    u, x, y = leaf(2.0), leaf(3.0), leaf(5.0)
    a = u * 1.0
    b = x * 2.0
    c = y * 1.0
    d = a + b + c
    out = d * x + x
    return {"u": u, "x": x, "y": y, "a": a, "b": b, "c": c, "d": d}, out


@pytest.mark.parametrize("nested", [False, True])
def test_a_leaf_comes_right_behind_the_oldest_of_its_users(nested):
    """Hooks see the order: neither before the last gradient of x is there, nor after older nodes."""
    named, out = hooked_graph()
    seen = []
    for name, value in named.items():
        value.register_hook(lambda g, name=name: seen.append((name, float(g))))
    if nested:
        w = leaf(1.0)
        h = w * 1.0
        h.register_hook(lambda g: out.backward())
        h.backward()
    else:
        out.backward()
    assert seen == [
        ("d", 3.0),
        ("c", 3.0),
        ("y", 3.0),
        ("b", 3.0),
        ("x", 20.0),
        ("a", 3.0),
        ("u", 3.0),
    ]


def test_a_walk_inside_a_walk_leaves_what_the_outer_one_has_gathered():
    """The outputs of `unbind` have gradients already, and wait, while another walk passes through them."""
    x = leaf([1.0, 2.0])
    parts = mg.unbind(x * 1.0)
    late = parts[0] * 3.0
    out = parts[1] * 5.0 + late
    inner = []

    def hook(g):
        handle.remove()  # or it would call itself
        inner.append(mg.grad(out, x, retain_graph=True)[0].tolist())

    handle = late.register_hook(hook)
    out.backward()
    assert inner == [[3.0, 5.0]]
    assert x.grad.tolist() == [3.0, 5.0]


class Grow(mg.Function):
    """exp and the square; the gradient of exp is made of the saved output."""

    @staticmethod
    def forward(ctx, x):
        e = mg.exp(x)
        ctx.save_for_backward(x, e)
        return e, x * x

    @staticmethod
    def backward(ctx, ge, gs):
        x, e = ctx.saved_tensors
        return ge * e + gs * 2.0 * x


def test_gradients_of_an_output_and_of_its_saved_twin_are_added():
    """exp(x) reaches the sum by itself and once more within the first derivative."""
    x = leaf(0.5)
    e, _ = Grow.apply(x)
    (g,) = mg.grad(e, x, create_graph=True)
    (both,) = mg.grad([g, e], x)
    assert float(both) == pytest.approx(2.0 * np.exp(0.5), rel=1e-15)


@pytest.mark.parametrize("inputs", [2, 3])
def test_a_hook_of_a_node_sees_one_gradient_for_each_edge(inputs):
    leaves = [leaf([float(k + 1)]) for k in range(inputs)]
    out = mg.concat(leaves)
    seen = []

    def hook(grads, given):
        seen.append([g.tolist() for g in grads])
        return tuple(g * 10.0 for g in grads)

    out.grad_fn.register_hook(hook)
    out.backward(np.arange(1.0, inputs + 1))
    expected = [[k + 1.0] for k in range(inputs)]
    assert seen == [expected]
    assert [x.grad.tolist() for x in leaves] == [[10.0 * g for g in e] for e in expected]


def test_a_hook_of_a_node_with_two_edges_changes_both_gradients():
    x, y = leaf(2.0), leaf(5.0)
    z = x * y
    z.grad_fn.register_hook(lambda grads, given: (grads[0] + 1.0, grads[1] + 2.0))
    z.backward()
    assert (float(x.grad), float(y.grad)) == (6.0, 4.0)


def test_a_hook_of_a_function_of_the_user_sees_its_one_gradient():
    x = leaf(0.0)
    e, s = Grow.apply(x)
    e.grad_fn.register_hook(lambda grads, given: tuple(g * 10.0 for g in grads))
    (e + s).backward()
    assert float(x.grad) == 10.0


def test_an_interrupt_at_any_line_of_a_walk_inside_a_walk_is_forgotten_afterwards():
    done = 0
    for at in range(2000):
        _, inner = hooked_graph()
        outer = leaf(1.0) * 1.0

        def interrupted_walk(g, inner=inner, at=at):
            with interrupted(at, ("eager/backward.py", "eager/walk.py")):
                inner.backward()

        outer.register_hook(interrupted_walk)
        try:
            outer.backward()
        except KeyboardInterrupt:
            done += 1
            assert backward_module._depth == 0, f"line event {at}"
        else:
            break
    assert done > 50


def test_a_leaf_that_is_a_root_has_the_place_of_its_users_not_one_of_an_earlier_walk():
    u, x = leaf(1.0), leaf(1.0)
    seen = []
    u.register_hook(lambda g: seen.append("u"))
    x.register_hook(lambda g: seen.append("x"))
    old = x * 1.0
    mg.backward([old, old], retain_graph=True)
    a = u * 2.0
    b = x * 2.0
    seen.clear()
    mg.backward([x, a + b])
    assert seen == ["x", "u"]
    assert (float(x.grad), float(u.grad)) == (5.0, 2.0)
    assert float(old) == 1.0


def test_hooks_behind_the_commit_are_called_for_chosen_inputs_too():
    x, y = leaf(2.0), leaf(3.0)
    seen = []
    for t in (x, y):
        t.register_post_accumulate_grad_hook(lambda t: seen.append(float(t.grad)))
    mg.backward(x * y, inputs=[x])
    assert seen == [3.0]


def test_a_function_sees_tensors_also_for_outputs_that_have_no_gradient():
    x = leaf(0.5)
    seen = []

    class Noting(Grow):
        @staticmethod
        def backward(ctx, ge, gs):
            seen.append((type(ge), type(gs)))
            return Grow.backward(ctx, ge, gs)

    for create in (False, True):
        mg.grad(Noting.apply(x)[0], x, create_graph=create)
    assert seen == [(mg.Tensor, mg.Tensor)] * 2


def test_a_usual_backward_inside_a_walk_does_not_take_what_the_outer_one_has_gathered():
    x = leaf(1.0)
    a = x * 2.0
    b = x * 3.0  # the newer one: its gradient waits at x when the hook of a is called
    inner = []

    def hook(g):
        (x * 5.0).backward()
        inner.append(float(x.grad))

    a.register_hook(hook)
    (a + b).backward()
    assert inner == [5.0]
    assert float(x.grad) == 10.0


def test_a_function_to_which_no_gradient_comes_is_not_asked_for_any():
    called = []

    class Two(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0, x * 2.0

        @staticmethod
        def backward(ctx, g, h):
            called.append("two")
            return g + h

    x = leaf([1.0])
    (Stop.apply(Two.apply(x)[0]) + x * 3.0).backward(np.ones(1))
    assert called == []
    assert x.grad.tolist() == [3.0]


def a_bit_of_everything(primitive):
    """Leaves, seed and result of a graph in which gradients are handed on, views, new, missing and added up."""
    x, y, w = leaf([1.0, 2.0]), leaf([3.0, 5.0]), leaf([[0.5, 1.0], [2.0, 4.0]])
    a = x * 1.0
    b = mg.reshape(mg.reshape(a, shape=(2, 1)), shape=(2,))
    c = mg.linear(mg.expand_dims(a + y, axis=0), w, y)
    unread = primitive(mg.sin(a), b)  # gives the first of both no gradient
    late = a + b + mg.tanh(y) * mg.reshape(c, shape=(2,)) + mg.where(a > 1.5, a, y)
    v, u = y * 2.0, a * 3.0
    between = u * 5.0  # comes back to u when u and v hold one array
    return (x, y, w), np.array([1.0, 10.0]), (u + v) + between + late + unread + a * b


def test_the_generated_rules_do_what_the_loops_do():
    """`push` is written for every primitive; anomaly mode runs `pull`, which loops over the same rules."""
    made = mg.primitive(lambda x, y: x * 0.0 + y, type="second_of_both")
    made.grad(lambda out_grad: (None, out_grad))
    try:
        found = []
        for plain in (False, True):
            leaves, seed, out = a_bit_of_everything(made)
            with mg.detect_anomaly() if plain else nullcontext():
                out.backward(seed)
            assert seed.tolist() == [1.0, 10.0]
            found.append([x.grad.tolist() for x in leaves])
        assert found[0] == found[1]
    finally:
        REGISTRY.pop(made.primitive.type)


def test_anomaly_mode_names_every_gradient_that_went_into_a_rule_with_a_graph_too():
    class Broken(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0, x * 2.0

        @staticmethod
        def backward(ctx, g, h):
            return (g + h) * float("inf")

    for create in (False, True):
        x = leaf(1.0)
        one, two = Broken.apply(x)
        with (
            mg.detect_anomaly(),
            np.errstate(all="ignore"),
            pytest.raises(AnomalyError, match=r"Broken\w* made \(backward\) inf from \(1.0, 3.0\)"),
        ):
            mg.backward(one + two * 3.0, create_graph=create)
        assert x.grad is None
