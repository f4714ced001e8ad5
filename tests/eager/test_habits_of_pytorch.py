"""What a user of PyTorch does by habit works as there, or is refused with a repair; never silently different."""

from __future__ import annotations

import asyncio
import copy
import pickle

import numpy as np
import pytest

import minigrad as mg


def leaf(value=2.0):
    return mg.tensor(value, requires_grad=True)


# -- in place ------------------------------------------------------------------------------


def test_augmented_assignment_is_in_place():
    y = leaf([1.0, 2.0]) * 2
    same = y
    y += 1
    y *= 3
    y -= 2
    y /= 2
    assert same is y
    assert y.tolist() == [3.5, 6.5]
    y **= 2
    y //= 4
    y %= 4
    assert same is y
    assert y.tolist() == [3.0, 2.0]


def test_the_gradient_of_a_remainder_passes_through_and_that_of_a_floor_is_zero():
    x, y = leaf([5.0, -1.0]), leaf(3.0)
    (x % y + x // y).sum().backward()
    assert (x.grad.tolist(), y.grad.item()) == ([1.0, 1.0], 0.0)  # - 1 - (-1)
    assert (7 % x).tolist() == [2.0, 0.0]
    assert (np.array([7.0, 7.0]) // x).tolist() == [1.0, -7.0]
    assert (mg.tensor([-7, 7]) % 4).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("call", "repair"),
    [
        (lambda x: x & 1, r"\(x != 0\) & .*mg.logical_and"),
        (lambda x: 2 | x, "mg.logical_or"),
        (lambda x: x ^ x, "mg.logical_xor"),
        (lambda x: ~x, r"~\(x != 0\).*mg.logical_not"),
        (lambda x: (x > 1) & x, "mg.logical_and"),
        (lambda x: (x > 1) & 1, "mg.logical_and"),
    ],
)
def test_bits_of_integers_are_not_taken_for_truth_values(call, repair):
    with pytest.raises(TypeError, match=f"(?s)truth values.*at test_habits.*{repair}"):
        call(mg.tensor([1, 2]))


def test_masks_are_combined_with_masks_of_every_kind():
    m = mg.tensor([True, False])
    assert (m & True).tolist() == (np.array([True, True]) & m).tolist() == [True, False]
    assert (m | [False, True]).tolist() == (True | m).tolist() == [True, True]
    assert (m ^ ~m).tolist() == [True, True]


def test_a_training_step_by_augmented_assignment_keeps_the_leaf():
    w = leaf([1.0, 2.0])
    kept = w
    for _ in range(2):
        (w * w).sum().backward()
        with mg.no_grad():
            w -= 0.25 * w.grad
        w.grad = None
    assert w is kept
    assert w.is_leaf
    assert w.requires_grad
    assert w.tolist() == [0.25, 0.5]


def test_augmented_assignment_of_a_leaf_is_refused_with_the_repair():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match=r"(?s)leaf that requires grad.*no_grad"):
        x += 1


def of_a_view(y):
    view = y[0:1]
    view.mul_(10)


def of_a_view_by_augmented_assignment(y):
    view = y[0]
    view *= 10


def of_every_row(y):
    for row in y:
        row += 1


def of_the_base_of_a_view(y):
    view = y.reshape(-1)
    y.mul_(10)
    return view


def of_the_base_of_an_unbound_row(y):
    rows = y.unbind(axis=0)
    y.mul_(10)
    return rows


@pytest.mark.parametrize(
    "change",
    [
        of_a_view,
        of_a_view_by_augmented_assignment,
        of_every_row,
        of_the_base_of_a_view,
        of_the_base_of_an_unbound_row,
    ],
)
def test_a_change_that_two_graphs_would_have_to_know_of_is_refused(change):
    y = leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    with pytest.raises(RuntimeError, match=r"(?s)view.*at test_habits_of_pytorch.py.*clone"):
        change(y)
    assert y.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_view_that_nobody_shares_may_change():
    x = leaf([1.0, 2.0])
    y = (x * 2).reshape(2, 1)
    y.mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


