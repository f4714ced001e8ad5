"""The checkers of part D. Operators by name: steps 13 to 16."""

import numpy as np

import minigrad as mg

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


@checker("14e")
def mirror(mirror, NetOp, Operator):
    def op(type, out, **slots):
        return Operator(type, slots, {"out": out})

    def said(answer):
        """An operator as text, a network as the list of what is in it."""
        if not isinstance(answer, NetOp):
            return str(answer) if isinstance(answer, Operator) else type(answer).__name__
        return [answer.type, *map(said, answer.ops)] if answer.ops else "nop"

    def answers(words, asked, *cases):
        """What is said for cases of no_grad and known; what each case notes in known."""
        before, noted = str(asked), [{name + "@GRAD" for name in known} for _, known in cases]
        pairs = zip(cases, noted, strict=True)
        made = [said(mirror(asked, set(no_grad), known)) for (no_grad, _), known in pairs]
        same(f"the operator {words} afterwards", str(asked), before)
        return made, [sorted(known - {"@EMPTY@"}) for known in noted]

    mul, add = op("mul", "h", x="x", y="w"), op("add", "y", x="h", y="b")
    layer = NetOp([mul, add], "layer")
    mul_grad = "{}, {} = mul_grad(x=x, y=w, out_grad=h@GRAD)"
    add_grad = "{}, {} = add_grad(out_grad=y@GRAD)"
    both = ["layer_grad", add_grad.format("h@GRAD", "b@GRAD"), mul_grad.format("x@GRAD", "w@GRAD")]
    cut = ["layer_grad", add_grad.format("@EMPTY@", "b@GRAD"), "nop"]
    asked = ("", "h"), ("x", "h"), ("xw", "h"), ("", ""), ("xw", "")
    made, noted = answers("h = x * w", mul, *asked)
    same(
        "the list of answers for h = x * w: all wanted, x not, x and w not, h@GRAD not known, neither",
        made,
        [both[2], mul_grad.format("@EMPTY@", "w@GRAD"), "nop", "nop", "nop"],
    )
    expected = [["h@GRAD", "w@GRAD", "x@GRAD"], ["h@GRAD", "w@GRAD"], ["h@GRAD"], [], []]
    same("the list of gradients known after each of these", noted, expected)
    made, _ = answers("y = x * w + b", layer, ("", "y"), ("h", "y"), ("xwb", "y"))
    words = "the list of answers for y = x * w + b: all wanted, h not, x and w and b not"
    same(words, made, [both, cut, "nop"])
    nest = NetOp([layer, op("mul", "z", x="y", y="y")], "outer")
    made, _ = answers("z = y * y behind y = x * w + b", nest, ("b", "z"))
    last = "y@GRAD, y@GRAD = mul_grad(x=y, y=y, out_grad=z@GRAD)"
    inner = ["layer_grad", add_grad.format("h@GRAD", "@EMPTY@"), both[2]]
    same(
        "the answer for z = y * y behind a layer, b not wanted", made, [["outer_grad", last, inner]]
    )


@checker("14a")
def fc(fc, NetOp, Scope, backward):
    net = NetOp([fc("x", "w1", "b1", "h"), fc("h", "w2", "b2", "y")], "mlp")
    for inner in net.ops:
        same("what fc returns", type(inner).__name__, "NetOp")
        same("the type of the layer", inner.type, "fc")
    same("what two layers read", list(net.inputs["x"]), ["x", "w1", "b1", "w2", "b2"])
    same("what leaves the two layers", list(net.outputs["out"]), ["y"])
    random = np.random.default_rng(14)
    shapes = {"x": (3, 2), "w1": (2, 4), "b1": (4,), "w2": (4, 1), "b2": (1,)}
    values = {name: random.normal(size=shape) for name, shape in shapes.items()}
    scope = Scope({**values, "y@GRAD": np.ones((3, 1))})
    net.run(scope)
    tensors = {name: mg.tensor(value, requires_grad=True) for name, value in values.items()}
    y = tensors["x"]
    for layer in "12":
        y = mg.sigmoid(y @ tensors[f"w{layer}"] + tensors[f"b{layer}"])
    close("y of two layers", scope["y"], y.detach().numpy())
    written = set(net.outputs["out"] + net.outputs["inner"])
    same("the number of names that two layers write", len(written), 6)
    backward(net, {"x"}).run(scope)
    parameters = ("w1", "b1", "w2", "b2")
    grads = mg.grad(y.sum(), [tensors[name] for name in parameters])
    for name, grad in zip(parameters, grads, strict=True):
        close(f"{name}@GRAD", scope[f"{name}@GRAD"], np.asarray(grad))


