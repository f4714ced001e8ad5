"""The checkers of part A. Linked nodes: steps 1 to 4."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np

from ..check import checker
from ..judge import RECURSION, Mismatch, Wrong, close, instance, require, same, stack_depth


def square_of(Variable):
    """x² from box to box; an array, which has a .data, too, is no box."""

    def square(box):
        is_box = isinstance(box, Variable)
        require(is_box, "what f was called with", type(box).__name__, "a box, Variable(…)")
        return Variable(box.data**2)

    return square


@checker("1c")
def bad_steps(too_small, too_large):
    small = "negative" if too_small < 0 else too_small
    require(0 < too_small < 1e-8, "too_small", small, "a number between 0 and 1e-8")
    require(too_large > 1e-3, "too_large", too_large, "a number above 1e-3")
    for eps in (too_small, too_large):
        rise = np.exp((0.5 + eps) ** 2) ** 2 - np.exp((0.5 - eps) ** 2) ** 2
        error = abs(rise / (2 * eps) - 2 * np.exp(0.5))
        require(error > 0.01, f"the error with eps = {eps}", error, "more than 0.01")


@contextmanager
def noted(*methods):
    """What is called meanwhile of methods, given as (class, name): objects and words, in order."""
    called = []

    def noting(plain):
        def call(self, *args, **options):
            called.append((self, " ".join([plain.__name__, *options])))
            try:
                return plain(self, *args, **options)
            except RuntimeError:
                called.append((self, f"an error of {plain.__name__}"))
                raise

        return call

    with ExitStack() as patches:
        for cls, name in methods:
            patches.enter_context(patch.object(cls, name, noting(getattr(cls, name))))
        yield called


@checker("2b")
def exp_square_exp(gradient, Variable, Exp, Square):
    for value in (0.1, -0.5, 0.3):
        x = Variable(np.array(value))
        expected = 2 * np.exp(2 * value) * np.exp(np.exp(2 * value))
        with noted((Exp, "backward"), (Square, "backward")) as called:
            observed = gradient(x)
        close(f"the gradient at {value}", observed, expected)
        close(f"x.grad at {value}", x.grad, expected)
        names = [type(function).__name__ for function, _ in called]
        same("the list of backward calls", names, ["Exp", "Square", "Exp"])
        inputs = [float(function.input.data) for function, _ in called]
        a = np.exp(value)
        close("the list of inputs of the functions walked back", inputs, [a * a, a, value])


@checker("2c")
def first_to_fail(first_to_fail):
    orders = ("CBA", "CAB", "BCA", "BAC", "ABC", "ACB")
    answers = [first_to_fail(order) for order in orders]
    same(f"the list of answers for {', '.join(orders)}", answers, [None, "A", "B", "B", "A", "A"])


@checker("3c")
def used_twice(used_twice, Square):
    boxes = used_twice()
    instance(tuple | list, "what used_twice() returns", boxes, "three boxes: x, a, y", 3)
    x, a, y = boxes
    require(x.creator is None, "the creator of x", type(x.creator).__name__, None)
    instance(Square, "the creator of y", y.creator, "a Square")
    require(y.creator is a.creator, "what made a and y", "two Square objects", "one and the same")
    require(np.allclose(y.data, x.data**4), "y", y.data, x.data**4)
    broken = a.creator.input is a
    require(broken, "a.creator.input", "another box", "a itself: the link that is broken")


def deep_leaf(Variable):
    """A leaf that refuses to be looked at from deep inside a recursion."""
    allowed = stack_depth() + 500

    def creator(leaf):
        if stack_depth() > allowed:
            raise Wrong(RECURSION.format(what="to the leaf of a long chain", per="function"))

    Leaf = type("Leaf", (Variable,), {"creator": property(creator, lambda leaf, value: None)})
    return Leaf(np.array(1.0))


def applied(functions, v):
    """What a chain of functions makes of a box."""
    for function in functions:
        v = function()(v)
    return v


def walked(*boxes, seed=10.0):
    """The gradients of boxes after a walk that starts at the first of them."""
    boxes[0].grad = np.array(seed)
    boxes[0].backward()
    return [box.grad for box in boxes]


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
            what = f"what advice does with {name}"
            raise Mismatch(what, "raise an error", "return a text") from None
        for word in words:
            holds = isinstance(said, str) and word in said.lower()
            require(holds, f"the advice for {name}", repr(said), f"a text with {word!r} in it")
    same("the advice for square(x)", advice(square(leaf)), None)
