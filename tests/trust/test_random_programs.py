"""Random functions through the readings: two drivers, one that shrinks and one that is fast."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trust.fuzz import check
from tests.trust.random_functions import Choices, draw, write


#: 500 functions; `.ci/run` looks at 2,500, the long campaign at 200,000
@pytest.mark.parametrize("first", range(0, 500, 25))
def test_random_functions_agree_in_all_readings(first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 25):
            try:
                check(draw(seed, 40 if seed % 50 == 0 else 6), seed)
            except Exception as error:
                error.add_note(f"the function is draw({seed}, …)")
                raise


@pytest.mark.long
@settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(st.integers(0, 10_000), max_size=120))
def test_functions_that_can_be_shrunk_agree_in_all_readings(numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(write(Choices(numbers), 40, 2), seed=1)
