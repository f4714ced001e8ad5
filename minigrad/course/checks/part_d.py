"""The checkers of part D. Operators by name: steps 13 to 16."""

import ast
import re
from unittest.mock import patch

import numpy as np

from ..check import checker
from ..judge import Wrong, close, instance, require, same
from ..solution import rows


def operators(Operator, *lines):
    """Operators of any type, with any slots, from the lines that they print."""
    return [operator(Operator, line) for line in lines]


def operator(Operator, line):
    written, _, call = line.partition(" = ")
    type, _, slots = call.removesuffix(")").partition("(")
    op = Operator.__new__(Operator)  # its own __init__ asks the registry
    op.type, op.inputs, op.outputs, op.attrs = type, {}, {}, {}
    for number, listed in enumerate(re.findall(r"\[.*?\]|[^, ]+", written)):
        op.outputs[f"out{number or ''}"] = names(listed)
    for slot, value in re.findall(r"(\w+)=(\[.*?\]|[^,]+)", slots):
        if value[0].isalpha() or value[0] in "[@":
            op.inputs[slot] = names(value)
        else:
            op.attrs[slot] = ast.literal_eval(value)
    return op


def names(text):
    return re.findall(r"[\w@]+", text)


def lines(ops):
    return [str(op) for op in ops]


@checker("13e")
def build_grad_op(build_grad_op, Operator):
    registry = Operator.__init__.__globals__
    with patch.dict(registry["OPS"]) as ops:
        rules = lambda x: x, "joined", lambda out1, out_grad, out1_grad: out_grad
        registry["register"]("parts", *rules, outputs=("out", "out1"))
        for line, reads, writes in rows("13e"):
            op = operator(Operator, line)
            got = build_grad_op(op)
            instance(Operator, f"what comes back for {op}", got, "an Operator")
            same(f"the type of the grad op of {op}", got.type, ops[op.type].grad)
            same(f"what the grad op of {op} reads", dict(got.inputs), reads)
            same(f"what the grad op of {op} writes", dict(got.outputs), writes)
            same(f"what the grad op of {op} has for attributes", got.attrs, op.attrs)
            same("the forward operator afterwards", str(op), line)


@checker("13a")
def add_scale(add_scale, OPS, Operator, Scope, build_grad_op):
    with patch.dict(OPS):
        for type in ("scale", "scale_grad"):
            OPS.pop(type, None)
        add_scale()
        for wanted, slot in (("scale", "x"), ("scale_grad", "out_grad")):
            require(wanted in OPS, "the registry", ", ".join(OPS), f"one with {wanted!r}")
            same(f"the list of slots of {wanted}", list(OPS[wanted].inputs), [slot])
        for factor in (3.0, -0.5):
            op = operator(Operator, f"v = scale(x=u, factor={factor})")
            grad_op = build_grad_op(op)
            same("the type of the grad op", grad_op.type, "scale_grad")
            same("the attributes of the grad op", grad_op.attrs, {"factor": factor})
            same("what the grad op reads", dict(grad_op.inputs), {"out_grad": ["v@GRAD"]})
            scope = Scope({"u": np.array([2.0, -1.0]), "v@GRAD": np.array([1.0, 10.0])})
            op.run(scope)
            grad_op.run(scope)
            close(f"scale of [2, -1] by {factor:g}", scope["v"], [2 * factor, -factor])
            what = f"the gradient for out_grad [1, 10] and factor {factor:g}"
            close(what, scope["u@GRAD"], [factor, 10 * factor])
            close("what was x, [2, -1], afterwards", scope["u"], [2.0, -1.0])
            close("what was out_grad, [1, 10], afterwards", scope["v@GRAD"], [1.0, 10.0])


@checker("13b")
def needed(needed):
    for kind, known, shortest, divides in rows("13b"):
        require(kind in needed, f"the entry for {kind}", "missing", "a string of slots")
        entry = needed[kind]
        kinds = str | list | tuple | set | frozenset
        instance(kinds, f"the entry for {kind}", entry, "a string of slots")
        slots = entry.replace(",", " ").split() if isinstance(entry, str) else list(entry)
        right = [sorted(each.split()) for each in shortest]
        if sorted(map(str, slots)) not in right:
            raise Wrong(f"{kind}: {why_not(kind, slots, known, right, divides)}")


def why_not(kind, slots, known, right, divides):
    """What is wrong with a list of forward slots."""
    unknown = [slot for slot in slots if slot not in known]
    if unknown:
        return f"it has no forward slot {unknown[0]!r}, only {', '.join(known)}"
    listed = " and ".join(slot for slot in known if slot in slots) or "nothing"
    if quotient := divides.get(listed):
        return f"with {listed} you need {quotient}, which is 0 / 0 where both are 0"
    if any(set(needs) <= set(slots) for needs in right):
        return f"{listed} will do, but a shorter list does, too"
    return f"no rule of + - * / finds every slope from {listed}"


