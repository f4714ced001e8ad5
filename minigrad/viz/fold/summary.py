"""A graph that is too large to draw: what goes in, what comes out, and how many operations of which
kind lie between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..graph.graph import Graph, Node

MOST = 25_000  # operations of which a graph is made one by one, in a few seconds
_SHOWN = 6  # inputs that have a node of their own


def summary(
    forward: Iterable[str],
    backward: Iterable[str],
    starts: Sequence[str],
    ends: Sequence[str],
) -> Graph:
    """A graph of one box per side, from the names of the operations of each.

    >>> graph = summary(["sin"] * 30_000, ["SinBackward0"] * 30_000, ["x"], ["y"])
    >>> [n.name for n in graph.nodes.values()]
    ['x', '30,000 operations', 'y', 'y.grad', '30,000 operations', 'x.grad']
    """
    counts = {"forward": Counter(forward), "backward": Counter(backward)}
    graph = Graph(", ".join(ends[:3]))
    ends = [ends[0] if ends else "result"]
    before, made = _side(graph, counts["forward"], "forward", starts, ends)
    if counts["backward"]:
        grads = [[f"{name}.grad" for name in names] for names in (ends, starts)]
        seeds, leaves = _side(graph, counts["backward"], "backward", *grads)
        for value, gradient in zip((*before, *made), (*leaves, *seeds), strict=False):
            graph.link(value, gradient)
        ops = [n for n in graph.nodes.values() if n.kind == "folded"]
        if len(ops) == 2:
            graph.link(*ops)
    total = sum(map(Counter.total, counts.values()))
    graph.notes.append(
        f"{total:,} operations are too many to draw one by one (more than {MOST:,}); "
        "draw a part of them, a few steps of the loop or one layer"
    )
    graph.steps = [
        f"{times:,} × {name}" for c in counts.values() for name, times in c.most_common()
    ]
    return graph


def _side(
    graph: Graph, count: Counter[str], side: str, starts: Sequence[str], ends: Sequence[str]
) -> tuple[list[Node], list[Node]]:
    """One box with what goes into it and what comes out."""
    kinds = ("leaf", "output") if side == "forward" else ("seed", "leaf_gradient")
    before = _named(graph, kinds[0], side, starts)
    common = [f"{times:,} × {name}" for name, times in count.most_common(4)]
    rest = [f"and {len(count) - 4} more kinds"] if len(count) > 4 else []
    box = graph.node(
        "folded",
        f"{count.total():,} operations",
        side=side,
        lines=(*common, *rest),
        data={"ops": count.total()},
    )
    after = _named(graph, kinds[1], side, ends)
    line = "flow" if side == "forward" else "grad"
    for node in before:
        graph.edge(node, box, line)
    for node in after:
        graph.edge(box, node, line)
    return before, after


def _named(graph: Graph, kind: str, side: str, names: Sequence[str]) -> list[Node]:
    shown = [graph.node(kind, name, side=side) for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        shown.append(graph.node(kind, f"and {len(names) - _SHOWN:,} more", side=side))
    return shown