# -- .grad and .data -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (3, TypeError, "cannot be 3"),
        (np.zeros(2), TypeError, r"cannot be float64\[2\]"),
        (mg.zeros((3,)), ValueError, r"float64\[2\] cannot be float64\[3\]"),
        (mg.zeros((2,), dtype=np.float32), TypeError, "shape and the dtype"),
    ],
)
def test_grad_takes_a_tensor_of_the_same_shape_and_dtype(value, kind, text):
    x = leaf([1.0, 2.0])
    with pytest.raises(kind, match=text):
        x.grad = value
    x.grad = mg.ones((2,))
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("value", [np.arange(2), "abc", None, [[1.0], [1.0, 2.0]]])
def test_the_data_of_a_leaf_stays_floating_point(value):
    x = leaf([1.0, 2.0])
    with pytest.raises(TypeError):
        x.data = value
    x.data = [3.0, 4.0]
    assert x.tolist() == [3.0, 4.0]


def test_a_leaf_that_stops_to_require_grad_gets_none():
    x, w = leaf(), leaf(3.0)
    y = x * w
    x.requires_grad_(False)
    y.backward()
    assert (x.grad, w.grad.item()) == (None, 2.0)


# -- modes ---------------------------------------------------------------------------------


def test_modes_decorate_without_parentheses():
    for switch, enabled in [(mg.no_grad, False), (mg.no_grad(), False), (mg.enable_grad, True)]:
        with mg.set_grad_enabled(not enabled):
            assert switch(mg.is_grad_enabled)() is enabled


def test_set_grad_enabled_works_at_once_and_a_block_restores():
    mg.set_grad_enabled(False)
    try:
        assert not mg.is_grad_enabled()
        with mg.set_grad_enabled(True):
            assert mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    finally:
        mg.set_grad_enabled(True)
    decorated = mg.set_grad_enabled(False)(mg.is_grad_enabled)
    assert (mg.is_grad_enabled(), decorated(), mg.is_grad_enabled()) == (True, False, True)


def test_a_decorated_generator_is_switched_while_it_runs_and_only_then():
    @mg.no_grad()
    def numbers():
        sent = yield mg.is_grad_enabled()
        try:
            yield (sent, mg.is_grad_enabled())
        except KeyError:
            yield mg.is_grad_enabled()
        return "end"

    steps = numbers()
    assert (next(steps), mg.is_grad_enabled()) == (False, True)
    assert (steps.send(5), mg.is_grad_enabled()) == ((5, False), True)
    assert (steps.throw(KeyError), mg.is_grad_enabled()) == (False, True)
    with pytest.raises(StopIteration, match="end"):
        next(steps)


def test_a_decorated_coroutine_is_switched():
    @mg.no_grad()
    async def enabled():
        await asyncio.sleep(0)
        return mg.is_grad_enabled()

    assert asyncio.run(enabled()) is False


# -- Function ------------------------------------------------------------------------------


def function(forward, backward, **more):
    made = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made |= {k: staticmethod(v) for k, v in more.items()}
    return type("Own", (mg.Function,), made)


def test_gradients_may_stay_none_instead_of_zeros():
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, first, second):
        seen.append((first is None, second is None))
        return second * 3

    for create in (False, True):
        x = leaf([2.0, 3.0])
        _, b = function(forward, backward).apply(x)
        b.sum().backward(create_graph=create)
        assert x.grad.tolist() == [3.0, 3.0]
    assert seen == [(True, False)] * 2


def test_outputs_that_are_no_numbers_are_handed_on():
    x = leaf()
    own = function(lambda ctx, x: (x * 2, "text", None), lambda ctx, g, *rest: g * 2)
    y, text, nothing = own.apply(x)
    y.backward()
    assert (text, nothing, x.grad.item()) == ("text", None, 2.0)


def test_a_list_of_outputs_is_several_outputs():
    x = leaf()
    a, b = function(lambda ctx, x: [x * 2, x * 3], lambda ctx, g, h: g * 2 + h * 3).apply(x)
    assert (a.output_nr, b.output_nr) == (0, 1)
    (a * b).backward()
    assert x.grad.item() == 24.0


def test_more_none_than_arguments_is_fine():
    x = leaf()
    function(lambda ctx, x: x * 2, lambda ctx, g: (g * 2, None, None)).apply(x).backward()
    assert x.grad.item() == 2.0


