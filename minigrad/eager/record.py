"""Recording: what an op does with Tensors, and the node it leaves behind.

A generic ``apply(primitive, *args)`` that loops over slots costs about a microsecond per op, more than many a NumPy
call.  So each primitive gets straight-line code, written on first use: ``apply`` (compute, and leave a node behind),
``push`` (the gradient rules of the node, each result added where its edge leads) and ``free``.  For ``mul`` the first
two read, in essence:

    def mul(x, y):
        out = kernel(x._data, y._data)                 t = Tensor(out)
        if neither x nor y has a node: return t
        n = MulBackward0(edges of x and y)             n._saved_y = y if x needs a gradient
        t._node = n; return t                          n._saved_x = x if y needs a gradient

    def push(n):
        add rule_x(n._saved_y, n.g) to what the edge of x has, rule_y(n._saved_x, n.g) to what that of y has

Two more are written where somebody asks for them: ``pull`` is ``push`` that returns the gradients,
for those who look at them on the way (hooks, anomaly mode, `mg.why`), and ``pull_graph`` is
``pull`` with the rules read on Tensors.

No name and no value of a user's stands in these texts.  Inputs are ``x0``, ``x1``, attrs ``a0``,
with ``d0`` the array of an input, ``e0`` its edge, ``g0`` its gradient; of a slot that holds a
list, all of these are lists.  The parameters get their defaults when the code is there; what is
given by name is put in its place by `Primitive.placed`.  The slots of a node are ``_saved_`` and a
name, which `primitive` has checked.  `source` shows it all.
"""

from collections.abc import Iterable, Iterator
from sys import _getframe  # noqa: F401
from types import FunctionType
from typing import Any

import numpy as np

from ..errors import RuleError, describe, op_error, refusal, unmasked
from ..ops.shape import sum_to, unbroadcast
from ..primitives.arguments import REQUIRED, Args, Attrs, ByName, Function, Listed, Value, frozen  # noqa: F401
from ..primitives.dispatch import EAGER, FIRST_CALL, check_finite, refused  # noqa: F401
from ..primitives.dispatch import answer as other_engine
from ..primitives.registry import Primitive, by_position, of_package
from .grad_fn import (  # noqa: F401
    FEW_BYTES,
    FREED,
    AccumulateGrad,
    Node,
    Output,
    Several,
    bytes_of,
    next_seq,
    packed,
)
from .mode import GRAD, MODE, Mode  # noqa: F401
from .tensor import Tensor, plain_list, wrap

__minigrad_ops__ = True  # frames of this module are never "the user's line"
CHANGEABLE = (np.ndarray, list, tuple)  # a union made in the call would cost as much as the op
MUTABLE = frozenset({list, np.ndarray})  #: attrs a user may change after the call
AS_IT_IS = (float, int, np.generic, type(None))
#: what a kernel is compiled to that hands its inputs to a function of NumPy
HANDS_ON = {f.__code__.co_code for f in (lambda x: np.exp(x), lambda x, y: np.add(x, y))}
ndarray, new, mode = np.ndarray, object.__new__, MODE.get


# -- the text of ``apply`` -----------------------------------------------------------------


def source(primitive: Primitive) -> str:
    """The text of the specialised functions of a primitive, for the curious."""
    texts = apply_source(primitive), push_source(primitive), free_source(primitive)
    return "\n".join(joined_lines(text) for text in texts)


def joined_lines(lines: Iterable[str]) -> str:
    """The text of a function: its head, and its body."""
    return "\n    ".join(lines) + "\n"


