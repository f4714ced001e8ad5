"""The checkers of step 10."""

from ..check import Mismatch, checker, same


@checker(
    "10a",
    hint="follow next_functions with a list of nodes still to see; an AccumulateGrad "
    "knows its leaf as .variable; one leaf may be met more than once",
)
def leaves(leaves, Tensor):
    a, b, d = (Tensor(float(n), requires_grad=True) for n in (2, 3, 4))
    compare("leaves of (a + b) * d", leaves((a + b) * d), [a, b, d])
    compare("leaves of a * a + a", leaves(a * a + a), [a])
    compare("leaves of b * 3", leaves(b * 3), [b])
    y = a
    for _ in range(3000):
        y = y + b
    compare("leaves of a sum of 3001 terms", leaves(y), [a, b])
    y = a
    for _ in range(40):
        y = y + y  # 2**40 paths, 40 nodes
        y.grad_fn.next_functions = Edges(y.grad_fn.next_functions)
    Edges.looks = 0
    compare("leaves of 40 doublings", leaves(y), [a])


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
    same("both edges lead to one node", first is second, True)
    same("the leaf at the end", first.next_functions[0][0].variable is x, True)
