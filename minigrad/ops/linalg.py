"""Products of matrices.

The product and the gradients of its two factors are one closed family of three bilinear primitives,
so derivatives of any order are made of them; each knows NumPy's rules for vectors and for stacks.
"""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .diagonals import diagonal
from .elementwise import mul
from .infer import shape_attr
from .reduce import reduce_sum
from .shape import expand_dims, flatten, sum_to, unbroadcast

FEW = 2**14  #: up to so many elements dot is faster than np.matmul; the bits are the same


@primitive
def matmul(x, y):
    """Matrix product, ``x @ y``, with NumPy's rules for vectors and stacks of matrices.

    >>> import minigrad as mg
    >>> mg.matmul(mg.tensor([[1.0, 2.0]]), mg.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    return _product(x, y)


def _product(x, y):
    """Of two matrices ``dot`` has the same bits as ``np.matmul``, and less overhead."""
    matrices = getattr(x, "ndim", 0) == 2 == getattr(y, "ndim", 0)
    return x.dot(y) if matrices else np.matmul(x, y)


matmul.grad(
    x=lambda y, out_grad, x_shape: matmul_nt(out_grad, y, x_shape),
    y=lambda x, out_grad, y_shape: matmul_tn(x, out_grad, y_shape),
)


@primitive(infer=shape_attr)
def matmul_nt(x, y, *, shape):
    """``x @ yᵀ`` summed to ``shape``: the gradient of a product's first factor."""
    if x.ndim == y.ndim == len(shape) == 2:
        return x.dot(y.T)
    if y.ndim == 1:  # the product lost y's axis
        return sum_to(x[..., None] * y, tuple(shape))
    if len(shape) == 1:  # the product lost the first factor's axis
        return sum_to(np.matmul(y, x[..., None])[..., 0], tuple(shape))
    return sum_to(np.matmul(x, np.swapaxes(y, -1, -2)), tuple(shape))


matmul_nt.grad(
    x=lambda y, out_grad: matmul(out_grad, y),
    y=lambda x, out_grad, y_shape: matmul_tn(out_grad, x, shape=y_shape),
)


@primitive(infer=shape_attr)
def matmul_tn(x, y, *, shape):
    """``xᵀ @ y`` summed to ``shape``: the gradient of a product's second factor."""
    if x.ndim == y.ndim == len(shape) == 2:
        few = shape[0] * shape[1] <= FEW  # dot writes zeros before it writes the product
        return x.T.dot(y) if few else np.matmul(x.T, y)
    if len(shape) == 1:
        if x.ndim == 1:
            return x * y
        return np.matmul(y.reshape(-1), x.reshape(y.size, x.shape[-1]))
    if x.ndim == 1:
        return sum_to(x[:, None] * y[..., None, :], tuple(shape))
    if len(shape) == 2:  # one matrix for the whole stack
        rows = int(np.prod(x.shape[:-1]))
        return np.matmul(x.reshape(rows, x.shape[-1]).T, y.reshape(rows, y.shape[-1]))
    return sum_to(np.matmul(np.swapaxes(x, -1, -2), y), tuple(shape))


matmul_tn.grad(
    x=lambda y, out_grad, x_shape: matmul_nt(y, out_grad, shape=x_shape),
    y=lambda x, out_grad: matmul(x, out_grad),
)


@primitive(title="Addmm")
def linear(x, w, b=None):
    """``x @ w + b``: ``x`` [..., n], ``w`` [n, m], ``b`` [m] or None.

    >>> import minigrad as mg
    >>> mg.linear(mg.tensor([[1.0, 2.0]]), mg.tensor([[1.0], [10.0]]), mg.tensor([0.5]))
    tensor([[21.5]])
    """
    out = _product(x, w)
    if b is None:
        return out
    if getattr(b, "dtype", None) is out.dtype and out.ndim:
        return np.add(out, b, out)
    return out + np.broadcast_to(b, np.shape(out))  # b may not make the product larger


linear.grad(
    x=lambda w, out_grad, x_shape: matmul_nt(out_grad, w, x_shape),
    w=lambda x, out_grad, w_shape: matmul_tn(x, out_grad, w_shape),
    b=lambda out_grad, b_shape: unbroadcast(out_grad, b_shape),
)


def dot(x, y):
    """Product of two vectors, or of matrices; a number scales.

    >>> import minigrad as mg
    >>> mg.dot(mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not np.ndim(x) or not np.ndim(y):
        return mul(x, y)
    return matmul(x, y)


def outer(x, y):
    """All products of an element of ``x`` with one of ``y``: shape [x.size, y.size].

    >>> import minigrad as mg
    >>> mg.outer(mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return mul(expand_dims(flatten(x), axis=1), flatten(y))


def trace(x, offset=0):
    """Sum of the diagonal of the last two axes.

    >>> import minigrad as mg
    >>> mg.trace(mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    return reduce_sum(diagonal(x, offset=offset, axis1=-2, axis2=-1), axis=-1)
