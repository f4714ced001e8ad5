"""Softmax and its logarithm."""

import numpy as np

from ..primitives.registry import primitive
from .elementwise import exp
from .reduce import reduce_sum

__all__ = ["log_softmax", "softmax"]


@primitive
def softmax(x, *, axis=-1):
    """``exp(x) / sum(exp(x))`` along an axis, without overflow.  Saves its result.

    >>> import minigrad as mg
    >>> mg.softmax(mg.tensor([0.0, 0.0, 0.0, 0.0]))
    tensor([0.25, 0.25, 0.25, 0.25])
    """
    return shares(x, axis)


def shares(x, axis):
    """The kernel of softmax, for other kernels, too: a new array."""
    e = np.asarray(lowered(x, axis))
    np.exp(e, e)
    e /= np.add.reduce(e, axis=axis, keepdims=True)
    return e


softmax.grad(
    x=lambda out, out_grad, axis: out * (out_grad - reduce_sum(out * out_grad, axis, keepdims=True))
).formula(x="out * (g - sum(out * g))")


@primitive
def log_softmax(x, *, axis=-1):
    """``log(softmax(x))`` along an axis, without overflow.  Saves its result.

    >>> import minigrad as mg
    >>> mg.log_softmax(mg.tensor([1.0, 1.0]))
    tensor([-0.6931, -0.6931])
    """
    low = lowered(x, axis)
    if not low.size:
        return low
    return low - np.log(np.add.reduce(np.exp(low), axis=axis, keepdims=True))


log_softmax.grad(
    x=lambda out, out_grad, axis: out_grad - exp(out) * reduce_sum(out_grad, axis, keepdims=True)
).formula(x="g - exp(out) * sum(g)")


def lowered(x, axis):
    """``x`` less its largest element along an axis."""
    if x.dtype.kind not in "fc":
        x = x.astype(float)
    return x - np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
