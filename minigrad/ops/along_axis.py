"""Indices along one axis: taking, and adding what comes back.  Gradients of repeated indices add up."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .axes import axis_tuple
from .infer import shape_attr
from .shape import unbroadcast


@primitive(nondiff=("indices",))
def take(x, indices, *, axis=None):
    """Slices of ``x`` at ``indices`` along an axis (elements of the flat ``x`` for None).

    >>> import minigrad as mg
    >>> mg.take(mg.tensor([10.0, 20.0, 30.0]), [2, 0, 0])
    tensor([30., 10., 10.])
    """
    return np.take(x, indices, axis=axis)


@primitive(nondiff=("indices",), infer=shape_attr)
def untake(x, indices, *, shape, axis=None):
    """Zeros of ``shape`` with slices added at ``indices``: the gradient of `take`."""
    x = np.asarray(x)
    out = np.zeros(shape, x.dtype)
    if axis is None:
        np.add.at(out.reshape(-1), indices, x)
    else:
        np.add.at(out, (*[slice(None)] * axis_tuple(axis, out.ndim)[0], indices), x)
    return out


take.grad(
    x=lambda indices, out_grad, x_shape, axis: untake(out_grad, indices, shape=x_shape, axis=axis)
)
untake.grad(x=lambda indices, out_grad, axis: take(out_grad, indices, axis=axis))


@primitive(nondiff=("indices",))
def take_along_axis(x, indices, *, axis=-1):
    """The element that ``indices`` name along an axis, for every place of the other axes.

    >>> import minigrad as mg
    >>> mg.take_along_axis(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), [[1], [0]], axis=1)
    tensor([[2.],
            [3.]])
    """
    return np.take_along_axis(np.asarray(x), np.asarray(indices), axis)


@primitive(nondiff=("indices",), infer=shape_attr)
def add_along_axis(x, indices, *, shape, axis=-1):
    """Zeros of ``shape`` with ``x`` added at ``indices`` along an axis."""
    x = np.asarray(x)
    out = np.zeros(shape, x.dtype)
    np.add.at(out, along(np.asarray(indices), out.shape, axis), x)
    return out


take_along_axis.grad(
    x=lambda indices, out_grad, x_shape, axis: add_along_axis(
        out_grad, indices, shape=x_shape, axis=axis
    )
)
add_along_axis.grad(x=lambda indices, out_grad, axis: take_along_axis(out_grad, indices, axis=axis))


def along(indices, shape, axis):
    """The index arrays of every axis, where one axis is indexed by ``indices``."""
    if indices.ndim != len(shape):
        raise ValueError(
            f"indices have {indices.ndim} axes, the values {len(shape)}; repair: the same number"
        )
    (axis,) = axis_tuple(axis, len(shape))
    grid = list(np.ogrid[tuple([slice(n) for n in shape])])
    grid[axis] = indices
    return tuple(grid)


@primitive(nondiff=("indices",))
def index_add(x, indices, y, *, axis=0):
    """``x`` with slices of ``y`` added at ``indices`` along an axis; repeated ones add up.

    >>> import minigrad as mg
    >>> mg.index_add(mg.zeros([3]), [0, 0, 2], mg.tensor([1.0, 2.0, 3.0]))
    tensor([3., 0., 3.])
    """
    x = np.asarray(x)
    out = x.astype(np.result_type(x, y))
    np.add.at(out, (*[slice(None)] * axis_tuple(axis, out.ndim)[0], indices), y)
    return out


index_add.grad(
    x=lambda out_grad: out_grad,
    y=lambda indices, out_grad, axis, y_shape: unbroadcast(
        take(out_grad, indices, axis=axis), shape=y_shape
    ),
)


@primitive(nondiff=("indices",))
def scatter_add(x, indices, y, *, axis=0):
    """``x`` with each element of ``y`` added at its index along an axis.

    >>> import minigrad as mg
    >>> mg.scatter_add(mg.zeros([2, 2]), [[0, 0]], mg.tensor([[1.0, 2.0]]))
    tensor([[1., 2.],
            [0., 0.]])
    """
    x, indices = np.asarray(x), np.asarray(indices)
    if np.shape(y) not in ((), indices.shape):
        raise ValueError(
            "y must have the shape of indices, or be one number; "
            f"repair: a y of shape {list(indices.shape)}"
        )
    out = x.astype(np.result_type(x, y))
    np.add.at(out, along(indices, out.shape, axis), y)
    return out


scatter_add.grad(
    x=lambda out_grad: out_grad,
    y=lambda indices, out_grad, axis, y_shape: unbroadcast(
        take_along_axis(out_grad, indices, axis=axis), shape=y_shape
    ),
)
