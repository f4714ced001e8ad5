"""Elementwise primitives: each kernel with its gradient rules below it.

``@elementwise`` ops broadcast; a rule may return the gradient in the shape of the output, and it is
summed back to the shape of the input once, for all of them.
"""

from __future__ import annotations

from math import log as _log

import numpy as np

from ..registry import elementwise, primitive

# -- arithmetic ----------------------------------------------------------------------------


@elementwise
def add(x, y):
    """Sum of two values, ``x + y``."""
    return np.add(x, y)


add.grad(x=lambda out_grad: out_grad, y=lambda out_grad: out_grad)


@elementwise
def sub(x, y):
    """Difference, ``x - y``."""
    return np.subtract(x, y)


sub.grad(x=lambda out_grad: out_grad, y=lambda out_grad: -out_grad)


@elementwise
def mul(x, y):
    """Product, ``x * y``."""
    return np.multiply(x, y)


mul.grad(x=lambda y, out_grad: out_grad * y, y=lambda x, out_grad: out_grad * x)


@elementwise
def div(x, y):
    """Quotient, ``x / y``."""
    return np.divide(x, y)


div.grad(
    x=lambda y, out_grad: out_grad / y,
    y=lambda y, out, out_grad: -out_grad * out / y,
)


@elementwise
def safe_div(x, y):
    """Quotient, and 0 where ``y`` is 0: slopes of lengths, which have none at 0."""
    dtype = np.result_type(x, y, np.float16)
    y = np.asarray(y, dtype)
    return np.where(y == 0, dtype.type(0), np.divide(x, np.where(y == 0, dtype.type(1), y)))


safe_div.grad(
    x=lambda y, out_grad: safe_div(out_grad, y),
    y=lambda y, out, out_grad: -safe_div(out_grad * out, y),
)


@primitive
def neg(x):
    """Negative, ``-x``."""
    return np.negative(x)


neg.grad(x=lambda out_grad: -out_grad)


@primitive
def scale(x, *, scale=1.0, bias=0.0):
    """``x * scale + bias`` with two plain numbers."""
    out = np.multiply(x, scale)
    return out + bias if bias else out


scale.grad(x=lambda out_grad, scale: out_grad * scale)


@primitive
def increment(x, *, step=1):
    """``x + step``: the counter of loops."""
    return np.add(x, step)


increment.grad(x=lambda out_grad: out_grad)


@primitive
def square(x):
    """``x * x``."""
    return np.multiply(x, x)


square.grad(x=lambda x, out_grad: out_grad * (2 * x))


@primitive
def sqrt(x):
    """Square root; the gradient at 0 is infinite.  Saves its result."""
    return np.sqrt(x)


sqrt.grad(x=lambda out, out_grad: 0.5 * out_grad / out)


@primitive
def reciprocal(x):
    """``1 / x``.  Saves its result."""
    return np.true_divide(1, x)


reciprocal.grad(x=lambda out, out_grad: -out_grad * (out * out))

# -- exponentials and logarithms -----------------------------------------------------------


@primitive
def exp(x):
    """Exponential; saves its result, which is its own derivative."""
    return np.exp(x)


exp.grad(x=lambda out, out_grad: out_grad * out)


@primitive
def expm1(x):
    """``exp(x) - 1``, exact for small x."""
    return np.expm1(x)


expm1.grad(x=lambda out, out_grad: out_grad * (out + 1))


@primitive
def log(x):
    """Natural logarithm; ``log(0)`` is -inf with an infinite gradient."""
    return np.log(x)


log.grad(x=lambda x, out_grad: out_grad / x)


@primitive
def log1p(x):
    """``log(1 + x)``, exact for small x."""
    return np.log1p(x)


log1p.grad(x=lambda x, out_grad: out_grad / (1 + x))


@primitive
def log2(x):
    """Logarithm to the base 2."""
    return np.log2(x)


log2.grad(x=lambda x, out_grad: out_grad / (x * LN2))

LN2: float = _log(2.0)

# -- trigonometry --------------------------------------------------------------------------


@primitive
def sin(x):
    """Sine."""
    return np.sin(x)


sin.grad(x=lambda x, out_grad: out_grad * cos(x))


@primitive
def cos(x):
    """Cosine."""
    return np.cos(x)


cos.grad(x=lambda x, out_grad: -out_grad * sin(x))


@primitive
def tan(x):
    """Tangent; saves its result."""
    return np.tan(x)


tan.grad(x=lambda out, out_grad: out_grad * (1 + out * out))


@primitive
def asin(x):
    """Inverse sine, for -1 ≤ x ≤ 1; the gradient at ±1 is infinite."""
    return np.arcsin(x)


asin.grad(x=lambda x, out_grad: out_grad / sqrt(1 - x * x))


@primitive
def acos(x):
    """Inverse cosine, for -1 ≤ x ≤ 1; the gradient at ±1 is infinite."""
    return np.arccos(x)


acos.grad(x=lambda x, out_grad: -out_grad / sqrt(1 - x * x))


@primitive
def atan(x):
    """Inverse tangent."""
    return np.arctan(x)


atan.grad(x=lambda x, out_grad: out_grad / (1 + x * x))


@elementwise
def atan2(y, x):
    """The angle of the point (x, y), between -π and π."""
    return np.arctan2(y, x)


atan2.grad(
    y=lambda y, x, out_grad: out_grad * x / (x * x + y * y),
    x=lambda y, x, out_grad: -out_grad * y / (x * x + y * y),
)


@primitive
def sinh(x):
    """Hyperbolic sine."""
    return np.sinh(x)


sinh.grad(x=lambda x, out_grad: out_grad * cosh(x))


@primitive
def cosh(x):
    """Hyperbolic cosine."""
    return np.cosh(x)


cosh.grad(x=lambda x, out_grad: out_grad * sinh(x))


@primitive
def tanh(x):
    """Hyperbolic tangent; saves its result."""
    return np.tanh(x)


tanh.grad(x=lambda out, out_grad: out_grad * (1 - out * out))
