"""Records of products and decompositions of matrices."""

from __future__ import annotations

import numpy as np

from minigrad.errors import ShapeError
from tests.opinfo import LAYOUTS, draw, f32, fails, record, s

PAIRS = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 2)),
    ((5, 1, 2, 3), (2, 3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((3, 0), (0,)),
    ((2, 0, 0), (0,)),
    ((1, 2, 3), (4, 3, 1)),
]
same = draw(3, 3)
PRODUCTS = [s(draw(*a), draw(*b)) for a, b in PAIRS]
PRODUCTS += [s(layout(draw(2, 3)), layout(draw(3, 2))) for layout in LAYOUTS] + [s(same, same)]
MISFIT = fails(
    ShapeError, "perhaps one of them is meant transposed", np.ones((2, 3)), np.ones((2, 3))
)
record(
    "matmul",
    lambda x, y: x @ y,
    PRODUCTS,
    [MISFIT, fails(ShapeError, "number scales", np.ones(2), 2.0)],
    holomorphic=True,
)


def adjoint_x(x, y, shape):
    """Sum over everything that the product sums over, entry by entry of the first factor."""
    out = np.zeros(shape, np.result_type(x, y))
    for place in np.ndindex(*shape):
        unit = np.zeros(shape, out.dtype)
        unit[place] = 1
        out[place] = np.sum((unit @ y) * x)
    return out


def adjoint_y(x, y, shape):
    out = np.zeros(shape, np.result_type(x, y))
    for place in np.ndindex(*shape):
        unit = np.zeros(shape, out.dtype)
        unit[place] = 1
        out[place] = np.sum((x @ unit) * y)
    return out


record(
    "matmul_nt",
    adjoint_x,
    [s(np.asarray(a.args[0] @ a.args[1]), a.args[1], shape=a.args[0].shape) for a in PRODUCTS],
    [fails(ShapeError, "perhaps one", np.ones((2, 3)), np.ones((2, 2)), shape=(2, 2))],
    holomorphic=True,
)
record(
    "matmul_tn",
    adjoint_y,
    [s(a.args[0], np.asarray(a.args[0] @ a.args[1]), shape=a.args[1].shape) for a in PRODUCTS],
    [fails(ShapeError, "perhaps one", np.ones((3, 3)), np.ones((2, 2)), shape=(2, 2))],
    holomorphic=True,
)
record(
    "linear",
    lambda x, w, b=None: x @ w if b is None else x @ w + np.broadcast_to(b, (x @ w).shape),
    [
        s(layout(draw(4, 3)), draw(3, 2).astype(layout(draw(2)).dtype), layout(draw(2)))
        for layout in LAYOUTS
    ]
    + [
        s(draw(4, 3), draw(3, 2)),
        s(draw(3), draw(3, 2), draw(2)),
        s(draw(2, 4, 3), draw(3, 2), draw(2)),
        s(draw(0, 3), draw(3, 2), draw(2)),
    ],
    [
        MISFIT,
        fails(ShapeError, "compared from the right", np.ones((2, 3)), np.ones((3, 2)), np.ones(3)),
    ],
    holomorphic=True,
)

# -- einsum --------------------------------------------------------------------------------

SUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("i,j->ij", (2,), (3,)),
    ("bij,bjk->bik", (2, 3, 2), (2, 2, 3)),
    ("ij,j->i", (2, 3), (3,)),
    ("...ij,...jk->...ik", (4, 2, 3), (3, 2)),
    ("i,ij,j->", (2,), (2, 3), (3,)),
    ("ij,kl->j", (2, 3), (2, 2)),
    ("...i->...", (2, 3)),
    ("iij->j", (2, 2, 3)),
    ("...,...", (2, 3), (3,)),
    ("ij,ij->j", (2, 3), (1, 3)),
    ("->", ()),
    ("iji->j", (2, 3, 2)),
    ("ij,i->", (3, 2), (1,)),
    ("iij,ki->j", (2, 2, 3), (2, 1)),
]
record(
    "einsum",
    lambda *x, subscripts: np.einsum(subscripts, *x),
    [s(*(draw(*n) for n in shapes), subscripts=t) for t, *shapes in SUMS]
    + [
        s(f32(draw(2, 3)), f32(draw(3, 2)), subscripts="ij,jk->ik"),
        s(same, same, subscripts="ij,jk->ik"),
    ],
    [
        fails(ShapeError, "one letter per axis", np.ones((2, 3)), subscripts="ijk->i"),
        fails(ShapeError, "is not possible", np.ones(2), subscripts="i->j"),
        fails(
            ShapeError, "a letter stands for one size", np.ones(2), np.ones(3), subscripts="i,i->"
        ),
    ],
    holomorphic=True,
)


def spread_of(x, shape, source, target):
    """Each index of the result, if its repeated letters agree, names an index of x."""
    x = fitted(x, tuple(shape[target.index(c)] for c in source))
    out = np.zeros(shape, x.dtype)
    for place in np.ndindex(*shape):
        letters: dict[str, set[int]] = {}
        for c, i in zip(target, place, strict=True):
            letters.setdefault(c, set()).add(i)
        if all(len(v) == 1 for v in letters.values()):
            out[place] = x[tuple(next(iter(letters[c])) for c in source)]
    return out


