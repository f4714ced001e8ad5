"""The checkers of step 3, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, same


def chain(Variable, *classes):
    """A box at the end of a chain of functions, the first class applied first."""
    box = Variable(np.array(0.5))
    for each in classes:
        box = each()(box)
    return box


def creators(v):
    """The functions behind a box of a chain, the last one first."""
    found = []
    while v.creator is not None:
        found.append(v.creator)
        v = v.creator.input
    return found


@checker("3a")
def depth(depth, Variable, Square):
    for length in (0, 1, 2, 3, 40):
        same(f"depth after {length} functions", depth(chain(Variable, *[Square] * length)), length)


@checker("3b")
def in_words(in_words, Variable, Square, Exp):
    for classes in ((), (Exp,), (Square, Exp), (Square, Exp, Square), (Exp, Exp, Square)):
        expected = " of ".join([*(each.__name__ for each in reversed(classes)), "a leaf"])
        said = in_words(chain(Variable, *classes))
        same("the chain in words", repr(said), repr(expected))


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


def leaf_for(function):
    """A leaf that holds 3, of the class of box that a function makes."""
    any_box = type("Box", (), {"data": np.array(3.0), "creator": None, "generation": 0})()
    return type(function(any_box))(np.array(3.0))
