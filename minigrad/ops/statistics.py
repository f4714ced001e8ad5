"""Variance, deviation and norms; where they have a kink, the gradient there is 0.  Normalisation with them."""

import numpy as np

from ..errors import refusal
from ..primitives.registry import primitive
from .compare import abs
from .elementwise import exp, safe_div
from .reduce import count_over, expand_reduced, max, mean, min, over_count, reduce_sum
from .shape import axis_tuple, reshape

__all__ = ["batch_norm", "layer_norm", "logsumexp", "norm", "normalize", "std", "var"]


@primitive
def center(x, *, axis=None):
    """``x`` less its mean over axes."""
    return np.subtract(x, mean(x, axis=axis, keepdims=True))


center.grad(x=(center, "out_grad, axis", "g - mean(g)"))


@primitive
def var(x, *, axis=None, correction=0, keepdims=False):
    """Variance over axes, divided by the number of elements less ``correction``.

    >>> import minigrad as mg
    >>> mg.var(mg.tensor([1.0, 3.0]))
    tensor(1.)
    """
    return _variance(np.asarray(x), axis, correction, keepdims)


var.grad(
    x=lambda x, out_grad, x_shape, axis, correction, keepdims: (
        expand_reduced(over_count(2 * out_grad, x_shape, axis, correction), x_shape, axis, keepdims)
        * center(x, axis=axis)
    )
)
var.primitive.formula(x="2 * g * (x - mean(x)) / (n - correction)")


@primitive
def std(x, *, axis=None, correction=0, keepdims=False):
    """Standard deviation over axes; the gradient at a constant is 0.

    >>> import minigrad as mg
    >>> mg.std(mg.tensor([1.0, 3.0]), correction=1)
    tensor(1.4142)
    """
    return np.sqrt(_variance(np.asarray(x), axis, correction, keepdims))


std.grad(
    x=lambda x, out, out_grad, x_shape, axis, correction, keepdims: (
        expand_reduced(
            over_count(safe_div(out_grad, out), x_shape, axis, correction), x_shape, axis, keepdims
        )
        * center(x, axis=axis)
    )
)
std.primitive.formula(x="g * (x - mean(x)) / (out * (n - correction))")


def _variance(x, axis, correction, keepdims):
    if x.dtype == np.float16:  # squares of halves overflow
        return _variance(x.astype(np.float32), axis, correction, keepdims).astype(np.float16)
    centered = center(x, axis=axis)
    squares = np.add.reduce(centered * centered, axis=axis, keepdims=keepdims)
    count = count_over(x.shape, axis) - correction
    return squares / (count if count > 0 else np.nan)


@primitive(type="l2_norm")
def length(x, *, axis=None, keepdims=False):
    """Euclidean length over axes; the gradient at 0 is 0."""
    x = np.asarray(x)
    return np.sqrt(np.add.reduce(x * x, axis=axis, keepdims=keepdims))


length.grad(
    x=lambda x, out, out_grad, x_shape, axis, keepdims: (
        expand_reduced(safe_div(out_grad, out), shape=x_shape, axis=axis, keepdims=keepdims) * x
    )
)
length.primitive.formula(x="g * x / out")


@primitive(type="p_norm")
def p_length(x, *, p, axis=None, keepdims=False):
    """``sum(|x| ** p) ** (1 / p)`` over axes; the gradient is 0 at 0, and for an element that is 0."""
    powers = np.power(np.absolute(np.asarray(x)), p)
    return np.power(np.add.reduce(powers, axis=axis, keepdims=keepdims), 1 / p)


def _p_length_rule(x, out, out_grad, x_shape, p, axis, keepdims):
    wide = {"shape": x_shape, "axis": axis, "keepdims": keepdims}
    share = safe_div(x, expand_reduced(out, **wide))
    return expand_reduced(out_grad, **wide) * safe_div(abs(share) ** p, share)


p_length.grad(x=_p_length_rule)
p_length.primitive.formula(x="g * (abs(x) / out) ** (p - 1) * sign(x)")


