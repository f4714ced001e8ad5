"""Big graphs, drawn small: modules and repeated segments are drawn as one box, frames are closed,
and the picture says so.

Up to 150 nodes are drawn in full, fewer where they are too wide for a page. Ids of what stays do
not change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from ..graph.format import shorten, visible
from ..graph.graph import Graph, Node, is_op
from .opening import Opening, closed, frames_around, split
from .segments import Segment, chunks, contracted, modules, said_size, segments, stacks

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
    found = None if by_module else _small(graph, [*modules(graph), segments(graph)], most)
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


MOST_NAMES = 20_000  # that a page without a kernel can search


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

    def index(self) -> tuple[dict[str, list[str]], bool]:
        """The names inside each box, and whether some were left out."""
        left, cut = MOST_NAMES, False
        made = {}
        for name in self.folds():
            members = self.graph.nodes[name].data["members"]
            every = list(dict.fromkeys(_called(self.whole.nodes[m]) for m in members))
            cut |= len(every) > left
            made[name] = every[:left]
            left -= len(made[name])
        return made, cut

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
