"""Pictures in pages: inline, or with the code of a player or a search in a page of its own, which stands in a
frame or in a file.  Nothing is fetched, and no kernel is needed.
"""

from __future__ import annotations

import base64
import functools
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..fold.fold import View, names_of
from ..graph.format import visible
from .words import describe

if TYPE_CHECKING:
    from ..player.film import Film

_HERE = Path(__file__).parent.parent / "browser"
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font-family: "DejaVu Sans", Verdana, sans-serif; margin: 1.5em;
  background: Canvas; color: CanvasText; }}
.mg-framed body {{ margin: 0; background: transparent; font-size: 15px; }}
{css}
</style>
</head>
<body>
<main id="shown"></main>
<template id="drawing">{svg}</template>
<script type="application/json" id="data">{data}</script>
<details><summary>{summary}</summary><pre>{words}</pre></details>
<script type="module">
{code}
// As XML: the text of an HTML page may hold names of characters that a drawing does not know.
const drawn = document.getElementById("drawing").content.firstElementChild;
const state = {{
  svg: drawn ? new XMLSerializer().serializeToString(drawn) : "",
  words: document.querySelector("pre").textContent,
  ...JSON.parse(document.getElementById("data").textContent),
}};
const heard = {{}};
const model = {{
  get: (k) => state[k],
  set(k, v) {{
    if (state[k] === v) return;
    state[k] = v;
    (heard["change:" + k] || []).forEach((f) => f());
  }},
  on(k, f) {{ (heard[k] ||= []).push(f); }},
  save_changes() {{}},
}};
render({{ model, el: document.getElementById("shown") }});
fitted();
themed(document.body);
</script>
</body>
</html>
"""


def script(name: str) -> str:
    """The browser's half of a widget, with what all of them share."""
    return "\n".join(map(_text, ("picture.js", "drawing.js", name)))


def style() -> str:
    """The style of all widgets."""
    return _text("picture.css") + _text("player.css")


def page(
    code: str, svg: str | None, data: Mapping[str, Any], words: str, title: str, summary: str
) -> str:
    """One HTML file that needs nothing else: a drawing, what it says, and the code of a widget."""
    return _PAGE.format(
        title=html.escape(visible(title)),
        css=style(),
        code=script(code),
        svg=svg or "",
        data=as_json(data),
        words=html.escape(words),
        summary=html.escape(summary),
    )


def figure(svg: str, png: bytes | None = None) -> str:
    """A picture inside a page: its nodes are reached by keyboard, a panel says more about each.
    Where a page shows neither styles nor scripts, the pixels are left.
    """
    return (
        f'<figure class="mg-figure">{_still(png, _text("picture.css"))}{svg}'
        '<figcaption class="mg-details"></figcaption><div class="mg-follow" role="status"></div>'
        f"</figure><script>(() => {{{_text('picture.js')}"
        'for (const figure of document.querySelectorAll("figure.mg-figure:not(.mg-read)")) {'
        'figure.classList.add("mg-read"); themed(figure);'
        'readable(figure.querySelector("svg"), figure.querySelector(".mg-details")); '
        'followable(figure.querySelector("svg"), figure.querySelector(".mg-follow")); }'
        "})();</script>"
    )


def frame(page: str, title: str, png: bytes | None = None) -> str:
    """A page inside a page."""
    return (
        f'{_still(png, ".mg-still{display:none!important}")}<iframe class="mg-frame" '
        f'title="{html.escape(visible(title))}" style="width:100%;height:40rem;border:0" '
        f'srcdoc="{html.escape(page)}"></iframe>'
    )


def _still(png: bytes | None, style: str) -> str:
    """The pixels of a picture, unseen where styles are obeyed."""
    source = f"data:image/png;base64,{base64.b64encode(png or b'').decode()}"
    image = (
        f'<img class="mg-still" alt="the same drawing, as pixels" src="{source}">' if png else ""
    )
    return f"<style>{style}</style>{image}"


