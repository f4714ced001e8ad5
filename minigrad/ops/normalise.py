"""Normalisation: subtract the mean, divide by the deviation."""

from __future__ import annotations

import numpy as np

from ..errors import refusal
from ..primitives.registry import primitive
from .axes import axis_of
from .reduce import mean
from .shape import reshape
from .statistics import center, var


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
    axis = axis_of("batch_norm", x, axis)
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
