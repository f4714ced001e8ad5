"""The window of a widget in a real browser: readable words, zoom, drag, keys, the node in view."""

from __future__ import annotations

import pytest

from minigrad.viz.player import play
from tests.viz import sample_programs as samples

pytestmark = pytest.mark.browser
SMALLEST = """() => Math.min(...[...document.querySelectorAll('.mg-pic text')].map(text =>
    parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""
WINDOW = """() => { const pic = document.querySelector('.mg-pic');
    return {left: pic.scrollLeft, top: pic.scrollTop, wide: pic.scrollWidth, high: pic.scrollHeight,
            over: pic.scrollWidth > pic.clientWidth || pic.scrollHeight > pic.clientHeight,
            part: pic.offsetHeight / innerHeight}; }"""
A_NODE = """() => { const box = document.querySelector('.mg-pic').getBoundingClientRect();
    for (const group of document.querySelectorAll('g.node.op')) {
        const at = group.getBoundingClientRect(), x = at.x + at.width / 2, y = at.y + at.height / 2;
        if (x > box.left + 80 && x < box.right && y > box.top + 50 && y < box.bottom) return [x, y];
    } }"""
IN_VIEW = """() => { const box = document.querySelector('.mg-pic').getBoundingClientRect();
    return [...document.querySelectorAll('g.active')].some(group => {
        const at = group.getBoundingClientRect();
        return at.left >= box.left && at.right <= box.right && at.top >= box.top
            && at.bottom <= box.bottom; }); }"""


@pytest.fixture
def page(browser, tmp_path):
    """A player wider and higher than its small page, for people who want no motion."""
    opened = browser.new_page(viewport={"width": 420, "height": 700}, reduced_motion="reduce")
    errors = []
    opened.on("pageerror", lambda e: errors.append(str(e)))
    opened.goto(play(samples.while_loop()).save(tmp_path / "player.html").as_uri())
    opened.wait_for_selector(".mg-pic svg")
    yield opened
    opened.close()
    assert errors == []


def test_words_can_be_read_and_the_window_is_bounded(page):
    seen = page.evaluate(WINDOW)
    assert page.evaluate(SMALLEST) >= 9
    assert seen["over"]
    assert seen["part"] <= 0.7


def test_the_node_of_a_step_is_always_in_view(page):
    page.focus(".mg-player")
    for _ in range(len(play(samples.while_loop()).events)):
        page.keyboard.press("ArrowRight")
        assert page.evaluate(IN_VIEW), page.get_attribute(".mg-player", "data-frame")


def test_buttons_keys_and_the_wheel_zoom(page):
    first = page.evaluate(WINDOW)
    page.click(".mg-in")
    larger = page.evaluate(WINDOW)
    assert larger["wide"] == pytest.approx(1.25 * first["wide"], rel=0.01)
    page.click(".mg-out")
    assert page.evaluate(WINDOW)["wide"] == first["wide"]
    page.focus(".mg-player")
    page.keyboard.press("+")
    assert page.evaluate(WINDOW)["wide"] == larger["wide"]
    page.keyboard.press("0")
    assert not page.evaluate(WINDOW)["over"]
    assert page.get_attribute(".mg-fit", "aria-pressed") == "true"
    page.keyboard.press("0")
    assert page.evaluate(WINDOW)["wide"] == first["wide"]
    page.hover(".mg-pic")
    page.mouse.wheel(0, 100)  # without Ctrl it scrolls
    page.wait_for_timeout(300)
    assert page.evaluate(WINDOW)["wide"] == first["wide"]
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_timeout(300)
    assert page.evaluate(WINDOW)["wide"] > first["wide"]


def test_a_drag_moves_the_drawing_and_is_no_click_on_a_node(page):
    x, y = page.evaluate(A_NODE)
    before = page.evaluate(WINDOW)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y - 30, steps=4)
    page.mouse.up()
    seen = page.evaluate(WINDOW)
    assert seen["left"] - before["left"] == pytest.approx(60, abs=1)
    assert seen["top"] - before["top"] == pytest.approx(30, abs=1)
    assert page.get_attribute(".mg-player", "data-frame") == "0"
    page.mouse.click(x - 60, y - 30)
    assert page.get_attribute(".mg-player", "data-frame") != "0"


def test_the_keyboard_scrolls_the_window_when_it_has_the_focus_which_is_seen(page):
    page.focus(".mg-range")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className").startswith("mg-pic")
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(style) == "solid"
    before = page.evaluate(WINDOW)
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(400)
    assert page.evaluate(WINDOW)["left"] > before["left"]
    assert page.get_attribute(".mg-player", "data-frame") == "0"


def test_a_drawing_that_fits_is_no_stop_on_the_way_of_the_keyboard(browser, tmp_path):
    import minigrad as mg

    x = mg.tensor(2.0, requires_grad=True, name="x")
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(play(x * x).save(tmp_path / "small.html").as_uri())
    page.wait_for_selector(".mg-pic svg")
    assert page.get_attribute(".mg-pic", "tabindex") is None
    assert not page.evaluate(WINDOW)["over"]
    page.close()
