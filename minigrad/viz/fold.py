"""Big graphs, drawn small: values become labels of lines, repeated segments are drawn once, and the
picture says so.

Up to 150 nodes are drawn in full; up to 400 with values as labels; beyond that segments fold. Ids
of what stays do not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from minigrad.viz.graph import Edge, Graph, Node
from minigrad.viz.opening import found_ops, opened
from minigrad.viz.reading import CARRIES, Links, is_op
from minigrad.viz.segments import Segment, chunks, segments

FULL = 150  # nodes drawn in full
WITHOUT_VALUES = 400  # nodes drawn with values as labels of lines


def folded(graph: Graph, detail: str = "auto", expand: str | None = None) -> Graph:
    """The graph as ``detail`` asks for it: "full", "ops", "folded", or what "auto" finds right for
    its size.  What ``expand`` speaks of stays in full.
    """
    keep = found_ops(graph, expand) if expand is not None else set()
    size = len(graph.nodes)
    if detail in ("full",) or (detail not in ("ops", "folded") and size <= FULL):
        return graph
    if detail == "ops" or (detail != "folded" and size <= WITHOUT_VALUES):
        small = without_values(graph)
        if detail == "ops" or len(small.nodes) <= FULL:
            return small
    small = _contracted(graph, _split(graph, segments(graph), keep))
    if len(small.nodes) > WITHOUT_VALUES:  # few repeats
        small = _contracted(graph, _split(graph, chunks(graph), keep))
    return without_values(small) if len(small.nodes) > FULL else small


def _split(graph: Graph, segments: list[Segment], keep: set[str]) -> list[Segment]:
    return opened(graph, segments, keep) if keep else segments


# Values as labels ----------------------------------------------------------------


def without_values(graph: Graph) -> Graph:
    """Every value between two operations becomes the label of the line between them."""
    links = Links(graph)
    kept = {
        end
        for e in graph.edges
        if e.kind in ("loop", "sub_block", "ref")
        for end in (e.tail, e.head)
    }
    gone = {
        n.id
        for n in graph.nodes.values()
        if not is_op(n) and n.id not in kept and _between(links, n)
    }
    small = _copy(graph, [n for n in graph.nodes.values() if n.id not in gone])
    into: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        if edge.head in gone:
            into.setdefault(edge.head, []).append(edge)
    for edge in graph.edges:
        if edge.tail in gone:
            small.edges += [
                replace(
                    edge,
                    tail=before.tail,
                    tail_port=before.tail_port,
                    label=graph.nodes[edge.tail].name,
                )
                for before in into.get(edge.tail, ())
                if edge.kind in CARRIES and edge.head not in gone
            ]
        elif edge.head not in gone:
            small.edges.append(edge)
    if gone:
        small.notes.append(
            f'{len(gone)} values are drawn as labels of lines; detail="full" draws them as nodes'
        )
    return small


def _between(links: Links, node: Node) -> bool:
    before, after = links.before[node.id], links.after[node.id]
    return bool(before and after) and all(map(is_op, (*before, *after)))


def _copy(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """The same graph with fewer nodes and no lines yet; a twin that is gone is forgotten."""
    nodes = list(nodes)
    here = {n.id for n in nodes}
    small = replace(graph, nodes={}, edges=[], notes=list(graph.notes), steps=list(graph.steps))
    small.nodes = {
        n.id: n if n.twin is None or n.twin in here else replace(n, twin=None) for n in nodes
    }
    return small


# Drawing segments as one node ----------------------------------------------------------------


def _contracted(graph: Graph, segments: list[Segment]) -> Graph:
    """The graph with every segment as one node."""
    if not segments:
        return graph
    owner = _members(graph, segments)
    small = _copy(graph, [n for n in graph.nodes.values() if n.id not in owner])
    nodes = {id(s): _folded_node(f"f{i}", s) for i, s in enumerate(segments)}
    for segment in segments:
        if segment.twin is not None:
            nodes[id(segment)].twin = nodes[id(segment.twin)].id
    small.nodes |= {n.id: n for n in nodes.values()}
    small.edges = _joined(graph, {member: nodes[id(s)].id for member, s in owner.items()})
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
    if not all(n.id in owner for n in after) or not (before or after):
        return None
    makers = {id(s): s for n in before if (s := owner.get(n.id)) is not None}
    if node.kind == "leaf_gradient" and node.twin not in owner:
        return None
    if before:
        return (
            min(makers.values(), key=lambda s: order[id(s)])
            if all(n.id in owner for n in before)
            else None
        )
    return owner[after[0].id] if len(after) == 1 and after[0].id not in first else None


def _folded_node(name: str, segment: Segment) -> Node:
    numbers = [n.number for n in segment.ops if n.number is not None]
    lines = (
        (f"ops #{min(numbers)} to #{max(numbers)}",)
        if numbers
        else (f"{len(segment.ops)} operations",)
    )
    return Node(
        name,
        "folded",
        segment.name,
        lines=lines,
        side=segment.side,
        region=segment.ops[0].region,
        tooltip=f"{len(segment.ops)} operations",
        data={"ops": len(segment.ops)},
    )


def _joined(graph: Graph, place: dict[str, str]) -> list[Edge]:
    """Lines between what is left; several lines between the same two folded ends are one."""
    lines: dict[tuple[str, str, str], Edge] = {}
    kept: list[Edge] = []
    for edge in graph.edges:
        tail, head = place.get(edge.tail, edge.tail), place.get(edge.head, edge.head)
        if (tail, head) == (edge.tail, edge.head):
            kept.append(edge)
        elif tail != head and edge.kind in (*CARRIES, "sub_block"):
            moved = replace(
                edge,
                tail=tail,
                head=head,
                tail_port=edge.tail_port if tail == edge.tail else None,
                head_port=edge.head_port if head == edge.head else None,
            )
            lines.setdefault((tail, head, edge.kind), moved)
    return [*kept, *lines.values()]
