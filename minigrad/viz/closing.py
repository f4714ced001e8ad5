"""Frames closed into one node: the sub-block of an operator, a net inside a net.

A picture with very many frames closes them: the operator that holds a sub-block then says what is
inside, a net inside a net becomes one box.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from .contract import joined
from .graph import Graph, Node
from .labelled import copied
from .reading import is_op
from .segments import size_of


def closed(graph: Graph, opened: Collection[str] = ()) -> Graph:
    """The graph with its inner frames closed, except those whose ids are in ``opened``."""
    holders = holders_of(graph)
    closing = {r for r in graph.regions if r in holders or graph.regions[r].parent}
    closing -= set(opened)
    if not closing:
        return graph
    ways = {r: _way(graph, holders, closing, r) for r in graph.regions}
    inside: dict[str, list[Node]] = {}
    for node in graph.nodes.values():
        if node.region is not None and ways[node.region]:
            inside.setdefault(ways[node.region], []).append(node)
    small = copied(graph, [n for n in graph.nodes.values() if not (n.region and ways[n.region])])
    boxes = {r: _box(graph, small, holders, r, nodes) for r, nodes in inside.items()}
    small.nodes |= {box.id: box for box in boxes.values()}
    place = {n.id: boxes[r].id for r, nodes in inside.items() for n in nodes}
    small.edges = [e for e in joined(graph, place) if e.head in small.nodes]
    small.regions = {r.id: r for r in graph.regions.values() if not ways[r.id]}
    small.notes.append(
        f"{len(graph.regions) - len(small.regions)} frames are closed, "
        f"with {len(graph.nodes) - len(small.nodes)} of {len(graph.nodes)} nodes"
    )
    return small


def holders_of(graph: Graph) -> dict[str, Node]:
    """Frame of a sub-block -> the operator that holds it."""
    found: dict[str, Node] = {}
    by_label: dict[str, Node] = {}
    for edge in graph.edges:
        if edge.kind == "sub_block":
            region = edge.head if edge.head in graph.regions else graph.nodes[edge.head].region
            tail = graph.nodes[edge.tail]
            if region is not None and region != tail.region:
                found.setdefault(region, tail)
                by_label.setdefault(graph.regions[region].label, tail)
    for frame in graph.regions.values():  # the second side of a sub-block has no line of its own
        if frame.strong and frame.parent is None and frame.label in by_label:
            found.setdefault(frame.id, by_label[frame.label])
    return found


def frames_around(graph: Graph, ops: Collection[str]) -> set[str]:
    """The frames these nodes stand in, with those that hold them."""
    holders = holders_of(graph)
    found: set[str] = set()
    for op in ops:
        at = graph.nodes[op].region
        while at is not None and at not in found:
            found.add(at)
            at = holders[at].region if at in holders else graph.regions[at].parent
    return found


def _way(graph: Graph, holders: dict[str, Node], closing: set[str], region: str) -> str:
    """The outermost closed frame around a frame, itself included; empty if none is."""
    found, at, seen = "", region, set()
    while at and at not in seen:
        seen.add(at)
        found = at if at in closing else found
        at = (holders[at].region if at in holders else graph.regions[at].parent) or ""
    return found


def _box(
    graph: Graph, small: Graph, holders: dict[str, Node], region: str, nodes: list[Node]
) -> Node:
    """The node that stands for a closed frame: the operator that holds it, or a box of its own."""
    count = size_of([n for n in nodes if is_op(n)])
    members = [n.id for n in nodes]
    frame = graph.regions[region]
    if region in holders:
        held = small.nodes[holders[region].id]
        words = f"{count} operations in {frame.label.split(' (')[0]}"
        data = held.data | {
            "ops": held.data.get("ops", 1) + count,
            "members": [*held.data.get("members", ()), *members],
            "regions": [*held.data.get("regions", ()), region],
        }
        small.nodes[held.id] = replace(held, data=data, lines=(*held.lines, words), bold=True)
        return small.nodes[held.id]
    data = {"ops": count, "members": members, "regions": [region]}
    return Node(
        f"c{region}",
        "folded",
        frame.label,
        lines=(f"{count} operations",),
        side=frame.side,
        region=frame.parent,
        tooltip=f"{count} operations",
        data=data,
    )
