"""Matrices: products, diagonals and triangles, systems of equations; all work on stacks of them.

The product and the gradients of its two factors are one closed family of three bilinear primitives,
so derivatives of any order are made of them; each knows NumPy's rules for vectors and for stacks.
"""

from string import ascii_letters, ascii_lowercase

import numpy as np

from ..errors import DTypeError, describe, refusal
from ..primitives.registry import primitive
from .elementwise import mul, sub
from .reduce import reduce_sum
from .shape import (
    axis_tuple,
    expand_dims,
    flatten,
    like_x,
    roll,
    shape_attr,
    solved,
    squeeze,
    sum_to,
    swapaxes,
    unbroadcast,
)

__all__ = [
    "cholesky", "cross", "det", "diag", "diagonal", "dot", "einsum", "inv", "kron", "linear",
    "matmul", "outer", "solve", "tensordot", "trace", "tril", "triu",
]  # fmt: skip

FEW = 2**14  #: up to so many elements dot is faster than np.matmul; the bits are the same


# -- products ------------------------------------------------------------------------------


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


@primitive(infer=shape_attr)
def matmul_nt(x, y, *, shape):
    """``x @ yᵀ`` summed to ``shape``: the gradient of a product's first factor."""
    if x.ndim == y.ndim == len(shape) == 2:
        return x.dot(y.T)
    if y.ndim == 1:  # the product lost y's axis
        return sum_to(x[..., None] * y, shape)
    if len(shape) == 1:  # the product lost the first factor's axis
        return sum_to(np.matmul(y, x[..., None])[..., 0], shape)
    return sum_to(np.matmul(x, np.swapaxes(y, -1, -2)), shape)


@primitive(infer=shape_attr)
def matmul_tn(x, y, *, shape):
    """``xᵀ @ y`` summed to ``shape``: the gradient of a product's second factor."""
    if x.ndim == y.ndim == len(shape) == 2:
        few = shape[0] * shape[1] <= FEW  # dot writes zeros before it writes the product
        return x.T.dot(y) if few else np.matmul(x.T, y)
    if len(shape) == 1:
        return np.matmul(y.reshape(-1), x.reshape(y.size, x.shape[-1]))
    if x.ndim == 1:
        return sum_to(x[:, None] * y[..., None, :], shape)
    if len(shape) == 2:  # one matrix for the whole stack
        rows = int(np.prod(x.shape[:-1]))
        return np.matmul(x.reshape(rows, x.shape[-1]).T, y.reshape(rows, y.shape[-1]))
    return sum_to(np.matmul(np.swapaxes(x, -1, -2), y), shape)


matmul.grad(
    x=(matmul_nt, "out_grad, y, x_shape", "g @ y.T"),
    y=(matmul_tn, "x, out_grad, y_shape", "x.T @ g"),
)
matmul_nt.grad(x=(matmul, "out_grad, y", "g @ y"), y=(matmul_tn, "out_grad, x, y_shape", "g.T @ x"))
matmul_tn.grad(x=(matmul_nt, "y, out_grad, x_shape", "y @ g.T"), y=(matmul, "x, out_grad", "x @ g"))


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
    x=(matmul_nt, "out_grad, w, x_shape", "g @ w.T"),
    w=(matmul_tn, "x, out_grad, w_shape", "x.T @ g"),
    b=(unbroadcast, "out_grad, b_shape", "sum_to(g, b.shape)"),
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
    return mul(expand_dims(flatten(x), 1), flatten(y))


