"""``xp`` on NumPy: what functional source means, in the plainest form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..primitives.registry import REGISTRY

Values = tuple[Any, ...]


class NumpySpace:
    """Every primitive by its type, and control flow on arrays.

    >>> NumpySpace().matmul([[1.0, 2.0]], [3.0, 4.0])
    array([11.])
    """

    numpy: Any = np  # or what stands for it: loops over steps are the same for any

    def __getattr__(self, type: str) -> Callable[..., Any]:
        return REGISTRY[type].kernel

    def cond(self, pred: Any, yes: Callable[[], Values], no: Callable[[], Values]) -> Values:
        """The results of one of two functions."""
        return yes() if np.all(pred) else no()

    def scan(self, step: Callable[..., Any], starts: Values, sequences: Values) -> Any:
        """A step for each place of the sequences: the last carried values, stacked outputs, and what is kept."""
        carried, kept, outs = starts, [], []
        for slices in zip(*sequences, strict=True):
            kept.append((carried, slices))
            carried, out = step(carried, slices)
            outs.append(out)
        return carried, tuple(self.numpy.stack(o) for o in zip(*outs, strict=True)), kept

    def while_loop(
        self,
        test: Callable[[Values], Any],
        step: Callable[[Values], Values],
        starts: Values,
        save: bool,
    ) -> Any:
        """Steps as long as the test holds: the last carried values, and what is kept."""
        carried, kept = starts, []
        while np.all(test(carried)):
            kept.append((carried, ()))
            carried = step(carried)
        return carried, kept

    def loop_grad(
        self, back: Callable[..., Any], kept: Any, seeds: Values, grads: Values, params: Values
    ) -> Any:
        """The steps backwards: gradients of the starts, of what the body reads from outside, of the sequences."""
        totals = tuple(self.numpy.zeros_like(p) for p in params)
        rows = []
        for k in range(len(kept) - 1, -1, -1):
            grads, shares, row = back(grads, *kept[k], tuple(s[k] for s in seeds))
            totals = tuple(t + s for t, s in zip(totals, shares, strict=True))
            rows.append(row)
        return grads, totals, tuple(self.numpy.stack(r) for r in zip(*rows[::-1], strict=True))
