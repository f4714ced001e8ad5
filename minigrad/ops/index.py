"""Indexing and scattering.

Basic indices (numbers, slices, None, ``...``) are an attr of `getitem`; arrays of indices and masks
are inputs of `gather`, so they may be Tensors or Variables.  Gradients of repeated indices add up.
"""

import numpy as np

from ..primitives.arguments import Value, as_value
from ..primitives.registry import primitive
from .shape import one_axis, shape_attr, unbroadcast

__all__ = [
    "argmax", "argmin", "argsort", "embedding", "getitem", "index_add", "merge_rows",
    "scatter_add", "select_rows", "setitem", "sort", "take", "take_along_axis", "topk",
]  # fmt: skip

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
        return basic_getitem(x, index)
    template, arrays = split_index(index)
    if not arrays:
        return basic_getitem(x, template)
    return gather(as_value(x), *arrays, template=template)


def setitem(x, y, index):
    """A copy of ``x`` with ``y`` put at ``index``; where an index repeats, the last one wins.

    >>> import minigrad as mg
    >>> mg.setitem(mg.tensor([1.0, 2.0, 3.0]), 9.0, slice(1))
    tensor([9., 2., 3.])
    """
    template, arrays = split_index(index)
    if not arrays:
        return basic_setitem(x, y, template)
    return put(as_value(x), y, *arrays, template=template)


def split_index(index):
    """Split an index into its fixed part and its arrays."""
    parts, arrays = index if isinstance(index, tuple) else (index,), []
    fixed = []
    for part in parts:
        if part.__class__ in _BASIC:
            fixed.append(part)
        elif isinstance(part, np.integer):
            fixed.append(int(part))
        else:
            if not isinstance(part, Value):
                part = np.asarray(part)
                if not part.size and part.dtype.kind == "f":  # an empty list
                    part = part.astype(np.intp)
            fixed.append(ARRAY)
            arrays.append(part)
    return tuple(fixed), arrays


def filled(template, arrays):
    """The index that a template and its arrays make."""
    arrays = iter(arrays)
    return tuple([next(arrays) if part == ARRAY else part for part in template])


# -- basic indices -------------------------------------------------------------------------


def _cut(inputs, attrs):
    """An open size is tried as two that are larger than any number in an index."""
    ((shape, dtype),) = inputs["x"]
    found = []
    for size in (10**6, 10**9):
        tried = np.broadcast_to(False, [size if n < 0 else n for n in shape])
        found.append(tried[attrs["index"]].shape)
    sizes = [n if n == m else -1 for n, m in zip(*found, strict=True)]
    return [(tuple(sizes), dtype)]


@primitive(type="getitem", title="Getitem", view=True, infer=_cut)
def basic_getitem(x, *, index):
    """``x[index]`` for numbers, slices, None and ``...``."""
    return np.asarray(x)[index]


@primitive(infer=shape_attr)
def put_zeros(x, *, shape, index):
    """Zeros of ``shape`` with ``x`` at a basic index: the gradient of `getitem`."""
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


basic_getitem.grad(x=(put_zeros, "out_grad, x_shape, index", "put(g, index)"))
put_zeros.grad(x=(basic_getitem, "out_grad, index", "g[index]"))


@primitive(type="setitem", title="CopySlices")
def basic_setitem(x, y, *, index):
    """A copy of ``x`` with ``y`` at a basic index."""
    out = np.array(x)
    out[index] = y
    return out


basic_setitem.grad(
    x=lambda out_grad, index: basic_setitem(out_grad, 0, index),
    y=lambda out_grad, index, y_shape: unbroadcast(basic_getitem(out_grad, index), y_shape),
).formula(x="erase(g, index)", y="sum_to(g[index], y.shape)")


# -- index arrays --------------------------------------------------------------------------


def add_at(out, index, x):
    """``out`` with ``x`` added at an index, in place; what an index repeats adds up."""
    np.add.at(out, index, x)
    return out


@primitive(title="Index", nondiff=("index",))
def gather(x, *index, template):
    """``x`` at index arrays and masks; ``template`` says where they go among slices."""
    return x[filled(template, index)]


@primitive(title="Scatter", nondiff=("index",), infer=shape_attr)
def scatter(x, *index, shape, template):
    """Zeros of ``shape`` with ``x`` added at index arrays: the gradient of `gather`."""
    return add_at(np.zeros(shape, x.dtype), filled(template, index), x)


