"""Joining, splitting and borders."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ShapeError


def same(found, wanted):
    found = np.asarray(getattr(found, "data", found))
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_a_list_joined_in_a_row_hands_back_gradients_in_its_shapes():
    x, y = (mg.tensor(np.ones(s), requires_grad=True) for s in [(2, 3), (4,)])
    (mg.concat([x, y], axis=None) * np.arange(10.0)).sum().backward()
    same(x.grad, np.arange(6.0).reshape(2, 3))
    same(y.grad, np.arange(6.0, 10.0))


def test_one_part_is_a_split_and_none_is_not():
    (whole,) = mg.split(np.arange(3.0), 1)
    same(whole, np.arange(3.0))
    with pytest.raises(ShapeError, match="numbers of parts count from 1"):
        mg.split(np.arange(3.0), 0)


def test_one_pair_of_borders_counts_for_every_axis():
    x = np.ones((2, 3))
    for width in ([[1, 2]], (1, 2)):
        assert np.array_equal(mg.pad(x, pad_width=width), np.pad(x, (1, 2)))
    for width in ([[1, 2, 3]], [[1, 2]] * 3, (1, 2, 3)):
        with pytest.raises(ShapeError, match="does not fit 2 axes"):
            mg.pad(x, pad_width=width)
