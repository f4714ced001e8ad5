"""Function: an op of your own, with a forward and a backward written by hand.

A Function is for what no primitive can express (a different gradient on purpose, a call of foreign
code); a new op for everybody, programs included, is a `primitive`.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, ShapeError, describe, refusal, told, user_frame, wrong
from ..errors.other_libraries import TABLES, knows_others
from ..primitives.arguments import Args, ByName, Listed, as_list
from .grad_fn import FEW_BYTES, FREED, AccumulateGrad, Output, Several, bytes_of, packed, unpack
from .mode import MODE, drawing, enable_grad, no_grad, saved_tensors_hooks
from .record import is_foreign, joined, owned
from .tensor import Tensor, wrap


@knows_others("ctx", TABLES["ctx"])
class Context:
    """What forward hands to backward: saved tensors, flags, and any attribute you set.

    An attribute that is no input and no output is a constant to second derivatives.
    """

    saved: Any = ()  # what forward saved: Tensors, and behind it their arrays, packed perhaps
    _places: Any = ()  # of each the edge of an input, or the number of an output
    _nondiff: tuple[Tensor, ...] = ()
    _materialize = True
    _node: Any = None  # the node, while backward runs with a graph of its own
    _on_the_way: bool  # whether what forward saved is neither input nor output; known behind it

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs of forward for backward.

        What forward computed on the way has no graph: kept all the same, it gives first derivatives
        only.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                what = f"save_for_backward keeps Tensors, not {describe(t)}"
                raise refusal(what, "ctx.name = value keeps anything else", DTypeError)
        self.saved = tensors

    @property
    def saved_tensors(self) -> Args:
        """What `save_for_backward` kept.

        Errors: `GradError` once backward freed it, and where a graph of the gradients would miss a
        part of it.
        """
        if self.saved is FREED:
            what = "the saved tensors of this Function were freed by an earlier backward"
            raise refusal(what, "retain_graph=True there", GradError)
        if self._node is not None and self._on_the_way and MODE.get().grad:
            what = "this Function saved what is neither input nor output of forward: its own gradient is not known"
            advice = (
                "compute it in backward, from saved inputs; keep a constant as ctx.name = value; "
            )
            raise refusal(what, f"{advice}or mark backward @mg.once_differentiable", GradError)
        edges = None
        if (node := self._node) is not None:  # which is there for second derivatives
            edges = [Output(node, p) if isinstance(p, int) else p for p in self._places]
        return tuple(joined(unpack(self.saved), edges))

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say that no gradient flows through these outputs."""
        self._nondiff = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros (default) or None for outputs without a gradient."""
        self._materialize = value


class FunctionNode(Several):
    """The node of a Function: its rule is the class's ``backward``."""

    saved_slots = ("_saved_tensors",)  # their arrays, whose versions a walk compares
    #: what backward gave last, if it is small: code of the user's runs once, not to be looked at
    gave: Any = None
    replayed = False  # whether `gave` is given once more

    def __init__(self, function, ctx: Context, args: Args, outs: Listed) -> None:
        frame = user_frame(3)
        line = () if frame is None else (frame.f_code, frame.f_lasti)
        edges = [edge_of(a) for a in args]
        self._begin(tuple(edges), *line)
        self.ctx, self.function = ctx, function
        self.leaves = [edge.variable for edge in edges if edge.__class__ is AccumulateGrad]
        self.shapes = [getattr(a, "shape", ()) for a in args]
        self.specs = []
        for o in outs:
            filled = ctx._materialize and isinstance(o, Tensor)
            self.specs.append((o.shape, o.dtype) if filled else None)
        saved = ctx.saved
        others = [t for t in saved if not _among(t, (None, *args, *outs))]
        ctx._on_the_way = any(t._node is None and t.dtype.kind == "f" for t in others)
        # the Tensor of an output would be a reference cycle, that of an input would keep what a hook packed
        places = {id(o): k for k, o in enumerate(outs)}
        ctx._places = [places.get(id(t), edge_of(t)) for t in saved]
        saved = owned(saved, [getattr(t, "_data", None) for t in saved])
        hooks = MODE.get().saved_hooks
        if hooks is not None:
            saved = packed(saved, *hooks)
        self._saved_tensors = ctx.saved = saved

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    @property
    def saved(self) -> ByName:
        return {str(k): t._data for k, t in enumerate(self.ctx.saved_tensors) if t is not None}

    def free(self, remember: bool = False) -> None:
        if self.ctx.saved:
            self.ctx.saved = self._saved_tensors = FREED

    def pull(self, g) -> Any:
        if self.replayed:
            return self.gave
        with no_grad():
            gave = self._run([None if x is None else wrap(np.asarray(x)) for x in g])
        grads = [None if x is None else x._data for x in gave]
        small = bytes_of(grads) <= FEW_BYTES
        self.gave = [None if x is None else np.array(x) for x in grads] if small else None
        return grads

    def pull_graph(self, g) -> Any:
        self.ctx._node = self
        try:
            return self._run(g, self._last)
        finally:
            self.ctx._node = None

    def _last(self, found, *grads) -> Any:
        """What was found without a graph, and must not be differentiated."""
        # in the place of the inputs: what hangs on them hangs on their gradients, too
        edges = zip(self.edges, self.shapes, strict=True)
        inputs = [wrap(np.broadcast_to(0.0, s), e) for e, s in edges if e is not None]
        return _Last.apply(self.function.__name__, found, *grads, *inputs)

    def _run(self, grads: Listed, last=None) -> Listed:
        gave = as_list(self.function.backward(self.ctx, *grads))
        count = len(self.shapes)
        while len(gave) > count and gave[-1] is None:
            gave.pop()  # more None than arguments say nothing wrong
        if len(gave) != count:
            what = f"{self.function.__name__}.backward returned {len(gave)} gradient(s), "
            what += f"forward took {count} argument(s)."
            advice = "return one gradient per argument of forward, None where there is none"
            raise self.error(what, advice)
        for k, (value, edge, shape) in enumerate(zip(gave, self.edges, self.shapes, strict=True)):
            if edge is None or value is None:
                gave[k] = None
                continue
            if not isinstance(value, Tensor):
                value = np.asarray(value)
                value = wrap(value) if last is None else last(value, *grads)  # NumPy left no graph
            gave[k] = value
            if value.shape != shape:
                what = f"{self.function.__name__}.backward returned {describe(value)} as gradient {k}, "
                what += f"the argument has the shape {list(shape)}."
                advice = "a gradient has the shape of its value (sum over broadcast axes)"
                raise self.error(what, advice, ShapeError)
        return gave