gather.grad(
    x=lambda index, out_grad, x_shape, template: scatter(
        out_grad, *index, shape=x_shape, template=template
    )
).formula(x="put(g, index)")
scatter.grad(
    x=lambda index, out_grad, template: gather(out_grad, *index, template=template)
).formula(x="g[index]")


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
        y_shape,
    ),
).formula(x="erase(g, index)", y="sum_to(g[index] * last(index), y.shape)")


# -- along one axis ------------------------------------------------------------------------


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
    out = np.zeros(shape, x.dtype)
    if axis is None:
        return add_at(out.reshape(-1), indices, x).reshape(shape)
    return add_at(out, slices_at(indices, axis, out.ndim), x)


def slices_at(indices, axis, ndim):
    """The index of the slices at ``indices`` along an axis."""
    return (*[slice(None)] * one_axis(axis, ndim), indices)


take.grad(x=(untake, "out_grad, indices, x_shape, axis", "put(g, indices, axis)"))
untake.grad(x=(take, "out_grad, indices, axis"))


@primitive(nondiff=("indices",))
def take_along_axis(x, indices, *, axis=-1):
    """The element that ``indices`` name along an axis, for every place of the other axes.

    >>> import minigrad as mg
    >>> mg.take_along_axis(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), [[1], [0]], axis=1)
    tensor([[2.],
            [3.]])
    """
    return np.take_along_axis(x, indices, axis)


@primitive(nondiff=("indices",), infer=shape_attr)
def add_along_axis(x, indices, *, shape, axis=-1):
    """Zeros of ``shape`` with ``x`` added at ``indices`` along an axis."""
    return add_at(np.zeros(shape, x.dtype), along(indices, shape, axis), x)


_SPREAD = "put_along_axis(g, indices, axis)"
take_along_axis.grad(x=(add_along_axis, "out_grad, indices, x_shape, axis", _SPREAD))
add_along_axis.grad(x=(take_along_axis, "out_grad, indices, axis"))


def along(indices, shape, axis):
    """The index arrays of every axis, where one axis is indexed by ``indices``."""
    if indices.ndim != len(shape):
        raise ValueError(
            f"indices have {indices.ndim} axes, the values {len(shape)}; repair: the same number"
        )
    grid = list(np.ogrid[tuple([slice(n) for n in shape])])
    grid[one_axis(axis, len(shape))] = indices
    return tuple(grid)


@primitive(nondiff=("indices",))
def index_add(x, indices, y, *, axis=0):
    """``x`` with slices of ``y`` added at ``indices`` along an axis; repeated ones add up.

    >>> import minigrad as mg
    >>> mg.index_add(mg.zeros([3]), [0, 0, 2], mg.tensor([1.0, 2.0, 3.0]))
    tensor([3., 0., 3.])
    """
    return add_at(x.astype(np.result_type(x, y)), slices_at(indices, axis, x.ndim), y)


index_add.grad(
    x=lambda out_grad: out_grad,
    y=lambda indices, out_grad, axis, y_shape: unbroadcast(take(out_grad, indices, axis), y_shape),
).formula(y="sum_to(take(g, indices, axis), y.shape)")


@primitive(nondiff=("indices",))
def scatter_add(x, indices, y, *, axis=0):
    """``x`` with each element of ``y`` added at its index along an axis.

    >>> import minigrad as mg
    >>> mg.scatter_add(mg.zeros([2, 2]), [[0, 0]], mg.tensor([[1.0, 2.0]]))
    tensor([[1., 2.],
            [0., 0.]])
    """
    return add_at(x.astype(np.result_type(x, y)), along(indices, x.shape, axis), y)


scatter_add.grad(
    x=lambda out_grad: out_grad,
    y=lambda indices, out_grad, axis, y_shape: unbroadcast(
        take_along_axis(out_grad, indices, axis), y_shape
    ),
).formula(y="sum_to(take_along_axis(g, indices, axis), y.shape)")


# -- rows of a table -----------------------------------------------------------------------
#
# How many rows a mask chooses is known when it has values: in a Program that size is -1.


def _selected(inputs, attrs):
    shape, dtype = inputs["x"][0]
    return [((-1, *shape[1:]), dtype)]


def _spread(inputs, attrs):
    mask, _ = inputs["mask"][0]
    rows, dtype = inputs["x"][0]
    return [(mask + rows[1:], dtype)]


def _merged(inputs, attrs):
    mask, _ = inputs["mask"][0]
    yes, dtype = inputs["yes"][0]
    _, other = inputs["no"][0]
    return [((mask[0], *yes[1:]), np.result_type(dtype, other))]


