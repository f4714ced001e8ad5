"""What stands on a diagonal, and on one side of it."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .infer import shape_attr
from .shape import unbroadcast


@primitive
def tril(x, *, k=0):
    """The lower triangle; zeros above the ``k``-th diagonal.

    >>> import minigrad as mg
    >>> mg.tril(mg.ones([2, 2]))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return np.tril(_with_axes(x), k)


@primitive
def triu(x, *, k=0):
    """The upper triangle; zeros below the ``k``-th diagonal.

    >>> import minigrad as mg
    >>> mg.triu(mg.ones([2, 2]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return np.triu(_with_axes(x), k)


def _with_axes(x):
    x = np.asarray(x)
    if not x.ndim:
        raise ValueError("a single number has no triangle; repair: a matrix")
    return x


# NumPy repeats a vector to a square matrix first
tril.grad(x=lambda out_grad, x_shape, k: unbroadcast(tril(out_grad, k=k), shape=x_shape))
triu.grad(x=lambda out_grad, x_shape, k: unbroadcast(triu(out_grad, k=k), shape=x_shape))
tril.primitive.formula(x="tril(g, k)")
triu.primitive.formula(x="triu(g, k)")


@primitive(view=True)
def diagonal(x, *, offset=0, axis1=0, axis2=1):
    """The diagonal of two axes, as the last axis.

    >>> import minigrad as mg
    >>> mg.diagonal(mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return np.diagonal(x, offset, axis1, axis2)


@primitive(infer=shape_attr)
def put_diagonal(x, *, shape, offset=0, axis1=0, axis2=1):
    """Zeros of ``shape`` with ``x`` on a diagonal: the gradient of `diagonal`."""
    x = np.asarray(x)
    out = np.zeros(shape, x.dtype)
    places = np.moveaxis(out, (axis1, axis2), (-2, -1))
    row = np.arange(x.shape[-1])
    places[..., row + max(-offset, 0), row + max(offset, 0)] = x
    return out


diagonal.grad(
    x=lambda out_grad, x_shape, offset, axis1, axis2: put_diagonal(
        out_grad, shape=x_shape, offset=offset, axis1=axis1, axis2=axis2
    )
)
put_diagonal.grad(
    x=lambda out_grad, offset, axis1, axis2: diagonal(
        out_grad, offset=offset, axis1=axis1, axis2=axis2
    )
)
