"""Activation functions, each primitive with the gradient rule that saves least."""

import math
from functools import cache

import numpy as np

from ..primitives.registry import elementwise, primitive
from .compare import where
from .elementwise import exp, mul

__all__ = ["elu", "erf", "gelu", "leaky_relu", "logaddexp", "relu", "sigmoid", "silu", "softplus"]

ROOT_HALF: float = math.sqrt(0.5)
PEAK: float = 1 / math.sqrt(2 * math.pi)  #: the density of the standard normal at 0


@primitive
def relu(x):
    """``max(x, 0)``; the gradient at 0 is 0.  Saves its result.

    >>> import minigrad as mg
    >>> mg.relu(mg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return np.maximum(x, 0)


relu.grad(x=lambda out, out_grad: out_grad * (out != 0))  # a NaN lets it through
relu.formula(x="g * (out > 0)")


@primitive
def sigmoid(x):
    """``1 / (1 + exp(-x))``.  Saves its result.

    >>> import minigrad as mg
    >>> mg.sigmoid(mg.tensor([0.0, 2.0]))
    tensor([0.5   , 0.8808])
    """
    with np.errstate(over="ignore"):  # exp(800) is inf, and 1 / inf is right
        e = np.exp(np.negative(x))
    if e.ndim:
        e += 1
        return np.divide(1, e, e)
    return 1 / (1 + e)


sigmoid.grad(x=lambda out, out_grad: out_grad * (out * (1 - out)))


@primitive
def leaky_relu(x, *, negative_slope=0.01):
    """``x`` where it is positive, else ``negative_slope * x``; at 0 the left slope.

    >>> import minigrad as mg
    >>> mg.leaky_relu(mg.tensor([-1.0, 2.0]), negative_slope=0.1)
    tensor([-0.1,  2. ])
    """
    return np.where(np.greater(x, 0), x, np.multiply(x, negative_slope))


leaky_relu.grad(
    x=lambda x, out_grad, negative_slope: where(x > 0, out_grad, negative_slope * out_grad)
)


@primitive
def elu(x, *, alpha=1.0):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    >>> import minigrad as mg
    >>> mg.elu(mg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.    ])
    """
    if alpha < 0:
        raise ValueError("alpha must not be negative; repair: give alpha >= 0")
    return np.where(np.greater(x, 0), x, alpha * np.expm1(np.minimum(x, 0)))


elu.grad(x=lambda out, out_grad, alpha: where(out > 0, out_grad, out_grad * (out + alpha)))


@primitive
def softplus(x):
    """``log(1 + exp(x))``, a smooth relu, without overflow.

    >>> import minigrad as mg
    >>> mg.softplus(mg.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0000e+03])
    """
    return np.logaddexp(x, 0)


softplus.grad(x=lambda x, out_grad: out_grad * sigmoid(x))


@elementwise
def logaddexp(x, y):
    """``log(exp(x) + exp(y))`` without overflow.

    >>> import minigrad as mg
    >>> mg.logaddexp(mg.tensor([0.0, 1000.0]), mg.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0007e+03])
    """
    return np.logaddexp(x, y)


logaddexp.grad(
    x=lambda x, y, out_grad: out_grad * sigmoid(x - y),
    y=lambda x, y, out_grad: out_grad * sigmoid(y - x),
)


def silu(x):
    """``x * sigmoid(x)``, also called swish.

    >>> import minigrad as mg
    >>> mg.silu(mg.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.    ,  0.7311])
    """
    return mul(x, sigmoid(x))


@primitive
def erf(x):
    """The error function, exact to a few units in the last place.

    >>> import minigrad as mg
    >>> mg.erf(mg.tensor([0.0, 1.0]))
    tensor([0.    , 0.8427])
    """
    return erf_of_array(x)


erf.grad(x=lambda x, out_grad: out_grad * exp(-x * x) * (2 / math.sqrt(math.pi))).formula(
    x="2 * g * exp(-x ** 2) / sqrt(pi)"
)


@primitive
def gelu(x):
    """``x * Φ(x)``, with the distribution function Φ of the standard normal.

    >>> import minigrad as mg
    >>> mg.gelu(mg.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.    ,  0.8413])
    """
    return x * (0.5 + 0.5 * erf_of_array(np.multiply(x, ROOT_HALF)))


gelu.grad(
    x=lambda x, out_grad: out_grad * (0.5 + 0.5 * erf(x * ROOT_HALF) + x * exp(-0.5 * x * x) * PEAK)
).formula(x="g * (Phi(x) + x * phi(x))")


# -- the error function on arrays, which NumPy does not have --------------------------------
#
# A table holds the Taylor coefficients at 0, 1/128, 2/128 … 6; beyond 6 the function is 1, to the
# last bit.

_STEPS, _LAST, _ORDER = 128, 6, 6


def erf_of_array(x):
    """erf, elementwise; NaN stays NaN."""
    x = x.astype(np.result_type(x, np.float16), copy=False)
    if x.dtype.kind not in "f":
        raise TypeError(f"erf is defined here for real numbers, not {x.dtype}")
    distance = np.fmin(np.abs(x), _LAST)
    nearest = np.rint(distance * _STEPS).astype(np.intp)
    rest = distance - (nearest / _STEPS).astype(x.dtype)
    table = _coefficients(x.dtype)
    out = table[-1][nearest]
    for column in table[-2::-1]:
        out = out * rest + column[nearest]
    return np.where(x == x, np.copysign(out, x), x)


@cache
def _coefficients(dtype):
    """erf and its derivatives over n!, from f⁽ⁿ⁺¹⁾ = -2x f⁽ⁿ⁾ - 2(n-1) f⁽ⁿ⁻¹⁾."""
    x = np.arange(_LAST * _STEPS + 1) / _STEPS
    slope = 2 / math.sqrt(math.pi) * np.exp(-x * x)
    derivatives = [np.array([math.erf(v) for v in x]), slope, -2 * x * slope]
    for n in range(2, _ORDER):
        derivatives.append(-2 * x * derivatives[n] - 2 * (n - 1) * derivatives[n - 1])
    return [np.array(f / math.factorial(n), dtype) for n, f in enumerate(derivatives)]