@primitive(nondiff=("mask",), infer=_selected)
def select_rows(x, mask):
    """The rows of ``x`` where the mask, one bool per row, holds.

    >>> import minigrad as mg
    >>> mg.select_rows([[1.0, 2.0], [3.0, 4.0]], [False, True])
    array([[3., 4.]])
    """
    if mask.dtype != bool or mask.ndim != 1 or len(mask) != len(x):
        raise ValueError(
            f"{mask.dtype}{list(mask.shape)} does not choose among {len(x)} rows; repair: one bool per row"
        )
    return x[mask]


@primitive(nondiff=("mask",), infer=_spread)
def spread_rows(x, mask):
    """Rows put where the mask holds, zeros elsewhere: the gradient of `select_rows`."""
    if np.count_nonzero(mask) != len(x):
        raise ValueError(
            f"{len(x)} rows for a mask that holds {np.count_nonzero(mask)} times; repair: one row for each place"
        )
    out = np.zeros((len(mask), *x.shape[1:]), x.dtype)
    out[mask] = x
    return out


select_rows.grad(x=(spread_rows, "out_grad, mask", "put(g, mask)"))
spread_rows.grad(x=(select_rows, "out_grad, mask", "g[mask]"))


@primitive(nondiff=("mask",), infer=_merged)
def merge_rows(mask, yes, no):
    """The rows of ``yes`` where the mask holds and those of ``no`` elsewhere, in the order of the mask.

    >>> import minigrad as mg
    >>> mg.merge_rows([True, False, True], [1.0, 3.0], [2.0])
    array([1., 2., 3.])
    """
    if np.count_nonzero(mask) != len(yes) or np.count_nonzero(~mask) != len(no):
        raise ValueError(
            f"{len(yes)} and {len(no)} rows for a mask that holds {np.count_nonzero(mask)} times "
            f"of {len(mask)}; repair: take both from the same mask with select_rows"
        )
    out = np.empty((len(mask), *yes.shape[1:]), np.result_type(yes, no))
    out[mask], out[~mask] = yes, no
    return out


merge_rows.grad(
    yes=lambda mask, out_grad: select_rows(out_grad, mask),
    no=lambda mask, out_grad: select_rows(out_grad, ~mask),
).formula(yes="g[mask]", no="g[~mask]")


def embedding(indices, weight):
    """The rows of a table at integer indices: shape ``[*indices.shape, weight.shape[1]]``.

    >>> import minigrad as mg
    >>> mg.embedding([1, 0], mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    return take(weight, indices, 0)


# -- sorting and searching: values have the gradient of the places they came from, indices none


@primitive
def sort(x, *, axis=-1, descending=False):
    """The elements in order along an axis; each gets the gradient of its new place.

    >>> import minigrad as mg
    >>> mg.sort(mg.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    if not x.ndim and axis in (0, -1):  # a single number is in order
        return np.array(x)
    out = np.sort(x, one_axis(axis, x.ndim), kind="stable")
    return np.flip(out, axis) if descending else out


@primitive
def argsort(x, *, axis=-1, descending=False):
    """The indices that put ``x`` in order along an axis; equal elements keep their order.

    >>> import minigrad as mg
    >>> mg.argsort(mg.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    if not x.ndim and axis in (0, -1):
        return np.zeros((), np.intp)
    axis = one_axis(axis, x.ndim)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    back = np.argsort(np.flip(x, axis), axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - back, axis)


sort.grad(
    x=lambda x, out_grad, x_shape, axis, descending: (
        add_along_axis(out_grad, argsort(x, axis, descending), x_shape, axis)
        if x_shape
        else out_grad
    )
).formula(x="unsort(g, x)")


@primitive(outputs=("values", "indices"), nondiff=("indices",))
def topk(x, *, k, axis=-1, largest=True):
    """The ``k`` largest (or smallest) elements along an axis, and their indices.

    >>> import minigrad as mg
    >>> mg.topk(mg.tensor([3.0, 1.0, 2.0]), k=2)
    [tensor([3., 2.]), tensor([0, 2])]
    """
    axis = one_axis(axis, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(
            f"k={k} of {x.shape[axis]} elements; repair: choose k from 0 to {x.shape[axis]}"
        )
    order = argsort(x, axis, largest)
    first = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(x, first, axis), first


topk.grad(x=(add_along_axis, "values_grad, indices, x_shape, axis", _SPREAD))


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
