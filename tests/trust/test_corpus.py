"""One corpus through every reading: the same numbers, bit for bit where the operations are the same."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from minigrad import static
from tests.trust import readings
from tests.trust.corpus import CASES
from tests.trust.step_readings import REPAIRED_BY, Inexpressible, read

EVERY = pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])


def assert_near(found, expected, tolerance):
    value, grads = found
    np.testing.assert_allclose(value, expected[0], rtol=tolerance, atol=tolerance)
    for g, want in zip(grads, expected[1], strict=True):
        assert g.shape == want.shape
        assert g.dtype == want.dtype
        np.testing.assert_allclose(g, want, rtol=tolerance, atol=tolerance)


def assert_same_bits(found, expected):
    assert found[0].tobytes() == expected[0].tobytes()
    for g, want in zip(found[1], expected[1], strict=True):
        assert g.shape == want.shape
        assert g.tobytes() == want.tobytes()


def test_the_corpus_has_sixty_cases_with_names_of_their_own():
    assert len(CASES) >= 60
    assert len({c.name for c in CASES}) == len(CASES)


@EVERY
def test_the_eager_gradient_agrees_with_differences(case):
    expected = readings.numerical(case.function, case.args)
    assert_near(readings.eager(case.function, case.args), expected, 1e-8)


@EVERY
def test_a_program_agrees_with_the_eager_engine(case):
    expected = readings.eager(case.function, case.args)
    found = readings.interpreted(case.traced, case.args)
    if case.straight:
        assert_same_bits(found, expected)
    else:
        assert_near(found, expected, 1e-12)


@EVERY
def test_the_rules_read_on_tensors_agree_with_the_rules_on_arrays(case):
    expected = readings.eager(case.function, case.args)
    assert_near(readings.eager_graph(case.function, case.args), expected, 1e-12)


@EVERY
def test_the_rules_read_on_variables_agree_with_the_rules_on_arrays(case):
    expected = readings.eager(case.function, case.args)
    assert_near(readings.decomposed(case.traced, case.args), expected, 1e-12)


@EVERY
def test_generated_source_agrees_with_the_interpreter(case):
    expected = readings.interpreted(case.traced, case.args)
    found = readings.generated(case.traced, case.args)
    if case.straight:
        assert_same_bits(found, expected)
    else:
        assert_near(found, expected, 1e-12)


#: step → how many cases it can express
BY_STEP = {6: 6, 7: 6, 8: 11, 9: 22, 10: 9, 11: 16, 12: 16, 15: 10, 18: 11, 19: 11}


def expressed(step):
    """The cases that a step can express, with what it finds and what the eager engine finds."""
    for case in CASES:
        with suppress(Inexpressible):
            found = read(step, case.function, case.args)
            yield case, found, readings.eager(case.function, case.args)


@pytest.mark.parametrize("step", BY_STEP)
def test_the_engine_of_a_step_agrees_on_all_it_can_express(step):
    found = list(expressed(step))
    assert len(found) == BY_STEP[step]
    for _, ours, theirs in found:
        assert_near(ours, theirs, 1e-12)


@pytest.mark.parametrize("step", REPAIRED_BY)
def test_the_two_steps_that_lose_gradients_do_so_where_a_value_is_used_twice(step):
    right = {c.name for c, ours, theirs in expressed(step) if agrees(ours, theirs)}
    every = {c.name for c, _, _ in expressed(REPAIRED_BY[step])}
    assert every >= right
    assert "a value itself" in right
    assert "a value and itself" not in right


def agrees(ours, theirs):
    pairs = zip([ours[0], *ours[1]], [theirs[0], *theirs[1]], strict=True)
    return all(np.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in pairs)


def test_a_copy_of_a_traced_program_keeps_its_inputs_and_outputs():
    prog, _ = readings.with_gradients(lambda x: x * x, (np.array(2.0),))
    for copy in (prog.clone(), static.decompose(prog)):
        assert (copy.inputs, copy.outputs) == (prog.inputs, prog.outputs)
