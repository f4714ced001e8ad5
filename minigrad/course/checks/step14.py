"""The checkers of step 14."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@checker("14a", hint="three operators in a NetOp; name what is on the way after out, as in affine")
def fc(fc, NetOp, Scope, backward):
    net = NetOp([fc("x", "w1", "b1", "h"), fc("h", "w2", "b2", "y")], "mlp")
    for inner in net.ops:
        same("what fc returns", type(inner).__name__, "NetOp")
        same("the type of the layer", inner.type, "fc")
    same("what two layers read", list(net.inputs["x"]), ["x", "w1", "b1", "w2", "b2"])
    same("what leaves the two layers", list(net.outputs["out"]), ["y"])
    same(
        "the number of names that two layers write",
        len(set(net.outputs["out"] + net.outputs["inner"])),
        6,
    )
    values = sample()
    scope = Scope({**values, "y@GRAD": np.ones((3, 1))})
    net.run(scope)
    backward(net, {"x"}).run(scope)
    close("y of two layers", scope["y"], forward(values))
    for name in ("w1", "b1", "w2", "b2"):
        close(f"{name}@GRAD", scope[f"{name}@GRAD"], slopes(values, name), rtol=1e-6, atol=1e-8)


def sample():
    random = np.random.default_rng(14)
    shapes = {"x": (3, 2), "w1": (2, 4), "b1": (4,), "w2": (4, 1), "b2": (1,)}
    return {name: random.normal(size=shape) for name, shape in shapes.items()}


def forward(values):
    hidden = sigmoid(values["x"] @ values["w1"] + values["b1"])
    return sigmoid(hidden @ values["w2"] + values["b2"])


def slopes(values, name, eps=1e-5):
    """Central differences of the sum of y, element by element."""
    found = np.zeros_like(values[name])
    for place in np.ndindex(found.shape):
        move = np.zeros_like(found)
        move[place] = eps
        up, down = ({**values, name: values[name] + sign * move} for sign in (1, -1))
        found[place] = (forward(up).sum() - forward(down).sum()) / (2 * eps)
    return found


@checker("14b", hint="a net in the net: flatten it first, then take its operators")
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
        ],
        "nest",
    )
    flat = flatten(nest)
    same("the type of what flatten returns", type(flat).__name__, "NetOp")
    wanted = [f"v{i + 1} = square(x=v{i})" for i in range(6)]
    same("the operators of the flat network", list(map(str, flat.ops)), wanted)
    same("the first operator of the nest, after flatten", str(nest.ops[0]), wanted[0])
    for no_grad in ((), ("v0",), ("v2",)):
        mirrored = [str(op) for op in flatten(backward(nest, no_grad)).ops]
        alone = [str(op) for op in backward(flat, no_grad).ops if not isinstance(op, NetOp)]
        same(f"the flat backward network with no_grad = {list(no_grad)}", mirrored, alone)


@checker("14c", hint="the gradient of b2 comes from the last operator: cut right behind it")
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
    left = [op for op in operators(backward(net, lonely), NetOp)]
    if len(left) != 1:
        raise Mismatch("the number of gradient operators left", len(left), 1)
    same("what it writes", [name for name in left[0].outputs["y_grad"]], ["b2@GRAD"])


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
