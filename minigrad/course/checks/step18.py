"""The checkers of step 18."""

from collections import Counter

import numpy as np

from ..check import checker
from ..judge import Mismatch, same


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
    before, _ = appended(network, append_backward)
    after, pairs = appended(network, append_backward, no_grad_set=blocked)
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


def appended(network, append_backward, **options):
    """The types of the ops appended to a network, and the pairs."""
    loss = network()
    start = len(loss.block.ops)
    pairs = append_backward(loss, **options)
    return [op.type for op in loss.block.ops[start:]], pairs
