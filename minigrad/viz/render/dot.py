"""A graph in the language of Graphviz, built with the ``graphviz`` package: the same graph gives
the same text in every process.

Ids are the counters of the graph; text of the user passes through `quote` and nowhere else. Forward
stands left or on top, backward right or below: twins share a rank, and lines of the backward side
are written against their direction, so that both sides rank alike.
"""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise, zip_longest
from typing import NamedTuple

from ..graph.format import LONGEST_LINE, LONGEST_NAME, WIDEST, shorten, visible, wrapped
from ..graph.graph import Edge, Graph, Node, Region, grouped, is_op
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
from .rank import APART, layers, ranks

_MARGIN = 11  # points between a frame and what stands in it
_TITLE = 40  # letters in a row of the title of a frame
_NOTE = 88  # of a note
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


def to_dot(graph: Graph, *, legend: bool = False, **look: str) -> str:
    """The DOT source of a graph; ``look`` are attributes of the whole drawing, as ``dpi``.

    >>> g = Graph()
    >>> _ = g.edge(g.node("leaf", "x"), g.node("op", "Square"))
    >>> "n0 -> n1" in to_dot(g)
    True
    """
    import graphviz  # on first use

    places = _places(graph)
    look = _GRAPH | _SPACE[graph.direction] | look
    drawing = graphviz.Digraph("minigrad", graph_attr=look, node_attr=_NODE, edge_attr=_EDGE)
    _columns(drawing, graph, places)
    for edge in places.lines:
        _edge(drawing, graph, edge, places.at)
    _twin_lines(drawing, graph)
    _ladder(drawing, places.at)
    if table := notes_and_legend(graph, legend):  # last: frames would inherit the label
        drawing.attr(label=f"<{table}>", labelloc="b", labeljust="l")
    return str(drawing.source)


class Places(NamedTuple):
    """What is known of a drawing before it is made; lines from saved values that would reach further
    than to a neighbouring rank become names in a label.
    """

    lines: list[Edge]
    labels: dict[str, str]
    widths: dict[str, float]
    at: dict[str, int]  # the rank of each node, from the top


def _places(graph: Graph) -> Places:
    at = ranks(graph)
    lines = []
    far = defaultdict(list)
    for edge in graph.edges:
        if edge.kind == "saved" and abs(at[edge.tail] - at[edge.head]) > 1:
            far[edge.head].append(graph.nodes[edge.tail].name)
        else:
            lines.append(edge)
    labels = {n.id: label(n, far[n.id]) for n in graph}
    widths = {n.id: _width(n, labels[n.id]) for n in graph}
    return Places(lines, labels, widths, layers(graph, at, widths))


def estimated_width(graph: Graph) -> float:
    """About how wide a drawing will be, in points, without drawing it: what stands in each rank of
    a frame, and where a frame stands in another, its width in all of its ranks.
    """
    lines, _, widths, at = _places(graph)
    place = {n.id: n.region or n.side for n in graph}
    rooms: dict[str, Counter[int]] = defaultdict(Counter)
    for name, width in widths.items():
        rooms[place[name]][at[name]] += round(width) + APART
    for edge in lines:
        low, high = sorted((at[edge.tail], at[edge.head]))
        rooms[place[edge.tail]].update(dict.fromkeys(range(low + 1, high), APART))
    for region in reversed(graph.regions.values()):
        room = rooms.pop(region.id, Counter())
        if room and region.parent:
            ranks = range(min(room), max(room) + 1)
            room = Counter(dict.fromkeys(ranks, max(room.values()) + 2 * _MARGIN))
        rooms[region.parent or region.side].update(room)
    return sum(max(room.values(), default=0) for room in rooms.values())


def _ladder(drawing, at: dict[str, int]) -> None:
    """Ranks one below the other; an empty one leaves room for a title."""
    filled = grouped(at, at.__getitem__)
    for rank in filled.values():
        with drawing.subgraph(graph_attr={"rank": "same"}) as row:
            for node in rank:
                row.node(node)
    for (i, above), (j, below) in pairwise(filled.items()):
        drawing.edge(above[0], below[0], style="invis", weight="0", minlen=str(j - i))


