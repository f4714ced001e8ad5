"""The checkers of step 18."""

from collections import Counter

import numpy as np

from ..check import checker
from ..judge import Mismatch, same


@checker("18a", hint="seed first; one grad op per forward op, last op first; nobody reads w@GRAD")
def predicted(predicted, network, append_backward):
    same("the list of op types, in order,", list(predicted), appended(network, append_backward)[0])


@checker("18b", hint="block the output of one op: what is left to do for the ops before it?")
def blocked(blocked, network, append_backward):
    if isinstance(blocked, str):
        raise Mismatch("what you give", blocked, "a set of names, such as {'r'}")
    before, _ = appended(network, append_backward)
    after, pairs = appended(network, append_backward, no_grad_set=blocked)
    gone = sorted((Counter(before) - Counter(after)).elements())
    if len(gone) != 2:
        raise Mismatch(f"the list of ops that {set(blocked) or '{}'} removes", gone, "exactly two")
    same("the list of parameters that still have a gradient", [p.name for p, _ in pairs], ["w"])


@checker(
    "18c",
    hint=(
        "which ops stay, and what does the executor raise?",
        "give block.ops a list without the ops of one type, run, and catch the error",
        'block.ops = [op for op in block.ops if op.type != "fill_zeros_like"]; then try: run(…), '
        "except RuntimeError as error: return str(error)",
    ),
)
def without_zeros(without_zeros, half, everything, shared, append_backward):
    values = {"w": np.arange(4.0), "z": np.zeros(2)}
    for name, network in (("half()", half), ("everything()", everything)):
        loss = network()
        append_backward(loss)
        at = [op.type for op in loss.block.ops].index("fill_zeros_like")
        expected = f"#{at} split_grad reads 'b@GRAD', which nobody wrote or fed"
        same(
            f"what the executor says about {name}",
            without_zeros(loss.block.program, dict(values)),
            expected,
        )
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
