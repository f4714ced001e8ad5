"""What is fed is taken, or refused in the same words, by everything that runs a program."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError


def program():
    """Rows times two, and their sum."""
    prog = static.Program()
    with static.program_guard(prog):
        y = static.data("x", [-1, 2]) * static.data("n", [], "int64")
        return prog, [y, y.sum()]


def interpreted(feed):
    prog, fetch = program()
    return static.Executor().run(prog, feed, fetch)


def compiled(feed):
    prog, fetch = program()
    return static.compile(prog, fetch=fetch)(feed)


def on_jax(feed):
    prog, fetch = program()
    return static.compile(prog, fetch=fetch, backend="jax")(feed)


def known_before(feed):
    """Shapes are checked when the program is compiled, too."""
    prog, fetch = program()
    return static.compile(prog, feed, fetch)(feed)


needs_jax = pytest.mark.skipif(not find_spec("jax"), reason="pip install jax")


EVERY = pytest.mark.parametrize(
    "run", [interpreted, compiled, known_before, pytest.param(on_jax, marks=needs_jax)]
)


X = np.arange(6.0).reshape(3, 2)


#: feed → what is said of it: wrong, and to be written instead
REFUSED = {
    "an unknown name": ({"x": X, "m": 2}, "feed names 'm', which is no data of this program", "Known: 'x', 'n'"),
    "a name that is computed": ({"x": X, "n": 2, "mul_0": X}, "feed names 'mul_0', which is no data of this program", "Known: 'x', 'n'"),
    "no name": ({"x": X, "n": 2, 3: X}, "feed holds Variables or names, not 3", ""),
    "another size": ({"x": X[:, :1], "n": 2}, "feed 'x' is float64[3, 1], the program expects float64[-1, 2]", "repair: feed shape [-1, 2], or declare static.data('x', [3, 1])"),
    "another rank": ({"x": X[0], "n": 2}, "feed 'x' is float64[2], the program expects float64[-1, 2]", "repair: feed shape [-1, 2], or declare static.data('x', [2])"),
    "another kind": ({"x": X, "n": 2.5}, "feed 'n' is float64[], the program expects int64[]", "repair: feed an array of int64: array.astype('int64')"),
    "rows of several lengths": ({"x": [[1.0], [2.0, 3.0]], "n": 2}, "feed 'x' is no array: ", "repair: an array, a Tensor, or lists whose rows have equal lengths"),
}  # fmt: skip


@EVERY
@pytest.mark.parametrize("case", REFUSED)
def test_a_feed_that_does_not_fit_is_refused_in_the_same_words(run, case):
    feed, what, repair = REFUSED[case]
    with pytest.raises(ProgramError) as caught:
        run(feed)
    message = str(caught.value)
    assert message.startswith(what)
    assert "\n  at test_feeds.py:" in message
    assert repair in message


@pytest.mark.parametrize("run", [interpreted, compiled, pytest.param(on_jax, marks=needs_jax)])
def test_what_is_missing_is_named_with_its_shape(run):
    with pytest.raises(ProgramError) as caught:
        run({"n": 2})
    assert str(caught.value).startswith(
        "the program reads 'x', but it was not fed\n  at test_feeds"
    )
    assert str(caught.value).endswith("repair: feed {'x': …} with shape [-1, 2]")


@EVERY
def test_a_variable_in_an_arrays_place_says_that_it_has_no_value(run):
    _, (y, _) = program()
    with pytest.raises(ProgramError, match="^Variable 'mul_0' has no value") as caught:
        run({"x": y, "n": 2})
    assert str(caught.value).count("  at ") == 1


@EVERY
@pytest.mark.parametrize(
    "x",
    [X, X.tolist(), mg.tensor(X), X.astype(int), X.astype(np.float32)],
    ids=lambda x: type(x).__name__,
)
def test_arrays_lists_and_tensors_are_taken(run, x):
    rows, total = run({"x": x, "n": 2})
    np.testing.assert_array_equal(rows, 2 * X)
    assert (rows.dtype, float(total)) == (np.float64, 30.0)


def test_what_was_not_declared_may_be_named_by_arrays_by_shapes_or_by_name_only():
    prog, fetch = program()
    for feed, found in (
        ({"x": X}, ["compiled for x [3, 2], n []"]),
        ({"x": (5, 2), "n": ()}, ["compiled for x [5, 2], n []"]),
        (["x", "n"], []),
        (None, []),
    ):
        assert static.compile(prog, feed, fetch).history == found
    with pytest.raises(ProgramError, match="feed names 'm', which is no data"):
        static.compile(prog, ["m"], fetch)


@needs_jax
def test_a_step_on_jax_takes_feeds_by_name_or_in_one_dict():
    prog, fetch = program()
    step = static.compile(prog, ["x", "n"], fetch, backend="jax")
    for given in (step(x=X, n=2), step({"x": X, "n": 2}), step({"x": X}, n=2)):
        np.testing.assert_array_equal(given[0], 2 * X)
    with pytest.raises(ProgramError, match=r"by name\n.*\n  repair: step\(\{'x': …, 'n': …\}\)"):
        step(X, 2)


@pytest.mark.parametrize(
    "stored",
    [np.asfortranarray, lambda a: a[::-1].copy()[::-1], lambda a: np.repeat(a, 2, 1)[:, ::2]],
)
@pytest.mark.parametrize("columns", [3, 17, 40])
def test_however_arrays_lie_in_memory_interpreted_and_compiled_are_equal_bit_for_bit(
    stored, columns
):
    rng = np.random.default_rng(columns)
    a, b = rng.normal(size=(29, columns)), rng.normal(size=(columns, 5))
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [-1, columns]), static.parameter("w", stored(b))
        loss = mg.tanh(x @ w).sum() + mg.exp(x).sum(axis=0).mean() + (x * x).sum(axis=1).mean()
        static.append_backward(loss)
    feed, fetch = {"x": stored(a)}, [loss, "w@GRAD"]
    step = static.compile(prog, feed, fetch)
    expected = static.Executor().run(prog, feed, fetch)
    for found in (step(feed), step(x=a), static.Executor().run(prog, {"x": a}, fetch)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
