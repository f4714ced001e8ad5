"""The checkers of step 4, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..judge import RECURSION, Mismatch, Wrong, close, same, stack_depth


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
