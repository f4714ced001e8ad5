"""The checkers of step 3, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..diagnosis import mistake
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


@checker(
    "3a",
    hint=(
        "where does the walk end, and how do you get from one box to the one before?",
        "count while v has a creator; then v becomes the creator's input",
        "while v.creator is not None: count += 1; v = v.creator.input",
    ),
)
def depth(depth, Variable, Square):
    for length in (0, 1, 2, 3, 40):
        same(f"depth after {length} functions", depth(chain(Variable, *[Square] * length)), length)


@mistake("3a", "boxes are counted: there is one more of them", "how deep is a leaf?")
def counts_boxes(depth, Variable, Square):
    return lambda v: len(creators(v)) + 1, Variable, Square


@mistake("3a", "the walk stops after one function", "what does the creator's input have, too?")
def only_one(depth, Variable, Square):
    return lambda v: int(v.creator is not None), Variable, Square


@mistake("3a", "the leaf is asked for its creator's input: it has no creator", "where does it end?")
def no_end(depth, Variable, Square):
    def walk(v):
        count = 0
        while v is not None:
            count, v = count + 1, v.creator.input
        return count

    return walk, Variable, Square


@checker(
    "3b",
    hint=(
        "which name comes first, that of the last function or that of the first?",
        "type(v.creator).__name__ is the name of the function; 'a leaf' comes last; "
        "join with ' of '",
        '" of ".join([*names, "a leaf"]), with names from the walk of 3a',
    ),
)
def in_words(in_words, Variable, Square, Exp):
    for classes in ((), (Exp,), (Square, Exp), (Square, Exp, Square), (Exp, Exp, Square)):
        expected = " of ".join([*(each.__name__ for each in reversed(classes)), "a leaf"])
        said = in_words(chain(Variable, *classes))
        same("the chain in words", repr(said), repr(expected))


def words(end, *, turned=False, name=lambda f: type(f).__name__):
    def say(v):
        names = [name(f) for f in creators(v)]
        return " of ".join([*(names[::-1] if turned else names), *end])

    return say


@mistake("3b", "the leaf at the end is not named", "what should a box without creator be called?")
def leaf_forgotten(in_words, Variable, Square, Exp):
    return words([]), Variable, Square, Exp


@mistake("3b", "the first function is named first", "what do you meet first, walking from y?")
def first_function_first(in_words, Variable, Square, Exp):
    return words(["a leaf"], turned=True), Variable, Square, Exp


@mistake("3b", "the leaf has no article: 'leaf'", "how does the example end?")
def without_article(in_words, Variable, Square, Exp):
    return words(["leaf"]), Variable, Square, Exp


@mistake("3b", "the whole creator is put into words, not its name", "what is the name of its type?")
def whole_creator(in_words, Variable, Square, Exp):
    return words(["a leaf"], name=str), Variable, Square, Exp


@checker(
    "3c",
    hint=(
        "how many Square objects do you make, and how often do you call one?",
        "make one object and call it two times, the second time on what it made",
        "square = Square(); a = square(x); y = square(a); return x, a, y",
    ),
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


@mistake(
    "3c", "Square() stands there twice: two objects, each with its own links", "who is reused?"
)
def twice_new(used_twice, Square):
    def build():
        x = leaf_for(Square())
        a = Square()(x)
        return x, a, Square()(a)

    return build, Square


@mistake("3c", "the boxes come in another order", "which of the three has no creator?")
def turned(used_twice, Square):
    def build():
        square = Square()
        x = leaf_for(Square())
        a = square(x)
        return square(a), a, x

    return build, Square


@mistake("3c", "the object is called on x both times", "what is squared in y?")
def on_x_again(used_twice, Square):
    def build():
        square = Square()
        x = leaf_for(Square())
        return x, square(x), square(x)

    return build, Square


def leaf_for(function):
    """A leaf that holds 3, of the class of box that a function makes."""
    any_box = type("Box", (), {"data": np.array(3.0), "creator": None, "generation": 0})()
    return type(function(any_box))(np.array(3.0))
