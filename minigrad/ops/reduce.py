"""Reductions over axes."""
from __future__ import annotations

import numpy as np

from ..registry import primitive
from .shape import expand_reduced


@primitive
def reduce_sum(x, *, axis=None, keepdims=False):
    """Sum over ``axis`` (an int, a tuple, or None for all)."""
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


reduce_sum.grad(x=lambda out_grad, x_shape, axis, keepdims: expand_reduced(out_grad, shape=x_shape, axis=axis, keepdims=keepdims))