SPREADS = [
    ("i", "ii", (2,), (2, 2)),
    ("", "ij", (), (2, 3)),
    ("j", "iij", (3,), (2, 2, 3)),
    ("i", "ij", (2,), (2, 3)),
    ("i", "ij", (1,), (2, 3)),
    ("i", "ii", (3,), (1, 1)),
]
record(
    "spread",
    spread_of,
    [
        s(f(draw(*a)), shape=b, source=x, target=y)
        for x, y, a, b in SPREADS
        for f in (np.array, f32)
    ],
    [fails(ShapeError, "is not possible", np.ones(3), shape=(2, 2), source="i", target="ii")],
    holomorphic=True,
)

FITS = [
    ((2, 3), (2, 3)),
    ((2, 1), (2, 3)),
    ((2, 3), (1, 3)),
    ((1, 3), (2, 1)),
    ((), ()),
    ((1,), (0,)),
]


def fitted(x, shape):
    """The adjoint of broadcasting where ``shape`` is shorter, broadcasting where it is longer."""
    for k, n in enumerate(shape):
        x = (
            x.sum(k, keepdims=True)
            if n == 1
            else np.concatenate([x] * n, k)
            if x.shape[k] == 1 and n
            else x
        )
    return x if x.shape == shape else x[:0]


record(
    "fit",
    fitted,
    [s(f(draw(*a)), shape=b) for a, b in FITS for f in (np.array, f32)],
    [fails(ShapeError, "compared from the right", np.ones((2, 2)), shape=(3, 2))],
    holomorphic=True,
)

# -- square matrices -----------------------------------------------------------------------


def square(*shape):
    """Well-conditioned matrices."""
    return draw(*shape) + 3 * np.eye(shape[-1])


SQUARE = [
    *(s(layout(square(3, 3))) for layout in LAYOUTS),
    s(square(2, 3, 3)),
    s(square(1, 1)),
    s(square(0, 2, 2)),
]
FLAT = fails(ShapeError, "the last two axes must be equal", np.ones((2, 3)))
SINGULAR = fails(ShapeError, "no inverse", np.ones((2, 2)))
record(
    "inv",
    np.linalg.inv,
    SQUARE,
    [FLAT, SINGULAR],
    holomorphic=True,
    domain="matrices with an inverse",
)
record(
    "solve",
    lambda a, b: np.linalg.inv(a) @ b,
    [s(layout(square(3, 3)), layout(draw(3, 2))) for layout in LAYOUTS]
    + [
        s(square(3, 3), draw(3)),
        s(square(2, 3, 3), draw(3)),
        s(square(2, 3, 3), draw(3, 2)),
        s(square(3, 3), draw(2, 3, 1)),
        s(square(2, 3, 3)[:0], draw(0, 3, 2)),
    ],
    [
        fails(ShapeError, "the last two axes", np.ones((2, 3)), np.ones(2)),
        fails(ShapeError, "no inverse", np.ones((2, 2)), np.ones(2)),
    ],
    holomorphic=True,
    domain="matrices with an inverse",
    float32=1e-4,
)
record(
    "det", np.linalg.det, [*SQUARE, s(square(2, 2, 4, 4))], [FLAT], holomorphic=True, float32=1e-4
)


def minors(x):
    """Cofactors by leaving out a row and a column."""
    out, n = np.empty(x.shape, x.dtype), x.shape[-1]
    for i, j in np.ndindex(n, n):
        rest = np.delete(np.delete(x, i, -2), j, -1)
        out[..., i, j] = (-1) ** (i + j) * np.linalg.det(rest)
    return out


record(
    "cofactor",
    minors,
    SQUARE,
    [fails(ShapeError, "is not possible", np.ones(3))],
    holomorphic=True,
    float32=1e-4,
)


def triangle(x):
    """The factor of a symmetric positive definite matrix, column by column."""
    x = (x + np.swapaxes(x, -1, -2)) / 2
    out = np.zeros(x.shape, x.dtype)
    for i in range(x.shape[-1]):
        for j in range(i + 1):
            rest = x[..., i, j] - (out[..., i, :j] * out[..., j, :j]).sum(-1)
            out[..., i, j] = np.sqrt(rest) if i == j else rest / out[..., j, j]
    return out


def positive(x):
    return ((x + np.swapaxes(x, -1, -2)) / 2 + 2 * np.eye(x.shape[-1])).astype(x.dtype)


record(
    "cholesky",
    triangle,
    [s(layout(positive(a.args[0]))) for a, layout in zip(SQUARE, LAYOUTS * 2, strict=False)],
    [
        fails(ShapeError, "square matrices", np.ones((2, 3))),
        fails(ShapeError, "positive eigenvalues", -np.eye(2)),
    ],
    holomorphic=True,
    domain="symmetric positive definite matrices",
)
