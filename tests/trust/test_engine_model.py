"""The eager engine against a naive tape, over random sessions."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trust.aliasing import seeded_history
from tests.trust.engine_machine import Session, seeded_session

FIRST = [pytest.param(k, 10) for k in range(0, 100, 10)]
LONG = [pytest.param(k, 100, marks=pytest.mark.long) for k in range(100, 400, 100)]


@pytest.mark.parametrize(("first", "count"), [*FIRST, *LONG])
def test_the_engine_and_the_naive_tape_agree_over_seeded_sessions(first, count):
    for seed in range(first, first + count):
        seeded_session(seed)


@pytest.mark.parametrize("first", range(0, 600, 150))
def test_histories_of_views_and_changes_in_place_agree_with_memory_that_is_shared(first):
    assert sum(seeded_history(seed) for seed in range(first, first + 150)) > 500


@pytest.mark.long
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(st.lists(st.integers(0, 255), max_size=200))
def test_the_engine_and_the_naive_tape_agree_over_shrinking_sessions(choices):
    Session(choices).play(60)
