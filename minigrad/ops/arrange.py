"""Orders of axes and of elements."""

from __future__ import annotations

import numpy as np

from ..errors import describe, refusal
from ..primitives.registry import primitive
from .along_axis import take
from .axes import axis_of, axis_tuple
from .join import tile
from .shape import expand_dims, flatten, permute_dims, reshape


def moveaxis(x, source, destination):
    """Move axes to other places; the others keep their order.

    >>> import minigrad as mg
    >>> mg.moveaxis(mg.zeros([2, 3, 4]), 0, -1).shape
    (3, 4, 2)
    """
    n = np.ndim(x)
    try:
        source, destination = axis_tuple(source, n), axis_tuple(destination, n)
        fits = len({*source}) == len({*destination}) == len(source) == len(destination)
    except IndexError:
        fits = False
    if not fits:
        raise refusal(
            f"moveaxis(x: {describe(x)}, source={source}, destination={destination}) has no one place for each axis",
            f"axes go from {-n} to {n - 1} here; name each once, and one destination for each",
        )
    order = [k for k in range(n) if k not in source]
    for place, axis in sorted(zip(destination, source, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, axes=order)


def repeat(x, repeats, axis=None):
    """Every element several times in a row, along an axis or of all elements in a row; `tile` repeats the whole.

    ``repeats`` is a number, or one for each place of the axis.

    >>> import minigrad as mg
    >>> mg.repeat(mg.tensor([1.0, 2.0]), 2), mg.repeat(mg.tensor([1.0, 2.0]), [1, 3])
    (tensor([1., 1., 2., 2.]), tensor([1., 2., 2., 2.]))
    """
    if axis is None:
        x, axis = reshape(x, shape=(-1,)), 0
    axis = axis_of("repeat", x, axis)
    if isinstance(repeats, int | np.integer):
        apart = expand_dims(x, axis=axis + 1)
        times = [1] * (axis + 1) + [int(repeats)] + [1] * (np.ndim(x) - axis - 1)
        return flatten(tile(apart, repetitions=times), start=axis, end=axis + 1)
    places, numbers = np.shape(x)[axis], np.asarray(repeats)
    if numbers.shape != (places,) or numbers.dtype.kind not in "iu" or numbers.min(initial=0) < 0:
        raise refusal(
            f"repeat(x: {describe(x)}, repeats: {describe(numbers)}, axis={axis}) does not say how often",
            f"a whole number from 0 on, or {places} of them",
        )
    return take(x, np.repeat(np.arange(places), numbers), axis=axis)


@primitive(view=True)
def flip(x, *, axis=None):
    """Reverse the order along axes (all by default).

    >>> import minigrad as mg
    >>> mg.flip(mg.tensor([1.0, 2.0, 3.0]))
    tensor([3., 2., 1.])
    """
    return np.flip(x, axis)


flip.grad(x=lambda out_grad, axis: flip(out_grad, axis=axis))


@primitive
def roll(x, *, shift, axis=None):
    """Move elements along axes; what leaves at one end comes in at the other.

    >>> import minigrad as mg
    >>> mg.roll(mg.tensor([1.0, 2.0, 3.0]), shift=1)
    tensor([3., 1., 2.])
    """
    return np.roll(x, shift, axis)


def _back(shift):
    return tuple(-s for s in shift) if isinstance(shift, tuple | list) else -shift


roll.grad(x=lambda out_grad, shift, axis: roll(out_grad, shift=_back(shift), axis=axis))
