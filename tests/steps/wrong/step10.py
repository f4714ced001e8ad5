"""Plausible wrong answers to the exercises of step 10: every one must fail its check."""

from literate import load

step = load("step10_grad_fn")


def one_per_path(tensor):
    found, todo = [], [tensor.grad_fn]
    while todo and len(found) < 10:
        node = todo.pop()
        if isinstance(node, step.AccumulateGrad):
            found.append(node.variable)
        todo.extend(target for target, _ in node.next_functions if target)
    return found


def every_path(tensor):
    """Right in the end, after 2**40 paths: the check must not wait for it."""
    found, todo = set(), [tensor.grad_fn]
    while todo:
        node = todo.pop()
        if isinstance(node, step.AccumulateGrad):
            found.add(node.variable)
        todo.extend(target for target, _ in node.next_functions if target)
    return list(found)


def recursive(tensor):
    def visit(node, seen):
        if node is None or node in seen:
            return []
        seen.add(node)
        if isinstance(node, step.AccumulateGrad):
            return [node.variable]
        return [leaf for target, _ in node.next_functions for leaf in visit(target, seen)]

    return visit(tensor.grad_fn, set())


def none_for_a_leaf(tensor):
    return [] if tensor.grad_fn is None else accumulated(tensor)


def accumulated(tensor):
    """Right but for a leaf, where there is no node to start from."""
    nodes = step.count_edges(tensor.grad_fn)
    return [node.variable for node in nodes if isinstance(node, step.AccumulateGrad)]


def recursive_with_a_higher_limit(tensor):
    import sys

    if tensor.grad_fn is None:
        return [tensor] if tensor.requires_grad else []
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        return recursive(tensor)
    finally:
        sys.setrecursionlimit(before)


def layer_by_layer(tensor):
    if tensor.grad_fn is None:
        return [tensor] if tensor.requires_grad else []
    seen, layer = {tensor.grad_fn}, [tensor.grad_fn]
    while layer:
        layer = [t for node in layer for t, _ in node.next_functions if t is not None]
        layer = [t for t in dict.fromkeys(layer) if t not in seen]
        seen.update(layer)
    return {node.variable for node in seen if isinstance(node, step.AccumulateGrad)}


def first_layer_only(tensor):
    return [
        node.variable
        for node, _ in tensor.grad_fn.next_functions
        if isinstance(node, step.AccumulateGrad)
    ]


def nodes_for_leaves(tensor):
    return [
        node for node in step.count_edges(tensor.grad_fn) if isinstance(node, step.AccumulateGrad)
    ]


def straight(x):
    p, q = step.unbind(x)
    return p * q


def unbound_twice(x):
    return step.unbind(x)[1] * step.unbind(x)[0]


def one_output_twice(x):
    q = step.unbind(x)[1]
    return q * q


def both_scaled(x):
    p, q = step.unbind(x)
    return (q * 2) + (p * 3)


WRONG = {
    "10a": [
        (each, step.Tensor)
        for each in (
            one_per_path,
            every_path,
            recursive,
            recursive_with_a_higher_limit,
            first_layer_only,
            nodes_for_leaves,
            none_for_a_leaf,
            accumulated,
        )
    ],
    "10b": [
        (names, step.Tensor)
        for names in (
            ["MulBackward0", "AccumulateGrad", "AddBackward0", "AccumulateGrad"],
            ["AddBackward0", "MulBackward0", "AccumulateGrad", None],
            ["MulBackward0", None, "AddBackward0", None],
            ["MulBackward0", "AddBackward0", "AccumulateGrad", None],
            [],
        )
    ],
    "10c": [
        (each, step.Tensor) for each in (straight, unbound_twice, one_output_twice, both_scaled)
    ],
}

RIGHT = {"10a": [(layer_by_layer, step.Tensor)]}

NAMED = {
    "10b": [
        ((["Mul", "AccumulateGrad", "Add", None], step.Tensor), "the forward name is given"),
        ((["MulBackward", "AccumulateGrad", "AddBackward", None], step.Tensor), "the 0 at the end"),
    ],
}
