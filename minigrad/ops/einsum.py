"""Sums of products over named axes, with any subscripts NumPy knows, repeated letters and ellipsis included."""

from string import ascii_letters

import numpy as np

from ..errors import DTypeError, refusal
from ..primitives.registry import primitive
from .shape import axis_tuple, shape_attr

__all__ = ["einsum", "tensordot"]


def einsum(subscripts, *operands):
    """Sum of products named by letters: ``einsum("ij,jk->ik", x, y)`` is the matrix product.

    >>> import minigrad as mg
    >>> mg.einsum("i,i->", mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not isinstance(subscripts, str):
        what = "einsum takes the subscripts first"
        raise refusal(what, 'einsum("ij,jk->ik", x, y)', DTypeError)
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


einsum_of.grad(x=_einsum_rule)
einsum_of.primitive.formula(x="einsum(g, others)")


def _pull(k, terms, out, x, out_grad, shape):
    """The gradient of operand k: the product of all the others, read along its letters."""
    others = [t for j, t in enumerate(terms) if j != k]
    term, known = terms[k], set(out).union(*others)
    letters = "".join(dict.fromkeys(c for c in term if c in known))
    values = [out_grad, *(a for j, a in enumerate(x) if j != k)]
    value = einsum_of(values, subscripts=f"{','.join([out, *others])}->{letters}")
    if letters == term:
        return fit(value, shape=shape)
    return spread(value, shape=shape, source=letters, target=term)


def explicit(subscripts, ranks):
    """The letters of each operand and of the output; ellipsis and implied output written out."""
    left, arrow, out = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    free = [c for c in ascii_letters if c not in subscripts]
    counts = [
        r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True) if "..." in t
    ]
    dots = "".join(free[: max(counts, default=0)])
    terms = [
        t.replace("...", dots[len(dots) - (r - len(t) + 3) :]) if "..." in t else t
        for t, r in zip(terms, ranks, strict=True)
    ]
    if arrow:
        return terms, out.replace("...", dots)
    letters = [c for t in terms for c in t if c not in dots]
    return terms, dots + "".join(sorted(c for c in letters if letters.count(c) == 1))


@primitive(view=True, infer=shape_attr)
def fit(x, *, shape):
    """Sum the axes that ``shape`` has with length 1, repeat those that ``x`` has with length 1."""
    x = np.asarray(x)
    longer = tuple([k for k, n in enumerate(shape) if n == 1 != x.shape[k]])
    return np.broadcast_to(np.add.reduce(x, axis=longer, keepdims=True) if longer else x, shape)


fit.grad(x=(fit, "out_grad, x_shape"))


@primitive(infer=shape_attr)
def spread(x, *, shape, source, target):
    """Zeros with ``x`` on the diagonals of repeated letters, repeated along new letters."""
    sizes = dict(zip(target, shape, strict=True))
    x = fit(x, shape=[sizes[c] for c in source])  # a letter may have length 1 in one operand
    out = np.zeros(shape, x.dtype)
    unique = "".join(dict.fromkeys(target))
    places = np.einsum(f"{target}->{unique}", out)  # a view that can be written to
    places[...] = x.reshape([places.shape[k] if c in source else 1 for k, c in enumerate(unique)])
    return out


spread.grad(
    x=lambda out_grad, x_shape, source, target: fit(
        einsum_of([out_grad], subscripts=f"{target}->{source}"), shape=x_shape
    )
)
spread.primitive.formula(x="diagonals(g, target, source)")


def tensordot(x, y, axes=2):
    """Sum of products over the last axes of ``x`` and the first of ``y``: so many, or a pair of lists of axes.

    >>> import minigrad as mg
    >>> mg.tensordot(mg.ones([2, 3, 4]), mg.ones([4, 3]), axes=([2, 1], [0, 1])).tolist()
    [12.0, 12.0]
    """
    m, n = np.shape(x), np.shape(y)
    count = axes if isinstance(axes, int) else 0
    pair = ((*range(-count, 0),), (*range(count),)) if isinstance(axes, int) else axes
    left, right = (axis_tuple(a, len(s)) for a, s in zip(pair, (m, n), strict=True))
    first, second = ascii_letters[: len(m)], list(ascii_letters[len(m) : len(m) + len(n)])
    for a, b in zip(left, right, strict=True):
        second[b] = first[a]
    letters = [c for k, c in enumerate(first) if k not in left]
    letters += [c for k, c in enumerate(second) if k not in right]
    return einsum(f"{first},{''.join(second)}->{''.join(letters)}", x, y)
