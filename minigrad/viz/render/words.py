"""A graph in words: one sentence, then the steps in their order. This is what a screen reader
reads.
"""

from __future__ import annotations

from ..graph.format import LONGEST_NAME, shorten, visible
from ..graph.graph import Edge, Graph, Links, Node, Region, is_op
from ..graph.style import EDGE_STYLES, NODE_STYLES

_MOST_STEPS = 60


def describe(graph: Graph) -> str:
    """One sentence about a graph, and its ordered steps.

    >>> g = Graph()
    >>> x, f, y = g.node("leaf", "x"), g.node("op", "Square"), g.node("output", "y")
    >>> _ = g.edge(x, f), g.edge(f, y)
    >>> print(describe(g))
    A graph with 1 operation forward and 0 backward, from x to y.
    1. Square: x to y
    """
    links = Links(graph)
    nested = any(r.strong for r in graph.regions.values())
    steps = [_block(n) * nested + describe_op(links, n) for n in ordered_ops(graph)]
    shown = [f"{i}. {visible(step)}" for i, step in enumerate(steps[:_MOST_STEPS], 1)]
    if len(steps) > _MOST_STEPS:
        shown.append(f"… and {len(steps) - _MOST_STEPS} more steps")
    return "\n".join([sentence(graph), *shown, *(visible(n) for n in graph.notes)])


def _block(node: Node) -> str:
    """Which block of a program an operator stands in."""
    return f"block {node.data['place'][0]} " if "place" in node.data else ""


def sentence(graph: Graph) -> str:
    """What the picture shows, in one sentence."""
    forward = sum(is_op(n) and n.side == "forward" for n in graph.nodes.values())
    backward = sum(is_op(n) and n.side == "backward" for n in graph.nodes.values())
    ends = _ends(graph)
    blocks = sum(r.strong for r in graph.regions.values())
    more = f", with {blocks} sub-block{'s' * (blocks != 1)}" if blocks else ""
    name = f"{visible(graph.title)}: a graph" if graph.title else "A graph"
    count = f"{forward} operation{'s' * (forward != 1)} forward and {backward} backward"
    return f"{name} with {count}{ends}{more}."


def _ends(graph: Graph) -> str:
    starts = [visible(n.name) for n in graph.nodes.values() if n.kind == "leaf" and n.name]
    ends = [visible(n.name) for n in graph.nodes.values() if n.kind == "output" and n.name]
    if not (starts and ends):
        return ""
    return f", from {_listed(starts)} to {_listed(ends)}"


def _listed(names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    more = [f"{len(names) - 4} more"] if len(names) > 4 else []
    *first, last = [*names[:4], *more]
    return f"{', '.join(first)} and {last}" if first else last


def ordered_ops(graph: Graph) -> list[Node]:
    """Operations forward, then backward, each side in the order in which it runs; of a program, block by block."""
    ops = [n for n in graph.nodes.values() if is_op(n)]
    if all("place" in n.data for n in ops):
        return sorted(ops, key=lambda n: n.data["place"])
    forward = [n for n in ops if n.side == "forward"]
    backward = [n for n in ops if n.side == "backward"]
    return [*_numbered(forward), *_numbered(backward)]


def _numbered(ops: list[Node]) -> list[Node]:
    """By number where every op has one, else in the order of creation."""
    known = all(n.number is not None for n in ops)
    return sorted(ops, key=lambda n: n.number or 0) if known else ops


def describe_op(links: Links, node: Node) -> str:
    """One operation: what goes in, what comes out."""
    into = ", ".join(called(n) for n in links.before[node.id]) or "nothing"
    out = ", ".join(called(n) for n in links.after[node.id]) or "nothing"
    told = f"{called(node)}: {into} to {out}"
    if node.reads:
        told += f", reads {', '.join(node.reads)}"
    if node.lines:
        told += f" ({'; '.join(node.lines)})"
    return told


def called(node: Node) -> str:
    """The name of a node in running text, with its value when it has one to show."""
    name = node.name or NODE_STYLES[node.kind].meaning
    if node.number is not None:
        name = f"#{node.number} {name}"
    return name if is_op(node) or not node.lines else f"{name} = {node.lines[0]}"


def describe_node(graph: Graph, node: Node) -> str:
    """The tooltip of a node: its whole name, what it is, and what the adapter told about it."""
    twin = f"twin: {graph.nodes[node.twin].name}" if node.twin in graph.nodes else ""
    meaning = NODE_STYLES[node.kind].meaning
    facts = [node.name or "(no name)", meaning, *node.tooltip.splitlines(), twin]
    return "\n".join(visible(fact) for fact in facts if fact)


def describe_edge(graph: Graph, edge: Edge) -> str:
    """The tooltip of a line."""
    head = graph.nodes.get(edge.head) or graph.regions[edge.head]
    name = head.label if isinstance(head, Region) else head.name
    ends = f"{graph.nodes[edge.tail].name or '(no name)'} → {name or '(no name)'}"
    label = f": {edge.label}" if edge.label else ""
    return visible(f"{ends}: {EDGE_STYLES[edge.kind].meaning}{label}")


# ---- The drawing for a terminal: forward with its values from the top, then backward in the order in ----


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
    groups: dict[str | None, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node.region, []).append(node)
    for name, members in groups.items():
        region = graph.regions.get(name or "")
        named = region is not None and len(graph.regions) > 2
        depth = len(graph.around(name)) - 1 if named else 0
        lines += ["  " * depth + f"  [{visible(region.label)}]"] if named and region else []
        margin = "  " * (depth + named + 1)
        lines += [margin + line for line in _aligned(_rows(graph, links, members))]
    return lines


def _rows(graph: Graph, links: Links, members: list[Node]) -> list[Row]:
    here = {n.id for n in members}
    starts = [n for n in members if not is_op(n) and not any(is_op(b) for b in links.before[n.id])]
    ops = [n for n in ordered_ops(graph) if n.id in here]
    return [*(_value_row(n) for n in starts), *(_op_row(links, n) for n in ops)]


def _value_row(node: Node) -> Row:
    said = NODE_STYLES[node.kind].meaning if node.kind in _SAID else ""
    return _named(node), ", ".join(map(visible, node.lines)), said


def _op_row(links: Links, node: Node) -> Row:
    out = list({n.id: n for n in links.after[node.id]}.values())
    number = f"#{node.number} " if node.number is not None else ""
    left = ", ".join(dict.fromkeys(_named(n) for n in out))
    takes = ", ".join(_named(n) for n in links.before[node.id])
    call = f"{number}{shorten(node.name, 60)}({takes})"
    if left:
        call = f"{left} = {call}"
    values = "; ".join(visible(line) for n in out for line in n.lines)
    remarks = [visible(line) for line in node.lines]
    if node.reads:
        remarks.append(f"reads {', '.join(map(visible, node.reads))}")
    if out and out[0].kind in _SAID:
        remarks.append(NODE_STYLES[out[0].kind].meaning)
    return call, values, "; ".join(remarks)


def _named(node: Node) -> str:
    return shorten(node.data.get("called", node.name), LONGEST_NAME) or "·"


def _aligned(rows: list[Row]) -> list[str]:
    first, second = (min(_WIDEST, max((len(r[i]) for r in rows), default=0)) for i in (0, 1))
    return [f"{left:<{first}}  {value:<{second}}  {more}".rstrip() for left, value, more in rows]
