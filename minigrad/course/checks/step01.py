"""The checkers of step 1, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, Wrong, close, same


@checker("1b")
def forward_diff(forward_diff, Variable):
    def square(box):
        if not isinstance(box, Variable):  # an array has a .data, too, which is no array
            raise Mismatch("what f was called with", type(box).__name__, "a box, Variable(…)")
        return Variable(box.data**2)

    for value, eps in ((2.0, 1e-4), (-1.5, 0.25), (0.0, 0.5)):
        x = Variable(np.array(value))
        observed = forward_diff(square, x, eps)
        expected = 2 * value + eps  # ((x + e)² - x²) / e
        what = f"forward difference of x² at {value} with eps {eps}"
        close(what, observed, expected, rtol=1e-9, atol=1e-9)
        same("x.data after the call, which is the caller's,", x.data, value)


@checker("1c")
def bad_steps(too_small, too_large):
    if too_small < 0:
        raise Wrong("too_small is negative, expected a number between 0 and 1e-8")
    if not 0 < too_small < 1e-8:
        raise Mismatch("too_small", too_small, "a number between 0 and 1e-8")
    if not too_large > 1e-3:
        raise Mismatch("too_large", too_large, "a number above 1e-3")
    for eps in (too_small, too_large):
        error = abs((chain(0.5 + eps) - chain(0.5 - eps)) / (2 * eps) - 2 * np.exp(0.5))
        if not error > 0.01:
            raise Mismatch(f"the error with eps = {eps}", error, "more than 0.01")


def chain(x):
    return np.exp(x**2) ** 2
