"""Random programs over every registered operator: gradients, cuts, smaller and bigger questions, copies."""

from __future__ import annotations

import warnings

import pytest

from tests.static.random_operators import check

#: 3,300 programs; the first 300 and every fourth of the others are compared with their copies, too
#: the campaign runs 100,000, all with copies: ``python -m tests.campaign operators --programs 100000``
FIRST = [pytest.param(k, 20) for k in range(0, 300, 20)]
LONG = [pytest.param(k, 200, marks=pytest.mark.long) for k in range(300, 1500, 200)]


@pytest.mark.parametrize(("first", "count"), [*FIRST, *LONG])
def test_random_operators_agree_with_a_naive_reader_and_in_all_copies(first, count):
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            try:
                refused += check(seed, seed < 300 or seed % 4 == 0) == "refused"
            except Exception as error:
                error.add_note(f"the program is write({seed})")
                raise
    assert refused < count / 2