@checker("14b")
def flatten(flatten, NetOp, Operator, backward):
    def chain(start, length):
        return [
            Operator("square", {"x": f"v{i}"}, {"out": f"v{i + 1}"})
            for i in range(start, start + length)
        ]

    nest = NetOp(
        [
            *chain(0, 1),
            NetOp([*chain(1, 2), NetOp(chain(3, 2), "deep")], "middle"),
            NetOp(chain(5, 1)),
            *chain(6, 1),
        ],
        "nest",
    )
    plain = type(flatten(NetOp(chain(0, 2)))).__name__
    same("the type of what flatten returns for a net without nets", plain, "NetOp")
    before, flat = str(nest), flatten(nest)
    wanted = [f"v{i + 1} = square(x=v{i})" for i in range(7)]
    same("the list of operators of the flat network", list(map(str, flat.ops)), wanted)
    same("the nest that was given, afterwards,", str(nest), before)
    for no_grad in ((), ("v0",), ("v2",)):
        mirrored = [str(op) for op in flatten(backward(nest, no_grad)).ops]
        alone = [str(op) for op in backward(flat, no_grad).ops if not isinstance(op, NetOp)]
        same(f"the flat backward network with no_grad = {list(no_grad)}", mirrored, alone)


@checker("14c")
def lonely(lonely, NetOp, Operator, backward):
    def affine(x, w, b, out):
        return NetOp(
            [
                Operator("mul", {"x": x, "y": w}, {"out": out + "_part"}),
                Operator("add", {"x": out + "_part", "y": b}, {"out": out}),
            ],
            "affine",
        )

    if not isinstance(lonely, set | frozenset | list | tuple):
        raise Mismatch("lonely", lonely, "a set of names")
    net = NetOp([affine("x", "w1", "b1", "h"), affine("h", "w2", "b2", "y")], "two_layers")
    left = operators(backward(net, lonely), NetOp)
    written = [[n for names in op.outputs.values() for n in names if n[0] != "@"] for op in left]
    same("the list of what each operator that is left writes", written, [["b2@GRAD"]])


def operators(net, NetOp):
    """The operators of a nest, networks taken apart."""
    waiting, found = [net], []
    while waiting:
        op = waiting.pop()
        if isinstance(op, NetOp):
            waiting.extend(reversed(op.ops))
        else:
            found.append(op)
    return found


@checker("15e")
def add_up(add_up, places, NetOp, Operator):
    def square(x, out):
        return Operator("square", {"x": x}, {"out": out})

    def repaired(words, *ops, expected):
        net = NetOp([*ops])
        add_up(net)
        same(f"the list of operators {words}", [str(op) for _, op in places(net)], expected)
        return net

    alone = "b = square(x=a)"
    repaired("where nobody shares a name", square("a", "b"), expected=[alone])
    p = ["p@RENAME@0 = square(x=a)", "p@RENAME@1 = square(x=b)", "q = square(x=p)"]
    total = "p = sum(x=[p@RENAME@0, p@RENAME@1])"
    repaired(
        "where three write p and q reads it",
        *(square(x, "p") for x in "abc"),
        square("p", "q"),
        expected=[
            *(f"p@RENAME@{k} = square(x={x})" for k, x in enumerate("abc")),
            "p = sum(x=[p@RENAME@0, p@RENAME@1, p@RENAME@2])",
            "q = square(x=p)",
        ],
    )
    repaired(
        "where p has two writers and q reads p",
        *(square("a", "p"), square("b", "p"), square("p", "q")),
        expected=[*p[:2], total, p[2]],
    )
    repaired(
        "where one writes b, and then two write p",
        *(square("a", "b"), square("a", "p"), square("b", "p")),
        expected=[alone, *p[:2], total],
    )
    empty = [f"@EMPTY@ = square(x={x})" for x in "ab"]
    repaired(
        "where @EMPTY@ is written twice", *(square(x, "@EMPTY@") for x in "ab"), expected=empty
    )
    split = Operator("split", {"x": "x"}, {"out": ["p", "p"]})
    expected = ["[p@RENAME@0, p@RENAME@1] = split(x=x)", total]
    repaired("where one operator writes p twice", split, expected=expected)
    inner = NetOp([square("b", "p"), square("p", "q")])
    net = repaired("of a nest", square("a", "p"), inner, expected=[*p[:2], total, p[2]])
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
    scope = Scope({"x": x, "a": x[:3], "b": x[3:], "y": np.exp(x[3:])})
    scope["y@GRAD"] = np.array([1.0, 2.0])
    NetOp(ops).run(scope)
    close("x@GRAD for an a of 3 and a b of 2", scope["x@GRAD"], [0.0, 0.0, 0.0, 1.0, 2 * np.e])
    same("the number of operators", len(ops), 3)


