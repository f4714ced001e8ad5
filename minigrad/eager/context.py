"""What a Function's forward hands to its backward."""

from __future__ import annotations

from typing import Any

from ..errors import DTypeError, GradError, describe, refusal
from ..errors.other_libraries import CONTEXT, missing
from .grad_fn import FREED, AccumulateGrad, Output, unpack
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
        raise missing("ctx", name, CONTEXT, self)

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
        return tuple(t.tensor(self._node) if isinstance(t, Saved) else t for t in self.saved)

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say that no gradient flows through these outputs."""
        self._nondiff = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros (default) or None for outputs without a gradient."""
        self._materialize = value


class Saved:
    """A saved tensor by its values, packed perhaps, and its place: the edge of an input, the number of an output.

    The Tensor of an output would be a reference cycle, and that of an input would keep what a hook packed.
    """

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: Any) -> None:
        self.value, self.place = value, place

    def tensor(self, node: Any) -> Tensor:
        """The Tensor again; joined to the graph if there is a node, which is there for second derivatives."""
        place = Output(node, self.place) if isinstance(self.place, int) else self.place
        if node is not None and place.__class__ is AccumulateGrad:
            return place.variable  # type: ignore[no-any-return]
        return wrap(unpack(self.value), None if node is None else place)
