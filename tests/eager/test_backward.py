"""Backward and its walk, node by node: what is kept, freed, summed, hooked and handed on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import AnomalyError, DTypeError, GradError, ShapeError
from minigrad.primitives.registry import REGISTRY
from tests.pieces import Stop, leaf
from tests.trust.test_state import interrupted

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


# -- bugs there were, each as the shortest program that shows it -------------------------


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gradient_of_a_number_has_memory_that_its_views_share(dtype):
    x, y = leaf(dtype(3.0)), leaf(2.0)
    for gathered in 2.0, 3.0:
        (x * y).backward()
        x.grad.detach().mul_(0.5)
        assert x.grad.item() == gathered / 2


def test_what_a_leaf_gets_is_added_up_as_arrays():
    class Loud(mg.Tensor):
        def __add__(self, other):
            raise AssertionError

    x = leaf([1.0, 2.0])
    x.grad = Loud([1.0, 1.0])
    (x * x).sum().backward()
    assert x.grad.tolist() == [3.0, 5.0]


@pytest.mark.parametrize("mode", [mg.enable_grad, mg.no_grad])
def test_gradients_with_a_graph_have_the_dtype_of_their_values(mode):
    x = mg.tensor([2.0, 3.0], dtype="float32", requires_grad=True)
    y = (x**3 * np.array([1.0, 10.0])).sum()
    with mode():
        (g,) = mg.grad(y, x, create_graph=True)
        for _ in range(2):
            y.backward(create_graph=True)
    assert (g.dtype, x.grad.dtype) == (np.float32, np.float32)
    for found, times in (g, 1), (x.grad, 2):
        (second,) = mg.grad(found.sum(), x)
        assert (second.dtype, second.tolist()) == (np.float32, [times * 12.0, times * 180.0])


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
    with pytest.raises(mg.MinigradError, match="an axis is a whole number"):
        op(mg.ones([2, 3]), axis=mg.zeros([3]))


# -- the long walk -----------------------------------------------------------------------


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
            with interrupted(at, ("eager/backward.py",)):
                inner.backward()

        outer.register_hook(interrupted_walk)
        try:
            outer.backward()
        except KeyboardInterrupt:
            done += 1
            x = leaf(3.0)
            (x * x).backward()
            assert float(x.grad) == 6.0, f"line event {at}"
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
            pytest.raises(
                AnomalyError,
                match=r"Broken\w* made inf from \(gradient 0 = 1.0, gradient 1 = 3.0\)",
            ),
        ):
            mg.backward(one + two * 3.0, create_graph=create)
        assert x.grad is None
