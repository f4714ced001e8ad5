"""Recording: what an op does with Tensors, and the node it leaves behind.

A generic ``apply(primitive, *args)`` that loops over slots costs about a microsecond per op, more than many a NumPy
call.  So each primitive gets straight-line code, written on first use: ``apply`` (compute, and leave a node behind),
``push`` (the gradient rules of the node, each result added where its edge leads), ``reach`` (where its edges lead) and
``free``.  For ``mul`` the first two read, in essence:

    def mul(x, y):
        out = kernel(x._data, y._data)                 t = Tensor(out)
        if neither x nor y has a node: return t
        n = MulBackward0(edges of x and y)             n._saved_y = y if x needs a gradient
        t._node = n; return t                          n._saved_x = x if y needs a gradient

    def push(n):
        add rule_x(n._saved_y, n.g) to what the edge of x has, rule_y(n._saved_x, n.g) to what that of y has

Lists of inputs, several outputs and subclasses of Tensor go through `apply_generic`, and second derivatives through
`pull_graph`: the same as loops.

No name and no value of a user's stands in these texts.  Inputs are ``x0``, ``x1``, attrs ``a0``, with ``d0`` the array
of an input, ``e0`` its edge, ``g0`` its gradient; the parameters get their names, and their defaults, when the code is
there.  The slots of a node are ``_saved_`` and a name, which `primitive` has checked.  `source` shows it all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import combinations
from types import FunctionType
from typing import Any

import numpy as np

from ..errors import RuleError, describe, op_error, refusal
from ..ops.shape import sum_to, unbroadcast
from ..primitives.arguments import REQUIRED, Value, frozen
from ..primitives.dispatch import EAGER, FIRST_CALL, answer, compute
from ..primitives.registry import STARRED, Primitive, Rule, of_package
from .grad_fn import (
    FREED,
    REMEMBERED_BYTES,
    AccumulateGrad,
    Leaf,
    ManyNode,
    Node,
    Output,
    Packed,
    next_seq,
    unpack,
)
from .mode import GRAD, MODE, Mode, check_finite
from .tensor import Tensor, masked, wrap

__minigrad_ops__ = True  # frames of this module are never "the user's line"
CHANGEABLE = (np.ndarray, list, tuple)  # a union made in the call would cost as much as the op
MUTABLE = frozenset({list, np.ndarray})  #: attrs a user may change after the call
AS_IT_IS = (float, int, np.generic, type(None))
#: what a kernel is compiled to that hands its inputs to a function of NumPy
HANDS_ON = {f.__code__.co_code for f in (lambda x: np.exp(x), lambda x, y: np.add(x, y))}
PASS_ON = (lambda out_grad: out_grad).__code__.co_code


# -- the texts -----------------------------------------------------------------------------


def source(primitive: Primitive) -> str:
    """The text of the specialised functions of a primitive, for the curious."""
    texts = (push_source, reach_source, free_source)
    apply = "# generic path\n" if is_generic(primitive) else apply_source(primitive)
    return "\n".join([apply, *(text(primitive) for text in texts)])


def is_generic(p: Primitive) -> bool:
    """Lists and several outputs go through `apply_generic`; everything else gets code of its own."""
    return bool(p.list_input or p.list_output or len(p.outputs) > 1)


def apply_source(p: Primitive, checked: bool = True) -> str:
    """The text of ``apply``.

    What a call gives besides is refused, with the names that are known, if it is ``checked``: to look for it costs a
    sign like ``+``, which never gives anything else, a twentieth of its time.
    """
    inputs = [(k, n, n in p.rules) for k, n in enumerate(p.inputs)]
    defaults = list(p.attrs.values())
    params = [f"x{k}=None" if n in p.optional else f"x{k}=REQUIRED" for k, n, _ in inputs]
    settings = [f"a{k}=REQUIRED" for k in range(len(defaults))]
    if checked and p.optional and REQUIRED in defaults:
        params += ["*more", *settings, "**unknown"]
    else:
        params += [*settings, *(["*more", "**unknown"] if checked else [])]
    args = "".join(f"x{k}, " for k, _, _ in inputs)
    attrs = f"_attrs(({''.join(f'a{k}, ' for k in range(len(defaults)))}))"
    w = Writer(f"def apply({', '.join(params)}):")
    every = len(p.inputs) + len(p.attrs)
    if checked:
        w(f"if more or unknown: raise _call_error({every} + len(more), *list(unknown)[:1])")
    for k, default in enumerate(defaults):
        if default is REQUIRED:
            w(f"if a{k} is REQUIRED: raise _call_error({len(inputs) + k})")
    for k, n, has_rule in inputs:
        edge, none = (f"; e{k} = x{k}._node", f"; e{k} = None") if has_rule else ("", "")
        w(f"if x{k}.__class__ is Tensor: d{k} = x{k}._data{edge}")
        w(f"elif x{k}.__class__ is ndarray: d{k} = x{k}{none}")
        w(f"elif x{k}.__class__ is float: d{k} = x{k}{none}")
        w(f"elif isinstance(x{k}, Value): return _others(primitive, ({args}), {attrs})")
        if n not in p.optional:
            w(f"elif x{k} is REQUIRED: raise _call_error({k})")
        w(f"else: d{k} = _plain(x{k}){none}")
    arrays = [f"d{k}" for k, _, _ in inputs] + [f"a{k}" for k in range(len(defaults))]
    w(f"try: out = _kernel({', '.join(arrays)})")
    w(
        "except Exception as error: "
        f"raise _op_error(primitive.type, primitive.inputs, ({args}), {attrs}, error) from error"
    )
    if not of_package(p.kernel):
        w("out = _array(primitive, out)")
    no_tensor = " and ".join(f"x{k}.__class__ is not Tensor" for k, _, _ in inputs) or "True"
    exposed = "x0.__class__ is Tensor and x0._exposed" if p.view else "False"
    result = f"t = _new(Tensor); t._data = out; t._grad = None; t._exposed = {exposed}"
    if not p.rules or "out" in p.nondiff:
        w(f"if {no_tensor}: return out")
        w(f"{result}; t._node = None; t._cut = primitive; return t")
        return w.text
    places = [p.inputs.index(n) for n in p.differentiable]
    w(f"if {' and '.join(f'e{k} is None' for k in places)}:")
    w(f"    if {no_tensor}: return out")
    if p.view:  # a graph may come later, by a change in place
        w("    if x0.__class__ is Tensor: x0._viewed = True")
    w(f"    {result}; t._node = None; return t")
    w(result)
    w("m = _mode()")
    w("if m is not GRAD and not m.grad: t._node = None; t._cut = 'no_grad'; return t")
    w("kept = None")
    for k in places:
        w(f"if e{k}.__class__ is Leaf:")
        w(f"    e{k} = e{k}.node or e{k}.accumulator(x{k})")
        w(f"    kept = x{k} if kept is None else (x{k}, kept)")
    w("n = NodeClass(); n.g = n.hooks = None; n.freed = False")
    w("n.mark = 0; n.seq = _next_seq()")
    edges = [f"e{k}" for k in places]
    w(f"n.e0 = {edges[0]}; n.e1 = {edges[1] if len(edges) > 1 else 'None'}")
    if len(edges) > 2:
        w(f"n.more = ({', '.join(edges[2:])},)")
    _write_saved(p, w)
    w("f = _getframe(1)")
    w("while '__minigrad_ops__' in f.f_globals: f = f.f_back")
    w("n.code = f.f_code; n.lasti = f.f_lasti; n.kept = kept")
    w("t._node = n")
    if p.view:
        w("if e0 is not None: x0._viewed = True")
    w(f"if m is not GRAD: _observe(m, n, ({args}), {attrs}, [t])")
    w("return t")
    return w.text


def _write_saved(p: Primitive, w: Writer) -> None:
    place = {n: k for k, n in enumerate(p.inputs)}
    for s in p.saved():
        users = [n for n in p.differentiable if s in p.rules[n].reads]
        value = "out"
        if s not in p.outputs:
            k = place[s]
            value = f"d{k} if x{k}.__class__ is Tensor and not x{k}._exposed"
            value += f" or x{k}.__class__ is float else _own(d{k})"
        needed = " or ".join(f"e{place[n]} is not None" for n in users)
        everyone = len(users) == len(p.differentiable)
        w(f"n._saved_{s} = {value if everyone else f'({value}) if {needed} else None'}")
    for r in p.reads():
        name, _, fact = r.rpartition("_")
        if r in p.attrs:
            value = a = f"a{[*p.attrs].index(r)}"
            if p.attrs[r] is None or p.attrs[r] is REQUIRED:
                value = f"{a} if {a} is None or {a}.__class__ not in _MUTABLE else _frozen({a})"
            w(f"n._saved_{r} = {value}")
        elif name not in place or fact not in ("shape", "dtype"):
            continue  # a value, or the gradient of an output
        elif fact == "dtype":
            w(f"n._saved_{r} = getattr(d{place[name]}, 'dtype', None)")
        elif [n for n in p.differentiable if r in p.rules[n].reads] == [name]:
            # what has an edge has a shape; without one nobody will ask
            w(f"n._saved_{r} = None if e{place[name]} is None else d{place[name]}.shape")
        else:
            w(f"n._saved_{r} = getattr(d{place[name]}, 'shape', ())")
    if p.broadcasts:
        places = [place[n] for n in p.differentiable]
        w("s = out.shape")  # of an input without an edge nobody will ask
        same = " and ".join(f"(e{k} is None or d{k}.shape == s)" for k in places)
        each = ", ".join(f"s if e{k} is None else d{k}.shape" for k in places)
        w(f"n._shapes = None if {same} else ({each},)")


def push_source(p: Primitive) -> str:
    """The text of ``push``: the rules on arrays; gradients add up by reference, then allocated, then in place."""
    w = Writer("def push(n):")
    w("g = n.g")
    w("if g is None: return")
    w("n.g = None")
    for k, edge in enumerate(_edges(p)):
        w(f"e{k} = {edge}")
    if p.saved():
        w("if n.freed: raise n.freed_error()")
    place = {n: k for k, n in enumerate(p.differentiable)}
    for r, rule in enumerate(p.wanted_rules()):
        read = ", ".join(_argument(p, name) for name in rule.reads)
        call = read if _passes_on(rule) else f"rule_{r}({read})"
        places = [place[n] for n in rule.inputs if n in place]
        if rule.joint:
            w(f"{''.join(f'g{k}, ' for k in places)} = {call}")
            for a, b in combinations(places, 2):  # each gets memory of its own
                w(f"if g{a} is g{b}: g{b} = _own(g{b})")
        for k in places:
            w(f"if e{k} is None: g{k} = None")
            w(f"else: g{k} = {call}" if not rule.joint else "else: pass")
            if p.broadcasts:
                w(
                    f"if n._shapes is not None and g{k} is not None and g{k}.shape != n._shapes[{k}]:"
                )
                w(f"    g{k} = _unbroadcast(g{k}, n._shapes[{k}])")
    for k in place.values():
        w(f"if g{k} is not None:")
        w(f"    h = e{k}.g")
        w(f"    if h is None: e{k}.g = g{k}; e{k}.own = g{k} is not g and g{k}.base is None")
        w(f"    elif e{k}.own: h += g{k}; e{k}.g = h")
        w(f"    else: e{k}.g = h + g{k}; e{k}.own = True")
    return w.text


def reach_source(p: Primitive) -> str:
    """The text of ``reach``: `Node.reach` for the edges of this class; what was made last comes first."""
    w = Writer("def reach(n, epoch, see, end):")
    w("if n.hooks is not None: return True")
    for edge in reversed(_edges(p)):
        w(f"m = {edge}")
        w("if m is not None and m.mark != epoch:")
        w("    m.mark = epoch")
        w("    if m.__class__ is AccumulateGrad: end(m)")
        w("    else: see(m)")
    w("return False")
    return w.text


def free_source(p: Primitive) -> str:
    """The text of ``free``: `Node.free` for the slots of this class."""
    w = Writer("def free(n, remember=False):")
    for s in p.saved():
        w(f"v = n._saved_{s}")
        w("if v is not None:")
        w("    n.freed = True")
        w("    if not remember or v.__class__ is ndarray and v.nbytes > REMEMBERED_BYTES:")
        w(f"        n._saved_{s} = FREED")
    w("return")
    return w.text


def _edges(p: Primitive) -> list[str]:
    """Where a node of this primitive has the edge of each differentiable input."""
    several = [f"n.more[{k}]" for k in range(len(p.differentiable) - 2)]
    return ["n.e0", "n.e1", *several][: len(p.differentiable)]


def _argument(p: Primitive, name: str) -> str:
    """What a rule reads, in ``push``."""
    is_grad = name.endswith("_grad") and name.removesuffix("_grad") in p.outputs
    return "g" if is_grad else f"n._saved_{name}"


def _passes_on(rule: Rule) -> bool:
    """Whether a rule gives on the one thing it is given, as those of a sum do: nothing is called then."""
    plain = isinstance(rule.function, FunctionType) and len(rule.reads) == 1 and not rule.joint
    return plain and rule.function.__code__.co_code == PASS_ON


class Writer:
    """Collects indented lines."""

    def __init__(self, head: str) -> None:
        self.text = head + "\n"

    def __call__(self, line: str) -> None:
        self.text += f"    {line}\n"


# -- functions of these texts ----------------------------------------------------------------


def node_class(primitive: Primitive) -> type[Node]:
    """The class of this primitive's nodes, named as PyTorch names them: ``MulBackward0``."""
    if primitive.node_class is not None:
        return primitive.node_class  # type: ignore[no-any-return]
    words = primitive.type.removeprefix("reduce_").split("_")
    title = primitive.title or "".join(w.capitalize() for w in words)
    few = len(primitive.differentiable) <= 2
    base = GenericNode if is_generic(primitive) else RuleNode if few else ManyRuleNode
    grads = {f"{o}_grad" for o in primitive.outputs}
    slots = [f"_saved_{n}" for n in primitive.reads() if n not in grads]
    namespace = {
        "__slots__": (*slots, *(("_shapes",) if primitive.broadcasts else ())),
        "primitive": primitive,
        "title": title,
        "saved_slots": tuple(f"_saved_{n}" for n in primitive.saved()),
    }
    primitive.node_class = new = type(f"{title}Backward0", (base,), namespace)
    new.__module__ = __name__
    return new


