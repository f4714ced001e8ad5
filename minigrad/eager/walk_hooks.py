"""What may look at, or change, the gradients that pass during a walk: hooks and anomaly mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import GradError, ShapeError, describe, refusal
from ..primitives.arguments import as_list
from .grad_fn import unpack
from .mode import check_finite
from .tensor import Tensor, wrap


class Hooked:
    """The part of `Walk` that calls hooks."""

    create: bool
    retained: list[tuple[Tensor, Any]]

    def _tensor_hooks(self, n: Any, index: int, g: Any) -> Any:
        """Tensor hooks, then retain_grad."""
        for hook in list(n.hooks.tensor.get(index, {}).values()):
            g = self._hooked(hook(self._shown(g)), g, "a tensor hook")
        ref = n.hooks.retained.get(index)
        tensor = ref() if ref is not None else None
        if tensor is not None:
            self.retained.append((tensor, g))
        return g

    def _shown(self, g: Any) -> Any:
        return g if g is None or isinstance(g, Tensor) else wrap(np.array(g))

    def _hooked(self, new: Any, old: Any, what: str) -> Any:
        if new is None:
            return old
        data = new._data if isinstance(new, Tensor) else np.asarray(new)
        if old is not None and data.shape != old.shape:
            raise ShapeError(
                f"{what} returned {describe(data)} for a gradient of shape {list(old.shape)}\n"
                "  repair: return a gradient of that shape, or None to leave it as it is"
            )
        return (new if isinstance(new, Tensor) else wrap(data)) if self.create else data

    def _prehooks(self, n: Any, g: Any) -> Any:
        """What the prehooks of a node make of the gradient of its output, or of its outputs."""
        several = isinstance(g, list)
        for hook in list(n.hooks.pre.values()):
            old = g if several else [g]
            new = hook(tuple(self._shown(x) for x in old))
            if new is None:
                continue
            parts = as_list(new)
            if len(parts) != len(old):
                what = f"a node prehook returned {len(parts)} gradients for {len(old)}"
                raise refusal(what, "one for each of grad_outputs, or None", GradError)
            parts = [self._hooked(a, b, "a node prehook") for a, b in zip(parts, old, strict=True)]
            g = parts if several else parts[0]
        return g

    def _with_node_hooks(self, n: Any, g: Any) -> Any:
        """Node prehooks → rule → node hooks; saved values unpacked for the time of the rule."""
        g, several = self._prehooks(n, g), isinstance(g, list)
        packed = {s: getattr(n, s) for s in n.saved_slots}
        try:
            for slot, value in packed.items():
                setattr(n, slot, unpack(value))
            grads = n.pull_graph(g) if self.create else n.pull(g)
        finally:
            for slot, value in packed.items():
                setattr(n, slot, value)
        for hook in list(n.hooks.post.values()):
            shown = tuple(self._shown(x) for x in grads)
            new = hook(shown, tuple(self._shown(x) for x in (g if several else [g])))
            if new is not None:
                parts = as_list(new)
                if len(parts) != len(grads):
                    what = f"a node hook returned {len(parts)} gradients for {len(grads)}"
                    raise refusal(what, "one for each of grad_inputs, or None", GradError)
                grads = [
                    self._hooked(a, b, "a node hook") for a, b in zip(parts, grads, strict=True)
                ]
        return grads

    def _check(self, n: Any, g: Any, grads: Any) -> None:
        for p in grads:
            if p is not None:
                args = tuple(g) if isinstance(g, list) else (g,)
                check_finite(
                    n.name(),
                    p._data if isinstance(p, Tensor) else p,
                    args,
                    n.where(),
                    "made (backward)",
                )
