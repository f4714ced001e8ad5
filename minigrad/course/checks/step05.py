"""The checkers of step 5, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..diagnosis import mistake, variant
from ..judge import Mismatch, close, same


@checker(
    "5a",
    hint=(
        "how much does each result move when only x0 moves, and when only x1 does?",
        "Sub: 1 and -1. Div: 1 / x1 for the upper one, -x0 / x1² for the lower one; all times gy",
        "Sub: return gy, -gy. Div: return gy / x1, -gy * x0 / x1 ** 2",
    ),
)
def sub_and_div(classes, Variable):
    Sub, Div = classes
    for a, b, gy in ((3.0, 2.0, 1.0), (-1.0, 4.0, -2.0), (0.5, -0.25, 3.0)):
        for cls, value, slopes in ((Sub, a - b, (1.0, -1.0)), (Div, a / b, (1 / b, -a / b**2))):
            function = cls()
            boxes = Variable(np.array(a)), Variable(np.array(b))
            y = function(*boxes)
            close(f"{cls.__name__}({a}, {b})", y.data, value)
            gxs = function.backward(np.array(gy))
            if not isinstance(gxs, tuple) or len(gxs) != 2:
                raise Mismatch(
                    f"what {cls.__name__}.backward returns", gxs, "a tuple of two gradients"
                )
            for i, (gx, slope) in enumerate(zip(gxs, slopes, strict=True)):
                close(f"{cls.__name__} at ({a}, {b}), gradient {i} for gy = {gy}", gx, slope * gy)
            same("the pair of inputs after the calls", tuple(float(x.data) for x in boxes), (a, b))


def right_sub(Sub):
    return variant(Sub, backward=lambda self, gy: (gy, -gy))


def div_with(Div, rule):
    """Div with ``rule(x0, x1, gy)`` as its backward."""
    return variant(Div, backward=lambda self, gy: rule(*(x.data for x in self.inputs), gy))


@mistake("5a", "Sub hands on gy twice, as Add does", "does x0 - x1 grow when x1 grows?")
def sub_like_add(classes, Variable):
    return (variant(classes[0], backward=lambda self, gy: (gy, gy)), classes[1]), Variable


@mistake("5a", "the two gradients of Sub are swapped", "which of them gets the minus?")
def sub_swapped(classes, Variable):
    return (variant(classes[0], backward=lambda self, gy: (-gy, gy)), classes[1]), Variable


@mistake("5a", "Sub returns one gradient", "how many arguments wait for one?")
def one_gradient(classes, Variable):
    return (variant(classes[0], backward=lambda self, gy: gy), classes[1]), Variable


@mistake("5a", "the gradients of Sub come as a list", "what do Add and Mul return?")
def sub_as_list(classes, Variable):
    return (variant(classes[0], backward=lambda self, gy: [gy, -gy]), classes[1]), Variable


@mistake("5a", "the minus of Div is missing", "does x0 / x1 grow when x1 grows?")
def div_without_sign(classes, Variable):
    rule = div_with(classes[1], lambda x0, x1, gy: (gy / x1, gy * x0 / x1**2))
    return (right_sub(classes[0]), rule), Variable


@mistake("5a", "x1 is not squared in the lower gradient of Div", "what is the slope of 1 / x?")
def div_not_squared(classes, Variable):
    rule = div_with(classes[1], lambda x0, x1, gy: (gy / x1, -gy * x0 / x1))
    return (right_sub(classes[0]), rule), Variable


@mistake("5a", "the lower gradient of Div forgets x0", "how large is x0 / x1 when x0 is large?")
def div_without_x0(classes, Variable):
    rule = div_with(classes[1], lambda x0, x1, gy: (gy / x1, -gy / x1**2))
    return (right_sub(classes[0]), rule), Variable


@mistake("5a", "Div forgets gy", "which number comes from behind?")
def div_without_gy(classes, Variable):
    rule = div_with(classes[1], lambda x0, x1, gy: (1 / x1, -x0 / x1**2))
    return (right_sub(classes[0]), rule), Variable


@checker(
    "5b",
    hint=(
        "what lies in x.grad when the next backward() begins?",
        "forget the old gradient, x.cleargrad(), before every single backward()",
        "for f in functions: x.cleargrad(); f(x).backward(); append x.grad",
    ),
)
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


@mistake("5b", "x is never cleared: each gradient is added to what was there", "who wrote the 100?")
def never_cleared(gradients_in_turn, Variable):
    return in_turn_with(lambda x, number: None), Variable


@mistake("5b", "x is cleared once, before the loop", "what does the second backward() find?")
def cleared_once(gradients_in_turn, Variable):
    return in_turn_with(lambda x, number: number == 0 and x.cleargrad()), Variable


def in_turn_with(clear):
    def walk(x, functions):
        gradients = []
        for number, f in enumerate(functions):
            clear(x, number)
            f(x).backward()
            gradients.append(x.grad)
        return gradients

    return walk


@mistake("5b", "the gradients of the results are returned: seeds, all of them 1", "whose grad?")
def of_the_results(gradients_in_turn, Variable):
    def walk(x, functions):
        results = [f(x) for f in functions]
        for y in results:
            y.backward()
        return [y.grad for y in results]

    return walk, Variable


@mistake("5b", "only the last gradient is returned", "where do the others go?")
def the_last_alone(gradients_in_turn, Variable):
    return lambda x, functions: in_turn_with(lambda x, _: x.cleargrad())(x, functions)[-1], Variable


@mistake("5b", "the slopes are measured, with two runs of each function", "who finds them in one?")
def measured(gradients_in_turn, Variable):
    def slope(f, x, eps=1e-4):
        up, down = (f(Variable(np.array(x.data + move))) for move in (eps, -eps))
        return round(float((up.data - down.data) / (2 * eps)), 6)

    return lambda x, functions: [slope(f, x) for f in functions], Variable


@checker(
    "5e",
    hint=(
        "who else holds the array that you write into?",
        "make a new array: x.grad + gx; the very first gradient is simply gx",
        "x.grad = gx if x.grad is None else x.grad + gx",
    ),
)
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


@mistake("5e", "+= writes into an array that others hold, too", "whose array is x.grad?")
def in_place(accumulate, Variable):
    def add(x, gx):
        if x.grad is None:
            x.grad = gx
        else:
            x.grad += gx

    return add, Variable


@mistake("5e", "the second gradient overwrites the first", "what did x + x need?")
def overwriting(accumulate, Variable):
    return lambda x, gx: setattr(x, "grad", gx), Variable


@mistake("5e", "the first gradient is added to None", "what is in x.grad at the very first time?")
def from_none(accumulate, Variable):
    return lambda x, gx: setattr(x, "grad", x.grad + gx), Variable


@mistake("5e", "the sum is returned instead of stored", "who looks at what accumulate returns?")
def returned(accumulate, Variable):
    return lambda x, gx: gx if x.grad is None else x.grad + gx, Variable


@mistake("5e", "every gradient after the first is dropped", "two users, and how many gradients?")
def first_kept(accumulate, Variable):
    return lambda x, gx: setattr(x, "grad", gx if x.grad is None else x.grad), Variable
