"""The checkers of step 4, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..diagnosis import mistake
from ..judge import Mismatch, Wrong, close, same, stack_depth
from .step03 import creators, leaf_for


def deep_leaf(Variable):
    """A leaf that refuses to be looked at from deep inside a recursion."""
    allowed = stack_depth() + 500

    class Leaf(Variable):  # type: ignore[misc, valid-type]
        @property
        def creator(self):
            if stack_depth() > allowed:
                raise Wrong(
                    "the walk to the leaf of a long chain is a recursion: it opens a call per "
                    "function, and raising Python's limit only moves the end"
                )
            return None

        @creator.setter
        def creator(self, value):
            pass

    return Leaf(np.array(1.0))


@checker(
    "4e",
    hint=(
        "which three lines did you write three times in step 3, and which name changes?",
        "functions = [self.creator]; as long as it holds one: take it out, do the three lines, put "
        "x.creator in unless x is a leaf",
        "while functions: f = functions.pop(); x = f.input; x.grad = f.backward(f.output.grad); "
        "if x.creator is not None: functions.append(x.creator)",
    ),
)
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


@checker(
    "4a",
    hint=(
        "what does the walk of the loop meet first, and in which order shall the list be?",
        "while v.creator is not None: append the name of the creator's type, let v become "
        "v.creator.input",
        "collect the names in that loop, and return names[::-1]",
    ),
)
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


@mistake("4a", "the list is not turned round: the last function stands first", "who ran first?")
def last_first(in_order, Variable, Square, Exp):
    return lambda v: [type(f).__name__ for f in creators(v)], Variable, Square, Exp


@mistake("4a", "the list holds functions, or their classes, instead of names", "what is a name?")
def classes(in_order, Variable, Square, Exp):
    return lambda v: [type(f) for f in creators(v)][::-1], Variable, Square, Exp


@mistake("4a", "the function calls itself once per step", "which one variable changes in a loop?")
def recursive(in_order, Variable, Square, Exp):
    def walk(v):
        return [] if v.creator is None else [*walk(v.creator.input), type(v.creator).__name__]

    return walk, Variable, Square, Exp


@mistake("4a", "the loop stops one function too early", "does the last box before the leaf count?")
def one_too_few(in_order, Variable, Square, Exp):
    return lambda v: [type(f).__name__ for f in creators(v)[:-1]][::-1], Variable, Square, Exp


@checker(
    "4b",
    hint=(
        "which box gets the gradient, the one you made or the one f returned?",
        "make the box x from np.array(value), call backward() on f(x), look at x.grad",
        "x = Variable(np.array(value)); f(x).backward(); return x.grad",
    ),
)
def gradient(gradient, square, exp):
    close("the gradient of square at 3", gradient(square, 3.0), 6.0)
    close("the gradient of exp at -1", gradient(exp, -1.0), np.exp(-1))
    close(
        "the gradient of square(exp(square(x))) at 0.5",
        gradient(lambda x: square(exp(square(x))), 0.5),
        2 * np.exp(0.5),
    )
    calls = []

    def counted(x):
        calls.append(x)
        return square(x)

    gradient(counted, 3.0)
    same("the number of times f was called", len(calls), 1)


def box(square, value):
    """A leaf of the learner's class, with this number in it."""
    return type(leaf_for(square))(np.array(value))


@mistake("4b", "the value of f is returned", "what did backward() write, and where?")
def value_of_f(gradient, square, exp):
    return lambda f, value: f(box(square, value)).data, square, exp


@mistake(
    "4b", "the gradient of the result is returned: that is the seed, 1", "whose grad is asked?"
)
def of_the_result(gradient, square, exp):
    def seed(f, value):
        y = f(box(square, value))
        y.backward()
        return y.grad

    return seed, square, exp


@mistake("4b", "f runs twice, to measure it or for nothing", "which walk needs one run only?")
def twice(gradient, square, exp):
    def walk(f, value):
        x = box(square, value)
        f(x)
        f(x).backward()
        return x.grad

    return walk, square, exp


@mistake("4b", "the box itself is returned", "in which of its fields does the gradient lie?")
def whole_box(gradient, square, exp):
    return lambda f, value: box(square, value), square, exp


@mistake("4b", "f gets a bare number", "what does f take, and what does it return?")
def bare_number(gradient, square, exp):
    return lambda f, value: f(value).backward(), square, exp


@checker(
    "4c",
    hint=(
        "how do you tell a float, a leaf and a result apart?",
        "isinstance(thing, float) finds the float; a leaf is a Variable whose creator is None",
        'return f"{thing} is a float: use np.array({thing})" for the float, a text with leaf and '
        "backward() for the leaf, and None for the rest",
    ),
)
def advice(advice, Variable, square):
    leaf = Variable(np.array(2.0))
    for thing, name, words in (
        (0.5, "0.5", ("0.5", "np.array")),
        (2.25, "2.25", ("2.25", "np.array")),
        (leaf, "a leaf", ("leaf", "backward()")),
    ):
        said = advice(thing)
        for word in words:
            if not isinstance(said, str) or word not in said.lower():
                raise Mismatch(f"the advice for {name}", repr(said), f"a text with {word!r} in it")
    if (said := advice(square(leaf))) is not None:
        raise Mismatch("the advice for square(x)", said, None)


def right_advice(thing):
    if isinstance(thing, float):
        return f"{thing} is a float: use np.array"
    return None if thing.creator else "a leaf: call backward() on a result"


@mistake("4c", "the advice quotes a fixed number", "which float was given this time?")
def fixed_number(advice, Variable, square):
    def advise(thing):
        return "0.5 is a float: use np.array" if isinstance(thing, float) else right_advice(thing)

    return advise, Variable, square


@mistake("4c", "a float is asked for its creator", "which of the two questions comes first?")
def creator_first(advice, Variable, square):
    return lambda thing: None if thing.creator else right_advice(thing), Variable, square
