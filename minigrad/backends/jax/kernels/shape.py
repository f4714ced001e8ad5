"""Shapes, order, recurrences."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ....ops.join import border, ends
from ....ops.reduce import count_over
from ....ops.shape import axis_tuple
from .table import counterpart, floating, zeros


@counterpart
def expand_reduced(x, *, shape, axis=None, keepdims=False):
    x = jnp.asarray(x)
    wide = x if axis is None or keepdims else jnp.expand_dims(x, axis_tuple(axis, len(shape)))
    return jnp.broadcast_to(wide, tuple(shape))


@counterpart
def expand_mean(x, *, shape, axis=None, keepdims=False, correction=0):
    count = count_over(shape, axis) - correction
    share = floating(x) / (count if count > 0 else np.nan)
    return expand_reduced(share, shape=shape, axis=axis, keepdims=keepdims)


@counterpart
def ungroup_axes(x, *, shape, axis=None):
    axes = axis_tuple(axis, len(shape))
    order = (*[k for k in range(len(shape)) if k not in axes], *axes)
    back = tuple(np.argsort(order).tolist())
    return jnp.transpose(jnp.reshape(x, [shape[k] for k in order]), back)


@counterpart
def split(x, *, num_or_sections=2, axis=0):
    cuts = np.asarray(ends(x.shape[axis], num_or_sections), int).tolist()
    return jnp.split(x, cuts, axis)


@counterpart
def split_like(x, *, shapes, axis=0):
    cuts = np.cumsum([s[axis % x.ndim] for s in shapes])[:-1].tolist()
    return jnp.split(x, cuts, axis)


@counterpart
def pad(x, *, pad_width, value=0.0):
    return jnp.pad(x, border(pad_width, x.ndim), constant_values=value)


@counterpart
def crop(x, *, pad_width):
    pairs = border(pad_width, x.ndim)
    return x[tuple([slice(a, n - b) for n, (a, b) in zip(x.shape, pairs, strict=True)])]


@counterpart
def untile(x, *, shape, repetitions):
    times = tuple(np.atleast_1d(repetitions).tolist())
    ndim = max(len(shape), len(times))
    times, old = (1,) * (ndim - len(times)) + times, (1,) * (ndim - len(shape)) + tuple(shape)
    blocks = jnp.reshape(x, [n for pair in zip(times, old, strict=True) for n in pair])
    return jnp.sum(blocks, tuple(range(0, 2 * ndim, 2))).reshape(shape)


@counterpart
def shift(x, *, axis, by, fill=0):
    gap = jnp.full_like(lax.slice_in_dim(x, 0, min(1, x.shape[axis]), axis=axis), fill)
    n = x.shape[axis]
    parts = (
        [gap, lax.slice_in_dim(x, 0, max(n - 1, 0), axis=axis)]
        if by > 0
        else [lax.slice_in_dim(x, min(1, n), n, axis=axis), gap]
    )
    return jnp.concatenate(parts, axis)


@counterpart
def recurrence(a, b, *, axis, reverse=False):
    dtype = jnp.result_type(a, b)
    rows = [jnp.moveaxis(jnp.asarray(v, dtype), axis, 0) for v in (a, b)]

    def step(state, row):
        state = row[1] + row[0] * state
        return state, state

    _, out = lax.scan(step, jnp.zeros(rows[1].shape[1:], dtype), tuple(rows), reverse=reverse)
    return jnp.moveaxis(out, 0, axis)


@counterpart
def sort(x, *, axis=-1, descending=False):
    return jnp.sort(x, axis, descending=descending)


@counterpart
def argsort(x, *, axis=-1, descending=False):
    return jnp.argsort(x, axis, stable=True, descending=descending)


@counterpart
def topk(x, *, k, axis=-1, largest=True):
    order = argsort(x, axis=axis, descending=largest)
    first = jnp.take(order, np.arange(k), axis)
    return jnp.take_along_axis(x, first, axis), first


@counterpart
def einsum(*x, subscripts):
    return jnp.einsum(subscripts, *x)


@counterpart
def spread(x, *, shape, source, target):
    unique = "".join(dict.fromkeys(target))
    sizes = dict(zip(target, shape, strict=True))
    grid = np.indices([sizes[c] for c in unique], sparse=True)
    places = tuple(grid[unique.index(c)] for c in target)
    values = jnp.reshape(x, [sizes[c] if c in source else 1 for c in unique])
    return zeros(shape, x).at[places].set(values)
