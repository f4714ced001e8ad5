"""The checkers of step 14."""

import numpy as np

import minigrad as mg

from ..check import checker
from ..judge import Mismatch, close, same


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
