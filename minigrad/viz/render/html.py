"""Pictures in pages: inline, or with the code of a player or a search in a page of its own, which
stands in a frame or in a file.  Nothing is fetched, and no kernel is needed.
"""

import base64
import copy
import html
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

from ..fold import View
from ..graph.format import Array, visible
from .words import describe, names_of

_HERE = Path(__file__).parent.parent / "browser"
# of a picture that opens; more take seconds to lay out
_DRAWINGS = 12  # of what is in its boxes
_DRAWN = 400  # nodes in all of these
_LINES = 160  # of one
_LARGE = 10_000  # nodes of the graph behind it
_CELLS = 16_384  # elements of arrays that a page holds


def page(
    code: str, svg: str | None, data: Mapping[str, Any], words: str, title: str, summary: str
) -> str:
    """One HTML file that needs nothing else: a drawing, what it says, and the code of a widget."""
    return Template(_text("page.html")).substitute(
        title=html.escape(visible(title)),
        css=_text("picture.css") + _text("player.css"),
        code=_text("picture.js", "drawing.js", code),
        svg=svg or "",
        data=as_json(data),
        words=html.escape(words),
        summary=html.escape(summary),
    )


def figure(svg: str, view: View, png: bytes | None) -> str:
    """A picture inside a page: its nodes are reached by keyboard, a panel says more about each.
    Where a page shows neither styles nor scripts, the pixels are left.
    """
    return (
        f'<figure class="mg-figure" data-arrays="{arrays_of(view)}">{_still(png, _text("picture.css"))}{svg}</figure>'
        f"<script>(() => {{{_text('picture.js')}"
        'for (const figure of document.querySelectorAll("figure.mg-figure:not(.mg-read)")) {'
        ' figure.classList.add("mg-read"); figured(figure); }'
        "})();</script>"
    )


def frame(page: str, title: str, png: bytes | None) -> str:
    """A page inside a page."""
    return (
        f'{_still(png, ".mg-still{display:none!important}")}<iframe class="mg-frame" '
        f'title="{html.escape(visible(title))}" style="width:100%;height:40rem;border:0" '
        f'srcdoc="{html.escape(page)}"></iframe>'
    )


def _still(png: bytes | None, style: str) -> str:
    """The pixels of a picture, unseen where styles are obeyed."""
    source = f"data:image/png;base64,{base64.b64encode(png or b'').decode()}"
    image = f'<img class="mg-still" alt="the same drawing, as pixels" src="{source}">'
    return f"<style>{style}</style>{image if png else ''}"


def as_json(data) -> str:
    """Data inside a script element and inside an HTML element."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(data) -> str:
    """Data in few letters, which `unpacked` in the browser reads."""
    return base64.b64encode(zlib.compress(json.dumps(data).encode(), 9)).decode()


def arrays_of(view: View) -> str:
    """The arrays of nodes, packed, as long as there is room: of those in folded boxes, too, where
    they are few.
    """
    graph = view.whole if len(view.whole.nodes) <= _DRAWN else view.graph
    arrays = defaultdict(list)
    room = _CELLS
    for node in graph:
        for word, array in node.data.get("arrays", ()):
            room -= array.size
            if room >= 0:
                arrays[node.id].append(_told(word, array))
    return packed(arrays) if arrays else ""


def _told(word: str, array: Array) -> dict[str, Any]:
    """An array as the browser shows it, ``wide`` elements in a row: a matrix in its own rows, if they fit."""
    row = array.shape[-1]
    fits = array.ndim > 1 and 1 < row <= 128 and array.size <= 128 * row
    wide = row if fits else math.ceil(math.sqrt(array.size))
    numbers = " ".join(
        f"{number:d}" if isinstance(number, int) else f"{number:.3g}"
        for number in array.ravel().tolist()
    )
    return {"word": word, "shape": array.shape, "wide": wide, "numbers": numbers}


def _text(*names: str) -> str:
    """Files of the browser's half, one after the other."""
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)


# ---- A big picture: search it, click a folded box open, fold it back ----


def drawings(view: View, draw: Callable[[View], str | None]) -> list[dict[str, Any]]:
    """The picture, and what its first boxes open into, one within the other; ``opens`` of each says
    which drawing a box leads to.
    """
    svg = draw(view)
    views = [view]
    shown = [_shown(view, svg, "")]
    number = {}  # of the drawing, by what is inside a box
    room = _DRAWN
    tries = _DRAWINGS if svg and len(view.whole.nodes) <= _LARGE else 0
    for each in views:  # grows while it is walked
        for box in each.folds():
            inside = each.inside(box)
            if inside in number or not tries:
                continue
            tries -= 1
            opened = copy.copy(each)
            words = opened.open(box)
            nodes = len(opened.graph.nodes)
            small = len(opened.graph.edges) <= _LINES and nodes <= room
            if small and (svg := draw(opened)):
                number[inside] = len(views)
                views.append(opened)
                shown.append(_shown(opened, svg, words))
                room -= nodes
            elif small:  # it took too long, as others might
                tries = 0
    for each, facts in zip(views, shown, strict=True):
        boxes = {box: each.inside(box) for box in facts["folds"]}
        facts["opens"] = {box: number[i] for box, i in boxes.items() if i in number}
    return shown


def _shown(view: View, svg: str | None, message: str) -> dict[str, Any]:
    """What the browser shows."""
    folds = view.folds()
    boxes = f"{len(folds)} folded boxes" if len(folds) > 1 else "A folded box"
    advice = f"{boxes}: a click or Enter opens one." if folds else ""
    return {
        "svg": svg or "",
        "title": view.graph.title,
        "words": "" if svg else describe(view.graph),
        "names": names_of(view.graph),
        "folds": folds,
        "message": message or advice,
        "index": view.index(),
    }
