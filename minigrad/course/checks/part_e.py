"""The checkers of part E. Programs: steps 17 to 19."""

from collections import Counter

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


@checker("18e")
def remove_no_grad_branch(remove_no_grad_branch, Operator):
    def line(type, inputs, outputs):  # of any type, with any slots
        op = Operator.__new__(Operator)
        op.type, op.inputs, op.outputs, op.attrs = type, inputs, outputs, {}
        return op

    def grad_op(type, reads, *writes):
        slots = {
            f"in{i}": name.split() for i, name in enumerate(reads.split(", ") if reads else ())
        }
        return line(f"{type}_grad", slots, {f"out{i}": n.split() for i, n in enumerate(writes)})

    seed = line("fill_constant", {}, {"out": ["loss@GRAD"]})
    mul = grad_op("mul", "a, loss@GRAD", "p@GRAD", "q@GRAD")
    square, exp = grad_op("square", "s, p@GRAD", "s@GRAD"), grad_op("exp", "q, q@GRAD", "u@GRAD")
    split = grad_op("split", "loss@GRAD q@GRAD", "w@GRAD")
    again = grad_op("mul", "b, loss@GRAD, q@GRAD", "v@GRAD")
    stack = grad_op("stack", "loss@GRAD", "p@GRAD q@GRAD")
    added = line("sum", {"x": ["loss@GRAD", "q@GRAD@RENAME@1"]}, {"out": ["v@GRAD"]})
    part = grad_op("add", "loss@GRAD", "p@GRAD@RENAME@0", "q@GRAD@RENAME@0")
    want, zeros = "nobody wants what it writes", "only zeros come in"
    for words, ops, no_grad, given, kept, dropped in (
        ("where all is wanted and nothing missing", [seed, mul, square, exp], "", "", "0123", []),
        ("where nobody makes q@GRAD", [seed, exp], "", "", "0", [("exp_grad", zeros)]),
        ("where u is not wanted", [seed, mul, exp, square], "u", "", "013", [("exp_grad", want)]),
        ("where q is not wanted", [seed, mul, exp], "q", "", "01", [("exp_grad", zeros)]),
        (
            "where p is not wanted, and s behind it",
            [seed, mul, square, grad_op("exp", "s@GRAD", "r@GRAD")],
            "p",
            "",
            "01",
            [("square_grad", zeros), ("exp_grad", zeros)],
        ),
        ("where q@GRAD is missing", [seed, split], "", "", "0z1", []),
        ("where two ops need the missing q@GRAD", [seed, split, again], "", "", "0z12", []),
        ("where a part of q@GRAD is missing", [seed, added], "", "", "0p1", []),
        ("where q@GRAD is given", [split], "", ["loss@GRAD", "q@GRAD"], "0", []),
        ("where one name of a list is not wanted", [seed, stack], "q", "", "01", []),
        ("where a part of q is not wanted", [seed, part], "q", "", "01", []),
    ):
        before = [str(op) for op in ops]
        answer = remove_no_grad_branch(list(ops), set(no_grad), given)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise Mismatch("what comes back", answer, "two lists: ops, dropped")
        expected = []
        for mark in kept:
            if mark in "zp":
                part_name = "" if mark == "z" else "@RENAME@1"
                expected.append(f"q@GRAD{part_name} = fill_zeros_like(x=q)")
                continue
            left = line(ops[int(mark)].type, ops[int(mark)].inputs, {})
            for slot, names in ops[int(mark)].outputs.items():
                left.outputs[slot] = [
                    "@EMPTY@" if n.split("@GRAD")[0] in no_grad else n for n in names
                ]
            expected.append(str(left))
        same(f"the list of ops {words}", [str(op) for op in answer[0]], expected)
        said = [(op.type, reason) for op, reason in answer[1]]
        same(f"the list of dropped ops {words}", said, dropped)
        same(f"the list of ops that was given, {words},", [str(op) for op in ops], before)


@checker("18b")
def blocked(blocked, network, append_backward):
    if isinstance(blocked, str):
        raise Mismatch("what you give", blocked, "a set of names, such as {'r'}")
    before, _ = types_appended(network, append_backward)
    after, pairs = types_appended(network, append_backward, no_grad_set=blocked)
    gone = sorted((Counter(before) - Counter(after)).elements())
    if len(gone) != 2:
        raise Mismatch(f"the list of ops that {set(blocked) or '{}'} removes", gone, "exactly two")
    same("the list of parameters that still have a gradient", [p.name for p, _ in pairs], ["w"])


