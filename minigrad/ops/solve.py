"""Inverse, linear systems, determinant, Cholesky factor; all work on stacks of matrices."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .infer import like_x, solved
from .linalg import matmul
from .reduce import reduce_sum
from .shape import expand_dims, squeeze, swapaxes, unbroadcast


def _t(x):
    return swapaxes(x, axis1=-1, axis2=-2)


def _square(x):
    """An array of square matrices; LAPACK would say less of others."""
    x = np.asarray(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"{list(x.shape)} is not a square matrix; repair: the last two axes must be equal"
        )
    return x


@primitive(infer=like_x)
def inv(x):
    """Inverse of square matrices.

    >>> import minigrad as mg
    >>> mg.inv(mg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return np.linalg.inv(_square(x))


inv.grad(x=lambda out, out_grad: -matmul(matmul(_t(out), out_grad), _t(out)))


@primitive(infer=solved)
def solve(a, b):
    """The x with ``a @ x = b``; ``b`` is a vector or a stack of matrices.

    >>> import minigrad as mg
    >>> mg.solve(mg.tensor([[2.0, 0.0], [0.0, 4.0]]), mg.tensor([2.0, 8.0]))
    tensor([1., 2.])
    """
    return np.linalg.solve(_square(a), b)


@solve.grad
def _solve_rule(a, out, out_grad, a_shape, b_shape):
    if len(out.shape) < len(a.shape):  # b is a vector
        b_grad = squeeze(solve(_t(a), expand_dims(out_grad, axis=-1)), axis=-1)
        a_grad = -expand_dims(b_grad, axis=-1) * expand_dims(out, axis=-2)
    else:
        b_grad = solve(_t(a), out_grad)
        a_grad = -matmul(b_grad, _t(out))
    return unbroadcast(a_grad, shape=a_shape), unbroadcast(b_grad, shape=b_shape)


@primitive
def det(x):
    """Determinant of square matrices; the gradient is right for singular ones, too.

    >>> import minigrad as mg
    >>> mg.det(mg.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(6.)
    """
    return np.linalg.det(_square(x))


det.grad(x=lambda x, out_grad: expand_dims(out_grad, axis=(-1, -2)) * cofactor(x))


@primitive
def cofactor(x):
    """The matrix of cofactors, ``det(x) * inv(x)ᵀ``, also of singular ``x``."""
    u, s, vt = np.linalg.svd(x)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vt)
    return (u * (others * sign[..., None])[..., None, :]) @ vt


def _cofactor_rule(x, out, out_grad):
    back = _t(inv(x))
    share = reduce_sum(out_grad * out, axis=(-1, -2), keepdims=True)
    return share * back - matmul(matmul(back, _t(out_grad)), out)


cofactor.grad(x=_cofactor_rule)


@primitive(infer=like_x)
def cholesky(x):
    """The lower triangle L with ``L @ Lᵀ = (x + xᵀ) / 2``, for positive definite ``x``.

    >>> import minigrad as mg
    >>> mg.cholesky(mg.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    x = _square(x)
    return np.linalg.cholesky((x + np.swapaxes(x, -1, -2)) / 2)


def _cholesky_rule(out, out_grad):
    back = inv(out)
    inner = half_tril(matmul(_t(out), out_grad))
    whole = matmul(matmul(_t(back), inner), back)
    return 0.5 * (whole + _t(whole))


cholesky.grad(x=_cholesky_rule)


@primitive
def half_tril(x):
    """The lower triangle with half of the diagonal."""
    x = np.asarray(x)
    return np.tril(x) * (1 - 0.5 * np.eye(x.shape[-1], dtype=x.dtype))


half_tril.grad(x=lambda out_grad: half_tril(out_grad))