def specialise(primitive: Primitive) -> None:
    """Replace the code of the primitive's public functions by its fast version."""
    for public in filter(None, (primitive.function, primitive.operator)):
        if is_generic(primitive):  # lists and several outputs: one generic path serves them
            public.__globals__["answer"] = apply_generic
            continue
        text = apply_source(primitive, checked=public is primitive.function)
        fast = _compile(text, "apply", public.__globals__, primitive)
        code, names = fast.__code__, (*primitive.inputs, *primitive.attrs)
        public.__code__ = code.replace(
            co_name=public.__name__,
            co_qualname=public.__qualname__,
            co_varnames=names + code.co_varnames[len(names) :],
        )
        defaults, attrs = list(fast.__defaults__ or ()), list(primitive.attrs.values())
        if fast.__kwdefaults__:
            public.__kwdefaults__ = dict(primitive.attrs)
        elif attrs:
            defaults[-len(attrs) :] = attrs
        public.__defaults__ = tuple(defaults)


def _compile(text: str, name: str, namespace: dict[str, Any], primitive: Primitive) -> Any:
    """Compile text written by this module; the only place of the eager engine that does so."""
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
        _attrs=lambda values: dict(zip(primitive.attrs, values, strict=True)),
        _observe=observe,
        _own=own,
        _array=an_array,
        _others=answer,
        _unbroadcast=sum_to,
        _plain=plain,
        __minigrad_ops__=True,  # an error in it is told with the user's line
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
    names = getattr(rule, "__globals__", {})
    if "__minigrad_ops__" not in names or not of_package(rule):
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
        hands_on = code.co_code in HANDS_ON and code.co_names[0] == "np"
        hands_on = hands_on and kernel.__globals__.get("np") is np
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


