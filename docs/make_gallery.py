"""Make the gallery: every kind of picture, on white and on black paper.

    python docs/make_gallery.py

writes docs/gallery.html, docs/gallery.md and the files they show, in docs/pictures.
"""

from __future__ import annotations

import html
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gallery_pictures import PICTURES, building, player, search  # noqa: E402

from tests.viz.graphs import GRAPHS  # noqa: E402
from tests.viz.measured import measured  # noqa: E402

PLAYERS = [player, building, search]  # with a page of their own
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
    if hasattr(made, "savefig"):
        target.write_text(plot_svg(made), encoding="utf-8")
    else:
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


def plot_svg(figure: Any) -> str:
    """A plot as SVG, the same bytes every time."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "minigrad", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def save_player(make: Callable[[], Any], folder: Path) -> str:
    """Write a page that plays or is searched, and what it shows without scripts as SVG."""
    made = make()
    made.save(folder / f"{make.__name__}.html")
    frames = made._repr_mimebundle_()["image/svg+xml"]
    (folder / f"{make.__name__}.svg").write_text(frames, encoding="utf-8")
    return f"{folder.name}/{make.__name__}.svg"


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
