"""The checkers of step 6, and the mistakes that they know."""

from typing import Any

import numpy as np

from ..check import checker
from ..judge import Mismatch, same
from .step04 import deep_leaf


def diamond(x, square):
    a = square(x)
    return square(a) + square(a)


def late_branch(x, square):
    """A short way and a long way to the same sum."""
    a = square(x)
    return a + square(square(a) + a)


def doubled(x, times):
    for _ in range(times):
        x = x + x
    return x


def graphs(Variable, square):
    """Graphs by name."""
    x = Variable(np.array(1.0))
    return {
        "a leaf": x,
        "square(x)": square(x),
        "x + x": x + x,
        "(x + x) + x": (x + x) + x,
        "the diamond": diamond(x, square),
        "a + square(square(a) + a)": late_branch(x, square),
        "x + (x + x)": x + (x + x),
        "8 doublings": doubled(x, 8),
    }


@checker("6e")
def by_generation_first(by_generation, Variable, square):
    for words, y in graphs(Variable, square).items():
        if y.creator is not None:
            verify_order(words, y, by_generation(y))
    x = Variable(np.array(2.0))
    diamond(x, square).backward()
    same("the gradient of the diamond at 2 in your order", float(x.grad), 64.0)


@checker("6a")
def longest_way(longest_way, Variable, square):
    every = graphs(Variable, square)
    expected = {words: y.creator.generation if y.creator else 0 for words, y in every.items()}
    for y in every.values():
        forget_generations(y)
    for words, y in every.items():
        same(f"the longest way of {words}", longest_way(y), expected[words])


def behind(y):
    """The functions behind y, each once, as they are met: the last link found goes first."""
    found, todo = {}, [y]
    while todo:
        f = todo.pop().creator
        if f is not None and f not in found:
            found[f] = True
            todo.extend(f.inputs)
    return list(found)


def forget_generations(y):
    """From here on only the links tell how deep a variable lies."""
    for f in behind(y):
        vars(f).pop("generation", None)


@checker("6b")
def topological(topological, Variable, square):
    a = square(Variable(np.array(1.0)))
    every = graphs(Variable, square)
    every["square(a) + (a + a)"] = square(a) + (a + a)
    every["(a + a) + square(a)"] = (a + a) + square(a)
    for y in every.values():
        forget_generations(y)
    for words, y in every.items():
        if y.creator is not None:
            verify_order(words, y, topological(y))
    y = diamond(Variable(np.array(2.0)), square)
    y.backward(order=topological)
    leaf = y.creator.inputs[0].creator.input.creator.input
    same("the gradient of the diamond at 2 in your order", float(leaf.grad), 64.0)
    long = deep_leaf(Variable)
    for _ in range(20_000):
        long = square(long)
    same("the length of the order of a chain of 20000", len(list(topological(long))), 20_000)


def verify_order(words, y, order):
    """Every function behind y once, each after all functions that use its output."""
    if order is None:
        raise Mismatch(f"the order of {words}", None, "a list of functions")
    order = list(order)
    functions = behind(y)
    same(f"the number of functions in the order of {words}", len(order), len(functions))
    if set(order) != set(functions):
        raise Mismatch(
            f"the order of {words}", "other functions, or one twice", "every function behind y once"
        )
    place = {f: i for i, f in enumerate(order)}
    for user in order:
        for x in user.inputs:
            if x.creator is not None and place[x.creator] < place[user]:
                raise Mismatch(
                    f"in the order of {words}, number {place[x.creator]}",
                    f"{type(x.creator).__name__}, before the {type(user).__name__} that uses it",
                    "users first",
                )


@checker("6c")
def smallest(smallest, Variable):
    x = Variable(np.array(3.0))
    y = smallest(x)
    if getattr(y, "creator", None) is None:
        raise Mismatch("what smallest(x) returns", y, "a variable computed from x")
    visits: list[Any] = []
    stack = [y.creator]
    while stack and len(visits) < 10_000:
        visits.append(stack.pop())
        stack.extend(v.creator for v in visits[-1].inputs if v.creator is not None)
    y.backward(order=lambda y: visits)
    lifo, x.grad = x.grad, None
    again = smallest(x)
    again.backward()
    if np.allclose(lifo, x.grad):
        raise Mismatch("the LIFO gradient", lifo, f"something else than the right one, {x.grad}")
    if len(set(visits)) != 2:
        raise Mismatch("the number of functions", len(set(visits)), "2: that is enough")
