"""Plots: what they show, and that they are readable on any page."""

from __future__ import annotations

import base64
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from minigrad.viz import plots
from minigrad.viz import plots as paper
from minigrad.viz.graph.style import PAPER
from tests.viz.palette import contrast


def bowl(x, y):
    return x**2 + 4 * y**2


def path():
    point, points = np.array([3.0, 2.0]), []
    for _ in range(20):
        points.append(point.copy())
        point = point - 0.1 * np.array([2 * point[0], 8 * point[1]])
    return points


EPS = 10.0 ** -np.arange(1, 16)
ERRORS = EPS**2 + 1e-16 / EPS


def every_plot():
    return {
        "loss": plots.loss_curve({"sgd": [3.0, 2.0, 1.0], "adam": [3.0, 1.0, 0.2]}),
        "path": plots.contour_path(bowl, path(), goal=(0, 0)),
        "sizes": plots.gradient_sizes({"w1": np.ones(3), "w2": np.full(3, 1e-4), "w3": None}),
        "memory": plots.memory_held([0, 8, 16, 24, 16, 8, 0], backward_from=3),
        "valley": plots.error_valley(EPS, ERRORS, mark=1e-4),
        "kink": plots.kink(lambda x: np.maximum(x, 0), lambda x: float(x > 0)),
    }


@pytest.fixture(scope="module")
def drawn():
    return every_plot()


def test_every_plot_is_a_figure_that_shows_itself(drawn):
    for figure in drawn.values():
        assert isinstance(figure, Figure)
        bundle = figure._repr_mimebundle_()
        assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
        assert bundle["text/plain"].startswith("<plot: ")


def test_a_screen_reader_is_told_what_a_plot_shows(drawn):
    for name, words in {
        "sizes": "Size of the gradients: a plot of root mean square",
        "memory": "Memory held by saved values: a plot of bytes over operation",
    }.items():
        bundle = drawn[name]._repr_mimebundle_()
        pixels = f"data:image/png;base64,{bundle['image/png']}"
        assert bundle["text/html"] == f'<img alt="{words}" src="{pixels}">'
    said = plots.loss_curve({"<plain>": [3, 1], "momentum": [3, 2]}).words()
    assert said == "Loss: a plot of loss over step, with <plain>, momentum"


def test_the_page_shines_through_and_every_text_stands_on_paper(drawn):
    for name, figure in drawn.items():
        assert figure.patch.get_alpha() == 0
        for text in figure.findobj(Text):
            if text.get_text() and text.get_visible():
                assert contrast(to_hex(text.get_color()).upper(), PAPER) >= 4.5, (name, text)


def test_strokes_are_strong_enough_and_differ_in_more_than_colour(drawn):
    lines = drawn["loss"].axes[0].lines[::2]
    assert len({line.get_linestyle() for line in lines}) == 2
    for line in lines:
        assert contrast(to_hex(line.get_color()).upper(), PAPER) >= 3


def test_the_loss_has_a_log_scale_only_where_every_loss_is_positive():
    assert plots.loss_curve([3.0, 1.0]).axes[0].get_yscale() == "log"
    assert plots.loss_curve([3.0, -1.0]).axes[0].get_yscale() == "linear"


def test_the_path_lies_inside_the_window(drawn):
    axes = drawn["path"].axes[0]
    (low, high), points = axes.get_xlim(), np.array(path())
    assert low < points[:, 0].min()
    assert high > points[:, 0].max()


def test_the_bar_of_a_layer_is_the_root_mean_square_of_its_gradient():
    bars = plots.gradient_sizes({"a": np.array([3.0, 4.0]), "b": np.zeros(2)}).axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx([np.sqrt(12.5), 0.0])


def test_the_best_step_size_is_named(drawn):
    words = [text.get_text() for text in drawn["valley"].axes[0].texts]
    assert words == [f"best: {EPS[np.argmin(ERRORS)]:.0e}"]


def test_a_kink_tells_both_slopes_and_what_the_rule_says(drawn):
    words = [text.get_text() for text in drawn["kink"].axes[0].get_legend().get_texts()]
    assert words == ["f", "slope from the left: 0", "slope from the right: 1", "the rule says 0"]


def test_values_may_be_tensors_and_variables():
    class Box:
        def __init__(self, data):
            self.data = data

    assert plots.loss_curve([Box(np.array(2.0)), Box(1.0)]).axes[0].lines[0].get_ydata()[0] == 2


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="the losses are empty"):
        plots.loss_curve([])
    with pytest.raises(ValueError, match="15 step sizes but 2 errors"):
        plots.error_valley(EPS, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"a sequence of points \(x, y\)"):
        plots.contour_path(bowl, [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="no gradients"):
        plots.gradient_sizes({})


def test_matplotlib_is_loaded_on_first_use():
    code = "import sys, minigrad.viz.plots; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    paper._plot_class.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'minigrad\[course\]'"):
        plots.loss_curve([1.0, 0.5])
