"""The data sets that come with the package."""

import sys

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


# -- text and batches --------------------------------------------------------------------------


def test_the_text_is_there_and_survives_its_alphabet():
    text = data.sonnets()
    alphabet = data.Alphabet(text)
    assert len(text) > 3500
    assert alphabet.decode(alphabet.encode(text)) == text
    assert alphabet.encode(text).max() == len(alphabet) - 1


def test_an_unknown_character_is_quoted():
    with pytest.raises(ValueError, match="'z' is not among the characters 'ab'"):
        data.Alphabet("ab").encode("az")


def test_windows_show_what_comes_next():
    given, following = data.windows(np.arange(100), 10, every=7)
    np.testing.assert_array_equal(given + 1, following)
    assert len(given) == 13


@pytest.mark.parametrize(("length", "every"), [(0, 1), (5, 1), (6, 1), (2, 0)])
def test_windows_that_do_not_fit_are_refused(length, every):
    with pytest.raises(ValueError, match="the length must be from 1 to 4"):
        data.windows(np.arange(5), length, every)


def test_a_pass_shows_every_example_once_in_an_order_of_its_own():
    loader = data.DataLoader(np.arange(10), batch_size=3, seed=5)
    passes = [np.concatenate(list(loader)).tolist() for _ in range(3)]
    assert [sorted(p) for p in passes] == [list(range(10))] * 3
    assert passes[0] != passes[1] != passes[2]
    again = data.DataLoader(np.arange(10), batch_size=3, seed=5)
    assert [np.concatenate(list(again)).tolist() for _ in range(3)] == passes


def test_arrays_stay_together():
    for x, y in data.DataLoader((np.arange(10), np.arange(10) * 2), batch_size=4):
        np.testing.assert_array_equal(2 * x, y)


def test_the_last_batch_may_be_dropped():
    loader = data.DataLoader(np.arange(10), batch_size=4, drop_last=True)
    assert (len(loader), [len(b) for b in loader]) == (2, [4, 4])
    assert len(data.DataLoader(np.arange(0), batch_size=4)) == 0


def test_batches_go_on_forever_and_an_empty_pass_is_an_error():
    batches = data.DataLoader(np.arange(4), batch_size=2).forever()
    assert [len(next(batches)) for _ in range(5)] == [2] * 5
    with pytest.raises(ValueError, match="a pass has no batch: 3 examples in batches of 4"):
        next(data.DataLoader(np.arange(3), batch_size=4, drop_last=True).forever())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: data.DataLoader((np.ones(3), np.ones(4))), r"not float64\[3\], float64\[4\]"),
        (lambda: data.DataLoader(()), "not a tuple of 0"),
        (lambda: data.DataLoader(np.array(1.0)), r"equally many examples"),
        (lambda: data.DataLoader(np.ones(3), batch_size=0), "batch_size is 0: give a whole number"),
    ],
)
def test_a_wrong_loader_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_progress_passes_all_steps_with_and_without_tqdm(monkeypatch):
    assert list(data.progress(range(3), "steps")) == [0, 1, 2]
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert list(data.progress(range(3))) == [0, 1, 2]
