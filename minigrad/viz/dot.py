"""A graph as DOT, the language of Graphviz: the same graph gives the same bytes in every process.

Ids are the counters of the graph; text of the user passes through `labels.quote` and nowhere else.
Forward stands left or on top, backward right or below: twins share a rank, and lines of the
backward side are written against their direction, so that both sides rank alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import legend as legends
from .anchors import anchor_lines
from .graph import Edge, Graph, Node, Region
from .labels import is_table, label, quote
from .rank import far_reads, mirrored, twin_groups
from .reading import is_op
from .style import FONT, PAPER, TEXT, edge_style, node_style, region_style

_LARGE = 120  # nodes; half as many as lines

_SPACE = {
    "LR": "rankdir=LR; nodesep=0.42; ranksep=0.4;",
    "TB": "rankdir=TB; nodesep=0.3; ranksep=0.27;",
}
_TYPE = f'fontname="{FONT}", fontcolor="{TEXT}"'
_DEFAULTS = (
    f"graph [newrank=true, compound=true, bgcolor=transparent, pad=0.12, {_TYPE}, fontsize=11];",
    f'node [{_TYPE}, fontsize=12, margin="0.09,0.045", height=0.3, width=0.5];',
    f"edge [{_TYPE}, fontsize=9, arrowsize=0.7];",
)


def to_dot(
    graph: Graph, *, legend: bool = False, dpi: int | None = None, paper: bool = False
) -> str:
    """The DOT source of a graph; ``paper`` puts it on a white sheet.

    >>> g = Graph()
    >>> _ = g.edge(g.node("leaf", "x"), g.node("op", "Square"))
    >>> "n0 -> n1" in to_dot(g)
    True
    """
    dropped = far_reads(graph)
    far = _names_read(graph, dropped.values())
    lines = ["digraph minigrad {", _SPACE[graph.direction], *_DEFAULTS, *_limits(graph, dpi, paper)]
    lines += _inside(graph, None, far)
    lines += [f"{{ rank=same; {'; '.join(group)} }}" for group in twin_groups(graph)]
    lines += [_edge(graph, e) for i, e in enumerate(graph.edges) if i not in dropped]
    lines += [_twin_line(graph, *pair) for pair in _pairs(graph)]
    lines += _mirror_lines(graph)
    lines += anchor_lines(graph) if graph.edges else _columns(graph)
    lines += _footer(graph, legend)  # last: frames would inherit the label
    return "\n".join([*lines, "}", ""])


def _limits(graph: Graph, dpi: int | None, paper: bool) -> list[str]:
    """For a large graph straight lines, behind the boxes, and fewer rounds: seconds, not minutes."""
    fast = "nslimit=1; nslimit1=1; mclimit=0.2; splines=line; outputorder=edgesfirst;"
    sheet = [f'bgcolor="{PAPER}";'] if paper else []
    return [*([fast] if _is_large(graph) else []), *sheet, *([f"dpi={dpi};"] if dpi else [])]


def _is_large(graph: Graph) -> bool:
    return len(graph.nodes) > _LARGE or len(graph.edges) > 2 * _LARGE


# Nodes ---------------------------------------------------------------


def _node(graph: Graph, node: Node, far: tuple[str, ...]) -> str:
    style = node_style(node)
    facts = {
        "id": node.id,
        "class": " ".join(node_classes(node)),
        "label": label(graph, node, far),
    }
    if is_table(node):
        facts |= {"shape": "plain"}
    else:
        look = [
            "filled",
            *(["dashed"] if style.dashed else []),
            *(["rounded"] if style.rounded else []),
        ]
        facts |= {
            "shape": style.shape,
            "style": ",".join(look),
            "color": style.stroke,
            "fillcolor": style.fill,
            "penwidth": f"{style.width:g}",
            "fontcolor": style.text,
        }
        if style.shape == "ellipse" and node.lines:
            facts["width"] = "0.62"  # two short lines stand in a circle, not in an egg
        if style.peripheries > 1:
            facts["peripheries"] = str(style.peripheries)
        if node.kind == "folded":
            facts["margin"] = "0.15,0.08"  # room for the words inside three borders
    return f"{node.id} [{_attributes(facts)}];"


def node_classes(node: Node) -> list[str]:
    """The classes of a node in the picture: what the style sheet and the player speak about."""
    return [
        "mg",
        "op" if is_op(node) else "var",
        "fwd" if node.side == "forward" else "bwd",
        node.kind,
        node.state,
    ]


# Lines ----------------------------------------------------------------


def _edge(graph: Graph, edge: Edge) -> str:
    tail, head = graph.nodes[edge.tail], _head(graph, edge)
    style = edge_style(edge, tail.side)
    ends = [_end(tail, edge.tail_port, "out"), _end(head, edge.head_port, "in")]
    facts = {
        "class": f"mg {edge.kind} {'fwd' if tail.side == 'forward' else 'bwd'} {tail.id} {head.id}",
        "color": style.stroke,
        "penwidth": f"{style.width:g}",
    }
    if style.line != "solid":
        facts["style"] = style.line
    if not style.constraint:
        facts["constraint"] = "false"
    elif weight := _weight(edge, tail, head):
        facts["weight"] = weight
    facts |= _arrow(style.head, style.reversed)
    if edge.kind == "sub_block" and head.region:
        facts["lhead"] = f"cluster_{_frame_of(graph, edge, head)}"
    if edge.label:
        facts["label"] = f"<{_chip(edge.label, style.stroke)}>"
    if style.reversed:
        ends.reverse()
    return f"{ends[0]} -> {ends[1]} [{_attributes(facts)}];"


def _weight(edge: Edge, tail: Node, head: Node) -> str:
    """How much a line wants to be short and straight; the parts of a sum stand next to it, so that
    none of them stands between an operator and its grad op.
    """
    if edge.kind in ("flow", "weak", "grad"):
        return "1" if tail.kind in ("leaf", "data") or head.kind == "leaf_gradient" else "6"
    return "6" if (tail.kind, head.kind) == ("renamed", "sum") else ""


def _head(graph: Graph, edge: Edge) -> Node:
    """The node a line ends at; a line to a region ends at its frame, before its first node."""
    if edge.head in graph.nodes:
        return graph.nodes[edge.head]
    return next(n for n in graph.nodes.values() if n.region == edge.head)


def _frame_of(graph: Graph, edge: Edge, head: Node) -> str:
    return edge.head if edge.head in graph.regions else str(head.region)


def _end(node: Node, port: str | None, way: str) -> str:
    if port is None:
        return node.id
    at = [i for i, (name, w) in enumerate(node.ports) if name == port]
    same_way = [i for i in at if node.ports[i][1] == way]
    return f"{node.id}:p{(same_way or at)[0]}" if at else node.id


def _arrow(head: str, backward: bool) -> dict[str, str]:
    if head == "none":
        return {"dir": "none"}
    end = "arrowtail" if backward else "arrowhead"
    return ({"dir": "back"} if backward else {}) | ({end: head} if head != "normal" else {})


def _chip(text: str, stroke: str) -> str:
    return (
        '<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2" '
        f'COLOR="{stroke}" BGCOLOR="{PAPER}">'
        f"<TR><TD>{quote(text)}</TD></TR></TABLE>"
    )


def _pairs(graph: Graph) -> list[tuple[Node, Node]]:
    """(forward, backward) for all twins; an operator may have several grad ops."""
    nodes = graph.nodes
    firsts = [(n, nodes[n.twin]) for n in nodes.values() if n.side == "forward" and n.twin]
    others = [
        (nodes[n.twin], n)
        for n in nodes.values()
        if n.side == "backward" and is_op(n) and n.twin and nodes[n.twin].twin != n.id
    ]
    return [*firsts, *(pair for pair in others if is_op(pair[0]))]


def _twin_line(graph: Graph, node: Node, twin: Node) -> str:
    """The dashed line between an op and its grad op; between a value and its gradient an unseen one
    that keeps the order.
    """
    style = edge_style(Edge("", "", "twin"), "forward")
    order = "" if graph.direction == "LR" and not graph.regions else ", constraint=false"
    if not (is_op(node) and is_op(twin)):
        return f'{node.id} -> {twin.id} [style=invis, class="mg layout"{order}];'
    look = f'color="{style.stroke}", penwidth={style.width:g}, style={style.line}, dir=none{order}'
    return f'{node.id} -> {twin.id} [class="mg twin {node.id} {twin.id}", {look}];'


def _mirror_lines(graph: Graph) -> list[str]:
    """Unseen lines down each rank that holds several pairs of twins; frames keep their own order."""
    if graph.direction == "TB" or graph.regions or _is_large(graph):
        return []
    return [f"{{ rank=same; {' -> '.join(order)} [style=invis] }}" for order in mirrored(graph)]


def _names_read(graph: Graph, edges: Iterable[Edge]) -> dict[str, tuple[str, ...]]:
    """The names that a grad op reads from further away than a line should reach."""
    far: dict[str, tuple[str, ...]] = {}
    for edge in edges:
        far[edge.head] = (*far.get(edge.head, ()), graph.nodes[edge.tail].name)
    return far


# Frames ----------------------------------------------------------------


def _inside(graph: Graph, parent: str | None, far: dict[str, tuple[str, ...]]) -> list[str]:
    """The nodes and regions that stand directly in a region, or in none. Regions nest only as deep
    as a program does.
    """
    lines = []
    here = [n for n in graph.nodes.values() if n.region == parent]
    if parent is not None and graph.direction == "LR":
        here.reverse()  # in a frame Graphviz puts the last one on top
    lines += [_node(graph, n, far.get(n.id, ())) for n in here]
    for region in graph.regions.values():
        if region.parent == parent:
            lines += [
                f"subgraph cluster_{region.id} {{ {_region(graph, region)}",
                *_inside(graph, region.id, far),
                "}",
            ]
    return lines


def _region(graph: Graph, region: Region) -> str:
    style = region_style(region)
    backward = region.side == "backward"
    facts = {
        "id": region.id,
        "class": f"mg region {'bwd' if backward else 'fwd'}",
        "style": "rounded,filled",
        "color": style.stroke,
        "fillcolor": style.fill,
        "penwidth": f"{style.width:g}",
        "margin": "11",
        "label": f"<{quote(region.label, 80)}>" if region.label else "",
        "labeljust": "r" if backward and graph.direction == "TB" else "l",
        "labelloc": "b" if backward and graph.direction == "LR" else "t",
    }
    return "graph [" + _attributes(facts) + "];"


def _columns(graph: Graph) -> list[str]:
    """Without lines, the nodes of each frame stand in a column."""
    columns: dict[str | None, list[str]] = {}
    for node in graph.nodes.values():
        columns.setdefault(node.region, []).append(node.id)
    return [f"{' -> '.join(c)} [style=invis, weight=9];" for c in columns.values() if len(c) > 1]


def _footer(graph: Graph, legend: bool) -> list[str]:
    """Notes and legend: a table of its own below the picture, because no text may stand on the
    page.
    """
    table = legends.table(graph, quote, legend)
    return [f"graph [label=<{table}>, labelloc=b, labeljust=l];"] if table else []


def _attributes(facts: dict[str, str]) -> str:
    """Values are ours (ids, classes, colours) or HTML-like labels in angle brackets."""
    return ", ".join(f"{k}={v}" if v[:1] == "<" else f'{k}="{v}"' for k, v in facts.items())
