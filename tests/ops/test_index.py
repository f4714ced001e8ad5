"""Indices: slices, arrays, what is none, and what happens to them when their user changes them."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import IndexShapeError
from tests.pieces import leaf


@pytest.mark.parametrize(
    "index", [0, np.int64(1), slice(1), (0, np.int8(1)), (slice(None), 0), None, ..., (..., 0)]
)
def test_an_index_without_arrays_is_one_of_slices_wherever_it_stands(index):
    x = leaf(np.arange(4.0).reshape(2, 2))
    assert x[index].grad_fn.name() == "GetitemBackward0"
    assert mg.setitem(x, 9.0, index).grad_fn.name() == "CopySlicesBackward0"
    assert x[[0, 1], 0].grad_fn.name() == "IndexBackward0"


def test_an_index_array_stays_one_when_a_program_is_stored():
    program = static.Program()
    with static.program_guard(program):
        x, index = static.data("x", [3]), static.data("index", [2], "int64")
        y, z = x[[2, 0]], x[index]
    again = static.Program.from_json(program.to_json())
    feed = {"x": [1.0, 2.0, 3.0], "index": [1, 2]}
    found = static.Executor().run(again, feed, [y.name, z.name])
    assert [v.tolist() for v in found] == [[3.0, 1.0], [2.0, 3.0]]


def test_what_is_no_index_is_said():
    x = mg.tensor([1.0, 2.0])
    assert x[[]].tolist() == []
    assert x[mg.tensor([1, 0])].tolist() == [2.0, 1.0]
    for index, words in [
        ("a", "index: <U1"),
        (0.5, "index: float64"),
        ([0.5], r"index: float64\[1\](.|\n)*repair: index.astype\(int\), or a mask of bools"),
        (mg.tensor([0.5]), r"index: float64\[1\](.|\n)*repair: index.astype\(int\)"),
        (["a"], r"index: <U1\[1\](.|\n)*a mask of bools$"),
    ]:
        with pytest.raises(IndexShapeError, match=words):
            x[index]


def test_indices_of_the_same_dtype_are_still_copied_when_their_user_may_change_them():
    w, x = leaf([1.0, 2.0, 3.0]), mg.tensor([0, 2])
    held = x.data
    y = w[mg.astype(x, x.dtype)]
    held[:] = 1
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 0.0, 1.0]
