"""Plots in the colours of the pictures, where people would rather look than read numbers.

Each function returns a matplotlib Figure: transparent around a card of paper, so that it is right
in a light and in a dark theme, and shown in a notebook without a display call.  matplotlib is
loaded on first use.
"""

from __future__ import annotations

import base64
import functools
import html
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .graph.format import unwrap
from .graph.style import BLUE, GREEN, GREY, OLIVE, PAPER, PURPLE, SMALL_TEXT, TEXT, VERMILLION

COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, OLIVE, GREY)
MARKS = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 2)))  # colour is never the only carrier


def loss_curve(losses: Any, *, log: bool = True, title: str = "Loss") -> Any:
    """The loss by step: one sequence, or a mapping name → sequence.

    Raises `ValueError` for an empty one.

    >>> len(loss_curve([3.0, 1.0, 0.5]).axes)
    1
    """
    curves = losses if isinstance(losses, Mapping) else {"": losses}
    figure, axes = card(title, "step", "loss")
    positive = True
    for i, (name, values) in enumerate(curves.items()):
        ys = _numbers(values, f"the losses {name}".strip())
        positive &= bool((ys > 0).all())
        axes.plot(ys, color=COLOURS[i % 6], linestyle=MARKS[i % 6], linewidth=2, label=name)
        axes.plot(len(ys) - 1, ys[-1], "o", color=COLOURS[i % 6])
    axes.locator_params(axis="x", integer=True)
    if log and positive:
        axes.set_yscale("log")
    legend(axes, len(curves) > 1)
    return figure


def contour_path(
    f: Callable[[Any, Any], Any],
    path: Any,
    *,
    goal: Sequence[float] | None = None,
    span: float | None = None,
    title: str = "The way down",
) -> Any:
    """The path of gradient descent over the level lines of ``f(x, y)``.

    ``path`` is a sequence of points (x, y); ``goal`` marks the minimum; ``span`` widens the window.
    """
    points = np.asarray([[float(np.asarray(unwrap(c))) for c in p] for p in path], dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"a path is a sequence of points (x, y), but it has shape {points.shape}: "
            "collect (float(x), float(y)) after every step"
        )
    figure, axes = card(title, "x", "y", SQUARE)
    xs, ys = (_window(points[:, i], goal[i] if goal is not None else None, span) for i in (0, 1))
    grid = np.meshgrid(xs, ys)
    heights = np.asarray(f(*grid), dtype=float)
    levels = _levels(heights)
    axes.contourf(xs, ys, heights, levels=levels, colors=_shades(len(levels)), extend="both")
    axes.contour(xs, ys, heights, levels=levels, colors=BLUE, linewidths=0.6)
    axes.plot(*points.T, "-o", color=VERMILLION, markersize=3.5, linewidth=1.8, label="path")
    axes.plot(*points[0], "s", color=GREEN, markersize=9, label="start")
    if goal is not None:
        axes.plot(*goal, "*", color=PURPLE, markersize=15, label="minimum")
    axes.set(xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))
    legend(axes, True)
    return figure


def gradient_sizes(gradients: Mapping[str, Any], *, title: str = "Size of the gradients") -> Any:
    """How large the gradient of each layer is: the root mean square of its elements, as bars.

    ``gradients`` maps names to arrays, Tensors or Variables, in the order of the layers.
    """
    if not gradients:
        raise ValueError("there are no gradients to show: give a mapping name → gradient")
    sizes = {name: _size(unwrap(value)) for name, value in gradients.items()}
    figure, axes = card(title, "root mean square", "", (6.4, 1.5 + 0.34 * len(sizes)))
    names, lengths = list(sizes), list(sizes.values())
    axes.barh(names, lengths, color="#FBD9C3", edgecolor=VERMILLION, linewidth=1.5)
    axes.invert_yaxis()
    positive = [v for v in lengths if v > 0]
    if positive and max(positive) / min(positive) > 100:
        axes.set_xscale("log")
    for i, value in enumerate(lengths):
        word = "0" if value == 0 else f"{value:.2g}"
        at, coords = ((value, i), "data") if value else ((0, i), ("axes fraction", "data"))
        axes.annotate(word, at, (4, 0), coords, "offset points", va="center", color=TEXT)
    axes.margins(x=0.15)
    return figure


def memory_held(
    held: Any, *, backward_from: int | None = None, title: str = "Memory held by saved values"
) -> Any:
    """Bytes of saved values after each operation; ``backward_from`` is where backward begins.

    ``held`` is a sequence of bytes, or a mapping name → sequence to compare several ways.
    """
    curves = held if isinstance(held, Mapping) else {"": held}
    figure, axes = card(title, "operation", "bytes")
    for i, (name, values) in enumerate(curves.items()):
        ys = _numbers(values, f"the bytes {name}".strip())
        style = {"color": COLOURS[i % 6], "linestyle": MARKS[i % 6]}
        axes.step(range(len(ys)), ys, where="post", linewidth=2, label=name, **style)
        axes.fill_between(range(len(ys)), ys, step="post", color=COLOURS[i % 6], alpha=0.12)
        peak = int(np.argmax(ys))
        axes.annotate(
            f"peak {_bytes(ys[peak])}",
            (peak, ys[peak]),
            (4, 6),
            textcoords="offset points",
            color=TEXT,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},  # no line through the words
        )
    if backward_from is not None:
        axes.axvline(backward_from, color=VERMILLION, linestyle="--", linewidth=1.5)
        axes.annotate(
            "backward",
            (backward_from, 0),
            (4, 4),
            textcoords="offset points",
            xycoords=("data", "axes fraction"),
            color=TEXT,
        )
    axes.margins(y=0.15)
    axes.set_ylim(bottom=0)
    legend(axes, len(curves) > 1)
    return figure


