"""Putting values together and taking them apart: lists, borders, repetitions."""

import math

import numpy as np

from ..primitives.registry import primitive
from .index import take
from .shape import expand_dims, flatten, one_axis, reshape, shape_attr

__all__ = ["add_n", "concat", "pad", "repeat", "split", "stack", "tile", "unbind"]

# -- lists ---------------------------------------------------------------------------------


@primitive(title="Cat")
def concat(*x, axis=0):
    """Join a list of values along an axis they have, or all elements in a row for None.

    >>> import minigrad as mg
    >>> mg.concat([mg.tensor([1.0, 2.0]), mg.tensor([3.0])])
    tensor([1., 2., 3.])
    """
    return np.concatenate(x, axis=axis)


def _pieces(inputs, attrs):
    ((full, dtype),) = inputs["x"]
    axis = one_axis(attrs.get("axis", 0), len(full))
    shapes = [s for s, _ in inputs.get("shapes_like", ())] or attrs["shapes"]
    sizes = [s[axis] for s in shapes]
    if full[axis] >= 0 and -1 not in sizes:  # the last piece is what is left
        pieces = np.split(np.broadcast_to(0, full[axis]), np.cumsum(sizes)[:-1])
        sizes = [len(piece) for piece in pieces]
    return [((*full[:axis], n, *full[axis + 1 :]), dtype) for n in sizes]


@primitive(list_output=True, view=True, infer=_pieces)
def split_like(x, *, shapes, axis=0):
    """Cut ``x`` along an axis into pieces as long as ``shapes`` say: the gradient of `concat`."""
    axis = one_axis(axis, x.ndim)
    return np.split(x, np.cumsum([shape[axis] for shape in shapes])[:-1], axis=axis)


def _concat_rule(out_grad, x_shape, axis):
    if axis is not None:
        return split_like(out_grad, x_shape, axis)
    flat = split_like(out_grad, [(math.prod(s),) for s in x_shape])
    return [reshape(g, s) for g, s in zip(flat, x_shape, strict=True)]


concat.grad(x=_concat_rule).formula(x="part(g, k)")
split_like.grad(x=(concat, "out_grad, axis"))


@primitive(list_output=True, view=True)
def split(x, *, num_or_sections=2, axis=0):
    """Cut ``x`` along an axis into equal parts, or into listed lengths (one may be -1).

    >>> import minigrad as mg
    >>> mg.split(mg.tensor([1.0, 2.0, 3.0]), num_or_sections=[1, 2])
    [tensor([1.]), tensor([2., 3.])]
    """
    axis = one_axis(axis, x.ndim)
    return np.split(x, ends(x.shape[axis], num_or_sections), axis=axis)


split.grad(x=(concat, "out_grad, axis"))


def ends(length, parts):
    """Where to cut an axis."""
    if isinstance(parts, int | np.integer):
        return parts
    sizes = list(parts)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = length - sum(sizes) - 1
    if any(n < 0 for n in sizes) or sum(sizes) != length:
        raise ValueError(
            f"parts of {list(parts)} do not add up to the {length} elements of the axis; "
            "repair: -1 for one of them stands for the rest"
        )
    return np.cumsum(sizes)[:-1]