def apply_source(p: Primitive) -> Iterator[str]:
    """The text of ``apply``; of a primitive with a list slot it is given all arguments and binds them itself."""
    several = p.several
    places = [p.inputs.index(n) for n in p.differentiable]
    xs = "".join(f"{_star(p, k)}x{k}, " for k in range(len(p.inputs)))
    names = "".join(f"a{k}, " for k in range(len(p.attrs)))
    attrs = f"dict(zip(primitive.attrs, ({names})))"
    call = f"primitive, ({xs}), {attrs}"
    if p.list_input:
        yield "def apply(primitive, args, attrs):"
        yield "args, attrs = primitive.bind(args, attrs)"
        yield f"{xs}= args"
        if names:
            yield f"{names}= attrs.values()"
    else:  # what is given by name is looked for in ``named``, so that a call that does not fit gets here, too
        every = f"{xs}{names}"
        yield f"def apply({every.replace(',', '=REQUIRED,')}{'/, ' if every else ''}*more, **named):"
        yield f"if more or named: {every or '_, '}= primitive.placed(({every}*more), named)"
        for k, default in enumerate(p.attrs.values(), len(p.inputs)):
            if default is REQUIRED:
                yield f"if a{k - len(p.inputs)} is REQUIRED: raise primitive.call_error({k})"
    for k, n in enumerate(p.inputs):
        if n == p.list_input:
            yield f"if any(map(is_foreign, x{k})): return other_engine({call})"
            yield f"d{k} = [v._data if isinstance(v, Tensor) else v for v in x{k}]"
            yield f"e{k} = [v._node if isinstance(v, Tensor) else None for v in x{k}]"
        else:
            yield f"if x{k}.__class__ is Tensor: d{k} = x{k}._data; e{k} = x{k}._node"
            as_it_is = f" or x{k}.__class__ is float" if len(p.inputs) > 1 else ""
            yield f"elif x{k}.__class__ is ndarray{as_it_is}: d{k} = x{k}; e{k} = None"
            yield f"elif isinstance(x{k}, Tensor): d{k} = x{k}._data; e{k} = x{k}._node"
            yield f"elif isinstance(x{k}, Value): return other_engine({call})"
            yield f"elif x{k} is REQUIRED: raise primitive.call_error({k})"
            turned = "plain" if as_it_is else "as_array"
            behind = "".join(f"x{j}, " for j in range(k + 1, len(p.inputs)))
            yield f"else: d{k} = {turned}(x{k}, primitive, {k}, ({behind})); e{k} = None"
    arrays = [f"{_star(p, k)}d{k}" for k in range(len(p.inputs))]
    arrays += [f"{name}=a{k}" if p.list_input else f"a{k}" for k, name in enumerate(p.attrs)]
    yield f"try: out = _kernel({', '.join(arrays)})"
    yield f"except Exception as error: raise refused({call}, error) from error"
    plain_inputs = [
        f"x{k}.__class__ is not Tensor" for k, n in enumerate(p.inputs) if n != p.list_input
    ]
    no_tensor = " and ".join([*plain_inputs, f"not any_tensor(({xs}))"])
    cut = "t._node = None; t._cut = {}"
    if several:
        yield f"if {no_tensor}: return out"
        yield "out = outputs_of(primitive, out)"
        yield "t = [wrap(o) for o in out]"
        cut = f"for o in t: {cut.replace('t.', 'o.')}"
    else:
        if not of_package(p.kernel):
            yield "out = an_array(primitive, out)"
        yield f"if {no_tensor}: return out"
        yield "t = new(Tensor); t._data = out; t._grad = None; t._exposed = False"
    if p.view and p.inputs[0] != p.list_input:  # a graph may come later, by a change in place
        yield "if isinstance(x0, Tensor): x0._viewed = True"
        yield f"{'for o in t: o' if several else 't'}._exposed = isinstance(x0, Tensor) and x0._exposed"
    if not places or "out" in p.nondiff:
        yield cut.format("primitive")
        yield "return t"
        return
    yield f"if {' and '.join(_absent(p, k) for k in places)}:"
    yield "    return t" if several else "    t._node = None; return t"
    yield "m = mode()"
    yield "if m is not GRAD and not m.grad:"
    yield f"    {cut}".format("'no_grad'")
    yield "    return t"
    yield "leaves = None"
    for k in places:
        if p.inputs[k] == p.list_input:
            yield f"leaves = leaves, [v for v, e in zip(x{k}, e{k}) if e.__class__ is AccumulateGrad]"
        else:
            yield f"if e{k}.__class__ is AccumulateGrad: leaves = x{k} if leaves is None else (x{k}, leaves)"
    yield "n = NodeClass(); n.g = n.hooks = None; n.freed = False; n.seq = next_seq()"
    yield f"n.edges = ({''.join(f'{_star(p, k)}e{k}, ' for k in places)})"
    yield from _saved_lines(p)
    yield "f = _getframe(1)"
    yield "while '__minigrad_ops__' in f.f_globals: f = f.f_back"
    yield "n.code = f.f_code; n.lasti = f.f_lasti; n.leaves = leaves"
    yield "attach(n, t)" if several else "t._node = n"
    yield f"if m is not GRAD: observe(m, n, ({xs}), {attrs}, {'t' if several else '[t]'})"
    yield "return t"