@checker("15c")
def run_adding(run_adding, Scope, Operator, NetOp, build_grad_op, backward):
    def op(type, out, **inputs):
        return Operator(type, inputs, {"out": out})

    nets = {
        "y = x * z": [op("mul", "y", x="x", y="z")],
        "y = x² · x": [op("square", "t", x="x"), op("mul", "y", x="t", y="x")],
        "y = x * x": [op("mul", "y", x="x", y="x")],
        "y = (x + x) + x": [op("add", "t", x="x", y="x"), op("add", "y", x="t", y="x")],
        "the diamond": [
            op("square", "a", x="x"),
            op("square", "b", x="a"),
            op("square", "c", x="a"),
            op("add", "y", x="b", y="c"),
        ],
    }
    for what, ops in nets.items():
        values = {"x": np.array([2.0, 3.0]), "z": np.array([5.0, 7.0]), "y@GRAD": np.ones(2)}
        right, observed = Scope(values), Scope(values)
        for scope in (right, observed):
            NetOp(ops).run(scope)
        backward(NetOp(ops)).run(right)
        run_adding([build_grad_op(each) for each in reversed(ops)], observed)
        for name in [each for each in ("x@GRAD", "y@GRAD", "z@GRAD") if each in right]:
            close(f"{name} of {what}", observed[name], right[name])


@checker("16e")
def steps_back(steps_back, RnnOp, NetOp, Operator, Scope, backward):
    net = NetOp(
        [
            Operator("mul", {"x": "h_pre", "y": "W"}, {"out": "decayed"}),
            Operator("add", {"x": "decayed", "y": "x"}, {"out": "sum"}),
            Operator("tanh", {"x": "sum"}, {"out": "h"}),
        ],
        "step",
    )
    for xs, states_grad, last in (
        ([0.5, -0.3], [2.0, 5.0], 3.0),
        ([0.4], [0.0], 1.0),
        ([0.5, -0.3, 0.8, 0.1], [1.0, 5.0, -2.0, 3.0], 0.5),
        ([], [], 3.0),
    ):
        scope = Scope(W=0.7, h0=0.2, xs=np.array(xs))
        RnnOp(net, "xs", "h0", "hs", "hT").run(scope)
        steps, totals = list(scope["hs@SCOPES"]), {"W": np.zeros(())}
        answer = steps_back(backward(net), steps, list(states_grad), last, totals)
        if not isinstance(answer, (tuple, list)) or len(answer) != 3:
            raise Mismatch(
                "what comes back", answer, "elements' gradients, state's gradient, totals"
            )
        elements: list[float] = []
        total, back = 0.0, last
        for step, from_outside in zip(reversed(steps), reversed(states_grad), strict=True):
            back = (back + from_outside) * (1 - float(step["h"]) ** 2)  # the slope of tanh
            elements.insert(0, back)
            total += back * float(step["h_pre"])
            back *= 0.7
        words = f"for the states' gradients {states_grad} and {last} for the last one"
        close(f"the gradient of the first state {words}", answer[1], back)
        if not isinstance(answer[2], dict):
            raise Mismatch("the third result", answer[2], "totals, a dictionary")
        close(f"the sum for W {words}", answer[2].get("W"), total)
        close(f"the list of gradients of the elements {words}", list(answer[0]), elements)
