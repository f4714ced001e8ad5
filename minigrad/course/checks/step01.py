"""The checkers of step 1, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..diagnosis import mistake, variant
from ..judge import Mismatch, close, same


@checker(
    "1a",
    hint=(
        "what does forward get, and what does __call__ do with what forward returns?",
        "x is a bare array: multiply it, or take a power, and return the result",
        "return x ** 3",
    ),
)
def cube(Cube, Variable):
    for value in (-2.0, -0.5, 0.0, 1.0, 3.0):
        x = Variable(np.array(value))
        made = Cube()(x)
        if not isinstance(made, Variable):
            raise Mismatch("what Cube()(x) returns", type(made).__name__, "Variable")
        close(f"Cube at {value}", made.data, value * value * value, rtol=1e-12, atol=0)
        same("x.data after the call", x.data, value)


@mistake("1a", "x is taken three times, 3 * x", "what is 2 to the third, and what three times 2?")
def triple(Cube, Variable):
    return variant(Cube, forward=lambda self, x: 3 * x), Variable


@mistake("1a", "the power is 2", "that is Square; which power has a cube?")
def squared(Cube, Variable):
    return variant(Cube, forward=lambda self, x: x**2), Variable


@mistake(
    "1a",
    "a power is written with ^, which is exclusive or in Python",
    "how does Square write its power?",
)
def caret(Cube, Variable):
    return variant(Cube, forward=lambda self, x: x ^ 3), Variable


@mistake("1a", "forward packs a box, and __call__ packs another around it", "who packs the result?")
def packed_twice(Cube, Variable):
    return variant(Cube, forward=lambda self, x: Variable(x**3)), Variable


@mistake("1a", "forward returns nothing", "the value is computed; where does it go?")
def no_return(Cube, Variable):
    return variant(Cube, forward=lambda self, x: None), Variable


@mistake(
    "1a", "forward works on a box: it gets a bare array", "what has __call__ unpacked already?"
)
def unpacked_twice(Cube, Variable):
    return variant(Cube, forward=lambda self, x: x.data.data**3), Variable


@checker(
    "1b",
    hint=(
        "which two values of f do you compare, and how far apart do they lie?",
        "rise: f at x + eps minus f at x. Run: eps. f takes a box and returns a box; the slope is "
        "a plain number",
        "return (f(Variable(x.data + eps)).data - f(x).data) / eps",
    ),
)
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


@mistake(
    "1b", "f is measured on both sides: that is numerical_diff", "which run costs nothing new?"
)
def central(forward_diff, Variable):
    def slope(f, x, eps=1e-4):
        return (f(Variable(x.data + eps)).data - f(Variable(x.data - eps)).data) / (2 * eps)

    return slope, Variable


@mistake("1b", "the rise is divided by 2 * eps", "how far is it from x to x + eps?")
def divided_by_two_eps(forward_diff, Variable):
    def slope(f, x, eps=1e-4):
        return (f(Variable(x.data + eps)).data - f(x).data) / (2 * eps)

    return slope, Variable


@mistake("1b", "f is measured on the left side", "which way does forward look?")
def from_the_left(forward_diff, Variable):
    def slope(f, x, eps=1e-4):
        return (f(x).data - f(Variable(x.data - eps)).data) / eps

    return slope, Variable


@mistake("1b", "the two values are subtracted the wrong way round", "is x² rising or falling at 2?")
def turned(forward_diff, Variable):
    def slope(f, x, eps=1e-4):
        return (f(x).data - f(Variable(x.data + eps)).data) / eps

    return slope, Variable


@mistake("1b", "the rise is not divided by anything", "a slope is rise over run; what is the run?")
def rise_only(forward_diff, Variable):
    def slope(f, x, eps=1e-4):
        return f(Variable(x.data + eps)).data - f(x).data

    return slope, Variable


@mistake("1b", "eps is written into the function as 1e-4", "who chooses eps here?")
def eps_ignored(forward_diff, Variable):
    def slope(f, x, eps=1e-4):
        return (f(Variable(x.data + 1e-4)).data - f(x).data) / 1e-4

    return slope, Variable


@mistake("1b", "f gets a bare array", "what does f expect, a box or what lies in it?")
def without_a_box(forward_diff, Variable):
    return lambda f, x, eps=1e-4: (f(x.data + eps).data - f(x).data) / eps, Variable


@mistake("1b", "x itself is moved, and stays moved", "whose box is x? Can you make a new one?")
def moved(forward_diff, Variable):
    def slope(f, x, eps=1e-4):
        here = f(x).data
        x.data = x.data + eps
        return (f(x).data - here) / eps

    return slope, Variable


@checker(
    "1c",
    hint=(
        "where in the valley is the error large, and what is eps there?",
        "move the slider to both ends and read the error; give eps itself, such as 1e-9, not -9",
        "too_small = 1e-15 and too_large = 0.1",
    ),
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


@mistake("1c", "the exponent is given instead of eps", "error(-9) belongs to which eps?")
def exponents(too_small, too_large):
    return -abs(too_small), too_large


def chain(x):
    return np.exp(x**2) ** 2
