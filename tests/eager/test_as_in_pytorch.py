"""Found by running the cases of PyTorch's own tests (2.13): what both must do alike."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import DTypeError, GradError, ShapeError


def leaf(value=2.0):
    return mg.tensor(value, requires_grad=True)


# -- sorting, and numbers without axes -----------------------------------------------------


def test_sorted_values_send_their_gradient_back_to_where_they_came_from():
    x = leaf([3.0, 1.0, 2.0])
    (mg.sort(x) * np.array([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


def test_the_largest_values_have_a_gradient_and_their_indices_none():
    x = leaf([3.0, 1.0, 2.0])
    values, indices = mg.topk(x, k=2)
    (values * np.array([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 10.0]
    assert not indices.requires_grad
    assert "topk, which has no gradient" in str(mg.why(indices))


@pytest.mark.parametrize("descending", [False, True])
def test_second_derivatives_go_through_sort_and_topk(descending):
    x = leaf([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]])
    assert mg.gradgradcheck(lambda x: mg.sort(x, axis=0, descending=descending) ** 3, x)
    assert mg.gradgradcheck(lambda x: mg.topk(x, k=2, largest=descending)[0] ** 3, x)


def test_sort_without_an_axis_says_what_to_do():
    for op in (mg.sort, mg.argsort):
        with pytest.raises(ShapeError, match=r"axis=None names no axis[\s\S]*flatten"):
            op(leaf([1.0]), axis=None)


@pytest.mark.parametrize(
    "op", [mg.sum, mg.mean, mg.max, mg.min, mg.prod, mg.norm, mg.logsumexp, mg.softmax]
)
@pytest.mark.parametrize("axis", [0, -1])
def test_a_single_number_may_be_reduced_over_axis_0_as_in_numpy(op, axis):
    x = leaf(2.0)
    y = op(x, axis=axis)
    (g,) = mg.grad(y, x, create_graph=True)
    assert y.shape == g.shape == ()
    assert float(g) == (0.0 if op is mg.softmax else 1.0)


def test_values_of_any_shape_are_joined_in_a_row_for_axis_none():
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([5.0])
    z = mg.concat([x, y], axis=None)
    assert z.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    (z * np.arange(5.0)).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert y.grad.tolist() == [4.0]
    assert mg.gradgradcheck(lambda a, b: mg.concat([a, b], axis=None) ** 3, (x, y))


def test_a_bias_that_would_make_the_product_larger_is_refused():
    with pytest.raises(ShapeError, match="linear"):
        mg.linear(leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([1.0, 1.0]))


# -- the engine ----------------------------------------------------------------------------


def test_retain_grad_follows_a_tensor_through_an_in_place_op():
    x = leaf()
    y = x * 1
    y.retain_grad()
    y.mul_(3.0)
    (y * 2).backward()
    assert (float(y.grad), float(x.grad)) == (2.0, 6.0)


def test_grad_by_no_tensor_is_an_error():
    with pytest.raises(GradError, match="names no tensor"):
        mg.grad(leaf() * 2, [])


def test_an_in_place_op_that_cannot_keep_shape_or_dtype_says_so():
    with pytest.raises(ShapeError, match=r"shape \[\] to \[2\][\s\S]*out-of-place"):
        (leaf() * 1).add_(mg.tensor([1.0, 2.0]))
    with pytest.raises(DTypeError, match=r"int64 into float64[\s\S]*out-of-place"):
        mg.tensor([1, 2]).add_(1.5)


# -- Function ------------------------------------------------------------------------------


class Sorted(mg.Function):
    """The values in order, and the places they came from, which have no gradient."""

    @staticmethod
    def forward(ctx, x):
        places = mg.argsort(x)
        values, numbers = x[places], places.astype(float)
        ctx.mark_non_differentiable(numbers)
        ctx.save_for_backward(places)
        return values, numbers

    @staticmethod
    def backward(ctx, grad, grad_of_places):
        (places,) = ctx.saved_tensors
        assert not grad_of_places.numpy().any()
        return mg.zeros_like(grad).scatter_add(places, grad)


def test_no_gradient_flows_through_an_output_marked_non_differentiable():
    x = mg.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, numbers = Sorted.apply(x)
    assert (values.requires_grad, numbers.requires_grad) == (True, False)
    (values * mg.tensor([1.0, 10.0, 100.0]) + numbers).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


class Scale(mg.Function):
    @staticmethod
    def forward(ctx, x, by=2.0, bias=0.0):
        ctx.by = by
        return x * by + bias

    @staticmethod
    def backward(ctx, g):
        return g * ctx.by, None, None


def test_apply_takes_keywords_and_defaults():
    x = leaf()
    y = Scale.apply(x, bias=1.0, by=5.0)
    y.backward()
    assert (float(y), float(x.grad)) == (11.0, 5.0)


def test_the_gradient_of_a_once_differentiable_function_may_be_used_but_not_differentiated():
    class Cube(mg.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x**3 + y, y * 2

        @staticmethod
        @mg.once_differentiable
        def backward(ctx, g, h):
            assert not mg.is_grad_enabled()
            (x,) = ctx.saved_tensors
            return 3 * x * x * g, g + 2 * h

    x, y = leaf(), leaf(1.0)
    first = mg.grad(Cube.apply(x * 1, y)[0], [x, y], create_graph=True)
    assert [float(g) for g in first] == [12.0, 1.0]
    assert first[0].requires_grad
    with pytest.raises(GradError, match="no second derivative"):
        first[0].backward()


# -- checkpoint ----------------------------------------------------------------------------


def test_checkpoint_reaches_what_its_function_closes_over():
    x, w = mg.tensor(2.0), leaf(3.0)
    y = mg.checkpoint(lambda a: a * w, x)
    assert float(mg.grad(y, w)[0]) == 2.0
    assert w.grad is None


def test_checkpoint_runs_its_function_once_more_in_backward():
    calls = []

    def f(a):
        calls.append(1)
        return mg.exp(mg.sin(a) * a)

    x = leaf()
    y = mg.checkpoint(f, x)
    assert len(calls) == 1
    y.backward(retain_graph=True)
    assert len(calls) == 2
    first = float(x.grad)
    y.backward()
    assert len(calls) == 3
    assert float(x.grad) == 2 * first
    assert first == pytest.approx(float(mg.grad(f(x), x)[0]), rel=1e-14)


def test_checkpoint_has_derivatives_of_any_order_and_may_be_nested():
    x = leaf(1.5)

    def f(a):
        return mg.checkpoint(lambda b: mg.sin(b) * b, a * a) + a

    def g(a):
        return mg.checkpoint(f, a)

    assert mg.gradgradcheck(g, x)
    (first,) = mg.grad(g(x), x, create_graph=True)
    (plain,) = mg.grad(x * x * mg.sin(x * x) + x, x)
    assert float(first) == pytest.approx(float(plain), rel=1e-14)


def with_noise(part, layer, generator):
    """A function that draws in the four ways there are, with a checkpoint in it."""

    def inner(a):
        return layer(a * a) * mg.uniform([8], 1.0, 2.0, generator=generator)

    def outer(a):
        h = part(inner, mg.dropout(a, 0.2, seed=generator))
        return (h * a * mg.normal([8], generator=generator) * mg.normal([8], generator=3)).sum()

    return outer


def test_checkpoint_draws_the_same_random_numbers_again():
    slopes, after = [], []
    for part in (mg.checkpoint, lambda f, *args: f(*args)):
        layer, generator = nn.Dropout(0.3, seed=1), np.random.default_rng(2)
        x = leaf(np.linspace(1.0, 2.0, 8))
        y = part(with_noise(part, layer, generator), x)
        y.backward(retain_graph=True)
        y.backward()
        slopes.append(x.grad.tolist())
        after.append([layer(mg.ones(9)).tolist(), generator.random()])  # nothing more was drawn
    assert np.count_nonzero(slopes[0]) > 2
    assert slopes[0] == slopes[1]
    assert after[0] == after[1]


def test_checkpoint_keeps_no_values():
    x = leaf(np.ones((50, 50)))
    y = mg.checkpoint(lambda a: a.exp().tanh().exp().sum(), x)
    node, kept = y.grad_fn, []
    while node is not None:
        kept += [getattr(node, s) for s in node.saved_slots]
        node = node.next_functions[0][0] if node.next_functions else None
    assert not any(isinstance(v, np.ndarray) for v in kept)


def test_checkpoint_notices_a_function_that_computes_something_else_the_second_time():
    calls = []

    def f(a):
        calls.append(1)
        return a.exp() if len(calls) == 1 else a.exp().sin()

    with pytest.raises(GradError, match="something else the second time"):
        mg.checkpoint(f, leaf()).backward()


def test_checkpoint_notices_that_its_argument_was_changed():
    x = leaf([1.0])
    h = x * 1
    y = mg.checkpoint(lambda a: a.exp(), h)
    h.add_(1.0)
    with pytest.raises(GradError, match="changed in place before backward"):
        y.sum().backward()


# -- derivatives of functions with several outputs -----------------------------------------


def both(x, y):
    return x * y, (x + y).sum()


A, B = mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])


def lists(value):
    return [lists(v) for v in value] if isinstance(value, tuple) else value.tolist()


def test_vjp_takes_one_vector_per_output():
    ys, grads = mg.vjp(both, (A, B), (mg.tensor([1.0, 10.0]), mg.tensor(100.0)))
    assert lists(ys) == [[3.0, 8.0], 10.0]
    assert lists(grads) == [[103.0, 140.0], [101.0, 120.0]]


def test_jvp_gives_one_product_per_output():
    ys, pushed = mg.jvp(both, (A, B), ([1.0, 0.0], [0.0, 10.0]))
    assert lists(ys) == [[3.0, 8.0], 10.0]
    assert lists(pushed) == [[3.0, 20.0], 11.0]


def test_jacobian_has_a_row_of_blocks_per_output():
    found = mg.jacobian(both, (A, B))
    assert lists(found) == [
        [[[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]],
        [[1.0, 1.0], [1.0, 1.0]],
    ]


def test_an_output_that_depends_on_nothing_has_zero_derivatives():
    def f(x):
        return x * x, mg.tensor([5.0])

    assert lists(mg.jacobian(f, A)) == [[[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0]]]
    assert lists(mg.jvp(f, A, [1.0, 1.0])[1]) == [[2.0, 4.0], [0.0]]
    assert lists(mg.vjp(f, A, ([1.0, 1.0], [1.0]))[1]) == [2.0, 4.0]


def test_vectors_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"jvp needs 2 vectors[\s\S]*test_as_in_pytorch"):
        mg.jvp(both, (A, B), ([1.0, 0.0],))
    with pytest.raises(ShapeError, match="vjp needs 2 vectors"):
        mg.vjp(both, (A, B), A)
    with pytest.raises(ShapeError, match=r"must have the shape \[2\]"):
        mg.hvp(lambda x: x.sum(), A, [1.0])
    with pytest.raises(DTypeError, match="a Tensor or a tuple of Tensors, not 3"):
        mg.jacobian(lambda x: 3, A)
    with pytest.raises(ShapeError, match="must return one number, it returned a tuple of 2"):
        mg.hessian(both, (A, B))