def _star(p: Primitive, k: int) -> str:
    return "*" if p.inputs[k] == p.list_input else ""


def _absent(p: Primitive, k: int) -> str:
    return f"not any(e{k})" if p.inputs[k] == p.list_input else f"e{k} is None"


def _stretches(p: Primitive) -> bool:
    """Whether an input may be smaller than the output, and its gradient is summed to its shape."""
    return p.broadcasts and not p.several and len(p.inputs) > 1


def _saved_lines(p: Primitive) -> Iterator[str]:
    """What a node keeps of the values, attrs and shapes that its rules read."""
    place = {n: k for k, n in enumerate(p.inputs)}
    for s in p.saved():
        users = [n for n in p.differentiable if s in p.rules[n].reads]
        if s == p.list_input:
            value = f"owned(x{place[s]}, d{place[s]})"
        elif s in p.outputs:
            value = f"out[{p.outputs.index(s)}]" if len(p.outputs) > 1 else "out"
        else:
            k = place[s]
            value = f"d{k} if x{k}.__class__ is Tensor and not x{k}._exposed"
            value += f" or x{k}.__class__ is float else own(d{k})"
        needed = " or ".join(f"not ({_absent(p, place[n])})" for n in users)
        everyone = len(users) == len(p.differentiable)
        yield f"n._saved_{s} = {value if everyone else f'({value}) if {needed} else None'}"
    for r in p.reads():
        name, _, fact = r.rpartition("_")
        if r in p.attrs:
            a = f"a{[*p.attrs].index(r)}"
            changes = p.attrs[r] is None or p.attrs[r] is REQUIRED
            yield f"n._saved_{r} = {f'frozen({a}) if {a}.__class__ in MUTABLE else ' if changes else ''}{a}"
        elif name in place and fact in ("shape", "dtype"):  # else it is a value, or a gradient
            value = f"getattr({{}}, '{fact}', {'()' if fact == 'shape' else None})"
            d = f"d{place[name]}"
            listed = f"[{value.format('v')} for v in {d}]"
            yield f"n._saved_{r} = {listed if name == p.list_input else value.format(d)}"
    if p.several:
        yield "n.specs = [(o.shape, o.dtype) for o in out]"
    elif _stretches(p):  # of an input without an edge nobody will ask
        places = [place[n] for n in p.differentiable]
        each = ", ".join(f"out.shape if e{k} is None else d{k}.shape" for k in places)
        if len(p.inputs) == 2:
            yield "if x0.__class__ is float or x1.__class__ is float: n._shapes = None"
            yield "elif x0.__class__ is x1.__class__ and d0.shape == d1.shape: n._shapes = None"
            yield f"else: n._shapes = ({each},)"
        else:
            yield f"n._shapes = ({each},)"


# -- the texts of the way back -------------------------------------------------------------


