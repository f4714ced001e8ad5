"""A graph as DOT, the language of Graphviz: the same graph gives the same bytes in every process.

Ids are the counters of the graph; text of the user passes through `labels.quote` and nowhere else.
Forward stands left or on top, backward right or below: twins share a rank, and lines of the
backward side are written against their direction, so that both sides rank alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..graph.format import LONGEST_LINE, LONGEST_NAME, shorten
from ..graph.graph import Edge, Graph, Node, Region, is_op
from ..graph.style import (
    EDGE_STYLES,
    FONT,
    GREY,
    NODE_STYLES,
    PAPER,
    SMALL_TEXT,
    TEXT,
    EdgeStyle,
    NodeStyle,
    edge_style,
    node_style,
    region_style,
)
from .rank import anchor_lines, far_reads, mirrored, twin_groups

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
    table = notes_and_legend(graph, quote, legend)
    return [f"graph [label=<{table}>, labelloc=b, labeljust=l];"] if table else []


def _attributes(facts: dict[str, str]) -> str:
    """Values are ours (ids, classes, colours) or HTML-like labels in angle brackets."""
    return ", ".join(f"{k}={v}" if v[:1] == "<" else f'{k}="{v}"' for k, v in facts.items())


# ---- What stands inside a node: HTML-like labels, and the one place where text enters DOT ----


def quote(text: object, limit: int = LONGEST_LINE) -> str:
    """Text for an HTML-like label: the one place where text enters DOT.

    A backslash is doubled, because Graphviz would expand ``\\N`` and ``\\G`` even here.

    >>> quote('a < "b" \\\\N')
    'a &lt; &quot;b&quot; \\\\\\\\N'
    """
    shown = shorten(text, limit)
    for char, entity in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ('"', "&quot;"),
        ("\\", "\\\\"),
    ):
        shown = shown.replace(char, entity)
    return shown


def is_table(node: Node) -> bool:
    """Is the label a table, because the node has ports or a number?"""
    return bool(node.ports) or (
        is_op(node) and node.number is not None and node.kind not in ("folded", "pruned")
    )


def label(graph: Graph, node: Node, far: tuple[str, ...]) -> str:
    """The label of a node; ``far`` are names it reads that no line leads to."""
    if is_table(node):
        return f"<{_table(graph, node, far)}>"
    title = _title(node)
    rows = _rows(node, far)
    if (
        not is_op(node)
        and graph.direction == "TB"
        and rows
        and sum(map(len, node.lines)) <= LONGEST_NAME
    ):
        return f"<{title} {' '.join(rows)}>"
    return f"<{_cells([title, *rows], pad=0)}>"


def _title(node: Node) -> str:
    name = quote(node.name, 28 if node.kind != "folded" else 100)
    if not name:
        return " "
    mark = "S" if node_style(node).struck else "B"
    number = f"{_small(f'#{node.number}')} " if node.number is not None else ""
    return f"{number}<{mark}>{name}</{mark}>"


def _rows(node: Node, far: tuple[str, ...]) -> list[str]:
    reads = ", ".join(shorten(r) for r in dict.fromkeys((*node.reads, *far)))
    return [
        *(_small(line) for line in node.lines if line),
        *([f"<I>{_small(f'reads {reads}')}</I>"] if reads else []),
    ]


def _small(text: str, points: int = 10) -> str:
    shown = quote(text) or " "  # an empty element is an error, and the whole label would be lost
    return f'<FONT POINT-SIZE="{points}" COLOR="{SMALL_TEXT}">{shown}</FONT>'


def _table(graph: Graph, node: Node, far: tuple[str, ...]) -> str:
    style = node_style(node)
    colours = f'COLOR="{style.stroke}" BGCOLOR="{style.fill}"'
    border = f'BORDER="{style.width:g}" CELLBORDER="0" CELLSPACING="0" {colours}'
    rounded = ' STYLE="ROUNDED"' if style.rounded else ""
    middle = _cells([_title(node), *_rows(node, far)], pad=2 if graph.direction == "TB" else 4)
    first, last = ("in", "out") if node.side == "forward" else ("out", "in")
    parts = [_slots(graph, node, first), middle, _slots(graph, node, last)]
    cells = [f"<TD>{part}</TD>" for part in parts if part]
    rows = (
        f"<TR>{''.join(cells)}</TR>"
        if graph.direction == "LR"
        else "".join(f"<TR>{c}</TR>" for c in cells)
    )
    return f'<TABLE {border}{rounded} CELLPADDING="1">{rows}</TABLE>'


def _slots(graph: Graph, node: Node, way: str) -> str:
    """The named ports on one side of an op, in a row or in a column."""
    cells = [
        f'<TD PORT="p{i}" CELLPADDING="2">{_small(name, 9)}</TD>'
        for i, (name, w) in enumerate(node.ports)
        if w == way
    ]
    if not cells:
        return ""
    rows = (
        "".join(f"<TR>{c}</TR>" for c in cells)
        if graph.direction == "LR"
        else f"<TR>{''.join(cells)}</TR>"
    )
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">{rows}</TABLE>'


def _cells(rows: list[str], pad: int) -> str:
    cells = "".join(f'<TR><TD CELLPADDING="{pad}">{row}</TD></TR>' for row in rows)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">{cells}</TABLE>'


# ---- The table below a picture: what the marks mean, and what was left out ----


Quote = Callable[[object, int], str]
_LINES = {"solid": "━━", "dashed": "╍╍", "dotted": "┅┅"}
_FRAME = (
    f'CELLBORDER="0" CELLSPACING="0" CELLPADDING="3" COLOR="{GREY}" BGCOLOR="{PAPER}" '
    'STYLE="ROUNDED"'
)


def notes_and_legend(graph: Graph, quote: Quote, legend: bool) -> str:
    """An HTML-like table with the notes of a graph and, on request, its legend: the marks that the
    graph has, all of them for a graph without nodes.  Empty if there is nothing to say.
    """
    rows = [
        f'<TR><TD ALIGN="LEFT" COLSPAN="4">{_fine_print(quote(note, 160))}</TD></TR>'
        for note in graph.notes
    ]
    if legend:
        rows += _in_pairs([*_node_marks(graph, quote), *_edge_marks(graph, quote)])
    return f'<TABLE BORDER="1" {_FRAME}>{"".join(rows)}</TABLE>' if rows else ""


def _fine_print(text: str) -> str:
    return f'<FONT POINT-SIZE="10" COLOR="{SMALL_TEXT}">{text}</FONT>'


def _in_pairs(cells: list[str]) -> list[str]:
    empty = '<TD COLSPAN="2"></TD>'
    cells = cells + [empty] * (len(cells) % 2)
    return [f"<TR>{left}{right}</TR>" for left, right in zip(cells[::2], cells[1::2], strict=True)]


def _node_marks(graph: Graph, quote: Quote) -> list[str]:
    here = {n.kind for n in graph.nodes.values()} or set(NODE_STYLES)
    return [
        _mark(_swatch(style), quote(style.meaning, 60))
        for kind, style in NODE_STYLES.items()
        if kind in here
    ]


def _edge_marks(graph: Graph, quote: Quote) -> list[str]:
    here = {e.kind for e in graph.edges}
    if not graph.nodes:
        here = set(EDGE_STYLES)
    here |= {"twin"} if any(n.twin and is_op(n) for n in graph.nodes.values()) else set()
    return [
        _mark(_stroke(style), quote(style.meaning, 60))
        for kind, style in EDGE_STYLES.items()
        if kind in here
    ]


def _mark(sign: str, meaning: str) -> str:
    return f'{sign}<TD ALIGN="LEFT">{_fine_print(meaning)}</TD>'


def _swatch(style: NodeStyle) -> str:
    look = [
        *(["ROUNDED"] if style.shape != "box" or style.rounded else []),
        *(["DASHED"] if style.dashed else []),
    ]
    border = f'BORDER="{max(1, round(style.width))}" COLOR="{style.stroke}" BGCOLOR="{style.fill}"'
    inner = (
        f'<TABLE {border} CELLBORDER="{int(style.peripheries > 1)}" CELLSPACING="1" '
        'CELLPADDING="1" '
        f'STYLE="{",".join(look)}">'
        f'<TR><TD WIDTH="26" HEIGHT="8"></TD></TR></TABLE>'
    )
    return f"<TD>{inner}</TD>"


def _stroke(style: EdgeStyle) -> str:
    end = " " if style.head == "none" else "▶"
    return f'<TD><FONT COLOR="{style.stroke}">{_LINES[style.line]}{end}</FONT></TD>'
