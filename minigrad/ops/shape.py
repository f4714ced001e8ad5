"""Shapes, axes and orders: what moves or repeats elements and computes nothing."""

import math
from typing import Any

import numpy as np

from ..primitives.arguments import Attrs, as_list
from ..primitives.registry import primitive

__all__ = [
    "broadcast_to", "expand_dims", "flatten", "flip", "moveaxis", "permute_dims", "reshape",
    "roll", "squeeze", "swapaxes", "unbroadcast",
]  # fmt: skip

# -- shapes and dtypes that a Program cannot find by running a kernel on stand-ins ---------
#
# An ``infer`` function gets ``inputs``, slot → list of (shape, dtype), where -1 is an open size, and
# the attrs; it returns one (shape, dtype) per output.  A ``shape`` may come as a slot ``shape_like``.

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
Shape = tuple[int, ...]
Outputs = list[tuple[Shape, Any]]
Inputs = dict[str, Outputs]


def fits(a: Shape, b: Shape) -> bool:
    """Whether two shapes can be those of one value; -1 is an open size."""
    return a == b or (
        len(a) == len(b) and all(m == n or -1 in (m, n) for m, n in zip(a, b, strict=True))
    )


def shape_attr(inputs: Inputs, attrs: Attrs) -> Outputs:
    """The output has the shape that an attr says: ops that are the way back of another op."""
    like = inputs.get("shape_like")
    dtypes = [d for slot in ("x", "y", "w") for _, d in inputs.get(slot, []) if d.kind in "fc"]
    shape = like[0][0] if like else tuple(as_list(attrs["shape"]))
    return [(shape, np.result_type(*dtypes) if dtypes else inputs["x"][0][1])]


def reshaped(inputs: Inputs, attrs: Attrs) -> Outputs:
    """`reshape`: sizes are checked where all are known."""
    ((out, dtype),), shape = shape_attr(inputs, attrs), inputs["x"][0][0]
    if "shape_like" not in inputs and -1 not in shape:
        out = np.broadcast_to(0, shape).reshape(out).shape
    return [(out, dtype)]


def broadcasted(inputs: Inputs, attrs: Attrs) -> Outputs:
    """`broadcast_to`: shapes are checked where all sizes are known."""
    ((out, dtype),), shape = shape_attr(inputs, attrs), inputs["x"][0][0]
    if -1 not in shape and -1 not in out:
        np.broadcast_to(np.broadcast_to(0, shape), out)
    return [(out, dtype)]


def like_x(inputs: Inputs, attrs: Attrs) -> Outputs:
    """`inv` and `cholesky`: stand-ins have no inverse."""
    ((shape, dtype),) = inputs["x"]
    return [(shape, np.result_type(dtype, np.float32))]


def solved(inputs: Inputs, attrs: Attrs) -> Outputs:
    """`solve`, with a vector or matrices on the right."""
    ((a, a_dtype),), ((b, b_dtype),) = inputs["a"], inputs["b"]
    shape = a[:-1] if len(b) == 1 else (*np.broadcast_shapes(a[:-2], b[:-2]), *b[-2:])
    return [(shape, np.result_type(a_dtype, b_dtype, np.float32))]


# -- axes and shapes -----------------------------------------------------------------------


