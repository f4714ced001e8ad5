"""Whatever a signal stops, nothing is left half-done.

python -m tests.campaign interrupts --programs 10000
"""

import pytest

from tests.trust.interrupts import PATHS, trials


# a signal may be seen by a callback of the collector (JAX has one), where Python can only report it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", PATHS)
def test_a_signal_leaves_all_of_the_old_state_or_all_of_the_new(name):
    results = trials(name, 400)
    assert results["old"], results
    assert results["half"] == 0, results
