"""Make the gallery: every kind of picture, on white and on black paper.

    python docs/make_gallery.py

writes docs/gallery.html, docs/gallery.md and the files they show, in docs/pictures.
"""

from __future__ import annotations

import html
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gallery_pictures import PICTURES, player, search, squared  # noqa: E402

from minigrad.viz.graph import style  # noqa: E402
from tests.viz.graphs import GRAPHS  # noqa: E402
from tests.viz.measured import measured  # noqa: E402
from tests.viz.replayed import frame  # noqa: E402
from tests.viz.svg_facts import SVG  # noqa: E402

PLAYERS = [player, search]  # with a page of their own
BESIDE = "../../minigrad/viz/browser"
BROWSER = HERE / "pictures" / BESIDE
ALSO_AS_PNG = ("first", "program")  # for pages that show no SVG
_STYLE = """
body { font-family: "DejaVu Sans", Verdana, sans-serif; margin: 0; background: #FFFFFF; color: #1A1A1A; }
h1, h2, p { padding: 0 1.5rem; max-width: 60rem; }
h2 { margin: 2.5rem 0 0.3rem; font-size: 1.15rem; }
div { padding: 1rem 1.5rem; overflow-x: auto; }
div.dark { background: #111111; }
a { color: #0072B2; }
img { max-width: none; height: auto; }
iframe { width: 100%; height: 34rem; border: 0; color-scheme: light; }
"""


def main() -> None:
    """Draw everything, then write both pages."""
    folder = HERE / "pictures"
    folder.mkdir(exist_ok=True)
    entries = [(title(make), caption(make), save(make, folder)) for make in PICTURES]
    frames = [(title(make), caption(make), save_player(make, folder)) for make in PLAYERS]
    (folder / "moving.svg").write_text(moving(squared()), encoding="utf-8")
    (HERE / "gallery.html").write_text(page(entries, frames), encoding="utf-8")
    (HERE / "gallery.md").write_text(markdown([*entries, *frames]) + sizes(), encoding="utf-8")


def title(make: Callable[[], Any]) -> str:
    """``while_loop`` is called "While loop"."""
    return make.__name__.replace("_", " ").capitalize()


def caption(make: Callable[[], Any]) -> str:
    """The first line of a function's documentation."""
    return (make.__doc__ or "").strip().splitlines()[0]


def save(make: Callable[[], Any], folder: Path) -> str:
    """Write one picture as SVG; returns its path from the pages."""
    target = folder / f"{make.__name__}.svg"
    made = make()
    made.save(target)
    if make.__name__ in ALSO_AS_PNG:
        made.save(target.with_suffix(".png"))
    return f"{folder.name}/{target.name}"


def sizes() -> str:
    """Every graph of the tests, measured: a page is 850 pixels wide, text is read from 12 pixels on."""
    rows = []
    for name, make in GRAPHS.items():
        made = make()
        found = measured(made)
        nodes = f"{len(made.graph.nodes)} of {len(made.view.whole.nodes):,}"
        words = (make.__doc__ or name).strip()
        rows.append(
            f"| {words} | {nodes} | {found.width:.0f} × {found.height:.0f} | "
            f"{found.smallest_text:.1f} | {found.through_boxes} | {found.formulas} of {found.slots} |"
        )
    head = "| graph | nodes drawn | pixels | smallest text | lines through boxes | slots with a formula |"
    return (
        "\n".join(["\n## Sizes\n", sizes.__doc__ or "", "", head, "|---" * 6 + "|", *rows]) + "\n"
    )


def save_player(make: Callable[[], Any], folder: Path) -> str:
    """Write a page that plays or is searched, and what it shows without scripts as SVG."""
    made = make()
    page = made.save(folder / f"{make.__name__}.html")
    page.write_text(light(page.read_text(encoding="utf-8")), encoding="utf-8")
    frames = made._repr_mimebundle_()["image/svg+xml"]
    (folder / f"{make.__name__}.svg").write_text(frames, encoding="utf-8")
    return f"{folder.name}/{make.__name__}.svg"


def moving(film: Any, seconds: float = 1.6) -> str:
    """All frames of a film in one place, each shown in its turn; still for those who want no motion."""
    frames = [still(film, k) for k in range(len(film.events) + 1)]
    name = re.search(r' id="(\w+)"', frames[0])[1]
    width, height = (
        float(x) for x in re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', frames[0]).groups()
    )
    turns = len(frames) + 1  # the last one stays for two
    top = 38  # below two rows of words
    font = 'font-family="DejaVu Sans,Verdana,sans-serif" font-size="10" fill="#1A1A1A"'
    style = (
        f".turn{{visibility:hidden;animation:turn {turns * seconds:g}s step-end infinite}}"
        f"@keyframes turn{{0%{{visibility:visible}}{100 / turns:g}%{{visibility:hidden}}}}"
        f".last{{animation-name:last}}@keyframes last{{0%{{visibility:visible}}{200 / turns:g}%{{visibility:hidden}}}}"
        "@media(prefers-reduced-motion){.turn{animation:none}.last{visibility:visible}}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}pt" height="{height + top:g}pt" '
        f'viewBox="0 0 {width:g} {height + top:g}" role="img"><title>{html.escape(film.graph.title)}, played</title>'
        f"<desc>{html.escape(film.text())}</desc><style>{style}</style>"
        f'<rect width="100%" height="100%" rx="6" fill="#FFFFFF"/>'
    ]
    for k, svg in enumerate(frames):
        drawn = re.sub(r"</?svg.*?>|<title.*?</title>|<desc.*?</desc>", "", svg, flags=re.S)
        said = film.script["steps"][k - 1] if k else {"text": film.opening, "formula": ""}
        words = (html.escape(text) for text in (f"{k}. {said['text']}", said["formula"]))
        rows = "".join(
            f'<text x="8" y="{y}">{row}</text>' for y, row in zip((15, 31), words, strict=True)
        )
        last = " last" if k == len(frames) - 1 else ""
        parts.append(
            f'<g class="turn{last}" style="animation-delay:{k * seconds:g}s"><g {font}>{rows}</g>'
            f'<g id="{name}f{k}" transform="translate(0,{top})">{drawn.replace(name, f"{name}f{k}")}</g></g>'
        )
    return "\n".join([*parts, "</svg>\n"])


