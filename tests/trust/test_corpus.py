"""One corpus through every reading: the same numbers, bit for bit where the operations are the same."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad import static
from tests.trust import readings
from tests.trust.corpus import CASES

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


def test_a_copy_of_a_traced_program_keeps_its_inputs_and_outputs():
    prog, _ = readings.with_gradients(lambda x: x * x, (np.array(2.0),))
    for copy in (prog.clone(), static.decompose(prog)):
        assert (copy.inputs, copy.outputs) == (prog.inputs, prog.outputs)
