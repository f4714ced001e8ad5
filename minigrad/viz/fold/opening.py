"""Looking into a folded picture: what is searched for is drawn in full, the rest stays folded."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from ..graph.graph import Graph, Links, Node, Region, is_op
from .segments import Segment, box_of, drawn_with, mirrored, size_of

AROUND = 2  # operations shown before and after each one that was found
MOST = 40  # operations drawn in full
PARTS = 10  # pieces of a segment that is opened but too large to draw in full


class Opening(NamedTuple):
    """What was opened: "frames" by their ids, the operations of a box for a "part", or those to "show"."""

    what: str
    ids: frozenset[str]


def found_ops(graph: Graph, text: str) -> set[str]:
    """The operations that a text speaks of, with their neighbours and twins.

    The text is the name of a value, of an operation, its number ("#17"), or how the label of a
    frame begins ("block 2").  Raises `ValueError`, with the nearest names, if there is none.
    """
    frames = {r.id for r in graph.regions.values() if r.label.startswith(text)}
    hits = [
        n
        for n in graph.nodes.values()
        if text in (n.name, n.data.get("called"))
        or (is_op(n) and (f"#{n.number}" == text or n.region in frames))
    ]
    if not hits:
        known = {n.name for n in graph.nodes.values() if n.name}
        alike = difflib.get_close_matches(text, sorted(known), 3)
        advice = f"; near it: {', '.join(alike)}" if alike else ""
        raise ValueError(
            f"nothing called {text!r} in this graph{advice}. expand takes the name of a value or "
            "an operation, a number like '#17', or the label of a frame like 'block 2'"
        )
    return near(graph, hits)


def near(graph: Graph, hits: Iterable[Node]) -> set[str]:
    """The operations to draw in full so that nodes are seen, with their neighbours and twins."""
    links = Links(graph)
    touching: list[Node] = []
    for hit in hits:
        around = [*links.before[hit.id], *links.after[hit.id]]
        touching += [hit] if is_op(hit) else around
    wanted = {op.id for op in touching[:MOST] if is_op(op)}
    shown: dict[str, None] = {}
    for side in ("forward", "backward"):
        row = [n for n in graph.nodes.values() if is_op(n) and n.side == side]
        for i, op in enumerate(row):
            if op.id in wanted:
                beside = row[max(0, i - AROUND) : i + AROUND + 1]
                shown |= {n.id: None for n in beside if n.region == op.region}
    first = [*shown][: 2 * MOST]
    twins = [twin for n in first if (twin := graph.nodes[n].twin) in graph.nodes and twin]
    return {*first, *twins}


def split(graph: Graph, segments: list[Segment], openings: Iterable[Opening]) -> list[Segment]:
    """The segments without what was opened, each piece with its twin; what lies before and after
    stays folded.
    """
    for what, ids in openings:
        made: list[Segment] = []
        for segment in segments if what != "frames" else ():
            if segment.side == "backward" and segment.twin is not None:
                continue  # comes back with the pieces of its twin
            for piece in _pieces(segment, ids, what == "part"):
                twin = mirrored(graph, piece)
                made += [piece] if twin is None else [piece, twin]
        segments = made if what != "frames" else segments
    return segments


def _pieces(segment: Segment, ids: Collection[str], part: bool) -> Iterator[Segment]:
    """A segment without some operations; if it is opened in parts, up to `PARTS` pieces of these, of
    about the same length and of whole repeats, or none where they are few.
    """
    at, period = 0, segment.period or 1
    for hit, run in groupby(segment.ops, lambda n: n.id in ids or n.twin in ids):
        ops = [*run]
        length = len(ops)
        if hit:
            few = not part or length <= MOST
            length = 0 if few else period * -(-length // (period * PARTS))
        for start in range(0, len(ops), length) if length else ():
            piece = ops[start : start + length]
            whole = (at + start) % period == 0 == len(piece) % period and len(piece) > period
            if len(piece) > 1:
                yield Segment(piece, segment.path, segment.period if whole else 0)
        at += len(ops)


# ---- Frames closed into one node: the sub-block of an operator, a net inside a net ----


def closed(graph: Graph, opened: Collection[str] = ()) -> Graph:
    """The graph with its inner frames closed, except those whose ids are in ``opened``."""
    closing = _inner(graph) - set(opened)
    outermost: dict[str, list[str]] = {}
    for region in graph.regions:
        shut = [frame for frame in _outwards(graph, region) if frame in closing]
        outermost[region] = shut[-1:]
    inside: dict[str, list[Node]] = {}
    for node in graph.nodes.values():
        for frame in outermost[node.region] if node.region is not None else ():
            inside.setdefault(frame, []).append(node)
    if not inside:
        return graph
    boxes: dict[str, Node] = {}
    place: dict[str, str] = {}
    for frame, nodes in inside.items():
        box = _closed_box(graph, boxes, graph.regions[frame], nodes)
        boxes[box.id] = box
        place |= {n.id: box.id for n in nodes}
    _pair(boxes.values())
    small = drawn_with(graph, boxes.values(), place)
    small.regions = {r: frame for r, frame in graph.regions.items() if not outermost[r]}
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


def _outwards(graph: Graph, region: str | None) -> Iterator[str]:
    """A frame, then those around it, from the inside out."""
    while region is not None:
        yield region
        frame = graph.regions[region]
        region = graph.nodes[frame.holder].region if frame.holder else frame.parent


def frames_around(graph: Graph, ids: Iterable[str]) -> set[str]:
    """The inner frames that these nodes stand in, and these frames, with those that hold them."""
    at = {i if i in graph.regions else graph.nodes[i].region for i in ids}
    return {frame for region in at for frame in _outwards(graph, region)} & _inner(graph)


def _inner(graph: Graph) -> set[str]:
    return {r.id for r in graph.regions.values() if r.holder or r.parent}


def _closed_box(graph: Graph, boxes: dict[str, Node], frame: Region, nodes: list[Node]) -> Node:
    """The node that stands for a closed frame: the operator that holds it, or a box of its own."""
    count, members = size_of([n for n in nodes if is_op(n)]), [n.id for n in nodes]
    data: dict[str, Any] = {"ops": count, "members": members, "regions": [frame.id]}
    if frame.holder is None:
        kind = "parameters" if all(n.kind == "leaf" for n in nodes) else "values"
        words = f"{count} operations" if count else f"{len(nodes)} {kind}"
        about = {"side": frame.side, "region": frame.parent}
        return box_of(f"c{frame.id}", frame.label, words, data, **about)
    held = boxes.get(frame.holder) or graph.nodes[frame.holder]
    words = f"{count} operations in {frame.label.split(' (')[0]}"
    data = {key: held.data.get(key, type(new)()) + new for key, new in data.items()}
    data["ops"] += "ops" not in held.data  # the operator itself
    return replace(held, data=held.data | data, lines=(*held.lines, words), bold=True)
