"""The checkers of step 10."""

import sys

import numpy as np

from ..check import checker
from ..judge import RECURSION, Mismatch, Wrong, close, same, stack_depth


@checker("10e")
def walk(walk, Tensor, Node):
    def leaf(value):
        return Tensor(value, requires_grad=True)

    def gradients(words, expected, y, *leaves):
        y.backward()
        found = [None if x.grad is None else float(x.grad.data) for x in leaves]
        for x in leaves:
            x.grad = None
        same(f"the list of gradients of {words}", found, expected)

    def calls(y):
        called: list[object] = []
        plain = Node.__call__

        def call(self, *grads):
            called.append(self)
            return plain(self, *grads)

        Node.__call__ = call
        try:
            y.backward()
        finally:
            Node.__call__ = plain
        return called

    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    add, leaf_node = "AddBackward0", "AccumulateGrad"
    same(
        "the list of nodes called for a + a, then for a + b",
        [node.name() for node in [*calls(a + a), *calls(a + b)]],
        [add, leaf_node, add, leaf_node, leaf_node],
    )
    a.grad = b.grad = None
    gradients("a * b for a and b, at 2 and 3,", [3.0, 2.0], a * b, a, b)
    gradients("(a + b) * d for a, b and d", [4.0, 4.0, 5.0], (a + b) * d, a, b, d)
    gradients("Tensor(3.) * a for a", [3.0], Tensor(3.0) * a, a)
    t = a * b
    gradients("t * t + t for a and b, where t = a * b,", [39.0, 26.0], t * t + t, a, b)
    y = a
    for _ in range(10):
        y = y + y
    called = calls(y)
    same("the number of calls for 10 doublings of a leaf", len(called), len(set(called)))
    same("the gradient of 10 doublings", float(a.grad.data), 1024.0)
    a.grad = None

    def backward(self, *grads):
        came = [f"{type(each).__name__} {np.shape(getattr(each, 'data', ()))}" for each in grads]
        same("the list of what a node gets at its two slots", came, ["Tensor (2,)", "Tensor ()"])
        return (Tensor(grads[0].data.sum() + grads[1].data),)

    node = type("Second", (Node,), {"backward": backward})(a)
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
            raise Wrong(RECURSION.format(what="through 3000 nodes", per="node"))
        if Edges.looks > 1000 and self.deepest == sys.maxsize:
            raise Mismatch(
                "the number of looks at next_functions, for 40 doublings",
                "above 1000",
                "about 40: go on from each node once, not on every path",
            )
        return super().__iter__()

    def __getitem__(self, index):
        return list(self)[index]


def compare(what, observed, expected):
    if not isinstance(observed, (list, tuple, set)):
        raise Mismatch(what, observed, expected)
    if len(observed) != len(expected) or any(not any(o is e for o in observed) for e in expected):
        raise Mismatch(what, list(observed), expected)


@checker("10c")
def crossed(crossed, Tensor):
    x = Tensor([5.0, 7.0], requires_grad=True)
    made = crossed(x)
    same("the list of output indices", [index for _, index in made.grad_fn.next_functions], [1, 0])
    if None in (node for node, _ in made.grad_fn.next_functions):
        raise Wrong("an edge leads nowhere, expected two edges to one node")
    first, second = (node for node, _ in made.grad_fn.next_functions)
    if first is not second:
        raise Wrong("the two edges lead to two nodes, expected one node with two outputs")
    if getattr(first.next_functions[0][0], "variable", None) is not x:
        raise Wrong("the way from the node does not lead to x, expected the leaf itself")