def still(film: Any, number: int) -> str:
    """One frame of a film as a drawing: what has not run yet is pending, and has no numbers."""
    states, texts = frame(film, number)
    root = ET.fromstring(film.picture.svg)
    for part in root.iter(f"{SVG}g"):
        node, classes = part.get("id", "").rpartition("-")[2], part.get("class", "").split()
        if node in states:
            known = {"pending", "active", "done"}
            part.set("class", " ".join([*(c for c in classes if c not in known), states[node]]))
            drawn = (text for text, _ in film.live.get(node, ()))
            now = dict(zip(drawn, texts.get(node, ()), strict=True))
            for text in (each for each in part.iter(f"{SVG}text") if each.text in now):
                write(text, now[text.text])
        elif "edge" in classes and "pending" in [states.get(c) for c in classes]:
            for line in part:
                for ink in ("stroke", "fill"):
                    paper = ("none", "white", style.PAPER.lower(), style.TEXT.lower())
                    if line.get(ink, "none").lower() not in paper:
                        line.set(ink, style.GREY)
    ET.register_namespace("", SVG[1:-1])
    return ET.tostring(root, encoding="unicode")


def write(text: ET.Element, words: str) -> None:
    """Put other words in the place of a text, in its middle; the width of a letter is a guess."""
    if text.get("text-anchor") == "start" and text.text:
        letter = 0.6 * float(text.get("font-size") or 10)
        if len(words) < len(text.text):
            left = float(text.get("x") or 0) + letter * (len(text.text) - len(words)) / 2
            text.set("x", f"{left:.2f}")
        elif words == "—":  # a dash is wider than the digit it stands for
            text.set("textLength", f"{letter:.2f}")
            text.set("lengthAdjust", "spacingAndGlyphs")
    text.text = words


def light(page: str) -> str:
    """The page of a widget with its code and its style beside it, where the package keeps them."""
    for name in ("player.css", "picture.css"):
        page = page.replace((BROWSER / name).read_text(encoding="utf-8"), "")
        linked = f'<link rel="stylesheet" href="{BESIDE}/{name}">\n<style>'
        page = page.replace("<style>", linked, 1)  # the first: a drawing has its own
    for name in ("picture.js", "drawing.js", "explorer.js", "player.js"):
        code = (BROWSER / name).read_text(encoding="utf-8")
        if code in page:
            linked = f'<script src="{BESIDE}/{name}"></script>\n<script type="module">'
            page = page.replace(code, "").replace('<script type="module">', linked)
    return page.replace("src 'unsafe-inline'", "src 'self' file: 'unsafe-inline'")


def page(entries: list[tuple[str, str, str]], players: list[tuple[str, str, str]]) -> str:
    """The gallery as a web page: each picture twice, and the players at work."""
    parts = [section(*entry) for entry in entries]
    parts += [
        section(*entry)
        + f'<div><iframe src="{entry[2][:-4]}.html" title="{entry[0]}"></iframe></div>'
        for entry in players
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>minigrad: gallery</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n<body>\n'
        "<header><h1>Gallery</h1><p>Every kind of picture, on white and on black. Click a picture to "
        "open it alone: there, a node under the mouse shows its twin and its details.</p></header>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def section(name: str, words: str, path: str) -> str:
    """One picture, light and dark."""
    shown = f'<a href="{path}"><img src="{path}" alt="{html.escape(words)}" loading="lazy"></a>'
    return (
        f"<h2>{name}</h2><p>{html.escape(words)}</p>\n"
        f'<div class="light">{shown}</div><div class="dark">{shown}</div>'
    )


def markdown(entries: list[tuple[str, str, str]]) -> str:
    """The gallery for viewers of Markdown, in whatever theme they have."""
    parts = [f"## {name}\n\n{words}\n\n![{words}]({path})\n" for name, words, path in entries]
    intro = (
        "Made by `python docs/make_gallery.py`; `docs/gallery.html` shows the same on white and on "
        "black. Where a wide picture is shrunk to the page, a click on it shows it in its own size."
    )
    return f"# Gallery\n\n{intro}\n\n" + "\n".join(parts)


if __name__ == "__main__":
    main()
