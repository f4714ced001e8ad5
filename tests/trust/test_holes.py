"""What no test looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.eager import backward as backward_module
from minigrad.errors import AnomalyError, DTypeError, GradError, ProgramError, ShapeError
from minigrad.registry import REGISTRY
from tests.trust.test_state import interrupted


def leaf(value):
    return mg.tensor(value, requires_grad=True)


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
    assert not np.shares_memory(x.grad.data, y.grad.data)
    assert not np.shares_memory(x.grad.data, seed)


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


def hooked_graph():
    """x is used three times and u once; the oldest user of x is newer than the user of u."""
    u, x = leaf(2.0), leaf(3.0)
    a = u * 1.0
    b = x * 2.0
    c = a + b
    out = c * x + x
    return {"u": u, "x": x, "a": a, "b": b, "c": c}, out


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
    assert seen == [("c", 3.0), ("b", 3.0), ("x", 6.0 + 8.0 + 1.0), ("a", 3.0), ("u", 3.0)]


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


@pytest.mark.parametrize(
    "pass_on", [lambda x: x + 1.0, lambda x: mg.reshape(x, shape=(2, 1)), lambda x: x * 1.0]
)
@pytest.mark.parametrize("root", ["above", "the leaf", "a node"])
def test_a_seed_that_is_handed_on_stays_as_it_was(pass_on, root):
    """In the long walk; the gradient by x begins as the seed, or as a view of it, and grows."""
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: None)
    late = pass_on(x * 3.0)
    early = pass_on(x)
    out = early + late
    seed, other = np.ones(out.shape), np.ones(2)
    roots = {"above": [], "the leaf": [x], "a node": [pass_on(x)]}[root]
    seeds = [np.ones(r.shape) for r in roots]
    mg.backward([*roots, out], [*seeds, seed])
    assert x.grad.tolist() == [4.0 + len(roots)] * 2
    assert all(s.tolist() == np.ones(s.shape).tolist() for s in (*seeds, seed, other))
    assert not any(np.shares_memory(x.grad.data, s) for s in (*seeds, seed))


def test_a_node_that_is_a_root_and_on_the_way_to_another_leaves_its_seed_alone():
    x = leaf([1.0, 2.0])
    h = x * 1.0
    seed = np.ones(2)
    mg.backward([h, h * 2.0], [seed, np.ones(2)])
    assert x.grad.tolist() == [3.0, 3.0]
    assert seed.tolist() == [1.0, 1.0]


def test_a_gradient_does_not_share_memory_with_what_a_hook_returned():
    x, returned = leaf([1.0, 2.0]), mg.tensor([5.0, 6.0])
    x.register_hook(lambda g: returned)
    (x * 3.0).sum().backward()
    assert x.grad.tolist() == [5.0, 6.0]
    assert not np.shares_memory(x.grad.data, returned.data)


class Twins(mg.Function):
    """x + y, whose backward gives one new array to both."""

    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        both = g * 2.0
        return both, both


def test_one_array_for_two_inputs_of_a_function_is_added_to_in_neither():
    x, y = leaf([1.0]), leaf([1.0])
    a, b = x * 1.0, y * 1.0
    old = a * 3.0
    (old + Twins.apply(a, b)).backward(np.ones(1))
    assert (x.grad.tolist(), y.grad.tolist()) == ([5.0], [2.0])


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


# -- programs ------------------------------------------------------------------------------


def chain(steps, size=10):
    """A program of some operators that each make ``size`` elements."""
    prog = static.Program()
    with static.program_guard(prog):
        y = static.data("x", [size])
        for _ in range(steps):
            y = mg.sin(y)
    return prog, y


def test_the_elements_of_all_values_of_a_run_are_counted():
    """No value is too large by itself; together they are."""
    prog, y = chain(5)
    feed = {"x": np.zeros(10)}
    static.Executor().run(prog, feed, [y], element_limit=1000)
    with pytest.raises(ProgramError, match=r"element_limit.* is one too many"):
        static.Executor().run(prog, feed, [y], element_limit=45)


def test_a_value_that_no_shape_tells_beforehand_is_refused_before_it_is_made():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [-1, 1])
        y = mg.matmul(x, mg.permute_dims(x))
    with pytest.raises(ProgramError, match="element_limit"):
        static.Executor().run(prog, {"x": np.zeros((1000, 1))}, [y], element_limit=100_000)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_first_operator_that_makes_nan_or_inf_is_named_with_its_inputs(bad):
    prog, y = chain(1, size=2)
    with static.program_guard(prog):
        z = y * static.data("k", []) + 1.0
        static.gradients(mg.sum(z), [prog.global_block().var("x")])
    feed = {"x": np.ones(2), "k": np.array(bad)}
    with np.errstate(all="ignore"), pytest.raises(AnomalyError, match=rf"#1 mul made {bad} in"):
        static.Executor().run(prog, feed, [z], check_finite=True)
    sound = static.Executor().run(prog, {**feed, "k": np.array(2.0)}, [z], check_finite=True)
    assert np.isfinite(sound[0]).all()


def test_a_scope_names_its_values():
    prog, y = chain(1)
    scope = static.Executor()
    scope.run(prog, {"x": np.zeros(10)}, [y])
    assert repr(scope.scope).startswith("<scope of block 0")
