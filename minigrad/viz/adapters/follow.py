"""Follow the gradient: every way along the lines of a picture from where backward began to a leaf, and what it brings.

A line of the backward side knows the gradient that it carries.  What is a part of it, on a way of its own, is scaled
where numbers say how, and else computed again by the rule of the operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
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
    into: dict[str, list[Edge]] = defaultdict(list)
    for edge in graph.edges if len(graph.nodes) <= _MOST_NODES else ():
        if edge.kind in ("grad", "accumulate"):
            into[edge.head].append(edge)
    for leaf in [n for n in graph.nodes.values() if ends_at_leaf(n) and into[n.id]]:
        ways = _ways(into, leaf.id, len(graph.nodes))
        brought = [_brought(graph, into, way) for way in ways]
        whole, last = total(brought), ways[0][-1] if ways else None
        if last is None or whole is None or _differs(graph, last, whole):
            continue
        words = (leaf.data.get("called", leaf.name), format_value(whole), summands(brought))
        paths = [
            {
                "nodes": [*(line.tail for line in way), leaf.id, *filter(None, [leaf.twin])],
                "steps": _steps(graph, into, way),
                "gave": format_value(came),
            }
            for way, came in zip(ways, brought, strict=True)
        ]
        for node in filter(None, (leaf, graph.nodes.get(leaf.twin or ""))):
            node.data |= {"paths": {"sum": " = ".join(filter(None, words)), "paths": paths}}
    for line in graph.edges:
        if line.carries is not None:
            line.norm = norm(np.asarray(line.carries))
        line.carries = line.pull = None


def _ways(into: Mapping[str, list[Edge]], leaf: str, longest: int) -> list[Way]:
    """The ways to a leaf; none if they are many, or go round."""
    found: list[Way] = []
    waiting: list[Way] = [(line,) for line in reversed(into[leaf])]
    while waiting:
        way = waiting.pop()
        before = into[way[0].tail]
        if len(found) == _MOST_WAYS or len(way) > longest:
            return []
        if not before:
            found.append(way)
        waiting += [(line, *way) for line in reversed(before)]
    return found


def _passes_on(node: Node) -> bool:
    """A value, or a sum: what comes to it goes on as it is."""
    return not is_op(node) or node.kind in ("sum", "accumulate")


def _arrived(into: Mapping[str, list[Edge]], line: Edge) -> Any:
    """All that comes to where a line ends; None where it comes to several places of an operation."""
    lines = into[line.head]
    places = {(each.head_port, each.label) for each in lines}
    return total([each.carries for each in lines]) if len(places) == 1 else None


def _brought(graph: Graph, into: Mapping[str, list[Edge]], way: Way) -> Any:
    """What comes along a way alone; None where that is not known."""
    came = way[0].carries
    for line, onward in pairwise(way):
        if _passes_on(graph.nodes[line.head]) or came is None:
            continue
        arrived, given = _arrived(into, line), onward.carries
        if arrived is None or given is None:
            return None
        if same_value(came, arrived):
            came = given
        elif np.size(arrived) == 1 and np.ravel(arrived)[0]:
            came = given * (np.ravel(came)[0] / np.ravel(arrived)[0])
        else:
            came = onward.pull(came) if onward.pull is not None else None
    return came


def _differs(graph: Graph, last: Edge, whole: Any) -> bool:
    """Did a leaf keep something else than what came to it?"""
    kept = last.carries if _passes_on(graph.nodes[last.tail]) else whole
    return kept is not None and not same_value(np.asarray(kept), np.asarray(whole))


def _steps(graph: Graph, into: Mapping[str, list[Edge]], way: Way) -> list[str]:
    """The operations of a way, each with its factor: a number, else its formula."""
    return [
        f"{graph.nodes[onward.tail].name}{onward.slot} {_factor(_arrived(into, line), onward)}"
        for line, onward in pairwise(way)
        if not _passes_on(graph.nodes[line.head])
    ]


def _factor(arrived: Any, line: Edge) -> str:
    if np.size(arrived) == 1 == np.size(line.carries) and arrived is not None:
        one, other = np.ravel(line.carries)[0], np.ravel(arrived)[0]
        if other:
            return f"·{format_number(one / other)}"
    return line.rule


def follow_names(graph: Graph, values: Mapping[str, Any]) -> None:
    """The same for operators that read and write names: a line carries the value of its name."""
    for line in graph.edges:
        if line.kind not in ("grad", "accumulate") or line.head not in graph.nodes:
            continue
        tail, head = graph.nodes[line.tail], graph.nodes[line.head]
        name = head if is_op(tail) else tail
        known = name.data.get("live") or name.data.get("recorded")
        line.carries = (
            name.data.get("value", values.get(name.data.get("variable", ""))) if known else None
        )
        line.carries = None if line.carries is None else np.asarray(unwrap(line.carries))
        slots = tail.data.get("slots", ())
        for slot in (s for s in slots if s.output == name.name):
            line.slot = f"[{line.tail_port}]" if len(slots) > 1 else ""
            line.rule = slot.rule
            line.pull = partial(_pull, slot, values)
    follow(graph)


def _pull(slot: Slot, values: Mapping[str, Any], g: Any) -> Any:
    """What a slot makes of another gradient."""
    return slot.made_of({"g": g}, values)
