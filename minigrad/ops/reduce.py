"""Reductions over axes; running sums and products stand in `scan`.

``axis`` is an int, a tuple of ints, or None for all axes; ``keepdims`` leaves them with length 1.
"""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .axes import count_over, expand_reduced, group_axes, ungroup_axes, widened
from .infer import shape_attr
from .scan import cumprod, shift

# -- sums and means ------------------------------------------------------------------------


@primitive
def reduce_sum(x, *, axis=None, keepdims=False):
    """Sum over axes.

    >>> import minigrad as mg
    >>> mg.sum(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


reduce_sum.grad(
    x=lambda out_grad, x_shape, axis, keepdims: expand_reduced(
        out_grad, shape=x_shape, axis=axis, keepdims=keepdims
    )
)
reduce_sum.primitive.formula(x="g")

expand_reduced.grad(
    x=lambda out_grad, axis, keepdims: reduce_sum(out_grad, axis=axis, keepdims=keepdims)
)


@primitive
def mean(x, *, axis=None, keepdims=False):
    """Mean over axes; NaN over no elements.

    >>> import minigrad as mg
    >>> mg.mean(mg.tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1)
    tensor([3., 5.])
    """
    x = np.asarray(x)
    count = x.size if axis is None else count_over(x.shape, axis)
    if x.dtype.kind in "iub":  # as in NumPy: sums of large whole numbers would wrap around
        x = x.astype(np.float64)
    elif x.dtype == np.float16:  # and those of many halves overflow
        total = np.add.reduce(x.astype(np.float32), axis=axis, keepdims=keepdims)
        return (total / (count or np.nan)).astype(np.float16)
    return np.add.reduce(x, axis=axis, keepdims=keepdims) / (count or np.nan)


mean.grad(
    x=lambda out_grad, x_shape, axis, keepdims: expand_mean(
        out_grad, shape=x_shape, axis=axis, keepdims=keepdims
    )
)
mean.primitive.formula(x="g / n")


@primitive(infer=shape_attr)
def expand_mean(x, *, shape, axis=None, keepdims=False, correction=0):
    """Spread a reduced value over the elements it was the mean of: the gradient of a mean."""
    count = count_over(shape, axis) - correction
    share = widened(x, len(shape), axis, keepdims) / (count if count > 0 else np.nan)
    out = np.empty(shape, share.dtype)
    out[...] = share
    return out


expand_mean.grad(
    x=lambda out_grad, axis, keepdims, correction, shape: over_count(
        reduce_sum(out_grad, axis=axis, keepdims=keepdims),
        shape=shape,
        axis=axis,
        correction=correction,
    )
)


@primitive
def over_count(x, *, shape, axis=None, correction=0):
    """``x`` divided by the number of elements of ``shape`` along axes, less ``correction``."""
    count = count_over(shape, axis) - correction
    return np.true_divide(x, count if count > 0 else np.nan)


over_count.grad(
    x=lambda out_grad, shape, axis, correction: over_count(
        out_grad, shape=shape, axis=axis, correction=correction
    )
)

# -- products ------------------------------------------------------------------------------


@primitive(type="reduce_prod")
def prod(x, *, axis=None, keepdims=False):
    """Product over axes; gradients are exact with zeros among the factors.

    >>> import minigrad as mg
    >>> mg.prod(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([3., 8.])
    """
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims)


def _prod_rule(x, out_grad, x_shape, axis, keepdims):
    factors = group_axes(x, axis=axis)
    before = shift(cumprod(factors, axis=-1), axis=-1, by=1, fill=1)
    after = shift(cumprod(factors, axis=-1, reverse=True), axis=-1, by=-1, fill=1)
    others = ungroup_axes(before * after, shape=x_shape, axis=axis)
    return expand_reduced(out_grad, shape=x_shape, axis=axis, keepdims=keepdims) * others


prod.grad(x=_prod_rule)

# -- largest and smallest ------------------------------------------------------------------


@primitive(type="reduce_max")
def max(x, *, axis=None, keepdims=False):
    """Largest element over axes; elements that tie share the gradient evenly.

    >>> import minigrad as mg
    >>> mg.max(mg.tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1)
    tensor([5., 7.])
    """
    return np.maximum.reduce(x, axis=axis, keepdims=keepdims)


@primitive(type="reduce_min")
def min(x, *, axis=None, keepdims=False):
    """Smallest element over axes; elements that tie share the gradient evenly.

    >>> import minigrad as mg
    >>> mg.min(mg.tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1)
    tensor([1., 3.])
    """
    return np.minimum.reduce(x, axis=axis, keepdims=keepdims)


def _extremum_rule(x, out, out_grad, x_shape, axis, keepdims):
    wide = expand_reduced(out_grad, shape=x_shape, axis=axis, keepdims=keepdims)
    return wide * tie_share(x, out, axis=axis, keepdims=keepdims)


max.grad(x=_extremum_rule)
max.primitive.formula(x="g * (x == out) / sum(x == out)")
min.grad(x=_extremum_rule)
min.primitive.formula(x="g * (x == out) / sum(x == out)")


@primitive
def tie_share(x, out, *, axis=None, keepdims=False):
    """1 / (number of ties) where ``x`` equals its reduced value, else 0; no gradient."""
    x = np.asarray(x)
    wide = expand_reduced(out, shape=x.shape, axis=axis, keepdims=keepdims)
    winner = (x == wide) | (x != x)
    ties = np.maximum(np.add.reduce(winner, axis=axis, keepdims=True), 1)
    return (winner / ties).astype(np.result_type(x, np.float16))


# -- truth ---------------------------------------------------------------------------------


@primitive(type="reduce_any")
def any(x, *, axis=None, keepdims=False):
    """Whether some element is true (not zero); no gradient.

    >>> import minigrad as mg
    >>> mg.any(mg.tensor([[True, False], [False, False]]), axis=1)
    tensor([ True, False])
    """
    return np.any(x, axis=axis, keepdims=keepdims)


@primitive(type="reduce_all")
def all(x, *, axis=None, keepdims=False):
    """Whether every element is true (not zero); no gradient.

    >>> import minigrad as mg
    >>> mg.all(mg.tensor([[True, False], [True, True]]), axis=1)
    tensor([False,  True])
    """
    return np.all(x, axis=axis, keepdims=keepdims)
