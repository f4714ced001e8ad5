"""Primitives that move or repeat elements and compute nothing."""

from __future__ import annotations

from math import prod as _product

import numpy as np

from ..registry import primitive
from .infer import broadcasted, reshaped, shape_attr


@primitive(view=True, title="Expand", infer=broadcasted)
def broadcast_to(x, *, shape):
    """Repeat ``x`` along new and stretched axes; a read-only view."""
    return np.broadcast_to(x, shape)


def sum_to(x, shape):
    """Undo a broadcast of arrays: sum the axes that were added or stretched."""
    lead = x.ndim - len(shape)
    if lead:
        x = _add_up(x, 0 if lead == 1 else tuple(range(lead)))
        if x.shape == shape:
            return x
    stretched = tuple([k for k, n in enumerate(shape) if n == 1 != x.shape[k]])
    return _add_up(x, stretched, keepdims=True) if stretched else x


_add_up = np.add.reduce


@primitive(view=True, infer=shape_attr)
def unbroadcast(x, *, shape):
    """Sum ``x`` down to ``shape``: the gradient of `broadcast_to`."""
    return sum_to(np.asarray(x), tuple(shape))


broadcast_to.grad(x=lambda out_grad, x_shape: unbroadcast(out_grad, shape=x_shape))
unbroadcast.grad(x=lambda out_grad, x_shape: broadcast_to(out_grad, shape=x_shape))


@primitive(view=True, infer=reshaped)
def reshape(x, *, shape):
    """The same elements in another shape; one entry may be -1."""
    return np.reshape(x, shape)


reshape.grad(x=lambda out_grad, x_shape: reshape(out_grad, shape=x_shape))


@primitive(view=True, title="Permute")
def permute_dims(x, *, axes=None):
    """Reorder the axes; None reverses them."""
    return np.transpose(x, axes)


def _inverse_order(axes):
    return None if axes is None else tuple(np.argsort([a % len(axes) for a in axes]).tolist())


permute_dims.grad(x=lambda out_grad, axes: permute_dims(out_grad, axes=_inverse_order(axes)))


@primitive(view=True)
def swapaxes(x, *, axis1, axis2):
    """Exchange two axes."""
    return np.swapaxes(x, axis1, axis2)


swapaxes.grad(x=lambda out_grad, axis1, axis2: swapaxes(out_grad, axis1=axis1, axis2=axis2))


@primitive(view=True, title="Unsqueeze")
def expand_dims(x, *, axis=0):
    """Insert an axis of length 1 (a tuple inserts several)."""
    return np.expand_dims(x, axis)


@primitive(view=True)
def squeeze(x, *, axis=None):
    """Remove axes of length 1: the given ones, or all."""
    return np.squeeze(x, axis)


@primitive(view=True)
def flatten(x, *, start=0, end=-1):
    """Make the axes from ``start`` to ``end`` one axis."""
    x = np.asarray(x)
    first, last = (a % x.ndim if x.ndim else 0 for a in (start, end))
    size = _product(x.shape[first : last + 1])
    return np.reshape(x, (*x.shape[:first], size, *x.shape[last + 1 :]))


for _op in (expand_dims, squeeze, flatten):
    _op.grad(x=lambda out_grad, x_shape: reshape(out_grad, shape=x_shape))
