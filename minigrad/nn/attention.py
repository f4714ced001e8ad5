"""Attention: every place of a sequence looks at all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..errors import DTypeError, describe, refusal
from . import init
from .layers import Linear
from .module import Module, as_value

NEVER = -1e30  #: a score so low that its weight is 0


class MultiHeadAttention(Module):
    """``softmax(q @ k.T / sqrt(width of a head)) @ v``, in several heads: [batch, steps, width] → the same.

    ``mask`` is true where a place (rows) may look (columns): [steps, steps], or anything that
    broadcasts to [batch, heads, steps, steps]; ``causal`` lets every place look back only.

    >>> import minigrad as mg
    >>> MultiHeadAttention(8, heads=2)(mg.zeros([3, 5, 8])).shape
    (3, 5, 8)
    """

    def __init__(
        self, width: int, heads: int = 1, bias: bool = True, seed: init.Seed = 0, dtype: Any = float
    ) -> None:
        init.sizes("MultiHeadAttention", width=width, heads=heads)
        if width % heads:
            what = f"{width} columns do not divide into {heads} heads"
            raise refusal(
                f"MultiHeadAttention({width}, heads={heads}): {what}", "heads that divide the width"
            )
        init.switches("MultiHeadAttention", bias=bias)
        draw = init.generator(seed)
        self.width, self.heads = width, heads
        self.query, self.key, self.value, self.out = (
            Linear(width, width, bias, draw, dtype) for _ in range(4)
        )

    def forward(
        self, query: Any, key: Any = None, value: Any = None, mask: Any = None, causal: bool = False
    ) -> Any:
        """What each place of ``query`` collects from ``value``; ``key`` and ``value`` default to it."""
        key = query if key is None else key
        value = key if value is None else value
        query, key, value = map(as_value, (query, key, value))
        for sequence in (query, key, value):
            if len(sequence.shape) != 3 or sequence.shape[2] != self.width:
                raise refusal(
                    f"MultiHeadAttention({self.width}) takes [batch, steps, "
                    f"{self.width}], not {describe(sequence)}",
                    "the batch is axis 0, the places are axis 1, the last axis is the width",
                )
        q, k, v = (
            self._heads(layer(x))
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        scores = ops.matmul(q, ops.swapaxes(k, axis1=-1, axis2=-2))
        scores = scores * (self.width // self.heads) ** -0.5
        if causal:
            seen = np.tri(query.shape[1], key.shape[1], dtype=bool)
            mask = seen if mask is None else ops.logical_and(mask, seen)
        if mask is not None:
            _check_mask(mask, scores)
            scores = ops.where(mask, scores, NEVER)
        mixed = ops.swapaxes(ops.matmul(ops.softmax(scores, axis=-1), v), axis1=1, axis2=2)
        return self.out(ops.reshape(mixed, shape=(*query.shape[:2], self.width)))

    def _heads(self, x: Any) -> Any:
        """[batch, steps, width] → [batch, heads, steps, width of a head]."""
        apart = (*x.shape[:2], self.heads, self.width // self.heads)
        return ops.swapaxes(ops.reshape(x, shape=apart), axis1=1, axis2=2)


def _check_mask(mask: Any, scores: Any) -> None:
    """One truth value for every score, or something that broadcasts to that."""
    dtype = np.dtype(getattr(mask, "dtype", None) or np.asarray(mask).dtype)
    if dtype.kind == "f":  # elsewhere such a mask is added to the scores, and 0 lets look
        raise refusal(
            f"a mask {describe(mask)}: true is where a place may look",
            "mask.astype(bool), or mask == 0 where it was to be added",
            DTypeError,
        )
    pairs = zip(reversed(np.shape(mask)), reversed(scores.shape), strict=False)
    if np.ndim(mask) > 4 or any(-1 not in (m, n) and m not in (1, n) for m, n in pairs):
        raise refusal(
            f"a mask {describe(mask)} for scores [batch, heads, rows, columns] = {list(scores.shape)}",
            "one bool for each row (place of query) and column (place of key)",
        )
