"""Rows of a table: found by their number, chosen by a mask, put together again."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .along_axis import take

# How many rows a mask chooses is known when it has values: in a Program that size is -1.


def _selected(given, attrs):
    shape, dtype = given["x"][0]
    return [((-1, *shape[1:]), dtype)]


def _merged(given, attrs):
    (mask, _), (yes, dtype), (_no, other) = (given[s][0] for s in ("mask", "yes", "no"))
    return [((mask[0], *yes[1:]), np.result_type(dtype, other))]


def _masked(x, mask):
    x, mask = np.asarray(x), np.asarray(mask)
    if mask.dtype != bool or mask.ndim != 1 or len(mask) != len(x):
        raise ValueError(
            f"{mask.dtype}{list(mask.shape)} does not choose among {len(x)} rows; repair: one bool per row"
        )
    return x, mask


@primitive(nondiff=("mask",), infer=_selected)
def select_rows(x, mask):
    """The rows of ``x`` where the mask, one bool per row, holds.

    >>> import minigrad as mg
    >>> mg.select_rows([[1.0, 2.0], [3.0, 4.0]], [False, True])
    array([[3., 4.]])
    """
    x, mask = _masked(x, mask)
    return x[mask]


@primitive(
    nondiff=("mask",),
    infer=lambda given, attrs: [(given["mask"][0][0] + given["x"][0][0][1:], given["x"][0][1])],
)
def spread_rows(x, mask):
    """Rows put where the mask holds, zeros elsewhere: the gradient of `select_rows`."""
    mask, x = np.asarray(mask), np.asarray(x)
    if np.count_nonzero(mask) != len(x):
        raise ValueError(
            f"{len(x)} rows for a mask that holds {np.count_nonzero(mask)} times; repair: one row for each place"
        )
    out = np.zeros((len(mask), *x.shape[1:]), x.dtype)
    out[mask] = x
    return out


select_rows.grad(x=lambda mask, out_grad: spread_rows(out_grad, mask))
spread_rows.grad(x=lambda mask, out_grad: select_rows(out_grad, mask))


@primitive(nondiff=("mask",), infer=_merged)
def merge_rows(mask, yes, no):
    """The rows of ``yes`` where the mask holds and those of ``no`` elsewhere, in the order of the mask.

    >>> import minigrad as mg
    >>> mg.merge_rows([True, False, True], [1.0, 3.0], [2.0])
    array([1., 2., 3.])
    """
    mask, yes, no = np.asarray(mask), np.asarray(yes), np.asarray(no)
    if np.count_nonzero(mask) != len(yes) or np.count_nonzero(~mask) != len(no):
        raise ValueError(
            f"{len(yes)} and {len(no)} rows for a mask that holds {np.count_nonzero(mask)} times "
            f"of {len(mask)}; repair: take both from the same mask with select_rows"
        )
    out = np.empty((len(mask), *yes.shape[1:]), np.result_type(yes, no))
    out[mask], out[~mask] = yes, no
    return out


merge_rows.grad(
    yes=lambda mask, out_grad: select_rows(out_grad, mask),
    no=lambda mask, out_grad: select_rows(out_grad, ~mask),
)


def embedding(indices, weight):
    """The rows of a table at integer indices: shape ``[*indices.shape, weight.shape[1]]``.

    >>> import minigrad as mg
    >>> mg.embedding([1, 0], mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    return take(weight, indices, axis=0)