def error_valley(
    eps: Any, errors: Any, *, title: str = "The valley of the step size", mark: float | None = None
) -> Any:
    """The error of a numerical derivative by step size: truncation right, rounding left.

    ``errors`` is a sequence, or a mapping name → sequence; ``mark`` marks a step size.
    """
    steps = _numbers(eps, "the step sizes")
    curves = errors if isinstance(errors, Mapping) else {"": errors}
    figure, axes = card(title, "step size", "error")
    for i, (name, values) in enumerate(curves.items()):
        ys = _numbers(values, f"the errors {name}".strip())
        if len(ys) != len(steps):
            raise ValueError(f"{len(steps)} step sizes but {len(ys)} errors: give one for each")
        shown = np.where(ys > 0, ys, np.nan)  # no place for an exact zero on a log scale
        color, line = COLOURS[i % 6], MARKS[i % 6]
        axes.plot(steps, shown, "o", color=color, linestyle=line, markersize=4, label=name)
        if np.isfinite(shown).any():
            best = int(np.nanargmin(shown))
            words = f"best: {steps[best]:.0e}"
            axes.annotate(
                words,
                (steps[best], shown[best]),
                (0, -14),
                textcoords="offset points",
                ha="center",
                color=TEXT,
            )
    axes.set(xscale="log", yscale="log")
    if mark is not None:
        axes.axvline(mark, color=PURPLE, linestyle="--", linewidth=1.5)
    axes.margins(y=0.2)
    legend(axes, len(curves) > 1)
    return figure


def kink(
    f: Callable[[Any], Any],
    derivative: Callable[[Any], Any],
    *,
    at: float = 0.0,
    width: float = 1.0,
    title: str = "A kink has no single slope",
) -> Any:
    """A function with a kink, its slopes on both sides, and what the derivative says there."""
    figure, axes = card(title, "x", "")
    xs = np.linspace(at - width, at + width, 401)
    here = float(np.asarray(f(np.array(at))))
    axes.plot(
        xs, [float(np.asarray(f(np.array(x)))) for x in xs], color=BLUE, linewidth=2.5, label="f"
    )
    for sign, word, line in ((-1, "left", "--"), (1, "right", "-.")):
        slope = float(np.asarray(derivative(np.array(at + sign * 1e-9))))
        ends = np.array([at - width / 2, at + width / 2])
        label = f"slope from the {word}: {slope:.3g}"
        axes.plot(
            ends, here + slope * (ends - at), line, color=VERMILLION, linewidth=1.5, label=label
        )
    said = float(np.asarray(derivative(np.array(at))))
    axes.plot(at, here, "o", color=PURPLE, markersize=8, label=f"the rule says {said:.3g}")
    legend(axes, True)
    return figure


# ---- numbers -----------------------------------------------------------------------------------


def _numbers(values: Any, what: str) -> Any:
    """A sequence of numbers, arrays, Tensors or Variables, as an array."""
    found = np.array([float(np.asarray(unwrap(v))) for v in values], dtype=float)
    if not found.size:
        raise ValueError(f"{what} are empty, there is nothing to plot: give one number per step")
    return found


def _size(gradient: Any) -> float:
    """Root mean square; 0 for a gradient that is None."""
    if gradient is None:
        return 0.0
    array = np.asarray(gradient, dtype=float)
    return float(np.sqrt(np.mean(array**2))) if array.size else 0.0


def _window(values: Any, goal: float | None, span: float | None) -> Any:
    ends = [float(v) for v in values] + ([float(goal)] if goal is not None else [])
    middle, half = (min(ends) + max(ends)) / 2, (max(ends) - min(ends)) / 2
    half = span / 2 if span is not None else max(half * 1.25, 1e-3)
    return np.linspace(middle - half, middle + half, 160)


def _levels(heights: Any) -> Any:
    """Level lines close together where the surface is flat: quantiles of the heights."""
    found = np.unique(np.quantile(heights[np.isfinite(heights)], np.linspace(0.02, 0.98, 14)))
    return found if found.size > 1 else np.array([found[0], found[0] + 1.0])


def _shades(count: int) -> list[str]:
    """Blue, from paper to the fill of an operator."""
    light, dark = (0xF6, 0xFA, 0xFD), (0xB5, 0xD6, 0xEC)
    mix = [
        [round(a + (b - a) * k / count) for a, b in zip(light, dark, strict=True)]
        for k in range(count + 1)
    ]
    return [f"#{r:02X}{g:02X}{b:02X}" for r, g, b in mix]


def _bytes(number: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if number < 10_000:
            return f"{number:.4g} {unit}"
        number /= 1000
    return f"{number:.4g} GB"


# ---- The paper that plots are drawn on: a card on a transparent page, in the colours of the pictures ----


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
