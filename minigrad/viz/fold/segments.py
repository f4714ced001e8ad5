"""Operations that repeat, or stand together: what a big graph draws as one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..graph.graph import CARRIES, Edge, Graph, Links, Node, copied, ends_at_leaf, is_op

_LONGEST_PERIOD = 64  # operations in one repeat
_FEWEST_REPEATS = 3
_KINDS = 3  # of operations that are named
_NODES = 6  # of a picture, to a piece: its two boxes, and what goes in and comes out


@dataclass(slots=True)
class Segment:
    """Operations that are drawn as one node: a repeat, or neighbours.

    >>> ops = [Node(f"n{i}", "op", name) for i, name in enumerate(("mul", "tanh") * 3)]
    >>> Segment(ops, period=2).name, Segment(ops).name
    ('3 × (mul, tanh)', 'mul, tanh')
    """

    ops: list[Node]
    period: int = 0  # how many operations repeat; 0 if none do
    twin: Segment | None = None

    @property
    def side(self) -> str:
        """Where it stands: "forward" or "backward"."""
        return self.ops[0].side

    @property
    def times(self) -> int:
        """How often it repeats."""
        return len(self.ops) // self.period if self.period else 1

    @property
    def leaves(self) -> bool:
        """Whether it holds no operations, but leaves or their gradients."""
        return not is_op(self.ops[0]) or ends_at_leaf(self.ops[0])

    @property
    def name(self) -> str:
        """What it is: what repeats, the kinds of operations, the first and the last leaf."""
        if self.leaves:
            return f"{_called(self.ops[0])} … {_called(self.ops[-1])}"
        if self.period:
            names = [n.name for n in self.ops[: self.period]]
            return f"{self.times} × ({_listed(names)})"
        return kinds_of(self.ops)

    @property
    def words(self) -> str:
        """How much it holds: ``2 operations``, ``ops #3 to #9``."""
        if self.leaves:
            kinds = {"accumulate": "gradients", "leaf_gradient": "gradients", "leaf": "parameters"}
            return f"{len(self.ops)} {kinds.get(self.ops[0].kind, 'values')}"
        numbers = [n.number for n in self.ops if n.number is not None]
        return f"ops #{min(numbers)} to #{max(numbers)}" if numbers else said_size(self.ops)


Cut = Callable[[list[Node]], list[Segment]]


def segments(graph: Graph) -> list[Segment]:
    """Repeated runs of operations."""
    return _on_both_sides(graph, _repeats)