class Function:
    """Base of custom ops: write ``forward(ctx, ...)`` and ``backward(ctx, *grads)``, call ``apply``.

    For Tensors only: what programs are to hold, too, is a `primitive`.  A backward that returns
    arrays of NumPy gives first derivatives only.

    >>> import minigrad as mg
    >>> class Cube(mg.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * g
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        for name in ("forward", "backward"):
            if "self" in signature(getattr(cls, name)).parameters:
                what = f"{cls.__name__}.{name} has a self, and nothing is ever made of a Function"
                raise refusal(what, f"@staticmethod, then def {name}(ctx, …)", DTypeError)

    def __init__(self, *args: Any, **keywords: Any) -> None:
        name = type(self).__name__
        what = f"{name}(…) computes nothing: a Function is called by its method apply"
        raise refusal(what, f"{name}.apply(…)", DTypeError)

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Compute the outputs; runs without a graph."""
        raise NotImplementedError("write forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """One gradient per argument of forward."""
        raise NotImplementedError("write backward(ctx, *grads)")

    #: ``setup_context(ctx, inputs, output)``, if it is there, is where ctx is filled: forward then takes no ctx
    setup_context: Callable[..., None] | None = None

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Run forward and, if a gradient is wanted, leave a node."""
        if keywords:  # backward returns one gradient per parameter, in their order
            first = (None,) if cls.setup_context is None else ()
            bound = signature(cls.forward).bind(*first, *args, **keywords)
            bound.apply_defaults()
            args = bound.args[len(first) :]
        if any(map(is_foreign, args)):
            what = f"{cls.__name__} is a Function: Python code, which no program can hold"
            raise wrong(what, "a @mg.primitive with rules works in programs, too")
        ctx = Context(tuple(edge_of(a) is not None for a in args))
        with no_grad():
            if cls.setup_context is None:
                result = cls.forward(ctx, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
        numbers = (np.ndarray, np.generic, float)  # anything else is handed on as it is
        outs = [wrap(np.asarray(o)) if isinstance(o, numbers) else o for o in as_list(result)]
        if MODE.get().grad and any(ctx.needs_input_grad):
            # an argument handed on is a new output
            outs = [o.detach() if isinstance(o, Tensor) and _among(o, args) else o for o in outs]
            node = FunctionNode(cls, ctx, args, outs)
            for k, o in enumerate(outs):
                if isinstance(o, Tensor) and o.dtype.kind == "f" and not _among(o, ctx._nondiff):
                    o._node = Output(node, k)
        return tuple(outs) if isinstance(result, tuple | list) else outs[0]


def edge_of(value) -> Any:
    """Where the gradient of an argument goes."""
    return value._node if isinstance(value, Tensor) else None


def _among(tensor, others: Iterable[Any]) -> bool:
    return any(tensor is other for other in others)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward that cannot be differentiated again: to do so is an error, not a wrong number.

    >>> import minigrad as mg
    >>> class Twice(mg.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @mg.once_differentiable
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> x = mg.tensor(1.0, requires_grad=True)
    >>> mg.grad(Twice.apply(x), x)
    (tensor(2.),)
    """

    @wraps(backward)
    def once(ctx, *grads) -> Any:
        with no_grad():
            found = backward(ctx, *grads)
        # without a node, nobody asked for a graph of the gradients
        return found if ctx._node is None else ctx._node._last(found, *grads)

    return once


class _Last(Function):
    """Hands gradients on; the end of what can be differentiated."""

    @staticmethod
    def forward(ctx, name: str, found, *sources) -> Any:
        ctx.name = name
        return found

    @staticmethod
    def backward(ctx, *grads) -> Any:
        what = f"{ctx.name}.backward is marked once_differentiable or returned an array of NumPy: "
        what += "it has no second derivative (jvp takes one, too)"
        raise refusal(what, "compute it in backward with the functions of minigrad", GradError)


# -- checkpoint: compute again in backward instead of keeping values -----------------------
#
# The function runs as always and leaves its graph, but in the place of every value that a node would save stands its
# number.  When backward asks for the first one, the function runs once more, and its saved values are those numbers.


def checkpoint(function: Callable[..., Any], *args: Any) -> Any:
    """Run ``function(*args)`` and keep nothing; backward runs it again to get the values it needs.

    Saves memory for time.  ``function`` must compute the same each time: other numbers in the same shapes are not
    noticed, and the gradient is wrong.  `dropout`, `normal` and `uniform` draw the same again, whatever generator
    they are given; what NumPy draws for itself is to be drawn outside, and passed.
    Errors: `GradError` in backward if it saved other shapes, or if an argument was changed in place since.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> mg.checkpoint(lambda x: x * x, x).backward()
    >>> x.grad
    tensor(6.)
    """
    called_at, specs, values = told(""), [], {}  # type: ignore[var-annotated]
    around, drawn = MODE.get().draw, []  # type: ignore[var-annotated]
    tensors = [a for a in args if isinstance(a, Tensor)]
    versions = [t._version for t in tensors]

    def number(value) -> int:
        specs.append((value.shape, value.dtype))
        return len(specs) - 1

    def value_of(number: int) -> Any:  # each is handed out once
        if number not in values:
            values.update(enumerate(again()))
        return values.pop(number)

    def again() -> Listed:
        if [t._version for t in tensors] != versions:
            what = f"an argument of checkpoint was changed in place before backward{called_at}"
            raise GradError(told(what, "use the out-of-place form, or pass a clone()", ""))
        copies = [
            a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in args
        ]
        saved: Listed = []
        numbers = [*drawn]
        once_more = drawing(lambda make: numbers.pop(0) if numbers else make())
        with enable_grad(), once_more, saved_tensors_hooks(saved.append, lambda nothing: nothing):
            function(*copies)
        if [(v.shape, v.dtype) for v in saved] != specs:
            what = f"the function of checkpoint computed something else the second time: it saved {len(saved)} "
            what += f"value(s), the first time {len(specs)}{called_at}"
            advice = "it must depend on nothing but its arguments; seed its random numbers"
            raise GradError(told(what, advice, ""))
        return saved

    def draw(make) -> Any:  # which a checkpoint around this one may give
        drawn.append(around(make))
        return drawn[-1]

    with saved_tensors_hooks(number, value_of), drawing(draw):
        return function(*args)
