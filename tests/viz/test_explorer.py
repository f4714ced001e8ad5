"""The page of a big picture: its search, and what its boxes open into."""

from __future__ import annotations

import minigrad as mg
from minigrad.viz import draw
from minigrad.viz.graph.graph import Graph
from minigrad.viz.picture import Picture
from minigrad.viz.render import layout
from minigrad.viz.render.html import drawings
from tests.viz.graphs import GRAPHS
from tests.viz.needs import needs_layout
from tests.viz.test_view import loop


def folded():
    loss, middle = loop(300)
    return draw(loss, names={"loss": loss, "middle": middle}), (loss, middle)


@needs_layout
def test_a_small_picture_has_a_search_only_on_request():
    x = mg.tensor(2.0, requires_grad=True)
    assert "mg-query" not in draw(x * x)._repr_mimebundle_()["text/html"]
    assert "mg-query" in draw(x * x, widget=True)._repr_mimebundle_()["text/html"]


@needs_layout
def test_boxes_of_a_picture_lead_to_drawings_of_what_is_inside():
    loss, middle = loop(20)
    picture = draw(loss, names={"loss": loss, "middle": middle})
    shown = picture._drawings
    assert shown[0]["folds"].keys() == shown[0]["opens"].keys()
    assert {n for each in shown for n in each["opens"].values()} == set(range(1, len(shown)))
    assert len(picture.graph.nodes) == len(shown[0]["names"])  # the picture itself stays as it was


@needs_layout
def test_boxes_of_a_picture_that_is_folded_to_fit_lead_to_drawings_though_it_was_never_shown():
    shown = GRAPHS["third_order"]()._drawings
    assert len(shown) > 1
    assert shown[0]["folds"].keys() == shown[0]["opens"].keys()


def test_without_a_layout_engine_there_is_text(monkeypatch):
    monkeypatch.setattr(layout, "ENGINES", ())
    picture, kept = folded()
    assert set(picture._repr_mimebundle_()) == {"text/plain"}
    assert kept


def test_an_empty_graph_makes_a_page(tmp_path):
    assert "mg-explorer" in Picture(Graph()).save(tmp_path / "a.html").read_text(encoding="utf-8")


def test_a_loop_inside_a_loop_opens_one_after_the_other():
    picture = GRAPHS["program_nested_loops"]()
    assert "text/html" in picture._repr_mimebundle_()
    opened = picture._drawings[1:]
    assert len(opened) > 1
    assert all(each["svg"] for each in opened)


def test_after_a_drawing_that_took_too_long_no_other_is_tried():
    asked = []

    def slow(view):
        asked.append(view)
        return "<svg/>" if len(asked) == 1 else None

    picture, kept = folded()
    (shown,) = drawings(picture.view, slow)
    assert len(shown["folds"]) > 1 and not shown["opens"]
    assert len(asked) == 2
    assert kept
