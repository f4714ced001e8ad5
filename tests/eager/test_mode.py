"""Switches: each changes its own mode, in its own thread and block; anomaly mode names what is not finite."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import AnomalyError
from tests.pieces import leaf

# -- switches ------------------------------------------------------------------------------


def test_every_switch_changes_its_own_mode_and_nothing_else():
    x = leaf(2.0)
    assert mg.is_grad_enabled()
    with mg.no_grad():
        assert not mg.is_grad_enabled() and not (x * x).requires_grad
        with mg.enable_grad():
            assert mg.is_grad_enabled() and (x * x).requires_grad
        assert not mg.is_grad_enabled()
    with mg.detect_anomaly(), mg.no_grad():
        assert not (x * x).requires_grad
        with np.errstate(all="ignore"), pytest.raises(AnomalyError), mg.enable_grad():
            mg.log(-x)
    assert mg.is_grad_enabled()


def test_what_is_not_finite_is_an_error_in_anomaly_mode_only():
    x = leaf([1.0, -1.0])
    with np.errstate(all="ignore"):
        mg.log(x).sum().backward()
        assert np.isfinite(x.grad.tolist()).all()
        for zero in (leaf(0.0), leaf([0.0])):
            mg.sqrt(zero).sum().backward()
            assert np.isinf(zero.grad.tolist()).all()
        with mg.detect_anomaly():
            with pytest.raises(AnomalyError, match=r"log made nan from \(x = float64\[2\]\)\n"):
                mg.log(x)
            with pytest.raises(AnomalyError, match=r"log made nan from \(x = -1.0\)\n"):
                mg.log(x[1])


@pytest.mark.parametrize(
    "make", [mg.no_grad, lambda: mg.set_grad_enabled(False), mg.detect_anomaly]
)
def test_a_switch_is_what_with_gives_and_may_be_used_again(make):
    switch = make()
    for _ in range(2):
        with switch as given:
            assert given is switch
            inside = mg.is_grad_enabled()
        assert inside == (make is mg.detect_anomaly)
        assert mg.is_grad_enabled()


def test_a_switch_set_at_once_decorates_as_many_functions_as_you_like():
    switch = mg.set_grad_enabled(False)
    first, second = switch(mg.is_grad_enabled), switch(mg.is_grad_enabled)
    assert mg.is_grad_enabled()
    assert [first(), second(), first()] == [False, False, False]
    assert mg.is_grad_enabled()


def test_detect_anomaly_names_the_first_op_its_inputs_and_the_line():
    x = leaf([1.0, -1.0])
    with np.errstate(all="ignore"), mg.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        mg.sqrt(mg.log(x)).sum()
    assert str(caught.value).startswith("log made nan") and "test_mode.py" in str(caught.value)


def test_detect_anomaly_in_backward():
    x = leaf(0.0)
    with np.errstate(all="ignore"):
        y = mg.sqrt(x)
        with (
            mg.detect_anomaly(),
            pytest.raises(AnomalyError, match="backward of SqrtBackward0 made inf"),
        ):
            y.backward()
    assert x.grad is None