def axis_tuple(axis, ndim):
    """Axes as a tuple of numbers from 0 to ndim - 1."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(f"axis {a} is out of range for {ndim} axes")
    return tuple([a % ndim for a in axes])


def one_axis(axis, ndim):
    """An axis as a number from 0 to ndim - 1."""
    if axis is None:
        raise ValueError("axis=None names no axis; repair: x.flatten() first, or axis=-1")
    (axis,) = axis_tuple(axis, ndim)
    return axis


@primitive(view=True, title="Expand", infer=broadcasted)
def broadcast_to(x, *, shape):
    """Repeat ``x`` along new and stretched axes; a read-only view.

    >>> import minigrad as mg
    >>> mg.broadcast_to(mg.tensor([1.0, 2.0]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    return np.broadcast_to(x, shape)


def sum_to(x, shape):
    """Undo a broadcast of arrays: sum the axes that were added or stretched."""
    lead = x.ndim - len(shape)
    if lead > 0:
        x = _add_up(x, 0 if lead == 1 else tuple(range(lead)))
    if x.shape == shape:
        return x
    sizes = zip(shape, x.shape, strict=False)
    stretched = tuple([k for k, (n, size) in enumerate(sizes) if n == 1 != size])
    return _add_up(x, stretched, keepdims=True) if stretched else x


_add_up = np.add.reduce


@primitive(view=True, infer=shape_attr)
def unbroadcast(x, *, shape):
    """Sum ``x`` down to ``shape``: the gradient of `broadcast_to`.

    >>> import minigrad as mg
    >>> mg.unbroadcast([[1.0, 2.0], [3.0, 4.0]], shape=(2,))
    array([4., 6.])
    """
    out = sum_to(x, shape)
    if out.shape != shape and out.shape != tuple(shape):
        raise ValueError(
            f"{list(x.shape)} is no broadcast of {list(shape)}; "
            "repair: a shape that broadcast_to can turn into that of x"
        )
    return out


broadcast_to.grad(x=(unbroadcast, "out_grad, x_shape", "sum_to(g, x.shape)"))
unbroadcast.grad(x=(broadcast_to, "out_grad, x_shape"))


@primitive(view=True, infer=reshaped)
def reshape(x, *, shape):
    """The same elements in another shape; one entry may be -1.

    >>> import minigrad as mg
    >>> mg.reshape(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), (4,))
    tensor([1., 2., 3., 4.])
    """
    return np.reshape(x, shape)


reshape.grad(x=(reshape, "out_grad, x_shape"))


@primitive(view=True, title="Permute")
def permute_dims(x, *, axes=None):
    """Reorder the axes; None reverses them.

    >>> import minigrad as mg
    >>> mg.permute_dims(mg.zeros([2, 3, 4]), axes=(2, 0, 1)).shape
    (4, 2, 3)
    """
    return np.transpose(x, axes)


def _permute_rule(out_grad, axes):
    back = None if axes is None else np.argsort([a % len(axes) for a in axes]).tolist()
    return permute_dims(out_grad, back)


permute_dims.grad(x=_permute_rule).formula(x="transpose(g, argsort(axes))")


@primitive(view=True)
def swapaxes(x, *, axis1, axis2):
    """Exchange two axes.

    >>> import minigrad as mg
    >>> mg.swapaxes(mg.zeros([2, 3, 4]), 0, 2).shape
    (4, 3, 2)
    """
    return np.swapaxes(x, axis1, axis2)


swapaxes.grad(x=(swapaxes, "out_grad, axis1, axis2"))


@primitive(view=True, title="Unsqueeze")
def expand_dims(x, *, axis=0):
    """Insert an axis of length 1 (a tuple inserts several).

    >>> import minigrad as mg
    >>> mg.expand_dims(mg.tensor([1.0, 2.0]), axis=1).shape
    (2, 1)
    """
    return np.expand_dims(x, axis)


@primitive(view=True)
def squeeze(x, *, axis=None):
    """Remove axes of length 1: the given ones, or all.

    >>> import minigrad as mg
    >>> mg.squeeze(mg.zeros([1, 3, 1])).shape
    (3,)
    """
    return np.squeeze(x, axis)


@primitive(view=True)
def flatten(x, *, start=0, end=-1):
    """Make the axes from ``start`` to ``end`` one axis.

    >>> import minigrad as mg
    >>> mg.flatten(mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 2., 3., 4.])
    """
    ndim = max(x.ndim, 1)
    first = start % ndim
    last = end % ndim
    size = math.prod(x.shape[first : last + 1])
    return np.reshape(x, (*x.shape[:first], size, *x.shape[last + 1 :]))


for _op in (expand_dims, squeeze, flatten):
    _op.grad(x=(reshape, "out_grad, x_shape"))


# -- orders of axes and of elements --------------------------------------------------------


def moveaxis(x, source, destination):
    """Move axes to other places; the others keep their order.

    >>> import minigrad as mg
    >>> mg.moveaxis(mg.zeros([2, 3, 4]), 0, -1).shape
    (3, 4, 2)
    """
    numbered = np.broadcast_to(0, range(1, np.ndim(x) + 1))  # each axis as long as its number
    return permute_dims(x, [n - 1 for n in np.moveaxis(numbered, source, destination).shape])


@primitive(view=True)
def flip(x, *, axis=None):
    """Reverse the order along axes (all by default).

    >>> import minigrad as mg
    >>> mg.flip(mg.tensor([1.0, 2.0, 3.0]))
    tensor([3., 2., 1.])
    """
    return np.flip(x, axis)


flip.grad(x=(flip, "out_grad, axis"))


@primitive
def roll(x, *, shift, axis=None):
    """Move elements along axes; what leaves at one end comes in at the other.

    >>> import minigrad as mg
    >>> mg.roll(mg.tensor([1.0, 2.0, 3.0]), shift=1)
    tensor([3., 1., 2.])
    """
    return np.roll(x, shift, axis)


roll.grad(
    x=lambda out_grad, shift, axis: roll(out_grad, np.negative(shift).tolist(), axis)
).formula(x="roll(g, -shift, axis)")
