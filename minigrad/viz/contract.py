"""Segments drawn as one node: what belongs to a segment, and the lines that are left."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from .graph import Edge, Graph, Node
from .labelled import copied
from .reading import CARRIES, Links
from .segments import Segment, size_of

_MANY = 12  # ports of an operator, parts of a sum: beyond this folded ones are left out


def contracted(graph: Graph, segments: list[Segment]) -> Graph:
    """The graph with every segment as one node."""
    if not segments:
        return graph
    owner = _members(graph, segments)
    small = copied(graph, [n for n in graph.nodes.values() if n.id not in owner])
    nodes = {id(s): _folded_node(f"f{i}", s) for i, s in enumerate(segments)}
    for segment in segments:
        if segment.twin is not None:
            nodes[id(segment)].twin = nodes[id(segment.twin)].id
    for member, s in owner.items():
        nodes[id(s)].data["members"].append(member)
    small.nodes |= {n.id: n for n in nodes.values()}
    small.edges = joined(graph, {member: nodes[id(s)].id for member, s in owner.items()})
    _drop_ports(small)
    small.notes.append(
        f"{len(owner)} of {len(graph.nodes)} nodes are folded into {len(segments)}: "
        + "; ".join(s.name for s in segments[:3])
        + ("; …" if len(segments) > 3 else "")
    )
    return small


def _members(graph: Graph, segments: list[Segment]) -> dict[str, Segment]:
    """Which segment every folded node belongs to: operations first, then what only they touch."""
    owner = {n.id: s for s in segments for n in s.ops}
    order = {id(s): i for i, s in enumerate(segments)}
    first = {s.ops[0].id for s in segments}
    links = Links(graph)
    waiting = [
        n
        for n in graph.nodes.values()
        if n.id not in owner and n.kind not in ("output", "seed") and not n.bold
    ]
    for _ in range(4):  # a value, a sum of values, a value of that sum, …
        found = {
            n.id: s
            for n in waiting
            if (s := _segment_of(links, n, owner, order, first)) is not None
        }
        if not found:
            break
        owner |= found
        waiting = [n for n in waiting if n.id not in found]
    return owner


def _segment_of(
    links: Links, node: Node, owner: dict[str, Segment], order: dict[int, int], first: set[str]
) -> Segment | None:
    """The segment that made a node, when nothing outside of segments touches it.

    A leaf that one operation inside reads belongs to it; one that several read, or the first
    operation, stays. A sum belongs to the last segment that adds to it: segments keep their order,
    so no line goes back.
    """
    before, after = links.before[node.id], links.after[node.id]
    if not (before or after):
        return None
    if not all(n.id in owner or _adds_many(links, n) for n in after):
        return None
    if node.kind == "leaf_gradient" and node.twin not in owner:
        return None
    if before:
        makers = {id(s): s for n in before if (s := owner.get(n.id)) is not None}
        every = len(makers) and all(n.id in owner for n in before)
        return min(makers.values(), key=lambda s: order[id(s)]) if every else None
    inside = len(after) == 1 and after[0].id not in first
    return owner.get(after[0].id) if inside else None


def _adds_many(links: Links, node: Node) -> bool:
    """A sum of so many parts that they are not drawn one by one."""
    return node.kind in ("sum", "accumulate") and len(links.before[node.id]) > _MANY


def _folded_node(name: str, segment: Segment) -> Node:
    numbers = [n.number for n in segment.ops if n.number is not None]
    count = size_of(segment.ops)
    lines = (f"ops #{min(numbers)} to #{max(numbers)}",) if numbers else (f"{count} operations",)
    return Node(
        name,
        "folded",
        segment.name,
        lines=lines,
        side=segment.side,
        region=segment.ops[0].region,
        tooltip=f"{count} operations",
        data={"ops": count, "segment": [n.id for n in segment.ops], "members": []},
    )


def joined(graph: Graph, place: dict[str, str]) -> list[Edge]:
    """Lines between what is left; several lines between the same two folded ends are one."""
    lines: dict[tuple[str, str, str], Edge] = {}
    times: Counter[tuple[str, str, str]] = Counter()
    kept: list[Edge] = []
    for edge in graph.edges:
        tail, head = place.get(edge.tail, edge.tail), place.get(edge.head, edge.head)
        if (tail, head) == (edge.tail, edge.head):
            kept.append(edge)
        elif tail != head and edge.kind in (*CARRIES, "sub_block"):
            between = (tail, head, edge.kind)
            times[between] += 1
            if between not in lines:
                lines[between] = _moved(edge, tail, head)
    for between, edge in lines.items():
        if edge.kind == "accumulate" and times[between] > _MANY:
            edge.label = f"{times[between]} parts"
    return [*kept, *lines.values()]


def _moved(edge: Edge, tail: str, head: str) -> Edge:
    return replace(
        edge,
        tail=tail,
        head=head,
        tail_port=edge.tail_port if tail == edge.tail else None,
        head_port=edge.head_port if head == edge.head else None,
    )


def _drop_ports(graph: Graph) -> None:
    """An operator with very many ports keeps those that a line still leads to."""
    many = [n for n in graph.nodes.values() if len(n.ports) > _MANY]
    used = {(e.tail, e.tail_port, "out") for e in graph.edges if e.tail_port}
    used |= {(e.head, e.head_port, "in") for e in graph.edges if e.head_port}
    for node in many:
        ports = tuple(p for p in node.ports if (node.id, *p) in used)
        graph.nodes[node.id] = replace(node, ports=ports)
