"""Elementwise primitives: each kernel with its gradient rules below it.

``@elementwise`` ops broadcast; a rule may return the gradient in the shape of the output, and it is
summed back to the shape of the input once, for all of them.
"""

import math

import numpy as np

from ..primitives.registry import elementwise, primitive
from .compare import equal, logical_and, where
from .create import fill_zeros_like

__all__ = [
    "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "div", "exp",
    "exp2", "expm1", "floor_divide", "increment", "log", "log1p", "log2", "log10", "mod", "mul",
    "neg", "pow", "reciprocal", "scale", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh",
]  # fmt: skip

# -- arithmetic ----------------------------------------------------------------------------


@elementwise
def add(x, y):
    """Sum of two values, ``x + y``.

    >>> import minigrad as mg
    >>> mg.add(mg.tensor([1.0, 2.0]), 10.0)
    tensor([11., 12.])
    """
    return np.add(x, y)


add.grad(x=lambda out_grad: out_grad, y=lambda out_grad: out_grad)


@elementwise
def sub(x, y):
    """Difference, ``x - y``.

    >>> import minigrad as mg
    >>> mg.sub(mg.tensor([1.0, 2.0]), 10.0)
    tensor([-9., -8.])
    """
    return np.subtract(x, y)


sub.grad(x=lambda out_grad: out_grad, y=lambda out_grad: -out_grad)


@elementwise
def mul(x, y):
    """Product, ``x * y``.

    >>> import minigrad as mg
    >>> mg.mul(mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0]))
    tensor([3., 8.])
    """
    return np.multiply(x, y)


mul.grad(x=lambda y, out_grad: out_grad * y, y=lambda x, out_grad: out_grad * x)


@elementwise
def div(x, y):
    """Quotient, ``x / y``.

    >>> import minigrad as mg
    >>> mg.div(mg.tensor([1.0, 2.0]), 4.0)
    tensor([0.25, 0.5 ])
    """
    return np.divide(x, y)


div.grad(x=lambda y, out_grad: out_grad / y, y=lambda y, out, out_grad: -out_grad * out / y)


@elementwise
def safe_div(x, y):
    """Quotient, and 0 where ``y`` is 0: slopes of lengths, which have none at 0."""
    dtype = np.result_type(x, y, np.float16)
    y = np.asarray(y, dtype)
    zero = np.equal(y, 0)
    quotient = np.divide(x, np.where(zero, dtype.type(1), y))
    return np.where(zero, dtype.type(0), quotient)


safe_div.grad(
    x=lambda y, out_grad: safe_div(out_grad, y),
    y=lambda y, out, out_grad: -safe_div(out_grad * out, y),
).formula(x="g / y", y="-g * out / y")


