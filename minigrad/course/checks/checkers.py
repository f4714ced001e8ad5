"""The checkers that are functions, in the order of the steps, and functions that the tables of ``cases`` use.

A checker takes the learner's own object and raises `Mismatch` when it does something else than
asked for.
"""

import ast
import re
import sys
import weakref
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from traceback import extract_tb
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import numpy as np

from minigrad import static

from ...atomic import gc_paused
from ...primitives.registry import REGISTRY, primitive
from ..check import checker
from ..judge import RECURSION, Mismatch, Wrong, close, instance, require, same, stack_depth
from ..parsons import with_backward
from ..solution import rows
from .step20 import NAME, NUMBER  # noqa: F401  # what the table of 20b compares with

# Part A. Linked nodes: steps 1 to 4


def square_of(Variable):
    """x² from box to box; an array, which has a .data, too, is no box."""

    def square(box):
        is_box = isinstance(box, Variable)
        require(is_box, "what f was called with", type(box).__name__, "a box, Variable(…)")
        return Variable(box.data**2)

    return square


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


def deep_leaf(Variable):
    """A leaf that refuses to be looked at from deep inside a recursion."""
    allowed = stack_depth() + 500

    def creator(leaf):
        if stack_depth() > allowed:
            raise Wrong(RECURSION.format(what="to the leaf of a long chain", per="function"))

    Leaf = type("Leaf", (Variable,), {"creator": property(creator, lambda leaf, value: None)})
    return Leaf(np.array(1.0))


@contextmanager
def no_recursion_through_3000():
    """In here a walk through so many nodes must not open a call per node."""
    try:
        yield
    except RecursionError:
        raise Wrong(RECURSION.format(what="through 3000 nodes", per="node")) from None


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
    for name, formula, words in rows("4c"):
        try:
            said = advice(eval(formula, {"leaf": leaf}))
        except (TypeError, ValueError, RuntimeError) as error:
            if type(error) is NotImplementedError:  # nothing written yet
                raise
            what = f"what advice does with {name}"
            raise Mismatch(what, "raise an error", "return a text") from None
        for word in words:
            holds = isinstance(said, str) and word in said.lower()
            require(holds, f"the advice for {name}", repr(said), f"a text with {word!r} in it")
    same("the advice for square(x)", advice(square(leaf)), None)


# Part B. Real graphs: steps 5 to 9


@checker("5b")
def in_turn(gradients_in_turn, Variable):
    calls: list[str] = []

    def counted(formula):
        def call(x):
            calls.append(formula)
            return eval(formula, {"x": x})

        return call

    formulas = [formula for formula, _ in rows("5b")]
    x = Variable(np.array(2.0))
    x.grad = np.array(100.0)  # somebody was here before
    gradients = gradients_in_turn(x, [counted(each) for each in formulas])
    instance(list, "what comes back", gradients, "a list of three gradients", 3)
    for (formula, slope), gradient in zip(rows("5b"), gradients, strict=True):
        close(f"the gradient of {formula} at 2", gradient, slope)
    same("the list of functions that were called", calls, formulas)


def diamond(x, square):
    a = square(x)
    return square(a) + square(a)


def graphs(Variable, square):
    """Graphs by name: what they compute from x, where a = square(x)."""
    x = Variable(np.array(1.0))
    names = {"x": x, "a": square(x), "square": square}
    return {words: eval(formula, names) for words, formula, _ in rows("6a")}


@checker("6e")
def by_generation_first(by_generation, Variable, square):
    verify_orders(by_generation, graphs(Variable, square))


@checker("6a")
def longest_way(longest_way, Variable, square):
    every = graphs(Variable, square)
    forget_generations(every)
    for words, _, longest in rows("6a"):
        same(f"the longest way of {words}", longest_way(every[words]), longest)


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
    verify_orders(topological, every)
    long = deep_leaf(Variable)
    for _ in range(20_000):
        long = square(long)
    same("the length of the order of a chain of 20000", len(list(topological(long))), 20_000)


def verify_orders(order_of, graphs):
    """Every function behind a variable once, each after all functions that use its output."""
    for words, y in graphs.items():
        functions = behind(y)
        if not functions:
            continue
        order = order_of(y)
        require(order is not None, f"the order of {words}", None, "a list of functions")
        order = list(order)
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


