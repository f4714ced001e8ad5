"""Write the fast eager function of a primitive from its one declaration.

A generic ``apply(primitive, *args)`` that loops over slots costs about a microsecond per op, more than many a NumPy
call.  So each primitive gets functions of straight-line code, written on first use: ``apply`` (compute, and leave
a node behind), ``pull`` (the node's gradient rules, on arrays), ``push`` (the same, and each gradient is added
where its edge leads), ``reach`` (where its edges lead) and ``free``.  `emit.py` has the texts; for ``mul`` they read,
in essence:

    def mul(x, y):
        out = kernel(x._data, y._data)                 t = Tensor(out)
        if neither x nor y has a node: return t
        n = MulBackward0(edges of x and y)             n._saved_y = y if x needs a gradient
        t._node = n; return t                          n._saved_x = x if y needs a gradient

    def pull(n, g):
        return rule_x(n._saved_y, g), rule_y(n._saved_x, g)

The text is built from the names of the kernel's parameters, which Python has checked to be identifiers; nothing a
user typed at run time becomes code.  `source(primitive)` shows it.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

import numpy as np

from ..errors import op_error
from ..ops.shape import sum_to
from ..primitives.arguments import REQUIRED, Value, frozen
from ..primitives.registry import FIRST_CALL, HOOKS, STARRED, Primitive
from .emit import apply_source, free_source, is_generic, pull_source, push_source, reach_source
from .emit import source as source
from .grad_fn import FREED, REMEMBERED_BYTES, AccumulateGrad, Leaf, ManyNode, Node, next_seq
from .mode import GRAD, MODE
from .record import GenericNode, an_array, apply_generic, not_tensors, observe, own

MUTABLE = frozenset({list, np.ndarray})  #: attrs a user may change after the call
AS_IT_IS = (float, int, np.generic, type(None))  #: a union made in the call would cost much more
#: what a kernel is compiled to that hands its inputs to a function of NumPy
HANDS_ON = {f.__code__.co_code for f in (lambda x: np.exp(x), lambda x, y: np.add(x, y))}
_NODE_CLASSES: dict[str, type[Node]] = {}


def node_class(primitive: Primitive) -> type[Node]:
    """The class of this primitive's nodes, named as PyTorch names them: ``MulBackward0``."""
    made = _NODE_CLASSES.get(primitive.type)
    if made is None or made.primitive is not primitive:
        title = primitive.title or "".join(
            w.capitalize() for w in primitive.type.removeprefix("reduce_").split("_")
        )
        slots = tuple(f"_saved_{n}" for n in primitive.saved())
        base = (
            GenericNode
            if is_generic(primitive)
            else Node
            if len(primitive.differentiable) <= 2
            else ManyNode
        )
        elsewhere = {*primitive.saved(), *(f"{o}_grad" for o in primitive.outputs)}
        kept = [f"_{n}" for n in primitive.reads() if n not in elsewhere]
        namespace = {
            "__slots__": (*slots, *kept, *_shape_slot(primitive)),
            "primitive": primitive,
            "title": title,
            "saved_slots": slots,
        }
        made = _NODE_CLASSES[primitive.type] = type(f"{title}Backward0", (base,), namespace)
        made.__module__ = __name__
        if base is not GenericNode:
            made.pull, made.push = _first_pull, _first_push  # type: ignore[method-assign, assignment]
            made.reach, made.free = _first_reach, _first_free  # type: ignore[method-assign, assignment]
    return made


def _shape_slot(primitive: Primitive) -> tuple[str, ...]:
    return ("_shapes",) if primitive.broadcasts else ()


def specialise(primitive: Primitive) -> None:
    """Replace the code of the primitive's public function by its fast version."""
    text = apply_source(primitive)
    public: FunctionType = primitive.function
    if text is None:  # lists and several outputs: one generic path serves them
        public.__code__ = _generic.__code__
        public.__globals__.update(apply_generic=apply_generic, primitive=primitive)
        return
    made = _compile(text, primitive.function.__name__, public.__globals__, primitive)
    public.__code__, public.__defaults__, public.__kwdefaults__ = (
        made.__code__,
        made.__defaults__,
        made.__kwdefaults__,
    )


def forget(primitive: Primitive) -> None:
    """Back to the first call: a rule that is added after a function was used counts from then on."""
    public: FunctionType = primitive.function
    public.__code__, public.__defaults__, public.__kwdefaults__ = FIRST_CALL, None, None
    _NODE_CLASSES.pop(primitive.type, None)


HOOKS["specialise"], HOOKS["forget"] = specialise, forget


def _generic(*args: Any, **attrs: Any) -> Any:
    return apply_generic(primitive, args, attrs)  # type: ignore[name-defined]  # noqa: F821


