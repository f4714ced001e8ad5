"""Which nodes share a rank, and how far apart two ranks are."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..graph.graph import Edge, Graph, Node, is_op
from ..graph.style import edge_style


def twin_groups(graph: Graph) -> list[list[str]]:
    """Nodes that stand on one rank, because they are twins; several backward calls of one op are
    one group.
    """
    groups: dict[str, list[str]] = {}
    for node in graph.nodes.values():
        groups.setdefault(leader(graph, node.id), []).append(node.id)
    return [group for group in groups.values() if len(group) > 1]


def mirrored(graph: Graph) -> list[list[str]]:
    """Operators of one rank with their grad ops, as a mirror shows them: `a b c` above, `c' b' a'`
    below. In this order no line between twins crosses another one.
    """
    at = ranks(graph, late=True)
    columns: dict[int, list[Node]] = defaultdict(list)
    for node in graph.nodes.values():
        if node.side == "forward" and is_op(node) and node.twin:
            columns[at[node.id]].append(node)
    grad_ops: dict[str | None, list[str]] = defaultdict(list)
    for node in graph.nodes.values():
        if node.side == "backward" and is_op(node):
            grad_ops[node.twin].append(node.id)
    orders = [
        [*(n.id for n in column), *(g for n in reversed(column) for g in grad_ops[n.id])]
        for column in columns.values()
    ]
    return [order for order in orders if len(order) > 2]


def leader(graph: Graph, node_id: str) -> str:
    """The node that stands for a group of twins: the forward one."""
    node = graph.nodes[node_id]
    if node.twin is None:
        return node_id
    return node_id if node.side == "forward" else node.twin


def far_reads(graph: Graph) -> dict[int, Edge]:
    """The lines from saved values that would reach further than to a neighbouring rank, by their
    place in the list.
    """
    saved = [(i, e) for i, e in enumerate(graph.edges) if e.kind == "saved"]
    at = ranks(graph) if saved else {}
    return {i: e for i, e in saved if not _near(graph, at, e)}


def _near(graph: Graph, at: dict[str, int], edge: Edge) -> bool:
    return abs(at[leader(graph, edge.tail)] - at[leader(graph, edge.head)]) <= 1


def ranks(graph: Graph, late: bool = False) -> dict[str, int]:
    """The rank of every group of twins: the longest path to it; sources stand just before their
    first reader. If ``late``, everything does.
    """
    after: dict[str, list[str]] = defaultdict(list)
    waiting: dict[str, int] = {leader(graph, n): 0 for n in graph.nodes}
    for edge in graph.edges:
        tail, head = _ranked_ends(graph, edge)
        if tail != head:
            after[tail].append(head)
            waiting[head] += 1
    sources = [n for n, count in waiting.items() if not count]
    at = _longest_paths(after, waiting, sources)
    for node in sorted(at, key=lambda n: -at[n]) if late else sources:
        if after[node]:
            at[node] = min(at.get(h, 1) for h in after[node]) - 1
    return {n: at.get(n, 0) for n in waiting}


def _longest_paths(
    after: dict[str, list[str]], waiting: dict[str, int], sources: list[str]
) -> dict[str, int]:
    at = dict.fromkeys(sources, 0)
    ready = list(sources)
    while ready:
        tail = ready.pop()
        for head in after[tail]:
            at[head] = max(at.get(head, 0), at[tail] + 1)
            waiting[head] -= 1
            if not waiting[head]:
                ready.append(head)
    return at


def _ranked_ends(graph: Graph, edge: Edge) -> tuple[str, str]:
    """The ends in the order of their ranks; a line that does not rank gives one end twice."""
    if edge.head not in graph.nodes:
        return edge.tail, edge.tail
    style = edge_style(edge, graph.nodes[edge.tail].side)
    tail, head = leader(graph, edge.tail), leader(graph, edge.head)
    if not style.constraint or edge.kind == "loop":
        return tail, tail
    return (head, tail) if style.reversed else (tail, head)


# ---- Unseen lines that keep frames in order: forward left, backward right, sub-blocks below ----


def anchor_lines(drawing: Any, graph: Graph) -> None:
    """Unseen lines for a drawing with frames; left and right are top and bottom in "LR"."""
    frames = _members(graph)
    if len(frames) < 2:
        return
    at = ranks(graph)
    level = {n: at[leader(graph, n)] for n in graph.nodes}
    holder = _holders(graph)
    with drawing.subgraph(graph_attr={"rank": "min"}) as top:
        for point in ("left", "right"):
            top.node(point, "", style="invis", width="0", height="0", margin="0")
    drawing.edge("left", "right", style="invis")
    for frame, nodes in frames.items():
        if frame in holder:
            _below(drawing, graph, frames[holder[frame]], nodes, level)
        else:
            _sides(drawing, nodes, level)


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


def _sides(drawing: Any, nodes: list[Node], level: dict[str, int]) -> None:
    top = min(level[n.id] for n in nodes)
    for node in nodes:
        if level[node.id] <= top + 1:
            side = "left" if node.side == "forward" else "right"
            drawing.edge(side, node.id, style="invis", weight="0")


def _below(
    drawing: Any, graph: Graph, outer: list[Node], inner: list[Node], level: dict[str, int]
) -> None:
    """Every node on top of a sub-block stands below the lowest node of the frame that holds it."""
    lowest = max(outer, key=lambda n: level[n.id])
    fed = {e.head for e in graph.edges if e.kind == "flow"}
    fed |= {e.tail for e in graph.edges if e.kind in ("grad", "accumulate")}
    for node in inner:
        if node.id not in fed:
            drawing.edge(lowest.id, node.id, style="invis", weight="1", minlen="2")