# Nodes ---------------------------------------------------------------


def _node(drawing, node: Node, words: str) -> None:
    """One node: its look is that of its row in the table, whatever stands inside."""
    style = node_style(node)
    look = ["filled", "dashed" * style.dashed, "rounded" * style.rounded]
    margin = "0" if has_slots(node) else None
    if node.kind == "folded" or style.rounded:
        margin = "0.15,0.08"  # room for the words inside three borders, or round corners
    drawing.node(
        node.id,
        label=words,
        _attributes={"class": " ".join(node_classes(node))},
        id=node.id,
        shape=style.shape,
        style=",".join(filter(None, look)),
        color=style.stroke,
        fillcolor=style.fill,
        penwidth=f"{style.width:g}",
        fontcolor=style.text,
        margin=margin,
        # two short lines stand in a circle, not in an egg
        width="0.62" if style.shape == "ellipse" and node.lines else None,
        peripheries=str(style.peripheries),
    )


def node_classes(node: Node) -> list[str]:
    """The classes of a node in the picture: what the style sheet and the player speak about."""
    return ["mg", "op" if is_op(node) else "var", side_class(node), node.kind, node.state]


def side_class(part: Node | Region) -> str:
    """The class of a side."""
    return "fwd" if part.side == "forward" else "bwd"


# Lines ----------------------------------------------------------------


def _edge(drawing, graph: Graph, edge: Edge, at: dict[str, int]) -> None:
    """One line; one that runs against the ranks has no say in them."""
    tail, head = graph.nodes[edge.tail], graph.nodes[edge.head]
    style = edge_style(edge, tail.side)
    ends = [_end(tail, edge.tail_port, "out"), _end(head, edge.head_port, "in")]
    above, below = (head, tail) if style.reversed else (tail, head)
    upwards = at[above.id] > at[below.id]
    leaf = tail.kind in ("leaf", "data") or head.kind == "leaf_gradient"
    straight = style.constraint and edge.kind in ("flow", "weak", "grad") and not leaf
    look = f'BORDER="1" COLOR="{style.stroke}" BGCOLOR="{PAPER}"'
    chip = _grid([f"<TD>{_rows_of(edge.label)}</TD>"], 2, look)
    drawing.edge(
        *(reversed(ends) if style.reversed else ends),
        label=f"<{chip}>" if edge.label else None,
        _attributes={"class": f"mg {edge.kind} {side_class(tail)} {tail.id} {head.id}"},
        color=style.stroke,
        penwidth=f"{style.width:g}",
        style=style.line,
        constraint="false" if upwards or not style.constraint else None,
        # the way through the operators is straight, leaves stand beside it
        weight="6" if straight else None,
        dir="none" if style.head == "none" else "back" if style.reversed else None,
        arrowhead=style.head,
        arrowtail=style.head,
        lhead=f"cluster_{head.region}" if edge.kind == "sub_block" and head.region else None,
    )


def _end(node: Node, port: str | None, way: str) -> str:
    """Where a line ends: at a port of this name, best at one that leads this way, or at the node."""
    ports = sorted((w != way, i) for i, (name, w) in enumerate(node.ports) if name == port)
    return f"{node.id}:p{ports[0][1]}" if ports else node.id


def _twin_lines(drawing, graph: Graph) -> None:
    """The dashed lines between an op and its grad ops; between a value and its gradient an unseen
    one that keeps the order.
    """
    style = EDGE_STYLES["twin"]
    pairs = [(n, graph.nodes[n.twin]) for n in graph if n.twin]
    firsts = [(n, twin) for n, twin in pairs if n.side == "forward"]
    others = [(twin, n) for n, twin in pairs if n.side == "backward" and twin.twin != n.id]
    for node, twin in firsts + others:
        if is_op(node) and is_op(twin):
            drawing.edge(
                node.id,
                twin.id,
                style=style.line,
                dir="none",
                color=style.stroke,
                penwidth=f"{style.width:g}",
                **{"class": f"mg twin {node.id} {twin.id}"},
            )
        elif node.twin == twin.id:
            drawing.edge(node.id, twin.id, style="invis", _attributes={"class": "mg layout"})


