"""Looking into a folded picture: what is searched for is drawn in full, the rest stays folded."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from ..graph.graph import Graph, Links, Node, copied, is_op
from .segments import Segment, joined, mirrored, size_of

AROUND = 2  # operations shown before and after each one that was found
MOST = 40  # operations drawn in full
PARTS = 10  # pieces of a segment that is opened but too large to draw in full


def found_ops(graph: Graph, text: str) -> set[str]:
    """The operations that a text speaks of, with their neighbours and twins.

    The text is the name of a value, of an operation, its number ("#17"), or how the label of a
    frame begins ("block 2").  Raises `ValueError`, with the nearest names, if there is none.
    """
    every = [n for n in graph.nodes.values() if is_op(n)]
    hits = _hits(graph, every, text)
    if not hits:
        known = {n.name for n in graph.nodes.values() if n.name}
        alike = difflib.get_close_matches(text, sorted(known), 3)
        advice = f"; near it: {', '.join(alike)}" if alike else ""
        raise ValueError(
            f"nothing called {text!r} in this graph{advice}. expand takes the name of a value or "
            "an operation, a number like '#17', or the label of a frame like 'block 2'"
        )
    return _with_twins(graph, every, hits[:MOST])


def near(graph: Graph, node: Node) -> set[str]:
    """The operations to draw in full so that a node is seen, with their neighbours and twins."""
    every = [n for n in graph.nodes.values() if is_op(n)]
    links = Links(graph)
    around = [*links.before[node.id], *links.after[node.id]]
    hits = [node] if is_op(node) else [n for n in around if is_op(n)]
    return _with_twins(graph, every, hits[:MOST])


def _with_twins(graph: Graph, every: list[Node], hits: list[Node]) -> set[str]:
    shown = [op.id for op in _with_neighbours(every, hits)][: 2 * MOST]
    twins = [twin for n in shown if (twin := graph.nodes[n].twin) in graph.nodes and twin]
    return {*shown, *twins}


def _hits(graph: Graph, ops: list[Node], text: str) -> list[Node]:
    regions = {r.id for r in graph.regions.values() if r.label.startswith(text)}
    links = Links(graph)
    values = {n.id for n in graph.nodes.values() if n.name == text and not is_op(n)}
    return [
        op
        for op in ops
        if text in (op.name, op.data.get("called"))
        or f"#{op.number}" == text
        or op.region in regions
        or any(n.id in values for n in (*links.before[op.id], *links.after[op.id]))
    ]


def _with_neighbours(ops: list[Node], hits: list[Node]) -> list[Node]:
    """The found operations and those that stand next to them, on the same side."""
    shown: dict[str, Node] = {}
    wanted = {n.id for n in hits}
    for side in ("forward", "backward"):
        row = [n for n in ops if n.side == side]
        for i, op in enumerate(row):
            if op.id in wanted:
                around = row[max(0, i - AROUND) : i + AROUND + 1]
                shown |= {n.id: n for n in around if n.region == op.region}
    return list(shown.values())


def without(graph: Graph, segments: list[Segment], shown: Collection[str]) -> list[Segment]:
    """The segments without the operations to show; what lies before and after stays folded."""
    return _cut(graph, segments, lambda segment: _pieces(segment.ops, shown))


def parted(graph: Graph, segments: list[Segment], ops: Collection[str]) -> list[Segment]:
    """The segments with one of them, named by its operations, in smaller pieces; in full if small."""

    def parts(segment: Segment) -> list[list[Node]]:
        mine = {n.id for n in segment.ops}
        twins = {n.id for n in segment.twin.ops} if segment.twin is not None else set()
        return _parts(segment) if ops in (mine, twins) else [segment.ops]

    return _cut(graph, segments, parts)


def _cut(
    graph: Graph, segments: list[Segment], parts: Callable[[Segment], list[list[Node]]]
) -> list[Segment]:
    """Every segment in its parts, each with its twin."""
    made: list[Segment] = []
    for segment in segments:
        if segment.side == "backward" and segment.twin is not None:
            continue  # comes back with the parts of its twin
        for ops in parts(segment):
            piece = Segment(ops, segment.path, _period(segment, ops))
            twin = mirrored(graph, piece)
            made += [piece] if twin is None else [piece, twin]
    return made


def _parts(segment: Segment) -> list[list[Node]]:
    """Up to `PARTS` pieces of about the same length, of whole repeats; none for a small segment."""
    count = len(segment.ops)
    if count <= MOST:
        return []
    period = segment.period or 1
    length = period * -(-count // (period * PARTS))
    pieces = [segment.ops[at : at + length] for at in range(0, count, length)]
    return [piece for piece in pieces if len(piece) > 1]


def _pieces(ops: list[Node], shown: Collection[str]) -> list[list[Node]]:
    """Runs of two or more neighbours of which none is shown."""
    runs: list[list[Node]] = [[]]
    for op in ops:
        if op.id in shown:
            runs.append([])
        else:
            runs[-1].append(op)
    return [run for run in runs if len(run) > 1]


def _period(segment: Segment, ops: list[Node]) -> int:
    """That of the segment, if the piece is made of whole repeats; else 0."""
    period = segment.period
    whole = period and len(ops) % period == 0 and len(ops) > period
    start = next(i for i, n in enumerate(segment.ops) if n is ops[0])
    return period if whole and start % period == 0 else 0


# ---- Frames closed into one node: the sub-block of an operator, a net inside a net ----


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
    _pair(boxes.values())
    place = {n.id: boxes[r].id for r, nodes in inside.items() for n in nodes}
    small.edges = [e for e in joined(graph, place) if e.head in small.nodes]
    small.regions = {r.id: r for r in graph.regions.values() if not ways[r.id]}
    small.notes.append(
        f"{len(graph.regions) - len(small.regions)} frames are closed, "
        f"with {len(graph.nodes) - len(small.nodes)} of {len(graph.nodes)} nodes"
    )
    return small


def _pair(boxes: Iterable[Node]) -> None:
    """The two boxes of one module stand beside each other."""
    forward = {b.name: b for b in boxes if b.side == "forward" and b.kind == "folded"}
    for box in boxes:
        if box.side == "backward" and box.kind == "folded" and (twin := forward.get(box.name)):
            box.twin, twin.twin = twin.id, box.id


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
    kind = "parameters" if all(n.kind == "leaf" for n in nodes) else "values"
    words = f"{count} operations" if count else f"{len(nodes)} {kind}"
    data = {"ops": count, "members": members, "regions": [region]}
    return Node(
        f"c{region}",
        "folded",
        frame.label,
        lines=(words,),
        side=frame.side,
        region=frame.parent,
        tooltip=words,
        data=data,
    )
