"""The checkers of part C. The backward graph is an object: steps 10 to 12."""

import sys
import weakref
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np

from ..check import checker
from ..judge import RECURSION, Wrong, close, instance, require, same, stack_depth
from ..solution import rows
from .part_a import noted


@checker("10e")
def walk(walk, Tensor, Node):
    a, b, d = (Tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    with noted((Node, "__call__")) as called:
        (a + a).backward()
        (a + b).backward()
    add, leaf = "AddBackward0", "AccumulateGrad"
    names = [node.name() for node, _ in called]
    what = "the list of nodes called for a + a, then for a + b"
    same(what, names, [add, leaf, add, leaf, leaf])
    values = {"a": a, "b": b, "d": d, "Tensor": Tensor}
    for words, formula, wanted, expected in rows("10e"):
        leaves = [values[name] for name in wanted]
        for x in leaves:
            x.grad = None
        eval(formula, values).backward()
        observed = [None if x.grad is None else float(x.grad.data) for x in leaves]
        same(f"the list of gradients of {words}", observed, expected)
        recorded = any(x.grad is not None and x.grad.grad_fn for x in leaves)
        require(not recorded, "the grad_fn of a gradient", "a node", None)
    a.grad = None
    y = a
    for _ in range(10):
        y = y + y
    with noted((Node, "__call__")) as called:
        y.backward()
    nodes = {node for node, _ in called}
    same("the number of calls for 10 doublings of a leaf", len(called), len(nodes))
    same("the gradient of 10 doublings", float(a.grad.data), 1024.0)
    y, a.grad = a, None
    for _ in range(3000):
        y = y + 1.0
    try:
        y.backward()
    except RecursionError:
        raise Wrong(RECURSION.format(what="through 3000 nodes", per="node")) from None
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
    a, b, d = (Tensor(float(n), requires_grad=True) for n in (2, 3, 4))
    compare("leaves of (a + b) * d", leaves((a + b) * d), [a, b, d])
    compare("leaves of the leaf a", leaves(a), [a])
    compare("leaves of a tensor that requires no gradient", leaves(Tensor(5.0)), [])
    compare("leaves of a * a + a", leaves(a * a + a), [a])
    compare("leaves of b * 3", leaves(b * 3), [b])
    y = a + b
    bottom = y.grad_fn.next_functions = Edges(y.grad_fn.next_functions)
    bottom.deepest = stack_depth() + 500
    for _ in range(3000):
        y = y + b
    try:
        compare("leaves of a sum of 3002 terms", leaves(y), [a, b])
    except RecursionError:
        raise Wrong(RECURSION.format(what="through 3000 nodes", per="node")) from None
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
        did = f"after calls of {', '.join(calls)}" if calls else "without a call of backward"
        what = f"what {function.__name__}(x) comes to, {did}"
        require(words in said, what, said, f"an error that says {words!r}")
        if calls[-1:] != ["an error of backward"]:
            raise Wrong(
                f"{function.__name__}(x) raises the error by hand, expected one of backward itself"
            )


def saddle(x, y):
    """A function whose second derivatives are 2y, 2x and 6y."""
    return x**2 * y + y**3


def walks(hvp):
    """How often a product with the Hessian of (x + y + z)³ walks to the inputs."""
    walked = []

    def cube_of_sum(*inputs):
        total = sum(inputs[1:], inputs[0])
        node = total.grad_fn  # every walk to the inputs passes here
        node.backward = Mock(wraps=node.backward)
        walked.append(node.backward)
        return total**3

    hvp(cube_of_sum, [1.0, 2.0, 3.0], [1.0, 0.0, -2.0])
    return sum(backward.call_count for backward in walked)
