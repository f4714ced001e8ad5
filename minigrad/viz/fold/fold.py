"""Big graphs, drawn small: modules and repeated segments are drawn as one box, frames are closed,
and the picture says so.

Up to 150 nodes are drawn in full, fewer where they are too wide for a page. Ids of what stays do
not change.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ..graph.format import shorten, visible
from ..graph.graph import Graph, Node, is_op
from .opening import closed, frames_around, holders_of, near, parted, without
from .segments import Segment, chunks, contracted, modules, segments, size_of

FULL = 150  # nodes drawn in full
OPENED = 400  # nodes of a picture in which boxes are open
_TIGHTER, _FEWEST = 0.8, 8  # nodes that a picture may have when it is folded more
MODULES = 80  # nodes drawn before frames of modules are closed


@dataclass
class Openings:
    """What was opened in a folded picture: frames by id, and steps in the order they were made.

    A step is ("show", operations to draw in full) or ("part", the operations of a segment).
    """

    frames: set[str] = field(default_factory=set)
    steps: list[tuple[str, frozenset[str]]] = field(default_factory=list)

    def show(self, graph: Graph, ops: Iterable[str]) -> None:
        """Draw these operations in full, whatever frames they stand in."""
        ops = frozenset(ops)
        self.frames |= frames_around(graph, ops)
        self.steps.append(("show", ops))

    def part(self, ops: Iterable[str]) -> None:
        """Draw a segment as several smaller ones, or in full if it is small."""
        self.steps.append(("part", frozenset(ops)))


def folded(
    graph: Graph, detail: str = "auto", openings: Openings | None = None, most: int = FULL
) -> Graph:
    """The graph as ``detail`` asks for it: "full", "folded", or, where it has more than
    ``most`` nodes, folded until it has not; with what was opened in it.
    """
    by_module = any(r.folds for r in graph.regions.values())
    if by_module and detail in ("auto", "folded") and len(graph.nodes) > MODULES:
        return _by_module(graph, openings or Openings(), most)
    if detail == "full" or (detail != "folded" and len(graph.nodes) <= most):
        return graph
    return _folded(graph, openings or Openings(), most)


def _by_module(graph: Graph, openings: Openings, most: int) -> Graph:
    """The frames of modules closed, but for those that are open; what stands outside folds for itself."""
    shut = closed(graph, openings.frames)
    if len(shut.nodes) <= most and not openings.steps:
        return shut
    return _opened(shut, segments(shut), openings)


def _folded(graph: Graph, openings: Openings, most: int) -> Graph:
    """Fold more and more until the picture is small: modules and repeats, frames, then neighbours.

    How it is folded does not depend on what is opened, so that a picture does not jump.
    """
    ways = [(contracted(graph, found), found) for found in (*modules(graph), segments(graph))]
    for plain, found in sorted(ways, key=lambda way: -len(way[0].nodes)):
        if len(plain.nodes) <= most:
            return _opened(graph, found, openings) if openings.steps else plain
    shut = closed(graph)
    if shut is not graph:
        found = segments(shut)
        plain = contracted(shut, found)
        small = len(plain.nodes) <= most
        if small and not (openings.steps or openings.frames):
            return plain
        found = found if small else chunks(shut, most)
        return _framed(closed(graph, openings.frames), found, openings)
    return _opened(graph, chunks(graph, most), openings)


def _framed(graph: Graph, found: list[Segment], openings: Openings) -> Graph:
    """The picture with some frames open: their operators stand outside of segments, and what is
    inside folds for itself.
    """
    inside = [s for s in segments(graph) if s.ops[0].region in openings.frames]
    holders = {n.id for r, n in holders_of(graph).items() if r in openings.frames}
    return _opened(graph, [*found, *inside], openings, holders)


def _opened(
    graph: Graph, found: list[Segment], openings: Openings, shown: Collection[str] = ()
) -> Graph:
    for what, ops in openings.steps:
        found = (without if what == "show" else parted)(graph, found, ops)
    return contracted(graph, without(graph, found, shown) if shown else found)


# ---- What is opened in a folded picture, step by step: open a box, find a name, fold back ----


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
        self.openings = Openings()
        if expand:
            self.openings.show(whole, expand)
        self._kept = (len(self.openings.steps), frozenset(self.openings.frames))
        self._before: list[tuple[int, frozenset[str]]] = []
        self._refold()

    @property
    def opened(self) -> int:
        """How many openings can be undone."""
        return len(self._before)

    def turn(self, direction: str) -> None:
        """Draw from left to right ("LR") or from top to bottom ("TB")."""
        self.whole.direction = self.graph.direction = direction

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
            n.id: f"{shorten(n.name, 60)}: {size_of([n]):,} operations, folded; open"
            for n in self.graph.nodes.values()
            if "members" in n.data
        }

    def members(self, box: Node) -> Iterator[Node]:
        """What is inside a box."""
        for name in box.data.get("members", ()):
            yield self.whole.nodes[name]

    def inside(self, name: str) -> frozenset[str]:
        """What a box and its twin hold: they open together."""
        box = self.graph.nodes[name]
        both = (box, self.graph.nodes.get(box.twin or "", box))
        return frozenset(member for each in both for member in each.data.get("members", ()))

    def with_open(self, name: str) -> tuple[View, str]:
        """Another view, with a box open, and what was done."""
        other = copy.copy(self)
        other.openings, other._before = copy.deepcopy(self.openings), [*self._before]
        return other, other.open(name)

    def found(self, text: str) -> dict[str, int]:
        """How often a text occurs in the names inside each box."""
        counts = {
            n.id: sum(_holds(m, text) for m in self.members(n))
            for n in self.graph.nodes.values()
            if "members" in n.data
        }
        return {name: count for name, count in counts.items() if count}

    def index(self) -> tuple[dict[str, list[str]], bool]:
        """The names inside each box, and whether some were left out."""
        left, cut = MOST_NAMES, False
        made = {}
        for name in self.folds():
            every = list(dict.fromkeys(_called(m) for m in self.members(self.graph.nodes[name])))
            cut |= len(every) > left
            made[name] = every[:left]
            left -= len(made[name])
        return made, cut

    # -- changes: each says what it did

    def open(self, name: str) -> str:
        """Show what is inside a box: in full if that is little, else in smaller boxes."""
        box = self.graph.nodes.get(name)
        if box is None or "members" not in box.data:
            return "There is nothing to open."
        self._mark()
        if "regions" in box.data:
            self.openings.frames |= set(box.data["regions"])
        else:
            self.openings.part(box.data["segment"])
        self._fold()
        parts = [n for n in self.graph.nodes.values() if n.kind == "folded" and n.side == box.side]
        inside = set(box.data["members"])
        boxes = [n for n in parts if inside & set(n.data.get("members", ()))]
        words = f" into {len(boxes)} parts" if boxes else ""
        return f"Opened {shorten(box.name, 60)}{words}."

    def find(self, name: str, text: str) -> tuple[str, str]:
        """Show the first match of a text inside a box; (its node, what was done)."""
        box = self.graph.nodes.get(name)
        match = next((m for m in self.members(box) if _holds(m, text)), None) if box else None
        if match is None:
            return "", f"Nothing called {shorten(text, 40)} in there."
        self._mark()
        shown = near(self.whole, match)
        self.openings.show(self.whole, shown)
        self._fold()
        where = next((n for n in (match.id, *sorted(shown)) if n in self.graph.nodes), "")
        return where, f"Found {shorten(_called(match), 60)}; its neighbours are open, too."

    def back(self) -> str:
        """Undo the last opening."""
        if not self._before:
            return "Everything is folded."
        self._return_to(self._before.pop())
        return "Folded back."

    def fold_all(self) -> str:
        """Undo all openings."""
        self._before.clear()
        self._return_to(self._kept)
        return "Everything is folded."

    def _mark(self) -> None:
        self._before.append((len(self.openings.steps), frozenset(self.openings.frames)))

    def _return_to(self, mark: tuple[int, frozenset[str]]) -> None:
        del self.openings.steps[mark[0] :]
        self.openings.frames = set(mark[1])
        self._refold()

    def _refold(self) -> None:
        self.graph = folded(self.whole, self.detail, self.openings, self.most)

    def _fold(self) -> None:
        """Fold with the new opening; the oldest ones close when the picture would be too large."""
        self._refold()
        while len(self.graph.nodes) > OPENED and len(self._before) > 1:
            gone = self._before[1][0] - self._before[0][0]
            del self.openings.steps[self._before[0][0] : self._before[1][0]]
            self._before = [(n - gone, frames) for n, frames in self._before[1:]]
            self._refold()


def _called(node: Node) -> str:
    """A node as it is searched for: its number and its name."""
    number = f"#{node.number} " if is_op(node) and node.number is not None else ""
    gradient = f" {visible(node.data['called'])}" if "called" in node.data else ""
    return number + visible(node.name) + gradient


def _holds(node: Node, text: str) -> bool:
    wanted, name = text.lower(), _called(node).lower()
    if wanted.startswith("#"):
        return name == wanted or name.startswith(f"{wanted} ")
    return wanted in name


def names_of(graph: Graph) -> dict[str, str]:
    """Every node of a graph as it is searched for."""
    return {n.id: _called(n) for n in graph.nodes.values()}
