"""The text of the fast functions of a primitive, from its one declaration; `specialise.py` makes functions of it.

Names are those of the kernel's parameters, with a prefix: ``d_x`` the array of x, ``e_x`` its edge, ``g_x`` its
gradient; names with an underscore at the end belong to the engine.
"""

from __future__ import annotations

from itertools import combinations

from ..primitives.arguments import REQUIRED
from ..primitives.registry import Primitive, Rule

PASS_ON = (lambda out_grad: out_grad).__code__


def of_package(primitive: Primitive) -> bool:
    """Whether the kernel is one of minigrad's own."""
    return bool(primitive.kernel.__module__.startswith("minigrad."))


def source(primitive: Primitive) -> str:
    """The text of the specialised functions of a primitive, for the curious."""
    return "\n".join(
        [
            apply_source(primitive) or "# generic path\n",
            pull_source(primitive),
            push_source(primitive),
            reach_source(primitive),
            free_source(primitive),
        ]
    )


def is_generic(p: Primitive) -> bool:
    """Lists and several outputs go through `apply_generic`; everything else gets code of its
    own.
    """
    return bool(p.list_input or p.list_output or len(p.outputs) > 1)


def apply_source(p: Primitive) -> str | None:
    """The text of ``apply``; None where the generic path is used."""
    if is_generic(p):
        return None
    params = [f"{n}=None" if n in p.optional else f"{n}=REQUIRED" for n in p.inputs]
    settings = [f"{a}=REQUIRED" if d is REQUIRED else f"{a}={d!r}" for a, d in p.attrs.items()]
    if p.optional and REQUIRED in p.attrs.values():
        params += ["*more_", *settings, "**unknown_"]
    else:  # what else is given is refused, with the names that are known
        params += [*settings, "*more_", "**unknown_"]
    args = ", ".join(p.inputs) + ("," if len(p.inputs) == 1 else "")
    attr_dict = "{" + ", ".join(f"{a!r}: {a}" for a in p.attrs) + "}"
    w = Writer(f"def {p.function.__name__}({', '.join(params)}):")
    every = len(p.inputs) + len(p.attrs)
    w(f"if more_ or unknown_: raise _call_error({every} + len(more_), *list(unknown_)[:1])")
    for k, (a, d) in enumerate(p.attrs.items(), len(p.inputs)):
        if d is REQUIRED:
            w(f"if {a} is REQUIRED: raise _call_error({k})")
    for n in p.inputs:
        edge = f"; e_{n} = {n}._node" if n in p.rules else ""
        w(f"if {n}.__class__ is Tensor: d_{n} = {n}._data{edge}")
        w(
            f"elif {n}.__class__ is ndarray: d_{n} = {n}"
            + (f"; e_{n} = None" if n in p.rules else "")
        )
        w(f"elif {n}.__class__ is float: d_{n} = {n}" + (f"; e_{n} = None" if n in p.rules else ""))
        w(f"elif isinstance({n}, Value): return _others(primitive, ({args}), {attr_dict})")
        if n not in p.optional:
            w(f"elif {n} is REQUIRED: raise _call_error({p.inputs.index(n)})")
        w(f"else: d_{n} = _plain({n})" + (f"; e_{n} = None" if n in p.rules else ""))
    w(f"try: out_ = _kernel({', '.join([*('d_' + n for n in p.inputs), *p.attrs])})")
    w(
        f"except Exception as error_: raise _op_error(primitive.type, primitive.inputs, ({args}), "
        f"{attr_dict}, error_) from error_"
    )
    if not of_package(p):
        w("out_ = _array(primitive, out_)")
    arrays = " and ".join(f"{n}.__class__ is not Tensor" for n in p.inputs) or "True"
    exposed = (
        f"({p.inputs[0]}.__class__ is Tensor and {p.inputs[0]}._exposed)" if p.view else "False"
    )
    made = f"t_ = _new(Tensor); t_._data = out_; t_._grad = None; t_._exposed = {exposed}"
    if not p.rules or "out" in p.nondiff:
        w(f"if {arrays}: return out_")
        w(f"{made}; t_._node = None; t_._cut = primitive; return t_")
        return w.text
    none = " and ".join(f"e_{n} is None" for n in p.differentiable)
    w(f"if {none}:")
    w(f"    if {arrays}: return out_")
    w(f"    {made}; t_._node = None; return t_")
    w(made)
    w("m_ = _mode()")
    w("if m_ is not GRAD and not m_.grad: t_._node = None; t_._cut = 'no_grad'; return t_")
    w("kept_ = None")
    for n in p.differentiable:
        w(f"if e_{n}.__class__ is Leaf:")
        w(f"    e_{n} = e_{n}.node or e_{n}.accumulator({n})")
        w(f"    kept_ = {n} if kept_ is None else ({n}, kept_)")
    w("n_ = NodeClass(); n_.g = n_.hooks = None; n_.freed = False")
    w("n_.mark = 0; n_.seq = _next_seq()")
    edges = [f"e_{n}" for n in p.differentiable]
    w(f"n_.e0 = {edges[0]}; n_.e1 = {edges[1] if len(edges) > 1 else 'None'}")
    if len(edges) > 2:
        w(f"n_.more = ({', '.join(edges[2:])},)")
    _write_saved(p, w)
    w("f_ = _getframe(1)")
    w("while '__minigrad_ops__' in f_.f_globals: f_ = f_.f_back")
    w("n_.code = f_.f_code; n_.lasti = f_.f_lasti; n_.kept = kept_")
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
            else f"d_{s} if {s}.__class__ is Tensor and not {s}._exposed or {s}.__class__ is float"
            f" else _own(d_{s})"
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
        elif r.endswith("_shape") and (name := r.removesuffix("_shape")) in p.inputs:
            asking = [n for n in p.differentiable if r in p.rules[n].reads]
            if asking == [name]:  # what has an edge has a shape; without one nobody will ask
                w(f"n_._{r} = None if e_{name} is None else d_{name}.shape")
            else:
                w(f"n_._{r} = getattr(d_{name}, 'shape', ())")
        elif r.endswith("_dtype") and r.removesuffix("_dtype") in p.inputs:
            w(f"n_._{r} = getattr(d_{r.removesuffix('_dtype')}, 'dtype', None)")
    if p.broadcasts:
        names = p.differentiable
        w("s_ = out_.shape")  # of an input without an edge nobody will ask
        same = " and ".join(f"(e_{n} is None or d_{n}.shape == s_)" for n in names)
        each = ", ".join(f"s_ if e_{n} is None else d_{n}.shape" for n in names)
        w(f"n_._shapes = None if {same} else ({each},)")


