"""New leaf Tensors: constants and ranges."""

from __future__ import annotations

import numpy as np

from ..errors import DTypeError, refusal
from ..primitives.registry import HOOKS


def leaf(array, requires_grad=False, name=None):
    """A leaf Tensor; the eager engine lends its maker, since ops know no engine."""
    return HOOKS["tensor"](array, requires_grad=requires_grad, name=name)


def _one_shape(function, shape, dtype):
    """The dtype; refuses a second size in its place."""
    if isinstance(dtype, int | np.integer):
        raise refusal(
            f"{function}() takes the sizes as one shape, and {dtype!r} is no dtype",
            f"{function}(({shape}, {dtype}, …))",
            DTypeError,
        )
    return dtype


def zeros(shape, dtype=float, requires_grad=False, name=None):
    """A Tensor of zeros.

    >>> import minigrad as mg
    >>> mg.zeros([2])
    tensor([0., 0.])
    """
    return leaf(np.zeros(shape, _one_shape("zeros", shape, dtype)), requires_grad, name)


def ones(shape, dtype=float, requires_grad=False, name=None):
    """A Tensor of ones.

    >>> import minigrad as mg
    >>> mg.ones([2])
    tensor([1., 1.])
    """
    return leaf(np.ones(shape, _one_shape("ones", shape, dtype)), requires_grad, name)


def full(shape, fill_value, dtype=None, requires_grad=False, name=None):
    """A Tensor of one value.

    >>> import minigrad as mg
    >>> mg.full([2], 3.0)
    tensor([3., 3.])
    """
    return leaf(np.full(shape, fill_value, dtype), requires_grad, name)


def arange(start, stop=None, step=1, dtype=None, requires_grad=False, name=None):
    """Numbers from ``start`` to before ``stop`` in steps.

    >>> import minigrad as mg
    >>> mg.arange(3), mg.arange(1.0, 2.0, 0.5)
    (tensor([0, 1, 2]), tensor([1. , 1.5]))
    """
    start, stop = (0, start) if stop is None else (start, stop)
    return leaf(np.arange(start, stop, step, dtype), requires_grad, name)


def linspace(start, stop, num, dtype=None, requires_grad=False, name=None):
    """``num`` numbers at equal distances, both ends included.

    >>> import minigrad as mg
    >>> mg.linspace(0.0, 1.0, 3)
    tensor([0. , 0.5, 1. ])
    """
    return leaf(np.linspace(start, stop, num, dtype=dtype), requires_grad, name)


def eye(n, m=None, k=0, dtype=float, requires_grad=False, name=None):
    """Zeros with ones on a diagonal.

    >>> import minigrad as mg
    >>> mg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    return leaf(np.eye(n, m, k, dtype), requires_grad, name)
