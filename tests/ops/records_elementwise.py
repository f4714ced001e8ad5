"""Records of arithmetic, functions, comparisons and activations."""

from __future__ import annotations

from math import erf

import numpy as np

from minigrad.errors import DTypeError, ShapeError
from tests.opinfo import RAGGED, TEXT, binary, draw, f32, fails, ragged, record, s, unary

MISFIT = fails(ShapeError, "compared from the right", np.ones((2, 3)), np.ones(2))
WORDS = fails(DTypeError, "pass Tensors, arrays or numbers", np.ones(2), "text")
ONE = [RAGGED, TEXT]
TWO = [MISFIT, WORDS]
ODD = np.array([[np.nan, np.inf, 1.0], [-np.inf, 0.0, -2.5]])
erf_of = np.vectorize(erf, otypes=[float])


def as_float(x):
    """The dtype that a function of ``x`` has."""
    return np.result_type(x, np.float16) if isinstance(x, np.ndarray) else np.dtype(float)


def like(x, value):
    return np.asarray(value).astype(as_float(x))


# -- arithmetic ----------------------------------------------------------------------------

record("add", lambda x, y: x + y, binary(), TWO, holomorphic=True)
record("sub", lambda x, y: x - y, binary(), TWO, holomorphic=True)
record("mul", lambda x, y: x * y, binary(), TWO, holomorphic=True)
record("div", lambda x, y: x / y, binary(right=(0.3, 2.0)), TWO, holomorphic=True)
record(
    "safe_div",
    lambda x, y: x / y,
    binary(right=(0.3, 2.0)),
    TWO,
    holomorphic=True,
    domain="all numbers; 0 where y is 0",
)
record(
    "pow",
    lambda x, y: x**y,
    binary(left=(0.3, 2.0)),
    TWO,
    holomorphic=True,
    domain="x > 0, or whole numbers y",
)
record("pow_slope", lambda x, y: y * x ** (y - 1), binary(left=(0.3, 2.0)), TWO, holomorphic=True)
record(
    "pow_log",
    lambda x, y, n: x**y * np.log(in_power(x, y)) ** n,
    [*binary(left=(0.3, 2.0), n=1), *binary(left=(0.3, 2.0), n=2), *binary(left=(0.3, 2.0), n=0)],
    TWO,
    holomorphic=True,
)


def in_power(x, y):
    """``x`` in the dtype of ``x ** y``."""
    return np.asarray(x, np.result_type(x, y))


record("mod", lambda x, y: x % y, binary(right=(0.3, 2.0)), TWO, domain="y != 0, between the jumps")
record(
    "floor_divide",
    lambda x, y: x // y,
    binary(right=(0.3, 2.0)),
    TWO,
    domain="y != 0; zero gradient",
)
record("neg", lambda x: -x, unary(), ONE, holomorphic=True)
record(
    "scale",
    lambda x, scale, bias: x * scale + bias,
    unary(scale=2.5, bias=-1.0),
    [TEXT],
    holomorphic=True,
)
record("increment", lambda x, step: x + step, unary(step=2), [RAGGED, TEXT], holomorphic=True)
record("square", lambda x: x * x, unary(), ONE, holomorphic=True)
record("sqrt", np.sqrt, unary(0.2, 3), ONE, holomorphic=True, domain="x >= 0")
record("reciprocal", lambda x: 1 / x, unary(0.4, 3), ONE, holomorphic=True, domain="x != 0")

# -- functions of analysis -----------------------------------------------------------------

for _name, _function, _low, _high, _domain in [
    ("exp", np.exp, -2, 2, "all numbers"),
    ("expm1", np.expm1, -2, 2, "all numbers"),
    ("log", np.log, 0.2, 3, "x > 0"),
    ("log1p", np.log1p, -0.7, 3, "x > -1"),
    ("log2", np.log2, 0.2, 3, "x > 0"),
    ("log10", np.log10, 0.2, 3, "x > 0"),
    ("sin", np.sin, -3, 3, "all numbers"),
    ("cos", np.cos, -3, 3, "all numbers"),
    ("tan", np.tan, -1.2, 1.2, "between the poles"),
    ("asin", np.arcsin, -0.9, 0.9, "-1 <= x <= 1"),
    ("acos", np.arccos, -0.9, 0.9, "-1 <= x <= 1"),
    ("atan", np.arctan, -3, 3, "all numbers"),
    ("sinh", np.sinh, -2, 2, "all numbers"),
    ("cosh", np.cosh, -2, 2, "all numbers"),
    ("tanh", np.tanh, -2, 2, "all numbers"),
    ("asinh", np.arcsinh, -3, 3, "all numbers"),
    ("acosh", np.arccosh, 1.2, 3, "x >= 1"),
    ("atanh", np.arctanh, -0.9, 0.9, "-1 <= x <= 1"),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), -4, 4, "all numbers"),
]:
    record(_name, _function, unary(_low, _high), ONE, holomorphic=True, domain=_domain)
