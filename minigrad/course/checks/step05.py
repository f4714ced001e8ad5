"""The checkers of step 5, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


@checker("5b")
def in_turn(gradients_in_turn, Variable):
    calls: list[str] = []

    def counted(words, f):
        def call(x):
            calls.append(words)
            return f(x)

        return call

    functions = {
        "x + x": lambda x: x + x,
        "x * x": lambda x: x * x,
        "x * x * x": lambda x: x * x * x,
    }
    x = Variable(np.array(2.0))
    x.grad = np.array(100.0)  # somebody was here before
    found = gradients_in_turn(x, [counted(*each) for each in functions.items()])
    if not isinstance(found, list) or len(found) != 3:
        raise Mismatch("what comes back", found, "a list of three gradients")
    for words, observed, expected in zip(functions, found, (2.0, 4.0, 12.0), strict=True):
        close(f"the gradient of {words} at 2", observed, expected)
    same("the list of functions that were called", calls, list(functions))


@checker("5e")
def accumulate(accumulate, Variable):
    x, other = Variable(np.zeros(2)), Variable(np.zeros(2))
    gy = np.array([1.0, 2.0])
    accumulate(x, gy)
    accumulate(other, gy)
    if x.grad is None:
        raise Mismatch("x.grad after the first gradient", None, gy)
    close("x.grad after the first gradient", x.grad, [1.0, 2.0])
    accumulate(x, np.array([10.0, 10.0]))
    close("x.grad after the second gradient", x.grad, [11.0, 12.0])
    close("the array that came first, afterwards", gy, [1.0, 2.0])
    close("the gradient of another variable that got the same array", other.grad, [1.0, 2.0])
