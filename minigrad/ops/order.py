"""Sorting and searching: values have the gradient of the places they came from, indices none."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .index import add_along_axis
from .shape import axis_tuple


@primitive
def sort(x, *, axis=-1, descending=False):
    """The elements in order along an axis; each gets the gradient of its new place.

    >>> import minigrad as mg
    >>> mg.sort(mg.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    x = np.asarray(x)
    if _alone(x, axis):
        return np.array(x)
    out = np.sort(x, axis=axis, kind="stable")
    return np.flip(out, axis) if descending else out


@primitive
def argsort(x, *, axis=-1, descending=False):
    """The indices that put ``x`` in order along an axis; equal elements keep their order.

    >>> import minigrad as mg
    >>> mg.argsort(mg.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    x = np.asarray(x)
    if _alone(x, axis):
        return np.zeros((), np.intp)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - back, axis)


def _alone(x, axis):
    """Whether this is a single number, which is in order.  Errors: `ValueError` where an axis is missing."""
    if axis is None:
        raise ValueError("axis=None names no axis; repair: x.flatten() first, or axis=-1")
    return not x.ndim and axis in (0, -1)


sort.grad(
    x=lambda x, out_grad, x_shape, axis, descending: (
        add_along_axis(
            out_grad, argsort(x, axis=axis, descending=descending), shape=x_shape, axis=axis
        )
        if x_shape
        else out_grad
    )
)
sort.primitive.formula(x="unsort(g, x)")


@primitive(outputs=("values", "indices"), nondiff=("indices",))
def topk(x, *, k, axis=-1, largest=True):
    """The ``k`` largest (or smallest) elements along an axis, and their indices.

    >>> import minigrad as mg
    >>> mg.topk(mg.tensor([3.0, 1.0, 2.0]), k=2)
    [tensor([3., 2.]), tensor([0, 2])]
    """
    x = np.asarray(x)
    (axis,) = axis_tuple(axis, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(
            f"k={k} of {x.shape[axis]} elements; repair: choose k from 0 to {x.shape[axis]}"
        )
    order = argsort(x, axis=axis, descending=largest)
    first = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(x, first, axis), first


topk.grad(
    x=lambda indices, values_grad, x_shape, axis: add_along_axis(
        values_grad, indices, shape=x_shape, axis=axis
    )
)
topk.primitive.formula(x="put_along_axis(g, indices, axis)")


@primitive(type="arg_max")
def argmax(x, *, axis=None, keepdims=False):
    """The index of the first largest element, over an axis or all; no gradient.

    >>> import minigrad as mg
    >>> mg.argmax(mg.tensor([[1.0, 5.0], [7.0, 3.0]]), axis=1)
    tensor([1, 0])
    """
    return np.argmax(x, axis=axis, keepdims=keepdims)


@primitive(type="arg_min")
def argmin(x, *, axis=None, keepdims=False):
    """The index of the first smallest element, over an axis or all; no gradient.

    >>> import minigrad as mg
    >>> mg.argmin(mg.tensor([4.0, 2.0, 3.0]))
    tensor(1)
    """
    return np.argmin(x, axis=axis, keepdims=keepdims)
