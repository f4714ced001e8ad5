"""mg.why for the engines of the course: links between objects, followed and numbered."""

from __future__ import annotations

import numpy as np

import minigrad as mg
from minigrad.explain.paths import MOST_PATHS


def ways(found):
    return [" → ".join(path) for path, _ in found.paths]


class Join:
    def __init__(self, *inputs):
        self.inputs = inputs


class One:
    def __init__(self, input):
        self.input = input


class Box:
    def __init__(self, creator=None, grad=None, name=None):
        self.data, self.creator, self.grad, self.name = 0.0, creator, grad, name


class Arrow:
    """A node as step 10 makes them: ``next_functions``, and a name that is a text or a method."""

    def __init__(self, name, *edges, variable=None):
        self.name, self.next_functions, self.variable = name, edges, variable


class Value:
    def __init__(self, grad_fn, grad=None):
        self.grad_fn, self.grad = grad_fn, grad


def test_links_are_followed_in_the_order_of_the_inputs():
    x = Box(grad=1.0)
    y = Box(Join(Box(One(x)), None, x, Box()))
    assert ways(mg.why(x, y)) == ["Join → One[0]", "Join[2]"]


def test_of_linked_variables_at_most_so_many_paths_are_followed():
    x = Box(grad=1.0)
    y = x
    for _ in range(6):
        y = Box(Join(y, y))
    assert len(mg.why(x, y).paths) == MOST_PATHS


def test_a_linked_variable_is_not_its_own_path():
    x = Box(grad=1.0)
    assert "no path leads" in mg.why(x, x).reason


def test_the_name_and_the_gradient_of_a_linked_variable_are_shown():
    x = Box(name="w")
    y = Box(One(x))
    assert str(mg.why(x)).startswith("w has no gradient: nothing has come to its .grad yet")
    x.grad = Box()
    x.grad.data = np.array(7.0)  # a gradient that is a variable itself
    assert str(mg.why(x)).startswith("the gradient of w is 7.\n")
    assert str(mg.why(x, y)) == "the gradient of w is 7., from 1 path:\n             ?  by  One[0]"


def test_an_engine_with_grad_fn_is_followed_along_next_functions():
    x = Value(None, grad=2.0)
    end = Arrow("AccumulateGrad", variable=x)
    low = Arrow(lambda: "Low", (end, 0), (None, 0))
    high = Arrow("High", (None, 0), (low, 0), (end, 0))
    assert ways(mg.why(x, Value(high))) == ["High → Low[0]", "High[2]"]
    between = Value(low, grad=3.0)
    assert ways(mg.why(between, Value(high))) == ["High[1]"]
    nameless = Arrow(None, (end, 0))
    assert ways(mg.why(x, Value(nameless))) == ["Arrow[0]"]
