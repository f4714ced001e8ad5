"""Reductions over axes, and running sums and products along one.

``axis`` is an int, a tuple of ints, or None for all axes; ``keepdims`` leaves them with length 1.
"""

import math

import numpy as np

from ..errors import refusal
from ..primitives.registry import primitive
from .compare import abs
from .elementwise import exp, safe_div
from .shape import axis_tuple, one_axis, reshape, shape_attr

__all__ = [
    "all", "any", "batch_norm", "cumprod", "cumsum", "layer_norm", "logsumexp", "max", "mean",
    "min", "norm", "normalize", "prod", "std", "var",
]  # fmt: skip


def reduced_axes(axis, ndim):
    """`axis_tuple` of a reduction: in a single number, 0 and -1 name no axis, as in NumPy."""
    return () if not ndim and axis in (0, -1) else axis_tuple(axis, ndim)


def count_over(shape, axis, correction=0):
    """How many elements a reduction of ``shape`` puts into one, less ``correction``; NaN if none are left."""
    sizes = shape if axis is None else [shape[a] for a in reduced_axes(axis, len(shape))]
    count = math.prod(sizes) - correction
    return count if count > 0 else np.nan


@primitive(infer=shape_attr)
def expand_reduced(x, *, shape, axis=None, keepdims=False):
    """Repeat a reduced value along the axes it was reduced over: the gradient of a sum."""
    if axis is not None and not keepdims:
        x = np.expand_dims(x, reduced_axes(axis, len(shape)))
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


# -- sums and means ------------------------------------------------------------------------


