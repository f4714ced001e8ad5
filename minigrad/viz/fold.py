"""Big graphs, drawn small: values become labels of lines, repeated segments are drawn once, and the
picture says so.

Up to 150 nodes are drawn in full; up to 400 with values as labels; beyond that segments fold. Ids
of what stays do not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from minigrad.viz.graph import Edge, Graph, Node
from minigrad.viz.reading import CARRIES, Links, is_op

FULL = 150  # nodes drawn in full
WITHOUT_VALUES = 400  # nodes drawn with values as labels of lines
_LONGEST_PERIOD = 64  # operations in one repeat
_FEWEST_REPEATS = 3
_CHUNKS = 24  # what is left without repeats is cut into about as many pieces


def folded(graph: Graph, detail: str = "auto") -> Graph:
    """The graph as ``detail`` asks for it: "full", "ops", "folded", or what "auto" finds right for
    its size.
    """
    size = len(graph.nodes)
    if detail in ("full",) or (detail not in ("ops", "folded") and size <= FULL):
        return graph
    if detail == "ops" or (detail != "folded" and size <= WITHOUT_VALUES):
        small = without_values(graph)
        if detail == "ops" or len(small.nodes) <= FULL:
            return small
    small = _contracted(graph, _segments(graph))
    if len(small.nodes) > WITHOUT_VALUES:  # few repeats
        small = _contracted(graph, _chunks(graph))
    return without_values(small) if len(small.nodes) > FULL else small


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


# Segments ----------------------------------------------------------------


@dataclass(slots=True)
class Segment:
    """Operations that are drawn as one node."""

    name: str
    ops: list[Node]
    side: str
    twin: Segment | None = None
    members: set[str] = field(default_factory=set)  # with the values inside


def _segments(graph: Graph) -> list[Segment]:
    """Repeated runs of operations, forward, and the backward operations that belong to them."""
    found: list[Segment] = []
    for ops in _runs_by_region(graph, "forward"):
        found += _repeats(ops)
    found += [twin for s in found if (twin := _mirrored(graph, s)) is not None]
    taken = {n.id for s in found for n in s.ops}
    for ops in _runs_by_region(graph, "backward"):
        found += _repeats([n for n in ops if n.id not in taken])
    return found


def _runs_by_region(graph: Graph, side: str) -> list[list[Node]]:
    groups: dict[str | None, list[Node]] = {}
    for node in graph.nodes.values():
        if is_op(node) and node.side == side and not node.bold:
            groups.setdefault(node.region, []).append(node)
    return list(groups.values())


def _repeats(ops: list[Node]) -> list[Segment]:
    """The tandem repeats in a sequence of operations: at each place the period that covers most."""
    names = [n.name for n in ops]
    covers = _covered(names)
    found, at = [], 0
    while at < len(ops):
        covered, period = covers[at]
        if covered:
            times = covered // period
            found.append(
                Segment(
                    f"{times} × ({_listed(names[at : at + period])})",
                    ops[at : at + covered],
                    ops[at].side,
                )
            )
        at += covered or 1
    return found


def _covered(names: list[str]) -> list[tuple[int, int]]:
    """For every place: how many operations a repeat that starts there covers, and its period."""
    best = [(0, 1)] * len(names)
    for period in range(1, min(_LONGEST_PERIOD, len(names) // 2) + 1):
        run = 0
        for at in range(len(names) - period - 1, -1, -1):
            run = run + 1 if names[at] == names[at + period] else 0
            times = run // period + 1
            if times >= _FEWEST_REPEATS and times * period > best[at][0]:
                best[at] = (times * period, period)
    return best


def _mirrored(graph: Graph, segment: Segment) -> Segment | None:
    """The backward operations of a segment, in the order in which they run."""
    ops = [graph.nodes[n.twin] for n in segment.ops if n.twin in graph.nodes]
    if not ops:
        return None
    times, _, _ = segment.name.partition(" × ")
    period = max(1, len(ops) // int(times)) if times.isdigit() else len(ops)
    ops.reverse()
    name = (
        f"{times} × ({_listed([n.name for n in ops[:period]])})"
        if times.isdigit()
        else _counted(ops)
    )
    segment.twin = Segment(name, ops, "backward", twin=segment)
    return segment.twin


def _chunks(graph: Graph) -> list[Segment]:
    """Pieces of a graph without repeats: neighbours in the order in which they run."""
    found: list[Segment] = []
    every = [ops for ops in _runs_by_region(graph, "forward") if len(ops) > 1]
    size = max(2, -(-sum(map(len, every)) // _CHUNKS))
    for ops in every:
        found += [
            Segment(_counted(part), part, "forward")
            for at in range(0, len(ops), size)
            if len(part := ops[at : at + size]) > 1
        ]
    found += [twin for s in found if (twin := _mirrored(graph, s)) is not None]
    taken = {n.id for s in found for n in s.ops}
    for ops in _runs_by_region(graph, "backward"):
        ops = [n for n in ops if n.id not in taken]
        found += [
            Segment(_counted(part), part, "backward")
            for at in range(0, len(ops), size)
            if len(part := ops[at : at + size]) > 1
        ]
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(names if len(names) <= 5 else [*names[:3], "…", names[-1]])


def _counted(ops: list[Node]) -> str:
    common = [name for name, _ in Counter(n.name for n in ops).most_common(3)]
    return f"{len(ops)} operations ({', '.join(common)})"


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
