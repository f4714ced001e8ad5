"""The checkers of part A. Linked nodes: steps 1 to 4."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

from ..check import checker
from ..judge import RECURSION, Mismatch, Wrong, close, same, stack_depth


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


@checker("2b")
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


@checker("3c")
def used_twice(used_twice, Square):
    made = used_twice()
    if not isinstance(made, (tuple, list)) or len(made) != 3:
        raise Mismatch("what used_twice() returns", made, "three boxes: x, a, y")
    x, a, y = made
    if x.creator is not None:
        raise Mismatch("the creator of x", type(x.creator).__name__, None)
    if not isinstance(y.creator, Square):
        raise Mismatch("the creator of y", y.creator, "a Square")
    if y.creator is not a.creator:
        raise Mismatch("what made a and y", "two Square objects", "one and the same")
    if not np.isclose(y.data, x.data**4):
        raise Mismatch("y", y.data, x.data**4)
    if a.creator.input is not a:
        raise Mismatch("a.creator.input", "another box", "a itself: the link that is broken")


def deep_leaf(Variable):
    """A leaf that refuses to be looked at from deep inside a recursion."""
    allowed = stack_depth() + 500

    class Leaf(Variable):  # type: ignore[misc, valid-type]
        @property
        def creator(self):
            if stack_depth() > allowed:
                raise Wrong(RECURSION.format(what="to the leaf of a long chain", per="function"))
            return None

        @creator.setter
        def creator(self, value):
            pass

    return Leaf(np.array(1.0))


@checker("4e")
def backward(Variable, Square, Exp):
    x = Variable(np.array(3.0))
    y = Square()(x)
    y.grad = np.array(10.0)
    y.backward()
    close(
        "the list of gradients [y, x] for y = square(x) at 3, with the seed 10,",
        [y.grad, x.grad],
        [10.0, 60.0],
    )
    x = Variable(np.array(0.5))
    a = Square()(x)
    b = Exp()(a)
    y = Square()(b)
    y.grad = np.array(10.0)
    y.backward()
    close(
        "the list of gradients [y, b, a, x] for y = square(b), b = exp(a), a = square(x) at 0.5, "
        "with the seed 10,",
        [v.grad for v in (y, b, a, x)],
        [10.0, 20 * np.exp(0.25), 20 * np.exp(0.5), 20 * np.exp(0.5)],
    )
    a.grad = x.grad = None
    a.backward()
    close("x.grad when the walk starts at a = square(x)", x.grad, 1.0)
    v = leaf = deep_leaf(Variable)
    for _ in range(3_000):
        v = Square()(v)
    v.grad = np.array(0.0)
    v.backward()
    close("x.grad after 3000 functions with the seed 0", leaf.grad, 0.0)


@checker("4a")
def in_order(in_order, Variable, Square, Exp):
    v = Variable(np.array(0.5))
    same("the list for a leaf", in_order(v), [])
    for function in (Square, Exp, Exp):
        v = function()(v)
    same("the list for exp(exp(square(x)))", in_order(v), ["Square", "Exp", "Exp"])
    v = deep_leaf(Variable)
    for _ in range(20_000):
        v = Square()(v)
    found = in_order(v)
    same("the length of the list for a chain of 20000", len(found), 20_000)
    same("the set of names in it", set(found), {"Square"})


@checker("4c")
def advice(advice, Variable, square):
    leaf = Variable(np.array(2.0))
    for thing, name, words in (
        (0.5, "0.5", ("0.5", "np.array")),
        (2.25, "2.25", ("2.25", "np.array")),
        (leaf, "a leaf", ("leaf", "backward()")),
    ):
        try:
            said = advice(thing)
        except (TypeError, ValueError, RuntimeError) as error:
            if type(error) is NotImplementedError:  # nothing written yet
                raise
            raise Mismatch(
                f"what advice does with {name}", "raise an error", "return a text"
            ) from None
        for word in words:
            if not isinstance(said, str) or word not in said.lower():
                raise Mismatch(f"the advice for {name}", repr(said), f"a text with {word!r} in it")
    if (said := advice(square(leaf))) is not None:
        raise Mismatch("the advice for square(x)", said, None)
