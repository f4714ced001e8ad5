"""The checkers of step 13."""

from functools import partial

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, raises, same

#: The shortest lists of forward slots that a rule of + - * / can do with; each of them is right.
SHORTEST = {
    "add": [""],
    "neg": [""],
    "mul": ["x y"],
    "exp": ["out"],
    "log": ["x"],
    "tanh": ["out"],
    "sqrt": ["out"],
    "div": ["x y", "y out"],
}


@checker("13a", hint="the rule needs no x; factor stands behind the * of both kernels")
def add_scale(add_scale, OPS, Operator, Scope, build_grad_op):
    for known in ("scale", "scale_grad"):
        OPS.pop(known, None)
    add_scale()
    for wanted in ("scale", "scale_grad"):
        if wanted not in OPS:
            raise Mismatch("the registry", ", ".join(OPS), f"one with {wanted!r}")
    same("the slots of scale", list(OPS["scale"].inputs), ["x"])
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


@checker("13b", hint="write the rule with + - * / only, then look which of x, y, out stand in it")
def needed(needed):
    for kind, right in SHORTEST.items():
        if kind not in needed:
            raise Mismatch("the entry for " + kind, "missing", "a string of slots")
        slots = " ".join(sorted(str(needed[kind]).replace(",", " ").split(), key="x y out".find))
        if slots not in right:
            expected = f"{len(right[0].split())} slot(s), enough for a rule of + - * /"
            raise Mismatch(f"the list for {kind}", slots or "empty", expected)


@checker("13c", hint="get_close_matches(type, known, n=1) is a list, empty where nothing is near")
def refusals(lookup, enroll):
    known = ["add", "mul", "sigmoid"]
    same("lookup of 'mul'", lookup("mul", known), "mul")
    for word, near in (("sigmiod", "sigmoid"), ("mull", "mul")):
        call = partial(lookup, word, known)
        said = str(raises(f"lookup of {word!r}", LookupError, call))
        for part in (word, near):
            if part not in said.replace(word, "", part != word):
                raise Mismatch(f"the message for {word!r}", said, f"a message that quotes {part!r}")
    said = str(raises("lookup of 'zzz'", LookupError, partial(lookup, "zzz", known)))
    if any(each in said for each in known):
        raise Mismatch("the message for 'zzz'", said, "no proposal, nothing known is near")
    if "zzz" not in said:
        raise Mismatch("the message for 'zzz'", said, "a message that quotes 'zzz'")
    enrolled = list(enroll("exp", known))
    same("the list with exp enrolled", enrolled, ["add", "mul", "sigmoid", "exp"])
    same("the list that was given to enroll", known, ["add", "mul", "sigmoid"])
    said = str(raises("a second 'mul'", ValueError, partial(enroll, "mul", known)))
    if "mul" not in said:
        raise Mismatch("the message for a second 'mul'", said, "a message that quotes 'mul'")
