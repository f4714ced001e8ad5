"""Primitives that move or repeat elements and compute nothing."""
from __future__ import annotations

import numpy as np

from ..registry import primitive


@primitive(view=True)
def broadcast_to(x, *, shape):
    """Repeat ``x`` along new and stretched axes; a read-only view."""
    return np.broadcast_to(x, shape)


def sum_to(x, shape):
    """Undo a broadcast of arrays: sum the axes that were added or stretched."""
    lead = np.ndim(x) - len(shape)
    if lead:
        x = np.add.reduce(x, axis=tuple(range(lead)))
    stretched = tuple(k for k, n in enumerate(shape) if n == 1 != np.shape(x)[k])
    return np.add.reduce(x, axis=stretched, keepdims=True) if stretched else x


@primitive
def unbroadcast(x, *, shape):
    """Sum ``x`` down to ``shape``: the gradient of `broadcast_to`."""
    return sum_to(x, tuple(shape))


broadcast_to.grad(x=lambda out_grad, x_shape: unbroadcast(out_grad, shape=x_shape))
unbroadcast.grad(x=lambda out_grad, x_shape: broadcast_to(out_grad, shape=x_shape))


@primitive
def expand_reduced(x, *, shape, axis=None, keepdims=False):
    """Repeat a reduced value along the axes it was reduced over: the gradient of a sum."""
    x = np.asarray(x)
    if axis is not None and not keepdims:
        x = np.expand_dims(x, tuple(a % len(shape) for a in (axis if isinstance(axis, tuple) else (axis,))))
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


@primitive(view=True)
def reshape(x, *, shape):
    """The same elements in another shape; one entry may be -1."""
    return np.reshape(x, shape)


reshape.grad(x=lambda out_grad, x_shape: reshape(out_grad, shape=x_shape))


@primitive(view=True)
def permute_dims(x, *, axes=None):
    """Reorder the axes; None reverses them."""
    return np.transpose(x, axes)


permute_dims.grad(x=lambda out_grad, axes: permute_dims(out_grad, axes=None if axes is None else tuple(np.argsort(axes).tolist())))


@primitive(view=True)
def swapaxes(x, *, axis1, axis2):
    """Exchange two axes."""
    return np.swapaxes(x, axis1, axis2)


swapaxes.grad(x=lambda out_grad, axis1, axis2: swapaxes(out_grad, axis1=axis1, axis2=axis2))