def test_setup_context_fills_the_context_of_a_forward_without_one():
    own = function(
        lambda x, k: x**k,
        lambda ctx, g: (g * ctx.k * ctx.saved_tensors[0] ** (ctx.k - 1), None),
        setup_context=lambda ctx, inputs, output: (
            ctx.save_for_backward(inputs[0]),
            setattr(ctx, "k", inputs[1]),
        ),
    )
    x = leaf(3.0)
    own.apply(x, 2).backward()
    assert x.grad.item() == 6.0


# -- NumPy and Python ----------------------------------------------------------------------


def test_numpy_functions_are_refused_where_they_would_cut_a_graph():
    x = leaf([3.0, 4.0])
    for call in (np.sum, np.mean, np.linalg.norm, lambda x: np.stack([x, x])):
        with pytest.raises(RuntimeError, match=r"(?s)np\.\w+.*detach\(\)"):
            call(x)
    assert np.sum(x.detach()) == 7.0
    assert np.linalg.norm(mg.tensor([3.0, 4.0])) == 5.0
    assert np.stack([mg.ones((2,)), np.zeros(2)]).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((2,), 1, 2)


def test_unary_plus_and_exclusive_or():
    x = leaf([1.0, 3.0])
    assert (+x) is x
    assert ((x > 0) ^ (x > 2)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: [1, 2][mg.tensor(1.0)], TypeError, "no index"),
        (lambda: f"{leaf([1.0, 2.0]):.2f}", TypeError, "format"),
        (lambda: list(mg.tensor(1.0)), TypeError, "cannot be iterated over"),
        (lambda: leaf().register_hook(3), TypeError, "a hook is a function, not 3"),
        (lambda: pickle.dumps(leaf() * 2), RuntimeError, "only leaves"),
        (lambda: copy.deepcopy(leaf() * 2), RuntimeError, "only leaves"),
        (
            lambda: mg.tensor(1j, requires_grad=True),
            TypeError,
            "only real floating-point.*(.|\n)*two Tensors",
        ),
        (lambda: mg.tensor(k for k in range(3)), TypeError, r"list\(x\) for a generator"),
    ],
)
def test_misuse_is_answered_with_the_line_and_a_repair(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert "at test_habits_of_pytorch.py:" in str(caught.value)


def test_leaves_survive_copying_and_pickling():
    x = mg.tensor([1.0, 2.0], dtype=np.float32, requires_grad=True, name="x")
    (x * 2).sum().backward()
    a, b = copy.deepcopy([x, x])
    assert a is b
    assert (a.tolist(), a.grad.tolist(), a.requires_grad, a.name) == ([1, 2], [2, 2], True, "x")
    assert a.grad is not x.grad
    again = pickle.loads(pickle.dumps(x))
    assert (again.tolist(), again.dtype, again.requires_grad, again.is_leaf) == (
        [1, 2], np.float32, True, True,
    )  # fmt: skip


# -- corners -------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0, 0.0, np.zeros(2), 1, 2])
def test_every_derivative_of_a_constant_or_low_power_is_exact_at_zero(power):
    x = leaf([0.0, 2.0])
    y = x**power
    order = int(np.max(power))
    expected = {0: [[0, 0]] * 3, 1: [[1, 1], [0, 0], [0, 0]], 2: [[0, 4], [2, 2], [0, 0]]}[order]
    for wanted in expected:
        (y,) = mg.grad(y.sum(), x, create_graph=True, materialize_grads=True)
        assert y.tolist() == wanted
        y = y + 0 * x


def with_a_complex_seed(x):
    (x * 2).backward(mg.tensor(1j))


def by_way_of_a_complex_dtype(x):
    mg.abs(x.astype(complex) * 1j).backward()


def by_a_complex_factor(x):
    mg.abs(x * 1j).backward()


def from_a_complex_output(x):
    (x * 1j).backward()


def by_a_hook(x):
    y = x * 2
    y.register_hook(lambda g: g * 1j)
    y.backward()


@pytest.mark.parametrize(
    "call",
    [
        with_a_complex_seed, by_way_of_a_complex_dtype, by_a_complex_factor, from_a_complex_output,
        by_a_hook,
    ],
)  # fmt: skip
def test_complex_numbers_are_refused_and_never_dropped(call):
    x = leaf()
    with pytest.raises(TypeError, match="real|complex"):
        call(x)
    assert x.grad is None


# -- indices -------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [1.5, "a", mg.tensor([0.0, 1.0]), np.array([0.5]), (0, 1.0)])
def test_what_is_no_index_is_quoted(index):
    with pytest.raises(IndexError, match=r"(?s)used as indices.*test_habits_of_pytorch.py.*repair"):
        leaf([[1.0, 2.0], [3.0, 4.0]])[index]


def test_augmented_assignment_of_parts():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[0] *= 5
    y[1:] += x[0]
    y[:2] = y[1:]
    y[y > 3.5] = 0.0
    assert y.tolist() == [3.0, 0.0, 0.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0]


def test_augmented_assignment_of_a_part_whose_gradient_needs_the_old_values():
    x, w = leaf([2.0, 3.0, 4.0]), leaf(5.0)
    y = x * 1
    y[:2] *= w
    y[1:] **= 2
    y[:1] = y[:1].clone() * y[:1].clone()
    assert y.tolist() == [100.0, 225.0, 16.0]
    y.sum().backward()
    assert (x.grad.tolist(), w.grad.item()) == ([100.0, 150.0, 8.0], 130.0)
    with pytest.raises(RuntimeError, match=r"y\[:2\] = y\[:2\]\.clone\(\) \* 2"):
        y[1:] = y[1:] * w


def test_an_operand_that_is_a_view_shows_its_new_values_and_its_old_graph_is_refused():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    last = y[1:]
    y[:2] = last
    assert (y.tolist(), last.tolist()) == ([2.0, 3.0, 3.0], [3.0, 3.0])
    for walk in last.sum().backward, lambda: mg.grad(last.sum() + y.sum(), x):
        with pytest.raises(RuntimeError, match=r"saved view .* changed in place(.|\n)*repair"):
            walk()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda y, v: v.mul_(y),
        lambda y, v: y.add_(v.detach().requires_grad_()),
        lambda y, v: v.copy_(y),
        lambda y, v: v.mul_(v.detach()),
        lambda y, v: y.mul_(v.detach()),
    ],
)
def test_a_base_or_a_leaf_is_no_operand_of_a_change_of_its_memory(change):
    y = leaf([1.0, 2.0, 3.0]) * 1
    v = y[::-1]
    with pytest.raises(RuntimeError, match=r"would change both(.|\n)*repair"):
        change(y, v)
    assert (y.tolist(), v.tolist()) == ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("change", "values", "slopes"),
    [
        (lambda y: y.zero_(), [0.0, 0.0], [1.0, 1.0]),
        (lambda y: y.copy_([5.0, 6.0]), [5.0, 6.0], [1.0, 1.0]),
        (lambda y: y.__ifloordiv__(2), [1.0, 3.0], [1.0, 1.0]),
        (lambda y: y.copy_(mg.tensor(4.0, requires_grad=True)), [4.0, 4.0], [1.0, 1.0]),
        (lambda y: y.mul_(0), [0.0, 0.0], [1.0, 1.0]),
    ],
)
def test_values_without_a_graph_leave_the_old_one_behind(change, values, slopes):
    x = leaf([1.0, 2.0])
    y = x * 3
    change(y)
    assert y.tolist() == values
    (y + x).sum().backward()
    assert x.grad.tolist() == slopes


def test_a_gradient_that_is_zeroed_has_no_graph():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward(create_graph=True)
    x.grad.zero_()
    assert (x.grad.tolist(), x.grad.grad_fn, x.grad.requires_grad) == ([0.0, 0.0], None, False)
    assert "overwritten in place" in str(mg.why(x.grad))


def test_what_is_copied_in_is_all_that_is_left():
    y = mg.tensor([np.nan, np.inf])
    assert y.copy_([5.0, 6.0]).tolist() == [5.0, 6.0]
    x = leaf([1.0, 2.0])
    y = (x * np.inf).copy_(x[::-1])
    (y * mg.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [10.0, 1.0]


def test_without_a_graph_views_see_every_change():
    y = mg.tensor([1.0, 2.0, 3.0])
    last, whole = y[1:], y[...]
    last *= 10
    y[::-1] = whole
    assert y.tolist() == whole.tolist() == [30.0, 20.0, 1.0]
    assert last.tolist() == [20.0, 1.0]
