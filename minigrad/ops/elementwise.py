"""Elementwise primitives: each kernel with its gradient rules below it.

``@elementwise`` ops broadcast; a rule may return the gradient in the shape of the output, and it is summed back to the
shape of the input once, for all of them.
"""
from __future__ import annotations

import numpy as np

from ..registry import elementwise, primitive

# -- arithmetic ----------------------------------------------------------------------------


@elementwise
def add(x, y):
    """Sum of two values, ``x + y``."""
    return np.add(x, y)


add.grad(x=lambda out_grad: out_grad,
         y=lambda out_grad: out_grad)


@elementwise
def sub(x, y):
    """Difference, ``x - y``."""
    return np.subtract(x, y)


sub.grad(x=lambda out_grad: out_grad,
         y=lambda out_grad: -out_grad)


@elementwise
def mul(x, y):
    """Product, ``x * y``."""
    return np.multiply(x, y)


mul.grad(x=lambda y, out_grad: out_grad * y,
         y=lambda x, out_grad: out_grad * x)


@elementwise
def div(x, y):
    """Quotient, ``x / y``."""
    return np.divide(x, y)


div.grad(x=lambda y, out_grad: out_grad / y,
         y=lambda y, out, out_grad: -out_grad * out / y)


@primitive
def neg(x):
    """Negative, ``-x``."""
    return np.negative(x)


neg.grad(x=lambda out_grad: -out_grad)


# -- exponentials --------------------------------------------------------------------------


@primitive
def exp(x):
    """Exponential; saves its result, which is its own derivative."""
    return np.exp(x)


exp.grad(x=lambda out, out_grad: out_grad * out)


@primitive
def log(x):
    """Natural logarithm; ``log(0)`` is -inf with an infinite gradient."""
    return np.log(x)


log.grad(x=lambda x, out_grad: out_grad / x)


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
def tanh(x):
    """Hyperbolic tangent; saves its result."""
    return np.tanh(x)


tanh.grad(x=lambda out, out_grad: out_grad * (1 - out * out))


# -- kinks ---------------------------------------------------------------------------------


@primitive
def relu(x):
    """``max(x, 0)``; the gradient at 0 is 0."""
    return np.maximum(x, 0)


relu.grad(x=lambda out, out_grad: out_grad * (out > 0))
