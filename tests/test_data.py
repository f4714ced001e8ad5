"""The data sets that come with the package."""
import numpy as np
import pytest

from minigrad import data


def test_the_digits_are_ten_classes_of_about_equal_size():
    images, labels = data.digits()
    assert images.shape == (1797, 8, 8)
    assert (images.min(), images.max()) == (0, 1)
    counts = np.bincount(labels)
    assert len(counts) == 10
    assert counts.min() > 170


def test_a_split_loses_no_example_and_repeats_none():
    whole = data.digits()
    train, test = data.split(whole, held_back=0.25, seed=3)
    assert len(test.labels) == round(0.25 * 1797)
    rows = np.concatenate([train.images, test.images]).reshape(1797, -1)
    order = np.lexsort(rows.T)
    expected = whole.images.reshape(1797, -1)
    np.testing.assert_array_equal(rows[order], expected[np.lexsort(expected.T)])


def test_a_split_is_the_same_for_the_same_seed():
    whole = data.digits()
    first, again, other = (data.split(whole, seed=seed)[1].labels for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("share", [0, 1, -0.1, 20])
def test_a_share_outside_0_and_1_is_refused(share):
    with pytest.raises(ValueError, match=f"held_back is {share}: give the share"):
        data.split(data.digits(), held_back=share)
