"""Values as labels: every value between two operations becomes the label of the line between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .graph import Edge, Graph, Node
from .reading import CARRIES, Links, is_op


def without_values(graph: Graph) -> Graph:
    """The graph with the values between operations written on the lines.

    >>> g = Graph()
    >>> f, h, k = g.node("op", "sin"), g.node("value", "h"), g.node("op", "cos")
    >>> _ = g.edge(f, h), g.edge(h, k)
    >>> [(e.tail, e.label, e.head) for e in without_values(g).edges]
    [('n0', 'h', 'n2')]
    """
    gone = _values_between(graph)
    small = copied(graph, [n for n in graph.nodes.values() if n.id not in gone])
    into: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        if edge.head in gone:
            into.setdefault(edge.head, []).append(edge)
    for edge in graph.edges:
        if edge.tail in gone:
            small.edges += _through(graph, edge, into.get(edge.tail, ()), gone)
        elif edge.head not in gone:
            small.edges.append(edge)
    if gone:
        small.notes.append(
            f'{len(gone)} values are drawn as labels of lines; detail="full" draws them as nodes'
        )
    return small


def _values_between(graph: Graph) -> set[str]:
    """The values that stand between operations only, and that no other line needs."""
    links = Links(graph)
    needed = [e for e in graph.edges if e.kind in ("loop", "sub_block", "ref")]
    kept = {end for e in needed for end in (e.tail, e.head)}
    return {
        n.id
        for n in graph.nodes.values()
        if not is_op(n) and n.id not in kept and _between(links, n)
    }


def _between(links: Links, node: Node) -> bool:
    before, after = links.before[node.id], links.after[node.id]
    return bool(before and after) and all(map(is_op, (*before, *after)))


def _through(graph: Graph, edge: Edge, before: Iterable[Edge], gone: set[str]) -> list[Edge]:
    """The lines that lead through a value that is gone, one for each that led into it."""
    if edge.kind not in CARRIES or edge.head in gone:
        return []
    name = graph.nodes[edge.tail].name
    return [replace(edge, tail=b.tail, tail_port=b.tail_port, label=name) for b in before]


def copied(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """The same graph with fewer nodes and no lines yet; a twin that is gone is forgotten."""
    nodes = list(nodes)
    here = {n.id for n in nodes}
    small = replace(graph, nodes={}, edges=[], notes=list(graph.notes), steps=list(graph.steps))
    small.nodes = {
        n.id: n if n.twin is None or n.twin in here else replace(n, twin=None) for n in nodes
    }
    return small
