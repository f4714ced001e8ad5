"""Indexing and scattering."""
from __future__ import annotations

import numpy as np

from ..registry import primitive


@primitive(view=True)
def getitem(x, *, index):
    """Pick elements with any NumPy index."""
    return x[index]


@primitive
def scatter(x, *, shape, index):
    """Zeros of ``shape`` with ``x`` added at ``index``; repeated indices add up."""
    out = np.zeros(shape, x.dtype)
    np.add.at(out, index, x)
    return out


getitem.grad(x=lambda out_grad, x_shape, index: scatter(out_grad, shape=x_shape, index=index))
scatter.grad(x=lambda out_grad, index: getitem(out_grad, index=index))


@primitive
def setitem(x, y, *, index):
    """A copy of ``x`` with ``y`` put at ``index``."""
    out = np.array(x)
    out[index] = y
    return out
