"""Counterparts of kernels that cannot run on JAX as they are: they write into views, or look at values.

One table, type → function of the same arguments, in the order of `minigrad.ops`.  What a kernel checks about *values*
is not checked here, since there are none while JAX traces.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf as jax_erf

from ...ops.index import along, filled
from ...ops.join import border
from ...ops.windows import lowest, pair, plan, transposed_shape

_ROWS = "how many rows a mask chooses is not known while JAX traces; use where instead"
REFUSED = {"select_rows": _ROWS, "spread_rows": _ROWS, "merge_rows": _ROWS}
COUNTERPARTS: dict[str, Any] = {}


def counterpart(function: Any) -> Any:
    """Enter a function in the table under its own name."""
    COUNTERPARTS[function.__name__.rstrip("_")] = function
    return function


def zeros(shape: Any, like: Any) -> Any:
    """Zeros of a dtype."""
    return jnp.zeros(tuple(shape), jnp.asarray(like).dtype)


def floating(x: Any) -> Any:
    """What NumPy's true division makes of a dtype."""
    x = jnp.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def transposed(function: Any, shape: Any, x: Any) -> Any:
    """The transpose of a linear function of arrays of this shape, as JAX finds it."""
    x = jnp.asarray(x)
    return jax.linear_transpose(function, jax.ShapeDtypeStruct(tuple(shape), x.dtype))(x)[0]


@counterpart
def sigmoid(x):
    return 1 / (1 + jnp.exp(jnp.negative(x)))


@counterpart
def erf(x):
    return jax_erf(x)


@counterpart
def gelu(x):
    return x * (0.5 + 0.5 * jax_erf(x * 0.5**0.5))


@counterpart
def softmax(x, *, axis=-1):
    return jax.nn.softmax(floating(x), axis)


@counterpart
def log_softmax(x, *, axis=-1):
    return jax.nn.log_softmax(floating(x), axis)


@counterpart
def dropout(x, seed, *, p=0.5):
    """The mask is drawn by NumPy, so that one seed means one mask everywhere.

    The seed comes in words of 32 bits, and truth values go back: threads of JAX's own know no 64-bit mode.
    """

    def mask(words):
        low, high = np.asarray(words).astype(np.int64)
        return np.random.default_rng(np.ravel(low | high << 32)).random(x.shape, np.float32) >= p

    x, seed = floating(x), jnp.asarray(seed, np.int64)
    words = jnp.stack([seed, seed >> 32]).astype(jnp.uint32)
    kept = jax.pure_callback(mask, jax.ShapeDtypeStruct(x.shape, bool), words)
    return x * (kept.astype(x.dtype) / (1 - p))


@counterpart
def cross_entropy(x, target, *, axis=-1):
    rows = log_softmax(x, axis=axis)
    picked = jnp.take_along_axis(rows, jnp.expand_dims(target, axis), axis)
    return -jnp.sum(picked) / (picked.size or np.nan)


@counterpart
def softmax_less_target(x, target, *, axis=-1):
    hot = jax.nn.one_hot(target, x.shape[axis], axis=axis, dtype=floating(x).dtype)
    return (softmax(x, axis=axis) - hot) / max(np.size(target), 1)


@counterpart
def sgd(param, grad, learning_rate):
    return (param - learning_rate * grad).astype(param.dtype)


# -- shapes, order, recurrences ----------------------------------------------------------


@counterpart
def pad(x, *, pad_width, value=0.0):
    return jnp.pad(x, border(pad_width, x.ndim), constant_values=value)


@counterpart
def crop(x, *, pad_width):
    pairs = border(pad_width, x.ndim)
    return x[tuple([slice(a, n - b) for n, (a, b) in zip(x.shape, pairs, strict=True)])]


@counterpart
def untile(x, *, shape, repetitions):
    return transposed(lambda y: jnp.tile(y, repetitions), shape, x)


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
def spread(x, *, shape, source, target):
    return transposed(lambda y: jnp.einsum(f"{target}->{source}", y), shape, x)


# -- reading and writing at places -------------------------------------------------------


@counterpart
def put_winners(x, *index, template):
    places = filled(template, index)
    order = jnp.full(x.shape, -1)
    number = jnp.arange(order[places].size).reshape(order[places].shape)
    return order.at[places].max(number)[places] == number


@counterpart
def untake(x, indices, *, shape, axis=None):
    return transposed(lambda y: jnp.take(y, indices, axis), shape, x)


@counterpart
def index_add(x, indices, y, *, axis=0):
    return jnp.asarray(x).at[(*[slice(None)] * (axis % x.ndim), indices)].add(y)


@counterpart
def scatter_add(x, indices, y, *, axis=0):
    return jnp.asarray(x).at[along(indices, x.shape, axis)].add(y)


@counterpart
def put_diagonal(x, *, shape, **axes):
    return transposed(lambda y: jnp.diagonal(y, **axes), shape, x)


# -- products, convolutions and pools ----------------------------------------------------


@counterpart
def linear(x, w, b=None):
    return jnp.matmul(x, w) if b is None else jnp.matmul(x, w) + b


@counterpart
def matmul_tn(x, y, *, shape):
    return transposed(lambda w: jnp.matmul(x, w), shape, y)


@counterpart
def conv2d(x, w, b=None, *, stride=1, padding=0, dilation=1, groups=1):
    borders = [(p, p) for p in pair(padding)]
    how = {"rhs_dilation": pair(dilation), "feature_group_count": groups}
    out = lax.conv_general_dilated(x, w, pair(stride), borders, **how)
    return out if b is None else out + jnp.reshape(b, (-1, 1, 1))


@counterpart
def conv2d_input(x, w, *, shape, **how):
    return transposed(lambda image: conv2d(image, w, **how), shape, x)


@counterpart
def conv2d_weight(x, y, *, shape, **how):
    return transposed(lambda filters: conv2d(x, filters, **how), shape, y)


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
def max_unpool(y, x, top, **how):
    return transposed(lambda values: max_pick(values, x, top, **how), x.shape, y)


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
