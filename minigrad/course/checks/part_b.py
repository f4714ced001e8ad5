"""The checkers of part B. Real graphs: steps 5 to 9."""

import weakref
from functools import reduce
from typing import Any
from unittest.mock import patch

import numpy as np

from ...atomic import gc_paused
from ..check import checker
from ..judge import Mismatch, close, instance, require, same
from ..solution import rows
from .part_a import deep_leaf


@checker("5b")
def in_turn(gradients_in_turn, Variable):
    calls: list[str] = []

    def counted(formula):
        def call(x):
            calls.append(formula)
            return eval(formula, {"x": x})

        return call

    formulas = ["x + x", "x * x", "x * x * x"]
    x = Variable(np.array(2.0))
    x.grad = np.array(100.0)  # somebody was here before
    gradients = gradients_in_turn(x, [counted(each) for each in formulas])
    instance(list, "what comes back", gradients, "a list of three gradients", 3)
    for formula, observed, expected in zip(formulas, gradients, (2.0, 4.0, 12.0), strict=True):
        close(f"the gradient of {formula} at 2", observed, expected)
    same("the list of functions that were called", calls, formulas)


def diamond(x, square):
    a = square(x)
    return square(a) + square(a)


def graphs(Variable, square):
    """Graphs by name: what they compute from x, where a = square(x)."""
    x = Variable(np.array(1.0))
    names = {"x": x, "a": square(x), "square": square, "reduce": reduce}
    return {words: eval(formula, names) for words, formula in rows("6a")}


@checker("6e")
def by_generation_first(by_generation, Variable, square):
    verify_orders(by_generation, graphs(Variable, square), Variable, square)


@checker("6a")
def longest_way(longest_way, Variable, square):
    every = graphs(Variable, square)
    expected = {words: y.creator.generation if y.creator else 0 for words, y in every.items()}
    forget_generations(every)
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


def forget_generations(graphs):
    """From here on only the links tell how deep a variable lies."""
    for y in graphs.values():
        for f in behind(y):
            vars(f).pop("generation", None)


@checker("6b")
def topological(topological, Variable, square):
    every = graphs(Variable, square)
    forget_generations(every)
    verify_orders(topological, every, Variable, square, order=topological)
    long = deep_leaf(Variable)
    for _ in range(20_000):
        long = square(long)
    same("the length of the order of a chain of 20000", len(list(topological(long))), 20_000)


def verify_orders(order_of, graphs, Variable, square, **options):
    """The order of every graph, and what backward makes of it, called with options."""
    for words, y in graphs.items():
        if y.creator is not None:
            verify_order(words, y, order_of(y))
    x = Variable(np.array(2.0))
    diamond(x, square).backward(**options)
    same("the gradient of the diamond at 2 in your order", float(x.grad), 64.0)


def verify_order(words, y, order):
    """Every function behind y once, each after all functions that use its output."""
    require(order is not None, f"the order of {words}", None, "a list of functions")
    order = list(order)
    functions = behind(y)
    same(f"the number of functions in the order of {words}", len(order), len(functions))
    each_once = set(order) == set(functions)
    others = "other functions, or one twice"
    require(each_once, f"the order of {words}", others, "every function behind y once")
    place = {f: i for i, f in enumerate(order)}
    for user in order:
        for f in [x.creator for x in user.inputs if x.creator is not None]:
            what = f"in the order of {words}, number {place[f]}"
            early = f"{type(f).__name__}, before the {type(user).__name__} that uses it"
            require(place[user] < place[f], what, early, "users first")


@checker("6c")
def smallest(smallest, Variable):
    x = Variable(np.array(3.0))
    y = smallest(x)
    computed = getattr(y, "creator", None) is not None
    require(computed, "what smallest(x) returns", y, "a variable computed from x")
    visits: list[Any] = []
    stack = [y.creator]
    while stack and len(visits) < 10_000:
        visits.append(stack.pop())
        stack.extend(v.creator for v in visits[-1].inputs if v.creator is not None)
    y.backward(order=lambda y: visits)
    lifo, x.grad = x.grad, None
    smallest(x).backward()
    differs = not np.allclose(lifo, x.grad)
    require(differs, "the LIFO gradient", lifo, f"something else than the right one, {x.grad}")
    count = len(set(visits))
    require(count == 2, "the number of functions", count, "2: that is enough")


class Thing:
    """An object with links."""


@checker("7a")
def link(link):
    v, f = Thing(), Thing()
    link(v, f)
    creator = getattr(v, "creator", None)
    output: Any = getattr(f, "output", None)
    require(creator is f, "v.creator", creator, "f itself")
    said = "v itself" if output is v else output
    require(callable(output), "f.output", said, "a weak reference, which is called to get v")
    require(output() is v, "f.output()", output(), "v")
    probes = [weakref.ref(v), weakref.ref(f)]
    with gc_paused():
        del v, f, creator, said
        gone = all(probe() is None for probe in probes)
    require(gone, "what is left of v and f when their names are gone", "a circle", "nothing")


