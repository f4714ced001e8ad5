"""The checkers of step 15."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


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
        if not isinstance(op, Operator):
            raise Mismatch("an entry of the list", type(op).__name__, "Operator")
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