@checker("18c")
def without_zeros(without_zeros, half, everything, shared, append_backward):
    values = {"w": np.arange(4.0), "z": np.zeros(2)}
    for name, network in (("half()", half), ("everything()", everything)):
        loss = network()
        append_backward(loss)
        said = without_zeros(loss.block.program, dict(values))
        if not isinstance(said, str) or not said.startswith("'b@GRAD' has no value in this scope"):
            raise Mismatch(f"what you return for {name}", said, "the text of the scope's error")
    loss = shared()
    append_backward(loss)
    same(
        "the outcome of shared(), which has no zeros",
        without_zeros(loss.block.program, {"x": 3.0, "w": 5.0}),
        None,
    )


def types_appended(network, append_backward, **options):
    """The types of the ops appended to a network, and the pairs."""
    loss = network()
    start = len(loss.block.ops)
    pairs = append_backward(loss, **options)
    return [op.type for op in loss.block.ops[start:]], pairs


@checker("19e")
def run_steps_grad(run_steps_grad, run, append_backward, power, hold, Program):
    def gradients(words, y, expected, **values):
        append_backward(y)
        scope = run(y.block.program, {"zero": 0, **values})
        found = [scope.get(f"{name}@GRAD") for name in "xw"]
        found = [None if each is None else float(each) for each in found]
        same(f"the list of gradients of {words} for x and w", found, expected)

    def held(type, condition, bodies, state):
        main = (program := Program()).blocks[0]
        for name in ("x", "w"):
            main.create_var(name, persistable=True)
        for name in ("n", "zero"):
            main.create_var(name, stop_gradient=True)
        main.append_op("less_than", "zero", condition, out="any")
        blocks = {key: program.create_block(parent=0) for key in bodies}
        for key, lines in bodies.items():
            for name in state:
                blocks[key].create_var(name, stop_gradient=name != "s")
            for type_, *reads, out in lines:
                blocks[key].append_op(type_, *reads, out=out)
        return hold(main, type, "more" if type == "while" else "any", state, **blocks)

    for n, expected in ((1, [3.0, 2.0]), (3, [27.0, 54.0]), (0, [1.0, 0.0])):
        gradients(f"x * w ** {n}, a loop, at 2 and 3,", power(), expected, x=2.0, w=3.0, n=n)
    count = [("increment", "i", "i_next"), ("less_than", "i_next", "n", "more_next")]
    loop = {
        "s": ("x", "s_next", "y"),
        "i": ("zero", "i_next", "count"),
        "more": ("any", "more_next", "rest"),
    }
    body = {"sub_block": [("square", "w", "s_next"), *count]}
    for n, expected in ((2, [0.0, 6.0]), (0, [1.0, 0.0])):
        y = held("while", "n", body, loop)
        gradients(f"a loop that sets s to w² in each of {n} steps", y, expected, x=2.0, w=3.0, n=n)
    bodies = {"sub_block": [("mul", "s", "w", "result")], "else_block": [("square", "s", "result")]}
    for x, expected in ((3.0, [5.0, 3.0]), (-3.0, [-6.0, 0.0])):
        y = held("if_else", "x", bodies, {"s": ("x", "result", "y")})
        words = f"x * w if x > 0 else x², at x = {x:g} and w = 5,"
        gradients(words, y, expected, x=x, w=5.0, n=0)


@checker("19b")
def power_body(write_body, power_of_x, append_backward, run):
    y = power_of_x(write_body)
    append_backward(y)
    for n in (5, 2, 1, 0):
        values = {"x": 3.0, "n": n, "zero": 0, "one": 1.0}
        scope = run(y.block.program, values)
        close(f"x**{n} at x = 3", scope["y"], 3.0**n)
        if "x@GRAD" not in scope:
            raise Mismatch("the gradient of x", "missing", "there: some op of the body reads x")
        close(f"the gradient of x**{n} at x = 3", scope["x@GRAD"], n * 3.0 ** (n - 1))
        same(f"the number of steps for n = {n}", int(scope["count"]), n)


@checker("19c")
def parents(parents, nested, append_backward):
    y = nested()
    append_backward(y)
    blocks = y.block.program.blocks
    if not isinstance(parents, dict):
        raise Mismatch("what you give", parents, "a dict from block to parent, such as {0: -1}")
    same("the list of blocks you name", sorted(parents), list(range(len(blocks))))
    for block in blocks:
        same(f"the parent of block {block.idx}", parents[block.idx], block.parent)
