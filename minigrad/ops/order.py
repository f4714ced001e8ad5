"""Sorting and searching; none of them has a gradient."""

from __future__ import annotations

import numpy as np

from ..registry import primitive


@primitive
def sort(x, *, axis=-1, descending=False):
    """The elements in order along an axis; no gradient."""
    out = np.sort(x, axis=axis, kind="stable")
    return np.flip(out, axis) if descending else out


@primitive
def argsort(x, *, axis=-1, descending=False):
    """The indices that put ``x`` in order along an axis; equal elements keep their order."""
    x = np.asarray(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - back, axis)


@primitive(outputs=("values", "indices"), nondiff=("values", "indices"))
def topk(x, *, k, axis=-1, largest=True):
    """The ``k`` largest (or smallest) elements along an axis, and their indices; no gradient."""
    x = np.asarray(x)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(
            f"k={k} of {x.shape[axis]} elements; repair: choose k from 0 to {x.shape[axis]}"
        )
    order = argsort(x, axis=axis, descending=largest)
    first = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(x, first, axis), first


@primitive(type="arg_max")
def argmax(x, *, axis=None, keepdims=False):
    """The index of the first largest element; no gradient."""
    return np.argmax(x, axis=axis, keepdims=keepdims)


@primitive(type="arg_min")
def argmin(x, *, axis=None, keepdims=False):
    """The index of the first smallest element; no gradient."""
    return np.argmin(x, axis=axis, keepdims=keepdims)
