"""Unseen lines that keep frames in order: forward left, backward right, sub-blocks below.

Graphviz orders frames by crossings alone, so the mirror image of a picture is as good to it as the
picture.  Two unseen points on top, left and right, and unseen lines from them to the topmost nodes
of each side say which one is meant.
"""

from __future__ import annotations

from .graph import Graph, Node
from .rank import leader, ranks

_POINT = '[style=invis, width=0, height=0, margin=0, label=""];'


def anchor_lines(graph: Graph) -> list[str]:
    """Lines of DOT to add to a drawing with frames; left and right are top and bottom in "LR"."""
    frames = _members(graph)
    if len(frames) < 2:
        return []
    at = ranks(graph)
    level = {n: at[leader(graph, n)] for n in graph.nodes}
    holder = _holders(graph)
    lines = [
        f"left {_POINT} right {_POINT}",
        "{ rank=min; left; right }",
        "left -> right [style=invis];",
    ]
    for frame, nodes in frames.items():
        lines += (
            _below(graph, frames[holder[frame]], nodes, level)
            if frame in holder
            else _sides(nodes, level)
        )
    return lines


def _members(graph: Graph) -> dict[str, list[Node]]:
    """The nodes in each outermost frame."""
    members: dict[str, list[Node]] = {}
    for node in graph.nodes.values():
        if node.region is not None:
            members.setdefault(outermost(graph, node.region), []).append(node)
    return members


def outermost(graph: Graph, region: str) -> str:
    """The frame around a region that stands in no other."""
    while (parent := graph.regions[region].parent) is not None:
        region = parent
    return region


def _holders(graph: Graph) -> dict[str, str]:
    """Frame of a sub-block -> frame of the operator that holds it."""
    found = {}
    for edge in graph.edges:
        if edge.kind == "sub_block":
            inner = edge.head if edge.head in graph.regions else graph.nodes[edge.head].region
            outer = graph.nodes[edge.tail].region
            if inner and outer and outermost(graph, inner) != outermost(graph, outer):
                found[outermost(graph, inner)] = outermost(graph, outer)
    return found


def _sides(nodes: list[Node], level: dict[str, int]) -> list[str]:
    top = min(level[n.id] for n in nodes)
    return [
        f"{'left' if n.side == 'forward' else 'right'} -> {n.id} [style=invis, weight=0];"
        for n in nodes
        if level[n.id] <= top + 1
    ]


def _below(graph: Graph, outer: list[Node], inner: list[Node], level: dict[str, int]) -> list[str]:
    """Every node on top of a sub-block stands below the lowest node of the frame that holds it."""
    lowest = max(outer, key=lambda n: level[n.id])
    fed = {e.head for e in graph.edges if e.kind == "flow"}
    fed |= {e.tail for e in graph.edges if e.kind in ("grad", "accumulate")}
    return [
        f"{lowest.id} -> {n.id} [style=invis, weight=1, minlen=2];"
        for n in inner
        if n.id not in fed
    ]
