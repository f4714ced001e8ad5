"""``x ** y``, variable in both, and the two slopes that make it exact where x or y is 0."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import elementwise
from .compare import equal, logical_and, where


@elementwise
def pow(x, y):
    """Power, ``x ** y``; ``x ** 0`` is 1 with gradient 0, also at x = 0.

    >>> import minigrad as mg
    >>> mg.pow(mg.tensor([1.0, 3.0]), 2)
    tensor([1., 9.])
    """
    return _base(x) ** y


pow.grad(
    x=lambda x, y, out_grad: out_grad * pow_slope(x, y),
    y=lambda x, y, out_grad: out_grad * pow_log(x, y),
)
pow.primitive.formula(x="g * y * x ** (y - 1)", y="g * x ** y * log(x)")


@elementwise
def pow_slope(x, y):
    """``y * x ** (y - 1)``, and 0 where y is 0."""
    x = _base(x)
    if isinstance(y, int | float):
        return 2 * x if y == 2 else y * x ** (y - 1) if y else np.zeros(np.shape(x), x.dtype)
    constant = np.equal(y, 0)
    return np.multiply(y, x ** np.where(constant, 1, np.subtract(y, 1)))


pow_slope.grad(
    x=lambda x, y, out_grad: out_grad * _second_slope(x, y),
    y=lambda x, y, out_grad: out_grad * (pow_log(x, y - 1, n=0) + y * pow_log(x, y - 1)),
)


def _second_slope(x, y):
    """``y * (y - 1) * x ** (y - 2)``, and 0 where x and y are 0: there the slope is constant."""
    if isinstance(y, int | float):
        return y * pow_slope(x, y - 1) if y else pow_slope(x, 0)
    return y * pow_slope(x, where(logical_and(equal(x, 0), equal(y, 0)), 1.0, y - 1))


@elementwise
def pow_log(x, y, *, n=1):
    """``x ** y * log(x) ** n``, and its limit 0 where x is 0 and y is not negative."""
    out = _base(x) ** y
    if not n:
        return out
    zero = np.equal(x, 0)
    log = np.log(np.where(zero, 1, x).astype(out.dtype))  # 0 there: the limit, for y > 0
    return np.where(zero & np.less(y, 0), -np.inf, np.where(zero, 0, out * log**n))


pow_log.grad(
    x=lambda x, y, out_grad, n: out_grad * _pow_log_slope(x, y, n),
    y=lambda x, y, out_grad, n: out_grad * pow_log(x, y, n=n + 1),
)


def _pow_log_slope(x, y, n):
    slope = y * pow_log(x, y - 1, n=n)
    return slope + n * pow_log(x, y - 1, n=n - 1) if n else pow_slope(x, y)


def _base(x):
    """Something whose ``**`` is NumPy's: it squares where `np.power` would take a logarithm."""
    return x if isinstance(x, int | float | complex | np.ndarray | np.generic) else np.asarray(x)
