"""Big graphs, drawn small: modules and repeated segments are drawn as one box, frames are closed,
and the picture says so.

Up to 150 nodes are drawn in full, fewer where they are too wide for a page. Ids of what stays do
not change.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from ..graph.format import shorten, visible
from ..graph.graph import Graph, Links, Node, Region, is_op
from .segments import (
    Segment,
    box_of,
    chunks,
    contracted,
    drawn_with,
    mirrored,
    said_size,
    segments,
    size_of,
    stacks,
)

FULL = 150  # nodes drawn in full
_TIGHTER, _FEWEST = 0.8, 8  # nodes that a picture may have when it is folded more
MODULES = 80  # nodes drawn before frames of modules are closed


#: a graph, its frames of modules closed or not, and what of it is drawn as one box
Folding = tuple[Graph, list[Segment]]


def folded(graph: Graph, detail: str = "auto", most: int = FULL) -> Folding | None:
    """How ``detail`` asks for a graph to be folded: "full", "folded", or, where it has more than ``most`` nodes,
    until it has not; None for all of it.
    """
    by_module = detail in ("auto", "folded") and any(r.folds for r in graph.regions.values())
    few = MODULES if by_module else most
    if detail == "full" or (detail != "folded" and len(graph.nodes) <= few):
        return None
    found = None if by_module else _small(graph, [segments(graph)], most)
    if found is not None:
        return graph, found
    shut = closed(graph)  # frames are closed, and what stands outside folds for itself
    found = _small(shut, [[]] if by_module else [segments(shut)], most)
    if found is None:
        found = segments(shut) if by_module else chunks(shut, most)
    return shut, found


def opened(
    graph: Graph, folding: Folding | None, openings: Iterable[Opening] = (), most: int = FULL
) -> Graph:
    """The graph as it is folded, but for what was opened: a picture does not jump when something is."""
    if folding is None:
        return graph
    shut, found = folding
    if shut is not graph:
        frames = {r for o in openings if o.what != "part" for r in frames_around(graph, o.ids)}
        if frames:
            holders = {graph.regions[r].holder or f"c{r}" for r in frames}
            shut = closed(graph, frames)
            if len(shut.nodes) > most:
                found = [*found, *(s for s in segments(shut) if s.ops[0].region in frames)]
            openings = [*openings, Opening("show", frozenset(holders))]
    return _contracted(shut, found, openings)


def _contracted(graph: Graph, found: list[Segment], openings: Iterable[Opening] = ()) -> Graph:
    """The graph with segments and stacks of leaves as boxes, but for what was opened."""
    parts = split(graph, found, openings)
    return contracted(graph, [*parts, *split(graph, stacks(graph, parts), openings)])


def _small(graph: Graph, ways: Iterable[list[Segment]], most: int) -> list[Segment] | None:
    """The way of folding that shows most and is not too large."""
    sizes = [(len(_contracted(graph, found).nodes), found) for found in ways]
    fit = [each for each in sizes if each[0] <= most]
    return max(fit, key=lambda each: each[0])[1] if fit else None


# ---- What is opened in a folded picture ----


class View:
    """A graph, folded, with what was opened in it: ``graph`` is what is shown.

    >>> big = Graph()
    >>> before = big.node("leaf", "x")
    >>> for i in range(600):
    ...     op = big.node("op", "sin", number=i)
    ...     _ = big.edge(before, op)
    ...     before = op
    >>> view = View(big)
    >>> len(view.graph.nodes), view.open("f0"), len(view.graph.nodes)
    (2, 'Opened 600 × (sin) into 10 parts.', 11)
    """

    def __init__(self, whole: Graph, detail: str = "auto", expand: Iterable[str] = ()) -> None:
        self.whole, self.detail, self.most = whole, detail, FULL
        self.openings = [Opening("show", frozenset(expand))] if expand else []
        self.opened = False
        self._foldings: dict[int, Folding | None] = {}  # by what ``most`` was
        self._refold()

    def turn(self, direction: str) -> None:
        """Draw from left to right ("LR") or from top to bottom ("TB")."""
        self.whole.direction = self.graph.direction = direction
        self._foldings.clear()

    def tighten(self) -> bool:
        """Fold more, for a picture that is too wide; False if there is nothing more to fold."""
        before = len(self.graph.nodes)
        while self.detail != "full" and self.most > _FEWEST:
            self.most = int(min(self.most, len(self.whole.nodes)) * _TIGHTER)
            self._refold()
            if len(self.graph.nodes) < before:
                return True
        return False

    def folds(self) -> dict[str, str]:
        """The boxes that can be opened, each with a few words."""
        return {
            n.id: f"{shorten(n.name, 60)}: {said_size([n]) if n.data['ops'] else n.lines[0]}, folded; open"
            for n in self.graph.nodes.values()
            if "members" in n.data
        }

    def inside(self, name: str, what: str = "members") -> frozenset[str]:
        """What a box and its twin hold: they open together."""
        box = self.graph.nodes[name]
        both = (box, self.graph.nodes.get(box.twin or "", box))
        return frozenset(held for each in both for held in each.data.get(what, ()))

    def with_open(self, name: str) -> tuple[View, str]:
        """Another view, with a box open, and what was done."""
        other = copy.copy(self)
        return other, other.open(name)

    def index(self) -> dict[str, list[str]]:
        """The names inside each box."""
        inside = {name: self.graph.nodes[name].data["members"] for name in self.folds()}
        return {
            name: list(dict.fromkeys(_called(self.whole.nodes[m]) for m in members))
            for name, members in inside.items()
        }

    def open(self, name: str) -> str:
        """Show what is inside a box, in full if that is little, else in smaller boxes; says what it did."""
        box = self.graph.nodes[name]
        opening = Opening("part", self.inside(name, "segment"))
        if "regions" in box.data:
            opening = Opening("frames", frozenset(box.data["regions"]))
        self.openings = [*self.openings, opening]
        self.opened = True
        self._refold()
        parts = [n for n in self.graph.nodes.values() if n.kind == "folded" and n.side == box.side]
        inside = set(box.data["members"])
        boxes = [n for n in parts if inside & set(n.data.get("members", ()))]
        words = f" into {len(boxes)} parts" if boxes else ""
        return f"Opened {shorten(box.name, 60)}{words}."

    def _refold(self) -> None:
        if self.most not in self._foldings:
            self._foldings[self.most] = folded(self.whole, self.detail, self.most)
        self.graph = opened(self.whole, self._foldings[self.most], self.openings, self.most)


def _called(node: Node) -> str:
    """A node as it is searched for: its number and its name."""
    number = f"#{node.number} " if is_op(node) and node.number is not None else ""
    gradient = f" {visible(node.data['called'])}" if "called" in node.data else ""
    return number + visible(node.name) + gradient


def names_of(graph: Graph) -> dict[str, str]:
    """Every node of a graph as it is searched for."""
    return {n.id: _called(n) for n in graph.nodes.values()}


# ---- Looking into a folded picture: what is searched for is drawn in full, the rest stays folded ----


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
                yield Segment(piece, segment.period if whole else 0)
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
