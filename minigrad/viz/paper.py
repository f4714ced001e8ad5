"""The paper that plots are drawn on: a card on a transparent page, in the colours of the pictures.

matplotlib is loaded on first use.
"""

from __future__ import annotations

import base64
import functools
import html
import io
from typing import Any

from .style import GREY, PAPER, SMALL_TEXT, TEXT

LANDSCAPE, SQUARE = (6.4, 3.6), (5.4, 5.0)
DPI = 110


@functools.cache
def _plot_class() -> type:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'minigrad[course]'") from error

    class Plot(Figure):
        """A Figure that shows itself in a notebook, with a description."""

        def _repr_mimebundle_(
            self, include: object = None, exclude: object = None
        ) -> dict[str, Any]:
            FigureCanvasAgg(self)
            return {**bundle(self, self.words()), "text/plain": repr(self)}

        def words(self) -> str:
            """The plot in words: its title, what is drawn over what, and the names of its lines."""
            return "; ".join(map(_words, self.axes))

        def __repr__(self) -> str:
            names = [axes.get_title(loc="left") for axes in self.axes]
            return f"<plot: {', '.join(names)}>"

    return Plot


def bundle(figure: Any, words: str) -> dict[str, str]:
    """A figure as a PNG, and in HTML with its words: a screen reader finds none at a PNG or an SVG."""
    made = io.BytesIO()
    figure.savefig(made, format="png", dpi=DPI, transparent=True, metadata={"Software": None})
    png = base64.b64encode(made.getvalue()).decode("ascii")
    shown = f'<img alt="{html.escape(words)}" src="data:image/png;base64,{png}">'
    return {"text/html": shown, "image/png": png}


def _words(axes: Any) -> str:
    drawn = " over ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel())))
    names = ", ".join(axes.get_legend_handles_labels()[1])
    return f"{axes.get_title(loc='left')}: a plot of {drawn}{names and f', with {names}'}"


def card(title: str, x: str, y: str, size: tuple[float, float] = LANDSCAPE) -> tuple[Any, Any]:
    """An empty figure: a rounded card of paper on a transparent page, and axes on it."""
    figure = _plot_class()(figsize=size, layout="constrained")
    from matplotlib.patches import FancyBboxPatch

    figure.patch.set_alpha(0)
    figure.get_layout_engine().set(w_pad=0.14, h_pad=0.14)
    style = "round,pad=0,rounding_size=0.03"
    paper = FancyBboxPatch(
        (0.006, 0.006),
        0.988,
        0.988,
        boxstyle=style,
        transform=figure.transFigure,
        facecolor=PAPER,
        edgecolor=GREY,
        linewidth=1,
        zorder=-10,
    )
    figure.patches.append(paper)
    axes = figure.add_subplot()
    axes.set_facecolor("none")
    axes.set_title(title, loc="left", color=TEXT, fontweight="bold", fontsize=12)
    axes.set_xlabel(x, color=TEXT)
    axes.set_ylabel(y, color=TEXT)
    axes.tick_params(which="both", colors=SMALL_TEXT)
    axes.grid(True, color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set(visible=side in ("left", "bottom"), color=GREY)
    return figure, axes


def legend(axes: Any, wanted: bool) -> None:
    if wanted:
        axes.legend(frameon=True, facecolor=PAPER, edgecolor=GREY, labelcolor=TEXT, fontsize=9)