record("atan2", np.arctan2, binary(gap=0.2), TWO, domain="all but the origin")
record(
    "logaddexp",
    lambda x, y: np.log(np.exp(in_power(x, y)) + np.exp(in_power(y, x))),
    binary(),
    TWO,
    holomorphic=True,
)
record("softplus", lambda x: like(x, np.log(1 + np.exp(x))), unary(-3, 3), ONE, holomorphic=False)
record("erf", lambda x: like(x, erf_of(x)), unary(-3, 3), ONE)
record("gelu", lambda x: like(x, x * (0.5 + 0.5 * erf_of(x / np.sqrt(2)))), unary(-3, 3), ONE)
record("relu", lambda x: np.where(x > 0, x, 0), unary(gap=0.1), [TEXT, RAGGED])
record(
    "leaky_relu",
    lambda x, negative_slope: np.where(x > 0, x, negative_slope * x),
    unary(gap=0.1, negative_slope=0.1),
    ONE,
)
record(
    "elu",
    lambda x, alpha: np.where(x > 0, x, alpha * (np.exp(x) - 1)),
    unary(gap=0.1, alpha=1.5),
    [RAGGED, TEXT, fails(ShapeError, "alpha", np.ones(2), alpha=-1.0)],
)

# -- comparisons and choices ---------------------------------------------------------------

for _name, _function in [
    ("less_than", np.less),
    ("less_equal", np.less_equal),
    ("greater_than", np.greater),
    ("greater_equal", np.greater_equal),
    ("equal", np.equal),
    ("not_equal", np.not_equal),
    ("logical_and", np.logical_and),
    ("logical_or", np.logical_or),
    ("logical_xor", np.logical_xor),
]:
    record(_name, _function, [*binary(), s(np.arange(4), np.array([0, 2, 2, 3]))], [MISFIT])
record(
    "logical_not", np.logical_not, [*unary(), s(np.array([0, 1, 2])), s(np.array([True]))], [RAGGED]
)
record("maximum", np.maximum, binary(), TWO)
record("minimum", np.minimum, binary(), TWO)
record(
    "tie_weight",
    lambda x, y: np.heaviside(np.subtract(x, y), 0.5).astype(np.result_type(x, y)),
    binary(),
    TWO,
)
record(
    "where",
    lambda condition, x, y: np.where(condition, x, y),
    [s(np.asarray(_draw.args[0]) > 0, *_draw.args) for _draw in binary()],
    [
        fails(ShapeError, "compared from the right", np.ones(2, bool), np.ones(3), np.ones(3)),
        fails(ShapeError, "equally long", [[1], [1, 2]], 1.0, 2.0),
    ],
)
record(
    "clip",
    lambda x, min, max: np.minimum(np.maximum(x, min), max),
    unary(gap=0.1, min=-0.77, max=0.91),
    [ragged(min=0), fails(ShapeError, "needs a bound", np.ones(2))],
)
record("abs", np.abs, unary(gap=0.1), ONE)
for _name, _function in [("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)]:
    record(
        _name, _function, [*unary(), s(ODD), s(f32(ODD))], ONE, domain="all numbers; no gradient"
    )
for _name, _function in [("sign", np.sign), ("floor", np.floor), ("ceil", np.ceil)]:
    record(_name, _function, unary(gap=0.1), ONE, domain="all numbers; zero gradient")
record(
    "round",
    lambda x, decimals: np.round(x, decimals),
    unary(gap=0.1, decimals=0),
    [RAGGED, TEXT],
    domain="all numbers; zero gradient",
)

# -- constants, copies, dtypes -------------------------------------------------------------

record("fill_zeros_like", np.zeros_like, unary(), [RAGGED])
record("fill_ones_like", np.ones_like, unary(), [RAGGED])
record(
    "fill_constant",
    lambda shape, value, dtype: np.full(shape, value, dtype),
    [
        s(shape=shape, value=value, dtype=dtype)
        for shape in [(), (0,), (2, 3)]
        for value, dtype in [(1.5, "float64"), (2, "int64"), (0.5, "float32")]
    ],
    [
        fails(ShapeError, "negative", shape=(-1,)),
        fails(DTypeError, "not understood", dtype="floot"),
    ],
)
record("assign", np.array, unary(), [RAGGED], holomorphic=True)
record(
    "cast",
    lambda x, dtype: np.asarray(x).astype(dtype),
    unary(dtype="float64"),
    [ragged(dtype="float32"), fails(DTypeError, "not understood", np.ones(2), dtype="floot")],
)
record(
    "discretize",
    lambda x, dtype: np.asarray(x).astype(dtype),
    [*unary(dtype="int64"), s(draw(3), dtype="bool"), s(f32(draw(3)), dtype="int8")],
    [ragged(dtype="float32"), fails(DTypeError, "not understood", np.ones(2), dtype="floot")],
)
