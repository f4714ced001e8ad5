"""Segments drawn as one node: what belongs to a segment, and the lines that are left."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from .graph import Edge, Graph, Node
from .labelled import copied
from .reading import CARRIES, Links, ends_at_leaf
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
    for box in nodes.values():
        _count_leaves(graph, box)
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
    links = Links(graph)
    kept = {n.id for s in segments for n in _goes_in(links, s)}
    waiting = [
        n
        for n in graph.nodes.values()
        if n.id not in owner and n.kind not in ("output", "seed") and not n.bold
    ]
    for _ in range(4):  # a value, a sum of values, a value of that sum, …
        found = {
            n.id: s for n in waiting if (s := _segment_of(links, n, owner, order, kept)) is not None
        }
        if not found:
            break
        owner |= found
        waiting = [n for n in waiting if n.id not in found]
    return owner


def _segment_of(
    links: Links, node: Node, owner: dict[str, Segment], order: dict[int, int], kept: set[str]
) -> Segment | None:
    """The segment that made a node, when nothing outside of segments touches it.

    A leaf that one operation inside reads belongs to it, and its gradient with it; one that several
    read stays, and what the first operation starts from. A sum belongs to the last segment that
    adds to it: segments keep their order, so no line goes back.
    """
    before, after = links.before[node.id], links.after[node.id]
    if not (before or after):
        return None
    if not all(n.id in owner or _adds_many(links, n) for n in after):
        return None
    if ends_at_leaf(node) and node.twin not in owner:
        return None
    if before:
        makers = {id(s): s for n in before if (s := owner.get(n.id)) is not None}
        every = len(makers) and all(n.id in owner for n in before)
        return min(makers.values(), key=lambda s: order[id(s)]) if every else None
    inside = len(after) == 1 and node.id not in kept
    return owner.get(after[0].id) if inside else None


def _goes_in(links: Links, segment: Segment) -> list[Node]:
    """What the first operation starts from; not what each repeat has of its own, as a weight."""
    first, period = segment.ops[0], segment.period
    inputs = links.before[first.id]
    again = links.before[segment.ops[period].id] if 0 < period < len(segment.ops) else []
    own = [not links.before[n.id] and len(links.after[n.id]) == 1 for n in again]
    own += [False] * (len(inputs) - len(own))
    return [n for n, repeats in zip(inputs, own, strict=False) if not repeats]


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


def _count_leaves(graph: Graph, box: Node) -> None:
    """How many parameters or gradients of parameters are inside: ``w0 … w9: 10 parameters``."""
    inside = [graph.nodes[m] for m in box.data["members"]]
    leaves = [n.name for n in inside if n.kind == "leaf"]
    grads = [n.data.get("called", n.name) for n in inside if ends_at_leaf(n)]
    for names, what in ((leaves, "parameter"), (grads, "gradient")):
        if names:
            names = names if box.side == "forward" else names[::-1]
            ends = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
            box.lines += (f"{ends}: {len(names)} {what}{'s' * (len(names) > 1)}",)


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