def _compile(text: str, name: str, namespace: dict[str, Any], primitive: Primitive) -> Any:
    """Compile text written by this module; the only place of the eager engine that does so."""
    from .tensor import Tensor

    rules = {f"rule_{k}": on_arrays(r.function) for k, r in enumerate(primitive.wanted_rules())}
    namespace.update(
        primitive=primitive,
        _kernel=by_position(primitive),
        Tensor=Tensor,
        Value=Value,
        Leaf=Leaf,
        AccumulateGrad=AccumulateGrad,
        GRAD=GRAD,
        _mode=MODE.get,
        _new=object.__new__,
        _next_seq=next_seq,
        _getframe=sys._getframe,
        _op_error=op_error,
        _call_error=primitive.call_error,
        _observe=observe,
        _own=own,
        _array=an_array,
        _others=not_tensors,
        _unbroadcast=sum_to,
        _plain=plain,
        _frozen=frozen,
        _MUTABLE=MUTABLE,
        REQUIRED=REQUIRED,
        ndarray=np.ndarray,
        REMEMBERED_BYTES=REMEMBERED_BYTES,
        FREED=FREED,
        **rules,
    )
    if primitive.rules:
        namespace["NodeClass"] = node_class(primitive)
    local: dict[str, Any] = {}
    exec(compile(text, f"<minigrad {primitive.type}>", "exec"), namespace, local)
    return local[name]


def on_arrays(rule: Any) -> Any:
    """A rule of the package as it runs on arrays: with kernels in place of the functions that look at types first."""
    names = rule.__globals__
    if "__minigrad_ops__" not in names or not rule.__module__.startswith("minigrad.ops"):
        return rule  # a user may define a name anew at any time
    kernels = {
        n: by_position(p)
        for n in rule.__code__.co_names
        if (p := getattr(names.get(n), "primitive", None)) is not None and not p.list_input
    }
    if not kernels:
        return rule
    made = FunctionType(
        rule.__code__, {**names, **kernels}, rule.__name__, rule.__defaults__, rule.__closure__
    )
    made.__kwdefaults__ = rule.__kwdefaults__
    return made


def by_position(primitive: Primitive) -> Any:
    """The kernel, which takes attrs by position, too: calls that name none stay in one loop of the interpreter.

    One that does no more than hand its inputs to a function of NumPy is that function.
    """
    kernel, n = primitive.kernel, len(primitive.inputs)
    if not isinstance(kernel, FunctionType) or kernel.__code__.co_flags & STARRED:
        return lambda *given, **attrs: kernel(
            *given[:n], **dict(zip(primitive.attrs, given[n:], strict=False)), **attrs
        )
    code = kernel.__code__
    if not primitive.attrs:
        hands_on = code.co_code in HANDS_ON and kernel.__globals__.get("np") is np
        return getattr(np, code.co_names[1]) if hands_on else kernel
    defaults = list(kernel.__defaults__ or ())
    count = code.co_argcount + code.co_kwonlyargcount
    for name in code.co_varnames[code.co_argcount : count]:
        if defaults or name in (kernel.__kwdefaults__ or ()):
            defaults.append((kernel.__kwdefaults__ or {}).get(name, REQUIRED))
    return FunctionType(
        code.replace(co_argcount=count, co_kwonlyargcount=0),
        kernel.__globals__,
        kernel.__name__,
        tuple(defaults),
        kernel.__closure__,
    )


def plain(value: Any) -> Any:
    """A number as it is (it takes on the other operand's dtype), anything else as an array."""
    if isinstance(value, AS_IT_IS):
        return value
    try:
        return np.asarray(value)
    except ValueError:
        return value  # the kernel will refuse it, and then the message names the op


def _first_pull(n: Node, g: Any) -> Any:
    """Stands in for ``pull`` until the first backward through this primitive."""
    primitive = n.primitive
    type(n).pull = _compile(pull_source(primitive), "pull", {}, primitive)  # type: ignore[method-assign]
    return n.pull(g)


def _first_push(n: Node) -> None:
    primitive = n.primitive
    type(n).push = _compile(push_source(primitive), "push", {}, primitive)  # type: ignore[method-assign]
    n.push()


def _first_reach(n: Node, *walk: Any) -> bool:
    type(n).reach = _compile(reach_source(n.primitive), "reach", {}, n.primitive)  # type: ignore[method-assign]
    return n.reach(*walk)


def _first_free(n: Node, remember: bool = False) -> None:
    type(n).free = _compile(free_source(n.primitive), "free", {}, n.primitive)  # type: ignore[method-assign]
    n.free(remember)
