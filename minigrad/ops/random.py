"""Chance, always from a generator or a seed of the caller: the same seed, the same numbers."""

from __future__ import annotations

import numpy as np

from ..errors import refusal
from ..primitives.registry import primitive
from .create import leaf


@primitive(type="dropout", nondiff=("seed",))
def dropout_of(x, seed, *, p=0.5):
    """Zero elements with probability ``p``, scale the others by 1 / (1 - p)."""
    if not 0 <= p < 1:
        raise ValueError(f"p={p} is not a probability below 1; repair: 0 <= p < 1")
    x = np.asarray(x)
    mask = np.random.default_rng(np.ravel(seed)).random(x.shape, np.float32) >= p
    return x * (mask.astype(np.result_type(x, np.float16)) / (1 - p))


dropout_of.grad(x=lambda seed, out_grad, p: dropout_of(out_grad, seed, p=p))
dropout_of.primitive.formula(x="g * mask / (1 - p)")


def dropout(x, p=0.5, seed=None, training=True):
    """Zero elements with probability ``p``, scale the others by 1 / (1 - p); ``x`` if not training.

    ``seed`` is a number (one mask for ever), a generator (a new mask every time), or a Variable.

    >>> import minigrad as mg
    >>> mg.dropout(mg.tensor([1.0, 1.0, 1.0, 1.0]), p=0.5, seed=0)
    tensor([2., 2., 2., 0.])
    """
    if not training or p == 0:
        return x
    if seed is None:
        raise refusal("dropout needs a seed", "seed=0, or a generator: np.random.default_rng(0)")
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**63))
    return dropout_of(x, seed, p=p)


def normal(shape, mean=0.0, std=1.0, *, generator, dtype=float, requires_grad=False, name=None):
    """Numbers from the normal distribution; ``generator`` is a `numpy.random.Generator` or a seed.

    >>> import minigrad as mg
    >>> mg.normal([2, 3], generator=0).shape
    (2, 3)
    """
    drawn = np.random.default_rng(generator).normal(mean, std, shape)
    return leaf(drawn.astype(dtype), requires_grad, name)


def uniform(shape, low=0.0, high=1.0, *, generator, dtype=float, requires_grad=False, name=None):
    """Numbers between ``low`` and ``high``; ``generator`` is a `numpy.random.Generator` or a seed.

    >>> import minigrad as mg
    >>> float(mg.uniform([1], 2.0, 2.0, generator=0)[0])
    2.0
    """
    drawn = np.random.default_rng(generator).uniform(low, high, shape)
    return leaf(drawn.astype(dtype), requires_grad, name)
