"""Modules as machines with a state, over random histories.

python -m tests.campaign modules --programs 10000
"""

import pytest

from tests.nn.module_machine import seeded_history


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_module_and_its_model_agree_over_seeded_histories(first):
    for seed in range(first, first + 20):
        seeded_history(seed)