def as_json(data: Any) -> str:
    """Data as JSON that may stand inside an HTML element."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def film_page(film: Film, prediction: bool = False, frame: int = 0) -> str:
    """One HTML file that plays a film, with the code of the player, the drawing and the events."""
    data = {"script": film.script, "frame": frame, "prediction": prediction}
    title = film.graph.title or "Backward, step by step"
    return page("player.js", film.picture.svg, data, film.text(), title, "All steps in words")


def frames_page(film: Film) -> str:
    """First, middle and last frame, one below the other, each with its words."""
    parts = [
        f"<figure>{svg or ''}<figcaption>{html.escape(words)}</figcaption></figure>"
        for words, svg in film.static_frames()
    ]
    return f'<div class="mg-frames">{"".join(parts)}</div>'


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


# ---- The widget of a big picture: search it, click a folded box open, fold it back ----


def explorer(view: View, draw: Any) -> Any:
    """The anywidget of a view; ``draw`` makes the SVG of a graph, or None when it cannot.

    Raises `ImportError` without anywidget.
    """
    widget = _widget_class()(**_shown(view, draw(view)))

    def answer(change: Any) -> None:
        question = change["new"]
        if question.get("what") == "search":
            text = str(question.get("text", "")).lower()
            widget.found = {"text": text, "inside": view.found(text)}
            return
        focus, message = _done(view, question)
        svg = draw(view)
        if svg is None:
            view.back()
            focus, message, svg = "", "Too much for a picture: it stays folded.", draw(view)
        with widget.hold_sync():
            for name, value in _shown(view, svg, focus, message).items():
                setattr(widget, name, value)
            text = widget.found["text"]
            widget.found = {"text": text, "inside": view.found(text) if text else {}}
            widget.drawn += 1

    widget.observe(answer, "ask")
    return widget


def _done(view: View, question: dict[str, Any]) -> tuple[str, str]:
    """(the node to look at, what was done) for a question of the browser."""
    what, node, text = (str(question.get(k, "")) for k in ("what", "node", "text"))
    if what == "open":
        return view.find(node, text) if text else ("", view.open(node))
    return "", view.back() if what == "back" else view.fold_all()


def _shown(view: View, svg: str | None, focus: str = "", message: str = "") -> dict[str, Any]:
    """What the browser shows."""
    return {
        "svg": svg or "",
        "title": view.graph.title,
        "words": describe(view.graph),
        "names": names_of(view.graph),
        "folds": view.folds(),
        "opened": view.opened,
        "focus": focus,
        "message": message or _advice(view),
    }


def _advice(view: View) -> str:
    boxes = len(view.folds())
    many = f"{boxes} folded boxes: open" if boxes > 1 else "A folded box: open"
    return f"{many} with a click, or with Enter where it has the focus." if boxes else ""


def explorer_page(view: View, svg: str | None, words: str) -> str:
    """One HTML file with the picture and its search; folded boxes say what is inside."""
    index, cut = view.index()
    inside = "Folded boxes open in a notebook; the search says what is inside." if index else ""
    data = _shown(view, svg, message=inside) | {"live": False, "index": index, "cut": cut}
    del data["svg"], data["words"]
    return page("explorer.js", svg, data, words, view.graph.title or "Graph", "In words")


def view_of(widget: Any) -> dict[str, Any]:
    """A widget's own entry of a bundle."""
    made = widget._repr_mimebundle_()
    made = made[0] if isinstance(made, tuple) else made
    return {k: v for k, v in (made or {}).items() if k.startswith("application/")}


@functools.cache
def _widget_class() -> type:
    import anywidget
    import traitlets

    class ExplorerWidget(anywidget.AnyWidget):
        """The browser's half: `explorer.js` draws, `player.css` dresses."""

        _esm = script("explorer.js") + "export default { render };\n"
        _css = style()
        svg = traitlets.Unicode().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)
        words = traitlets.Unicode().tag(sync=True)
        names = traitlets.Dict().tag(sync=True)
        folds = traitlets.Dict().tag(sync=True)
        index = traitlets.Dict().tag(sync=True)
        cut = traitlets.Bool(False).tag(sync=True)
        live = traitlets.Bool(True).tag(sync=True)
        opened = traitlets.Int(0).tag(sync=True)
        focus = traitlets.Unicode().tag(sync=True)
        message = traitlets.Unicode().tag(sync=True)
        found = traitlets.Dict({"text": "", "inside": {}}).tag(sync=True)
        ask = traitlets.Dict().tag(sync=True)
        drawn = traitlets.Int(0).tag(sync=True)  # last: tells that all the rest has come

    return ExplorerWidget
