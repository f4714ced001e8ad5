"""Products of arrays with any axes, made of other functions."""

from __future__ import annotations

from string import ascii_letters

import numpy as np

from ..errors import describe, refusal
from .arrange import roll
from .axes import axis_tuple
from .einsum import einsum
from .elementwise import mul, sub
from .shape import reshape

__minigrad_ops__ = True  # frames of this module are never "the user's line"


def tensordot(x, y, axes=2):
    """Sum of products over the last axes of ``x`` and the first of ``y``: so many, or a pair of lists of axes.

    >>> import minigrad as mg
    >>> mg.tensordot(mg.ones([2, 3, 4]), mg.ones([4, 3]), axes=([2, 1], [0, 1])).tolist()
    [12.0, 12.0]
    """
    m, n = np.shape(x), np.shape(y)
    count = axes if isinstance(axes, int) else 0
    pair = ((*range(-count, 0),), (*range(count),)) if isinstance(axes, int) else axes
    try:
        left, right = (axis_tuple(a, len(s)) for a, s in zip(pair, (m, n), strict=True))
        fits = all(-1 in (m[a], n[b]) or m[a] == n[b] for a, b in zip(left, right, strict=True))
    except (IndexError, ValueError):
        fits = False
    if not fits:
        raise refusal(
            f"tensordot(x: {describe(x)}, y: {describe(y)}, axes={axes!r}) pairs axes of other lengths",
            "one list of axes of x and one of axes of y, equally long one by one",
        )
    first, second = ascii_letters[: len(m)], list(ascii_letters[len(m) : len(m) + len(n)])
    for a, b in zip(left, right, strict=True):
        second[b] = first[a]
    kept = [c for k, c in enumerate(first) if k not in left]
    kept += [c for k, c in enumerate(second) if k not in right]
    return einsum(f"{first},{''.join(second)}->{''.join(kept)}", x, y)


def cross(x, y, axis=-1):
    """The vector product along an axis of length 3.

    >>> import minigrad as mg
    >>> mg.cross(mg.tensor([1.0, 0.0, 0.0]), mg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    for given in (x, y):
        shape = np.shape(given)
        if not -len(shape) <= axis < len(shape) or shape[axis] != 3:
            raise refusal(
                f"cross(x: {describe(x)}, y: {describe(y)}, axis={axis}) needs vectors of three numbers",
                "axis=… names the axis of length 3",
            )

    def turned(value, by):
        return roll(value, shift=by, axis=axis)

    return sub(mul(turned(x, -1), turned(y, 1)), mul(turned(x, 1), turned(y, -1)))


def kron(x, y):
    """Kronecker product: ``x`` with every element replaced by its product with ``y``.

    >>> import minigrad as mg
    >>> mg.kron(mg.tensor([1.0, 10.0]), mg.tensor([1.0, 2.0]))
    tensor([ 1.,  2., 10., 20.])
    """
    a, b = np.shape(x), np.shape(y)
    a, b = (1,) * (len(b) - len(a)) + a, (1,) * (len(a) - len(b)) + b
    apart = mul(
        reshape(x, shape=[s for n in a for s in (n, 1)]),
        reshape(y, shape=[s for n in b for s in (1, n)]),
    )
    return reshape(apart, shape=[m * n for m, n in zip(a, b, strict=True)])
