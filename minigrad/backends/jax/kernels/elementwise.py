"""Number by number, softmax, losses, updates."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf as jax_erf

from .table import counterpart, floating


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
def pow(x, y):
    return jnp.asarray(x) ** y


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
