"""The checkers of part E. Programs: steps 17 to 19."""

from collections import Counter

import numpy as np

from ..check import checker
from ..judge import instance, require, same
from ..solution import rows
from .part_d import lines, operators


@checker("17e")
def append_backward_ops(append_backward_ops, Program, Operator):
    for words, names, forward, expected in rows("17e"):
        block, target = Program().blocks[0], Program().blocks[0]
        block.ops = operators(Operator, *forward)
        target.ops = [first] = operators(Operator, "u = square(x=t)")
        seed = "{}@GRAD = fill_constant(shape=(), value=1.0)"
        append_backward_ops(block, target, operators(Operator, *map(seed.format, names)))
        same("the forward block afterwards", lines(block.ops), forward)
        where = "the first op of the target block afterwards"
        shown = ", ".join(lines(target.ops[:1]))
        require(target.ops[:1] == [first], where, shown, str(first))
        types = [op.type for op in target.ops[1:]]
        same(f"the list of op types appended for {words}", types, ["fill_constant", *expected])
        for op in target.ops[1 + types.count("fill_constant") :]:
            what = f"the note in {op}, which op it belongs to,"
            require(hasattr(op, "forward_op"), what, None, "its forward op")


def square(Program):
    block = Program().blocks[0]
    block.create_var("x", persistable=True)
    return block.append_op("square", "x", out="y")


def product(Program, a="a", b="b", d="d"):
    block = Program().blocks[0]
    for name in (a, b, d):
        block.create_var(name, persistable=True)
    block.append_op("add", a, b, out="c")
    return block.append_op("mul", "c", d, out="e")


def error_for_w(slope, loss):
    """What is said where a parameter does not lead to the loss."""
    loss.block.create_var("w", persistable=True)
    try:
        return f"none, but {slope(loss, 'w', {'a': 2.0, 'b': 3.0, 'd': 4.0, 'w': 5.0})}"
    except (KeyError, ValueError) as error:
        said = str(error)
    own = "'w' has no gradient"
    return own if own in said else said


def variable(Program, name, shape):
    return Program().blocks[0].create_var(name, shape, persistable=True)


@checker("18e")
def remove_no_grad_branch(remove_no_grad_branch, Operator):
    for words, before, no_grad, given, expected, dropped in rows("18e"):
        ops = operators(Operator, *before)
        answer = remove_no_grad_branch(list(ops), set(no_grad), given)
        instance(tuple, "what comes back", answer, "two lists: ops, dropped", 2)
        same(f"the list of ops {words}", lines(answer[0]), expected)
        said = [[op.type, reason] for op, reason in answer[1]]
        same(f"the list of dropped ops {words}", said, dropped)
        same(f"the list of ops that was given, {words},", lines(ops), before)


@checker("18b")
def blocked(blocked, network, append_backward):
    require(not isinstance(blocked, str), "what you give", blocked, "a set of names, such as {'r'}")
    types = []
    for no_grad in ((), blocked):
        loss = network()
        start = len(loss.block.ops)
        pairs = append_backward(loss, no_grad_set=no_grad)
        types.append(Counter(op.type for op in loss.block.ops[start:]))
    gone = sorted((types[0] - types[1]).elements())
    what = f"the list of ops that {set(blocked) or '{}'} removes"
    require(len(gone) == 2, what, gone, "exactly two")
    same("the list of parameters that still have a gradient", [p.name for p, _ in pairs], ["w"])


@checker("18c")
def without_zeros(without_zeros, half, everything, shared, append_backward):
    def said(network, **values):
        loss = network()
        append_backward(loss)
        ops, zeros = loss.block.ops, "fill_zeros_like"
        loss.block.ops = [op for each in ops for op in [each] * (1 + (each.type == zeros))]
        return without_zeros(loss.block.program, values)

    for name, network in (("half()", half), ("everything()", everything)):
        text = said(network, w=np.arange(4.0), z=np.zeros(2))
        begins = isinstance(text, str) and text.startswith("'b@GRAD' has no value in this scope")
        require(begins, f"what you return for {name}", text, "the scope's error about b@GRAD")
    same("the outcome of shared(), which has no zeros", said(shared, x=3.0, w=5.0), None)


@checker("19e")
def run_steps_grad(run_steps_grad, run, append_backward, power, hold, Program):
    def held(type, condition, bodies, state):
        main = (program := Program()).blocks[0]
        for name in ("x", "w", "n", "zero"):
            main.create_var(name, persistable=name in "xw", stop_gradient=name not in "xw")
        main.append_op("less_than", "zero", condition, out="any")
        blocks = {key: program.create_block(parent=0) for key in bodies}
        for key, body in bodies.items():
            for name in state:
                blocks[key].create_var(name, stop_gradient=name not in "st")
            for type_, *reads, out in body:
                blocks[key].append_op(type_, *reads, out=out)
        return hold(main, type, "more" if type == "while" else "any", state, **blocks)

    for words, name, feed, expected in rows("19e"):
        y = power() if name == "power" else held(**rows("19e", name))
        feed = {"zero": 0, **{each: np.array(value) for each, value in feed.items()}}
        kept = starts(run(y.block.program, feed))
        append_backward(y)
        scope = run(y.block.program, feed)
        gradients = [scope.get(f"{each}@GRAD") for each in "xw"]
        gradients = [None if g is None else np.array(g, float).tolist() for g in gradients]
        same(f"the list of gradients of {words} for x and w", gradients, expected)
        same(f"the list of what s was in each step of {words}", starts(scope), kept)
        left = all("y@GRAD" in step for step in scope["step_scopes_1"])
        require(left, "what is left in the scope of each step", "no y@GRAD", "its own y@GRAD")


def starts(scope):
    """What s was at the start of each step."""
    return [np.asarray(step["s"]).tolist() for step in scope["step_scopes_1"]]


def values(name, write_body, power_of_x, append_backward, run):
    """What a name of the program holds at x = 3, for n = 5, 2, 1 and 0."""
    y = power_of_x(write_body)
    append_backward(y)
    feeds = [{"x": 3.0, "n": n, "zero": 0, "one": 1.0} for n in (5, 2, 1, 0)]
    return [run(y.block.program, feed).get(name) for feed in feeds]


@checker("19c")
def parents(parents, nested, append_backward):
    y = nested()
    append_backward(y)
    instance(dict, "what you give", parents, "a dict from block to parent, such as {0: -1}")
    expected = {block.idx: block.parent for block in y.block.program.blocks}
    same("the list of blocks you name", sorted(parents), list(expected))
    for idx, parent in expected.items():
        same(f"the parent of block {idx}", parents[idx], parent)
