"""Operations that repeat, or stand together: what a big graph draws as one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from ..graph.graph import CARRIES, Edge, Graph, Links, Node, copied, ends_at_leaf, is_op

_LONGEST_PERIOD = 64  # operations in one repeat
_FEWEST_REPEATS = 3
_NODES = 6  # of a picture, to a piece: its two boxes, and what goes in and comes out


@dataclass(slots=True)
class Segment:
    """Operations that are drawn as one node."""

    name: str
    ops: list[Node]
    side: str
    twin: Segment | None = None

    @property
    def period(self) -> int:
        """How many operations repeat; 0 if none do."""
        times = self.name.partition(" × ")[0]
        return len(self.ops) // int(times) if times.isdigit() else 0


def segments(graph: Graph) -> list[Segment]:
    """Repeated runs of operations, forward, and the backward operations that belong to them."""
    found: list[Segment] = []
    for ops in _runs_by_region(graph, "forward"):
        found += _repeats(ops)
    found += [twin for s in found if (twin := mirrored(graph, s)) is not None]
    taken = {n.id for s in found for n in s.ops}
    for ops in _runs_by_region(graph, "backward"):
        found += _repeats([n for n in ops if n.id not in taken])
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
            times = covered // period
            found.append(
                Segment(
                    f"{times} × ({_listed(names[at : at + period])})",
                    ops[at : at + covered],
                    ops[at].side,
                )
            )
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
    times, _, _ = segment.name.partition(" × ")
    period = max(1, len(ops) // int(times)) if times.isdigit() else len(ops)
    ops.reverse()
    name = (
        f"{times} × ({_listed([n.name for n in ops[:period]])})"
        if times.isdigit()
        else counted(ops)
    )
    segment.twin = Segment(name, ops, "backward", twin=segment)
    return segment.twin


def modules(graph: Graph) -> Iterator[list[Segment]]:
    """The operators of each module, by the paths in the names of the parameters that they read:
    the innermost modules first.  An operator without parameters goes with the one before it.
    """
    links = Links(graph)
    runs: list[list[tuple[list[str], Node]]] = []
    for ops in _runs_by_region(graph, "forward"):
        path: list[str] = []
        runs.append([])
        for op in ops:
            names = [n.name for n in links.before[op.id] if n.kind == "leaf" and "." in n.name]
            path = names[0].split(".")[:-1] if names else path
            runs[-1].append((path, op))
    for depth in range(max((len(p) for row in runs for p, _ in row), default=0), 0, -1):
        found: list[Segment] = []
        for row in runs:
            parts: dict[int, list[Node]] = {}
            cuts = accumulate(a[0][:depth] != b[0][:depth] for a, b in pairwise([row[0], *row]))
            for cut, (_, op) in zip(cuts, row, strict=True):
                parts.setdefault(cut, []).append(op)
            first = {op.id: ".".join(path[:depth]) for path, op in row}
            found += [
                Segment(f"{first[ops[0].id]}: {counted(ops)}", ops, "forward")
                for ops in parts.values()
                if first[ops[0].id] and len(ops) > 1
            ]
        if len(found) > 1:
            yield found + [t for s in found if (t := mirrored(graph, s)) is not None]


def chunks(graph: Graph, most: int) -> list[Segment]:
    """Pieces of a graph without repeats: neighbours in the order in which they run, in all about
    ``most`` nodes.
    """
    found: list[Segment] = []
    every = [ops for ops in _runs_by_region(graph, "forward") if len(ops) > 1]
    size = max(2, -(-sum(map(len, every)) // max(1, most // _NODES)))
    for ops in every:
        found += [
            Segment(counted(part), part, "forward")
            for at in range(0, len(ops), size)
            if len(part := ops[at : at + size]) > 1
        ]
    found += [twin for s in found if (twin := mirrored(graph, s)) is not None]
    taken = {n.id for s in found for n in s.ops}
    for ops in _runs_by_region(graph, "backward"):
        ops = [n for n in ops if n.id not in taken]
        found += [
            Segment(counted(part), part, "backward")
            for at in range(0, len(ops), size)
            if len(part := ops[at : at + size]) > 1
        ]
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(names if len(names) <= 5 else [*names[:3], "…", names[-1]])


def counted(ops: list[Node]) -> str:
    common = [name for name, _ in Counter(n.name for n in ops).most_common(3)]
    return f"{size_of(ops)} operations ({', '.join(common)})"


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
    small = copied(graph, [n for n in graph.nodes.values() if n.id not in owner])
    nodes = {id(s): _folded_node(f"f{i}", s) for i, s in enumerate(segments)}
    for segment in segments:
        if segment.twin is not None:
            nodes[id(segment)].twin = nodes[id(segment.twin)].id
    for member, s in owner.items():
        nodes[id(s)].data["members"].append(member)
    for box in nodes.values():
        _count_leaves(graph, box)
        box.data["members"] = list(_whole_members(graph, box.data["members"]))
    small.nodes |= {n.id: n for n in nodes.values()}
    small.edges = joined(graph, {member: nodes[id(s)].id for member, s in owner.items()})
    _drop_ports(small)
    small.notes.append(
        f"{len(owner)} of {len(graph.nodes)} nodes are folded into {len(segments)}: "
        + "; ".join(s.name for s in segments[:3])
        + ("; …" if len(segments) > 3 else "")
    )
    return small


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
    """The segment that made a node, when nothing outside of segments touches it.

    A leaf that one operation inside reads belongs to it, and its gradient with it; one that several
    read stays, and what the first operation starts from. A sum belongs to the last segment that
    adds to it: segments keep their order, so no line goes back.
    """
    before, after = links.before[node.id], links.after[node.id]
    if not (before or after):
        return None
    if not all(n.id in owner or _adds_many(links, n) for n in after):
        return None
    if ends_at_leaf(node) and node.twin not in owner:
        return None
    if before:
        makers = {id(s): s for n in before if (s := owner.get(n.id)) is not None}
        every = len(makers) and all(n.id in owner for n in before)
        return min(makers.values(), key=lambda s: order[id(s)]) if every else None
    inside = len(after) == 1 and node.id not in kept
    return owner.get(after[0].id) if inside else None


def _goes_in(links: Links, segment: Segment) -> list[Node]:
    """What the first operation starts from; not what each repeat has of its own, as a weight, and
    no parameter of a module.
    """
    first, period = segment.ops[0], segment.period
    inputs = links.before[first.id]
    again = links.before[segment.ops[period].id] if 0 < period < len(segment.ops) else []
    own = [not links.before[n.id] and len(links.after[n.id]) == 1 for n in again]
    own += [False] * (len(inputs) - len(own))
    free = (n for n, repeats in zip(inputs, own, strict=False) if not repeats)
    return [n for n in free if n.kind != "leaf" or "." not in n.name]


def _adds_many(links: Links, node: Node) -> bool:
    """A sum of so many parts that they are not drawn one by one."""
    return node.kind in ("sum", "accumulate") and len(links.before[node.id]) > _MANY


def _folded_node(name: str, segment: Segment) -> Node:
    numbers = [n.number for n in segment.ops if n.number is not None]
    count = size_of(segment.ops)
    lines = (f"ops #{min(numbers)} to #{max(numbers)}",) if numbers else (f"{count} operations",)
    return Node(
        name,
        "folded",
        segment.name,
        lines=lines,
        side=segment.side,
        region=segment.ops[0].region,
        tooltip=f"{count} operations",
        data={"ops": count, "segment": [n.id for n in segment.ops], "members": []},
    )


def _whole_members(graph: Graph, members: Iterable[str]) -> Iterator[str]:
    """Members as they are called in the graph that is not folded: what stands for a closed frame is not in it."""
    for name in members:
        node = graph.nodes[name]
        if node.kind != "folded":
            yield name
        yield from node.data.get("members", ())


def _count_leaves(graph: Graph, box: Node) -> None:
    """How many parameters or gradients of parameters are inside: ``w0 … w9: 10 parameters``."""
    inside = [graph.nodes[m] for m in box.data["members"]]
    leaves = [n.name for n in inside if n.kind == "leaf"]
    grads = [n.data.get("called", n.name) for n in inside if ends_at_leaf(n)]
    for names, what in ((leaves, "parameter"), (grads, "gradient")):
        if names:
            names = names if box.side == "forward" else names[::-1]
            ends = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
            box.lines += (f"{ends}: {len(names)} {what}{'s' * (len(names) > 1)}",)


def joined(graph: Graph, place: dict[str, str]) -> list[Edge]:
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
        if edge.kind == "accumulate" and times[between] > _MANY:
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