@checker("14e")
def mirror(mirror, NetOp, Operator):
    def said(answer):
        """An operator as text, a network as the list of what is in it."""
        if not isinstance(answer, NetOp):
            return str(answer) if isinstance(answer, Operator) else type(answer).__name__
        return [answer.type, *map(said, answer.ops)] if answer.ops else "nop"

    mul, add, last = operators(
        Operator, "h = mul(x=x, y=w)", "y = add(x=h, y=A)", "z = mul(x=y, y=y)"
    )
    layer = NetOp([mul, add], "layer")
    nets = {"h": mul, "y": layer, "z": NetOp([layer, last], "outer")}
    notebook, built = Operator.__init__.__globals__, []
    build = notebook["build_grad_op"]

    def noting(op):
        built.append(build(op))
        return built[-1]

    for out, net, cases, words, expected, noted in rows("14e"):
        before, answers, known = str(nets[out]), [], []
        for no_grad, reached in cases:
            known.append({name + "@GRAD" for name in reached})
            with patch.dict(notebook, build_grad_op=noting):
                answer = mirror(nets[out], set(no_grad), known[-1])
            answers.append(said(answer))
            others = [op for op in inside(answer, NetOp) if op not in built]
            if answers[-1] in expected and others:  # step 16 builds operators of another kind
                raise Wrong(f"{others[0]} is a copy, expected what build_grad_op made")
        same(f"the operator {net} afterwards", str(nets[out]), before)
        same(words, answers, expected)
        if noted:
            after = [sorted(each - {"@EMPTY@"}) for each in known]
            same("the list of gradients known after each of these", after, noted)


@checker("14a")
def fc(fc, NetOp, Scope, backward):
    below = fc("x", "w1", "b1", "h")
    net = NetOp([below, fc("h", "w2", "b2", "y")], "mlp")
    for inner in net.ops:
        same("what fc returns", type(inner).__name__, "NetOp")
        same("the type of the layer", inner.type, "fc")
    same("what two layers read", list(net.inputs["x"]), ["x", "w1", "b1", "w2", "b2"])
    same("what leaves the two layers", list(net.outputs["out"]), ["y"])
    values = {name: np.array(value) for name, value in rows("14a", "values").items()}
    scope = Scope({**values, "y@GRAD": np.ones((3, 1))})
    net.run(scope)
    close("y of two layers", scope["y"], rows("14a", "y"))
    written = set(net.outputs["out"] + net.outputs["inner"])
    same("the number of names that two layers write", len(written), 6)
    twins = NetOp([fc("x", "w1", "b1", "h"), fc("x", "w1", "b1", "k")])
    written = set(twins.outputs["out"] + twins.outputs.get("inner", []))
    same("the number of names that two layers of the same x, w and b write", len(written), 6)
    backward(net, {"x"}).run(scope)
    for name, expected in rows("14a", "gradients"):
        close(name, scope[name], expected)


@checker("14b")
def flatten(flatten, NetOp, Operator, backward):
    squares = operators(Operator, *(f"v{i + 1} = square(x=v{i})" for i in range(7)))
    deep = NetOp([squares[3], NetOp([squares[4]])], "deep")
    middle = NetOp([*squares[1:3], deep], "middle")
    first, *_, sixth, last = squares
    nest = NetOp([first, middle, NetOp([sixth]), last], "nest")
    plain = type(flatten(NetOp(squares[:2]))).__name__
    same("the type of what flatten returns for a net without nets", plain, "NetOp")
    before, flat = str(nest), flatten(nest)
    same("the list of operators of the flat network", lines(flat.ops), lines(squares))
    same("the nest that was given, afterwards,", str(nest), before)
    for no_grad in ((), ("v0",), ("v2",)):
        mirrored = lines(flatten(backward(nest, no_grad)).ops)
        alone = lines(op for op in backward(flat, no_grad).ops if not isinstance(op, NetOp))
        same(f"the flat backward network with no_grad = {list(no_grad)}", mirrored, alone)


@checker("14c")
def lonely(lonely, NetOp, Operator, backward):
    def affine(*ops):
        return NetOp(operators(Operator, *ops), "affine")

    instance(set | frozenset | list | tuple, "lonely", lonely, "a set of names")
    below = affine("h_part = mul(x=x, y=w1)", "h = add(x=h_part, y=b1)")
    above = affine("y_part = mul(x=h, y=w2)", "y = add(x=y_part, y=b2)")
    left = inside(backward(NetOp([below, above], "two_layers"), lonely), NetOp)
    names = ([name for slot in op.outputs.values() for name in slot] for op in left)
    written = [[name for name in each if name != "@EMPTY@"] for each in names]
    same("the list of what each operator that is left writes", written, [["b2@GRAD"]])


