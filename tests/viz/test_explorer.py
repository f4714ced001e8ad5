"""The widget of a big picture: in Python, on a page of its own, and in JupyterLab."""

from __future__ import annotations

import os
import shutil

import pytest

import minigrad as mg
from minigrad.viz import draw, layout
from minigrad.viz.graph import Graph
from minigrad.viz.picture import Picture
from tests.viz.test_hostile_names import NAMES, everywhere
from tests.viz.test_view import loop

needs_layout = pytest.mark.skipif(not layout.available(), reason="no layout engine")
VIEW = "application/vnd.jupyter.widget-view+json"


def folded():
    loss, middle = loop(300)
    return draw(loss, names={"loss": loss, "middle": middle}), (loss, middle)


def asked(widget, **question):
    widget.ask = {**question, "number": len(str(widget.ask)) + widget.drawn}
    return widget.message


# ---- in Python -----------------------------------------------------------------------------------


@needs_layout
def test_a_notebook_gets_the_widget_of_a_folded_picture_beside_its_drawing_and_its_text():
    pytest.importorskip("anywidget")
    picture, kept = folded()
    assert set(picture._repr_mimebundle_()) == {"text/plain", "image/svg+xml", "image/png", VIEW}
    assert kept


@needs_layout
def test_a_small_picture_has_a_widget_only_on_request():
    pytest.importorskip("anywidget")
    x = mg.tensor(2.0, requires_grad=True)
    assert VIEW not in draw(x * x)._repr_mimebundle_()
    assert VIEW in draw(x * x, widget=True)._repr_mimebundle_()


@needs_layout
def test_without_widgets_the_drawing_and_the_text_remain(monkeypatch):
    def none():
        raise ImportError("anywidget")

    monkeypatch.setattr("minigrad.viz.explorer._widget_class", none)
    picture, kept = folded()
    assert set(picture._repr_mimebundle_()) == {"text/plain", "image/svg+xml", "image/png"}
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
    before = widget.svg
    box = next(iter(widget.folds))
    assert asked(widget, what="open", node=box).startswith("Opened 300 ×")
    assert widget.svg != before
    assert widget.opened == 1
    asked(widget, what="search", text="middle")
    assert sum(widget.found["inside"].values()) == 1
    (inside,) = widget.found["inside"]
    assert asked(widget, what="open", node=inside, text="middle").startswith("Found middle")
    assert widget.focus in widget.names
    assert widget.found["inside"] == {}
    assert asked(widget, what="back") == "Folded back."
    assert asked(widget, what="all") == "Everything is folded."
    assert widget.svg == before
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
    box = next(iter(widget.folds))
    assert asked(widget, what="open", node=box) == "Too much for a picture: it stays folded."
    assert (widget.svg, widget.opened) == (before, 0)
    assert kept


# ---- on a page of its own ------------------------------------------------------------------------

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def show(browser, tmp_path):
    """Open saved pictures; afterwards nothing may have gone wrong or left the machine."""
    happened, pages = [], []

    def opened(picture, scheme="light"):
        page = pages[0] if pages else browser.new_page(color_scheme=scheme)
        if not pages:
            pages.append(page)
            page.on("dialog", lambda d: (happened.append(d.message), d.dismiss()))
            page.on("console", lambda m: happened.append(m.text))
            page.on("pageerror", lambda e: happened.append(str(e)))
            page.on("request", lambda r: None if "file:" in r.url else happened.append(r.url))
        page.goto(picture.save(tmp_path / "picture.html").as_uri())
        page.wait_for_selector(".mg-explorer .mg-pic > *")
        return page

    yield opened
    for page in pages:
        page.close()
    assert happened == []


def searched(page, text):
    page.fill(".mg-query", text)
    page.wait_for_timeout(250)
    return page.text_content(".mg-count")


@pytest.mark.browser
@needs_layout
@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_without_a_kernel_searches_what_is_drawn_and_what_is_folded(show, scheme):
    picture, kept = folded()
    page = show(picture, scheme)
    assert searched(page, "middle") == "1 match in folded boxes"
    assert page.locator("g.mg-hit").count() == 1
    page.press(".mg-query", "Enter")
    assert page.locator("g.mg-here").count() == 1
    assert "with 1 match inside" in page.text_content(".mg-say")
    assert searched(page, "no such name") == "no match"
    assert searched(page, "LOSS").startswith("2 matches")  # the value and its gradient
    for name in ("loss", "loss.grad"):
        page.press(".mg-query", "Enter")
        assert page.text_content(".mg-say").endswith(f": {name}")
    page.press(".mg-query", "Shift+Enter")
    assert page.text_content(".mg-say") == "1 of 2: loss"
    page.press(".mg-query", "Escape")
    assert page.text_content(".mg-count") == ""
    assert page.locator("g.mg-hit").count() == 0
    assert kept


@pytest.mark.browser
@needs_layout
@needs_chromium
def test_the_keyboard_reaches_everything_and_a_page_says_that_it_has_no_kernel(show):
    picture, kept = folded()
    page = show(picture)
    page.focus(".mg-explorer")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.className") == "mg-query"
    box = page.locator("g.mg-fold").first
    assert "folded; open" in box.get_attribute("aria-label")
    box.focus()
    page.keyboard.press("Enter")
    assert "no kernel" in page.text_content(".mg-say")
    assert page.get_attribute(".mg-say", "aria-live") == "polite"
    assert page.locator(".mg-fold-back").is_hidden()
    assert kept


MIDDLES = """() => [...document.querySelectorAll('g.node')].map(group => {
    const box = group.querySelector('polygon, ellipse, path').getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2]; })"""


@pytest.mark.browser
@needs_layout
@needs_chromium
def test_hostile_names_are_searched_hovered_and_clicked_and_nothing_runs(show):
    for name in NAMES:
        page = show(Picture(everywhere(name)))
        for x, y in page.evaluate(MIDDLES):
            page.mouse.move(x, y)
            page.mouse.click(x, y)
        assert page.locator(".mg-pic g.node").count() == 5
        searched(page, name[:40].replace("\n", " "))
        page.press(".mg-query", "Enter")
        scripts = page.locator("main script, main iframe, main img, main a, main foreignObject")
        assert scripts.count() == 0


def test_an_empty_graph_makes_a_page(tmp_path):
    assert "mg-explorer" in Picture(Graph()).save(tmp_path / "a.html").read_text(encoding="utf-8")