@checker("7b")
def using_config(using_config, Config):
    before = Config.recording
    values = []
    with patch.multiple(Config, create=True, some_switch=1, recording=before):
        with using_config("some_switch", 2):
            values.append(Config.some_switch)
            with using_config("some_switch", 3):
                values.append(Config.some_switch)
            values.append(Config.some_switch)
        values.append(Config.some_switch)
        same(
            "the list of values of Config.some_switch in a block that sets it to 2, in an inner one "
            "that sets it to 3, after the inner one, and after both, where it was 1,",
            values,
            [2, 3, 2, 1],
        )
        for error, ended in ((KeyError, "failed"), (KeyboardInterrupt, "was interrupted")):
            try:
                with using_config("some_switch", 4):
                    raise error("inside the block")
            except error:
                pass
            else:
                raise Mismatch("the error raised inside the block", "swallowed", "passed on")
            what = f"Config.some_switch after a block that set it to 4 and {ended}"
            same(what, Config.some_switch, 1)
        with using_config("recording", False):
            same("Config.recording in a block that sets it to False", Config.recording, False)
        same("Config.recording after that block", Config.recording, before)


@checker("7c")
def fresh_backward(fresh_backward, Variable, square):
    x = Variable(np.array(3.0))
    a = x * x
    y = a * x
    y.backward(retain_grad=True)
    for _ in range(2):
        fresh_backward(y)
        close("the gradient of x³ at 3", x.grad, 27.0)
        close("the gradient in between, of a = x * x,", a.grad, 3.0)
    x = Variable(np.array(2.0))
    z = diamond(x, square)
    for _ in range(2):
        fresh_backward(z)
        close("the gradient of the diamond at 2", x.grad, 64.0)


@checker("8a")
def power(Power, Variable, gradcheck):
    for base, exponent in ((3.0, 2.5), (0.5, -1.5), (1.5, 0.25), ([2.0, 4.0], [3.0, 0.5])):
        a, b = Variable(np.array(base)), Variable(np.array(exponent))
        function = Power()
        y = function(a, b)
        power = a.data**b.data
        close(f"{base} ** {exponent}", y.data, power)
        gy = np.full(power.shape, -2.0)
        gxs = function.backward(gy)
        require(np.all(gy == -2), "gy after backward", gy, "still -2")
        instance(tuple, "what backward returns", gxs, "a tuple of two gradients", 2)
        slopes = b.data * power / a.data, power * np.log(a.data)
        for i, slope in enumerate(slopes):
            close(f"gradient {i} of {base} ** {exponent} for gy = -2", gxs[i], -2 * slope)
        gradcheck(lambda a, b: Power()(a, b), a, b)


@checker("8b")
def three_tanhs(ways, Variable, functions_behind):
    for name, way in zip(("Tanh", "tanh_by_two_exps", "tanh_by_one_exp"), ways, strict=True):
        for value in (-2.0, 0.0, 0.5, 1.0):
            x = Variable(np.array(value))
            y = way(x)
            same(f"what {name} returns", type(y).__name__, "Variable")
            close(f"{name} at {value}", y.data, np.tanh(value))
            (y * 3).backward()  # so that gy is 3
            slope = 1 - np.tanh(value) ** 2
            close(f"three times the gradient of {name} at {value}", x.grad, 3 * slope)
        x, z = Variable(np.array([0.5, 1.0])), Variable(np.array([-2.0, 0.3]))
        (way(x) + way(z)).backward()  # both get the same array gy
        slopes = 1 - np.tanh([x.data, z.data]) ** 2
        close(f"the list of gradients of {name}(x) + {name}(z) for x, z", [x.grad, z.grad], slopes)
    boxes = (way(Variable(np.array(0.5))) for way in ways)
    one, two_exps, one_exp = ([type(f).__name__ for f in functions_behind(y)] for y in boxes)
    same("the number of functions of the first way", len(one), 1)
    count = two_exps.count("Exp")
    what = "the number of Exp in the second way"
    require(count in (1, 2), what, count, "2 at most, and not none")
    same("the number of Exp in the third way", one_exp.count("Exp"), 1)


@checker("9a")
def sum_to(SumTo, Variable, gradcheck):
    values = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    for shape in ((3,), (1, 3), (2, 1), (), (2, 3)):
        x, function = Variable(values), SumTo(shape)
        y = function(x)
        same(f"the shape of SumTo({shape}) of a (2, 3)", y.data.shape, shape)
        close(f"the sum of all numbers after SumTo({shape})", y.data.sum(), values.sum())
        gy = np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)
        gx = function.backward(gy)
        gx = gx[0] if isinstance(gx, tuple) else gx  # the walk takes both
        close(f"the gradient of SumTo({shape})", gx, np.broadcast_to(gy, (2, 3)))
        gradcheck(lambda x, shape=shape: SumTo(shape)(x) * SumTo(shape)(x), x)


@checker("9b")
def mean(mean, Variable, gradcheck):
    table, row = np.array([[1.0, 2.0, 6.0], [-3.0, 0.5, 4.0]]), np.array([1.0, 2.0, 6.0, -3.0])
    for values, axis in ((table, None), (table, 0), (table, 1), (table, -1), (row, 0)):
        x = Variable(values)
        y = mean(x) if axis is None else mean(x, axis=axis)
        words = f"mean(x, axis={axis})" + " of four numbers" * (values is row)
        same(f"what {words} returns", type(y).__name__, "Variable")
        close(words, y.data, values.mean(axis=axis))
        require(y.creator, f"the creator of {words}", None, "a function: stay in the boxes")
        gradcheck(lambda x, axis=axis: mean(x, axis=axis) * mean(x, axis=axis), x)
