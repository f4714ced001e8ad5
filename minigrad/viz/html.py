"""Pages that stand alone: a player in one file, and static frames for viewers that run nothing."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .format import visible

if TYPE_CHECKING:
    from .film import Film

_HERE = Path(__file__).parent
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
</script>
</body>
</html>
"""


def script(name: str) -> str:
    """The browser's half of a widget, with what all of them share."""
    return "\n".join(map(_text, ("drawing.js", "zoom.js", name)))


def style() -> str:
    """The style of all widgets."""
    return _text("player.css")


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


def as_json(data: Any) -> str:
    """Data as JSON that may stand inside an HTML element."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def film_page(film: Film, prediction: bool = False) -> str:
    """One HTML file that plays a film, with the code of the widget, the drawing and the events."""
    data = {"script": film.script, "frame": 0, "prediction": prediction}
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
