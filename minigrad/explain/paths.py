"""The paths by which a gradient comes: every way along the edges from an output to a value, and what it brings.

The gradient is the sum over all paths of the product of the slopes along them.  The walk adds them up where they
meet; here each is followed alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..eager.grad_fn import Node, Output
from .explanation import as_array

MOST_PATHS = 24  #: more are not followed one by one

Trail = tuple[tuple[Any, int], ...]  # the nodes and the slot by which each was left


def count_paths(nodes: list[Any], place: Any) -> dict[Any, int]:
    """How many paths lead from each of these nodes to a place; ``nodes`` in any order.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> h = x * x
    >>> root = (h * h).grad_fn
    >>> count_paths([root, h.grad_fn], root.next_functions[0][0].next_functions[0])[root]
    4
    """
    found: dict[Any, int] = {}
    for node in sorted(nodes, key=lambda n: n.seq):
        ways = [1 if to == place else found.get(to[0], 0) for to in node.next_functions]
        found[node] = sum(ways)
    return found


def followed(
    root: Any, index: int, seed: Any, place: Any, counts: dict[Any, int]
) -> list[tuple[Trail, Any]]:
    """What each path from an output of ``root`` to the place brings; newest nodes first."""
    done: list[tuple[Trail, Any]] = []
    waiting: list[tuple[Any, int, Any, Trail]] = [(root, index, seed, ())]
    while waiting:
        node, index, g, trail = waiting.pop()
        grads = node.pull(_alone(node, index, g) if node.several else g)
        further: list[Any] = []
        for slot, (edge, p) in enumerate(zip(node.next_functions, grads, strict=False)):
            here = (*trail, (node, slot))
            if p is None:
                continue
            if edge == place:
                done.append((here, np.array(as_array(p))))
            elif counts.get(edge[0]):
                further.append((edge[0], edge[1], p, here))
        waiting += sorted(further, key=lambda step: step[0].seq)
    return done


def _alone(node: Any, index: int, g: Any) -> list[Any]:
    """The gradients of all outputs of a node, if only one has any."""
    specs = enumerate(node.specs)  # without one, None stands for no gradient
    return [g if k == index else np.zeros(*spec) if spec else None for k, spec in specs]


def place_of(edge: Any) -> tuple[Node, int]:
    """An edge as ``next_functions`` shows it."""
    return (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)


def labels(trails: list[Trail]) -> list[tuple[str, ...]]:
    """The nodes of each path, with a slot at the end; with slots everywhere if that tells two paths apart."""
    plain = [_label(t, False) for t in trails]
    return plain if len({*plain}) == len(plain) else [_label(t, True) for t in trails]


def _label(trail: Trail, every: bool) -> tuple[str, ...]:
    last = len(trail) - 1
    return tuple(
        f"{node.name()}[{slot}]" if every or k == last else node.name()
        for k, (node, slot) in enumerate(trail)
    )
