"""Small questions about a graph that every renderer asks."""

from __future__ import annotations

from .graph import Graph, Node

OPS = frozenset({"op", "grad_op", "sum", "accumulate", "zeros", "pruned", "folded"})
CARRIES = frozenset({"flow", "weak", "grad", "accumulate"})


def is_op(node: Node) -> bool:
    """Does the node do something, rather than hold a value?"""
    return node.kind in OPS or bool(node.ports)


def ends_at_leaf(node: Node) -> bool:
    """Is it the gradient of a leaf: the end of every path to it?"""
    return node.kind == "leaf_gradient" or "called" in node.data


class Links:
    """Who feeds whom, looked up once for a whole graph."""

    def __init__(self, graph: Graph) -> None:
        self.before: dict[str, list[Node]] = {n: [] for n in graph.nodes}
        self.after: dict[str, list[Node]] = {n: [] for n in graph.nodes}
        for edge in graph.edges:
            if edge.kind in CARRIES and edge.head in graph.nodes:
                self.before[edge.head].append(graph.nodes[edge.tail])
                self.after[edge.tail].append(graph.nodes[edge.head])
