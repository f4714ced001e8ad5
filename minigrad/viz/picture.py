"""`draw`: a picture of anything that holds a graph."""

import base64
import functools
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..atomic import gc_paused, replacing
from .adapters.names import Names, caller_variables
from .fold import View, found_ops
from .graph.graph import Graph
from .graph.style import PAPER
from .render import layout
from .render.dot import estimated_width, to_dot
from .render.html import arrays_of, drawings, figure, frame, packed, page
from .render.svg import WIDEST, to_svg
from .render.words import describe, to_text

_MOST_FOR_PNG = 150  # nodes
_MOST_PIXELS = 8_000_000
_NO_DOUBT = 0.7 * WIDEST  # points: estimated so narrow, a drawing fits a page
_NO_HOPE = 1.15 * WIDEST  # estimated so wide, it is not even tried


class Picture:
    """A graph, ready to be shown: SVG in a notebook, text in a terminal, files of six kinds.

    ``graph`` is what it shows; ``dot``, ``svg`` and ``text`` are its renderings (``svg`` is None
    without a layout engine), ``graphviz`` is the picture for the ``graphviz`` package. Of a folded
    graph ``view`` knows what is inside: a notebook then shows a page that can be searched and opened.
    """

    def __init__(self, graph: Graph, *, legend: bool = False, view: View | None = None) -> None:
        self.legend = legend
        self.view = view or View(graph, "full")
        self.searched = False  # a search, though nothing is folded

    @functools.cached_property
    def graph(self) -> Graph:
        """What is drawn."""
        return self.view.graph if self._expected_width() < _NO_DOUBT else self._layout[0]

    def _expected_width(self) -> float:
        """Points, without laying it out; 0 for what is never folded more."""
        view = self.view
        fixed = view.opened or view.detail == "full" or view.graph.direction == "LR"
        return 0 if fixed else estimated_width(view.graph)

    @property
    def dot(self) -> str:
        """The DOT source."""
        return self._dot()

    def _dot(self, **look: str) -> str:
        return to_dot(self.graph, legend=self.legend, **look)

    def _drawn(self) -> tuple[bytes | None, float]:
        """What Graphviz draws of the view, None if it cannot, and how wide that is, in points."""
        drawn = layout.layout(to_dot(self.view.graph, legend=self.legend))
        size = re.search(rb'<svg width="([\d.]+)pt"', drawn or b"")
        return drawn, float(size[1]) if size else math.inf

    @functools.cached_property
    def _layout(self) -> tuple[Graph, bytes | None]:
        """A graph and its drawing, no wider than a page: it is folded more and more until it is;
        the narrowest one where none is.
        """
        tried = []
        while True:
            graph = self.view.graph
            expected = self._expected_width()
            drawn, width = (None, math.inf) if expected >= _NO_HOPE else self._drawn()
            if expected < _NO_DOUBT or width <= WIDEST or not layout.available():
                return graph, drawn
            tried.append((width, self.view.most, drawn))
            if not self.view.tighten():
                break
        _, most, drawn = min(tried, key=lambda each: each[:2])
        self.view.fold(most)
        return self.view.graph, drawn or self._drawn()[0]

    @property
    def graphviz(self) -> Any:
        """The picture as a ``graphviz.Source``, to go on with in the tools around Graphviz."""
        import graphviz  # on first use

        return graphviz.Source(self.dot, filename="minigrad.gv")

    @functools.cached_property
    def svg(self) -> str | None:
        """The drawing, or None when no layout engine made one."""
        graph, drawn = self._layout
        return to_svg(graph, drawn) if drawn else None

    @functools.cached_property
    def text(self) -> str:
        """The drawing for a terminal; without a layout engine it says how to get one."""
        return to_text(self.graph, advice="" if layout.available() else layout.ADVICE)

    @property
    def png(self) -> bytes | None:
        """The drawing as pixels, transparent: fewer for a drawing that would be too large."""
        sizes = re.findall(r'(?:width|height)="(\d+)pt"', (self.svg or "")[:1000])
        dpi = int(72 * math.sqrt(_MOST_PIXELS / math.prod(map(int, sizes))))
        return layout.layout(self._dot(dpi=str(max(8, min(96, dpi)))), "png")

    def small_png(self) -> bytes | None:
        """Pixels on white paper in few bytes, for viewers that show no SVG; None of a large graph."""
        if len(self.graph.nodes) > _MOST_FOR_PNG:
            return None
        small = self._dot(dpi="72", bgcolor=PAPER)
        return layout.layout(small, layout.SMALL_PNG) or layout.layout(small, "png")

    def _svg_of(self, view: View) -> str | None:
        same = view.graph is self.graph
        return self.svg if same else Picture(view.graph, legend=self.legend, view=view).svg

    @property
    def interactive(self) -> bool:
        """Is there something to open, or was a search asked for?"""
        return self.searched or (self.graph is self.view.graph and bool(self.view.folds()))

    def describe(self) -> str:
        """One sentence about the graph, and its steps in order."""
        return describe(self.graph)

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file: its ending (svg, png, pdf, dot, html, txt) says how.

        Raises `ValueError` for another ending, `FileNotFoundError` for a folder that is not there,
        `RuntimeError` when there is no layout engine for a drawn one.
        """
        return saved(self, "picture", path, _SAVERS)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_) -> dict[str, Any]:
        bundle = {"text/plain": self.text}
        if self.svg:
            bundle["image/svg+xml"] = self.svg
            png = self.small_png()
            if png:
                bundle["image/png"] = base64.b64encode(png).decode()
            if self.interactive:
                bundle["text/html"] = frame(self._html, self.graph.title or "picture", png)
            else:
                bundle["text/html"] = figure(self.svg, self.view, png)
        return bundle

    @property
    def _html(self) -> str:
        """A page on its own: the drawing with a search, and its words."""
        first, *others = self._drawings
        shown = dict(first)
        svg = shown.pop("svg")
        data = {"shown": shown, "drawings": packed(others), "arrays": arrays_of(self.view)}
        words = f"{self.describe()}\n\n{self.text}"
        title = self.graph.title or "Graph"
        return page("explorer.js", svg, data, words, title, "In words")

    @functools.cached_property
    def _drawings(self) -> list[dict[str, Any]]:
        """The drawing, and what its boxes open into."""
        return drawings(self.view, self._svg_of)


_SAVERS = {  # what a file holds, by its ending
    ".svg": lambda p: p.svg,
    ".png": lambda p: p.png,
    ".pdf": lambda p: layout.layout(p.dot, "pdf"),
    ".dot": lambda p: p.dot,
    ".html": lambda p: p._html,
    ".txt": lambda p: p.text + "\n",
}


def saved(
    shown, kind: str, path: str | Path, savers: Mapping[str, Callable[[Any], str | bytes | None]]
) -> Path:
    """Write a picture or a player to a file, as the ending of its name says."""
    target = Path(path)
    save = savers.get(target.suffix.lower())
    if save is None:
        known = ", ".join(savers)
        raise ValueError(f"cannot save a {kind} as {target.name!r}; known endings: {known}")
    content = save(shown)
    if content is None:
        too_large = "the layout took too long or the graph is too large"
        why = too_large if layout.available() else layout.ADVICE
        raise RuntimeError(f"cannot draw {target.name!r}: {why}")
    with replacing(target) as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return target


def draw(
    x: Any,
    *,
    detail: str = "auto",
    values: bool | str = True,
    direction: str | None = None,
    legend: bool = False,
    names: Mapping[str, Any] | None = None,
    expand: str | None = None,
    widget: bool = False,
) -> Picture:
    """Draw the graph behind anything: a variable, a tensor, a function, a watched run, a net, a
    program, a `Graph`; of an error (``sys.last_value`` in a
    notebook) what was computed before it.

    ``detail`` is "auto", "full", "folded" (modules and repeated segments once) or "pruned" (also what
    was dropped). ``values="grad"`` also draws the gradient of every tensor in between.  ``direction`` is "LR" or
    "TB". ``names`` maps a name to an object; otherwise objects are called by their own
    ``.name`` or by the variables of the caller.  ``expand`` searches a folded picture: the name of
    a value or an operation, "#17" or "block 2" is drawn in full with its neighbours.

    A picture is at most 850 pixels wide: with ``detail="auto"`` what is wider is folded. In a
    notebook a folded picture has a search, and a click opens a box; ``widget=True`` gives any
    picture the search.

    Raises `TypeError` for something without a graph, `ValueError` for an unknown ``detail`` or
    ``direction``, and for an ``expand`` that names nothing.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True, name="x")
    >>> print(type(mg.draw(x * x)).__name__)
    Picture
    """
    view = view_of_any(x, detail, values, Names(names, caller_variables()), expand)
    if direction is not None:
        view.turn(_checked("direction", direction, ("LR", "TB")))
    picture = Picture(view.graph, legend=legend, view=view)
    picture.searched = widget
    return picture


def graph_of(x: Any, *, detail: str = "auto", names: Names | None = None) -> Graph:
    """The neutral graph of anything that `draw` takes."""
    return view_of_any(x, detail, True, names or Names(), None).graph


def view_of_any(x, detail: str, values: bool | str, names: Names, expand: str | None) -> View:
    """The graph of anything that `draw` takes, folded as ``detail`` says."""
    from .adapters.sources import graph_behind

    _checked("detail", detail, ("auto", "full", "folded", "pruned"))
    _checked("values", values, (True, "grad"))
    with gc_paused():
        whole = graph_behind(x, detail, values, names)
        return View(whole, detail, found_ops(whole, expand) if expand is not None else ())


def _checked(what: str, given, known: tuple[Any, ...]) -> Any:
    if given not in known:
        raise ValueError(f"unknown {what} {given!r}; known: {', '.join(map(str, known))}")
    return given
