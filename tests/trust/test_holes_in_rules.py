"""What no record of an op looked at until a mutant survived: corners of kernels and rules."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import ops
from minigrad.errors import ShapeError
from minigrad.ops.elementwise import pow_log
from minigrad.ops.linalg import matmul_nt, matmul_tn
from minigrad.ops.losses import over_rows
from minigrad.ops.reduce import expand_mean, over_count
from minigrad.ops.update import momentum, sgd


def same(found, wanted):
    found = np.asarray(getattr(found, "data", found))
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_a_power_without_a_logarithm_is_the_power_also_at_zero():
    x, y = np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, 3.0])
    same(pow_log(x, y, n=0), np.array([1.0, 0.0, 8.0]))


def test_elu_may_end_at_zero():
    same(mg.elu(np.array([-1.0, 2.0]), alpha=0.0), np.array([0.0, 2.0]))


@pytest.mark.parametrize("scores", [[0, 1], np.array([0, 1], np.uint8), [False, True]])
def test_softmax_takes_whole_numbers(scores):
    e = np.exp([0.0, 1.0])
    same(mg.softmax(scores), e / e.sum())
    same(mg.log_softmax(scores), np.log(e / e.sum()))


@pytest.mark.parametrize("shape", [(2, 0), (0, 2)])
def test_softmax_of_nothing_is_nothing(shape):
    for f in (mg.softmax, mg.log_softmax):
        found = f(np.ones(shape))
        assert found.shape == shape
        assert found.dtype == float


def test_softmax_of_large_scores_has_no_overflow():
    x = np.array([[1000.0, 1000.0], [-1000.0, 0.0]])
    same(mg.softmax(x), np.array([[0.5, 0.5], [0.0, 1.0]]))
    same(mg.log_softmax(x), np.array([[-np.log(2), -np.log(2)], [-1000.0, 0.0]]))
    assert np.isfinite(mg.cross_entropy(x, np.array([0, 1])))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8])
def test_running_sums_of_small_whole_numbers_do_not_overflow(dtype):
    x = np.ones(300, dtype)
    assert int(mg.cumsum(x)[-1]) == int(mg.sum(x)) == 300
    assert int(ops.cumprod(x + x)[7]) == (1 if dtype is bool else 256)


@pytest.mark.parametrize("correction", [2, 3])
def test_a_variance_of_too_few_is_nan_without_a_warning(correction):
    x = mg.tensor([1.0, 4.0], requires_grad=True)
    for f in (mg.var, mg.std):
        y = f(x, correction=correction)
        assert np.isnan(float(y))
        assert np.isnan(mg.grad(y, x)[0].data).all()
    for way in (expand_mean, over_count):
        assert np.isnan(way(np.array(1.0), shape=(2,), correction=correction)).all()


def test_products_are_summed_to_a_shape_of_lower_rank():
    x, y = np.arange(24.0).reshape(3, 2, 4), np.arange(20.0).reshape(5, 4)
    same(matmul_nt(x, y, shape=(2, 5)), (x @ y.T).sum(0))
    same(matmul_tn(x.mT, y.T, shape=(3, 2, 5)), x @ y.T)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_the_bias_of_a_layer_may_have_another_dtype(dtype):
    x, w = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    b = np.arange(4).astype(dtype)
    same(mg.linear(x, w, b), x @ w + b)
    same(mg.linear(x[0], w[:, 0], np.float32(2.0)), np.float32(5.0))
    assert float(mg.linear(x[0], w[:, 0], 0.5)) == 3.5


def test_the_order_of_a_norm_is_above_zero():
    x = np.array([4.0, 9.0])
    assert float(mg.norm(x, 0.5)) == 25.0
    for order in (0, -1, "fro"):
        with pytest.raises(ShapeError, match="is no norm"):
            mg.norm(x, order)


def test_one_row_is_divided_by_one():
    same(over_rows(np.ones((1, 3))), np.ones((1, 3)))
    same(over_rows(np.ones((4, 3))), np.full((4, 3), 0.25))
    same(over_rows(np.ones((0, 3))), np.ones((0, 3)))
    same(over_rows(np.ones((4, 1))), np.full((4, 1), 0.25))


def test_logarithms_of_a_binary_entropy_end_at_minus_100():
    x, t = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    same(mg.binary_cross_entropy(x, t, reduction="none"), np.array([100.0, 100.0]))


@pytest.mark.parametrize("loss", [mg.mse, mg.huber])
def test_a_list_that_only_broadcasting_makes_fit_is_refused(loss):
    with pytest.raises(ShapeError, match="would broadcast"):
        loss(mg.ones([2, 1]), [1.0, 2.0])
    assert float(loss(mg.ones([2]), [1.0, 1.0])) == 0.0


def test_a_list_joined_in_a_row_hands_back_gradients_in_its_shapes():
    x, y = (mg.tensor(np.ones(s), requires_grad=True) for s in [(2, 3), (4,)])
    (mg.concat([x, y], axis=None) * np.arange(10.0)).sum().backward()
    same(x.grad, np.arange(6.0).reshape(2, 3))
    same(y.grad, np.arange(6.0, 10.0))


def test_one_part_is_a_split_and_none_is_not():
    (whole,) = mg.split(np.arange(3.0), 1)
    same(whole, np.arange(3.0))
    with pytest.raises(ShapeError, match="equal parts"):
        mg.split(np.arange(3.0), 0)


#: reduction → its value and its gradient for the number 2
OF_A_NUMBER = {
    "sum": (2.0, 1.0), "mean": (2.0, 1.0), "max": (2.0, 1.0), "prod": (2.0, 1.0), "var": (0.0, 0.0),
    "std": (0.0, 0.0), "norm": (2.0, 1.0), "logsumexp": (2.0, 1.0), "normalize": (0.0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_A_NUMBER)
@pytest.mark.parametrize("axis", [0, -1])
def test_a_single_number_is_reduced_along_the_axes_0_and_minus_1(name, axis):
    x = mg.tensor(2.0, requires_grad=True)
    y = getattr(mg, name)(x, axis=axis)
    assert (float(y), float(mg.grad(y, x)[0])) == OF_A_NUMBER[name]
    for wrong in (1, -2):
        with pytest.raises(ShapeError):
            getattr(mg, name)(x, axis=wrong)


@pytest.mark.parametrize("size", [(), (1,), (3,)])
def test_a_step_of_an_optimizer_keeps_shape_and_dtype_of_the_parameter(size):
    param = np.full(size, 2.0, np.float32)
    for grad in (np.ones(size), np.ones(size, np.float32), np.float64(1.0), np.float32(1.0)):
        for rate in (0.5, np.float32(0.5), np.float64(0.5)):
            same(sgd(param, grad, rate), np.full(size, 1.5, np.float32))
            made, velocity = momentum(param, grad, np.zeros(size, np.float32), rate)
            same(made, np.full(size, 1.5, np.float32))
            same(velocity, np.ones(size, np.float32))
    assert (param == 2.0).all()
