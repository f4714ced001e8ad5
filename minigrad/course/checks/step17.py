"""The checkers of step 17."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


@checker("17e")
def append_backward_ops(append_backward_ops, Program, Operator):
    def appended(block, names):
        one = {"shape": (), "value": 1.0}
        seeds = [Operator("fill_constant", {}, {"out": f"{name}@GRAD"}, one) for name in names]
        target = chain(("square", "t", "u"))
        there, before = target.ops[0], [str(op) for op in block.ops]
        append_backward_ops(block, target, seeds)
        same("the forward block afterwards", [str(op) for op in block.ops], before)
        if target.ops[:1] != [there]:
            first = ", ".join(map(str, target.ops[:1]))
            raise Mismatch("the first op of the target block afterwards", first, str(there))
        return target.ops[1:]

    def chain(*lines):
        block = Program().blocks[0]
        for type, reads, out in lines:
            slots = dict(zip("xy", ([each] for each in reads), strict=False))
            attrs = {"shape": (), "value": 1.0} if type == "fill_constant" else {}
            block.ops.append(Operator(type, slots, {"out": out}, attrs))
        return block

    for words, names, lines, expected in (
        (
            "k = square(a) and e = exp(b), with a seed for each, and m = square(e) behind them",
            "ke",
            [("square", "a", "k"), ("exp", "b", "e"), ("square", "e", "m")],
            ["fill_constant", "exp_grad", "square_grad"],
        ),
        (
            "e = (a + b) * d",
            "e",
            [("add", "ab", "c"), ("mul", "cd", "e")],
            ["mul_grad", "add_grad"],
        ),
        (
            "e = square(c), where a branch m = square(e) leads elsewhere",
            "e",
            [("add", "ab", "c"), ("square", "c", "k"), ("square", "c", "e"), ("square", "e", "m")],
            ["square_grad", "add_grad"],
        ),
        (
            "e = a * o, where o is filled with a constant",
            "e",
            [("fill_constant", "", "o"), ("mul", "ao", "e")],
            ["mul_grad"],
        ),
        (
            "e = square(a), where a branch m = square(square(a)) leads elsewhere",
            "e",
            [("square", "a", "e"), ("square", "a", "k"), ("square", "k", "m")],
            ["square_grad"],
        ),
        (
            "e = square(p), where p is one half of split(a)",
            "e",
            [("split", "a", "p q"), ("square", "p", "e")],
            ["square_grad", "split_grad"],
        ),
        (
            "e = a * o, where o are zeros like k = square(a)",
            "e",
            [("square", "a", "k"), ("fill_zeros_like", "k", "o"), ("mul", "ao", "e")],
            ["mul_grad"],
        ),
    ):
        found = appended(chain(*lines), names)
        types = [op.type for op in found]
        same(f"the list of op types appended for {words}", types, ["fill_constant", *expected])
        for op in found[types.count("fill_constant") :]:
            if not hasattr(op, "forward_op"):
                raise Mismatch(f"the note in {op}, which op it belongs to,", None, "its forward op")


@checker("17a")
def appended(appended, Program):
    loss = square(Program)
    appended(loss)
    same("the length of the program afterwards", len(loss.block.ops), 3)
    same(
        "the list of lines appended to y = square(x)",
        appended(square(Program)),
        [
            "y@GRAD = fill_constant(shape=(), value=1.0)",
            "x@GRAD = square_grad(x=x, out_grad=y@GRAD)",
        ],
    )
    same("the number of lines appended to e = (a + b) * d", len(appended(product(Program))), 3)


@checker("17b")
def slope(slope, Program):
    values = {"a0": 2.0, "b0": 3.0, "d0": 4.0}  # two letters: a name is no list of names
    for name, expected in (("a0", 4.0), ("b0", 4.0), ("d0", 5.0)):
        close(
            f"the gradient of (a0 + b0) * d0 for {name} at 2, 3, 4",
            slope(product(Program, *values), name, dict(values)),
            expected,
        )
    close(
        "the gradient of e for c, which is no parameter,",
        slope(product(Program), "c", {"a": 2.0, "b": 3.0, "d": 4.0}),
        4.0,
    )
    loss = product(Program)
    loss.block.create_var("w", persistable=True)
    try:
        said = str(slope(loss, "w", {"a": 2.0, "b": 3.0, "d": 4.0, "w": 5.0}))
    except (KeyError, ValueError) as error:
        said = str(error)
    if "'w' has no gradient" not in said:
        raise Mismatch("the error for w, which does not lead to e,", said, "append_backward's own")
    close("the gradient of x² for x at -1.5", slope(square(Program), "x", {"x": -1.5}), -3.0)


@checker("17c")
def scalar(scalar, Program):
    block = Program().blocks[0]
    v = block.create_var("v", (2, 3), persistable=True)
    made = scalar(v)
    if not hasattr(made, "shape"):
        raise Mismatch("what you return", made, "the variable v_total")
    same("the name of what you return", made.name, "v_total")
    same("the number of ops you appended", len(block.ops), 1)
    same("the op you appended", str(block.ops[0]), "v_total = reduce_sum(x=v)")
    same("the shape of what you return", made.shape, ())
    same("the number of ops after scalar(w)", len(scalar_of_w(scalar, Program).block.ops), 1)


def scalar_of_w(scalar, Program):
    made = scalar(Program().blocks[0].create_var("w", (4,)))
    same("the name for a variable w", made.name, "w_total")
    return made


def square(Program):
    block = Program().blocks[0]
    block.create_var("x", persistable=True)
    return block.append_op("square", "x", out="y")


def product(Program, a="a", b="b", d="d"):
    block = Program().blocks[0]
    for name in (a, b, d):
        block.create_var(name, np.shape(0.0), persistable=True)
    block.append_op("add", a, b, out="c")
    return block.append_op("mul", "c", d, out="e")
