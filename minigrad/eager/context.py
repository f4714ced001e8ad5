"""What a Function's forward hands to its backward."""

from __future__ import annotations

from typing import Any

from ..elsewhere import CONTEXT, missing
from ..errors import DTypeError, GradError, describe, refusal
from .grad_fn import FREED, Output
from .mode import MODE
from .tensor import Tensor, wrap


class Context:
    """What forward hands to backward: saved tensors, flags, and any attribute you set."""

    _on_the_way: bool  # whether what forward saved is neither input nor output; known behind it

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self.saved: Any = ()
        self._nondiff: tuple[Tensor, ...] = ()
        self._materialize = True
        self._node: Any = None  # the node, while backward runs with a graph of its own

    def __getattr__(self, name: str) -> Any:
        raise missing("ctx", name, CONTEXT.get(name), self)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs of forward for backward.

        What forward computed on the way has no graph: kept all the same, it gives first derivatives only.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                what = f"save_for_backward keeps Tensors, not {describe(t)}"
                raise refusal(what, "ctx.name = value keeps anything else", DTypeError)
        self.saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept.

        Errors: `GradError` once backward freed it, and where a graph of the gradients would miss a part of it.
        """
        if self.saved is FREED:
            what = "the saved tensors of this Function were freed by an earlier backward"
            raise refusal(what, "retain_graph=True there", GradError)
        if self._node is not None and self._on_the_way and MODE.get().grad:
            what = "this Function saved what is neither input nor output of forward: its own gradient is not known"
            advice = (
                "compute it in backward, from saved inputs; keep a constant as ctx.name = value"
            )
            raise refusal(what, f"{advice}; or mark backward @mg.once_differentiable", GradError)
        return tuple(t.tensor(self._node) if isinstance(t, SavedOutput) else t for t in self.saved)

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say that no gradient flows through these outputs."""
        self._nondiff = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros (default) or None for outputs without a gradient."""
        self._materialize = value


class SavedOutput:
    """A saved output: its array and its number, not the Tensor itself, which would be a reference
    cycle.
    """

    __slots__ = ("data", "index")

    def __init__(self, data: Any, index: int) -> None:
        self.data, self.index = data, index

    def tensor(self, node: Any) -> Tensor:
        return wrap(self.data, None if node is None else Output(node, self.index))
