"""``x % y`` and ``x // y``: the rest of a division, and how often it goes."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import elementwise
from .fill import zeros_like


@elementwise
def mod(x, y):
    """Remainder of a division, ``x % y``; it has the sign of ``y``.

    Between its jumps it is ``x - y * (x // y)`` with a constant quotient, so the slopes are 1 and ``-(x // y)``.

    >>> import minigrad as mg
    >>> mg.mod(mg.tensor([5.0, -1.0]), 3.0)
    tensor([2., 2.])
    """
    return np.mod(x, y)


mod.grad(
    x=lambda out_grad: out_grad,
    y=lambda x, y, out_grad: -out_grad * floor_divide(x, y),
)


@elementwise
def floor_divide(x, y):
    """Quotient rounded down, ``x // y``; zero gradient.

    >>> import minigrad as mg
    >>> mg.floor_divide(mg.tensor([5.0, -1.0]), 3.0)
    tensor([ 1., -1.])
    """
    return np.floor_divide(x, y)


floor_divide.grad(
    x=lambda out_grad: zeros_like(out_grad),
    y=lambda out_grad: zeros_like(out_grad),
)
