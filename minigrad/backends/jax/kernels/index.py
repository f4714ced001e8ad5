"""Reading and writing at places."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ....ops.index import along, filled
from ....ops.shape import axis_tuple
from .table import counterpart, zeros


@counterpart
def put_zeros(x, *, shape, index):
    return zeros(shape, x).at[index].set(x)


@counterpart
def setitem(x, y, *, index):
    return jnp.asarray(x).at[index].set(y)


@counterpart
def scatter(x, *index, shape, template):
    return zeros(shape, x).at[filled(template, index)].add(x)


@counterpart
def index_put(x, y, *index, template):
    return jnp.asarray(x).at[filled(template, index)].set(y)


@counterpart
def put_winners(x, *index, template):
    places = filled(template, index)
    order = jnp.full(x.shape, -1)
    number = jnp.arange(order[places].size).reshape(order[places].shape)
    return order.at[places].max(number)[places] == number


@counterpart
def untake(x, indices, *, shape, axis=None):
    if axis is None:
        return zeros((np.prod(shape, dtype=int),), x).at[indices].add(x).reshape(shape)
    return zeros(shape, x).at[_before(axis, len(shape), indices)].add(x)


@counterpart
def add_along_axis(x, indices, *, shape, axis=-1):
    return zeros(shape, x).at[along(indices, shape, axis)].add(x)


@counterpart
def index_add(x, indices, y, *, axis=0):
    return jnp.asarray(x).at[_before(axis, x.ndim, indices)].add(y)


@counterpart
def scatter_add(x, indices, y, *, axis=0):
    return jnp.asarray(x).at[along(indices, x.shape, axis)].add(y)


def _before(axis, ndim, indices):
    return (*[slice(None)] * axis_tuple(axis, ndim)[0], indices)


@counterpart
def put_diagonal(x, *, shape, offset=0, axis1=0, axis2=1):
    row = np.arange(x.shape[-1])
    places = jnp.moveaxis(zeros(shape, x), (axis1, axis2), (-2, -1))
    places = places.at[..., row + max(-offset, 0), row + max(offset, 0)].set(x)
    return jnp.moveaxis(places, (-2, -1), (axis1, axis2))


@counterpart
def tril(x, *, k=0):
    return jnp.tril(x, k)
