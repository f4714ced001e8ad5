"""Losses and the steps of optimizers: targets, lists, reductions, the ends of logarithms."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ShapeError
from minigrad.ops.update import momentum, sgd

X = np.log([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])


DEEP = np.zeros((2, 4, 3))


@pytest.mark.parametrize("loss", [mg.cross_entropy, mg.nll])
@pytest.mark.parametrize(
    ("x", "target", "axis", "advice"),
    [
        (X, [0, 2], 0, r"integers of shape \[3\]"),
        (X, [0, 2], -2, r"integers of shape \[3\]"),
        (DEEP, [0, 2], -1, r"integers of shape \[2, 4\]"),
        (X, [[1, 0, 0], [0, 0, 1]], -1, r"\[2\]: labels.argmax\(axis=1\); cross_entropy takes probabilities, too: labels.astype\(float\)"),
        (X, [[0], [2]], -1, r"\[2\]: labels.reshape\(2\)(?!\.)"),
        (X, [[0.0], [2.0]], -1, r"\[2\]: labels.reshape\(2\).astype\(int\)"),
        (np.zeros((3, 4)), [[0], [2], [1]], 1, r"\[3\]: labels.reshape\(3\)(?!\.)"),
        (X, [0.0, 2.0], -1, r"\[2\]: labels.astype\(int\)"),
        (X, [0, 1, 2], -1, r"integers of shape \[2\](?!:)"),
    ],
)  # fmt: skip
def test_targets_that_do_not_name_a_class_for_each_row_are_answered_with_what_does(
    loss, x, target, axis, advice
):
    with pytest.raises(ShapeError, match="does not name one class for each row(?s:.*)" + advice):
        loss(mg.tensor(x), np.array(target), axis=axis)


def test_losses_take_lists_with_every_reduction():
    for reduction, expected in (("mean", 2.5), ("sum", 5.0), ("none", [1.0, 4.0])):
        assert np.asarray(mg.mse([1.0, 2.0], [0.0, 0.0], reduction=reduction)).tolist() == expected


def same(found, wanted):
    found = np.asarray(getattr(found, "data", found))
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_logarithms_of_a_binary_entropy_end_at_minus_100():
    x, t = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    same(mg.binary_cross_entropy(x, t, reduction="none"), np.array([100.0, 100.0]))


@pytest.mark.parametrize("loss", [mg.mse, mg.huber])
def test_a_list_that_only_broadcasting_makes_fit_is_refused(loss):
    with pytest.raises(ShapeError, match="would broadcast"):
        loss(mg.ones([2, 1]), [1.0, 2.0])
    assert float(loss(mg.ones([2]), [1.0, 1.0])) == 0.0


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
