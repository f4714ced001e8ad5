"""The table below a picture: what the marks mean, and what was left out."""

from __future__ import annotations

from collections.abc import Callable

from .graph import Graph
from .reading import is_op
from .style import (
    EDGE_STYLES,
    GREY,
    NODE_STYLES,
    PAPER,
    SMALL_TEXT,
    EdgeStyle,
    NodeStyle,
)

Quote = Callable[[object, int], str]
_LINES = {"solid": "━━", "dashed": "╍╍", "dotted": "┅┅"}
_FRAME = (
    f'CELLBORDER="0" CELLSPACING="0" CELLPADDING="3" COLOR="{GREY}" BGCOLOR="{PAPER}" '
    'STYLE="ROUNDED"'
)


def table(graph: Graph, quote: Quote, legend: bool) -> str:
    """An HTML-like table with the notes of a graph and, on request, its legend: the marks that the
    graph has, all of them for a graph without nodes.  Empty if there is nothing to say.
    """
    rows = [
        f'<TR><TD ALIGN="LEFT" COLSPAN="4">{_small(quote(note, 160))}</TD></TR>'
        for note in graph.notes
    ]
    if legend:
        rows += _pairs([*_node_marks(graph, quote), *_edge_marks(graph, quote)])
    return f'<TABLE BORDER="1" {_FRAME}>{"".join(rows)}</TABLE>' if rows else ""


def _small(text: str) -> str:
    return f'<FONT POINT-SIZE="10" COLOR="{SMALL_TEXT}">{text}</FONT>'


def _pairs(cells: list[str]) -> list[str]:
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
    return f'{sign}<TD ALIGN="LEFT">{_small(meaning)}</TD>'


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
