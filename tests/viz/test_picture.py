"""draw: what it takes, what it calls things, and what it writes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from minigrad.viz import Graph, Picture, draw
from minigrad.viz.graph.format import explain_value, format_value, same_value
from tests.viz.linked_nodes import Square, Variable, backward
from tests.viz.needs import needs_layout


def names_of(picture):
    return [n.name for n in picture.graph.nodes.values() if n.kind in ("leaf", "value", "output")]


# Names ----------------------------------------------------------------------------------------


def test_names_come_from_the_variables_of_the_caller():
    start = Variable(2.0)
    result = Square()(Square()(start))
    assert names_of(draw(result)) == ["start", "%1", "result"]


def test_a_name_of_its_own_comes_before_the_variable_and_a_given_name_before_both():
    x = Variable(2.0, "own")
    y = Square()(x)
    assert names_of(draw(y)) == ["own", "y"]
    assert names_of(draw(y, names={"given": x})) == ["given", "y"]


def test_local_variables_come_before_global_ones():
    assert names_of(draw(GLOBAL)) == ["GLOBAL"]
    local = GLOBAL
    assert names_of(draw(local)) == ["local"]


GLOBAL = Variable(1.0)


def test_names_with_an_underscore_are_old_results_of_a_notebook_and_not_used():
    _7 = Variable(2.0)
    assert names_of(draw(_7)) == ["%1"]


def test_the_first_of_several_variables_gives_the_name():
    first = Variable(2.0)
    second = first
    assert names_of(draw(second)) == ["first"]


# What draw takes ------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [3, "x", None, [], {"x": 1}, np.ones(3), object()])
def test_something_without_a_graph_is_refused_by_its_type(wrong):
    with pytest.raises(TypeError, match=f"nothing to draw in '{type(wrong).__name__}'"):
        draw(wrong)


def test_a_graph_and_a_picture_can_be_drawn():
    g = Graph()
    g.node("leaf", "x")
    assert draw(g).graph is g
    assert draw(Picture(g)).graph is g


def test_a_picture_drawn_in_another_direction_leaves_the_first_as_it_was():
    first = draw(Square()(Variable(2.0)))
    before = first.graphviz.source
    assert draw(first, direction="LR").graphviz.source != before
    assert first.graphviz.source == before


def test_the_direction_can_be_chosen_and_is_checked():
    assert "rankdir=TB" in draw(Variable(1.0), direction="TB").dot
    with pytest.raises(ValueError, match="'up'; known: LR, TB"):
        draw(Variable(1.0), direction="up")


# What a picture gives -------------------------------------------------------------------------


@needs_layout
def test_a_notebook_gets_a_figure_svg_pixels_and_text():
    y = Square()(Variable(2.0))
    bundle = draw(y)._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "image/png", "text/plain"}
    assert bundle["image/svg+xml"].startswith("<svg")


@needs_layout
@pytest.mark.parametrize(
    ("ending", "start"),
    [
        ("svg", b"<svg"),
        ("png", b"\x89PNG"),
        ("pdf", b"%PDF"),
        ("dot", b"digraph"),
        ("html", b"<!DOCTYPE html>"),
        ("txt", b"y\nforward"),
    ],
)
def test_files_of_six_kinds_are_written(ending, start, tmp_path):
    y = Square()(Variable(2.0))
    assert draw(y).save(tmp_path / f"a.{ending}").read_bytes().startswith(start)


def test_another_ending_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"'a.jpg'.*\.svg, \.png, \.pdf, \.dot, \.html, \.txt"):
        draw(Variable(1.0)).save(tmp_path / "a.jpg")


@needs_layout
def test_a_page_needs_nothing_from_elsewhere(tmp_path):
    y = Square()(Variable(2.0))
    backward(y)
    page = draw(y).save(tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Square.backward" in page
    assert "src=" not in page
    assert "href=" not in page


def test_a_picture_prints_as_text():
    y = Square()(Variable(2.0))
    assert str(draw(y)) == repr(draw(y)) == draw(y).text


# Values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "—"),
        (0.0, "0"),
        (3.297442541400256, "3.2974"),
        (np.array(1e-12), "1e-12"),
        (True, "True"),
        (12345678, "1.2346e+07"),
        (np.nan, "nan"),
        (np.array([1, 2, 3]), "[1, 2, 3]"),
        (np.eye(2), "[[1, 0], [0, 1]]"),
        (np.zeros(5), "[5] float64"),
        (np.zeros((0, 3)), "[0,3] float64"),
        (np.float32(0.1), "0.1"),
        (1 + 2j, "1+2j"),
        ("text", "str text"),
        ([[1], [2, 3]], "list"),
    ],
)
def test_values_are_shown_in_at_most_five_digits(value, shown):
    assert format_value(value) == shown


def test_a_gradient_that_is_a_variable_is_shown_by_its_array():
    assert format_value(Variable(2.5)) == "2.5"
    assert same_value(Variable(2.5), np.array(2.5))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "not computed yet"),
        (np.arange(6.0), "float64 [6], min 0, mean 2.5, max 5, ‖·‖ 7.42: [0, 1, 2, 3, 4, 5]"),
        (np.array(1 / 3), "float64 [], 0.3333333333333333"),
        (np.zeros(0), "float64 [0], empty"),
        (np.array([1.0, np.nan]), "float64 [2], 1 of 2 not finite: [1, nan]"),
        (object(), "object"),
    ],
)
def test_tooltips_tell_the_whole_value_or_its_statistics(value, told):
    assert explain_value(value) == told


# Loading --------------------------------------------------------------------------------------


def test_looking_at_the_pictures_loads_nothing_heavy():
    code = (
        "import sys, minigrad.viz as v; v.draw, v.watch; "
        "heavy = 'graphviz pygraphviz matplotlib IPython ipywidgets'.split(); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_draw_and_watch_are_functions_whatever_was_imported_first():
    code = (
        "import minigrad.viz.picture, minigrad.viz.adapters.watching, minigrad.viz.player; "
        "from minigrad.viz import draw, watch; "
        "print(callable(draw), callable(watch))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True True"


def test_a_picture_goes_on_as_a_source_of_the_graphviz_package():
    picture = draw(Variable(1.0, name="x"))
    assert type(picture.graphviz).__module__ == "graphviz.sources"
    assert picture.graphviz.source == picture.dot