class RuleNode(Node):
    """The node of a primitive; ``push``, ``reach`` and ``free`` of its class are written at their first call."""

    __slots__ = ()

    def pull(self, g: Any) -> Any:
        return pull_rules(self, g, lambda name, value: value, sum_to)

    def pull_graph(self, g: Any) -> Any:
        return pull_rules(self, g, partial(_as_tensor, self), _sum_to_values)

    def push(self) -> None:
        self._write("push", push_source)()

    def reach(self, *walk: Any) -> bool:
        return self._write("reach", reach_source)(*walk)  # type: ignore[no-any-return]

    def free(self, remember: bool = False) -> None:
        self._write("free", free_source)(remember)

    def _write(self, name: str, text: Callable[[Primitive], str]) -> Any:
        setattr(type(self), name, _compile(text(self.primitive), name, {}, self.primitive))
        return getattr(self, name)


class ManyRuleNode(RuleNode, ManyNode):
    """A node of a primitive with more than two edges."""

    __slots__ = ()


class GenericNode(RuleNode, ManyNode):
    """A node of a primitive with list slots or several outputs: all its edges are in ``more``."""

    __slots__ = ("outs", "slots", "specs")
    slots: list[str]
    specs: list[tuple[tuple[int, ...], Any]]
    outs: list[Output]
    outputs = 0
    free = Node.free

    def edges(self) -> Any:
        return iter(self.more)