def push_source(p: Primitive, name: str = "push") -> Iterator[str]:
    """The text of ``push``, ``pull`` or ``pull_graph``: the rules of the inputs whose edge is wanted.

    In ``push``, gradients of one place are first taken as they are, then added up in new memory,
    then in place.
    """
    several = p.several
    graph = name == "pull_graph"
    place = {n: k for k, n in enumerate(p.differentiable)}
    listed = place.get(p.list_input or "")
    if name == "push":
        yield "def push(n):"
        yield "g = n.g"
        yield "if g is None: return"
        yield "n.g = None"
        if several:
            yield "g = n.complete(g)"
    else:
        yield f"def {name}(n, g):"
    if place:
        yield f"{''.join(f'*e{k}, ' if k == listed else f'e{k}, ' for k in place.values())}= n.edges"
    if p.saved():
        yield "if n.freed: raise n.freed_error()"
    if _stretches(p):
        yield "s = n._shapes"
    for r, rule in enumerate(p.wanted_rules()):
        read = ", ".join(_argument(p, slot, place, graph) for slot in rule.reads)
        call = f"rule_{r}({read})"
        places = [place[n] for n in rule.inputs if n in place]
        if rule.joint:
            yield f"{''.join(f'g{k}, ' for k in places)} = {call}"
        for k in places:
            yield f"if {f'not any(e{k})' if k == listed else f'e{k} is None'}: g{k} = None"
            if not rule.joint:
                yield f"else: g{k} = {call}"
            if _stretches(p):
                yield f"if s is not None and g{k} is not None and g{k}.shape != s[{k}]:"
                yield f"    g{k} = _unbroadcast(g{k}, s[{k}])"
    if name == "push" and not several and listed is None:
        for n, k in place.items():  # what a joint rule made may be the gradient of two inputs
            own = "False" if p.rules[n].joint else f"g{k} is not g and g{k}.base is None"
            yield f"if g{k} is not None:"
            yield f"    h = e{k}.g"
            yield f"    if h is None: e{k}.g = g{k}; e{k}.own = {own}"
            yield f"    elif e{k}.own: h += g{k}; e{k}.g = h"
            yield f"    else: e{k}.g = h + g{k}; e{k}.own = True"
        return
    each = [f"*spread(g{k}, e{k}), " if k == listed else f"g{k}, " for k in place.values()]
    grads = f"({''.join(each)})"
    yield f"n.give({grads})" if name == "push" else f"return {grads}"


def free_source(p: Primitive) -> Iterator[str]:
    """The text of ``free``, for the slots of this class."""
    yield "def free(n, remember=False):"
    for s in p.saved():
        yield f"v = n._saved_{s}"
        yield "if v is not None:"
        yield "    n.freed = True"
        listed = s == p.list_input or (p.list_output and s in p.outputs)
        size = "bytes_of(v)" if listed else "v.__class__ is ndarray and v.nbytes"
        yield f"    if not remember or {size} > FEW_BYTES: n._saved_{s} = FREED"
    yield "return"


def _argument(p: Primitive, name: str, place: dict[str, int], graph: bool) -> str:
    """What a rule reads: a gradient or a saved value; for ``pull_graph``, as the Tensor it was."""
    of = name.removesuffix("_grad")
    if of != name and of in p.outputs:
        return f"g[{p.outputs.index(of)}]" if len(p.outputs) > 1 else "g"
    edge = f"e{place[name]}" if name in place else None
    if name in p.outputs and name not in p.nondiff:
        edge = f"Output(n, {p.outputs.index(name)})" if len(p.outputs) > 1 else "n"
        edge = "[Output(n, k) for k in range(len(n.specs))]" if p.list_output else edge
    value = f"n._saved_{name}"
    return f"joined({value}, {edge})" if graph and name in p.saved() else value


# -- functions of these texts ----------------------------------------------------------------


def node_class(primitive: Primitive) -> type[Node]:
    """The class of this primitive's nodes, named as PyTorch names them: ``MulBackward0``."""
    if primitive.node_class is not None:
        return primitive.node_class  # type: ignore[no-any-return]
    words = primitive.type.removeprefix("reduce_").split("_")
    title = primitive.title or "".join(w.capitalize() for w in words)
    grads = {f"{o}_grad" for o in primitive.outputs}
    slots = [f"_saved_{n}" for n in primitive.reads() if n not in grads]
    slots += ["_shapes"] if _stretches(primitive) else []
    namespace = {"__slots__": slots, "primitive": primitive, "__module__": __name__}
    namespace["saved_slots"] = tuple(f"_saved_{n}" for n in primitive.saved())
    bases = (RuleNode, Several) if primitive.several else (RuleNode,)
    primitive.node_class = new = type(f"{title}Backward0", bases, namespace)
    return new