def last_in_first_out(y):
    """The functions behind y as a walk meets them that asks nobody, each as often as it does."""
    visits: list[Any] = []
    stack = [y.creator]
    while stack and len(visits) < 10_000:
        visits.append(stack.pop())
        stack.extend(v.creator for v in visits[-1].inputs if v.creator is not None)
    return visits


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
        what = "the list of values of a switch (1) in a block (2), one in it (3), and after each,"
        same(what, values, [2, 3, 2, 1])
        for error, ended in ((KeyError, "failed"), (KeyboardInterrupt, "was interrupted")):
            with suppress(error):
                with using_config("some_switch", 4):
                    raise error("inside the block")
                raise Mismatch("the error raised inside the block", "swallowed", "passed on")
            what = f"Config.some_switch after a block that set it to 4 and {ended}"
            same(what, Config.some_switch, 1)
        with using_config("recording", False):
            same("Config.recording in a block that sets it to False", Config.recording, False)
        same("Config.recording after that block", Config.recording, before)


@checker("8a")
def power(Power, Variable, gradcheck):
    for base, exponent in rows("8a"):
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
    what = "the list of functions of the second way"
    require(two_exps != one_exp, what, "that of the third way, too", "one of its own")


@checker("9a")
def sum_to(SumTo, Variable, gradcheck):
    values = np.array(rows("9a", "values"))
    for shape in map(tuple, rows("9a")):
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
    table, row = arrays("9b").values()
    for values, axis in ((table, None), (table, 1), (table, 0), (table, -1), (row, 0)):
        x = Variable(values)
        y = mean(x) if axis is None else mean(x, axis=axis)
        words = f"mean(x, axis={axis})" + " of four numbers" * (values is row)
        same(f"what {words} returns", type(y).__name__, "Variable")
        close(words, y.data, values.mean(axis=axis))
        require(y.creator, f"the creator of {words}", None, "a function: stay in the boxes")
        gradcheck(lambda x, axis=axis: mean(x, axis=axis) * mean(x, axis=axis), x)


# Part C. The backward graph is an object: steps 10 to 12


