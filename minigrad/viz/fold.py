"""Big graphs, drawn small: values become labels of lines, repeated segments are drawn once, frames
are closed, and the picture says so.

Up to 150 nodes are drawn in full; up to 400 with values as labels; beyond that segments fold. Ids
of what stays do not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from .closing import closed, frames_around, holders_of
from .contract import contracted
from .graph import Graph
from .labelled import without_values
from .opening import parted, without
from .segments import Segment, chunks, segments

FULL = 150  # nodes drawn in full
WITHOUT_VALUES = 400  # nodes drawn with values as labels of lines


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


def folded(graph: Graph, detail: str = "auto", openings: Openings | None = None) -> Graph:
    """The graph as ``detail`` asks for it: "full", "ops", "folded", or what "auto" finds right for
    its size; with what was opened in it.
    """
    size = len(graph.nodes)
    if detail == "full" or (detail not in ("ops", "folded") and size <= FULL):
        return graph
    if detail == "ops" or (detail != "folded" and size <= WITHOUT_VALUES):
        small = without_values(graph)
        if detail == "ops" or len(small.nodes) <= FULL:
            return small
    small = _folded(graph, openings or Openings())
    return without_values(small) if len(small.nodes) > FULL else small


def _folded(graph: Graph, openings: Openings) -> Graph:
    """Fold more and more until the picture is small: repeats, then frames, then neighbours.

    How it is folded does not depend on what is opened, so that a picture does not jump.
    """
    found = segments(graph)
    plain = contracted(graph, found)
    if _small(plain):
        return _opened(graph, found, openings) if openings.steps else plain
    shut = closed(graph)
    if shut is not graph:
        found = segments(shut)
        plain = contracted(shut, found)
        if _small(plain) and not (openings.steps or openings.frames):
            return plain
        found = found if _small(plain) else chunks(shut)
        return _framed(closed(graph, openings.frames), found, openings)
    return _opened(graph, chunks(graph), openings)


def _framed(graph: Graph, found: list[Segment], openings: Openings) -> Graph:
    """The picture with some frames open: their operators stand outside of segments, and what is
    inside folds for itself.
    """
    inside = [s for s in segments(graph) if s.ops[0].region in openings.frames]
    holders = {n.id for r, n in holders_of(graph).items() if r in openings.frames}
    return _opened(graph, [*found, *inside], openings, holders)


def _small(graph: Graph) -> bool:
    return len(graph.nodes) <= WITHOUT_VALUES


def _opened(
    graph: Graph, found: list[Segment], openings: Openings, shown: Collection[str] = ()
) -> Graph:
    for what, ops in openings.steps:
        found = (without if what == "show" else parted)(graph, found, ops)
    return contracted(graph, without(graph, found, shown) if shown else found)