def norm(x, ord=2, axis=None, keepdims=False):
    """Vector norm over axes: ``ord`` 1, 2, any p > 0, or ±inf; the gradient at 0 is 0.

    Powers of elements are added: beyond 1e154 (float64) the squares overflow, and the norm is inf.

    >>> import minigrad as mg
    >>> mg.norm(mg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if ord == 2:
        return length(x, axis=axis, keepdims=keepdims)
    if ord == 1:
        return reduce_sum(abs(x), axis=axis, keepdims=keepdims)
    if ord in (np.inf, -np.inf):
        return (max if ord > 0 else min)(abs(x), axis=axis, keepdims=keepdims)
    if not isinstance(ord, int | float) or ord <= 0:
        raise refusal(f"ord={ord!r} is no norm", "1, 2, another p > 0, or ±inf")
    return p_length(x, p=float(ord), axis=axis, keepdims=keepdims)


@primitive
def logsumexp(x, *, axis=None, keepdims=False):
    """``log(sum(exp(x)))`` over axes, without overflow; -inf over no elements.

    >>> import minigrad as mg
    >>> mg.logsumexp(mg.tensor([1000.0, 1000.0]))
    tensor(1000.6931)
    """
    x = np.asarray(x)
    x = x.astype(np.result_type(x, np.float16), copy=False)
    top = np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        out = np.log(np.add.reduce(np.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, axis)


logsumexp.grad(
    x=lambda x, out, out_grad, x_shape, axis, keepdims: (
        expand_reduced(out_grad, x_shape, axis, keepdims)
        * exp(x - expand_reduced(out, x_shape, axis, keepdims))
    )
)
logsumexp.primitive.formula(x="g * exp(x - out)")


# -- normalisation: subtract the mean, divide by the deviation -----------------------------


@primitive
def normalize(x, *, axis=-1, eps=1e-5):
    """``(x - mean) / sqrt(var + eps)`` over axes.

    >>> import minigrad as mg
    >>> mg.normalize(mg.tensor([1.0, 3.0]), eps=0.0)
    tensor([-1.,  1.])
    """
    low = center(x, axis=axis)
    return low / np.sqrt(mean(low * low, axis=axis, keepdims=True) + eps)


def _normalize_rule(x, out, out_grad, axis, eps):
    deviation = (var(x, axis=axis, keepdims=True) + eps) ** 0.5
    along = mean(out * out_grad, axis=axis, keepdims=True)
    return (center(out_grad, axis=axis) - out * along) / deviation


normalize.grad(x=_normalize_rule)
normalize.primitive.formula(x="(g - mean(g) - out * mean(g * out)) / sqrt(var(x) + eps)")


def layer_norm(x, weight=None, bias=None, axis=-1, eps=1e-5):
    """Normalise every row over ``axis``, then scale by ``weight`` and shift by ``bias``.

    >>> import minigrad as mg
    >>> mg.layer_norm(mg.tensor([[1.0, 3.0]]), eps=0.0)
    tensor([[-1.,  1.]])
    """
    if isinstance(weight, tuple):  # elsewhere the sizes of the axes stand here
        what = f"layer_norm(weight={weight}): a weight is an array as long as the axis"
        raise refusal(what, "layer_norm(x, weight, bias, axis=-1)")
    return _scaled(normalize(x, axis=axis, eps=eps), weight, bias)


def batch_norm(x, weight=None, bias=None, mean=None, var=None, axis=1, eps=1e-5):
    """Normalise every channel (``axis``) over all other axes, then scale and shift it.

    In training the batch gives mean and variance; for inference pass ``mean`` and ``var``,
    of shape [channels].

    >>> import minigrad as mg
    >>> mg.batch_norm(mg.tensor([[1.0], [3.0]]), eps=0.0)
    tensor([[-1.],
            [ 1.]])
    """
    ndim = len(x.shape)
    (axis,) = axis_tuple(axis, ndim)
    wide = tuple(-1 if k == axis else 1 for k in range(ndim))
    if mean is None:
        out = normalize(x, axis=tuple(k for k in range(ndim) if k != axis), eps=eps)
    else:
        out = (x - reshape(mean, shape=wide)) / (reshape(var, shape=wide) + eps) ** 0.5
    parts = (None if p is None else reshape(p, shape=wide) for p in (weight, bias))
    return _scaled(out, *parts)


def _scaled(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias
