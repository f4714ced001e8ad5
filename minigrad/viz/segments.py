"""Operations that repeat, or stand together: what a big graph draws as one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .graph import Graph, Node
from .reading import ends_at_leaf, is_op

_LONGEST_PERIOD = 64  # operations in one repeat
_FEWEST_REPEATS = 3
_CHUNKS = 24  # what is left without repeats is cut into about as many pieces


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


def chunks(graph: Graph) -> list[Segment]:
    """Pieces of a graph without repeats: neighbours in the order in which they run."""
    found: list[Segment] = []
    every = [ops for ops in _runs_by_region(graph, "forward") if len(ops) > 1]
    size = max(2, -(-sum(map(len, every)) // _CHUNKS))
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
