"""The checkers of step 10."""

from ..check import checker
from ..judge import Mismatch, Wrong, same, stack_depth


@checker(
    "10a",
    hint=(
        "where does a way end, how do you know that you have been at a node, and what has a leaf "
        "instead of a grad_fn?",
        "follow next_functions with a list of nodes still to see; an AccumulateGrad "
        "knows its leaf as .variable; one leaf may be met more than once",
        "pop a node; skip it if it is None or was seen; note .variable of an AccumulateGrad; add "
        "the targets of its next_functions. A leaf that requires a gradient is its own only leaf",
    ),
)
def leaves(leaves, Tensor):
    a, b, d = (Tensor(float(n), requires_grad=True) for n in (2, 3, 4))
    compare("leaves of (a + b) * d", leaves((a + b) * d), [a, b, d])
    compare("leaves of the leaf a", leaves(a), [a])
    compare("leaves of a tensor that requires no gradient", leaves(Tensor(5.0)), [])
    compare("leaves of a * a + a", leaves(a * a + a), [a])
    compare("leaves of b * 3", leaves(b * 3), [b])
    y = a + b
    y.grad_fn.next_functions = Bottom(y.grad_fn.next_functions)
    Bottom.allowed = stack_depth() + 500
    for _ in range(3000):
        y = y + b
    compare("leaves of a sum of 3002 terms", leaves(y), [a, b])
    y = a
    for _ in range(40):
        y = y + y  # 2**40 paths, 40 nodes
        y.grad_fn.next_functions = Edges(y.grad_fn.next_functions)
    Edges.looks = 0
    compare("leaves of 40 doublings", leaves(y), [a])


class Bottom(tuple[object, ...]):
    """next_functions of the first operation: a recursion gets here deep in the stack."""

    allowed = 0

    def __iter__(self):
        if stack_depth() > Bottom.allowed:
            raise Wrong(
                "the walk through 3000 nodes is a recursion: it opens a call per node, and raising "
                "Python's limit only moves the end"
            )
        return super().__iter__()

    def __getitem__(self, index):
        return list(self)[index]


class Edges(tuple[object, ...]):
    """next_functions that say after many looks that a walk of every path has no end."""

    looks = 0

    def __iter__(self):
        Edges.looks += 1
        if Edges.looks > 1000:
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


@checker(
    "10b",
    hint="a product has two inputs: x itself, a leaf, and a sum; 2 is a constant, "
    "so its edge leads to None",
)
def prediction(names, Tensor):
    x = Tensor(5.0, requires_grad=True)
    top = (x * (x + 2)).grad_fn
    (leaf, _), (plus, _) = top.next_functions
    truth = [top.name(), leaf.name(), plus.name(), plus.next_functions[1][0]]
    same("the number of names", len(names), 4)
    for number, (name, true) in enumerate(zip(names, truth, strict=True), 1):
        same(f"name {number}", repr(name), repr(true))


@checker(
    "10c",
    hint="unbind gives two outputs of one node; which edge comes first is the order of "
    "the inputs of the next operation",
)
def crossed(crossed, Tensor):
    x = Tensor([5.0, 7.0], requires_grad=True)
    made = crossed(x)
    same("the list of output indices", [index for _, index in made.grad_fn.next_functions], [1, 0])
    first, second = (node for node, _ in made.grad_fn.next_functions)
    if first is not second:
        raise Wrong("the two edges lead to two nodes, expected one node with two outputs")
    if getattr(first.next_functions[0][0], "variable", None) is not x:
        raise Wrong("the way from the node does not lead to x, expected the leaf itself")
