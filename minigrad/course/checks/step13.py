"""The checkers of step 13."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, Wrong, close, same

#: The shortest lists of forward slots that a rule of + - * / can do with; each of them is right.
SHORTEST: dict[str, list[set[str]]] = {
    "add": [set()],
    "neg": [set()],
    "mul": [{"x", "y"}],
    "exp": [{"out"}],
    "log": [{"x"}],
    "tanh": [{"out"}],
    "sqrt": [{"out"}],
    "div": [{"x", "y"}, {"y", "out"}],
}
#: What a rule of + - * / can do with almost everywhere: the missing factor is a quotient.
DIVIDES: dict[str, dict[tuple[str, ...], str]] = {
    "mul": {("x", "out"): "y = out / x", ("out", "y"): "x = out / y"},
    "div": {("x", "out"): "y = x / out"},
}


@checker("13e")
def build_grad_op(build_grad_op, Operator):
    for op in (
        Operator("mul", {"x": "c", "y": "d"}, {"out": "e"}),
        Operator("exp", {"x": "u"}, {"out": "v"}),
        Operator("add", {"x": "a", "y": "a"}, {"out": "c"}),
        Operator("add", {"x": ["a", "b"], "y": "d"}, {"out": "c"}),
        Operator("power", {"x": "u"}, {"out": "v"}, {"n": 3}),
    ):
        before = str(op)
        grad_op = build_grad_op(op)
        if not isinstance(grad_op, Operator):
            raise Mismatch(f"what comes back for {op}", grad_op, "an Operator")
        reads = {"mul": {"x": ["c"], "y": ["d"]}, "exp": {"out": ["v"]}, "power": {"x": ["u"]}}
        gradients = {slot + "_grad": [n + "@GRAD" for n in op.outputs[slot]] for slot in op.outputs}
        expected = reads.get(op.type, {}) | gradients
        same(f"the type of the grad op of {op}", grad_op.type, f"{op.type}_grad")
        same(f"what the grad op of {op} reads", dict(grad_op.inputs), expected)
        expected = {slot + "_grad": [n + "@GRAD" for n in op.inputs[slot]] for slot in op.inputs}
        same(f"what the grad op of {op} writes", dict(grad_op.outputs), expected)
        same(f"what the grad op of {op} has for attributes", grad_op.attrs, op.attrs)
        same("the forward operator afterwards", str(op), before)


@checker("13a")
def add_scale(add_scale, OPS, Operator, Scope, build_grad_op):
    before = {type: info for type, info in OPS.items() if type not in ("scale", "scale_grad")}
    try:
        OPS.clear()
        OPS.update(before)
        add_scale()
        scaled(OPS, Operator, Scope, build_grad_op)
    finally:
        OPS.clear()
        OPS.update(before)


def scaled(OPS, Operator, Scope, build_grad_op):
    """Judge the two operators that add_scale has registered."""
    for wanted in ("scale", "scale_grad"):
        if wanted not in OPS:
            raise Mismatch("the registry", ", ".join(OPS), f"one with {wanted!r}")
    same("the list of slots of scale", list(OPS["scale"].inputs), ["x"])
    same("the list of slots of scale_grad", list(OPS["scale_grad"].inputs), ["out_grad"])
    op = Operator("scale", {"x": "u"}, {"out": "v"}, {"factor": 3.0})
    grad_op = build_grad_op(op)
    same("the type of the grad op", grad_op.type, "scale_grad")
    same("the attributes of the grad op", grad_op.attrs, {"factor": 3.0})
    same("what the grad op reads", dict(grad_op.inputs), {"out_grad": ["v@GRAD"]})
    scope = Scope({"u": np.array([2.0, -1.0]), "v@GRAD": np.array([1.0, 10.0])})
    op.run(scope)
    grad_op.run(scope)
    close("scale of [2, -1] by 3", scope["v"], [6.0, -3.0])
    close("the gradient for out_grad [1, 10] and factor 3", scope["u@GRAD"], [3.0, 30.0])


@checker("13b")
def needed(needed):
    for kind, right in SHORTEST.items():
        if kind not in needed:
            raise Mismatch("the entry for " + kind, "missing", "a string of slots")
        entry = needed[kind]
        slots = entry.replace(",", " ").split() if isinstance(entry, str) else list(entry)
        if set(slots) not in right:
            raise Wrong(f"{kind}: {why_not(kind, slots, right)}")


def why_not(kind, slots, right):
    """What is wrong with a list of forward slots."""
    known = ("x", "y", "out") if kind in ("add", "mul", "div") else ("x", "out")
    unknown = [slot for slot in slots if slot not in known]
    if unknown:
        return f"{kind} has no forward slot {unknown[0]!r}, only {', '.join(known)}"
    listed = " and ".join(slot for slot in known if slot in slots) or "nothing"
    for missing, quotient in DIVIDES.get(kind, {}).items():
        if set(slots) == set(missing):
            return f"with {listed} you need {quotient}, which is 0 / 0 where both are 0"
    if any(needs < set(slots) for needs in right):
        return f"{listed} will do, but a shorter list does, too"
    return f"no rule of + - * / finds the slope from {listed}"
