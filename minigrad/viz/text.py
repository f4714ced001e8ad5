"""The drawing for a terminal: forward with its values from the top, then backward in the order in
which it runs.
"""

from __future__ import annotations

from .describe import ordered_ops
from .format import LONGEST_NAME, shorten, visible
from .graph import Graph, Node, Region
from .reading import Links, is_op
from .style import NODE_STYLES

_WIDEST = 46
_MOST_LINES = 400
_SAID = frozenset({"leaf", "data", "output", "seed", "leaf_gradient", "pruned", "zero", "renamed"})

Row = tuple[str, str, str]


def to_text(graph: Graph, advice: str = "") -> str:
    """The graph as lines of text.

    >>> g = Graph()
    >>> x, f = g.node("leaf", "x", lines=("0.5",)), g.node("op", "Square")
    >>> y = g.node("output", "y", lines=("0.25",))
    >>> _ = g.edge(x, f), g.edge(f, y)
    >>> print(to_text(g))
    forward
      x              0.5   leaf or parameter
      y = Square(x)  0.25  output, loss
    """
    links = Links(graph)
    lines = [visible(graph.title)] if graph.title else []
    for side in ("forward", "backward"):
        lines += _side(graph, links, side)
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"]
    lines += [f"({visible(note)})" for note in graph.notes]
    return "\n".join([*lines, f"({advice})"] if advice else lines)


def _side(graph: Graph, links: Links, side: str) -> list[str]:
    nodes = [n for n in graph.nodes.values() if n.side == side]
    lines = [side] if nodes else []
    for region, members in _by_region(graph, nodes):
        named = region is not None and len(graph.regions) > 2
        depth = _depth(graph, region) if named else 0
        lines += ["  " * depth + f"  [{visible(region.label)}]"] if named and region else []
        lines += [
            "  " * (depth + named) + "  " + line for line in _aligned(_rows(graph, links, members))
        ]
    return lines


def _by_region(graph: Graph, nodes: list[Node]) -> list[tuple[Region | None, list[Node]]]:
    groups: dict[str | None, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node.region, []).append(node)
    return [(graph.regions.get(r) if r else None, members) for r, members in groups.items()]


def _depth(graph: Graph, region: Region | None) -> int:
    depth = 0
    while region is not None and region.parent is not None:
        region, depth = graph.regions.get(region.parent), depth + 1
    return depth


def _rows(graph: Graph, links: Links, members: list[Node]) -> list[Row]:
    here = {n.id for n in members}
    starts = [n for n in members if not is_op(n) and not any(is_op(b) for b in links.before[n.id])]
    ops = [n for n in ordered_ops(graph) if n.id in here]
    return [*(_value_row(n) for n in starts), *(_op_row(links, n) for n in ops)]


def _value_row(node: Node) -> Row:
    return (
        _named(node),
        ", ".join(map(visible, node.lines)),
        NODE_STYLES[node.kind].meaning if node.kind in _SAID else "",
    )


def _op_row(links: Links, node: Node) -> Row:
    out = list({n.id: n for n in links.after[node.id]}.values())
    number = f"#{node.number} " if node.number is not None else ""
    left = ", ".join(dict.fromkeys(_named(n) for n in out))
    call = (
        f"{number}{shorten(node.name, 60)}({', '.join(_named(n) for n in links.before[node.id])})"
    )
    values = "; ".join(visible(line) for n in out for line in n.lines)
    remarks = [
        *map(visible, node.lines),
        *([f"reads {', '.join(map(visible, node.reads))}"] if node.reads else []),
    ]
    remarks += [NODE_STYLES[n.kind].meaning for n in out[:1] if n.kind in _SAID]
    return f"{left} = {call}" if left else call, values, "; ".join(remarks)


def _named(node: Node) -> str:
    return shorten(node.name, LONGEST_NAME) or "·"


def _aligned(rows: list[Row]) -> list[str]:
    widths = [min(_WIDEST, max((len(row[i]) for row in rows), default=0)) for i in (0, 1)]
    return [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]
