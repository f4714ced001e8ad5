"""The checkers of step 1."""

import numpy as np

from ..check import Mismatch, checker, close


@checker("1a", hint="forward gets a bare array x and returns x times x times x")
def cube(Cube, Variable):
    for value in (-2.0, -0.5, 0.0, 1.0, 3.0):
        made = Cube()(Variable(np.array(value)))
        if not isinstance(made, Variable):
            raise Mismatch("what Cube()(x) returns", type(made).__name__, "Variable")
        close(f"Cube at {value}", made.data, value * value * value, rtol=1e-12, atol=0)


@checker(
    "1b",
    hint="rise: f at x + eps minus f at x. Run: eps, not 2 * eps. f takes a box and returns a box; "
    "the slope is a plain number",
)
def forward_diff(forward_diff, Variable):
    def square(box):
        if not isinstance(box, Variable):  # an array has a .data, too, which is no array
            raise Mismatch("what f was called with", type(box).__name__, "a box, Variable(…)")
        return Variable(box.data**2)

    for value, eps in ((2.0, 1e-4), (-1.5, 0.25), (0.0, 0.5)):
        observed = forward_diff(square, Variable(np.array(value)), eps)
        expected = 2 * value + eps  # ((x + e)² - x²) / e
        what = f"forward difference of x² at {value} with eps {eps}"
        close(what, observed, expected, rtol=1e-9, atol=1e-9)


@checker(
    "1c",
    hint="move the slider to both ends of the valley and read the error; give eps itself, such as "
    "1e-9, not -9",
)
def bad_steps(too_small, too_large):
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
