"""The backward graph: nodes, edges, AccumulateGrad, saved values.

Vocabulary
    node      one operation to be differentiated: what ``y.grad_fn`` is.  It knows its *edges* and its saved values,
              never its output: a graph has no reference cycles and dies with its last Tensor
    edge      where a gradient goes next: a node, or one `Output` of a node that has several outputs
    saved     what the gradient rules of this node read; freed by backward, while the graph itself stays
    seq       the number of the node in the order of creation: the walk runs newest first

The arrows that PyTorch shows as ``next_functions`` are these edges; the engine follows them and
nothing else.
"""

import weakref
from collections.abc import Container
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

from ..errors import REPAIRS, DTypeError, GradError, code_line, describe, refusal, told
from ..primitives.arguments import Args, ByName, Function, Listed, Mark, Names
from ..primitives.registry import Primitive

next_seq = count(1).__next__
Functions = dict[int, Function]  #: hooks by the number of their handle


class Hooks:
    """The rarely used part of a node: who wants to see or change the gradients that pass."""

    __slots__ = ("accumulated", "change", "post", "pre", "retained", "tensor")
    asked = False  #: whether there ever were any: a walk looks for them only then

    def __init__(self) -> None:
        Hooks.asked = True
        # output index → hooks on that output's gradient; the tensor that wants `.grad`
        self.tensor: dict[int, Functions] = {}
        self.retained: Any = weakref.WeakValueDictionary()
        self.pre: Functions = {}
        self.post: Functions = {}
        self.accumulated: Functions = {}  # of a leaf, behind its new `.grad`
        self.change = False  # whether a gradient that passed may be another one behind it

    def add(self, functions: Functions, hook: Function) -> "HookHandle":
        """Let a function see, and change, what passes."""
        handle = HookHandle(functions, hook)
        self.change = True
        return handle


class HookHandle:
    """Removes a hook: ``handle.remove()``, or use it as a context manager."""

    def __init__(self, hooks: Functions, hook: Function) -> None:
        if not callable(hook):
            what = f"a hook is a function, not {describe(hook)}"
            raise refusal(what, "the function itself, without parentheses", DTypeError)
        self._hooks, self._key = hooks, next_seq()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Remove the hook; doing so twice is fine."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> "HookHandle":
        return self

    def __exit__(self, *exception) -> None:
        self.remove()


FREED = Mark("<freed by backward>")  #: stands where a saved value was
FEW_BYTES = 16_384  #: the largest value that a node keeps when it is freed, to be explained


def bytes_of(value) -> int:
    """What a saved value takes: an array, or a list of them."""
    return sum(getattr(part, "nbytes", 0) for part in parts_of(value))


def parts_of(value) -> Listed:
    """The arrays of a saved value: of a list slot several, else one."""
    return value if isinstance(value, list) else [value]