def inside(op, NetOp):
    """The operators of a nest, networks taken apart."""
    if not isinstance(op, NetOp):
        return [op]
    return [found for each in op.ops for found in inside(each, NetOp)]


@checker("15e")
def add_up(add_up, places, NetOp, Operator):
    def repaired(words, net, expected):
        add_up(net)
        same(f"the list of operators {words}", lines(op for _, op in places(net)), expected)

    cases = rows("15e")
    for words, ops, expected in cases:
        repaired(words, NetOp(operators(Operator, *ops)), expected)
    _, ops, expected = cases[2]
    first, *rest = operators(Operator, *ops)
    net = NetOp([first, NetOp(rest)])
    repaired("of a nest", net, expected)
    same("the number of operators in the inner net of the nest", len(net.ops[1].ops), 3)


@checker("15a")
def three_users(three_users, parts, Scope, backward, places):
    net = three_users()
    scope = Scope({"x1": 2.0, "x2": 5.0, "x3": 11.0, "W": 3.0, "y@GRAD": 1.0})
    net.run(scope)
    close("y", scope["y"], 54.0)
    grads = backward(net, {"x1", "x2", "x3"})
    grads.run(scope)
    close("W@GRAD", scope["W@GRAD"], 18.0)
    sums = [op for _, op in places(grads) if op.outputs.get("out") == ["W@GRAD"]]
    same("the number of parts of W@GRAD", len(sums[0].inputs["x"]) if sums else 1, 3)
    close("the list of parts", parts, [scope[name] for name in sums[0].inputs["x"]])


@checker("15b")
def by_hand(by_hand, Scope, Operator, NetOp):
    ops = list(by_hand)
    for op in ops:
        same("an entry of the list", type(op).__name__, "Operator")
    x = np.array([7.0, 8.0, 9.0, 0.0, 1.0])  # halves that differ: zeros like the wrong one show
    a, b = x[:3], x[3:]
    scope = Scope({"x": x, "a": a, "b": b, "y": np.exp(b)})
    scope["y@GRAD"] = np.array([1.0, 2.0])
    NetOp(ops).run(scope)
    close("x@GRAD for an a of 3 and a b of 2", scope["x@GRAD"], [0.0, 0.0, 0.0, 1.0, 2 * np.e])
    same("the number of operators", len(ops), 3)


@checker("15c")
def run_adding(run_adding, Scope, Operator, NetOp, build_grad_op, backward):
    for what, forward, gradients in rows("15c"):
        net = NetOp(operators(Operator, *forward))
        values = {"x": [2.0, 3.0], "z": [5.0, 7.0], "y@GRAD": [1.0, 1.0]}
        scope = Scope({name: np.array(value) for name, value in values.items()})
        net.run(scope)
        run_adding([build_grad_op(op) for op in reversed(net.ops)], scope)
        for name, expected in gradients.items():
            close(f"{name} of {what}", scope[name], expected)


@checker("16e")
def steps_back(steps_back, RnnOp, NetOp, Operator, Scope, backward):
    sums = "decayed = mul(x=h_pre, y=W)", "sum = add(x=decayed, y=x)", "shifted = add(x=sum, y=b)"
    net = NetOp(operators(Operator, *sums, "h = tanh(x=shifted)"), "step")
    for xs, states_grad, last, first, total, elements in rows("16e"):
        scope = Scope(W=0.7, b=-0.1, h0=0.2, xs=np.array(xs))
        RnnOp(net, "xs", "h0", "hs", "hT").run(scope)
        steps, totals = list(scope["hs@SCOPES"]), {"W": np.zeros(()), "b": np.zeros(())}
        given, outside = list(steps), [np.array(each) for each in (*states_grad, last)]
        answer = steps_back(backward(net), given, outside[:-1], outside[-1], totals)
        order = [number for each in given for number, step in enumerate(steps) if each is step]
        same("the list of step scopes, by number, afterwards", order, list(range(len(steps))))
        close("the list of gradients from outside, afterwards", outside, [*states_grad, last])
        parts = "elements' gradients, state's gradient, totals"
        instance(tuple | list, "what comes back", answer, parts, 3)
        words = f"for the states' gradients {states_grad} and {last} for the last one"
        close(f"the gradient of the first state {words}", answer[1], first)
        instance(dict, "the third result", answer[2], "totals, a dictionary")
        for name, wanted_sum in (("W", total), ("b", sum(elements))):
            close(f"the sum for {name} {words}", answer[2].get(name), wanted_sum)
        close(f"the list of gradients of the elements {words}", list(answer[0]), elements)
        left = all("W@GRAD" in step for step in steps)
        require(left, "what is left in the scope of each step", "no W@GRAD", "its own W@GRAD")