def specialise(primitive: Primitive) -> None:
    """Replace the code of the primitive's public function by its fast version."""
    public = primitive.function
    fast = _compile(apply_source(primitive), "apply", public.__globals__, primitive)
    if primitive.list_input:  # which binds its arguments as `answer` does
        public.__globals__["answer"] = fast
        return
    names = {"co_name": public.__name__, "co_qualname": public.__qualname__}
    public.__code__ = fast.__code__.replace(**names)
    public.__defaults__ = (*primitive.parameters.values(),)


def _compile(lines: Iterable[str], name: str, namespace: ByName, primitive: Primitive) -> Any:
    """Compile text written by this module, which calls what stands here; nothing else of the engine does so."""
    text = joined_lines(lines)
    graph = name == "pull_graph"
    for k, rule in enumerate(primitive.wanted_rules()):
        namespace[f"rule_{k}"] = rule.function if graph else on_arrays(rule.function)
    kernel = primitive.kernel if primitive.list_input else fast_kernel(primitive)
    namespace.update(
        {name: value for name, value in globals().items() if name[:2] != "__"},
        primitive=primitive,
        _kernel=kernel,
        _unbroadcast=unbroadcast if graph else sum_to,
        __minigrad_ops__=True,  # an error in it is told with the user's line
    )
    if primitive.rules:
        namespace["NodeClass"] = node_class(primitive)
    exec(compile(text, f"<minigrad {primitive.type}>", "exec"), namespace)
    return namespace[name]


def on_arrays(rule) -> Any:
    """A rule of the package as it runs on arrays: with kernels in place of the functions that look at types first."""
    if not of_package(rule):
        return rule  # a user may define a name anew at any time
    names = rule.__globals__
    if (called := getattr(rule, "primitive", None)) is not None:
        return rule if called.list_input else fast_kernel(called)
    kernels = {}
    for name in rule.__code__.co_names:
        p = getattr(names.get(name), "primitive", None)
        if p is not None and not p.list_input:
            kernels[name] = fast_kernel(p)
    if not kernels:
        return rule
    names = {**names, **kernels}
    return FunctionType(rule.__code__, names, rule.__name__, rule.__defaults__, rule.__closure__)


def fast_kernel(primitive: Primitive) -> Any:
    """The kernel, which takes attrs by position, too: calls that name none stay in one loop of the interpreter.

    One that does no more than hand its inputs to a function of NumPy is that function; attrs have
    other names there.
    """
    kernel = primitive.kernel
    n = len(primitive.inputs)
    if not isinstance(kernel, FunctionType):
        return lambda *given, **attrs: kernel(
            *given[:n], **dict(zip(primitive.attrs, given[n:], strict=False)), **attrs
        )
    code = kernel.__code__
    hands_on = code.co_code in HANDS_ON and code.co_names[0] == "np"
    if hands_on and not primitive.attrs and kernel.__globals__.get("np") is np:
        return getattr(np, code.co_names[1])
    return by_position(kernel)


def _first_call(name: str) -> Any:
    """A method that writes this function for the class of its node, where it stands from then on."""

    def write(node, *args) -> Any:
        p = node.primitive
        lines = free_source(p) if name == "free" else push_source(p, name)
        setattr(type(node), name, _compile(lines, name, {}, p))
        return getattr(node, name)(*args)

    return write


class RuleNode(Node):
    """The node of a primitive."""

    __slots__ = ()
    push, pull, pull_graph, free = map(_first_call, ("push", "pull", "pull_graph", "free"))


def apply(primitive: Primitive, args: Args, attrs: Attrs) -> Any:
    """A call that `answer` hands to this engine: the first of a function."""
    public = primitive.function
    if public.__code__ is FIRST_CALL and public.__globals__["answer"] is other_engine:
        specialise(primitive)
    return public(*args, **attrs)


EAGER["apply"] = apply


# -- what these texts call -------------------------------------------------------------------