@primitive
def reduce_sum(x, *, axis=None, keepdims=False):
    """Sum over axes.

    >>> import minigrad as mg
    >>> mg.sum(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


reduce_sum.grad(x=(expand_reduced, "out_grad, x_shape, axis, keepdims", "g"))
expand_reduced.grad(x=(reduce_sum, "out_grad, axis, keepdims", "sum(g)"))


@primitive
def mean(x, *, axis=None, keepdims=False):
    """Mean over axes; NaN over no elements.

    >>> import minigrad as mg
    >>> mg.mean(mg.tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1)
    tensor([3., 5.])
    """
    if x.dtype == np.float16:  # sums of many halves overflow
        return mean(x.astype(np.float32), axis, keepdims).astype(np.float16)
    if x.dtype.kind in "iub":  # as in NumPy: those of large whole numbers would wrap around
        x = x.astype(np.float64)
    return np.add.reduce(x, axis=axis, keepdims=keepdims) / count_over(x.shape, axis)


mean.grad(
    x=lambda out_grad, x_shape, axis, keepdims: expand_reduced(
        over_count(out_grad, x_shape, axis), x_shape, axis, keepdims
    )
).formula(x="g / n")


@primitive
def over_count(x, *, shape, axis=None, correction=0):
    """``x`` divided by the number of elements of ``shape`` along axes, less ``correction``."""
    return np.true_divide(x, count_over(shape, axis, correction))


over_count.grad(x=(over_count, "out_grad, shape, axis, correction", "g / (n - correction)"))

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
    """The gradient times all other factors: along each axis those before an element, and those behind it."""
    grad = expand_reduced(out_grad, x_shape, axis, keepdims)
    for a in reduced_axes(axis, len(x_shape)):
        before = shift(cumprod(x, a), a, by=1, fill=1)
        after = shift(cumprod(x, a, reverse=True), a, by=-1, fill=1)
        grad, x = grad * (before * after), prod(x, a, keepdims=True)
    return grad


prod.grad(x=_prod_rule).formula(x="g * out / x")

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


for _op in (max, min):
    _op.grad(
        x=lambda x, out, out_grad, x_shape, axis, keepdims: (
            expand_reduced(out_grad, x_shape, axis, keepdims) * tie_share(x, out, axis, keepdims)
        )
    ).formula(x="g * (x == out) / sum(x == out)")


@primitive
def tie_share(x, out, *, axis=None, keepdims=False):
    """1 / (number of ties) where ``x`` equals its reduced value, else 0; no gradient."""
    wide = expand_reduced(out, x.shape, axis, keepdims)
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


# -- running sums and products -------------------------------------------------------------
#
# The gradient of a running product is a *linear recurrence*, ``s[i] = b[i] + a[i] * s[i-1]``.  It
# divides by nothing, so it is exact with zeros, and its own gradient is a recurrence again.


@primitive
def cumsum(x, *, axis=None, reverse=False):
    """Running sum along an axis (None: of all elements in a row); from the end if ``reverse``.

    >>> import minigrad as mg
    >>> mg.cumsum(mg.tensor([1.0, 2.0, 3.0]))
    tensor([1., 3., 6.])
    """
    return _running(np.add, x, axis, reverse)


@primitive
def cumprod(x, *, axis=None, reverse=False):
    """Running product along an axis (of all elements in a row for None); exact with zeros.

    >>> import minigrad as mg
    >>> mg.cumprod(mg.tensor([1.0, 2.0, 3.0]))
    tensor([1., 2., 6.])
    """
    return _running(np.multiply, x, axis, reverse)


def _running(ufunc, x, axis, reverse):
    if axis is None:
        x = x.reshape(-1)
        axis = 0
    if not x.ndim and axis in (0, -1):
        return ufunc.reduce(x, axis=())
    if not reverse:
        return ufunc.accumulate(x, axis=axis)
    return np.flip(ufunc.accumulate(np.flip(x, axis), axis=axis), axis)


def _cumsum_rule(out_grad, x_shape, axis, reverse):
    back = cumsum(out_grad, axis, not reverse)
    return back if axis is not None else reshape(back, x_shape)


def _cumprod_rule(x, out, out_grad, x_shape, axis, reverse):
    if axis is None:
        row = reshape(x, (-1,))
        return reshape(_cumprod_rule(row, out, out_grad, (-1,), 0, reverse), x_shape)
    if not x_shape:
        return out_grad
    step = -1 if reverse else 1
    ahead = shift(x, axis, -step, fill=0)
    later = recurrence(ahead, out_grad, axis, not reverse)
    return later * shift(out, axis, step, fill=1)


cumsum.grad(x=_cumsum_rule).formula(x="cumsum(g, axis, not reverse)")
cumprod.grad(x=_cumprod_rule).formula(x="cumsum(g * out, axis, not reverse) / x")


@primitive
def shift(x, *, axis, by, fill=0):
    """Move elements along an axis by ``by`` places (+1 or -1); the gap gets ``fill``."""
    out = np.roll(x, by, axis)
    gap = [slice(None)] * x.ndim
    gap[axis] = slice(by) if by > 0 else slice(by, None)
    out[tuple(gap)] = fill
    return out


shift.grad(x=lambda out_grad, axis, by: shift(out_grad, axis, -by))


@primitive
def recurrence(a, b, *, axis, reverse=False):
    """``s[i] = b[i] + a[i] * s[i-1]`` along an axis; from the end if ``reverse``."""
    rows_a = np.moveaxis(a, axis, 0)
    rows_b = np.moveaxis(b, axis, 0)
    out = np.empty(np.shape(b), np.result_type(a, b))
    rows = np.moveaxis(out, axis, 0)
    state = 0
    for i in range(len(rows))[:: -1 if reverse else 1]:
        rows[i] = state = rows_b[i] + rows_a[i] * state
    return out


@recurrence.grad
def _recurrence_rule(a, out, out_grad, axis, reverse):
    step = -1 if reverse else 1
    ahead = shift(a, axis, -step)
    later = recurrence(ahead, out_grad, axis, not reverse)
    return later * shift(out, axis, step), later


recurrence.formula(
    a="recurrence(after(a), g, axis, not reverse) * before(out)",
    b="recurrence(after(a), g, axis, not reverse)",
)


# -- variance, deviation and norms: where they have a kink, the gradient there is 0 --------


def center(x, axis):
    """``x`` less its mean over axes."""
    return x - mean(x, axis, keepdims=True)


@primitive
def var(x, *, axis=None, correction=0, keepdims=False):
    """Variance over axes, divided by the number of elements less ``correction``.

    >>> import minigrad as mg
    >>> mg.var(mg.tensor([1.0, 3.0]))
    tensor(1.)
    """
    if x.dtype == np.float16:  # squares of halves overflow
        return var(x.astype(np.float32), axis, correction, keepdims).astype(np.float16)
    centered = center(x, axis)
    squares = np.add.reduce(centered * centered, axis=axis, keepdims=keepdims)
    return squares / count_over(x.shape, axis, correction)


def _var_rule(x, out_grad, x_shape, axis, correction, keepdims):
    share = over_count(2 * out_grad, x_shape, axis, correction)
    return expand_reduced(share, x_shape, axis, keepdims) * center(x, axis)


var.grad(x=_var_rule).formula(x="2 * g * (x - mean(x)) / (n - correction)")


@primitive
def std(x, *, axis=None, correction=0, keepdims=False):
    """Standard deviation over axes; the gradient at a constant is 0.

    >>> import minigrad as mg
    >>> mg.std(mg.tensor([1.0, 3.0]), correction=1)
    tensor(1.4142)
    """
    return np.sqrt(var(x, axis, correction, keepdims))


std.grad(
    x=lambda x, out, out_grad, x_shape, axis, correction, keepdims: _var_rule(
        x, safe_div(out_grad, 2 * out), x_shape, axis, correction, keepdims
    )
).formula(x="g * (x - mean(x)) / (out * (n - correction))")


@primitive(type="l2_norm")
def length(x, *, axis=None, keepdims=False):
    """Euclidean length over axes; the gradient at 0 is 0."""
    return np.sqrt(np.add.reduce(x * x, axis=axis, keepdims=keepdims))


length.grad(
    x=lambda x, out, out_grad, x_shape, axis, keepdims: (
        expand_reduced(safe_div(out_grad, out), x_shape, axis, keepdims) * x
    )
).formula(x="g * x / out")


@primitive(type="p_norm")
def p_length(x, *, p, axis=None, keepdims=False):
    """``sum(|x| ** p) ** (1 / p)`` over axes; the gradient is 0 at 0, and for an element that is 0."""
    powers = np.power(np.absolute(x), p)
    return np.power(np.add.reduce(powers, axis=axis, keepdims=keepdims), 1 / p)


def _p_length_rule(x, out, out_grad, x_shape, p, axis, keepdims):
    share = safe_div(x, expand_reduced(out, x_shape, axis, keepdims))
    wide = expand_reduced(out_grad, x_shape, axis, keepdims)
    return wide * safe_div(abs(share) ** p, share)


p_length.grad(x=_p_length_rule).formula(x="g * (abs(x) / out) ** (p - 1) * sign(x)")


def norm(x, ord=2, axis=None, keepdims=False):
    """Vector norm over axes: ``ord`` 1, 2, any p > 0, or ±inf; the gradient at 0 is 0.

    Powers of elements are added: beyond 1e154 (float64) the squares overflow, and the norm is inf.

    >>> import minigrad as mg
    >>> mg.norm(mg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if ord == 2:
        return length(x, axis, keepdims)
    if ord == 1:
        return reduce_sum(abs(x), axis, keepdims)
    if ord in (np.inf, -np.inf):
        return (max if ord > 0 else min)(abs(x), axis=axis, keepdims=keepdims)
    if not isinstance(ord, int | float) or ord <= 0:
        raise refusal(f"ord={ord!r} is no norm", "1, 2, another p > 0, or ±inf")
    return p_length(x, float(ord), axis, keepdims)


@primitive
def logsumexp(x, *, axis=None, keepdims=False):
    """``log(sum(exp(x)))`` over axes, without overflow; -inf over no elements.

    >>> import minigrad as mg
    >>> mg.logsumexp(mg.tensor([1000.0, 1000.0]))
    tensor(1000.6931)
    """
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
).formula(x="g * exp(x - out)")


