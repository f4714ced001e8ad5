"""The checkers of step 5."""

import numpy as np

from ..check import Mismatch, checker, close


@checker(
    "5a",
    hint="Sub: gy, -gy. Div: 1 / x1 for the upper one, -x0 / x1² for the lower one, times gy",
)
def sub_and_div(classes, Variable):
    Sub, Div = classes
    for a, b, gy in ((3.0, 2.0, 1.0), (-1.0, 4.0, -2.0), (0.5, -0.25, 3.0)):
        for cls, value, slopes in ((Sub, a - b, (1.0, -1.0)), (Div, a / b, (1 / b, -a / b**2))):
            function = cls()
            y = function(Variable(np.array(a)), Variable(np.array(b)))
            close(f"{cls.__name__}({a}, {b})", y.data, value)
            gxs = function.backward(np.array(gy))
            if not isinstance(gxs, tuple) or len(gxs) != 2:
                raise Mismatch(
                    f"what {cls.__name__}.backward returns", gxs, "a tuple of two gradients"
                )
            for i, (gx, slope) in enumerate(zip(gxs, slopes, strict=True)):
                close(f"{cls.__name__} at ({a}, {b}), gradient {i} for gy = {gy}", gx, slope * gy)


@checker("5b", hint="forget the old gradient, x.cleargrad(), before every single backward()")
def in_turn(gradients_in_turn, Variable):
    functions = [lambda x: x + x, lambda x: x * x, lambda x: x * x * x]
    x = Variable(np.array(2.0))
    x.grad = np.array(100.0)  # somebody was here before
    found = gradients_in_turn(x, functions)
    if not isinstance(found, list) or len(found) != 3:
        raise Mismatch("what comes back", found, "a list of three gradients")
    for words, observed, expected in zip(
        ("x + x", "x * x", "x * x * x"), found, (2.0, 4.0, 12.0), strict=True
    ):
        close(f"the gradient of {words} at 2", observed, expected)


@checker("5c", hint="make a new array: x.grad + gx; the very first gradient is simply gx")
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
