"""Running sums and products along one axis.

The gradient of a running product is a *linear recurrence*, ``s[i] = b[i] + a[i] * s[i-1]``.  It
divides by nothing, so it is exact with zeros, and its own gradient is a recurrence again.
"""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .shape import reshape


@primitive
def cumsum(x, *, axis=None, reverse=False):
    """Running sum along an axis (None: of all elements in a row); from the end if ``reverse``.

    >>> import minigrad as mg
    >>> mg.cumsum(mg.tensor([1.0, 2.0, 3.0]))
    tensor([1., 3., 6.])
    """
    return _running(np.add, x, axis, reverse)


@primitive
def cumprod(x, *, axis=None, reverse=False):
    """Running product along an axis (of all elements in a row for None); exact with zeros.

    >>> import minigrad as mg
    >>> mg.cumprod(mg.tensor([1.0, 2.0, 3.0]))
    tensor([1., 2., 6.])
    """
    return _running(np.multiply, x, axis, reverse)


#: kind of dtype → what its sums are counted in, as in NumPy
_WIDE = {"b": np.int_, "i": np.int_, "u": np.uint}


def _running(ufunc, x, axis, reverse):
    x = np.asarray(x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    dtype = np.result_type(x, _WIDE.get(x.dtype.kind, x.dtype))
    if not x.ndim and axis in (0, -1):
        return x.astype(dtype)
    if not reverse:
        return ufunc.accumulate(x, axis=axis, dtype=dtype)
    return np.flip(ufunc.accumulate(np.flip(x, axis), axis=axis, dtype=dtype), axis)


def _cumsum_rule(out_grad, x_shape, axis, reverse):
    along = 0 if axis is None else axis
    back = cumsum(out_grad, axis=along, reverse=not reverse)
    return back if axis is not None else reshape(back, shape=x_shape)


def _cumprod_rule(x, out, out_grad, x_shape, axis, reverse):
    if axis is not None and not x_shape:
        return out_grad
    along, step = (0 if axis is None else axis), (-1 if reverse else 1)
    row = x if axis is not None else reshape(x, shape=(-1,))
    ahead = shift(row, axis=along, by=-step, fill=0)
    later = recurrence(ahead, out_grad, axis=along, reverse=not reverse)
    back = later * shift(out, axis=along, by=step, fill=1)
    return back if axis is not None else reshape(back, shape=x_shape)


cumsum.grad(x=_cumsum_rule)
cumprod.grad(x=_cumprod_rule)


@primitive
def shift(x, *, axis, by, fill=0):
    """Move elements along an axis by ``by`` places (+1 or -1); the gap gets ``fill``."""
    x = np.asarray(x)
    out = np.full(x.shape, fill, x.dtype)
    into, source = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    into[axis], source[axis] = (
        (slice(1, None), slice(-1)) if by > 0 else (slice(-1), slice(1, None))
    )
    out[tuple(into)] = x[tuple(source)]
    return out


shift.grad(x=lambda out_grad, axis, by: shift(out_grad, axis=axis, by=-by))


@primitive
def recurrence(a, b, *, axis, reverse=False):
    """``s[i] = b[i] + a[i] * s[i-1]`` along an axis; from the end if ``reverse``."""
    rows_a, rows_b = np.moveaxis(np.asarray(a), axis, 0), np.moveaxis(np.asarray(b), axis, 0)
    out = np.empty(np.shape(b), np.result_type(a, b))
    rows, state = np.moveaxis(out, axis, 0), 0
    for i in range(len(rows))[:: -1 if reverse else 1]:
        rows[i] = state = rows_b[i] + rows_a[i] * state
    return out


@recurrence.grad
def _recurrence_rule(a, out, out_grad, axis, reverse):
    step = -1 if reverse else 1
    ahead = shift(a, axis=axis, by=-step)
    later = recurrence(ahead, out_grad, axis=axis, reverse=not reverse)
    return later * shift(out, axis=axis, by=step), later