def trace(x, offset=0):
    """Sum of the diagonal of the last two axes.

    >>> import minigrad as mg
    >>> mg.trace(mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    return reduce_sum(diagonal(x, offset, axis1=-2, axis2=-1), -1)


def cross(x, y, axis=-1):
    """The vector product along an axis of length 3.

    >>> import minigrad as mg
    >>> mg.cross(mg.tensor([1.0, 0.0, 0.0]), mg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    for vector in (x, y):
        shape = np.shape(vector)
        if not -len(shape) <= axis < len(shape) or shape[axis] != 3:
            raise refusal(
                f"cross(x: {describe(x)}, y: {describe(y)}, axis={axis}) needs vectors of three numbers",
                "axis=… names the axis of length 3",
            )
    one_ahead = sub(mul(x, roll(y, -1, axis)), mul(roll(x, -1, axis), y))
    return roll(one_ahead, -1, axis)


def kron(x, y):
    """Kronecker product: ``x`` with every element replaced by its product with ``y``.

    >>> import minigrad as mg
    >>> mg.kron(mg.tensor([1.0, 10.0]), mg.tensor([1.0, 2.0]))
    tensor([ 1.,  2., 10., 20.])
    """
    a, b = np.ndim(x), np.ndim(y)
    n = max(a, b)
    x = expand_dims(x, (*range(1, 2 * n, 2), *range(0, 2 * (n - a), 2)))
    y = expand_dims(y, (*range(0, 2 * n, 2), *range(1, 2 * (n - b), 2)))
    apart = mul(x, y)  # [m, n] of each axis, which becomes one: so their sizes may be open
    for k in range(n):
        apart = flatten(apart, k, k + 1)
    return apart


# -- triangles and diagonals ---------------------------------------------------------------


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
    if not x.ndim:
        raise ValueError("a single number has no triangle; repair: a matrix")
    return x


# NumPy repeats a vector to a square matrix first
tril.grad(x=lambda out_grad, x_shape, k: unbroadcast(tril(out_grad, k), x_shape))
triu.grad(x=lambda out_grad, x_shape, k: unbroadcast(triu(out_grad, k), x_shape))
tril.formula(x="tril(g, k)")
triu.formula(x="triu(g, k)")


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
    out = np.zeros(shape, x.dtype)
    places = np.moveaxis(out, (axis1, axis2), (-2, -1))
    row = np.arange(x.shape[-1])
    places[..., row + max(-offset, 0), row + max(offset, 0)] = x
    return out


diagonal.grad(
    x=(put_diagonal, "out_grad, x_shape, offset, axis1, axis2", "put_diagonal(g, offset)")
)
put_diagonal.grad(x=(diagonal, "out_grad, offset, axis1, axis2", "diagonal(g, offset)"))


def diag(x, k=0):
    """The diagonal of a matrix; of a vector, the matrix that has it on its diagonal ``k``.

    >>> import minigrad as mg
    >>> mg.diag(mg.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    shape = np.shape(x)
    if len(shape) not in (1, 2):
        raise refusal(
            f"diag takes a vector or a matrix, not {describe(x)}",
            "mg.diagonal(x, axis1=-2, axis2=-1), of each matrix of a stack",
        )
    if len(shape) == 2:
        return diagonal(x, k)
    n = len(x) + abs(k)
    return put_diagonal(x, (n, n), k)


# -- inverse, linear systems, determinant, Cholesky factor ---------------------------------


def _t(x):
    return swapaxes(x, axis1=-1, axis2=-2)


@primitive(infer=like_x)
def inv(x):
    """Inverse of square matrices.

    >>> import minigrad as mg
    >>> mg.inv(mg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return np.linalg.inv(x)


inv.grad(x=lambda out, out_grad: -matmul(matmul(_t(out), out_grad), _t(out))).formula(
    x="-out.T @ g @ out.T"
)


@primitive(infer=solved)
def solve(a, b):
    """The x with ``a @ x = b``; ``b`` is a vector or a stack of matrices.

    >>> import minigrad as mg
    >>> mg.solve(mg.tensor([[2.0, 0.0], [0.0, 4.0]]), mg.tensor([2.0, 8.0]))
    tensor([1., 2.])
    """
    return np.linalg.solve(a, b)


@solve.grad
def _solve_rule(a, out, out_grad, a_shape, b_shape):
    if len(out.shape) < len(a.shape):  # b is a vector
        b_grad = squeeze(solve(_t(a), expand_dims(out_grad, -1)), -1)
        a_grad = -expand_dims(b_grad, -1) * expand_dims(out, -2)
    else:
        b_grad = solve(_t(a), out_grad)
        a_grad = -matmul(b_grad, _t(out))
    return unbroadcast(a_grad, a_shape), unbroadcast(b_grad, b_shape)


solve.formula(a="-solve(a.T, g) @ out.T", b="solve(a.T, g)")


@primitive
def det(x):
    """Determinant of square matrices; the gradient is right for singular ones, too.

    >>> import minigrad as mg
    >>> mg.det(mg.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(6.)
    """
    return np.linalg.det(x)


det.grad(x=lambda x, out_grad: expand_dims(out_grad, (-1, -2)) * cofactor(x)).formula(
    x="g * out * inv(x).T"
)


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
    share = reduce_sum(out_grad * out, (-1, -2), keepdims=True)
    return share * back - matmul(matmul(back, _t(out_grad)), out)


cofactor.grad(x=_cofactor_rule).formula(x="sum(g * out) * inv(x).T - out @ g.T @ inv(x).T")


@primitive(infer=like_x)
def cholesky(x):
    """The lower triangle L with ``L @ Lᵀ = (x + xᵀ) / 2``, for positive definite ``x``.

    >>> import minigrad as mg
    >>> mg.cholesky(mg.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    if x.ndim < 2 or x.shape[-2] != x.shape[-1]:
        raise ValueError("it takes square matrices; repair: the last two axes must be equal")
    return np.linalg.cholesky((x + np.swapaxes(x, -1, -2)) / 2)


def _cholesky_rule(out, out_grad):
    back = inv(out)
    inner = matmul(_t(out), out_grad)
    inner = 0.5 * (tril(inner) + tril(inner, -1))  # half of the diagonal
    whole = matmul(matmul(_t(back), inner), back)
    return 0.5 * (whole + _t(whole))


cholesky.grad(x=_cholesky_rule).formula(x="symmetric(inv(out).T @ half_tril(out.T @ g) @ inv(out))")


# -- sums of products over named axes: any subscripts NumPy knows, repeated letters and ellipsis included


def einsum(subscripts, *operands):
    """Sum of products named by letters: ``einsum("ij,jk->ik", x, y)`` is the matrix product.

    >>> import minigrad as mg
    >>> mg.einsum("i,i->", mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not isinstance(subscripts, str):
        raise refusal("einsum takes the subscripts first", 'einsum("ij,jk->ik", x, y)', DTypeError)
    listed = len(operands) == 1 and isinstance(operands[0], list)
    return einsum_of(operands[0] if listed else list(operands), subscripts=subscripts)


@primitive(type="einsum", title="Einsum")
def einsum_of(*x, subscripts):
    """`einsum` of a list of values."""
    small = sum(np.size(a) for a in x) < 4096
    out = np.einsum(subscripts, *x, optimize=not small)
    return np.array(out) if len(x) == 1 else out  # of one operand it may be a view


def _einsum_rule(x, out_grad, x_shape, subscripts):
    terms, out = explicit(subscripts, [len(a.shape) for a in x])
    return [_pull(k, terms, out, x, out_grad, x_shape[k]) for k in range(len(x))]


einsum_of.grad(x=_einsum_rule).formula(x="einsum(g, others)")


def _pull(k, terms, out, x, out_grad, shape):
    """The gradient of operand k: the product of all the others, read along its letters."""
    term, terms = terms[k], [*terms[:k], out, *terms[k + 1 :]]
    letters = "".join(dict.fromkeys(c for c in term if c in "".join(terms)))
    values = [*x[:k], out_grad, *x[k + 1 :]]
    value = einsum_of(values, subscripts=f"{','.join(terms)}->{letters}")
    if letters == term:
        return fit(value, shape)
    return spread(value, shape, letters, term)


def explicit(subscripts, ranks):
    """The letters of each operand and of the output; ellipsis and implied output written out."""
    left, arrow, out = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    unnamed = [r - len(t) + 3 if "..." in t else 0 for t, r in zip(terms, ranks, strict=True)]
    free = [c for c in ascii_letters if c not in subscripts]
    dots = "".join(free[: max(unnamed)])
    terms = [t.replace("...", dots[len(dots) - n :]) for t, n in zip(terms, unnamed, strict=True)]
    if arrow:
        return terms, out.replace("...", dots)
    letters = [c for t in terms for c in t if c not in dots]
    return terms, dots + "".join(sorted(c for c in letters if letters.count(c) == 1))


@primitive(view=True, infer=shape_attr)
def fit(x, *, shape):
    """Sum the axes that ``shape`` has with length 1, repeat those that ``x`` has with length 1."""
    longer = tuple([k for k, n in enumerate(shape) if n == 1 != x.shape[k]])
    return np.broadcast_to(np.add.reduce(x, axis=longer, keepdims=True) if longer else x, shape)


fit.grad(x=(fit, "out_grad, x_shape"))


@primitive(infer=shape_attr)
def spread(x, *, shape, source, target):
    """Zeros with ``x`` on the diagonals of repeated letters, repeated along new letters."""
    sizes = dict(zip(target, shape, strict=True))
    x = fit(x, [sizes[c] for c in source])  # a letter may have length 1 in one operand
    out = np.zeros(shape, x.dtype)
    unique = "".join(dict.fromkeys(target))
    places = np.einsum(f"{target}->{unique}", out)  # a view that can be written to
    places[...] = x.reshape([places.shape[k] if c in source else 1 for k, c in enumerate(unique)])
    return out


spread.grad(
    x=lambda out_grad, x_shape, source, target: fit(
        einsum_of([out_grad], subscripts=f"{target}->{source}"), x_shape
    )
).formula(x="diagonals(g, target, source)")


def tensordot(x, y, axes=2):
    """Sum of products over the last axes of ``x`` and the first of ``y``: so many, or a pair of lists of axes.

    >>> import minigrad as mg
    >>> mg.tensordot(mg.ones([2, 3, 4]), mg.ones([4, 3]), axes=([2, 1], [0, 1])).tolist()
    [12.0, 12.0]
    """
    if isinstance(axes, int):
        axes = tuple(range(-axes, 0)), tuple(range(axes))
    left, right = (axis_tuple(a, np.ndim(v)) for a, v in zip(axes, (x, y), strict=True))
    n = np.ndim(x)
    first, second = ascii_lowercase[:n], list(ascii_lowercase[n : n + np.ndim(y)])
    for a, b in zip(left, right, strict=True):
        second[b] = first[a]
    return einsum(f"{first},{''.join(second)}", x, y)  # letters that stand once, in their order
