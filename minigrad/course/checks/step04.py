"""The checkers of step 4."""

import numpy as np

from ..check import Mismatch, checker, close, same


@checker(
    "4a",
    hint="while v.creator is not None: append the name of the creator's type, let v become "
    "v.creator.input; at the end turn the list round",
)
def in_order(in_order, Variable, Square, Exp):
    v = Variable(np.array(0.5))
    same("the list for a leaf", in_order(v), [])
    for function in (Square, Exp, Exp):
        v = function()(v)
    same("the list for exp(exp(square(x)))", in_order(v), ["Square", "Exp", "Exp"])
    v = Variable(np.array(1.0))
    for _ in range(20_000):
        v = Square()(v)
    found = in_order(v)
    same("the length of the list for a chain of 20000", len(found), 20_000)
    same("the names in it", set(found), {"Square"})


@checker("4b", hint="make the box x from np.array(value), call backward() on f(x), look at x.grad")
def gradient(gradient, square, exp):
    close("the gradient of square at 3", gradient(square, 3.0), 6.0)
    close("the gradient of exp at -1", gradient(exp, -1.0), np.exp(-1))
    close(
        "the gradient of square(exp(square(x))) at 0.5",
        gradient(lambda x: square(exp(square(x))), 0.5),
        2 * np.exp(0.5),
    )
    calls = []

    def counted(x):
        calls.append(x)
        return square(x)

    gradient(counted, 3.0)
    same("the number of times f was called", len(calls), 1)


@checker(
    "4c",
    hint="isinstance(thing, float) finds the float; a leaf is a Variable whose creator is None",
)
def advice(advice, Variable, square):
    leaf = Variable(np.array(2.0))
    for thing, name, words in (
        (0.5, "0.5", ("0.5", "np.array")),
        (2.25, "2.25", ("2.25", "np.array")),
        (leaf, "a leaf", ("leaf", "backward()")),
    ):
        said = advice(thing)
        for word in words:
            if not isinstance(said, str) or word not in said:
                raise Mismatch(f"the advice for {name}", repr(said), f"a text with {word!r} in it")
    if (said := advice(square(leaf))) is not None:
        raise Mismatch("the advice for square(x)", said, None)