def pull_source(p: Primitive) -> str:
    """The text of ``pull``: the gradient rules of one node, on arrays."""
    w = Writer("def pull(n, g):")
    _write_rules(p, w, dict(zip(p.differentiable, _edges(p), strict=True)))
    w(f"return {', '.join('g_' + n for n in p.differentiable)},")
    return w.text


def push_source(p: Primitive) -> str:
    """The text of ``push``: the same, and each gradient is added where its edge leads, as `Node.push` does it."""
    w = Writer("def push(n):")
    w("g = n.g")
    w("if g is None: return")
    w("n.g = None")
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


def _edges(p: Primitive) -> list[str]:
    """Where a node of this primitive has the edge of each differentiable input."""
    several = [f"n.more[{k}]" for k in range(len(p.differentiable) - 2)]
    return ["n.e0", "n.e1", *several][: len(p.differentiable)]


def _write_rules(p: Primitive, w: Writer, edges: dict[str, str]) -> None:
    """``g_x = …`` for every input: None where there is no edge."""
    if p.saved():
        w("if n.freed: raise n.freed_error()")
    for k, rule in enumerate(p.wanted_rules()):
        given = ", ".join(_argument(p, r) for r in rule.reads)
        call = given if _passes_on(rule) else f"rule_{k}({given})"
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


def _passes_on(rule: Rule) -> bool:
    """Whether a rule gives on what it is given, as those of a sum do: nothing is called then."""
    return getattr(rule.function, "__code__", PASS_ON).co_code == PASS_ON.co_code


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


def _argument(p: Primitive, name: str) -> str:
    if name.endswith("_grad") and name.removesuffix("_grad") in p.outputs:
        return "g" if len(p.outputs) == 1 else f"g[{p.outputs.index(name.removesuffix('_grad'))}]"
    return f"n._saved_{name}" if name in p.saved() else f"n._{name}"


class Writer:
    """Collects indented lines."""

    def __init__(self, head: str) -> None:
        self.text = head + "\n"

    def __call__(self, line: str) -> None:
        self.text += f"    {line}\n"