class Node:
    """An operation in the backward graph.

    ``edges`` has one edge per differentiable input, in order, None where no gradient is needed;
    ``g`` and ``own`` belong to a walk in progress: the gradient gathered so far, and whether it may
    be added to in place.  ``freed`` says that backward has freed the saved values, ``leaves`` holds the
    leaves among the inputs, to which their AccumulateGrad refers weakly.

    The node of an operation has a method ``pull``: the gradients of the inputs from the gradient of the output, as
    arrays, one per edge; ``pull_graph``, the same as Tensors that have a graph themselves, for derivatives of any
    order; and ``free``, which lets go of the saved values, but for small ones, to ``remember`` them for `mg.why`.
    """

    __slots__ = (
        "__weakref__", "code", "edges", "freed", "g", "hooks", "lasti", "leaves", "own", "seq",
    )  # fmt: skip
    primitive: Any = None
    saved_slots: Names = ()
    several = False  # whether it has several outputs, each an `Output`; ``g`` is a list then
    seq: float
    g: Any
    hooks: Hooks | None
    pull: Any

    def _begin(self, edges: Args, code=None, lasti: int = 0) -> None:
        """What an ``__init__`` sets; nodes of primitives have none: to make one is faster so."""
        self.g = self.hooks = None
        self.own, self.freed, self.seq = False, False, next_seq()
        self.edges, self.code, self.lasti = edges, code, lasti

    def give(self, grads) -> None:
        """Add each gradient to what its edge has, in memory of its own."""
        for edge, g in zip(self.edges, grads, strict=True):
            if edge is not None and g is not None:
                edge.g, edge.own = g if edge.g is None else edge.g + g, False

    @property
    def next_functions(self) -> "tuple[tuple[Node | None, int], ...]":
        """Where backward goes next: one (node or None, index of its output) per differentiable input.

        >>> import minigrad as mg
        >>> a, b = mg.tensor(2.0, requires_grad=True), mg.tensor(3.0)
        >>> (a * b).grad_fn.next_functions[1]
        (None, 0)
        """
        return tuple(place_of(e) for e in self.edges)

    @property
    def saved(self) -> ByName:
        """The values this node keeps for its gradient rules, by name; an error once backward
        freed them.
        """
        if self.freed:
            raise self.freed_error()
        return self.kept()

    def kept(self, but: Container[str] = ()) -> ByName:
        """The saved values that are there, by name; ``but`` those of some slots."""
        slots = [s for s in self.saved_slots if s not in but]
        values = {s.removeprefix("_saved_"): unpack(getattr(self, s)) for s in slots}
        return {n: v for n, v in values.items() if v is not None and v is not FREED}

    def name(self) -> str:
        """The name PyTorch would print: ``MulBackward0``."""
        return type(self).__name__

    def remembered(self, constants=(), roots=()) -> ByName:
        """What is known of the forward pass, and of the last backward if it began here.

        ``constants``: (node, input) → a number that nobody saved; ``roots``: the nodes to look back from, if several.
        """
        from ..explain.rerun import remembered

        return remembered(roots or [self], dict(constants))

    def where(self) -> str:
        """The user's line that made this node."""
        return code_line(self.code, self.lasti)

    def freed_error(self) -> Any:
        names = ", ".join(s.removeprefix("_saved_") for s in self.saved_slots)
        what = f"backward goes through {self.name()} a second time, but its saved values ({names})"
        advice = "call the first backward with retain_graph=True, or compute the forward pass again"
        return self.error(f"{what} were freed the first time.", f"{advice}.")

    def error(self, what: str, advice: str, error=GradError) -> Any:
        """What to raise where something is wrong with this node."""
        return error(told(f"{what}\n  made at {self.where()}", advice, ""))

    def _hooks(self) -> Hooks:
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def register_hook(self, hook: Function) -> HookHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node ran; it may return other
        grad_inputs.
        """
        hooks = self._hooks()
        return hooks.add(hooks.post, hook)

    def register_prehook(self, hook: Function) -> HookHandle:
        """Call ``hook(grad_outputs)`` before this node runs; it may return other grad_outputs."""
        hooks = self._hooks()
        return hooks.add(hooks.pre, hook)

    def __repr__(self) -> str:
        return f"<{self.name()} at {id(self):#x}>"


class Several(Node):
    """A node with several outputs; ``specs`` has the shape and the dtype of each."""

    __slots__ = ("specs",)
    several = True
    specs: Listed

    def push(self) -> None:
        """`pull` what was gathered here, and add each gradient where its edge leads."""
        if self.g is not None:
            g, self.g = self.complete(self.g), None
            self.give(self.pull(g))

    def complete(self, g: Listed) -> Listed:
        """What was gathered, zeros in the place of what did not arrive."""
        pairs = zip(g, self.specs, strict=True)
        return [np.zeros(*spec) if x is None and spec is not None else x for x, spec in pairs]


class Output:
    """One output of a node that has several: gathers its gradient and hands it to its node."""

    __slots__ = ("edges", "g", "index", "node", "own", "seq")
    hooks, freed, saved_slots = None, False, ()

    def __init__(self, node, index: int) -> None:
        self.node, self.index, self.g, self.own = node, index, None, False
        self.edges, self.seq = (node,), node.seq + 0.5  # older than its users, newer than its node

    def push(self) -> None:
        """See `Node.push`."""
        g, node = self.g, self.node
        if g is not None:
            self.g = None
            node.g = [None] * len(node.specs) if node.g is None else node.g
            before = node.g[self.index]
            node.g[self.index] = g if before is None else before + g


def place_of(edge) -> tuple[Any, int]:
    """An edge as ``next_functions`` shows it: a node, and which of its outputs."""
    return (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)


class AccumulateGrad(Node):
    """The end of a path: adds what arrives to ``variable.grad``.  Every leaf that requires grad holds its own.

    It refers to the leaf weakly, and a node keeps both: nothing goes round in a circle.
    """

    __slots__ = ("ref",)

    def __init__(self, leaf) -> None:
        self._begin(())
        self.seq = 0.0
        self.ref = weakref.ref(leaf)

    @property
    def variable(self) -> Any:
        """The leaf; nodes that use it keep it alive."""
        return self.ref()

    def where(self) -> str:
        return "a leaf"


def packed(value, pack: Function, unpack_hook: Function) -> Any:
    """A saved value, or a list of them, as `saved_tensors_hooks` wants it kept: an array as a function that gives it.

    Errors there: `GradError` unless what ``unpack`` gives back can be what was saved.
    """
    if isinstance(value, list):
        return [packed(v, pack, unpack_hook) for v in value]
    if not isinstance(value, np.ndarray | np.generic):
        return value
    shape = value.shape
    dtype = value.dtype
    kept = pack(np.asarray(value))

    def unpacked() -> Any:
        array = unpack_hook(kept)
        same = isinstance(array, np.ndarray | np.generic) and array.shape == shape
        if not (same and array.dtype == dtype):
            what = f"unpack of saved_tensors_hooks gave back {describe(array)} for an array of "
            advice = "return an array of the same shape and dtype: what pack was given"
            raise refusal(f"{what}{dtype}{list(shape)}", advice, GradError)
        return array

    return unpacked


def unpack(value) -> Any:
    """A saved value, or a list of them, as it was saved."""
    if value.__class__ is list:
        return [unpack(v) for v in value]
    return value() if value.__class__ is FunctionType else value


def named(tensor) -> str:
    """The name of a Tensor, as errors add it."""
    return f" ({tensor.name})" if tensor.name else ""


def no_graph_reason(x) -> str:
    """Why a Tensor has no graph; errors of backward say it, too."""
    cut = getattr(x, "_cut", "never there")
    if isinstance(cut, Primitive):
        return f"it was made by {cut.type}, which has no gradient"
    if x._data.dtype.kind != "f":
        numbers = f"it holds {x._data.dtype} numbers"
        return f"{numbers}, and only real floating-point values have gradients"
    return REPAIRS["no graph"][cut]
