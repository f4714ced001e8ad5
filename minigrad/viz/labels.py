"""What stands inside a node: HTML-like labels, and the one place where text enters DOT."""

from __future__ import annotations

from .format import LONGEST_LINE, LONGEST_NAME, shorten
from .graph import Graph, Node
from .reading import is_op
from .style import SMALL_TEXT, node_style


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