def leaves_and(Tensor):
    """The names of formulas: three leaves, and what makes a constant."""
    a, b, d = (Tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    return {"a": a, "b": b, "d": d, "Tensor": Tensor}


@checker("10e")
def walk(walk, Tensor, Node):
    a, b, *_ = leaves_and(Tensor).values()
    with noted((Node, "__call__")) as called:
        (a + a).backward()
        (a + b).backward()
    add, leaf = "AddBackward0", "AccumulateGrad"
    names = [node.name() for node, _ in called]
    what = "the list of nodes called for a + a, then for a + b"
    same(what, names, [add, leaf, add, leaf, leaf])
    for words, formula, wanted, expected in rows("10e"):
        values = leaves_and(Tensor)
        leaves = [values[name] for name in wanted]
        with noted((Node, "__call__")) as called:
            eval(formula, values).backward()
        observed = [None if x.grad is None else float(x.grad.data) for x in leaves]
        same(f"the list of gradients of {words}", observed, expected)
        recorded = any(x.grad is not None and x.grad.grad_fn for x in leaves)
        require(not recorded, "the grad_fn of a gradient", "a node", None)
        nodes = {node for node, _ in called}
        same(f"the number of calls for {words}", len(called), len(nodes))
    y = a
    for _ in range(3000):
        y = y + 1.0
    with no_recursion_through_3000():
        y.backward()
    a.grad = None

    class Second(Node):  # type: ignore[misc, valid-type]
        def backward(self, *grads):
            came = [
                f"{type(grad).__name__} {np.shape(getattr(grad, 'data', ()))}" for grad in grads
            ]
            what = "the list of what a node gets at its two slots"
            same(what, came, ["Tensor (2,)", "Tensor ()"])
            return (Tensor(grads[0].data.sum() + grads[1].data),)

    node = Second(a)
    node.output_shapes = ((2,), ())
    second = Tensor(5.0, grad_fn=node, output_nr=1)
    walk(((second * 4.0).grad_fn, 0), Tensor(1.0))
    close("a.grad behind the second of two outputs, times 4", a.grad.data, 4.0)


@checker("10a")
def leaves(leaves, Tensor):
    values = leaves_and(Tensor)
    a, b, *_ = values.values()
    for words, formula, wanted in rows("10a"):
        expected = [values[name] for name in wanted]
        compare(f"leaves of {words}", leaves(eval(formula, values)), expected)
    y = a + b
    bottom = y.grad_fn.next_functions = Edges(y.grad_fn.next_functions)
    bottom.deepest = stack_depth() + 500
    for _ in range(3000):
        y = y + b
    with no_recursion_through_3000():
        compare("leaves of a sum of 3002 terms", leaves(y), [a, b])
    y = a
    for _ in range(40):
        y = y + y  # 2**40 paths, 40 nodes
        y.grad_fn.next_functions = Edges(y.grad_fn.next_functions)
    Edges.looks = 0
    compare("leaves of 40 doublings", leaves(y), [a])


class Edges(tuple[object, ...]):
    """next_functions that refuse to be looked at from deep in the stack, or again and again."""

    looks = 0
    deepest = sys.maxsize

    def __iter__(self):
        Edges.looks += 1
        if stack_depth() > self.deepest:
            raise RecursionError
        few = Edges.looks <= 1000 or self.deepest < sys.maxsize
        what = "the number of looks at next_functions, for 40 doublings"
        require(few, what, "above 1000", "about 40: go on from each node once, not on every path")
        return super().__iter__()

    def __getitem__(self, index):
        return list(self)[index]


def compare(what, observed, expected):
    listed = isinstance(observed, list | tuple | set)
    observed = list(observed) if listed else observed
    alike = listed and sorted(map(id, observed)) == sorted(map(id, expected))
    require(alike, what, observed, expected)


@checker("10c")
def crossed(crossed, Tensor):
    x = Tensor([5.0, 7.0], requires_grad=True)
    edges = crossed(x).grad_fn.next_functions
    same("the list of output indices", [index for _, index in edges], [1, 0])
    first, second = (node for node, _ in edges)
    if None in (first, second):
        raise Wrong("an edge leads nowhere, expected two edges to one node")
    if first is not second:
        raise Wrong("the two edges lead to two nodes, expected one node with two outputs")
    if getattr(first.next_functions[0][0], "variable", None) is not x:
        raise Wrong("the way from the node does not lead to x, expected the leaf itself")


def slope(operation, Tensor, point):
    """The gradient for a seed that is not 1."""
    x = Tensor(point, requires_grad=True)
    operation(x).backward(3.0)
    return float(x.grad.data)


@checker("11e")
def what_to_save(what_to_save, Tensor, Saved):
    for wanted, expected, formulas in rows("11e"):
        values = {name: Tensor(2.0, requires_grad=name in wanted) for name in "xy"}
        out = values["out"] = Tensor(5.0)
        node = SimpleNamespace(
            formulas={slot: compile(text, slot, "eval") for slot, text in formulas.items()},
            formula_texts=formulas,
            next_functions=tuple((object() if s in wanted else None, 0) for s in formulas),
        )
        out.grad_fn = node
        what = f"kept for {', '.join(formulas.values())}, where {' and '.join(wanted)} "
        what += f"{'wants a gradient' if len(wanted) == 1 else 'want gradients'},"
        saved = what_to_save(node, [values[slot] for slot in formulas], out)
        instance(dict, f"what is {what}", saved, "a dictionary from names to Saved(value, node)")
        left = ", ".join(node.formulas)
        same("the text of the inputs that have a formula afterwards", left, ", ".join(formulas))
        same(f"the list of names {what}", sorted(saved), expected)
        for name, each in saved.items():
            same(f"what is kept as {name}", type(each).__name__, "Saved")
            right = values[name].data
            require(each.data is right, f"the value kept as {name}", each.data, right)
            if name == "out" and not isinstance(each.tensor, weakref.ref):
                raise Wrong(
                    "the node holds its own result, and the result holds the node: a circle"
                )


@checker("11c")
def both_errors(functions, Tensor):
    for function, words in zip(functions, ("a second time", "changed in place"), strict=True):
        said = "no error"
        with noted((Tensor, "backward"), (Tensor, "add_")) as called:
            try:
                function(Tensor(0.5, requires_grad=True))
            except NotImplementedError:  # a RuntimeError too: nothing written yet
                raise
            except RuntimeError as error:
                said = str(error)
        calls = [call for _, call in called]
        did = f"after calls of {', '.join(calls)}," if calls else "without a call of backward,"
        what = f"what {function.__name__}(x) comes to, {did}"
        require(words in said, what, said, f"an error that says {words!r}")
        own = calls[-1:] == ["an error of backward"]
        what = f"the error of {function.__name__}(x)"
        require(own, what, "raised by hand", "one of backward itself")
    require("add_" in calls, "the list of what changed(x) calls", calls, "add_ before backward")


def saddle(x, y):
    """A function whose second derivatives are 2y, 2x and 6y."""
    return x**2 * y + y**3


def walks(hvp):
    """How often a product with the Hessian of (x + y + z)³ walks to the inputs."""
    walked = []

    def cube_of_sum(*inputs):
        total = sum(inputs)
        node = total.grad_fn  # every walk to the inputs passes here
        node.backward = Mock(wraps=node.backward)
        walked.append(node.backward)
        return total**3

    hvp(cube_of_sum, [1.0, 2.0, 3.0], [1.0, 0.0, -2.0])
    return sum(backward.call_count for backward in walked)


# Part D. Operators by name: steps 13 to 16


def operators(Operator, *lines):
    """Operators of any type, with any slots, from the lines that they print."""
    return [operator(Operator, line) for line in lines]


def operator(Operator, line):
    written, _, call = line.partition(" = ")
    type, _, slots = call.removesuffix(")").partition("(")
    op = Operator.__new__(Operator)  # its own __init__ asks the registry
    op.type, op.inputs, op.outputs, op.attrs = type, {}, {}, {}
    for number, listed in enumerate(re.findall(r"\[.*?\]|[^, ]+", written)):
        op.outputs[f"out{number or ''}"] = names(listed)
    for slot, value in re.findall(r"(\w+)=(\[.*?\]|[^,]+)", slots):
        if re.match(r"[A-Za-z@[]", value):
            op.inputs[slot] = names(value)
        else:
            op.attrs[slot] = ast.literal_eval(value)
    return op


def names(text):
    return re.findall(r"[\w@]+", text)


def lines(ops):
    return [str(op) for op in ops]


def written(op):
    """The names that an operator of a backward part writes."""
    listed = [name for names in op.outputs.values() for name in names]
    return [name for name in listed if name != "@EMPTY@"]


def arrays(id):
    """The values of an exercise by name."""
    return {name: np.array(value) for name, value in rows(id, "values").items()}


@checker("13e")
def build_grad_op(build_grad_op, Operator):
    registry = Operator.__init__.__globals__
    with patch.dict(registry["OPS"]) as ops:
        rules = lambda x: x, "joined", lambda out1, out_grad, out1_grad: out_grad
        registry["register"]("parts", *rules, outputs=("out", "out1"))
        for line, reads, writes in rows("13e"):
            op = operator(Operator, line)
            got = build_grad_op(op)
            instance(Operator, f"what comes back for {op}", got, "an Operator")
            same(f"the type of the grad op of {op}", got.type, ops[op.type].grad)
            same(f"what the grad op of {op} reads", dict(got.inputs), reads)
            same(f"what the grad op of {op} writes", dict(got.outputs), writes)
            same(f"what the grad op of {op} has for attributes", got.attrs, op.attrs)
            same("the forward operator afterwards", str(op), line)


@checker("13a")
def add_scale(add_scale, OPS, Operator, Scope, build_grad_op):
    with patch.dict(OPS):
        for type in ("scale", "scale_grad"):
            OPS.pop(type, None)
        add_scale()
        for wanted, slot in (("scale", "x"), ("scale_grad", "out_grad")):
            require(wanted in OPS, "the registry", ", ".join(OPS), f"one with {wanted!r}")
            same(f"the list of slots of {wanted}", list(OPS[wanted].inputs), [slot])
        for factor in (3.0, -0.5):
            op = operator(Operator, f"v = scale(x=u, factor={factor})")
            grad_op = build_grad_op(op)
            same("the type of the grad op", grad_op.type, "scale_grad")
            scope = Scope(arrays("13a"))
            op.run(scope)
            grad_op.run(scope)
            close(f"scale of [2, -1] by {factor:g}", scope["v"], [2 * factor, -factor])
            what = f"the gradient for out_grad [1, 10] and factor {factor:g}"
            close(what, scope["u@GRAD"], [factor, 10 * factor])
            close("what was x, [2, -1], afterwards", scope["u"], [2.0, -1.0])
            close("what was out_grad, [1, 10], afterwards", scope["v@GRAD"], [1.0, 10.0])


@checker("13b")
def needed(needed):
    for kind, known, shortest, divides in rows("13b"):
        what, wanted = f"the entry for {kind}", "a string of slots"
        require(kind in needed, what, "missing", wanted)
        entry = needed[kind]
        instance(str | list | tuple | set | frozenset, what, entry, wanted)
        slots = entry.replace(",", " ").split() if isinstance(entry, str) else list(entry)
        right = [sorted(each.split()) for each in shortest]
        if sorted(map(str, slots)) not in right:
            raise Wrong(f"{kind}: {why_not(kind, slots, known, right, divides)}")


def why_not(kind, slots, known, right, divides):
    """What is wrong with a list of forward slots."""
    unknown = [slot for slot in slots if slot not in known]
    if unknown:
        return f"it has no forward slot {unknown[0]!r}, only {', '.join(known)}"
    listed = " and ".join(slot for slot in known if slot in slots) or "nothing"
    if quotient := divides.get(listed):
        return f"with {listed} you need {quotient}, which is 0 / 0 where both are 0"
    if any(set(needs) <= set(slots) for needs in right):
        return f"{listed} will do, but a shorter list does, too"
    return f"no rule of + - * / finds every slope from {listed}"


@checker("14e")
def mirror(mirror, NetOp, Operator):
    def said(answer):
        """An operator as text, a network as the list of what is in it."""
        if not isinstance(answer, NetOp):
            return str(answer) if isinstance(answer, Operator) else type(answer).__name__
        return [answer.type, *map(said, answer.ops)] if answer.ops else "nop"

    mul, add, last = operators(Operator, *rows("14e", "ops"))
    layer = NetOp([mul, add], "layer")
    nets = {"h": mul, "y": layer, "z": NetOp([layer, last], "outer")}
    notebook, built = Operator.__init__.__globals__, []
    build = notebook["build_grad_op"]

    def noting(op):
        built.append(build(op))
        return built[-1]

    for out, net, cases, words, expected, noted in rows("14e"):
        before, answers, known = str(nets[out]), [], []
        for no_grad, reached in cases:
            known.append({name + "@GRAD" for name in reached})
            with patch.dict(notebook, build_grad_op=noting):
                answer = mirror(nets[out], set(no_grad), known[-1])
            answers.append(said(answer))
            others = [op for op in inside(answer, NetOp) if op not in built]
            if answers[-1] in expected and others:  # step 16 builds operators of another kind
                raise Wrong(f"{others[0]} is a copy, expected what build_grad_op made")
        same(f"the operator {net} afterwards", str(nets[out]), before)
        same(words, answers, expected)
        if noted:
            after = [sorted(each - {"@EMPTY@"}) for each in known]
            same("the list of gradients known after each of these", after, noted)


def inside(op, NetOp):
    """The operators of a nest, networks taken apart."""
    if not isinstance(op, NetOp):
        return [op]
    return [found for each in op.ops for found in inside(each, NetOp)]


def net_of(NetOp, Operator, parts):
    """A network of lines, and of the networks that lists in it stand for."""
    ops = [
        net_of(NetOp, Operator, each) if isinstance(each, list) else operator(Operator, each)
        for each in parts
    ]
    return NetOp(ops)


@checker("15e")
def add_up(add_up, places, NetOp, Operator):
    for words, parts, expected in rows("15e"):
        net = net_of(NetOp, Operator, parts)
        add_up(net)
        same(f"the list of operators {words}", lines(op for _, op in places(net)), expected)
    same("the number of operators in the inner net of the nest", len(net.ops[1].ops), 3)


@checker("15c")
def run_adding(run_adding, Scope, Operator, NetOp, build_grad_op, backward):
    for what, forward, gradients in rows("15c"):
        net = NetOp(operators(Operator, *forward))
        scope = Scope(arrays("15c"))
        net.run(scope)
        run_adding([build_grad_op(op) for op in reversed(net.ops)], scope)
        for name, expected in gradients.items():
            close(f"{name} of {what}", scope[name], expected)


@checker("16e")
def steps_back(steps_back, RnnOp, NetOp, Operator, Scope, backward):
    net = NetOp(operators(Operator, *rows("16e", "net")), "step")
    for xs, states_grad, last, first, total, elements in rows("16e"):
        scope = Scope(W=0.7, b=-0.1, h0=0.2, xs=np.array(xs))
        RnnOp(net, "xs", "h0", "hs", "hT").run(scope)
        steps, totals = list(scope["hs@SCOPES"]), {"W": np.zeros(()), "b": np.zeros(())}
        given, outside = list(steps), [np.array(each) for each in (*states_grad, last)]
        answer = steps_back(backward(net), given, outside[:-1], outside[-1], totals)
        order = [number for each in given for number, step in enumerate(steps) if each is step]
        same("the list of step scopes, by number, afterwards", order, list(range(len(steps))))
        close("the list of gradients from outside, afterwards", outside, [*states_grad, last])
        words = f"for the states' gradients {states_grad} and {last} for the last one"
        parts = "elements' gradients, state's gradient, totals"
        instance(tuple | list, f"what comes back {words}", answer, parts, 3)
        close(f"the gradient of the first state {words}", answer[1], first)
        instance(dict, "the third result", answer[2], "totals, a dictionary")
        for name, wanted_sum in (("W", total), ("b", sum(elements))):
            close(f"the sum for {name} {words}", answer[2].get(name), wanted_sum)
        close(f"the list of gradients of the elements {words}", list(answer[0]), elements)
        left = all("W@GRAD" in step for step in steps)
        require(left, "what is left in the scope of each step", "no W@GRAD", "its own W@GRAD")


# Part E. Programs: steps 17 to 19


@checker("17e")
def append_backward_ops(append_backward_ops, Program, Operator):
    for words, names, forward, expected in rows("17e"):
        block, target = Program().blocks[0], Program().blocks[0]
        block.ops = operators(Operator, *forward)
        target.ops = [first] = operators(Operator, "u = square(x=t)")
        seed = "{}@GRAD = fill_constant(shape=(), value=1.0)"
        append_backward_ops(block, target, operators(Operator, *map(seed.format, names)))
        same("the forward block afterwards", lines(block.ops), forward)
        where = "the first op of the target block afterwards"
        shown = ", ".join(lines(target.ops[:1]))
        require(target.ops[:1] == [first], where, shown, str(first))
        types = [op.type for op in target.ops[1:]]
        same(f"the list of op types appended for {words}", types, ["fill_constant", *expected])
        for op in target.ops[1 + types.count("fill_constant") :]:
            what = f"the note in {op}, which op it belongs to,"
            require(hasattr(op, "forward_op"), what, None, "its forward op")


def square(Program):
    block = Program().blocks[0]
    block.create_var("x", persistable=True)
    return block.append_op("square", "x", out="y")


def product(Program, a="a", b="b", d="d"):
    block = Program().blocks[0]
    for name in (a, b, d):
        block.create_var(name, persistable=True)
    block.append_op("add", a, b, out="c")
    return block.append_op("mul", "c", d, out="e")


def error_for_w(slope, loss):
    """What is said where a parameter does not lead to the loss, and by which function."""
    loss.block.create_var("w", persistable=True)
    try:
        return f"none, but {slope(loss, 'w', {'a': 2.0, 'b': 3.0, 'd': 4.0, 'w': 5.0})}"
    except (KeyError, ValueError) as error:
        said, raising = str(error), extract_tb(error.__traceback__)[-1].name
    own = "'w' has no gradient"
    return f"{own if own in said else said}, said by {raising}"


def variable(Program, name, shape):
    return Program().blocks[0].create_var(name, shape, persistable=True)


@checker("18e")
def remove_no_grad_branch(remove_no_grad_branch, Operator):
    for words, before, no_grad, given, expected, dropped in rows("18e"):
        ops = operators(Operator, *before)
        answer = remove_no_grad_branch(list(ops), set(no_grad), given)
        instance(tuple, "what comes back", answer, "two lists: ops, dropped", 2)
        same(f"the list of ops {words}", lines(answer[0]), expected)
        said = [[op.type, reason] for op, reason in answer[1]]
        same(f"the list of dropped ops {words}", said, dropped)
        same(f"the list of ops that was given, {words},", lines(ops), before)


def types(loss):
    """How many operators of each type a program has."""
    return Counter(op.type for op in loss.block.ops)


def zeros_twice(network, append_backward):
    """A program with its backward part, in which each op that makes zeros stands twice."""
    loss = network()
    append_backward(loss)
    ops, zeros = loss.block.ops, "fill_zeros_like"
    loss.block.ops = [op for each in ops for op in [each] * (1 + (each.type == zeros))]
    return loss.block.program


@checker("19e")
def run_steps_grad(run_steps_grad, run, append_backward, power, hold, Program):
    def held(type, condition, bodies, state):
        main = (program := Program()).blocks[0]
        for name in ("x", "w", "n", "zero"):
            main.create_var(name, persistable=name in "xw", stop_gradient=name not in "xw")
        main.append_op("less_than", "zero", condition, out="any")
        blocks = {key: program.create_block(parent=0) for key in bodies}
        for key, body in bodies.items():
            for name in state:
                blocks[key].create_var(name, stop_gradient=name not in "st")
            for type_, *reads, out in body:
                blocks[key].append_op(type_, *reads, out=out)
        return hold(main, type, "more" if type == "while" else "any", state, **blocks)

    for words, name, feed, expected in rows("19e"):
        y = power() if name == "power" else held(**rows("19e", name))
        feed = {each: np.array(value) for each, value in feed.items()}
        kept = starts(run(y.block.program, feed))
        append_backward(y)
        scope = run(y.block.program, feed)
        gradients = [scope.get(f"{each}@GRAD") for each in "xw"]
        gradients = [None if g is None else np.array(g, float).tolist() for g in gradients]
        same(f"the list of gradients of {words} for x and w", gradients, expected)
        same(f"the list of what s was in each step of {words}", starts(scope), kept)
        left = all("y@GRAD" in step for step in scope["step_scopes_1"])
        require(left, "what is left in the scope of each step", "no y@GRAD", "its own y@GRAD")


def starts(scope):
    """What s was at the start of each step."""
    return [np.asarray(step["s"]).tolist() for step in scope["step_scopes_1"]]


def values(name, write_body, power_of_x, append_backward, run):
    """What a name of the program holds at x = 3, for n = 5, 2, 1 and 0."""
    y = power_of_x(write_body)
    append_backward(y)
    feeds = [{"x": 3.0, "n": n, "zero": 0, "one": 1.0} for n in (5, 2, 1, 0)]
    return [run(y.block.program, feed).get(name) for feed in feeds]


# Step 20


@checker("20a")
def softsign(kernel, rule, by_links, by_grad_fn, by_net, by_program):
    values = arrays("20a")
    w, size = values["w"].copy(), 1 + np.abs(values["w"])
    close("the kernel at (-2, 0.25, 1)", kernel(w), values["w"] / size)
    close("the array that went into the kernel, afterwards,", w, values["w"])
    close("the kernel at a column", kernel(w.reshape(3, 1)), (w / size).reshape(3, 1))
    with patch.dict(REGISTRY):
        REGISTRY.pop("softsign", None)
        primitive(kernel, type="softsign").grad(x=rule)
        for engine in (by_links, by_grad_fn, by_net, by_program):
            loss, grads, _ = engine(rows("20a"), values)
            name = engine.__name__
            close(f"the value {name}", float(loss), values["x"] @ (values["w"] / size))
            close(f"the gradient {name}", grads["w"], values["x"] / size**2)
        reads = REGISTRY["softsign"].rules["x"].reads
        with static.program_guard(static.Program()):  # the third reading: rules write rules
            rule(*(static.data(each, [3]) for each in reads))


def program_as_text():
    """A program that computes the gradients of the sum of x * u * w."""
    parameters = {"u": [2.0, 2.0], "w": [3.0, 3.0]}
    program, _ = with_backward(lambda u, w: static.data("x", [2]) * u * w, parameters)
    return program.to_json()
