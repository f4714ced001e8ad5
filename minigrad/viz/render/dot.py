"""A graph in the language of Graphviz, built with the ``graphviz`` package: the same graph gives the same text in
every process.

Ids are the counters of the graph; text of the user passes through `quote` and nowhere else. Forward stands left or
on top, backward right or below: twins share a rank, and lines of the backward side are written against their
direction, so that both sides rank alike.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise, zip_longest
from typing import Any

from ..graph.format import LONGEST_LINE, LONGEST_NAME, WIDEST, shorten, wrapped
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
from .rank import far_reads, layers

_MARGIN = 11  # points between a frame and what stands in it
_APART = 14  # points between two nodes, or a node and a line
_TITLE, _NOTE = 40, 88  # letters in a row of the title of a frame, of a note
_BESIDE = 20  # letters of a name and what stands beside it; what is longer stands below
_SPACE = {
    "LR": {"rankdir": "LR", "nodesep": "0.42", "ranksep": "0.4"},
    "TB": {"rankdir": "TB", "nodesep": "0.15", "ranksep": "0.27"},
}
_TYPE = {"fontname": FONT, "fontcolor": TEXT}
_GRAPH = _TYPE | {
    "newrank": "true",
    "compound": "true",
    "bgcolor": "transparent",
    "pad": "0.12",
    "fontsize": "11",
}
_NODE = _TYPE | {"fontsize": "12", "margin": "0.09,0.045", "height": "0.3", "width": "0.5"}
_EDGE = _TYPE | {"fontsize": "10", "arrowsize": "0.7"}


def to_dot(
    graph: Graph, *, legend: bool = False, dpi: int | None = None, paper: bool = False
) -> str:
    """The DOT source of a graph; ``paper`` puts it on a white sheet.

    >>> g = Graph()
    >>> _ = g.edge(g.node("leaf", "x"), g.node("op", "Square"))
    >>> "n0 -> n1" in to_dot(g)
    True
    """
    import graphviz  # on first use

    dropped, far, rows = _places(graph)
    at = {name: i for i, row in enumerate(rows) for name in row}
    look = _GRAPH | _SPACE[graph.direction]
    look |= ({"bgcolor": PAPER} if paper else {}) | ({"dpi": str(dpi)} if dpi else {})
    drawing = graphviz.Digraph("minigrad", graph_attr=look, node_attr=_NODE, edge_attr=_EDGE)
    _columns(drawing, graph, far, rows)
    for i, edge in enumerate(graph.edges):
        if i not in dropped:
            _edge(drawing, graph, edge, at)
    for pair in _twins(graph):
        _twin_line(drawing, graph, *pair)
    _ladder(drawing, rows)
    if table := notes_and_legend(graph, legend):  # last: frames would inherit the label
        drawing.attr(label=f"<{table}>", labelloc="b", labeljust="l")
    return str(drawing.source)


def _places(graph: Graph) -> tuple[dict[int, Edge], dict[str, tuple[str, ...]], list[list[str]]]:
    """The lines that become names, the nodes that have them, and the nodes of each rank."""
    dropped = far_reads(graph)
    far = _names_read(graph, dropped.values())
    return dropped, far, layers(graph, _widths(graph, far))


def estimated_width(graph: Graph) -> float:
    """About how wide a drawing will be, in points, without drawing it: what stands in each rank of a
    frame, and where a frame stands in another, its width in all of its ranks.
    """
    dropped, far, rows = _places(graph)
    at = {name: i for i, row in enumerate(rows) for name in row}
    place = {n.id: n.region or n.side for n in graph.nodes.values()}
    rooms: dict[str, Counter[int]] = defaultdict(Counter)
    for name, width in _widths(graph, far).items():
        rooms[place[name]][at[name]] += round(width) + _APART
    for i, edge in enumerate(graph.edges):
        if i not in dropped and edge.head in at:
            low, high = sorted((at[edge.tail], at[edge.head]))
            rooms[place[edge.tail]].update(dict.fromkeys(range(low + 1, high), _APART))
    for region in reversed(graph.regions.values()):
        room = rooms.pop(region.id, Counter())
        if room and region.parent is not None:
            ranks = range(min(room), max(room) + 1)
            room = Counter(dict.fromkeys(ranks, max(room.values()) + 2 * _MARGIN))
        rooms[region.parent or region.side].update(room)
    return sum(max(room.values(), default=0) for room in rooms.values())


def _one_rank(drawing: Any, nodes: list[str]) -> None:
    with drawing.subgraph(graph_attr={"rank": "same"}) as row:
        for node in nodes:
            row.node(node)


def _ladder(drawing: Any, ranks: list[list[str]]) -> None:
    """Ranks one below the other; an empty one leaves room for a title."""
    for rank in filter(None, ranks):
        _one_rank(drawing, rank)
    for above, below in pairwise(ranks):
        if above and below:
            drawing.edge(above[0], below[0], style="invis", weight="0")
    for above, gap, below in zip(ranks, ranks[1:], ranks[2:], strict=False):
        if not gap:
            drawing.edge(above[0], below[0], style="invis", weight="0", minlen="2")


# Nodes ---------------------------------------------------------------


def _node(drawing: Any, node: Node, far: tuple[str, ...]) -> None:
    """One node: its look is that of its row in the table, whatever stands inside."""
    style = node_style(node)
    look = ["filled", "dashed" * style.dashed, "rounded" * style.rounded]
    facts = {
        "id": node.id,
        "class": " ".join(node_classes(node)),
        "shape": style.shape,
        "style": ",".join(filter(None, look)),
        "color": style.stroke,
        "fillcolor": style.fill,
        "penwidth": f"{style.width:g}",
        "fontcolor": style.text,
    }
    if has_slots(node):
        facts["margin"] = "0"
    if style.shape == "ellipse" and node.lines:
        facts["width"] = "0.62"  # two short lines stand in a circle, not in an egg
    if style.peripheries > 1:
        facts["peripheries"] = str(style.peripheries)
    if node.kind == "folded" or style.rounded:
        facts["margin"] = "0.15,0.08"  # room for the words inside three borders, or round corners
    drawing.node(node.id, label(node, far), **facts)


def node_classes(node: Node) -> list[str]:
    """The classes of a node in the picture: what the style sheet and the player speak about."""
    what, side = "op" if is_op(node) else "var", "fwd" if node.side == "forward" else "bwd"
    return ["mg", what, side, node.kind, node.state]


# Lines ----------------------------------------------------------------


def _edge(drawing: Any, graph: Graph, edge: Edge, at: dict[str, int]) -> None:
    """One line; one that runs against the ranks has no say in them."""
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
    above, below = (head, tail) if style.reversed else (tail, head)
    if not style.constraint or (edge.head in graph.nodes and at[above.id] > at[below.id]):
        facts["constraint"] = "false"
    leaf = tail.kind in ("leaf", "data") or head.kind == "leaf_gradient"
    if style.constraint and edge.kind in ("flow", "weak", "grad") and not leaf:
        facts["weight"] = "6"  # the way through the operators is straight, leaves stand beside it
    facts |= _arrow(style.head, style.reversed)
    if edge.kind == "sub_block" and head.region:
        facts["lhead"] = f"cluster_{_frame_of(graph, edge, head)}"
    if edge.label:
        facts["label"] = f"<{_chip(edge.label, style.stroke)}>"
    if style.reversed:
        ends.reverse()
    drawing.edge(*ends, **facts)


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
        f"<TR><TD>{_rows_of(text, '')}</TD></TR></TABLE>"
    )


def _twins(graph: Graph) -> list[tuple[Node, Node]]:
    """(forward, backward) for all twins; an operator may have several grad ops."""
    nodes = graph.nodes
    firsts = [(n, nodes[n.twin]) for n in nodes.values() if n.side == "forward" and n.twin]
    others = [
        (nodes[n.twin], n)
        for n in nodes.values()
        if n.side == "backward" and is_op(n) and n.twin and nodes[n.twin].twin != n.id
    ]
    return [*firsts, *(pair for pair in others if is_op(pair[0]))]


def _twin_line(drawing: Any, graph: Graph, node: Node, twin: Node) -> None:
    """The dashed line between an op and its grad op; between a value and its gradient an unseen one
    that keeps the order.
    """
    style = EDGE_STYLES["twin"]
    facts: dict[str, str] = {}
    if is_op(node) and is_op(twin):
        facts |= {"class": f"mg twin {node.id} {twin.id}", "style": style.line, "dir": "none"}
        facts |= {"color": style.stroke, "penwidth": f"{style.width:g}"}
    else:
        facts |= {"class": "mg layout", "style": "invis"}
    drawing.edge(node.id, twin.id, **facts)


def _names_read(graph: Graph, edges: Iterable[Edge]) -> dict[str, tuple[str, ...]]:
    """The names that a grad op reads from further away than a line should reach."""
    far: dict[str, tuple[str, ...]] = {}
    for edge in edges:
        far[edge.head] = (*far.get(edge.head, ()), graph.nodes[edge.tail].name)
    return far


# Frames ----------------------------------------------------------------


def _columns(
    drawing: Any, graph: Graph, far: dict[str, tuple[str, ...]], rows: list[list[str]]
) -> None:
    """Frames of forward on the left, or above in "LR", those of backward on the other side: each
    side starts with a point, several frames stand in an unseen one, and a line between the points
    keeps the order.
    """
    frames = [r for r in graph.regions.values() if r.parent is None]
    sides = [side for side in ("forward", "backward") if any(r.side == side for r in frames)]
    if len(sides) < 2:  # nothing to keep apart
        _inside(drawing, graph, None, far)
        return
    _nodes(drawing, graph, None, far)
    for side in sides:
        mine = [r for r in frames if r.side == side]
        if len(mine) == 1:
            name = f"cluster_{mine[0].id}"
            look = _region(mine[0])
        else:
            name = f"cluster_{side}"
            look = {"style": "invis", "margin": "0"}
        with drawing.subgraph(name=name, graph_attr=look) as column:
            column.node(side, "", style="invis", width="0", height="0", margin="0")
            if len(mine) == 1:
                _inside(column, graph, mine[0].id, far)
            else:
                for region in mine:
                    _frame(column, graph, region, far)
        first = next((n for row in rows for n in row if graph.nodes[n].side == side), side)
        drawing.edge(side, first, style="invis", weight="0")
    with drawing.subgraph(graph_attr={"rank": "min"}) as top:
        top.edge(*sides, style="invis")


def _nodes(drawing: Any, graph: Graph, parent: str | None, far: dict[str, tuple[str, ...]]) -> None:
    for node in graph.nodes.values():
        if node.region == parent:
            _node(drawing, node, far.get(node.id, ()))


def _inside(
    drawing: Any, graph: Graph, parent: str | None, far: dict[str, tuple[str, ...]]
) -> None:
    """The nodes and regions that stand directly in a region, or in none. Regions nest only as deep
    as a program does.
    """
    _nodes(drawing, graph, parent, far)
    for region in graph.regions.values():
        if region.parent == parent:
            _frame(drawing, graph, region, far)


def _frame(drawing: Any, graph: Graph, region: Region, far: dict[str, tuple[str, ...]]) -> None:
    look = _region(region)
    with drawing.subgraph(name=f"cluster_{region.id}", graph_attr=look) as frame:
        _inside(frame, graph, region.id, far)


def _region(region: Region) -> dict[str, str]:
    style = region_style(region)
    backward = region.side == "backward"
    side = "RIGHT" if backward else "LEFT"
    return {
        "id": region.id,
        "class": f"mg region {'bwd' if backward else 'fwd'}",
        "style": "rounded,filled",
        "color": style.stroke,
        "fillcolor": style.fill,
        "penwidth": f"{style.width:g}",
        "margin": str(_MARGIN),
        "label": f"<{_rows_of(region.label, side, 80, _TITLE)}>" if region.label else "",
        "labeljust": side[0].lower(),
        "labelloc": "t",
    }


# ---- What stands inside a node: HTML-like labels, and the one place where text enters DOT ----


def quote(text: object, limit: int = LONGEST_LINE) -> str:
    """Text for an HTML-like label: the one place where text enters DOT.

    A backslash is doubled, because Graphviz would expand ``\\N`` and ``\\G`` even here.

    >>> quote('a < "b" \\\\N')
    'a &lt; &quot;b&quot; \\\\\\\\N'
    """
    return html.escape(shorten(text, limit)).replace("\\", "\\\\")


def has_slots(node: Node) -> bool:
    """Does the label show slots, or a number, and fill the whole node?"""
    return bool(node.ports) or (
        is_op(node) and node.number is not None and node.kind not in ("folded", "pruned")
    )


def label(node: Node, far: tuple[str, ...]) -> str:
    """The label of a node; ``far`` are names it reads that no line leads to."""
    if has_slots(node):
        return f"<{_table(node, far)}>"
    title, rows = _title(node), _rows(node, far)
    if not is_op(node) and rows and len(node.name) + sum(map(len, node.lines)) <= _BESIDE:
        return f"<{title} {' '.join(rows)}>"
    return f"<{_cells([title, *rows], pad=0)}>"


def _title(node: Node) -> str:
    name = _rows_of(node.name, "", LONGEST_NAME if node.kind != "folded" else 100)
    if not node.name:
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


def _rows_of(text: object, align: str, limit: int = LONGEST_LINE, width: int = WIDEST) -> str:
    """A text in as many rows as it needs; each is a text of its own in the drawing."""
    rows = [quote(row, limit) for row in wrapped(shorten(text, limit), width)]
    if len(rows) == 1 or not align:
        return "<BR/>".join(rows)
    return "".join(f'{row}<BR ALIGN="{align}"/>' for row in rows)


def _small(text: str, align: str = "", limit: int = LONGEST_LINE, width: int = WIDEST) -> str:
    # an empty element is an error, and the whole label would be lost
    shown = _rows_of(text, align, limit, width) or " "
    return f'<FONT POINT-SIZE="10" COLOR="{SMALL_TEXT}">{shown}</FONT>'


def _table(node: Node, far: tuple[str, ...]) -> str:
    first, last = ("in", "out") if node.side == "forward" else ("out", "in")
    middle = _cells([_title(node), *_rows(node, far)], pad=2)
    parts = filter(None, [_slots(node, first), middle, _slots(node, last)])
    rows = "".join(f"<TR><TD>{part}</TD></TR>" for part in parts)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{rows}</TABLE>'


def _slots(node: Node, way: str) -> str:
    """The named ports on one side of an op: in a column if they are formulas, or from left to right."""
    column = any(" " in name for name, _ in node.ports)
    align, between = (' ALIGN="LEFT"', "</TR><TR>") if column else ("", "")
    cells = between.join(
        f'<TD PORT="p{i}" CELLPADDING="2"{align}>{_small(name, "LEFT" if column else "")}</TD>'
        for i, (name, w) in enumerate(node.ports)
        if w == way
    )
    table = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">'
    return f"{table}<TR>{cells}</TR></TABLE>" if cells else ""


def _widths(graph: Graph, far: dict[str, tuple[str, ...]]) -> dict[str, float]:
    return {n.id: _width(n, far) for n in graph.nodes.values()}


def _width(node: Node, far: dict[str, tuple[str, ...]]) -> float:
    """About how wide a node will be, in points."""
    text = label(node, far.get(node.id, ()))
    rows = re.split(r"<BR[^>]*>|</?TR>", text)
    letters = max(
        len(html.unescape(re.sub(r"<[^>]*>", "", row))) * (8.0 if "<B>" in row else 6.2)
        for row in rows
    )
    return letters * 1.3 + 20 if node_style(node).shape == "ellipse" else letters + 16


def _cells(rows: list[str], pad: int) -> str:
    cells = "".join(f'<TR><TD CELLPADDING="{pad}">{row}</TD></TR>' for row in rows)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">{cells}</TABLE>'


# ---- The table below a picture: what the marks mean, and what was left out ----


_LINES = {"solid": "━━", "dashed": "╍╍", "dotted": "┅┅"}
_FRAME = (
    f'CELLBORDER="0" CELLSPACING="0" CELLPADDING="3" COLOR="{GREY}" BGCOLOR="{PAPER}" '
    'STYLE="ROUNDED"'
)


def notes_and_legend(graph: Graph, legend: bool) -> str:
    """An HTML-like table with the notes of a graph and, on request, its legend: the marks that the
    graph has, all of them for a graph without nodes.  Empty if there is nothing to say.
    """
    rows = [
        f'<TR><TD ALIGN="LEFT" COLSPAN="4">{_small(note, "LEFT", 2 * _NOTE, _NOTE)}</TD></TR>'
        for note in graph.notes
    ]
    if legend:
        nodes = {n.kind for n in graph.nodes.values()} or set(NODE_STYLES)
        lines = {e.kind for e in graph.edges} if graph.nodes else set(EDGE_STYLES)
        if any(n.twin and is_op(n) for n in graph.nodes.values()):
            lines.add("twin")
        cells = [_mark(_swatch(s), s.meaning) for kind, s in NODE_STYLES.items() if kind in nodes]
        cells += [_mark(_stroke(s), s.meaning) for kind, s in EDGE_STYLES.items() if kind in lines]
        pairs = zip_longest(cells[::2], cells[1::2], fillvalue='<TD COLSPAN="2"></TD>')
        rows += [f"<TR>{left}{right}</TR>" for left, right in pairs]
    return f'<TABLE BORDER="1" {_FRAME}>{"".join(rows)}</TABLE>' if rows else ""


def _mark(sign: str, meaning: str) -> str:
    return f'<TD>{sign}</TD><TD ALIGN="LEFT">{_small(meaning, width=60)}</TD>'


def _swatch(style: NodeStyle) -> str:
    look = "ROUNDED," * (style.shape != "box" or style.rounded) + "DASHED" * style.dashed
    return (
        f'<TABLE BORDER="{max(1, round(style.width))}" COLOR="{style.stroke}" '
        f'BGCOLOR="{style.fill}" CELLBORDER="{int(style.peripheries > 1)}" CELLSPACING="1" '
        f'CELLPADDING="1" STYLE="{look}"><TR><TD WIDTH="26" HEIGHT="8"></TD></TR></TABLE>'
    )


def _stroke(style: EdgeStyle) -> str:
    end = " " if style.head == "none" else "▶"
    return f'<FONT COLOR="{style.stroke}">{_LINES[style.line]}{end}</FONT>'