def chunks(graph: Graph, most: int) -> list[Segment]:
    """Pieces of a graph without repeats: neighbours in the order in which they run, in all about
    ``most`` nodes.
    """
    every = sum(len(ops) for ops in _runs_by_region(graph, "forward") if len(ops) > 1)
    size = max(2, -(-every // max(1, most // _NODES)))

    def cut(ops: list[Node]) -> list[Segment]:
        parts = [ops[at : at + size] for at in range(0, len(ops), size)]
        return [Segment(part) for part in parts if len(part) > 1]

    return _on_both_sides(graph, cut)


def _on_both_sides(graph: Graph, cut: Cut) -> list[Segment]:
    """Segments of forward operations, the backward ones that belong to them, and those of the rest."""
    found = [segment for ops in _runs_by_region(graph, "forward") for segment in cut(ops)]
    found += [twin for s in found if (twin := mirrored(graph, s)) is not None]
    taken = {n.id for s in found for n in s.ops}
    for ops in _runs_by_region(graph, "backward"):
        found += cut([n for n in ops if n.id not in taken])
    return found


def _runs_by_region(graph: Graph, side: str) -> list[list[Node]]:
    groups: dict[str | None, list[Node]] = {}
    for node in graph.nodes.values():
        free = not node.bold or "regions" in node.data
        if is_op(node) and node.side == side and free and not ends_at_leaf(node):
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
            found.append(Segment(ops[at : at + covered], period=period))
        at += covered or 1
    return found


def _covered(names: list[str]) -> list[tuple[int, int]]:
    """For every place: how many operations a repeat that starts there covers, and its period."""
    codes: dict[str, int] = {}
    row = np.array([codes.setdefault(name, len(codes)) for name in names])
    covered, best = np.zeros(len(row), int), np.ones(len(row), int)
    for period in range(1, min(_LONGEST_PERIOD, len(row) // 2) + 1):
        same = row[:-period] == row[period:]
        places = np.arange(len(same))
        breaks = np.where(same, len(same), places)
        run = np.minimum.accumulate(breaks[::-1])[::-1] - places
        times = run // period + 1
        wider = (times >= _FEWEST_REPEATS) & (times * period > covered[: len(same)])
        covered[: len(same)][wider] = (times * period)[wider]
        best[: len(same)][wider] = period
    return list(zip(covered.tolist(), best.tolist(), strict=True))


def mirrored(graph: Graph, segment: Segment) -> Segment | None:
    """The backward operations of a segment, in the order in which they run."""
    ops = [graph.nodes[n.twin] for n in segment.ops if n.twin in graph.nodes]
    if not ops:
        return None
    period = max(1, len(ops) // segment.times) if segment.period else 0
    ops = ops if segment.leaves else ops[::-1]
    segment.twin = Segment(ops, period, twin=segment)
    return segment.twin


def _called(node: Node) -> str:
    name: str = node.data.get("called", node.name)
    return name


def stacks(graph: Graph, segments: list[Segment]) -> list[Segment]:
    """The leaves that the same segments and operations read, where they are many, and their gradients."""
    links = Links(graph)
    place = {op.id: f"segment {k}" for k, s in enumerate(segments) for op in s.ops}
    read: dict[Any, list[Node]] = {}
    for node in graph.nodes.values():
        if not links.before[node.id] and not is_op(node):
            readers = _readers(links, node)
            alone = len(readers) == 1 and readers <= place.keys()
            if readers and not alone:  # what one operation of a segment reads stands in there
                by = frozenset(place.get(name, name) for name in readers)
                read.setdefault((node.side, node.region, by), []).append(node)
    found = [Segment(leaves) for leaves in read.values() if len(leaves) > _MANY]
    return [*found, *(twin for s in found if (twin := mirrored(graph, s)) is not None)]


def _readers(links: Links, node: Node) -> set[str]:
    return {n.id for n in links.after[node.id]}


def _listed(names: list[str]) -> str:
    if len(names) > 5:
        names = [*names[:3], "…", names[-1]]
    return ", ".join(names)


def kinds_of(ops: Iterable[Node]) -> str:
    """The most common kinds of operations: ``mul, tanh``."""
    kinds = Counter(n.name for n in ops)
    named = [kind for kind, _ in kinds.most_common(_KINDS)]
    return ", ".join([*named, "…"] if len(kinds) > _KINDS else named)


def said_size(ops: Iterable[Node]) -> str:
    """``75 operations``"""
    return f"{size_of(ops):,} operations"


def size_of(ops: Iterable[Node]) -> int:
    """How many operations these nodes stand for."""
    return sum(n.data.get("ops", 1) for n in ops)


# ---- Segments drawn as one node: what belongs to a segment, and the lines that are left ----


_MANY = 12  # ports of an operator, parts of a sum: beyond this folded ones are left out


def contracted(graph: Graph, segments: list[Segment]) -> Graph:
    """The graph with every segment as one node."""
    if not segments:
        return graph
    owner = _members(graph, segments)
    names = {id(s): f"f{i}" for i, s in enumerate(segments)}
    inside: dict[str, list[str]] = {name: [] for name in names.values()}
    for member, s in owner.items():
        inside[names[id(s)]].append(member)
    boxes = []
    for segment in segments:
        name = names[id(segment)]
        box = _folded_box(graph, name, segment, inside[name])
        box.twin = None if segment.twin is None else names[id(segment.twin)]
        boxes.append(box)
    small = drawn_with(graph, boxes, {member: names[id(s)] for member, s in owner.items()})
    small.notes.append(
        f"{len(owner)} of {len(graph.nodes)} nodes are folded into {len(segments)}: "
        + "; ".join(s.name for s in segments[:3])
        + ("; …" if len(segments) > 3 else "")
    )
    return small


def drawn_with(graph: Graph, boxes: Iterable[Node], place: dict[str, str]) -> Graph:
    """The graph with boxes, in the ``place`` of nodes that they hold."""
    small = copied(graph, [n for n in graph.nodes.values() if n.id not in place])
    small.nodes |= {box.id: box for box in boxes}
    small.edges = _joined(graph, place)
    _drop_ports(small)
    return small


def box_of(name: str, label: str, words: str, data: dict[str, Any], **fields: Any) -> Node:
    """A node that stands for others: ``data`` says for which, and how many operations they are."""
    size = f"{data['ops']:,} operations" if data["ops"] else words
    return Node(name, "folded", label, lines=(words,), tooltip=size, data=data, **fields)


def _members(graph: Graph, segments: list[Segment]) -> dict[str, Segment]:
    """Which segment every folded node belongs to: operations first, then what only they touch."""
    owner = {n.id: s for s in segments for n in s.ops}
    order = {id(s): i for i, s in enumerate(segments)}
    links = Links(graph)
    kept = {n.id for s in segments for n in _goes_in(links, s)}
    waiting = [
        n
        for n in graph.nodes.values()
        if n.id not in owner and n.kind not in ("output", "seed") and not n.bold
    ]
    for _ in range(4):  # a value, a sum of values, a value of that sum, …
        found = {
            n.id: s for n in waiting if (s := _segment_of(links, n, owner, order, kept)) is not None
        }
        if not found:
            break
        owner |= found
        waiting = [n for n in waiting if n.id not in found]
    return owner


def _segment_of(
    links: Links, node: Node, owner: dict[str, Segment], order: dict[int, int], kept: set[str]
) -> Segment | None:
    """The segment that made a node, or reads it, when nothing outside of segments touches it but
    an operation of many lines.

    A leaf that one operation inside reads belongs to it, and its gradient with it; one that several
    read stays, and what the first operation starts from. A sum belongs to the last segment that
    adds to it: segments keep their order, so no line goes back.
    """
    before, after = links.before[node.id], links.after[node.id]
    outside = [n for n in (*before, *after) if n.id not in owner and not _has_many(links, n)]
    makers = [owner[n.id] for n in before if n.id in owner]
    readers = [owner[n.id] for n in after if n.id in owner]
    if outside or (ends_at_leaf(node) and node.twin not in owner):
        return None
    if not before and (len(_readers(links, node)) > 1 or node.id in kept):
        return None
    near = makers or (() if is_op(node) else readers)
    return min(near, key=lambda s: order[id(s)], default=None)


def _goes_in(links: Links, segment: Segment) -> list[Node]:
    """What the first operation starts from; not what each repeat has of its own, as a weight."""
    first, period = segment.ops[0], segment.period
    inputs = links.before[first.id]
    again = links.before[segment.ops[period].id] if 0 < period < len(segment.ops) else []
    own = [not links.before[n.id] and len(_readers(links, n)) == 1 for n in again]
    own += [False] * (len(inputs) - len(own))
    return [n for n, repeats in zip(inputs, own, strict=False) if not repeats]


def _has_many(links: Links, node: Node) -> bool:
    """An operation of so many lines that they are not drawn one by one: a sum of parts, a stack."""
    lines = max(len(links.before[node.id]), len(links.after[node.id]))
    return is_op(node) and lines > _MANY


def _folded_box(graph: Graph, name: str, segment: Segment, members: list[str]) -> Node:
    data = {
        "ops": 0 if segment.leaves else size_of(segment.ops),
        "segment": [n.id for n in segment.ops],
        "members": [*_whole_members(graph, members)],
    }
    about = {"side": segment.side, "region": segment.ops[0].region}
    box = box_of(name, segment.name, segment.words, data, **about)
    if not segment.leaves:
        box.lines += _leaves_in([graph.nodes[m] for m in members], segment.side)
    return box


def _whole_members(graph: Graph, members: Iterable[str]) -> Iterator[str]:
    """Members as they are called in the graph that is not folded: what stands for a closed frame is not in it."""
    for name in members:
        node = graph.nodes[name]
        if node.kind != "folded":
            yield name
        yield from node.data.get("members", ())


def _leaves_in(nodes: list[Node], side: str) -> tuple[str, ...]:
    """How many parameters or gradients of parameters are inside: ``w0 … w9: 10 parameters``."""
    leaves = [n.name for n in nodes if n.kind == "leaf"]
    grads = [_called(n) for n in nodes if ends_at_leaf(n)]
    lines = []
    for names, what in ((leaves, "parameter"), (grads, "gradient")):
        if names:
            names = names if side == "forward" else names[::-1]
            ends = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
            lines.append(f"{ends}: {len(names)} {what}{'s' * (len(names) > 1)}")
    return tuple(lines)


def _joined(graph: Graph, place: dict[str, str]) -> list[Edge]:
    """Lines between what is left; several lines between the same two folded ends are one."""
    lines: dict[tuple[str, str, str], Edge] = {}
    times: Counter[tuple[str, str, str]] = Counter()
    kept: list[Edge] = []
    for edge in graph.edges:
        tail, head = place.get(edge.tail, edge.tail), place.get(edge.head, edge.head)
        if (tail, head) == (edge.tail, edge.head):
            kept.append(edge)
        elif tail != head and edge.kind in (*CARRIES, "sub_block"):
            between = (tail, head, edge.kind)
            times[between] += 1
            if between not in lines:
                lines[between] = _moved(edge, tail, head)
    for between, edge in lines.items():
        ends = [graph.nodes[n] for n in between[:2] if n in graph.nodes]
        if times[between] > _MANY and any(map(is_op, ends)):
            edge.label = f"{times[between]} parts"
    return [*kept, *lines.values()]


def _moved(edge: Edge, tail: str, head: str) -> Edge:
    return replace(
        edge,
        tail=tail,
        head=head,
        tail_port=edge.tail_port if tail == edge.tail else None,
        head_port=edge.head_port if head == edge.head else None,
    )


def _drop_ports(graph: Graph) -> None:
    """An operator with very many ports keeps those that a line still leads to."""
    many = [n for n in graph.nodes.values() if len(n.ports) > _MANY]
    used = {(e.tail, e.tail_port, "out") for e in graph.edges if e.tail_port}
    used |= {(e.head, e.head_port, "in") for e in graph.edges if e.head_port}
    for node in many:
        ports = tuple(p for p in node.ports if (node.id, *p) in used)
        graph.nodes[node.id] = replace(node, ports=ports)
