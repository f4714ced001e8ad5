"""The widget of a big picture: search it, click a folded box open, fold it back.

The browser asks, the kernel lays out anew.  Without a kernel the same code searches a page that
stands alone.
"""

from __future__ import annotations

import functools
from typing import Any

from .describe import describe
from .html import page, script, style
from .view import View, names_of


def explorer(view: View, draw: Any) -> Any:
    """The anywidget of a view; ``draw`` makes the SVG of a graph, or None when it cannot.

    Raises `ImportError` without anywidget.
    """
    widget = _widget_class()(**_shown(view, draw(view.graph)))

    def answer(change: Any) -> None:
        question = change["new"]
        if question.get("what") == "search":
            text = str(question.get("text", "")).lower()
            widget.found = {"text": text, "inside": view.found(text)}
            return
        focus, message = _done(view, question)
        svg = draw(view.graph)
        if svg is None:
            view.back()
            focus, message, svg = "", "Too much for a picture: it stays folded.", draw(view.graph)
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
