"""Write the fast eager function of a primitive from its one declaration.

A generic ``apply(primitive, *args)`` that loops over slots costs about a microsecond per op, more than many a NumPy
call.  So each primitive gets two functions of straight-line code, written on first use: ``apply`` (compute, and leave
a node behind) and ``pull`` (the node's gradient rules, on arrays).  For ``mul`` they read, in essence:

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
from itertools import combinations
from types import FunctionType
from typing import Any

import numpy as np

from ..errors import op_error
from ..ops.shape import sum_to
from ..registry import HOOKS, REQUIRED, Primitive, Value, frozen
from .grad_fn import FREED, REMEMBERED_BYTES, Freed, Leaf, ManyNode, Node, next_seq
from .mode import GRAD, MODE
from .record import GenericNode, apply_generic, not_tensors, observe, own

MUTABLE = frozenset({list, np.ndarray})  #: attrs a user may change after the call
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
        kept = [
            f"_{n}"
            for n in primitive.reads()
            if not n.endswith("_grad") and n not in primitive.saved()
        ]
        namespace = {
            "__slots__": (*slots, *kept, *_shape_slot(primitive)),
            "primitive": primitive,
            "title": title,
            "saved_slots": slots,
        }
        made = _NODE_CLASSES[primitive.type] = type(f"{title}Backward0", (base,), namespace)
        made.__module__ = __name__
        if base is not GenericNode:
            made.pull, made.push, made.free = _first_pull, _first_push, _first_free  # type: ignore[method-assign, assignment]
    return made


def is_generic(p: Primitive) -> bool:
    """Lists and several outputs go through `apply_generic`; everything else gets code of its
    own.
    """
    return bool(p.list_input or p.list_output or len(p.outputs) > 1)


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


HOOKS["specialise"] = specialise


def _generic(*args: Any, **attrs: Any) -> Any:
    return apply_generic(primitive, args, attrs)  # type: ignore[name-defined]  # noqa: F821


def _compile(text: str, name: str, namespace: dict[str, Any], primitive: Primitive) -> Any:
    """Compile text written by this module; the only place of the eager engine that does so."""
    from .tensor import Tensor

    rules = {f"rule_{k}": on_arrays(r.function) for k, r in enumerate(primitive.wanted_rules())}
    namespace.update(
        primitive=primitive,
        _kernel=primitive.kernel,
        Tensor=Tensor,
        Value=Value,
        Leaf=Leaf,
        GRAD=GRAD,
        _mode=MODE.get,
        _new=object.__new__,
        _next_seq=next_seq,
        _getframe=sys._getframe,
        _op_error=op_error,
        _call_error=primitive.call_error,
        _observe=observe,
        _own=own,
        _others=not_tensors,
        _unbroadcast=sum_to,
        Freed=Freed,
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
        n: p.kernel
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


def source(primitive: Primitive) -> str:
    """The text of the specialised functions of a primitive, for the curious."""
    return "\n".join(
        [
            apply_source(primitive) or "# generic path\n",
            pull_source(primitive),
            push_source(primitive),
            free_source(primitive),
        ]
    )


def apply_source(p: Primitive) -> str | None:
    """The text of ``apply``; None where the generic path is used."""
    if is_generic(p):
        return None
    absent = "=REQUIRED" if p.attrs else ""
    params = [f"{n}=None" if n in p.optional else n + absent for n in p.inputs]
    settings = [f"{a}=REQUIRED" if d is REQUIRED else f"{a}={d!r}" for a, d in p.attrs.items()]
    if p.optional and REQUIRED in p.attrs.values():
        params += ["*more_", *settings, "**unknown_"]
    elif p.attrs:  # what else is given is refused, with the names that are known
        params += [*settings, "*more_", "**unknown_"]
    attrs = "".join(f", {a}={a}" for a in p.attrs)
    args = ", ".join(p.inputs) + ("," if len(p.inputs) == 1 else "")
    attr_dict = "{" + ", ".join(f"{a!r}: {a}" for a in p.attrs) + "}"
    w = Writer(f"def {p.function.__name__}({', '.join(params)}):")
    if p.attrs:
        every = len(p.inputs) + len(p.attrs)
        w(f"if more_ or unknown_: raise _call_error({every} + len(more_), *list(unknown_)[:1])")
    for k, (a, d) in enumerate(p.attrs.items(), len(p.inputs)):
        if d is REQUIRED:
            w(f"if {a} is REQUIRED: raise _call_error({k})")
    w("tensors_ = False")
    for n in p.inputs:
        edge = f"; e_{n} = {n}._node" if n in p.rules else ""
        w(f"if {n}.__class__ is Tensor: d_{n} = {n}._data{edge}; tensors_ = True")
        w(
            f"elif {n}.__class__ is ndarray: d_{n} = {n}"
            + (f"; e_{n} = None" if n in p.rules else "")
        )
        w(f"elif isinstance({n}, Value): return _others(primitive, ({args}), {attr_dict})")
        if absent and n not in p.optional:
            w(f"elif {n} is REQUIRED: raise _call_error({p.inputs.index(n)})")
        w(f"else: d_{n} = _plain({n})" + (f"; e_{n} = None" if n in p.rules else ""))
    w(f"try: out_ = _kernel({(', '.join('d_' + n for n in p.inputs) + attrs).removeprefix(', ')})")
    w(
        f"except Exception as error_: raise _op_error(primitive.type, primitive.inputs, ({args}), "
        f"{attr_dict}, error_) from error_"
    )
    w("if not tensors_: return out_")
    exposed = (
        f"({p.inputs[0]}.__class__ is Tensor and {p.inputs[0]}._exposed)" if p.view else "False"
    )
    w(f"t_ = _new(Tensor); t_._data = out_; t_._grad = None; t_._exposed = {exposed}")
    if not p.rules or "out" in p.nondiff:
        w("t_._node = None; t_._cut = primitive; return t_")
        return w.text
    none = " and ".join(f"e_{n} is None" for n in p.differentiable)
    w(f"if {none}: t_._node = None; return t_")
    w("m_ = _mode()")
    w("if m_ is not GRAD and not m_.grad: t_._node = None; t_._cut = 'no_grad'; return t_")
    for n in p.differentiable:
        w(f"if e_{n}.__class__ is Leaf: e_{n} = e_{n}.accumulator({n})")
    w("n_ = _new(NodeClass); n_.g = n_.hooks = None; n_.mark = 0; n_.seq = _next_seq()")
    edges = [f"e_{n}" for n in p.differentiable]
    w(f"n_.e0 = {edges[0]}; n_.e1 = {edges[1] if len(edges) > 1 else 'None'}")
    if len(edges) > 2:
        w(f"n_.more = ({', '.join(edges[2:])},)")
    _write_saved(p, w)
    w("f_ = _getframe(1)")
    w("while '__minigrad_ops__' in f_.f_globals: f_ = f_.f_back")
    w("n_.code = f_.f_code; n_.lasti = f_.f_lasti")
    w("t_._node = n_")
    if p.view:
        w(f"if e_{p.inputs[0]} is not None: {p.inputs[0]}._viewed = True")
    w(f"if m_ is not GRAD: _observe(m_, n_, ({args}), {attr_dict}, [t_])")
    w("return t_")
    return w.text


def _write_saved(p: Primitive, w: Writer) -> None:
    for s in p.saved():
        users = [n for n in p.differentiable if s in p.rules[n].reads]
        value = (
            "out_"
            if s in p.outputs
            else f"d_{s} if {s}.__class__ is Tensor and not {s}._exposed else _own(d_{s})"
        )
        everyone = len(users) == len(p.differentiable)
        needed = " or ".join(f"e_{n} is not None" for n in users)
        w(
            f"n_._saved_{s} = {value}"
            if everyone
            else f"n_._saved_{s} = ({value}) if {needed} else None"
        )
    for r in p.reads():
        if r in p.attrs and (p.attrs[r] is None or p.attrs[r] is REQUIRED):
            kept = f"{r} is None or {r}.__class__ not in _MUTABLE"
            w(f"n_._{r} = {r} if {kept} else _frozen({r})")
        elif r in p.attrs:
            w(f"n_._{r} = {r}")
        elif r.endswith("_shape") and r.removesuffix("_shape") in p.inputs:
            name = r.removesuffix("_shape")
            w(f"n_._{r} = getattr(d_{name}, 'shape', ())")
        elif r.endswith("_dtype") and r.removesuffix("_dtype") in p.inputs:
            w(f"n_._{r} = getattr(d_{r.removesuffix('_dtype')}, 'dtype', None)")
    if p.broadcasts:
        names = p.differentiable
        w("s_ = out_.shape; " + "; ".join(f"s_{n} = getattr(d_{n}, 'shape', ())" for n in names))
        same = " and ".join(f"s_{n} == s_" for n in names)
        w(f"n_._shapes = None if {same} else ({', '.join(f's_{n}' for n in names)},)")


def pull_source(p: Primitive) -> str:
    """The text of ``pull``: the gradient rules of one node, on arrays."""
    w = Writer("def pull(n, g):")
    _write_rules(p, w, dict(zip(p.differentiable, _edges(p), strict=True)))
    w(f"return {', '.join('g_' + n for n in p.differentiable)},")
    return w.text


def push_source(p: Primitive) -> str:
    """The text of ``push``: the same, and each gradient is added where its edge leads, as `Node.push` does it."""
    w = Writer("def push(n, g):")
    for name, edge in zip(p.differentiable, _edges(p), strict=True):
        w(f"e_{name} = {edge}")
    _write_rules(p, w, {n: f"e_{n}" for n in p.differentiable})
    for n in p.differentiable:
        w(f"if g_{n} is not None:")
        w(f"    h = e_{n}.g")
        w(f"    if h is None: e_{n}.g = g_{n}; e_{n}.own = g_{n} is not g and g_{n}.base is None")
        w(f"    elif e_{n}.own: h += g_{n}; e_{n}.g = h")
        w(f"    else: e_{n}.g = h + g_{n}; e_{n}.own = True")
    return w.text


def _edges(p: Primitive) -> list[str]:
    """Where a node of this primitive has the edge of each differentiable input."""
    several = [f"n.more[{k}]" for k in range(len(p.differentiable) - 2)]
    return ["n.e0", "n.e1", *several][: len(p.differentiable)]


def _write_rules(p: Primitive, w: Writer, edges: dict[str, str]) -> None:
    """``g_x = …`` for every input: None where there is no edge."""
    if p.saved():
        w(
            "if "
            + " or ".join(f"n._saved_{s}.__class__ is Freed" for s in p.saved())
            + ": raise n.freed_error()"
        )
    for k, rule in enumerate(p.wanted_rules()):
        call = f"rule_{k}({', '.join(_argument(p, r) for r in rule.reads)})"
        inputs = [n for n in rule.inputs if n in edges]
        if rule.joint:
            w(f"{', '.join('g_' + n for n in rule.inputs)}, = {call}")
            for a, b in combinations(rule.inputs, 2):  # each gets memory of its own
                w(f"if g_{a} is g_{b}: g_{b} = _own(g_{b})")
        for name in inputs:
            w(f"if {edges[name]} is None: g_{name} = None")
            w(f"else: g_{name} = {call}" if not rule.joint else "else: pass")
            if p.broadcasts:
                shape = f"n._shapes[{p.differentiable.index(name)}]"
                w(
                    f"if n._shapes is not None and g_{name} is not None and g_{name}.shape != "
                    f"{shape}: g_{name} = _unbroadcast(g_{name}, {shape})"
                )


def plain(value: Any) -> Any:
    """A number as it is (it takes on the other operand's dtype), anything else as an array."""
    if (
        value.__class__ is np.ndarray
        or value is None
        or isinstance(value, int | float | np.generic)
    ):
        return value
    try:
        return np.asarray(value)
    except ValueError:
        return value  # the kernel will refuse it, and then the message names the op


def free_source(p: Primitive) -> str:
    """The text of ``free``: `Node.free` for the slots of this class."""
    w = Writer("def free(n, remember=False):")
    for s in p.saved():
        w(f"v = n._saved_{s}")
        w("if v is not None and v.__class__ is not Freed:")
        w("    if remember and (v.__class__ is not ndarray or v.nbytes <= REMEMBERED_BYTES):")
        w(f"        f = n._saved_{s} = _new(Freed); f.value = v")
        w(f"    else: n._saved_{s} = FREED")
    w("return")
    return w.text


def _argument(p: Primitive, name: str) -> str:
    if name.endswith("_grad") and name.removesuffix("_grad") in p.outputs:
        return "g" if len(p.outputs) == 1 else f"g[{p.outputs.index(name.removesuffix('_grad'))}]"
    return f"n._saved_{name}" if name in p.saved() else f"n._{name}"


def _first_pull(n: Node, g: Any) -> Any:
    """Stands in for ``pull`` until the first backward through this primitive."""
    primitive = n.primitive
    type(n).pull = _compile(pull_source(primitive), "pull", {}, primitive)  # type: ignore[method-assign]
    return n.pull(g)


def _first_push(n: Node, g: Any) -> None:
    primitive = n.primitive
    type(n).push = _compile(push_source(primitive), "push", {}, primitive)  # type: ignore[method-assign]
    n.push(g)


def _first_free(n: Node, remember: bool = False) -> None:
    type(n).free = _compile(free_source(n.primitive), "free", {}, n.primitive)  # type: ignore[method-assign]
    n.free(remember)


class Writer:
    """Collects indented lines."""

    def __init__(self, head: str) -> None:
        self.text = head + "\n"

    def __call__(self, line: str) -> None:
        self.text += f"    {line}\n"