@primitive
def neg(x):
    """Negative, ``-x``.

    >>> import minigrad as mg
    >>> mg.neg(mg.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    return np.negative(x)


neg.grad(x=lambda out_grad: -out_grad)


@primitive
def scale(x, *, scale=1.0, bias=0.0):
    """``x * scale + bias`` with two plain numbers.

    >>> import minigrad as mg
    >>> mg.scale([1.0, 2.0], scale=10.0, bias=1.0)
    array([11., 21.])
    """
    out = np.multiply(x, scale)
    return out + bias if bias else out


scale.grad(x=lambda out_grad, scale: out_grad * scale).formula(x="scale * g")


@primitive
def increment(x, *, step=1):
    """``x + step``: the counter of loops.

    >>> import minigrad as mg
    >>> mg.increment([1.0, 2.0], step=10)
    array([11., 12.])
    """
    return np.add(x, step)


increment.grad(x=lambda out_grad: out_grad)


@primitive
def square(x):
    """``x * x``.

    >>> import minigrad as mg
    >>> mg.square(mg.tensor([2.0, 3.0]))
    tensor([4., 9.])
    """
    return np.multiply(x, x)


square.grad(x=lambda x, out_grad: out_grad * (2 * x)).formula(x="2 * x * g")


@primitive
def sqrt(x):
    """Square root; the gradient at 0 is infinite.  Saves its result.

    >>> import minigrad as mg
    >>> mg.sqrt(mg.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """
    return np.sqrt(x)


sqrt.grad(x=lambda out, out_grad: 0.5 * out_grad / out).formula(x="g / (2 * out)")


@primitive
def reciprocal(x):
    """``1 / x``.  Saves its result.

    >>> import minigrad as mg
    >>> mg.reciprocal(mg.tensor([2.0, 4.0]))
    tensor([0.5 , 0.25])
    """
    return np.true_divide(1, x)


reciprocal.grad(x=lambda out, out_grad: -out_grad * (out * out))

# -- exponentials and logarithms -----------------------------------------------------------


@primitive
def exp(x):
    """Exponential; saves its result, which is its own derivative.

    >>> import minigrad as mg
    >>> mg.exp(mg.tensor([0.0, 1.0]))
    tensor([1.    , 2.7183])
    """
    return np.exp(x)


exp.grad(x=lambda out, out_grad: out_grad * out)


def exp2(x):
    """``2 ** x``.

    >>> import minigrad as mg
    >>> mg.exp2(mg.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """
    return pow(2.0, x)


@primitive
def expm1(x):
    """``exp(x) - 1``, exact for small x.

    >>> import minigrad as mg
    >>> mg.expm1(mg.tensor([0.0, 1e-20]))
    tensor([0.e+00, 1.e-20])
    """
    return np.expm1(x)


expm1.grad(x=lambda out, out_grad: out_grad * (out + 1))


@primitive
def log(x):
    """Natural logarithm; ``log(0)`` is -inf with an infinite gradient.

    >>> import minigrad as mg
    >>> mg.log(mg.tensor([1.0, 10.0]))
    tensor([0.    , 2.3026])
    """
    return np.log(x)


log.grad(x=lambda x, out_grad: out_grad / x)


@primitive
def log1p(x):
    """``log(1 + x)``, exact for small x.

    >>> import minigrad as mg
    >>> mg.log1p(mg.tensor([0.0, 1e-20]))
    tensor([0.e+00, 1.e-20])
    """
    return np.log1p(x)


log1p.grad(x=lambda x, out_grad: out_grad / (1 + x))


@primitive
def log2(x):
    """Logarithm to the base 2.

    >>> import minigrad as mg
    >>> mg.log2(mg.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    return np.log2(x)


log2.grad(x=lambda x, out_grad: out_grad / (x * math.log(2)))


@primitive
def log10(x):
    """Logarithm to the base 10.

    >>> import minigrad as mg
    >>> mg.log10(mg.tensor([1.0, 100.0]))
    tensor([0., 2.])
    """
    return np.log10(x)


log10.grad(x=lambda x, out_grad: out_grad / (x * math.log(10)))

# -- remainders ----------------------------------------------------------------------------


@elementwise
def mod(x, y):
    """Remainder of a division, ``x % y``; it has the sign of ``y``.

    Between its jumps it is ``x - y * (x // y)`` with a constant quotient, so the slopes are 1 and
    ``-(x // y)``.

    >>> import minigrad as mg
    >>> mg.mod(mg.tensor([5.0, -1.0]), 3.0)
    tensor([2., 2.])
    """
    return np.mod(x, y)


mod.grad(
    x=lambda out_grad: out_grad,
    y=lambda x, y, out_grad: -out_grad * floor_divide(x, y),
).formula(y="-g * floor(x / y)")


@elementwise
def floor_divide(x, y):
    """Quotient rounded down, ``x // y``; zero gradient.

    >>> import minigrad as mg
    >>> mg.floor_divide(mg.tensor([5.0, -1.0]), 3.0)
    tensor([ 1., -1.])
    """
    return np.floor_divide(x, y)


floor_divide.grad(x=(fill_zeros_like, "out_grad", "0"), y=(fill_zeros_like, "out_grad", "0"))


# -- powers, and the two slopes that make them exact where x or y is 0 ---------------------


@elementwise
def pow(x, y):
    """Power, ``x ** y``; ``x ** 0`` is 1 with gradient 0, also at x = 0.

    >>> import minigrad as mg
    >>> mg.pow(mg.tensor([1.0, 3.0]), 2)
    tensor([1., 9.])
    """
    return x**y


pow.grad(
    x=lambda x, y, out_grad: out_grad * pow_slope(x, y),
    y=lambda x, y, out_grad: out_grad * pow_log(x, y),
).formula(x="y * x ** (y - 1) * g", y="g * x ** y * log(x)")


@elementwise
def pow_slope(x, y):
    """``y * x ** (y - 1)``, and 0 where y is 0."""
    if isinstance(y, int | float):
        if not y:
            return np.zeros(np.shape(x), x.dtype)
        return 2 * x if y == 2 else y * x ** (y - 1)
    return np.multiply(y, x ** np.where(np.equal(y, 0), 0, np.subtract(y, 1)))


pow_slope.grad(
    x=lambda x, y, out_grad: out_grad * _second_slope(x, y),
    y=lambda x, y, out_grad: out_grad * (pow_log(x, y - 1, n=0) + y * pow_log(x, y - 1)),
).formula(x="g * y * (y - 1) * x ** (y - 2)", y="g * (x ** (y - 1) + y * x ** (y - 1) * log(x))")


def _second_slope(x, y):
    """``y * (y - 1) * x ** (y - 2)``, and 0 where x and y are 0: there the slope is constant."""
    if isinstance(y, int | float):
        return y * pow_slope(x, y - 1) if y else pow_slope(x, 0)
    return y * pow_slope(x, where(logical_and(equal(x, 0), equal(y, 0)), 1.0, y - 1))


@elementwise
def pow_log(x, y, *, n=1):
    """``x ** y * log(x) ** n``, and its limit 0 where x is 0 and y is not negative."""
    out = x**y
    if not n:
        return out
    limit = np.equal(x, 0) & np.greater_equal(y, 0)
    log = np.log(np.where(limit, 1, x).astype(out.dtype))  # 0 there
    return out * log**n


pow_log.grad(
    x=lambda x, y, out_grad, n: out_grad * _pow_log_slope(x, y, n),
    y=lambda x, y, out_grad, n: out_grad * pow_log(x, y, n + 1),
).formula(
    x="g * x ** (y - 1) * (y * log(x) ** n + n * log(x) ** (n - 1))",
    y="g * x ** y * log(x) ** (n + 1)",
)


def _pow_log_slope(x, y, n):
    slope = y * pow_log(x, y - 1, n)
    return slope + n * pow_log(x, y - 1, n - 1) if n else pow_slope(x, y)


# -- sine, cosine, tangent, their inverses, and the hyperbolic functions -------------------


@primitive
def sin(x):
    """Sine.

    >>> import minigrad as mg
    >>> mg.sin(mg.tensor([0.0, 1.0]))
    tensor([0.    , 0.8415])
    """
    return np.sin(x)


sin.grad(x=lambda x, out_grad: out_grad * cos(x))


@primitive
def cos(x):
    """Cosine.

    >>> import minigrad as mg
    >>> mg.cos(mg.tensor([0.0, 3.0]))
    tensor([ 1.  , -0.99])
    """
    return np.cos(x)


cos.grad(x=lambda x, out_grad: -out_grad * sin(x))


@primitive
def tan(x):
    """Tangent; saves its result.

    >>> import minigrad as mg
    >>> mg.tan(mg.tensor([0.0, 1.0]))
    tensor([0.    , 1.5574])
    """
    return np.tan(x)


tan.grad(x=lambda out, out_grad: out_grad * (1 + out * out))


@primitive
def asin(x):
    """Inverse sine, for -1 ≤ x ≤ 1; the gradient at ±1 is infinite.

    >>> import minigrad as mg
    >>> mg.asin(mg.tensor([0.0, 1.0]))
    tensor([0.    , 1.5708])
    """
    return np.arcsin(x)


asin.grad(x=lambda x, out_grad: out_grad / sqrt(1 - x * x))


@primitive
def acos(x):
    """Inverse cosine, for -1 ≤ x ≤ 1; the gradient at ±1 is infinite.

    >>> import minigrad as mg
    >>> mg.acos(mg.tensor([1.0, 0.0]))
    tensor([0.    , 1.5708])
    """
    return np.arccos(x)


acos.grad(x=lambda x, out_grad: -out_grad / sqrt(1 - x * x))


@primitive
def atan(x):
    """Inverse tangent.

    >>> import minigrad as mg
    >>> mg.atan(mg.tensor([0.0, 1.0]))
    tensor([0.    , 0.7854])
    """
    return np.arctan(x)


atan.grad(x=lambda x, out_grad: out_grad / (1 + x * x))


@elementwise
def atan2(y, x):
    """The angle of the point (x, y), between -π and π.

    >>> import minigrad as mg
    >>> mg.atan2(mg.tensor([1.0, -1.0]), mg.tensor([-1.0, -1.0]))
    tensor([ 2.3562, -2.3562])
    """
    return np.arctan2(y, x)


atan2.grad(
    y=lambda y, x, out_grad: out_grad * x / (x * x + y * y),
    x=lambda y, x, out_grad: -out_grad * y / (x * x + y * y),
)


@primitive
def sinh(x):
    """Hyperbolic sine.

    >>> import minigrad as mg
    >>> mg.sinh(mg.tensor([0.0, 1.0]))
    tensor([0.    , 1.1752])
    """
    return np.sinh(x)


sinh.grad(x=lambda x, out_grad: out_grad * cosh(x))


@primitive
def cosh(x):
    """Hyperbolic cosine.

    >>> import minigrad as mg
    >>> mg.cosh(mg.tensor([0.0, 1.0]))
    tensor([1.    , 1.5431])
    """
    return np.cosh(x)


cosh.grad(x=lambda x, out_grad: out_grad * sinh(x))


@primitive
def tanh(x):
    """Hyperbolic tangent; saves its result.

    >>> import minigrad as mg
    >>> mg.tanh(mg.tensor([0.0, 1.0]))
    tensor([0.    , 0.7616])
    """
    return np.tanh(x)


tanh.grad(x=lambda out, out_grad: out_grad * (1 - out * out))


@primitive
def asinh(x):
    """Inverse hyperbolic sine.

    >>> import minigrad as mg
    >>> mg.asinh(mg.tensor([0.0, 1.0]))
    tensor([0.    , 0.8814])
    """
    return np.arcsinh(x)


asinh.grad(x=lambda x, out_grad: out_grad / sqrt(x * x + 1))


@primitive
def acosh(x):
    """Inverse hyperbolic cosine, for x ≥ 1; the gradient at 1 is infinite.

    >>> import minigrad as mg
    >>> mg.acosh(mg.tensor([1.0, 2.0]))
    tensor([0.   , 1.317])
    """
    return np.arccosh(x)


acosh.grad(x=lambda x, out_grad: out_grad / (sqrt(x - 1) * sqrt(x + 1)))


@primitive
def atanh(x):
    """Inverse hyperbolic tangent, for -1 ≤ x ≤ 1; the gradient at ±1 is infinite.

    >>> import minigrad as mg
    >>> mg.atanh(mg.tensor([0.0, 0.5]))
    tensor([0.    , 0.5493])
    """
    return np.arctanh(x)


atanh.grad(x=lambda x, out_grad: out_grad / (1 - x * x))
