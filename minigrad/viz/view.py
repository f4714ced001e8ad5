"""What is opened in a folded picture, step by step: open a box, find a name, fold back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .fold import WITHOUT_VALUES, Openings, folded
from .format import shorten, visible
from .graph import Graph, Node
from .opening import near
from .reading import is_op
from .segments import size_of

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
        self.whole, self.detail = whole, detail
        self.openings = Openings()
        if expand:
            self.openings.show(whole, expand)
        self._kept = (len(self.openings.steps), frozenset(self.openings.frames))
        self._before: list[tuple[int, frozenset[str]]] = []
        self.graph = folded(whole, detail, self.openings)

    @property
    def opened(self) -> int:
        """How many openings can be undone."""
        return len(self._before)

    def turn(self, direction: str) -> None:
        """Draw from left to right ("LR") or from top to bottom ("TB")."""
        self.whole.direction = self.graph.direction = direction

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
        self.graph = folded(self.whole, self.detail, self.openings)

    def _fold(self) -> None:
        """Fold with the new opening; the oldest ones close when the picture would be too large."""
        self.graph = folded(self.whole, self.detail, self.openings)
        while len(self.graph.nodes) > WITHOUT_VALUES and len(self._before) > 1:
            gone = self._before[1][0] - self._before[0][0]
            del self.openings.steps[self._before[0][0] : self._before[1][0]]
            self._before = [(n - gone, frames) for n, frames in self._before[1:]]
            self.graph = folded(self.whole, self.detail, self.openings)


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
