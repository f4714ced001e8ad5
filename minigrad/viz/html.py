"""Pages that stand alone: a player in one file, and static frames for viewers that run nothing."""

from __future__ import annotations

import html
from pathlib import Path

from minigrad.viz.film import Film

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
<main id="player"></main>
<template id="drawing">{svg}</template>
<script type="application/json" id="script">{script}</script>
<details><summary>All steps in words</summary><pre>{words}</pre></details>
<script type="module">
{code}
const state = {{
  svg: document.getElementById("drawing").innerHTML,
  script: JSON.parse(document.getElementById("script").textContent),
  words: document.querySelector("pre").textContent,
  frame: 0,
  prediction: {prediction},
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
render({{ model, el: document.getElementById("player") }});
</script>
</body>
</html>
"""


def film_page(film: Film, prediction: bool = False) -> str:
    """One HTML file that plays a film, with the code of the widget, the drawing and the events."""
    title = html.escape(film.graph.title or "Backward, step by step")
    return _PAGE.format(
        title=title,
        css=_text("player.css"),
        code=_text("player.js"),
        svg=film.picture.svg or "",
        script=film.json(),
        words=html.escape(film.text()),
        prediction="true" if prediction else "false",
    )


def frames_page(film: Film) -> str:
    """First, middle and last frame, one below the other, each with its words."""
    parts = [
        f"<figure>{svg or ''}<figcaption>{html.escape(words)}</figcaption></figure>"
        for words, svg in film.static_frames()
    ]
    return f'<div class="mg-frames">{"".join(parts)}</div>'


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
