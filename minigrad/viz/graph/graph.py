"""The neutral graph: what a picture says, before anyone decides how it looks.

Adapters (``of_nodes``, ``of_grad_fn``, ``of_net``, ``of_program``) build a `Graph`; renderers (``dot``, ``svg``,
``text``, ``player``) read it.  Neither knows the other.  Ids are counters in the order of creation, never
``id()`` and never user text, so the same graph gives the same bytes in every process.

Vocabulary
    node     a value, an operator, a gradient …: what it is is its ``kind``, one of `style.NODE_STYLES`
    edge     a line between two nodes: what it means is its ``kind``, one of `style.EDGE_STYLES`
    side     "forward" or "backward": where it stands in the mirrored drawing
    twin     the node of the other side that stands on the same rank (op and grad op, variable and gradient)
    region   a block, a net, or one side of the drawing; regions nest
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .format import NOT_YET

T = TypeVar("T")
K = TypeVar("K")
MOST_NODES = 200_000  # of a graph: a minute, and a gigabyte


@dataclass(slots=True)
class Node:
    """One box or ellipse.

    ``name`` is shown bold; ``lines`` below it, one string per line (a value, a shape, a formula).
    ``ports`` are the named slots of an op: (name, "in" | "out").  ``tooltip`` is plain text.
    """

    id: str
    kind: str
    name: str
    lines: tuple[str, ...] = ()
    side: str = "forward"
    region: str | None = None
    twin: str | None = None
    number: int | None = None  # position of an op in its block: drawn as "#3"
    ports: tuple[tuple[str, str], ...] = ()
    reads: tuple[str, ...] = ()  # names of the forward values a grad op reads: "reads h, w"
    bold: bool = False  # an op that holds a sub-block
    tooltip: str = ""
    state: str = "done"  # "pending" | "active" | "done": what the player shows
    data: dict[str, Any] = field(default_factory=dict)  # facts for tests and widgets: never drawn


@dataclass(slots=True)
class Edge:
    """One line, from ``tail`` to ``head`` in the direction in which data or gradient moves."""

    tail: str
    head: str
    kind: str = "flow"
    tail_port: str | None = None
    head_port: str | None = None
    label: str = ""
    slot: str = ""  # which result of the operation it is, by which formula
    rule: str = ""
    norm: float | None = None  # how long the gradient is that it carries
    # these two for as long as the picture is made: it holds no arrays and no graph of the user's
    carries: Any = None
    pull: Callable[[Any], Any] | None = None  # what would come of another gradient


@dataclass(slots=True)
class Region:
    """A rounded frame around nodes: one side of the drawing, a block, a net, a part of a net."""

    id: str
    label: str
    side: str = "forward"
    parent: str | None = None
    holder: str | None = None  # the operator whose sub-block it is
    strong: bool = False  # a sub-block: saturated fill, heavier border
    folds: bool = False  # a module: closed where the picture is large


@dataclass(slots=True)
class Graph:
    """A picture before it has a look.  ``direction`` is "TB" or "LR"."""

    title: str = ""
    direction: str = "TB"
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    regions: dict[str, Region] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what was left out: shown below the picture

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def node(self, kind: str, name: str, **fields: Any) -> Node:
        """Add a node; its id is the next counter.

        >>> g = Graph()
        >>> g.node("leaf", "x", lines=("0.5",)).id, g.node("op", "Square").id
        ('n0', 'n1')
        """
        if len(self.nodes) == MOST_NODES:
            raise ValueError(
                f"a graph of more than {MOST_NODES:,} nodes is too large for a picture: "
                "draw a part of it, a few steps of the loop or one layer"
            )
        made = Node(f"n{len(self.nodes)}", kind, name, **fields)
        self.nodes[made.id] = made
        return made

    def edge(self, tail: Node, head: Node, kind: str = "flow", **fields: Any) -> Edge:
        """Add a line between two nodes of this graph."""
        made = Edge(tail.id, head.id, kind, **fields)
        self.edges.append(made)
        return made

    def region(self, label: str, **fields: Any) -> Region:
        """Add a region; nodes join it by their ``region`` field."""
        made = Region(f"r{len(self.regions)}", label, **fields)
        self.regions[made.id] = made
        return made

    def around(self, region: str | None) -> list[str]:
        """A region, then those around it, from the inside out."""
        found = []
        while region:
            found.append(region)
            region = self.regions[region].parent
        return found

    def link(self, forward: Node, backward: Node) -> None:
        """Make two nodes twins: they stand on one rank and light up together."""
        forward.twin, backward.twin = backward.id, forward.id


# ---- Small questions about a graph that every renderer asks ----


OPS = frozenset({"op", "grad_op", "sum", "accumulate", "zeros", "pruned", "folded"})
CARRIES = frozenset({"flow", "weak", "grad", "accumulate"})


def is_op(node: Node) -> bool:
    """Does the node do something, rather than hold a value?"""
    return node.kind in OPS or bool(node.ports)


def ends_at_leaf(node: Node) -> bool:
    """Is it the gradient of a leaf: the end of every path to it?"""
    return node.kind == "leaf_gradient" or "called" in node.data


def called(node: Node) -> str:
    """The name of a node; of what adds up a gradient, that of the gradient."""
    return str(node.data.get("called", node.name))


def number_of(node: Node) -> str:
    """What stands before the name of an operation that has a number: ``#3 ``."""
    return f"#{node.number} " if node.number is not None else ""


def live_lines(node: Node) -> tuple[tuple[str, str], ...]:
    """The lines of a node that are not known before it ran, each with what stands there before.

    >>> live_lines(Node("n0", "value", "a", ("0.25",)))
    (('0.25', '—'),)
    """
    value = () if is_op(node) else tuple((line, NOT_YET) for line in node.lines[:1])
    return tuple(both for both in node.data.get("live", value) if not both[0].endswith(NOT_YET))


def grouped(things: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Things by what they have in common, in their order."""
    groups: dict[K, list[T]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups


def in_order(things: Iterable[T], before: Callable[[T], Iterable[T]]) -> list[T]:
    """Things, each after all that comes before it, to any depth; what goes round is entered once."""
    order = []
    entered = set()
    waiting = [(thing, False) for thing in reversed([*things])]
    while waiting:
        thing, ready = waiting.pop()
        if ready:
            order.append(thing)
        elif thing not in entered:
            entered.add(thing)
            waiting.append((thing, True))
            waiting += [(each, False) for each in reversed([*before(thing)])]
    return order


class Links:
    """Who feeds whom, looked up once for a whole graph."""

    def __init__(self, graph: Graph) -> None:
        self.before = defaultdict(list)
        self.after = defaultdict(list)
        for edge in graph.edges:
            if edge.kind in CARRIES:
                self.before[edge.head].append(graph.nodes[edge.tail])
                self.after[edge.tail].append(graph.nodes[edge.head])
