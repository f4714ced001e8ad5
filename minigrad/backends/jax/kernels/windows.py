"""Products, convolutions and pools."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ....ops.conv import transposed_shape
from ....ops.pool import lowest, plan
from ....ops.windows import pair
from .table import counterpart, zeros


@counterpart
def linear(x, w, b=None):
    return jnp.matmul(x, w) if b is None else jnp.matmul(x, w) + b


@counterpart
def matmul_tn(x, y, *, shape):
    x, y, shape = jnp.asarray(x), jnp.asarray(y), tuple(shape)
    if len(shape) == 1:
        return x * y if x.ndim == 1 else jnp.matmul(y.reshape(-1), x.reshape(-1, x.shape[-1]))
    if x.ndim == 1:
        return _sum_to(x[:, None] * y[..., None, :], shape)
    if len(shape) == 2:  # one matrix for the whole stack
        rows = int(np.prod(x.shape[:-1]))
        return jnp.matmul(x.reshape(rows, x.shape[-1]).T, y.reshape(rows, y.shape[-1]))
    return _sum_to(jnp.matmul(jnp.swapaxes(x, -1, -2), y), shape)


def _sum_to(x, shape):
    wide = (1,) * (x.ndim - len(shape)) + shape
    axes = tuple([k for k, n in enumerate(wide) if n == 1 != x.shape[k]])
    return jnp.sum(x, axes, keepdims=True).reshape(shape)


_AXES = ("NCHW", "OIHW", "NCHW")


@counterpart
def conv2d(x, w, b=None, *, stride=1, padding=0, dilation=1, groups=1):
    out = lax.conv_general_dilated(
        x,
        w,
        pair(stride),
        [(p, p) for p in pair(padding)],
        rhs_dilation=pair(dilation),
        dimension_numbers=_AXES,
        feature_group_count=groups,
    )
    return out if b is None else out + jnp.reshape(b, (-1, 1, 1))


@counterpart
def conv2d_input(x, w, *, shape, stride=1, padding=0, dilation=1, groups=1):
    """The transpose of a linear function, as JAX finds it."""
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    like = jax.ShapeDtypeStruct(tuple(shape), jnp.asarray(x).dtype)
    return jax.linear_transpose(lambda image: conv2d(image, w, **how), like)(x)[0]


@counterpart
def conv2d_weight(x, y, *, shape, stride=1, padding=0, dilation=1, groups=1):
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    like = jax.ShapeDtypeStruct(tuple(shape), jnp.asarray(y).dtype)
    return jax.linear_transpose(lambda filters: conv2d(x, filters, **how), like)(y)[0]


@counterpart
def conv_transpose2d(x, w, b=None, *, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    shape = transposed_shape(x, w, groups, stride, padding, dilation, output_padding)
    out = conv2d_input(
        x, w, shape=shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
    return out if b is None else out + jnp.reshape(b, (-1, 1, 1))


def _bordered(x, border, value=0):
    (p, q) = border
    return jnp.pad(x, ((0, 0), (0, 0), (p, p), (q, q)), constant_values=value)


@counterpart
def max_pool2d(x, *, kernel_size, stride=None, padding=0):
    places, border = plan(x.shape, kernel_size, stride, padding)
    wide = _bordered(x, border, lowest(x.dtype))
    out = wide[places[0]]
    for place in places[1:]:
        out = jnp.maximum(out, wide[place])
    return out


@counterpart
def max_unpool(y, x, top, *, kernel_size, stride=None, padding=0):
    places, (p, q) = plan(x.shape, kernel_size, stride, padding)
    wide = _bordered(x, (p, q), lowest(x.dtype))
    out = zeros(wide.shape, y)
    for place, hit in _winners(wide, places, top):
        out = out.at[place].add(y * hit)
    return out[:, :, p : p + x.shape[2], q : q + x.shape[3]]


@counterpart
def max_pick(y, x, top, *, kernel_size, stride=None, padding=0):
    places, border = plan(x.shape, kernel_size, stride, padding)
    wide, values = _bordered(x, border, lowest(x.dtype)), _bordered(y, border)
    return sum(values[place] * hit for place, hit in _winners(wide, places, top))


def _winners(x, places, top):
    free = jnp.ones(top.shape, bool)
    for place in places:
        hit = (x[place] == top) & free
        free = free & ~hit
        yield place, hit


@counterpart
def avg_pool2d(x, *, kernel_size, stride=None, padding=0):
    places, border = plan(x.shape, kernel_size, stride, padding)
    wide = _bordered(x, border)
    return sum(wide[place] for place in places) / len(places)


@counterpart
def avg_unpool(x, *, shape, kernel_size, stride=None, padding=0):
    places, (p, q) = plan(shape, kernel_size, stride, padding)
    share = jnp.true_divide(x, len(places))
    out = zeros((*shape[:2], shape[2] + 2 * p, shape[3] + 2 * q), share)
    for place in places:
        out = out.at[place].add(share)
    return out[:, :, p : p + shape[2], q : q + shape[3]]
