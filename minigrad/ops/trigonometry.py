"""Sine, cosine, tangent, their inverses, and the hyperbolic functions."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import elementwise, primitive
from .elementwise import sqrt


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
