"""Random programs over every registered operator: gradients, cuts, smaller and bigger questions, copies."""

from __future__ import annotations

import warnings

import pytest

from tests.static.random_operators import check


#: 300 programs; `.ci/run` looks at 1,600, the long campaign at 100,000
@pytest.mark.parametrize("first", range(0, 300, 20))
def test_random_operators_agree_with_a_naive_reader_and_in_all_copies(first):
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 20):
            try:
                refused += check(seed, True) == "refused"
            except Exception as error:
                error.add_note(f"the program is write({seed})")
                raise
    assert refused < 10
