"""A graph in words: one sentence, then the steps in their order. This is what a screen reader
reads.
"""

from collections import Counter

from ..graph.format import shorten, visible
from ..graph.graph import Edge, Graph, Links, Node, called, grouped, is_op, number_of
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
    steps = []
    for i, node in enumerate(ordered_ops(graph), 1):
        block = f"block {node.data['place'][0]} " if nested and "place" in node.data else ""
        steps.append(f"{i}. {visible(block + describe_op(links, node))}")
    if len(steps) > _MOST_STEPS:
        steps[_MOST_STEPS:] = [f"… and {len(steps) - _MOST_STEPS} more steps"]
    return "\n".join([sentence(graph), *steps, *map(visible, graph.notes)])


def sentence(graph: Graph) -> str:
    """What the picture shows, in one sentence."""
    ops = Counter(n.side for n in graph if is_op(n))
    starts, ends = (
        [visible(n.name) for n in graph if n.kind == kind and n.name] for kind in ("leaf", "output")
    )
    between = f", from {_listed(starts)} to {_listed(ends)}" if starts and ends else ""
    blocks = sum(r.strong for r in graph.regions.values())
    more = f", with {blocks} sub-block{'s' * (blocks != 1)}" if blocks else ""
    name = f"{visible(graph.title)}: a graph" if graph.title else "A graph"
    some = f"{ops['forward']} operation{'s' * (ops['forward'] != 1)}"
    count = f"{some} forward and {ops['backward']} backward"
    return f"{name} with {count}{between}{more}."


def _listed(names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    if len(names) > 4:
        names[4:] = [f"{len(names) - 4} more"]
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def ordered_ops(graph: Graph) -> list[Node]:
    """Operations forward, then backward, each side in the order in which it runs, by number where
    every op has one; of a program, block by block.
    """
    ops = [n for n in graph if is_op(n)]
    if all("place" in n.data for n in ops):
        return sorted(ops, key=lambda n: n.data["place"])
    order = []
    for side in ("forward", "backward"):
        row = [n for n in ops if n.side == side]
        known = all(n.number is not None for n in row)
        order += sorted(row, key=lambda n: n.number or 0) if known else row
    return order


def describe_op(links: Links, node: Node) -> str:
    """One operation: what goes in, what comes out."""
    into = ", ".join(map(with_value, links.before[node.id])) or "nothing"
    out = ", ".join(map(with_value, links.after[node.id])) or "nothing"
    reads = f", reads {', '.join(node.reads)}" if node.reads else ""
    lines = f" ({'; '.join(node.lines)})" if node.lines else ""
    return f"{with_value(node)}: {into} to {out}{reads}{lines}"


def with_value(node: Node) -> str:
    """The name of a node in running text, with its value when it has one to show."""
    name = number_of(node) + (node.name or NODE_STYLES[node.kind].meaning)
    return name if is_op(node) or not node.lines else f"{name} = {node.lines[0]}"


def describe_node(graph: Graph, node: Node) -> str:
    """The tooltip of a node: its whole name, what it is, and what the adapter told about it."""
    twin = f"twin: {graph.nodes[node.twin].name}" if node.twin else ""
    facts = [
        node.name or "(no name)",
        NODE_STYLES[node.kind].meaning,
        *node.tooltip.splitlines(),
        twin,
    ]
    return "\n".join(visible(fact) for fact in facts if fact)


def describe_edge(graph: Graph, edge: Edge) -> str:
    """The tooltip of a line."""
    ends = " → ".join(graph.nodes[end].name or "(no name)" for end in (edge.tail, edge.head))
    label = f": {edge.label}" if edge.label else ""
    return visible(f"{ends}: {EDGE_STYLES[edge.kind].meaning}{label}")


def names_of(graph: Graph) -> dict[str, str]:
    """Every node of a graph as it is searched for: its number, its name, its gradient."""
    names = {n.id: number_of(n) + visible(n.name) for n in graph}
    for node in graph:
        if "called" in node.data:
            names[node.id] += f" {visible(called(node))}"
    return names


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
    ops = ordered_ops(graph)
    lines = [visible(graph.title)] if graph.title else []
    for side in ("forward", "backward"):
        groups = grouped((n for n in graph if n.side == side), lambda n: n.region)
        lines += [side] if groups else []
        for name, members in groups.items():
            margin = "  "
            if name and len(graph.regions) > 2:
                margin *= len(graph.around(name))
                lines.append(f"{margin}[{visible(graph.regions[name].label)}]")
                margin += "  "
            lines += [margin + row for row in _aligned(_rows(links, ops, members))]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… {len(lines) - _MOST_LINES} more lines"]
    lines += [f"({visible(note)})" for note in (*graph.notes, advice) if note]
    return "\n".join(lines)


def _rows(links: Links, ops: list[Node], members: list[Node]) -> list[Row]:
    here = {n.id for n in members}
    rows = []
    for node in members:
        if not is_op(node) and not any(map(is_op, links.before[node.id])):
            said = NODE_STYLES[node.kind].meaning if node.kind in _SAID else ""
            rows.append((_named(node), ", ".join(map(visible, node.lines)), said))
    return rows + [_op_row(links, n) for n in ops if n.id in here]


def _op_row(links: Links, node: Node) -> Row:
    out = list({n.id: n for n in links.after[node.id]}.values())
    left = ", ".join(dict.fromkeys(map(_named, out)))
    takes = ", ".join(map(_named, links.before[node.id]))
    call = f"{left}{' = ' * bool(left)}{number_of(node)}{shorten(node.name, 60)}({takes})"
    values = "; ".join(visible(line) for n in out for line in n.lines)
    remarks = list(map(visible, node.lines))
    if node.reads:
        remarks.append(f"reads {', '.join(map(visible, node.reads))}")
    if out and out[0].kind in _SAID:
        remarks.append(NODE_STYLES[out[0].kind].meaning)
    return call, values, "; ".join(remarks)


def _named(node: Node) -> str:
    return shorten(called(node)) or "·"


def _aligned(rows: list[Row]) -> list[str]:
    first, second = (max((min(_WIDEST, len(row[i])) for row in rows), default=0) for i in (0, 1))
    return [f"{left:<{first}}  {value:<{second}}  {more}".rstrip() for left, value, more in rows]
