"""Indexing and scattering.

Basic indices (numbers, slices, None, ``...``) are an attr of `getitem`; arrays of indices and masks
are inputs of `gather`, so they may be Tensors or Variables.  Gradients of repeated indices add up.
"""

from __future__ import annotations

import numpy as np

from ..errors import IndexShapeError, describe, refusal
from ..primitives.arguments import Value
from ..primitives.registry import primitive
from .infer import shape_attr
from .shape import unbroadcast

ARRAY = "array"  #: stands in a template where an index array goes
_BASIC = (int, slice, type(None), type(Ellipsis))


def getitem(x, index):
    """``x[index]`` with any NumPy index.

    >>> import minigrad as mg
    >>> x = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x[0], x[:, [1, 1]]
    (tensor([1., 2.]), tensor([[2., 2.],
            [4., 4.]]))
    """
    if index.__class__ in _BASIC:
        return basic_getitem(x, index=index)
    template, arrays = _template(index)
    if not arrays:
        return basic_getitem(x, index=template)
    return gather(x if isinstance(x, Value) else np.asarray(x), *arrays, template=template)


def setitem(x, y, index):
    """A copy of ``x`` with ``y`` put at ``index``; where an index repeats, the last one wins.

    >>> import minigrad as mg
    >>> mg.setitem(mg.tensor([1.0, 2.0, 3.0]), 9.0, slice(1))
    tensor([9., 2., 3.])
    """
    template, arrays = _template(index)
    if not arrays:
        return basic_setitem(x, y, index=template)
    return put(x if isinstance(x, Value) else np.asarray(x), y, *arrays, template=template)


def _template(index):
    """Split an index into its fixed part and its arrays."""
    parts, arrays = index if isinstance(index, tuple) else (index,), []
    fixed = []
    for part in parts:
        if part.__class__ in _BASIC:
            fixed.append(part)
        elif isinstance(part, np.integer):
            fixed.append(int(part))
        else:
            fixed.append(ARRAY)
            arrays.append(_index_array(part))
    return tuple(fixed), arrays


def _index_array(part):
    if isinstance(part, Value) and part.dtype.kind in "iub":
        return part
    array = np.asarray(part)
    if not array.size and array.dtype.kind == "f":
        return array.astype(np.intp)  # an empty list
    if array.dtype.kind not in "iub":
        shown = repr(part) if isinstance(part, str | float) else describe(array)
        cast = "; index.astype(int)" * (array.dtype.kind == "f")
        advice = f"numbers, slices, None, ..., integer arrays or a mask of bools{cast}"
        raise refusal(f"{shown} is no index", advice, IndexShapeError)
    return array


def filled(template, arrays):
    """The index that a template and its arrays make."""
    arrays = iter(arrays)
    return tuple([next(arrays) if part == ARRAY else part for part in template])


# -- basic indices -------------------------------------------------------------------------


@primitive(type="getitem", title="Getitem", view=True)
def basic_getitem(x, *, index):
    """``x[index]`` for numbers, slices, None and ``...``."""
    return np.asarray(x)[index]


@primitive(infer=shape_attr)
def put_zeros(x, *, shape, index):
    """Zeros of ``shape`` with ``x`` at a basic index: the gradient of `getitem`."""
    x = np.asarray(x)
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


basic_getitem.grad(
    x=lambda out_grad, x_shape, index: put_zeros(out_grad, shape=x_shape, index=index)
)
put_zeros.grad(x=lambda out_grad, index: basic_getitem(out_grad, index=index))


@primitive(type="setitem", title="CopySlices")
def basic_setitem(x, y, *, index):
    """A copy of ``x`` with ``y`` at a basic index."""
    out = np.array(x)
    out[index] = y
    return out


basic_setitem.grad(
    x=lambda out_grad, index: basic_setitem(out_grad, 0, index=index),
    y=lambda out_grad, index, y_shape: unbroadcast(
        basic_getitem(out_grad, index=index), shape=y_shape
    ),
)


# -- index arrays --------------------------------------------------------------------------


@primitive(title="Index", nondiff=("index",))
def gather(x, *index, template):
    """``x`` at index arrays and masks; ``template`` says where they go among slices."""
    return x[filled(template, index)]


@primitive(title="Scatter", nondiff=("index",), infer=shape_attr)
def scatter(x, *index, shape, template):
    """Zeros of ``shape`` with ``x`` added at index arrays: the gradient of `gather`."""
    out = np.zeros(shape, x.dtype)
    np.add.at(out, filled(template, index), x)
    return out


gather.grad(
    x=lambda index, out_grad, x_shape, template: scatter(
        out_grad, *index, shape=x_shape, template=template
    )
)
scatter.grad(x=lambda index, out_grad, template: gather(out_grad, *index, template=template))


@primitive(type="index_put", title="IndexPut", nondiff=("index",))
def put(x, y, *index, template):
    """A copy of ``x`` with ``y`` at index arrays."""
    out = np.array(x)
    out[filled(template, index)] = y
    return out


@primitive(nondiff=("x", "index"))
def put_winners(x, *index, template):
    """Which elements put at index arrays were not overwritten by a later one; no gradient."""
    places = filled(template, index)
    order = np.full(np.shape(x), -1)
    number = np.arange(order[places].size).reshape(order[places].shape)
    order[places] = number
    return order[places] == number


put.grad(
    x=lambda index, out_grad, template: put(out_grad, 0, *index, template=template),
    y=lambda index, out_grad, template, y_shape: unbroadcast(
        gather(out_grad, *index, template=template)
        * put_winners(out_grad, *index, template=template),
        shape=y_shape,
    ),
)
