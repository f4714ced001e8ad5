"""Which nodes share a rank, and how far apart two ranks are."""

from __future__ import annotations

from collections import defaultdict

from ..graph.graph import Edge, Graph, Node, in_order, is_op
from ..graph.style import edge_style


def leader(graph: Graph, node_id: str) -> str:
    """The node that stands for a group of twins: the forward one."""
    node = graph.nodes[node_id]
    if node.twin is None:
        return node_id
    return node_id if node.side == "forward" else node.twin


def far_reads(graph: Graph) -> dict[int, Edge]:
    """The lines from saved values that would reach further than to a neighbouring rank, by their
    place in the list.
    """
    saved = [(i, e) for i, e in enumerate(graph.edges) if e.kind == "saved"]
    at = ranks(graph) if saved else {}
    return {
        i: e for i, e in saved if abs(at[leader(graph, e.tail)] - at[leader(graph, e.head)]) > 1
    }


def ranks(graph: Graph, late: bool = False) -> dict[str, int]:
    """The rank of every group of twins: the longest path to it; sources stand just before their
    first reader. If ``late``, everything does.
    """
    above, below = _neighbours(graph)
    order = in_order(dict.fromkeys(leader(graph, n) for n in graph.nodes), above.__getitem__)
    at: dict[str, int] = {}
    for name in order:
        at[name] = max((at[tail] + 1 for tail in above[name] if tail in at), default=0)
    for name in reversed(order):
        if below[name] and (late or not above[name]):
            at[name] = min(at[head] for head in below[name]) - 1
    return at


def _neighbours(graph: Graph) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What stands above each group of twins, and what below."""
    above: dict[str, list[str]] = defaultdict(list)
    below: dict[str, list[str]] = defaultdict(list)
    for edge in graph.edges:
        tail, head = _ranked_ends(graph, edge)
        if tail != head:
            above[head].append(tail)
            below[tail].append(head)
    return above, below


def _ranked_ends(graph: Graph, edge: Edge) -> tuple[str, str]:
    """The ends in the order of their ranks; a line that does not rank gives one end twice."""
    if edge.head not in graph.nodes:
        return edge.tail, edge.tail
    style = edge_style(edge, graph.nodes[edge.tail].side)
    tail, head = leader(graph, edge.tail), leader(graph, edge.head)
    if not style.constraint or edge.kind == "loop":
        return tail, tail
    return (head, tail) if style.reversed else (tail, head)


# ---- Ranks with room: what does not fit beside each other stands one below the other ----

ROOM = 300.0  # points for each side
_APART = 14.0  # points between two nodes


def layers(graph: Graph, widths: dict[str, float]) -> list[list[str]]:
    """Nodes rank by rank from the top, twins with their forward node; on each side a rank holds
    what has room there, and one operator.  A block is followed by an empty rank.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in graph.nodes:
        groups[leader(graph, name)].append(name)
    above, _ = _neighbours(graph)
    found: list[list[str]] = []
    for row in _rows(graph):
        shelf = _Shelf(graph, groups, widths)
        for name in _in_order(graph, row, above):
            shelf.put(name, above[name])
        for rank in shelf.ranks:
            found.append([n for name in rank for n in groups[name]])
        found.append([])
    return found[:-1]


def _in_order(graph: Graph, row: list[Node], above: dict[str, list[str]]) -> list[str]:
    """The groups of a block, each after what stands above it: operators as they run, every input
    just before its first reader.
    """
    mine = dict.fromkeys(leader(graph, n.id) for n in row)
    at = ranks(graph, late=True)
    ops = sorted((n for n in mine if is_op(graph.nodes[n])), key=lambda n: at[n])
    return in_order([*ops, *mine], lambda name: [n for n in above[name] if n in mine])


class _Shelf:
    """Ranks that fill up from the top."""

    def __init__(
        self, graph: Graph, groups: dict[str, list[str]], widths: dict[str, float]
    ) -> None:
        self.graph, self.groups, self.widths = graph, groups, widths
        self.ranks: list[list[str]] = []
        self.taken: list[dict[str, float]] = []  # side -> points
        self.rank_of: dict[str, int] = {}
        self.last = 0  # the rank of the last operator

    def put(self, name: str, above: list[str]) -> None:
        """Put a group on the highest rank below what stands above it that has room."""
        op = is_op(self.graph.nodes[name])
        lowest = max((self.rank_of[n] + 1 for n in above if n in self.rank_of), default=-1)
        places = [self.last + 1, self.last] if lowest < 0 and self.ranks and not op else []
        rank = next((r for r in places if self.fits(name, r)), -1)
        if rank < 0:
            after = self.last + 1 if op and self.ranks else 0
            rank = max(lowest, after, min(places, default=0))
            while not self.fits(name, rank):
                rank += 1
        while rank >= len(self.ranks):
            self.ranks.append([])
            self.taken.append(defaultdict(float))
        self.ranks[rank].append(name)
        self.rank_of[name] = rank
        for side, width in self.sides(name).items():
            self.taken[rank][side] += width
        if op:
            self.last = rank

    def fits(self, name: str, rank: int) -> bool:
        """Is there room beside what stands there?"""
        if rank >= len(self.ranks):
            return True
        taken = self.taken[rank]
        return all(not taken[s] or taken[s] + w <= ROOM for s, w in self.sides(name).items())

    def sides(self, name: str) -> dict[str, float]:
        """The room that a group takes on each side."""
        found: dict[str, float] = defaultdict(float)
        for member in self.groups[name]:
            found[self.graph.nodes[member].side] += self.widths[member] + _APART
        return found


def _rows(graph: Graph) -> list[list[Node]]:
    """The nodes of frames that stand beside each other, from top to bottom: a block forward and
    backward, then the blocks that it holds.
    """
    row_of: dict[str | None, int] = {}
    rows: list[list[Node]] = []
    for frame, nodes in _members(graph).items():
        twins = [graph.nodes[n.twin] for n in nodes if n.twin in graph.nodes]
        beside = [r for t in twins if (r := row_of.get(_outermost(graph, t))) is not None]
        if not beside:
            rows.append([])
        row_of[frame] = beside[0] if beside else len(rows) - 1
        rows[row_of[frame]] += nodes
    return rows


def _members(graph: Graph) -> dict[str | None, list[Node]]:
    """The nodes in each outermost frame."""
    members: dict[str | None, list[Node]] = {}
    for node in graph.nodes.values():
        members.setdefault(_outermost(graph, node), []).append(node)
    return members


def _outermost(graph: Graph, node: Node) -> str | None:
    """The frame around a node that stands in no other."""
    return next(reversed(graph.around(node.region)), None)
