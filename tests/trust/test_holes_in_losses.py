"""What no test of losses looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ShapeError

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