# Frames ----------------------------------------------------------------


def _columns(drawing, graph: Graph, places: Places) -> None:
    """Frames of forward on the left, or above in "LR", those of backward on the other side: each
    side starts with a point, several frames stand in an unseen one, and a line between the points
    keeps the order.
    """
    outer = [r for r in graph.regions.values() if r.parent is None]
    sides = grouped(outer, lambda r: r.side)
    _nodes(drawing, graph, places, None)
    if len(sides) < 2:  # nothing to keep apart
        _frames(drawing, graph, places, outer)
        return
    for side in ("forward", "backward"):
        frames = sides[side]
        if len(frames) == 1:
            _frames(drawing, graph, places, frames, side)
        else:
            look = {"style": "invis", "margin": "0"}
            with drawing.subgraph(name=f"cluster_{side}", graph_attr=look) as column:
                _start(column, side)
                _frames(column, graph, places, frames)
        first = next((n for n in places.at if graph.nodes[n].side == side), side)
        drawing.edge(side, first, style="invis", weight="0")
    with drawing.subgraph(graph_attr={"rank": "min"}) as top:
        top.edge("forward", "backward", style="invis")


def _start(drawing, name: str) -> None:
    drawing.node(name, label="", style="invis", width="0", height="0", margin="0")


def _nodes(drawing, graph: Graph, places: Places, region: str | None) -> None:
    for node in graph:
        if node.region == region:
            _node(drawing, node, places.labels[node.id])


def _frames(drawing, graph: Graph, places: Places, regions: list[Region], start: str = "") -> None:
    """Regions with all that stands in them; they nest only as deep as a program does."""
    for region in regions:
        style = region_style(region)
        side = "LEFT" if region.side == "forward" else "RIGHT"
        look = {
            "id": region.id,
            "class": f"mg region {side_class(region)}",
            "style": "rounded,filled",
            "color": style.stroke,
            "fillcolor": style.fill,
            "penwidth": "2",
            "margin": str(_MARGIN),
            "label": f"<{_rows_of(region.label, side, 80, _TITLE)}>" if region.label else "",
            "labeljust": side[0].lower(),
            "labelloc": "t",
        }
        with drawing.subgraph(name=f"cluster_{region.id}", graph_attr=look) as frame:
            if start:
                _start(frame, start)
            _nodes(frame, graph, places, region.id)
            inner = [r for r in graph.regions.values() if r.parent == region.id]
            _frames(frame, graph, places, inner)


# ---- What stands inside a node: HTML-like labels, and the one place where text enters DOT ----


def quote(text: object) -> str:
    """Text for an HTML-like label: the one place where text enters DOT.

    A backslash is doubled, because Graphviz would expand ``\\N`` and ``\\G`` even here.

    >>> quote('a < "b" \\\\N')
    'a &lt; &quot;b&quot; \\\\\\\\N'
    """
    return html.escape(visible(text)).replace("\\", "\\\\")


def has_slots(node: Node) -> bool:
    """Does the label show slots, or a number, and fill the whole node?"""
    return bool(node.ports) or (is_op(node) and node.number is not None)


def label(node: Node, far: Iterable[str] = ()) -> str:
    """The label of a node; ``far`` are names it reads that no line leads to."""
    reads = ", ".join(map(shorten, dict.fromkeys((*node.reads, *far))))
    rows = [_title(node), *(_small(line) for line in node.lines if line)]
    if reads:
        rows.append(f"<I>{_small(f'reads {reads}')}</I>")
    if has_slots(node):
        first, last = ("in", "out") if node.side == "forward" else ("out", "in")
        parts = filter(None, [_slots(node, first), _column(rows, 2), _slots(node, last)])
        return f"<{_column(parts, 1)}>"
    short = len(node.name) + sum(map(len, node.lines)) <= _BESIDE
    if not is_op(node) and len(rows) > 1 and short:
        return f"<{' '.join(rows)}>"
    return f"<{_column(rows, 0)}>"