# -- normalisation: subtract the mean, divide by the deviation -----------------------------


@primitive
def normalize(x, *, axis=-1, eps=1e-5):
    """``(x - mean) / sqrt(var + eps)`` over axes.

    >>> import minigrad as mg
    >>> mg.normalize(mg.tensor([1.0, 3.0]), eps=0.0)
    tensor([-1.,  1.])
    """
    low = center(x, axis=axis)
    return low / np.sqrt(mean(low * low, axis, keepdims=True) + eps)


def _normalize_rule(x, out, out_grad, axis, eps):
    deviation = (var(x, axis, keepdims=True) + eps) ** 0.5
    along = mean(out * out_grad, axis, keepdims=True)
    return (center(out_grad, axis=axis) - out * along) / deviation


normalize.grad(x=_normalize_rule).formula(
    x="(g - mean(g) - out * mean(g * out)) / sqrt(var(x) + eps)"
)


def layer_norm(x, weight=None, bias=None, axis=-1, eps=1e-5):
    """Normalise every row over ``axis``, then scale by ``weight`` and shift by ``bias``.

    >>> import minigrad as mg
    >>> mg.layer_norm(mg.tensor([[1.0, 3.0]]), eps=0.0)
    tensor([[-1.,  1.]])
    """
    if isinstance(weight, tuple):  # elsewhere the sizes of the axes stand here
        raise refusal(
            f"layer_norm(weight={weight}): a weight is an array as long as the axis",
            "layer_norm(x, weight, bias, axis=-1)",
        )
    return _scaled(normalize(x, axis, eps), weight, bias)


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
    axis = one_axis(axis, ndim)
    wide = tuple(-1 if k == axis else 1 for k in range(ndim))
    if mean is None:
        out = normalize(x, tuple(k for k in range(ndim) if k != axis), eps)
    else:
        out = (x - reshape(mean, wide)) / (reshape(var, wide) + eps) ** 0.5
    parts = (None if p is None else reshape(p, wide) for p in (weight, bias))
    return _scaled(out, *parts)


def _scaled(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias
