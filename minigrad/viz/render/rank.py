"""Which nodes share a rank, and how far apart two ranks are."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, count

from ..graph.graph import Graph, Node, grouped, in_order, is_op
from ..graph.style import edge_style


def leader(node: Node) -> str:
    """The node that stands for a group of twins: the forward one."""
    return node.twin if node.twin and node.side == "backward" else node.id


def ranks(graph: Graph) -> dict[str, int]:
    """The rank of every node, that of its twin: the longest path to it, or just before its first
    reader.
    """
    above, below = _neighbours(graph)
    leaders = {n.id: leader(n) for n in graph}
    order = in_order(leaders.values(), above.__getitem__)
    at: dict[str, int] = {}
    for name in order:
        at[name] = max((at[tail] + 1 for tail in above[name] if tail in at), default=0)
    for name in reversed(order):
        if below[name]:
            at[name] = min(at[head] for head in below[name]) - 1
    return {name: at[group] for name, group in leaders.items()}


def _neighbours(graph: Graph) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What stands above each group of twins, and what below."""
    above = defaultdict(list)
    below = defaultdict(list)
    for edge in graph.edges:
        style = edge_style(edge, graph.nodes[edge.tail].side)
        tail = leader(graph.nodes[edge.tail])
        head = leader(graph.nodes[edge.head])
        if style.constraint and tail != head and edge.kind != "loop":
            first, second = (head, tail) if style.reversed else (tail, head)
            above[second].append(first)
            below[first].append(second)
    return above, below


# ---- Ranks with room: what does not fit beside each other stands one below the other ----

ROOM = 300.0  # points for each side
APART = 14  # points between two nodes, or a node and a line


def layers(graph: Graph, at: dict[str, int], widths: dict[str, float]) -> dict[str, int]:
    """The rank of every node, from the top; twins share one. On each side a rank holds what has room
    there, and one operator, in the order of ``at``.  A block is followed by an empty rank.
    """
    groups = grouped(graph, leader)
    above, _ = _neighbours(graph)
    placed: dict[str, int] = {}
    top = 0
    for row in _rows(graph):
        names = dict.fromkeys(map(leader, row))
        # operators as they run, each after what stands above it, every input just before its first reader
        ops = sorted((n for n in names if is_op(graph.nodes[n])), key=at.__getitem__)
        before = {n: [m for m in above[n] if m in names] for n in names}
        order = in_order([*ops, *names], before.__getitem__)
        shelves = _shelves(graph, {name: groups[name] for name in order}, above, widths)
        for name in sorted(shelves, key=shelves.__getitem__):
            placed |= {n.id: top + shelves[name] for n in groups[name]}
        top += max(shelves.values()) + 2
    return placed


def _shelves(
    graph: Graph,
    groups: dict[str, list[Node]],
    above: dict[str, list[str]],
    widths: dict[str, float],
) -> dict[str, int]:
    """The ranks of groups, which fill up from the top: each stands on the highest one below what stands above it
    that has room, an operator below the one before it, and what starts here beside its reader.
    """
    taken: dict[tuple[int, str], float] = defaultdict(float)  # points
    rank_of: dict[str, int] = {}
    last = 0  # the rank of the last operator
    for name, nodes in groups.items():
        op = is_op(graph.nodes[name])
        room: dict[str, float] = defaultdict(float)
        for node in nodes:
            room[node.side] += widths[node.id] + APART
        lowest = max((rank_of[n] + 1 for n in above[name] if n in rank_of), default=-1)
        ranks: Iterable[int] = count(max(lowest, last + 1 if op and rank_of else 0))
        if lowest < 0 and rank_of and not op:
            ranks = chain((last + 1, last), count(last + 2))
        rank_of[name] = rank = next(
            r
            for r in ranks
            if all(not taken[r, s] or taken[r, s] + w <= ROOM for s, w in room.items())
        )
        for side, width in room.items():
            taken[rank, side] += width
        last = rank if op else last
    return rank_of


def _rows(graph: Graph) -> list[list[Node]]:
    """The nodes of frames that stand beside each other, from top to bottom: a block forward and
    backward, then the blocks that it holds.
    """
    outermost = {n.id: [None, *graph.around(n.region)][-1] for n in graph}
    members = grouped(graph, lambda n: outermost[n.id])
    rows: dict[str | None, list[Node]] = {}  # by frame: frames beside each other share a list
    for frame, nodes in members.items():
        twins = (outermost[n.twin] for n in nodes if n.twin)
        rows[frame] = next((rows[f] for f in twins if f in rows), [])
        rows[frame] += nodes
    return list({id(row): row for row in rows.values()}.values())
