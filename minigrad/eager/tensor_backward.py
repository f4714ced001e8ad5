"""What a Tensor can be asked about gradients: its place in the graph, backward, hooks, detach."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, GradError, MinigradError, describe, refusal
from ..primitives.values import Operators
from ..transaction import set_all
from .grad_fn import Leaf, Node, Output, no_graph_reason
from .hooks import HookHandle, Hooks

if TYPE_CHECKING:
    from .tensor import Tensor

ENGINE: dict[
    str, Callable[..., Any]
] = {}  #: what `backward.py`, which builds on Tensor, lends to it


class BackwardMethods(Operators):
    """The part of `Tensor` that concerns its graph."""

    __slots__ = ()
    _data: Any
    _node: Any
    _grad: Any
    _cut: Any

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this Tensor; may be set on leaves.

        >>> from minigrad import tensor
        >>> x = tensor(1.0, requires_grad=True)
        >>> x.requires_grad, (x * 2).requires_grad, x.detach().requires_grad
        (True, True, False)
        """
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        set_all(self._flow_changes(wanted))

    @property
    def _frozen(self) -> bool:
        """Whether this is a leaf that required grad until ``requires_grad_(False)``."""
        return self._node is None and getattr(self, "_cut", None) == "frozen"

    def _flow_changes(self, wanted: bool) -> list[tuple[Any, str, Any]]:
        """The attributes that turn the flow of gradients on or off, for `set_all`."""
        if self._node is not None and self._node.__class__ is not Leaf:
            if wanted:
                return []
            raise refusal(
                "requires_grad of a non-leaf follows from its inputs",
                "use x.detach() to cut the graph",
                GradError,
            )
        if wanted and self._data.dtype.kind != "f":
            isreal = self._data.dtype.kind != "c"
            advice = (
                "pass dtype=float, or write the numbers as 1.0 instead of 1"
                if isreal
                else "keep the real and the imaginary part as two Tensors"
            )
            raise refusal(
                f"only real floating-point Tensors can require grad, not {describe(self)}"
                f"{'' if isreal else ' (complex)'}",
                advice,
                DTypeError,
            )
        if bool(wanted) == (self._node is not None):
            return []
        return (
            [(self, "_node", Leaf())]
            if wanted
            else [(self, "_node", None), (self, "_cut", "frozen")]
        )

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set `requires_grad` and return self.

        >>> from minigrad import tensor
        >>> tensor([1.0]).requires_grad_()
        tensor([1.], requires_grad=True)
        """
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no op made this Tensor (as far as gradients are concerned).

        >>> from minigrad import tensor
        >>> x = tensor(1.0, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        return self._node is None or self._node.__class__ is Leaf

    @property
    def grad_fn(self) -> Node | None:
        """The backward node that made this Tensor; None for a leaf.

        >>> from minigrad import tensor
        >>> x = tensor(1.0, requires_grad=True)
        >>> (x * 2).grad_fn.name()
        'MulBackward0'
        """
        node = self._node
        return (
            None
            if node is None or node.__class__ is Leaf
            else node.node
            if node.__class__ is Output
            else node
        )

    @property
    def output_nr(self) -> int:
        """Which output of its grad_fn this Tensor is.

        >>> from minigrad import tensor
        >>> [part.output_nr for part in tensor([1.0, 2.0], requires_grad=True).unbind()]
        [0, 1]
        """
        return self._node.index if self._node.__class__ is Output else 0

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf keeps its ``.grad``.

        >>> from minigrad import tensor
        >>> y = tensor(1.0, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        fn = self.grad_fn
        return (
            fn is not None
            and fn.hooks is not None
            and fn.hooks.retained.get(self.output_nr, lambda: None)() is self
        )

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Compute the gradients of this output and add them to the ``.grad`` of every leaf; see
        `minigrad.backward`.

        >>> from minigrad import tensor
        >>> x = tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        ENGINE["backward"](
            self, None if gradient is None else [gradient], retain_graph, create_graph, inputs
        )

    def retain_grad(self) -> None:
        """Keep the ``.grad`` of this non-leaf, too.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> y = x * 2
        >>> y.retain_grad()
        >>> (y * y).backward()
        >>> y.grad
        tensor(12.)
        """
        fn = self.grad_fn
        if fn is None:
            if self._node is None:
                raise self._unreached("retain_grad()")
            return
        fn._hooks().retained[self.output_nr] = weakref.ref(self)

    def register_hook(self, hook: Callable[[Tensor], Any]) -> HookHandle:
        """Call ``hook(grad)`` when the gradient of this Tensor is complete; what it returns
        replaces the gradient.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * 2).backward()
        >>> x.grad
        tensor(20.)
        """
        if self._node is None:
            raise self._unreached("register_hook()")
        return HookHandle(self._hook_table().tensor.setdefault(self.output_nr, {}), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> HookHandle:
        """Call ``hook(leaf)`` after the gradient was added to ``.grad``; leaves only.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (x * 2).backward()
        tensor(2.)
        """
        if self._node.__class__ is not Leaf:
            raise refusal(
                "register_post_accumulate_grad_hook() is for leaves that require grad",
                "use register_hook() here",
                GradError,
            )
        return HookHandle(self._hook_table().accumulated, hook)

    def _unreached(self, call: str) -> MinigradError:
        tensor: Any = self
        return refusal(
            f"{call} on {describe(self)}, which does not require grad: no gradient will ever "
            f"reach it\n  why: {no_graph_reason(tensor)}",
            "create the inputs with requires_grad=True, before they are used",
            GradError,
        )

    def _hook_table(self) -> Hooks:
        node: Any = self._node
        return (node.accumulator(self) if node.__class__ is Leaf else self.grad_fn)._hooks()  # type: ignore[union-attr]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradient; None by default, else zeros.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> (x * 2).backward()
        >>> x.zero_grad()
        >>> x.grad is None
        True
        """
        old = self.grad  # as a Tensor: `_grad` may still be an array
        self._grad = None if set_to_none or old is None else self._wrap(np.zeros_like(old._data))

    def detach(self) -> Tensor:
        """The same value without a graph; shares memory.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> (x * x.detach()).backward()
        >>> x.grad
        tensor(3.)
        """
        made: Tensor = self._wrap(self._data)
        made._exposed = self._exposed
        made._cut = "detach"  # for mg.why
        return made

    def detach_(self) -> Any:
        """Cut this Tensor off its graph.

        >>> from minigrad import tensor
        >>> (tensor(3.0, requires_grad=True) * 2).detach_()
        tensor(6.)
        """
        self._node, self._cut = None, "detach"
        return self
