"""Random programs: eager, the executor, text, JSON and finite differences agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad import static
from tests.static.random_operators import DRAWN, copies
from tests.static.random_programs import differences, eager, program, reached, recipe, values_of

COPIED = 4  #: one program of so many is compared with its copies


def check(seed: int, size: int = 40) -> None:
    made = recipe(seed, size)
    total, grads = eager(made)
    prog, loss, variables = program(made)
    got_total, got = values_of(prog, loss, variables)
    assert np.isclose(total, got_total, rtol=1e-12)
    for a, b in zip(grads, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)
    assert [g is not None for g in variables] == reached(made)
    if seed % COPIED == 0:
        copies(prog, [g.name for g in variables if g is not None], seed % DRAWN == 0)


def check_small(seed: int) -> None:
    check(seed, 12)


@pytest.mark.parametrize("start", range(0, 300, 20))
def test_the_executor_agrees_with_eager_on_random_programs(start):
    for seed in range(start, start + 20):
        check(seed)


@settings(max_examples=40, deadline=None)
@given(st.integers(10_000, 10**9), st.integers(1, 12))
def test_small_random_programs_agree_too(seed, size):
    check(seed, size)


@pytest.mark.parametrize("start", range(1000, 1060, 20))
def test_random_programs_agree_with_finite_differences(start):
    for seed in range(start, start + 20):
        made = recipe(seed)
        made.blocked = []
        prog, loss, variables = program(made)
        _, grads = values_of(prog, loss, variables)
        rng = np.random.default_rng(seed)
        along = [rng.uniform(-1, 1, len(v)) for v in made.inputs]
        slope = differences(prog, loss, made, along)
        ours = sum(float((g * d).sum()) for g, d in zip(grads, along, strict=True))
        assert abs(slope - ours) <= 2e-5 * max(1.0, abs(slope)), seed


@pytest.mark.parametrize("seed", range(2000, 2040))
def test_random_programs_survive_text_and_json(seed):
    prog, loss, variables = program(recipe(seed))
    text, stored = str(prog), prog.to_json()
    assert str(static.parse(text)) == text
    again = static.Program.from_json(stored)
    assert again.to_json() == stored
    assert str(again) == text
    a, b = (values_of(p, loss, variables) for p in (prog, again))
    np.testing.assert_array_equal(a[1], b[1])
    test = prog.clone(for_test=True)
    assert float(static.Executor().run(test, fetch_list=[loss])[0]) == a[0]
    assert float(static.Executor().run(prog.prune(loss), fetch_list=[loss])[0]) == a[0]
