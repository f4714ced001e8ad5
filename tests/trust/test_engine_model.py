"""The eager engine against a naive tape, over random sessions."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trust.engine_machine import Session, seeded_session


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_the_engine_and_the_naive_tape_agree_over_seeded_sessions(first):
    for seed in range(first, first + 100):
        seeded_session(seed)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(st.lists(st.integers(0, 255), max_size=200))
def test_the_engine_and_the_naive_tape_agree_over_shrinking_sessions(choices):
    Session(choices).play(60)
