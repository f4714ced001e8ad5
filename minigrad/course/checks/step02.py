"""The checkers of step 2."""

import numpy as np

from ..check import Mismatch, checker, close


@checker("2a", hint="the slope at the remembered input, times gy")
def sin(Sin, Variable):
    for value, gy in ((0.0, 1.0), (1.0, 1.0), (0.5, -3.0), (2.0, 0.25)):
        function = Sin()
        y = function(Variable(np.array(value)))
        if not isinstance(y, Variable):
            raise Mismatch("what Sin()(x) returns", type(y).__name__, "Variable")
        close(f"sin({value})", y.data, np.sin(value))
        close(f"Sin.backward({gy}) at {value}", function.backward(np.array(gy)), np.cos(value) * gy)


@checker(
    "2b",
    hint="three calls, so three objects; then backward in reverse, from the seed 1.0",
)
def exp_square_exp(gradient, Variable):
    for value in (0.1, -0.5, 0.3):
        x = Variable(np.array(value))
        expected = 2 * np.exp(2 * value) * np.exp(np.exp(2 * value))
        close(f"the gradient at {value}", gradient(x), expected)
        if x.grad is None:
            raise Mismatch("x.grad", None, "the gradient you returned")
        close(f"x.grad at {value}", x.grad, expected)


@checker(
    "2c", hint="C needs y.grad, B needs b.grad, A needs a.grad; only y.grad is there at the start"
)
def first_to_fail(first_to_fail):
    expected = {"CBA": None, "CAB": "A", "BCA": "B", "BAC": "B", "ABC": "A", "ACB": "A"}
    for order, letter in expected.items():
        if (observed := first_to_fail(order)) != letter:
            raise Mismatch(f"first_to_fail({order!r})", observed, letter)
