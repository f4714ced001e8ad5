"""What reductions share: counting, widening and grouping the axes they run over."""

from __future__ import annotations

import math

import numpy as np

from ..errors import IndexShapeError, describe, refusal
from ..primitives.registry import primitive
from .infer import shape_attr


def axis_tuple(axis, ndim):
    """Axes as a tuple of numbers from 0 to ndim - 1."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(f"axis {a} is out of range for {ndim} axes")
    return tuple([a % ndim for a in axes])


def axis_of(op, x, axis):
    """One axis as a number from 0 on, for a function made of ops.  Errors: `IndexShapeError`."""
    ndim = len(np.shape(x))
    try:
        (axis,) = axis_tuple(axis, ndim)
    except IndexError as error:
        what = f"{op}(x: {describe(x)}, axis={axis}) is not possible: {error}"
        advice = f"axes go from {-ndim} to {ndim - 1} here" if ndim else "x with at least one axis"
        raise refusal(what, advice, IndexShapeError) from None
    return axis


def reduced_axes(axis, ndim):
    """`axis_tuple` of a reduction: in a single number, 0 and -1 name no axis, as in NumPy."""
    return () if not ndim and axis in (0, -1) else axis_tuple(axis, ndim)


def count_over(shape, axis):
    """How many elements a reduction of ``shape`` over ``axis`` puts into one."""
    if axis is None:
        return math.prod(shape)
    return math.prod([shape[a] for a in reduced_axes(axis, len(shape))])


def widened(x, ndim, axis, keepdims):
    """A reduced array with its axes back, of length 1."""
    x = np.asarray(x)
    return x if axis is None or keepdims else np.expand_dims(x, reduced_axes(axis, ndim))


@primitive(infer=shape_attr)
def expand_reduced(x, *, shape, axis=None, keepdims=False):
    """Repeat a reduced value along the axes it was reduced over: the gradient of a sum."""
    x = widened(x, len(shape), axis, keepdims)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


@primitive(view=True)
def group_axes(x, *, axis=None):
    """Move axes to the end and make them one axis."""
    x = np.asarray(x)
    axes = reduced_axes(axis, x.ndim)
    rest = [k for k in range(x.ndim) if k not in axes]
    size = math.prod([x.shape[a] for a in axes])
    return np.transpose(x, (*rest, *axes)).reshape([x.shape[k] for k in rest] + [size])


@primitive(view=True, infer=shape_attr)
def ungroup_axes(x, *, shape, axis=None):
    """Undo `group_axes`."""
    axes = reduced_axes(axis, len(shape))
    order = (*[k for k in range(len(shape)) if k not in axes], *axes)
    return np.transpose(np.reshape(x, [shape[k] for k in order]), np.argsort(order))


group_axes.grad(x=lambda out_grad, x_shape, axis: ungroup_axes(out_grad, shape=x_shape, axis=axis))
ungroup_axes.grad(x=lambda out_grad, axis: group_axes(out_grad, axis=axis))
