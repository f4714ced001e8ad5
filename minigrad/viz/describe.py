"""A graph in words: one sentence, then the steps in their order. This is what a screen reader
reads.
"""

from __future__ import annotations

from .format import visible
from .graph import Edge, Graph, Node, Region
from .reading import Links, is_op
from .style import EDGE_STYLES, NODE_STYLES

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
    steps = graph.steps or [describe_op(links, n) for n in ordered_ops(graph)]
    shown = [f"{i}. {visible(step)}" for i, step in enumerate(steps[:_MOST_STEPS], 1)]
    if len(steps) > _MOST_STEPS:
        shown.append(f"… and {len(steps) - _MOST_STEPS} more steps")
    return "\n".join([sentence(graph), *shown, *(visible(n) for n in graph.notes)])


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
    shown = names[:4] + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def ordered_ops(graph: Graph) -> list[Node]:
    """Operations forward, then backward, each side in the order in which it runs."""
    ops = [n for n in graph.nodes.values() if is_op(n)]
    forward = [n for n in ops if n.side == "forward"]
    backward = [n for n in ops if n.side == "backward"]
    return [*_numbered(forward), *_numbered(backward)]


def _numbered(ops: list[Node]) -> list[Node]:
    """By number where every op has one, else in the order of creation."""
    return (
        sorted(ops, key=lambda n: n.number or 0) if all(n.number is not None for n in ops) else ops
    )


def describe_op(links: Links, node: Node) -> str:
    """One operation: what goes in, what comes out."""
    into = ", ".join(called(n) for n in links.before[node.id]) or "nothing"
    out = ", ".join(called(n) for n in links.after[node.id]) or "nothing"
    reads = f", reads {', '.join(node.reads)}" if node.reads else ""
    extra = f" ({'; '.join(node.lines)})" if node.lines else ""
    return f"{called(node)}: {into} to {out}{reads}{extra}"


def called(node: Node) -> str:
    """The name of a node in running text, with its value when it has one to show."""
    name = node.name or NODE_STYLES[node.kind].meaning
    if node.number is not None:
        name = f"#{node.number} {name}"
    return name if is_op(node) or not node.lines else f"{name} = {node.lines[0]}"


def describe_node(graph: Graph, node: Node) -> str:
    """The tooltip of a node: its whole name, what it is, and what the adapter told about it."""
    twin = f"twin: {graph.nodes[node.twin].name}" if node.twin in graph.nodes else ""
    facts = [
        node.name or "(no name)",
        NODE_STYLES[node.kind].meaning,
        *node.tooltip.splitlines(),
        twin,
    ]
    return "\n".join(visible(fact) for fact in facts if fact)


def describe_edge(graph: Graph, edge: Edge) -> str:
    """The tooltip of a line."""
    head = graph.nodes.get(edge.head) or graph.regions[edge.head]
    name = head.label if isinstance(head, Region) else head.name
    ends = f"{graph.nodes[edge.tail].name or '(no name)'} → {name or '(no name)'}"
    label = f": {edge.label}" if edge.label else ""
    return visible(f"{ends}: {EDGE_STYLES[edge.kind].meaning}{label}")
