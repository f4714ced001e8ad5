"""The widget of a big picture in a real browser, on a page of its own."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz import draw
from minigrad.viz.picture import Picture
from tests.viz.test_explorer import folded
from tests.viz.test_hostile_names import NAMES, everywhere
from tests.viz.test_view import loop

pytestmark = pytest.mark.browser


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_searches_what_is_drawn_and_what_is_folded(show, scheme, monkeypatch):
    monkeypatch.setattr("minigrad.viz.render.html._DRAWINGS", 0)
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


def test_the_keyboard_reaches_everything_and_a_page_says_what_it_cannot_open(show, monkeypatch):
    monkeypatch.setattr("minigrad.viz.render.html._DRAWINGS", 0)
    picture, kept = folded()
    page = show(picture)
    page.focus(".mg-explorer")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.className") == "mg-query"
    box = page.locator("g.mg-fold").first
    assert "folded; open" in box.get_attribute("aria-label")
    box.focus()
    page.keyboard.press("Enter")
    assert "too much in it for this page" in page.text_content(".mg-say")
    assert page.get_attribute(".mg-say", "aria-live") == "polite"
    assert page.locator(".mg-fold-back").is_hidden()
    assert kept


def test_boxes_of_a_picture_open(show):
    loss, middle = loop(20)
    page = show(draw(loss, names={"loss": loss, "middle": middle}))
    folded = page.locator("g.node").count()
    page.locator("g.mg-fold.fwd").focus()
    page.keyboard.press("Enter")
    page.locator(".mg-say", has_text="into 10 parts").wait_for()
    parts = page.locator("g.node").count()
    assert parts > folded
    assert page.evaluate("document.activeElement.matches('g.mg-fold.fwd')")  # the focus stays
    page.locator("g.mg-fold.bwd").nth(3).click(position={"x": 9, "y": 9})
    page.locator("g.node").nth(parts).wait_for(state="attached")
    page.focus(".mg-explorer")
    page.keyboard.press("Backspace")
    assert page.text_content(".mg-say") == "Folded back."
    assert page.locator("g.node").count() == parts
    page.click(".mg-fold-all")
    assert page.text_content(".mg-say") == "Everything is folded."
    assert page.locator("g.node").count() == folded
    assert searched(page, "middle") == "1 match in folded boxes"
    for _ in range(2):  # the box, then the part of it
        page.press(".mg-query", "Enter")
        page.locator("[aria-busy]").wait_for(state="detached")
    assert page.locator("g.mg-here").count() == 1


MIDDLES = """() => [...document.querySelectorAll('g.node')].map(group => {
    const box = group.querySelector('polygon, ellipse, path').getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2]; })"""


@pytest.mark.parametrize("part", range(6))  # so that two workers share it
def test_hostile_names_are_searched_hovered_and_clicked_and_nothing_runs(show, part):
    for name in NAMES[part::6]:
        page = show(Picture(everywhere(name)))
        for x, y in page.evaluate(MIDDLES):
            page.mouse.move(x, y)
            page.mouse.click(x, y)
        assert page.locator(".mg-pic g.node").count() == 5
        searched(page, name[:40].replace("\n", " "))
        page.press(".mg-query", "Enter")
        scripts = page.locator("main script, main iframe, main img, main a, main foreignObject")
        assert scripts.count() == 0


@pytest.fixture(scope="module")
def thousand():
    """A picture of 1,045 nodes, in full, with a search."""
    weights = [mg.tensor(np.ones(3), requires_grad=True, name=f"w{i}") for i in range(130)]
    h = mg.tensor(np.ones(3))
    for w in weights:
        h = mg.tanh(h * w)
    loss = h.sum()
    loss.backward()
    return mg.draw(loss, detail="full", widget=True), weights


def at_rest(page):
    """How far down a picture is when it has stopped moving: it does not jump."""
    places = [-1]
    for _ in range(50):
        places.append(page.evaluate("document.querySelector('.mg-pic').scrollTop"))
        if places[-3:].count(places[-1]) == 3:
            break
        page.wait_for_timeout(200)
    return places[-1]


def test_a_large_picture_has_a_map_finds_a_gradient_and_its_targets_are_large(show, thousand):
    page = show(thousand[0])
    assert searched(page, "w77.grad") == "1 match"
    page.press(".mg-query", "Enter")
    assert page.text_content(".mg-say").endswith("w77.grad")
    assert page.is_visible(".mg-map")
    before = at_rest(page)
    assert before > 1000
    box = page.locator(".mg-map").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 4)
    assert at_rest(page) < before
    small = page.evaluate(
        "() => [...document.querySelectorAll('button, input, g.node')].map(e => "
        "e.getBoundingClientRect()).filter(b => b.width && (b.width < 24 || b.height < 24)).length"
    )
    assert small == 0


def test_two_fingers_change_the_size_of_a_picture(browser, thousand, tmp_path):
    context = browser.new_context(viewport={"width": 850, "height": 800}, has_touch=True)
    page = context.new_page()
    page.goto(thousand[0].save(tmp_path / "picture.html").as_uri())
    page.wait_for_selector(".mg-pic svg")
    wide = "document.querySelector('.mg-pic svg').getBoundingClientRect().width"
    before, device = page.evaluate(wide), context.new_cdp_session(page)
    for kind, apart in [("touchStart", 100), *(("touchMove", d) for d in (120, 160, 200))]:
        points = [{"x": 350 + k * apart / 2, "y": 400, "id": k} for k in (-1, 1)]
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    device.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert page.evaluate(wide) > 1.4 * before  # a browser may swallow the first moves
    context.close()
