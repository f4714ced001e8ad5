"""Where functions end: no elements, one number, NaN, half precision, wrong axes, what stands for a list."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError, IndexShapeError, MinigradError, ShapeError

HALF = [np.full(10_000, 10, np.float16), np.ones(70_000, np.float16)]
WHOLE = [np.array([2**62] * 3), np.array([200, 250], np.uint8), np.array([True, False])]


def leaf(value):
    return mg.tensor(value, requires_grad=True)


@pytest.mark.parametrize("x", [*HALF, *WHOLE], ids=lambda x: f"{x.dtype}{x.size}")
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_means_and_variances_are_those_of_numpy_for_every_dtype(name, x):
    wide = x.astype(np.float32) if x.dtype == np.float16 else x  # NumPy's var overflows
    expected = getattr(np, name)(wide).astype(x.dtype if wide is not x else float)
    y = getattr(mg, name)(x)
    assert (y.dtype, float(y)) == (expected.dtype, float(expected))
    assert getattr(mg, name)(x[None], axis=1).tolist() == [float(expected)]


def test_the_gradient_of_a_mean_of_many_halves_is_not_zero():
    x = leaf(HALF[0])
    x.mean().backward()
    assert set(x.grad.tolist()) == {float(np.float16(1e-4))}


@pytest.mark.parametrize("order", [0.5, 1, 1.5, 2, 3, 7, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_the_gradient_of_a_norm_of_zeros_is_zero_for_every_order(order, axis):
    x = leaf(np.zeros((2, 3)))
    mg.norm(x, order, axis=axis).sum().backward()
    assert not x.grad.numpy().any()


@pytest.mark.parametrize("op", [mg.tril, mg.triu])
@pytest.mark.parametrize("k", [-1, 0, 1])
def test_a_vector_becomes_a_triangle_as_in_numpy_and_its_gradient_a_vector(op, k):
    x = leaf([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(op(x, k=k).data, getattr(np, op.__name__)(x.tolist(), k))
    assert mg.gradcheck(lambda x: op(x, k=k), x)
    assert mg.gradgradcheck(lambda x: op(x, k=k), x)


SINGLE = {
    "sort": lambda x: mg.sort(x),
    "sort, downwards": lambda x: mg.sort(x, descending=True),
    "cumsum": lambda x: mg.cumsum(x, axis=0),
    "cumsum, backwards": lambda x: mg.cumsum(x, axis=-1, reverse=True),
    "cumprod": lambda x: mg.cumprod(x, axis=0),
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_number_is_in_order_and_is_its_own_sum(name):
    x = leaf(3.0)
    y = SINGLE[name](x)
    assert (y.shape, float(y)) == ((), 3.0)
    assert mg.gradcheck(SINGLE[name], x)
    assert mg.gradgradcheck(SINGLE[name], x)


@pytest.mark.parametrize("descending", [False, True])
def test_the_order_of_a_single_number_is_zero(descending):
    order = mg.argsort(mg.tensor(3.0), descending=descending)
    assert (order.shape, int(order), order.dtype) == ((), 0, np.intp)


def test_a_nan_is_not_hidden_from_gradients_by_relu():
    x = leaf([np.nan, -1.0, 0.0, 2.0])
    mg.relu(x).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0, 1.0]


def test_huber_is_straight_at_infinity():
    x = leaf([np.inf, -np.inf, 0.5])
    mg.huber(x, 0.0, delta=2.0, reduction="sum").backward()
    assert x.grad.tolist() == [2.0, -2.0, 0.5]


LISTS = {
    "generator": lambda values: (v for v in values),
    "map": lambda values: map(mg.square, values),
    "values": lambda values: dict(enumerate(values)).values(),
}


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("op", [mg.stack, mg.concat, mg.add_n])
def test_what_gives_values_one_after_the_other_stands_for_a_list(op, kind):
    a, b = leaf([1.0]), leaf([1.0])
    y = op(LISTS[kind]([a, b]))
    assert y.tolist() == op([a, b]).tolist()
    y.sum().backward()
    assert a.grad is not None
    assert b.grad is not None


WRONG = {
    "repeat": (lambda: mg.repeat(leaf([1.0, 2.0]), 2, axis=4), IndexShapeError, "axes go from -1"),
    "batch_norm": (
        lambda: mg.batch_norm(leaf(np.ones((2, 2))), axis=5),
        IndexShapeError,
        "from -2",
    ),
    "log_softmax": (lambda: mg.log_softmax(leaf([]), axis=1), IndexShapeError, "axes go from -1"),
    "topk": (lambda: mg.topk(leaf(3.0), k=1), IndexShapeError, "a single number has no axes"),
    "max": (lambda: mg.max(leaf([1.0]), leaf([2.0])), DTypeError, "mg.maximum(x, y)"),
    "min": (lambda: mg.min(np.ones(2), np.zeros(2)), DTypeError, "mg.minimum(x, y)"),
    "sum": (lambda: mg.sum(leaf(1.0), leaf(2.0)), DTypeError, "axis=0"),
    "unbroadcast": (lambda: mg.unbroadcast(np.ones((3, 20)), shape=(10,)), ShapeError, "broadcast"),
    "fewer axes": (lambda: mg.unbroadcast(np.ones(3), shape=(2, 3)), ShapeError, "no broadcast"),
    "tril": (lambda: mg.tril(3.0), ShapeError, "a matrix"),
    "stride": (
        lambda: mg.conv_transpose2d(
            np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), dilation=3, output_padding=1
        ),
        ShapeError,
        "pad(result, pad_width)",
    ),
    "size": (
        lambda: mg.conv_transpose2d(np.ones((1, 1, 2, 2)), np.ones((1, 1, 1, 1)), padding=1),
        ShapeError,
        "a smaller padding",
    ),
    "mask": (lambda: mg.tensor(np.ma.array([1.0])), DTypeError, "x.filled(0.0)"),
    "masks": (lambda: leaf([1.0]) * np.ma.array([1.0]), DTypeError, "x.filled(0.0)"),
    "complex": (
        lambda: mg.abs(leaf([1.0]).astype("complex128")).sum().backward(),
        DTypeError,
        "real and imaginary parts",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_refused_with_the_line_and_a_repair(name):
    ask, kind, advice = WRONG[name]
    with pytest.raises(kind) as caught:
        ask()
    assert isinstance(caught.value, MinigradError)
    text = str(caught.value)
    assert advice in text.split("repair: ")[1] or advice in text
    assert "\n  at test_edges.py:" in text


def test_the_trace_of_a_matrix_may_lie_beside_the_diagonal():
    x = mg.arange(9.0).reshape(3, 3)
    assert [float(mg.trace(x, offset=k)) for k in (-1, 0, 1)] == [10.0, 12.0, 6.0]