def _title(node: Node) -> str:
    if not node.name:
        return " "
    name = _rows_of(node.name, "", 100 if node.kind == "folded" else LONGEST_NAME)
    mark = "S" if node_style(node).struck else "B"
    number = f"{_small(f'#{node.number}')} " if node.number is not None else ""
    return f"{number}<{mark}>{name}</{mark}>"


def _rows_of(text: str, align: str = "", limit: int = LONGEST_LINE, width: int = WIDEST) -> str:
    """A text in as many rows as it needs; each is a text of its own in the drawing."""
    rows = [quote(row) for row in wrapped(shorten(text, limit), width)]
    if len(rows) == 1 or not align:
        return "<BR/>".join(rows)
    return "".join(f'{row}<BR ALIGN="{align}"/>' for row in rows)


def _small(text: str, align: str = "", limit: int = LONGEST_LINE, width: int = WIDEST) -> str:
    # an empty element is an error, and the whole label would be lost
    shown = _rows_of(text, align, limit, width) or " "
    return f'<FONT POINT-SIZE="10" COLOR="{SMALL_TEXT}">{shown}</FONT>'


def _slots(node: Node, way: str) -> str:
    """The named ports on one side of an op: in a column if they are formulas, or from left to right."""
    column = any(" " in name for name, _ in node.ports)
    align = "LEFT" if column else ""
    cells = [
        f'<TD PORT="p{i}" ALIGN="{align or "CENTER"}">{_small(name, align)}</TD>'
        for i, (name, w) in enumerate(node.ports)
        if w == way
    ]
    return _grid(cells if column else ["".join(cells)], 2) if cells else ""


def _width(node: Node, words: str) -> float:
    """About how wide a node with these words will be, in points."""
    rows = re.split(r"<BR[^>]*>|</?TR>", words)
    letters = max(
        len(html.unescape(re.sub(r"<[^>]*>", "", row))) * (8.0 if "<B>" in row else 6.2)
        for row in rows
    )
    return letters * 1.3 + 20 if node_style(node).shape == "ellipse" else letters + 16


def _column(rows: Iterable[str], pad: int) -> str:
    return _grid([f"<TD>{row}</TD>" for row in rows], pad)


def _grid(rows: list[str], pad: int, look: str = 'BORDER="0"') -> str:
    """An HTML-like table; a row holds its cells."""
    body = "".join(f"<TR>{row}</TR>" for row in rows)
    return f'<TABLE {look} CELLBORDER="0" CELLSPACING="0" CELLPADDING="{pad}">{body}</TABLE>'


# ---- The table below a picture: what the marks mean, and what was left out ----


_LINES = {"solid": "━━", "dashed": "╍╍", "dotted": "┅┅"}


def notes_and_legend(graph: Graph, legend: bool) -> str:
    """An HTML-like table with the notes of a graph and, on request, its legend: the marks that the
    graph has, all of them for a graph without nodes.  Empty if there is nothing to say.
    """
    rows = [
        f'<TD ALIGN="LEFT" COLSPAN="4">{_small(note, "LEFT", 2 * _NOTE, _NOTE)}</TD>'
        for note in graph.notes
    ]
    if legend:
        nodes = {n.kind for n in graph} or set(NODE_STYLES)
        lines = {e.kind for e in graph.edges} if graph.nodes else set(EDGE_STYLES)
        if any(n.twin and is_op(n) for n in graph):
            lines.add("twin")
        cells = [_mark(_swatch(s), s.meaning) for kind, s in NODE_STYLES.items() if kind in nodes]
        cells += [_mark(_stroke(s), s.meaning) for kind, s in EDGE_STYLES.items() if kind in lines]
        pairs = zip_longest(cells[::2], cells[1::2], fillvalue='<TD COLSPAN="2"></TD>')
        rows += map("".join, pairs)
    look = f'BORDER="1" COLOR="{GREY}" BGCOLOR="{PAPER}" STYLE="ROUNDED"'
    return _grid(rows, 3, look) if rows else ""


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
