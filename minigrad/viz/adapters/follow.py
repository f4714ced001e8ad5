"""Follow the gradient: every way along the lines of a picture from where backward began to a leaf, and what it brings.

A line of the backward side knows the gradient that it carries.  What is a part of it, on a way of its own, is scaled
where numbers say how, and else computed again by the rule of the operation.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..graph.format import format_number, format_value, norm, same_value, unwrap
from ..graph.graph import Edge, Graph, Node, ends_at_leaf, is_op
from .inside import Slot, summands, total

_MOST_WAYS, _MOST_NODES = 24, 400  # more are not followed one by one

Way = tuple[Edge, ...]


def follow(graph: Graph) -> None:
    """Note at each leaf the ways to it: the nodes on each, its factors, what it brought; and the sum."""
    if len(graph.nodes) <= _MOST_NODES:
        paths = _Paths(graph)
        for leaf in filter(ends_at_leaf, graph):
            paths.note(leaf)
    for line in graph.edges:
        if line.carries is not None:
            line.norm = norm(np.asarray(line.carries))
        line.carries = line.pull = None


def _passes_on(node: Node) -> bool:
    """A value, or a sum: what comes to it goes on as it is."""
    return not is_op(node) or node.kind in ("sum", "accumulate")


class _Paths:
    """The lines of the backward side of a graph, by the node where they end."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.into: dict[str, list[Edge]] = defaultdict(list)
        for edge in graph.edges:
            if edge.kind in ("grad", "accumulate"):
                self.into[edge.head].append(edge)

    def note(self, leaf: Node) -> None:
        """Note the ways to a leaf, where they are known to bring what it got."""
        ways = self.ways(leaf.id)
        brought = [self.brought(way) for way in ways]
        whole = total(brought)
        if whole is None or not self.arrives(ways[0][-1], whole):
            return
        paths = [
            {
                "nodes": [*(line.tail for line in way), leaf.id, *filter(None, [leaf.twin])],
                "steps": self.steps(way),
                "gave": format_value(came),
            }
            for way, came in zip(ways, brought, strict=True)
        ]
        words = (leaf.data.get("called", leaf.name), format_value(whole), summands(brought))
        noted = {"sum": " = ".join(filter(None, words)), "paths": paths}
        for node in (leaf, self.graph.nodes.get(leaf.twin or "")):
            if node is not None:
                node.data["paths"] = noted

    def ways(self, leaf: str) -> list[Way]:
        """The ways to a leaf; none if they are many, or go round."""
        complete: list[Way] = []
        waiting: list[Way] = [(line,) for line in reversed(self.into[leaf])]
        while waiting:
            way = waiting.pop()
            before = self.into[way[0].tail]
            if len(complete) == _MOST_WAYS or len(way) > len(self.graph.nodes):
                return []
            if not before:
                complete.append(way)
            waiting += [(line, *way) for line in reversed(before)]
        return complete

    def arrived(self, line: Edge) -> Any:
        """All that comes to where a line ends; None where it comes to several places of an operation."""
        lines = self.into[line.head]
        places = {(each.head_port, each.label) for each in lines}
        return total([each.carries for each in lines]) if len(places) == 1 else None

    def operations(self, way: Way) -> Iterator[tuple[Any, Edge]]:
        """What arrives at each operation of a way, and the line on which it goes on."""
        for line, onward in pairwise(way):
            if not _passes_on(self.graph.nodes[line.head]):
                yield self.arrived(line), onward

    def brought(self, way: Way) -> Any:
        """What comes along a way alone; None where that is not known."""
        came = way[0].carries
        for arrived, onward in self.operations(way):
            gave = onward.carries
            if came is None or arrived is None or gave is None:
                return None
            if same_value(came, arrived):
                came = gave
            elif np.size(arrived) == 1 and np.ravel(arrived)[0]:
                came = gave * (np.ravel(came)[0] / np.ravel(arrived)[0])
            else:
                came = None if onward.pull is None else onward.pull(came)
        return came

    def arrives(self, last: Edge, whole: Any) -> bool:
        """Did a leaf keep what came to it?"""
        known = last.carries is not None and _passes_on(self.graph.nodes[last.tail])
        return not known or same_value(last.carries, whole)

    def steps(self, way: Way) -> list[str]:
        """The operations of a way, each with its factor: a number, else its formula."""
        steps = []
        for arrived, onward in self.operations(way):
            factor = onward.rule
            if arrived is not None and np.size(arrived) == 1 == np.size(onward.carries):
                before, after = np.ravel(arrived)[0], np.ravel(onward.carries)[0]
                factor = f"·{format_number(after / before)}" if before else factor
            steps.append(f"{self.graph.nodes[onward.tail].name}{onward.slot} {factor}")
        return steps


def follow_names(graph: Graph, values: Mapping[str, Any]) -> None:
    """The same for operators that read and write names: a line carries the value of its name."""
    for line in graph.edges:
        if line.kind not in ("grad", "accumulate"):
            continue
        tail, head = graph.nodes[line.tail], graph.nodes[line.head]
        name = head if is_op(tail) else tail
        if name.data.get("live") or name.data.get("recorded"):
            carries = name.data.get("value", values.get(name.data.get("variable", "")))
            line.carries = None if carries is None else np.asarray(unwrap(carries))
        slots = tail.data.get("slots", ())
        for slot in slots:
            if slot.output == name.name:
                line.slot = f"[{line.tail_port}]" if len(slots) > 1 else ""
                line.rule = slot.rule
                line.pull = partial(_pull, slot, values)
    follow(graph)


def _pull(slot: Slot, values: Mapping[str, Any], g: Any) -> Any:
    """What a slot makes of another gradient."""
    return slot.made_of({"g": g}, values)
