"""The checkers of step 2, and the mistakes that they know."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

from ..check import checker
from ..diagnosis import mistake, variant
from ..judge import Mismatch, close, same


@checker(
    "2a",
    hint=(
        "what is the slope of sin, and at which value is it taken?",
        "the slope at the remembered input, self.input.data, times gy",
        "return np.cos(self.input.data) * gy",
    ),
)
def sin(Sin, Variable):
    for value, gy in ((0.5, -3.0), (0.0, 1.0), (1.0, 1.0), (2.0, 0.25)):
        function = Sin()
        x = Variable(np.array(value))
        y = function(x)
        if not isinstance(y, Variable):
            raise Mismatch("what Sin()(x) returns", type(y).__name__, "Variable")
        close(f"sin({value})", y.data, np.sin(value))
        close(f"Sin.backward({gy}) at {value}", function.backward(np.array(gy)), np.cos(value) * gy)
        same("x.data after the calls", x.data, value)


@mistake("2a", "backward returns its own slope and forgets gy", "which number comes from behind?")
def without_gy(Sin, Variable):
    return variant(Sin, backward=lambda self, gy: np.cos(self.input.data)), Variable


@mistake("2a", "the slope is taken at gy instead of at the input", "what did __call__ remember?")
def slope_at_gy(Sin, Variable):
    return variant(Sin, backward=lambda self, gy: np.cos(gy)), Variable


@mistake(
    "2a",
    "the slope is taken at gy and multiplied by the input: the two are swapped",
    "which of the two is the value at which sin was computed?",
)
def swapped(Sin, Variable):
    return variant(Sin, backward=lambda self, gy: np.cos(gy) * self.input.data), Variable


@mistake("2a", "the sign is wrong: -cos is the slope of -sin", "does sin rise or fall at 0.5?")
def wrong_sign(Sin, Variable):
    return variant(Sin, backward=lambda self, gy: -np.cos(self.input.data) * gy), Variable


@mistake(
    "2a", "backward uses sin again: that is the value, not the slope", "how steep is sin at 0?"
)
def value_for_slope(Sin, Variable):
    return variant(Sin, backward=lambda self, gy: np.sin(self.input.data) * gy), Variable


@mistake(
    "2a",
    "np.cos is given a box: x is the name of a box outside, in backward it was never set",
    "what does self.input hold, and what lies in it?",
)
def of_the_box(Sin, Variable):
    return variant(Sin, backward=lambda self, gy: np.cos(Variable(self.input.data)) * gy), Variable


@checker(
    "2b",
    hint=(
        "how many functions run on the way there, and what does each remember?",
        "three calls, so three objects; then their backward in reverse order, from the seed 1.0",
        "x.grad = A.backward(B.backward(C.backward(np.array(1.0))))",
    ),
)
def exp_square_exp(gradient, Variable, Exp, Square):
    for value in (0.1, -0.5, 0.3):
        x = Variable(np.array(value))
        expected = 2 * np.exp(2 * value) * np.exp(np.exp(2 * value))
        walked: list[tuple[str, float]] = []
        with ExitStack() as watching:
            for cls in (Exp, Square):
                watching.enter_context(patch.object(cls, "backward", noted(cls, walked)))
            observed = gradient(x)
        close(f"the gradient at {value}", observed, expected)
        if x.grad is None:
            raise Mismatch("x.grad", None, "the gradient you returned")
        close(f"x.grad at {value}", x.grad, expected)
        same("the list of backward calls", [name for name, _ in walked], ["Exp", "Square", "Exp"])
        a = np.exp(value)
        close(
            "the inputs of the functions walked back", [at for _, at in walked], [a * a, a, value]
        )


def noted(cls, walked):
    """The backward of a class; each call leaves the class and the remembered input in ``walked``."""
    backward = cls.backward

    def watched(self, gy):
        walked.append((cls.__name__, float(self.input.data)))
        return backward(self, gy)

    return watched


@mistake(
    "2b",
    "one Exp object serves both calls: it remembers only its last input",
    "what does E remember after its second call?",
)
def one_exp_for_both(gradient, Variable, Exp, Square):
    def walk(x):
        E, B = Exp(), Square()
        E(B(E(x)))
        x.grad = E.backward(B.backward(E.backward(np.array(1.0))))
        return x.grad

    return walk, Variable, Exp, Square


@mistake("2b", "the gradient is returned but not kept", "where do others look for it later?")
def not_kept(gradient, Variable, Exp, Square):
    def walk(x):
        A, B, C = Exp(), Square(), Exp()
        C(B(A(x)))
        return A.backward(B.backward(C.backward(np.array(1.0))))

    return walk, Variable, Exp, Square


@mistake("2b", "the functions are applied in another order", "which function sees x first?")
def another_order(gradient, Variable, Exp, Square):
    def walk(x):
        A, B, C = Square(), Exp(), Exp()
        C(B(A(x)))
        x.grad = A.backward(B.backward(C.backward(np.array(1.0))))
        return x.grad

    return walk, Variable, Exp, Square


@mistake("2b", "backward runs in the order of forward", "who knows how much y changes?")
def forward_order(gradient, Variable, Exp, Square):
    def walk(x):
        A, B, C = Exp(), Square(), Exp()
        C(B(A(x)))
        x.grad = C.backward(B.backward(A.backward(np.array(1.0))))
        return x.grad

    return walk, Variable, Exp, Square


@mistake(
    "2b",
    "the gradient is measured or written as a formula, without backward",
    "it is the right number; can the three functions find it, too?",
)
def by_formula(gradient, Variable, Exp, Square):
    def formula(x):
        x.grad = 2 * np.exp(2 * x.data) * np.exp(np.exp(2 * x.data))
        return x.grad

    return formula, Variable, Exp, Square


@checker(
    "2c",
    hint=(
        "which gradient does each letter need, and which does it make?",
        "C needs y.grad, B needs b.grad, A needs a.grad; only y.grad is there at the start",
        'go through the order with a set of what is known, {"y"} at first: return the letter whose '
        "need is not in it, else add what it makes",
    ),
)
def first_to_fail(first_to_fail):
    expected = {"CBA": None, "CAB": "A", "BCA": "B", "BAC": "B", "ABC": "A", "ACB": "A"}
    for order, letter in expected.items():
        if (observed := first_to_fail(order)) != letter:
            raise Mismatch(f"first_to_fail({order!r})", observed, letter)


@mistake("2c", "only the first letter is looked at", "after a good first letter, who comes next?")
def first_letter(first_to_fail):
    return (lambda order: None if order[0] == "C" else order[0],)


@mistake("2c", "only CBA is known, and the first letter blamed for every other order", "who fails?")
def first_letter_blamed(first_to_fail):
    return (lambda order: None if order == "CBA" else order[0],)


@mistake("2c", "the order of forward, ABC, is taken for the one that works", "who has y.grad?")
def forward_is_right(first_to_fail):
    return (lambda order: next((a for a, b in zip(order, "ABC", strict=True) if a != b), None),)
