"""Sums, softmax, statistics, the largest of a list: empty axes, small integers, single numbers."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import ops
from minigrad.errors import ShapeError
from minigrad.ops.reduce import over_count
from tests.pieces import leaf


def same(found, wanted):
    found = np.asarray(getattr(found, "data", found))
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


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
    assert np.isnan(over_count(np.array(1.0), shape=(2,), correction=correction))


def test_one_row_is_divided_by_one():
    def over_rows(x):
        return over_count(x, shape=x.shape, axis=(0,))

    same(over_rows(np.ones((1, 3))), np.ones((1, 3)))
    same(over_rows(np.ones((4, 3))), np.full((4, 3), 0.25))
    same(over_rows(np.ones((0, 3))), np.ones((0, 3)))
    same(over_rows(np.ones((4, 1))), np.full((4, 1), 0.25))


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


def test_the_largest_none_and_all_of_a_list():
    x = leaf([1.0, 3.0, 2.0])
    for k, wanted in [(0, []), (3, [3.0, 2.0, 1.0])]:
        values, indices = mg.topk(x, k=k)
        assert (values.tolist(), len(indices)) == (wanted, k)
    assert mg.grad(mg.topk(x, k=0)[0].sum(), x)[0].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ShapeError, match="k=4 of 3 elements"):
        mg.topk(x, k=4)
    for f in (mg.sort, mg.argsort):
        with pytest.raises(ShapeError, match="axis=None names no axis"):
            f(x, axis=None)