def own(value) -> Any:
    """A copy for saving: an array that a user can still reach may change before backward reads it."""
    return np.array(value) if isinstance(value, CHANGEABLE) else value


def owned(values, arrays: Listed) -> Listed:
    """The arrays of a list as they are saved."""
    pairs = zip(values, arrays, strict=True)
    return [d if isinstance(x, Tensor) and not x._exposed else own(d) for x, d in pairs]


def plain(value, primitive: Primitive, k: int, behind: Args) -> Any:
    """A number as it is (it takes on the other operand's dtype), anything else as an array."""
    return value if isinstance(value, AS_IT_IS) else as_array(value, primitive, k, behind)


def as_array(value, primitive: Primitive, k: int, behind: Args) -> Any:
    """What a kernel computes with, of its k-th input: none turns lists into arrays itself.

    An input ``behind`` it that was not given is told first.
    """
    unmasked(value)
    try:
        return np.asarray(plain_list(value) if isinstance(value, list) else value)
    except ValueError as error:
        for place, given in enumerate(behind, k + 1):
            if given is REQUIRED:
                raise primitive.call_error(place) from None
        raise op_error(primitive.type, [primitive.inputs[k]], [value], {}, error) from error


def an_array(primitive: Primitive, out) -> Any:
    """What a kernel returned, if it is an array or a number."""
    if isinstance(out, np.ndarray | np.generic):
        return out
    if isinstance(out, int | float):
        return np.asarray(out)
    what = f"the kernel of {primitive.type} returned {describe(out)}, not an array"
    raise refusal(what, "np.asarray(…) of it; functions of NumPy (np.exp, not math.exp)", RuleError)


def outputs_of(primitive: Primitive, result) -> Any:
    """The outputs that a kernel returned, as many as it has."""
    count = len(result) if isinstance(result, tuple | list) else 1
    if not primitive.list_output and count != len(primitive.outputs):
        what = f"the kernel of {primitive.type} returned {count} value(s)"
        raise refusal(what, f"one for each output: {', '.join(primitive.outputs)}", RuleError)
    return [an_array(primitive, out) for out in result]


def is_foreign(value) -> bool:
    """Whether another engine has to answer for a value."""
    return isinstance(value, Value) and not isinstance(value, Tensor)


def any_tensor(values: Args) -> bool:
    """Whether there is a Tensor among some values: one of a subclass, or in a list."""
    return any(isinstance(v, Tensor) for v in values)


def attach(node, outs: list[Tensor]) -> None:
    """Put each of several results behind its output of the node, if a gradient flows through it."""
    p = node.primitive
    for k, out in enumerate(outs):
        if p.outputs[0 if p.list_output else k] in p.nondiff or out._data.dtype.kind not in "fc":
            out._cut = p
        else:
            out._node = Output(node, k)


def observe(mode: Mode, node: Node, args: Args, attrs: Attrs, outs: Listed) -> None:
    """The rarely used switches: look for NaN and infinity, pack saved values, tell a recorder."""
    if mode.recorder is not None:
        mode.recorder(node.primitive, args, attrs, outs)
    if mode.anomaly:
        named = dict(zip(node.primitive.slot_names(len(args)), args, strict=True))
        check_finite(node.primitive.type, outs[0]._data, named, node.where())
    if mode.saved_hooks is not None:
        for slot in node.saved_slots:
            setattr(node, slot, packed(getattr(node, slot), *mode.saved_hooks))
        node._hooks()


def joined(value, edge) -> Any:
    """A saved value, or a list of them, as the Tensor it was: joined to the graph by its edge."""
    if isinstance(value, list):
        return [joined(v, e) for v, e in zip(value, edge or [None] * len(value), strict=True)]
    if not isinstance(value, np.ndarray | np.generic):
        return value
    return edge.variable if edge.__class__ is AccumulateGrad else wrap(value, edge)


def spread(grads, edges: Listed) -> Listed:
    """The gradients of a list, one per edge; None where nobody wants it."""
    if grads is None:
        return [None] * len(edges)
    return [g if e is not None else None for g, e in zip(grads, edges, strict=True)]
