"""The widget of a big picture, asked in Python."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz import draw
from minigrad.viz.graph.graph import Graph
from minigrad.viz.picture import Picture
from minigrad.viz.render import layout
from tests.viz.needs import needs_layout
from tests.viz.test_view import loop

PLAIN = {"text/plain", "text/html", "image/svg+xml", "image/png"}
VIEW = "application/vnd.jupyter.widget-view+json"


def folded():
    loss, middle = loop(300)
    return draw(loss, names={"loss": loss, "middle": middle}), (loss, middle)


def asked(widget, **question):
    widget.ask = {**question, "number": len(str(widget.ask)) + len(str(widget.shown))}
    return widget.shown["message"]


@needs_layout
def test_a_notebook_that_somebody_looks_at_gets_the_widget_of_a_folded_picture(monkeypatch):
    pytest.importorskip("anywidget")
    picture, kept = folded()
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert set(picture._repr_mimebundle_()) == PLAIN
    monkeypatch.setenv("JPY_SESSION_NAME", "book.ipynb")
    assert set(picture._repr_mimebundle_()) == PLAIN | {VIEW}
    assert kept


@needs_layout
def test_a_small_picture_has_a_search_only_on_request():
    x = mg.tensor(2.0, requires_grad=True)
    assert "mg-query" not in draw(x * x)._repr_mimebundle_()["text/html"]
    assert "mg-query" in draw(x * x, widget=True)._repr_mimebundle_()["text/html"]


@needs_layout
def test_boxes_of_a_picture_that_is_small_lead_to_drawings_of_what_is_inside():
    loss, middle = loop(20)
    picture = draw(loss, names={"loss": loss, "middle": middle})
    shown = picture._drawings
    assert shown[0]["folds"].keys() == shown[0]["opens"].keys()
    assert {n for each in shown for n in each["opens"].values()} == set(range(1, len(shown)))
    assert len(picture.graph.nodes) == len(shown[0]["names"])  # the picture itself stays as it was


@needs_layout
def test_where_every_box_opens_in_the_page_no_kernel_is_asked(monkeypatch):
    w = mg.tensor(np.ones((2, 2)), requires_grad=True)
    h = w
    for _ in range(4):
        h = mg.tanh(h @ w + mg.sin(h))
    picture = draw((h * h).sum(), detail="folded")
    assert picture.interactive
    monkeypatch.setenv("JPY_SESSION_NAME", "book.ipynb")
    assert set(picture._repr_mimebundle_()) == PLAIN  # no kernel is needed


@needs_layout
def test_without_widgets_the_drawing_and_the_text_remain(monkeypatch):
    def none():
        raise ImportError("anywidget")

    monkeypatch.setattr("minigrad.viz.render.html._widget_class", none)
    picture, kept = folded()
    monkeypatch.setenv("JPY_SESSION_NAME", "book.ipynb")
    assert set(picture._repr_mimebundle_()) == PLAIN
    assert kept


def test_without_a_layout_engine_there_is_no_widget(monkeypatch):
    monkeypatch.setattr(layout, "ENGINES", ())
    picture, kept = folded()
    assert set(picture._repr_mimebundle_()) == {"text/plain"}
    assert kept


@needs_layout
def test_the_kernel_answers_with_a_new_drawing_and_a_sentence():
    pytest.importorskip("anywidget")
    picture, kept = folded()
    widget = picture.widget
    before = widget.shown["svg"]
    box = next(iter(widget.shown["folds"]))
    assert asked(widget, what="open", node=box).startswith("Opened 300 ×")
    assert widget.shown["svg"] != before
    assert widget.shown["opened"] == 1
    asked(widget, what="search", text="middle")
    assert sum(widget.found["inside"].values()) == 1
    (inside,) = widget.found["inside"]
    assert asked(widget, what="open", node=inside, text="middle").startswith("Found middle")
    assert widget.shown["focus"] in widget.shown["names"]
    assert widget.found["inside"] == {}
    assert asked(widget, what="back") == "Folded back."
    assert asked(widget, what="all") == "Everything is folded."
    assert widget.shown["svg"] == before
    assert picture.svg == before  # the picture itself stays as it was
    assert kept


@needs_layout
@pytest.mark.parametrize(
    "question", [{}, {"what": "open"}, {"what": 7}, {"what": "open", "node": []}]
)
def test_a_question_nobody_asks_is_answered_without_an_error(question):
    pytest.importorskip("anywidget")
    picture, kept = folded()
    assert asked(picture.widget, **question) in (
        "There is nothing to open.",
        "Everything is folded.",
    )
    assert kept


@needs_layout
def test_what_cannot_be_laid_out_stays_folded(monkeypatch):
    pytest.importorskip("anywidget")
    picture, kept = folded()
    widget, before = picture.widget, picture.svg
    monkeypatch.setattr(layout, "SIZE_LIMIT", len(picture.dot) + 10)
    box = next(iter(widget.shown["folds"]))
    assert asked(widget, what="open", node=box) == "Too much for a picture: it stays folded."
    assert (widget.shown["svg"], widget.shown["opened"]) == (before, 0)
    assert kept


def test_an_empty_graph_makes_a_page(tmp_path):
    assert "mg-explorer" in Picture(Graph()).save(tmp_path / "a.html").read_text(encoding="utf-8")
