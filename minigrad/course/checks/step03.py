"""The checkers of step 3."""

import numpy as np

from ..check import Mismatch, checker, same


def chain(Variable, *classes):
    """A box at the end of a chain of functions, the first class applied first."""
    box = Variable(np.array(0.5))
    for each in classes:
        box = each()(box)
    return box


@checker("3a", hint="count while v has a creator; then v becomes the creator's input")
def depth(depth, Variable, Square):
    for length in (0, 1, 2, 3, 40):
        same(f"depth after {length} functions", depth(chain(Variable, *[Square] * length)), length)


@checker(
    "3b",
    hint="type(v.creator).__name__ is the name of the function; 'a leaf' comes last; "
    "join with ' of '",
)
def in_words(in_words, Variable, Square, Exp):
    for classes in ((), (Exp,), (Square, Exp), (Square, Exp, Square), (Exp, Exp, Square)):
        expected = " of ".join([*(each.__name__ for each in reversed(classes)), "a leaf"])
        said = in_words(chain(Variable, *classes))
        same("the chain in words", repr(said), repr(expected))


@checker(
    "3c",
    hint="make one object, square = Square(), and call it two times: a = square(x), y = square(a); "
    "return x, a, y in this order",
)
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
