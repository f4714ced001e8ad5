"""What stands here instead of other libraries' functions: each recipe runs and gives their numbers."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors.keywords import INSTEAD, TOO_FEW, TOO_MANY
from minigrad.errors.other_libraries import FUNCTIONS, VALUES

X = np.array([[-2.5, -1.0, -0.25, 0.5], [0.25, 1.5, 3.0, 7.5]])
Y = np.array([[1.5, -2.0, 0.75, 3.0], [2.0, 1.0, -1.0, 0.5]])
P = 1 / (1 + np.exp(-X))
POSITIVE = np.array([[4.0, 1.0], [1.0, 3.0]])
ALPHA = 1.6732632423543772


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


#: name → what NumPy gives, for x = X and y = Y unless it says otherwise
EXPECTED: dict[str, Any] = {
    "exp2": np.exp2(X), "trunc": np.trunc(X), "fix": np.trunc(X), "frac": X - np.trunc(X), "cbrt": np.cbrt(X),
    "sinc": np.sinc(X), "deg2rad": np.deg2rad(X), "rad2deg": np.rad2deg(X), "fmod": np.fmod(X, Y),
    "hardtanh": np.clip(X, -1, 1), "relu6": np.clip(X, 0, 6), "hardsigmoid": np.clip(X / 6 + 0.5, 0, 1),
    "hardswish": X * np.clip(X / 6 + 0.5, 0, 1), "logsigmoid": np.log(P), "log_sigmoid": np.log(P),
    "mish": X * np.tanh(np.log1p(np.exp(X))), "selu": 1.0507009873554805 * elu(X, ALPHA),
    "celu": 1.5 * elu(X / 1.5), "glu": X[:, :2] * P[:, 2:], "softsign": X / (1 + np.abs(X)),
    "tanhshrink": X - np.tanh(X), "softmin": np.exp(-X) / np.exp(-X).sum(1, keepdims=True),
    "prelu": np.where(X > 0, X, 0.25 * X), "threshold": np.where(X > 0.4, X, 9.0),
    "average": np.average(X, weights=np.abs(Y)), "logspace": np.logspace(0, 2, 5),
    "ptp": np.ptp(X), "diff": np.diff(X), "dist": np.linalg.norm(X - Y), "inner": (X * Y).sum(1),
    "vdot": np.vdot(X, Y), "count_nonzero": np.count_nonzero(X), "fliplr": np.fliplr(X), "flipud": np.flipud(X),
    "fmax": np.fmax(X, Y), "fmin": np.fmin(X, Y), "signbit": np.signbit(X), "ravel": X.ravel(),
    "quantile": np.quantile(X, 0.3), "cummax": np.maximum.accumulate(X), "hypot": np.hypot(X, Y),
    "rsqrt": 1 / np.sqrt(np.abs(X)), "elementwise_add": X + Y, "elementwise_sub": X - Y,
    "elementwise_mul": X * Y, "elementwise_div": X / Y, "elementwise_max": np.maximum(X, Y),
    "elementwise_min": np.minimum(X, Y), "elementwise_mod": np.mod(X, Y), "elementwise_floordiv": X // Y,
    "rms_norm": X / np.sqrt((X * X).mean(1, keepdims=True)), "addcdiv": X + 9.0 * Y / 2.0,
}  # fmt: skip
OTHERWISE = {"rsqrt": {"x": np.abs(X)}, "addcdiv": {"z": 2.0}, "prelu": {"weight": 0.25}}
METHODS = ("exp2", "trunc", "frac", "diff", "ptp", "dist", "inner", "vdot", "count_nonzero", "quantile",
           "hypot")  # fmt: skip
#: a keyword, or a function that was given too much or too little → what the line gives
KEYWORDS = [
    (INSTEAD["softplus beta"], np.log1p(np.exp(2.0 * X)) / 2.0, {}),
    (INSTEAD["gelu approximate"], tanh_gelu(X), {}),
    (INSTEAD["zeros_like dtype"], np.zeros(X.shape, np.float32), {"dtype": np.float32}),
    (INSTEAD["ones_like dtype"], np.ones(X.shape, np.float32), {"dtype": np.float32}),
    (INSTEAD["add alpha"], X + 1.5 * Y, {}),
    (INSTEAD["sub alpha"], X - 1.5 * Y, {}),
    (INSTEAD["Tensor.add_ alpha"], X + 1.5 * Y, {}),
    (INSTEAD["div rounding_mode"], X // Y, {}),
    (INSTEAD["round decimals"], np.round(X, 1), {"decimals": 1}),
    (TOO_MANY["maximum"], np.maximum(np.maximum(X, Y), 2.0), {"z": 2.0}),
    (TOO_MANY["minimum"], np.minimum(np.minimum(X, Y), 2.0), {"z": 2.0}),
    (TOO_MANY["mul"], X * Y * 2.0, {"z": 2.0}),
    (TOO_FEW["pow"], X**2, {}),
]


def result(recipe: str, **values: Any) -> np.ndarray:
    """What the last expression of a recipe gives; statements before it run first."""
    names: dict[str, Any] = {
        "mg": mg,
        "np": np,
        "x": X,
        "y": Y,
        "axis": 1,
        "alpha": 1.5,
        "beta": 2.0,
        "q": 0.3,
    }
    names |= {
        "weights": np.abs(Y),
        "weight": 0.5,
        "limit": 0.4,
        "value": 9.0,
        "start": 0,
        "stop": 2,
        "num": 5,
    }
    names |= values
    for name in ("x", "y", "weights"):
        names[name] = mg.tensor(names[name])
    *before, last = ast.parse(recipe).body
    exec(compile(ast.Module(before, []), "recipe", "exec"), names)
    assert isinstance(last, ast.Expr), recipe
    out = eval(compile(ast.Expression(last.value), "recipe", "eval"), names)
    return np.asarray(getattr(out, "data", out))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recipe_for_a_function_gives_the_numbers_that_are_meant(name):
    out = result(FUNCTIONS[name], **OTHERWISE.get(name, {}))
    np.testing.assert_allclose(out, EXPECTED[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_a_recipe_for_a_method_gives_the_numbers_that_are_meant(name):
    np.testing.assert_allclose(result(VALUES[name]), EXPECTED[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("recipe", "expected", "values"), KEYWORDS)
def test_a_recipe_for_a_keyword_gives_the_numbers_that_are_meant(recipe, expected, values):
    out = result(recipe, **values)
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_a_recipe_at_zero_has_the_value_of_the_limit():
    assert result(FUNCTIONS["sinc"], x=np.array([0.0])).tolist() == [1.0]