@primitive
def stack(*x, axis=0):
    """Join a list of values of one shape along a new axis.

    >>> import minigrad as mg
    >>> mg.stack([mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return np.stack(x, axis=axis)


@primitive(list_output=True, view=True)
def unbind(x, *, axis=0):
    """Take an axis apart: the list of its slices.

    >>> import minigrad as mg
    >>> mg.unbind(mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    [tensor([1., 2.]), tensor([3., 4.])]
    """
    return list(np.moveaxis(x, axis, 0))


stack.grad(x=(unbind, "out_grad, axis", "part(g, k)"))
unbind.grad(x=(stack, "out_grad, axis"))


@primitive(type="sum", title="AddN")
def add_n(*x):
    """The sum of a list of values of one shape, added from the first to the last.

    >>> import minigrad as mg
    >>> mg.add_n([mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])])
    tensor([4., 6.])
    """
    if not x:
        raise ValueError("there is nothing to add; repair: give at least one value")
    if len({np.shape(a) for a in x}) > 1:
        raise ValueError(
            f"the shapes differ: {[list(np.shape(a)) for a in x]}; "
            f"repair: use add, which broadcasts"
        )
    out = np.asarray(x[0]) if x[1:] else np.array(x[0])
    for a in x[1:]:
        out = np.add(out, a)
    return out


add_n.grad(x=lambda x_shape, out_grad: [out_grad for _ in x_shape]).formula(x="g")

# -- padding and repeating -----------------------------------------------------------------


@primitive
def pad(x, *, pad_width, value=0.0):
    """Put ``value`` around ``x``: ``pad_width`` is a number, (before, after), or such pairs.

    >>> import minigrad as mg
    >>> mg.pad(mg.tensor([1.0, 2.0]), pad_width=(1, 2))
    tensor([0., 1., 2., 0., 0.])
    """
    pairs = border(pad_width, x.ndim)
    shape = [n + a + b for n, (a, b) in zip(x.shape, pairs, strict=True)]
    out = np.full(shape, value, x.dtype)
    out[_inside(shape, pairs)] = x
    return out


@primitive(view=True)
def crop(x, *, pad_width):
    """Cut the border off again: the gradient of `pad`."""
    return x[_inside(x.shape, border(pad_width, x.ndim))]


pad.grad(x=(crop, "out_grad, pad_width"))
crop.grad(x=(pad, "out_grad, pad_width"))


def border(pad_width, ndim):
    pairs = np.asarray(pad_width)
    fits = pairs.shape in ((), (2,), (1, 2), (ndim, 2)) and pairs.dtype.kind in "iu"
    if not fits or (pairs < 0).any():
        raise ValueError(
            f"pad_width={pad_width!r} does not fit {ndim} axes; repair: a number from 0 on, "
            "(before, after), or a pair for each axis; slice to make smaller"
        )
    return np.broadcast_to(pairs, (ndim, 2)).tolist()


def _inside(shape, pairs):
    return tuple([slice(a, n - b) for n, (a, b) in zip(shape, pairs, strict=True)])


@primitive
def tile(x, *, repetitions):
    """Repeat ``x`` as a whole, ``repetitions`` times along each axis.

    >>> import minigrad as mg
    >>> mg.tile(mg.tensor([1.0, 2.0]), 2)
    tensor([1., 2., 1., 2.])
    """
    return np.tile(x, repetitions)


@primitive(infer=shape_attr)
def untile(x, *, shape, repetitions):
    """Add up the repetitions: the gradient of `tile`."""
    times = tuple(np.atleast_1d(repetitions).tolist())
    ndim = max(len(shape), len(times))
    times = (1,) * (ndim - len(times)) + times
    old = (1,) * (ndim - len(shape)) + tuple(shape)
    blocks = np.reshape(x, [n for pair in zip(times, old, strict=True) for n in pair])
    return np.add.reduce(blocks, axis=tuple(range(0, 2 * ndim, 2))).reshape(shape)


tile.grad(x=(untile, "out_grad, x_shape, repetitions", "untile(g, x.shape)"))
untile.grad(
    x=lambda out_grad, repetitions, x_shape: reshape(tile(out_grad, repetitions), x_shape)
).formula(x="tile(g, repetitions)")


def repeat(x, repeats, axis=None):
    """Every element several times in a row, along an axis or of all elements in a row; `tile` repeats the whole.

    ``repeats`` is a number, or one for each place of the axis.

    >>> import minigrad as mg
    >>> mg.repeat(mg.tensor([1.0, 2.0]), 2), mg.repeat(mg.tensor([1.0, 2.0]), [1, 3])
    (tensor([1., 1., 2., 2.]), tensor([1., 2., 2., 2.]))
    """
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = one_axis(axis, np.ndim(x))
    if isinstance(repeats, int | np.integer):
        apart = expand_dims(x, axis + 1)
        times = [int(repeats)] + [1] * (np.ndim(x) - axis - 1)
        return flatten(tile(apart, times), axis, axis + 1)
    n = np.shape(x)[axis]
    return take(x, np.repeat(np.arange(n), np.broadcast_to(repeats, n)), axis)
