"""Follow the gradient: every way along the lines of a picture from where backward began to a leaf, and what it brings.

A line of the backward side knows the gradient that it carries.  What is a part of it, on a way of its own, is scaled
where numbers say how, and else computed again by the rule of the operation.
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..graph.format import format_number, format_value, norm, same_value, unwrap
from ..graph.graph import Edge, Graph, Node, called, ends_at_leaf, grouped, is_op
from .inside import summands, total

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
        self.nodes = graph.nodes
        lines = [line for line in graph.edges if line.kind in ("grad", "accumulate")]
        self.into = grouped(lines, lambda line: line.head)

    def note(self, leaf: Node) -> None:
        """Note the ways to a leaf, where they are known to bring what it got."""
        ways = self.ways(leaf.id)
        told = [self.told(way) for way in ways]
        brought = [came for came, _ in told]
        whole = total(brought)
        if whole is None:
            return
        last = ways[0][-1]
        kept = last.carries if _passes_on(self.nodes[last.tail]) else None
        if kept is not None and not same_value(kept, whole):
            return
        ends = [leaf.id, *filter(None, [leaf.twin])]
        paths = [
            {
                "nodes": [*(line.tail for line in way), *ends],
                "steps": steps,
                "gave": format_value(came),
            }
            for way, (came, steps) in zip(ways, told, strict=True)
        ]
        words = (called(leaf), format_value(whole), summands(brought))
        noted = {"sum": " = ".join(filter(None, words)), "paths": paths}
        for node in ends:
            self.nodes[node].data["paths"] = noted

    def ways(self, leaf: str) -> list[Way]:
        """The ways to a leaf; none if they are many, or go round."""
        complete: list[Way] = []
        waiting: list[Way] = [(line,) for line in reversed(self.into.get(leaf, []))]
        while waiting:
            way = waiting.pop()
            before = self.into.get(way[0].tail, [])
            if len(complete) == _MOST_WAYS or len(way) > len(self.nodes):
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

    def told(self, way: Way) -> tuple[Any, list[str]]:
        """What comes along a way alone, None where that is not known; and its operations, each with its
        factor: a number, else its formula.
        """
        came, steps = way[0].carries, []
        for line, onward in pairwise(way):
            if _passes_on(self.nodes[line.head]):
                continue
            arrived, gave = self.arrived(line), onward.carries
            if came is None or arrived is None or gave is None:
                return None, []
            before = np.ravel(arrived)[0] if np.size(arrived) == 1 else 0
            factor = onward.rule
            if before and np.size(gave) == 1:
                factor = f"·{format_number(np.ravel(gave)[0] / before)}"
            steps.append(f"{self.nodes[onward.tail].name}{onward.slot} {factor}")
            if same_value(came, arrived):
                came = gave
            elif before:
                came = gave * (np.ravel(came)[0] / before)
            else:
                came = None if onward.pull is None else onward.pull(came)
        return came, steps


def follow_names(
    graph: Graph, held: Mapping[str, tuple[Any, ...]], values: Mapping[str, Any]
) -> None:
    """The same for operators that read and write names: a line carries what the node of its name holds."""
    for line in graph.edges:
        if line.kind not in ("grad", "accumulate"):
            continue
        tail, head = graph.nodes[line.tail], graph.nodes[line.head]
        name = head if is_op(tail) else tail
        for value in held.get(name.id, ()):
            line.carries = None if value is None else np.asarray(unwrap(value))
        slots = tail.data.get("slots", ())
        for slot in slots:
            if slot.output == name.name:
                if len(slots) > 1:
                    line.slot = f"[{line.tail_port}]"
                line.rule = slot.rule
                line.pull = partial(slot.made_of, now=values)
    follow(graph)
