"""Element by element: powers, activations, bounds, what is finite."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError
from minigrad.ops.activations import _coefficients, erf_of_array
from minigrad.ops.elementwise import pow_log
from tests.pieces import leaf

# -- rules ---------------------------------------------------------------------------------


def test_division_that_is_safe_gives_zero_and_no_warning():
    found = mg.ops.elementwise.safe_div(np.array([1.0, 1.0, 3.0]), np.array([0.0, 2.0, 1.0]))
    assert found.tolist() == [0.0, 0.5, 3.0]


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("as_array", [False, True])
def test_second_derivatives_of_powers_at_zero(exponent, as_array):
    x = leaf([0.0, 2.0])
    y = x ** (mg.tensor([exponent, exponent]) if as_array else exponent)
    (g,) = mg.grad(y.sum(), x, create_graph=True)
    second = mg.grad(g.sum(), x)[0].tolist() if g.requires_grad else [0.0, 0.0]
    slope = exponent * (exponent - 1)
    assert second == [slope if exponent == 2.0 else 0.0, slope * 2.0 ** max(exponent - 2, 0)]


def same(found, wanted):
    found = np.asarray(getattr(found, "data", found))
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_a_power_without_a_logarithm_is_the_power_also_at_zero():
    x, y = np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, 3.0])
    same(pow_log(x, y, n=0), np.array([1.0, 0.0, 8.0]))


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan, 0.0, 2.0])
def test_what_has_the_power_zero_is_constant_whatever_it_is(x):
    for zero in 0.0, mg.tensor([0.0]), mg.tensor([0, 0]):
        base = leaf([x])
        (base**zero).sum().backward()
        assert base.grad.tolist() == [0.0]


@pytest.mark.parametrize(
    ("x", "y", "slopes"),
    [
        (0.0, np.nan, [np.nan, np.nan]),
        (0.0, -1.0, [-np.inf, np.inf]),
        (-0.0, -1.0, [np.inf, -np.inf]),
    ],
)
def test_a_power_of_zero_hides_no_nan_and_has_slopes_of_the_right_sign(x, y, slopes):
    exponent = leaf(y)
    with np.errstate(divide="ignore"):
        (first,) = mg.grad(x**exponent, exponent, create_graph=True)
        (second,) = mg.grad(first, exponent)
    np.testing.assert_equal([first.item(), second.item()], slopes)


def test_elu_may_end_at_zero():
    same(mg.elu(np.array([-1.0, 2.0]), alpha=0.0), np.array([0.0, 2.0]))


@pytest.mark.parametrize(
    ("bounds", "value", "by_x", "by_bound"),
    [
        ({"min": 2.0}, [2.0, 3.0], [0.0, 1.0], 1.0),
        ({"max": 2.0}, [1.0, 2.0], [1.0, 0.0], 1.0),
    ],
)
def test_values_are_cut_off_at_one_bound_that_is_a_tensor(bounds, value, by_x, by_bound):
    x = leaf([1.0, 3.0])
    ((name, bound),) = bounds.items()
    bound = leaf(bound)
    y = mg.clip(x, **{name: bound})
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist(), float(bound.grad)) == (value, by_x, by_bound)


def test_a_number_that_is_the_only_bound_cuts_the_gradient_off_there():
    for bounds, by_x in [({"min": 2.0}, [0.0, 1.0]), ({"max": 2.0}, [1.0, 0.0])]:
        x = leaf([1.0, 3.0])
        mg.clip(x, **bounds).sum().backward()
        assert x.grad.tolist() == by_x


def test_erf_is_that_of_the_c_library_but_for_the_last_bit():
    _coefficients.cache_clear()
    x = np.concatenate([np.linspace(-6.1, 6.1, 5001), [0.0, -0.0, 7.0, -np.inf, np.inf]])
    wanted = np.array([math.erf(v) for v in x])
    assert np.abs(erf_of_array(x) - wanted).max() <= 2.0**-52
    assert np.isnan(erf_of_array(np.array(np.nan)))
    with pytest.raises(DTypeError, match="erf is defined here for real numbers, not complex128"):
        mg.erf(1j)


def test_only_real_numbers_of_a_float_dtype_can_be_no_numbers():
    x = np.array([1, 2])
    found = mg.nan_to_num(x)
    assert found.tolist() == [1, 2] and found is not x
    assert mg.nan_to_num(np.array([np.nan, -np.inf, 1.0])).tolist() == [
        0.0, -np.finfo(float).max, 1.0,
    ]  # fmt: skip


def test_complex_numbers_do_not_lose_their_imaginary_part_unasked():
    with pytest.raises(DTypeError, match="would lose the imaginary part"):
        mg.astype(np.array([1j]), float)
    assert mg.astype(np.array([1j]), "complex64").dtype == np.complex64
    assert mg.astype(np.array([1.0]), "float32").dtype == np.float32