def plain(value: Any) -> Any:
    """A number as it is (it takes on the other operand's dtype), anything else as an array."""
    if isinstance(value, AS_IT_IS):
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise masked(value)
    try:
        return np.asarray(value)
    except ValueError:
        return value  # the kernel will refuse it, and then the message names the op


# -- the generic path ------------------------------------------------------------------------


def own(value: Any) -> Any:
    """A copy for saving: an array that a user can still reach may change before backward reads it."""
    return np.array(value) if isinstance(value, CHANGEABLE) else value


def apply(primitive: Primitive, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """A call that `answer` hands to this engine: the first of a function, or one with a subclass of Tensor."""
    if primitive.function.__code__ is FIRST_CALL:
        specialise(primitive)
        if not is_generic(primitive):
            return primitive.function(*args, **attrs)
    return apply_generic(primitive, args, attrs)


EAGER["apply"] = apply


def an_array(primitive: Primitive, out: Any) -> Any:
    """What a kernel of the user's returned, if it is an array or a number; the package's own are trusted."""
    if isinstance(out, np.ndarray | np.generic) or of_package(primitive.kernel):
        return out
    if isinstance(out, int | float):
        return np.asarray(out)
    what = f"the kernel of {primitive.type} returned {describe(out)}, not an array"
    raise refusal(what, "np.asarray(…) of it; functions of NumPy (np.exp, not math.exp)", RuleError)


def apply_generic(primitive: Primitive, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Apply any primitive: the meaning of the specialised functions, written as loops over slots."""
    args, attrs = primitive.bind(args, attrs)
    values = [a for a in args if isinstance(a, Value)]
    if any(not isinstance(a, Tensor) for a in values):
        return answer(primitive, args, attrs)
    if not values:
        return compute(primitive, args, args, attrs)
    arrays = tuple(a._data if isinstance(a, Tensor) else a for a in args)
    result = compute(primitive, args, arrays, attrs)
    several = primitive.list_output or len(primitive.outputs) > 1
    count = len(result) if isinstance(result, tuple | list) else 1
    if not primitive.list_output and count != len(primitive.outputs):
        what = f"the kernel of {primitive.type} returned {count} value(s)"
        raise refusal(what, f"one for each output: {', '.join(primitive.outputs)}", RuleError)
    outs = [wrap(an_array(primitive, o)) for o in (result if several else [result])]
    first = args[0]
    if primitive.view and isinstance(first, Tensor) and first._exposed:
        for o in outs:
            o._exposed = True
    mode = MODE.get()
    slots = primitive.slot_names(len(args))
    edges = [
        (a._node if n in primitive.rules and isinstance(a, Tensor) else None)
        for n, a in zip(slots, args, strict=True)
    ]
    if primitive.view and isinstance(first, Tensor):
        first._viewed = True
    if mode.grad and any(e is not None for e in edges):
        _record(primitive, args, arrays, attrs, outs, edges, slots, mode)
    return outs if several else outs[0]


def _record(
    primitive: Primitive,
    args: Any,
    arrays: Any,
    attrs: dict[str, Any],
    outs: list[Any],
    edges: list[Any],
    slots: list[str],
    mode: Mode,
) -> None:
    node: Any = object.__new__(node_class(primitive))
    node.e0 = node.e1 = node.g = node.hooks = None
    node.mark, node.freed, node.seq = 0, False, next_seq()
    node.kept = [a for e, a in zip(edges, args, strict=True) if e.__class__ is Leaf]
    edges = [
        e.accumulator(a) if e.__class__ is Leaf else e for e, a in zip(edges, args, strict=True)
    ]
    wanted = {n for n, e in zip(slots, edges, strict=True) if e is not None}
    by_slot: dict[str, Any] = {}
    for name, arg, array in zip(slots, args, arrays, strict=True):
        exposed = not hasattr(arg, "_exposed") or arg._exposed
        value = own(array) if exposed else array
        by_slot[name] = [*by_slot.get(name, ()), value] if name == primitive.list_input else value
    if primitive.list_input:
        by_slot.setdefault(primitive.list_input, [])
    several = len(primitive.outputs) > 1
    for k, name in enumerate(primitive.outputs):
        by_slot[name] = (
            outs[k]._data
            if several
            else [o._data for o in outs]
            if primitive.list_output
            else outs[0]._data
        )
    needed = primitive.saved(wanted)
    for name in primitive.saved():
        setattr(node, f"_saved_{name}", by_slot[name] if name in needed else None)
    for name in primitive.reads():
        of, _, fact = name.rpartition("_")
        if name in primitive.attrs:
            setattr(node, f"_saved_{name}", attrs[name])
        elif name not in by_slot and fact in ("shape", "dtype"):
            setattr(node, f"_saved_{name}", _fact(by_slot[of], fact))
    flowing = [e for n, e in zip(slots, edges, strict=True) if n in primitive.rules]
    if isinstance(node, GenericNode):
        node.more, node.slots = tuple(flowing), slots
        node.specs = [(np.shape(o._data), o._data.dtype) for o in outs]
    else:
        node.e0, node.e1 = (*flowing, None, None)[:2]
        if isinstance(node, ManyNode):
            node.more = tuple(flowing[2:])
    if primitive.broadcasts:
        shapes = tuple(
            np.shape(a) for n, a in zip(slots, arrays, strict=True) if n in primitive.rules
        )
        node._shapes = shapes if any(s != np.shape(outs[0]._data) for s in shapes) else None
    frame = _frame_of_user(3)
    node.code, node.lasti = frame.f_code, frame.f_lasti
    names = primitive.outputs if several else [primitive.outputs[0]] * len(outs)
    for k, (name, out) in enumerate(zip(names, outs, strict=True)):
        if name not in primitive.nondiff and out._data.dtype.kind in "fc":
            out._node = Output(node, k) if isinstance(node, GenericNode) else node
        else:
            out._cut = primitive
    if mode is not GRAD:
        observe(mode, node, args, attrs, outs)


def _frame_of_user(depth: int) -> Any:
    """The nearest frame that is not a module of ops."""
    frame: Any = sys._getframe(depth)
    while frame is not None and "__minigrad_ops__" in frame.f_globals:
        frame = frame.f_back
    return frame


def _fact(value: Any, what: str) -> Any:
    if isinstance(value, list):
        return [_fact(v, what) for v in value]
    return np.shape(value) if what == "shape" else getattr(value, "dtype", None)


def observe(
    mode: Mode, node: Node, args: tuple[Any, ...], attrs: dict[str, Any], outs: list[Any]
) -> None:
    """The rarely used switches: look for NaN and infinity, pack saved values, tell a recorder."""
    if mode.recorder is not None:
        mode.recorder(node.primitive, args, attrs, outs)
    if mode.anomaly:
        check_finite(node.primitive.type, outs[0]._data, args, node.where(), "made")
    if mode.saved_hooks is not None:
        for slot in node.saved_slots:
            setattr(node, slot, packed(getattr(node, slot), *mode.saved_hooks))
        node._hooks()


def packed(value: Any, *hooks: Callable[[Any], Any]) -> Any:
    """A saved value, or a list of them, as `saved_tensors_hooks` wants it kept."""
    if isinstance(value, list):
        return [packed(v, *hooks) for v in value]
    return Packed(value, *hooks) if isinstance(value, np.ndarray | np.generic) else value


def _sum_to_values(value: Any, shape: Any) -> Any:
    return value if value.shape == tuple(shape) else unbroadcast(value, shape=tuple(shape))


def _as_tensor(node: Node, name: str, value: Any) -> Any:
    """A saved value as the Tensor it was: joined to the graph by the edge of its slot."""
    p = node.primitive
    if value is None or not (isinstance(value, np.ndarray | np.generic | list)):
        return value
    if name in p.outputs:
        k = p.outputs.index(name)
        if isinstance(value, list):
            return [wrap(v, Output(node, j)) for j, v in enumerate(value)]
        return wrap(
            value,
            (Output(node, k) if isinstance(node, GenericNode) else node)
            if name not in p.nondiff
            else None,
        )
    edges = iter(node.edges())
    by_slot: dict[str, list[Any]] = {}
    for slot in node.slots if isinstance(node, GenericNode) else p.inputs:
        if slot in p.rules:
            by_slot.setdefault(slot, []).append(next(edges))
    if isinstance(value, list):
        return [
            _joined(v, e)
            for v, e in zip(value, by_slot.get(name, [None] * len(value)), strict=True)
        ]
    return _joined(value, by_slot.get(name, [None])[0])


def _joined(value: Any, edge: Any) -> Any:
    return edge.variable if edge.__class__ is AccumulateGrad else wrap(value, edge)


def pull_rules(node: Any, g: Any, read: Any, sum_back: Any) -> list[Any]:
    """Run the rules of the inputs whose edge is wanted; one gradient per edge, in order."""
    p = node.primitive
    slots = [s for s in (node.slots if isinstance(node, GenericNode) else p.inputs) if s in p.rules]
    edges = dict(zip(range(len(slots)), node.edges(), strict=False))
    wanted = {s for k, s in enumerate(slots) if edges[k] is not None}
    if node.freed:
        raise node.freed_error()
    values = {}
    for name in p.reads(wanted):
        if name.endswith("_grad") and name.removesuffix("_grad") in p.outputs:
            k = p.outputs.index(name.removesuffix("_grad"))
            values[name] = g[k] if isinstance(node, GenericNode) and not p.list_output else g
        elif name in p.inputs or name in p.outputs:
            values[name] = read(name, unpack(getattr(node, f"_saved_{name}")))
        else:
            values[name] = getattr(node, f"_saved_{name}")
    made: dict[str, Any] = {}
    for rule in p.wanted_rules(wanted):
        result = rule.function(*(values[r] for r in rule.reads))
        made.update(
            zip(rule.inputs, result, strict=True) if rule.joint else [(rule.inputs[0], result)]
        )
    if p.broadcasts and node._shapes is not None:
        shapes = dict(zip(p.differentiable, node._shapes, strict=True))
        made = {n: v if v is None else sum_back(v, shapes[n]) for n, v in made.items()}
    grads, seen = [], dict.fromkeys(slots, 0)
    for k, slot in enumerate(slots):
        value = made.get(slot)
        if slot == p.list_input and value is not None:
            value = value[seen[slot]]
            seen[slot] += 1
        grads.append(value if edges[k] is not None else None)
    return grads
