"""Pictures and players inside a page, in a real browser: alive without a kernel, by keyboard, in both themes."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz.picture import Picture
from minigrad.viz.player import play
from tests.viz.graphs import GRAPHS
from tests.viz.test_hostile_names import NAMES, everywhere

pytestmark = pytest.mark.browser
PAGE = "<!DOCTYPE html><meta charset=utf-8><body style='margin:0;background:{}'>{}</body>"


@pytest.fixture
def show(browser, tmp_path):
    """A page with what a notebook shows; afterwards nothing may have gone wrong or left the machine."""
    happened, pages = [], []

    def opened(thing, paper="#fff", width=850):
        page = browser.new_page(viewport={"width": width, "height": 800})
        pages.append(page)
        page.on("dialog", lambda d: (happened.append(d.message), d.dismiss()))
        page.on("console", lambda m: happened.append(m.text))
        page.on("pageerror", lambda e: happened.append(str(e)))
        page.on("request", lambda r: happened.append(r.url) if r.url.startswith("http") else None)
        file = tmp_path / "page.html"
        file.write_text(PAGE.format(paper, thing._repr_mimebundle_()["text/html"]), "utf-8")
        page.goto(file.as_uri())
        page.wait_for_timeout(300)
        return page

    yield opened
    for page in pages:
        page.close()
    assert happened == []


def inside(page):
    return page.frame_locator("iframe").first


def test_nodes_are_reached_by_keyboard_and_read_in_a_panel(show):
    picture = GRAPHS["three_operations"]()
    page = show(picture)
    assert page.locator("g.node[tabindex='0']").count() == 1
    page.keyboard.press("Tab")
    seen = set()
    for key in ["ArrowDown"] * 12 + ["ArrowRight"] + ["ArrowUp"] * 12:
        page.keyboard.press(key)
        seen.add(page.text_content(".mg-details b"))
    assert {"mul", "add", "tanh", "e", "TanhBackward0", "AddBackward0"} <= seen
    page.locator("g.node.leaf").first.click()
    assert page.text_content(".mg-details").startswith("a  leaf or parameter")


def test_a_screen_reader_finds_the_picture_its_sentence_and_every_node(show):
    picture = GRAPHS["three_operations"]()
    tree = show(picture).locator("body").aria_snapshot()
    assert f'group "{picture.describe().splitlines()[0]}"' in tree
    assert tree.count("- 'img") + tree.count("- img") == len(picture.graph.nodes)
    assert 'img "a: leaf or parameter' in tree


@pytest.mark.parametrize("make", [GRAPHS["three_operations"], GRAPHS["operators_200"]])
@pytest.mark.parametrize(("paper", "dark"), [("#fff", False), ("#111", True)])
def test_a_picture_is_dark_where_its_page_is(show, make, paper, dark):
    page = show(make(), paper)
    places = page.locator(".mg-figure"), inside(page).locator("body")
    place = places[page.locator("iframe").count()]
    assert ("mg-dark" in (place.get_attribute("class") or "")) == dark
    page.evaluate("document.body.style.background = '%s'" % ("#fff" if dark else "#111"))
    page.wait_for_timeout(100)
    assert ("mg-dark" in (place.get_attribute("class") or "")) != dark


@pytest.mark.parametrize("make", [GRAPHS["three_operations"], GRAPHS["operators_200"]])
@pytest.mark.parametrize(("says", "dark"), [("light dark", True), ("light", False), ("", False)])
def test_a_page_without_a_colour_of_its_own_is_as_dark_as_its_scheme(show, make, says, dark):
    page = show(make(), "transparent")
    page.emulate_media(color_scheme="dark")
    page.evaluate(
        """says => {
            const meta = document.createElement("meta");
            Object.assign(meta, { name: "color-scheme", content: says });
            document.head.append(meta);
            document.body.classList.add("told");
        }""",
        says,
    )
    page.wait_for_timeout(200)
    places = page.locator(".mg-figure"), inside(page).locator("body")
    place = places[page.locator("iframe").count()]
    assert ("mg-dark" in (place.get_attribute("class") or "")) == dark


def test_a_player_plays_in_its_frame_without_a_kernel_and_all_of_it_is_in_view(show):
    a = mg.tensor(2.0, requires_grad=True, name="a")
    y = mg.exp(a * a)
    y.backward()
    page = show(play(y, names={"y": y}))
    for _ in range(3):
        inside(page).locator(".mg-next").click()
    assert "Seed" in inside(page).locator(".mg-say").text_content()
    high = page.evaluate("document.querySelector('iframe').getBoundingClientRect().height")
    assert high == pytest.approx(
        inside(page).locator("body").evaluate("body => body.getBoundingClientRect().height"), abs=4
    )
    assert inside(page).locator(".mg-active, g.active").count() >= 1
    for part in (".mg-next", ".mg-say", "g.active"):
        box = inside(page).locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 800


def test_a_player_does_not_tell_what_has_not_run(show):
    a = mg.tensor(2.0, requires_grad=True, name="a")
    y = mg.exp(a * a)
    y.backward()
    page = show(play(y, names={"y": y}))
    inside(page).locator("g.node.output").hover()
    assert inside(page).locator(".mg-details").text_content() == ""
    inside(page).locator(".mg-last").click()
    inside(page).locator("g.node.output").hover()
    assert "54.59" in inside(page).locator(".mg-details").text_content()


def test_a_folded_picture_is_searched_without_a_kernel(show):
    page = show(GRAPHS["operators_200"]())
    inside(page).locator(".mg-query").fill("w77.grad")
    page.wait_for_timeout(300)
    assert "in folded boxes" in inside(page).locator(".mg-count").text_content()


def test_a_wide_page_and_a_narrow_one_show_all_of_a_picture_or_scroll_it(show):
    for width in (1280, 400):
        page = show(GRAPHS["three_operations"](), width=width)
        sizes = page.evaluate(
            "() => [...document.querySelectorAll('svg text')].map(t => "
            "parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
        )
        assert min(sizes) >= 12


@pytest.mark.parametrize("name", NAMES[::7])
def test_hostile_names_run_nothing_in_a_figure_or_a_frame(show, name):
    page = show(Picture(everywhere(name)))
    assert page.locator("g.node").count() == 5
    assert (
        page.locator("figure script, figure img:not(.mg-still), figure iframe, figure a").count()
        == 0
    )


@pytest.mark.parametrize(("paper", "width"), [("#fff", 850), ("#111", 400)])
def test_every_element_of_an_array_is_told_by_keyboard_and_by_pointer(show, paper, width):
    array = np.random.default_rng(0).normal(size=(20, 30))
    w = mg.tensor(array, requires_grad=True, name="w")
    page = show(mg.draw((w * w).sum()), paper, width)
    page.locator("g.node.leaf").first.focus()
    page.wait_for_selector(".mg-array")
    page.keyboard.press("Tab")
    for key in ["ArrowDown"] * 3 + ["ArrowRight"] * 2:
        page.keyboard.press(key)
    assert page.inner_text(".mg-element") == f"value[3, 2] = {array[3, 2]:.3g}"
    assert page.get_attribute(".mg-array", "aria-valuetext") == page.inner_text(".mg-element")
    page.keyboard.press("End")
    assert page.inner_text(".mg-element") == f"value[19, 29] = {array[19, 29]:.3g}"
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".mg-element").startswith("value[19, 29]")
    page.locator(".mg-array").hover(position={"x": 6, "y": 6})
    assert page.inner_text(".mg-element") == f"value[0, 0] = {array[0, 0]:.3g}"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("g.node.op").first.click()
    page.wait_for_timeout(100)
    assert page.locator(".mg-array").count() == 0


def test_an_array_of_an_opened_box_is_shown_on_a_page(show):
    w = mg.tensor(np.arange(3600.0).reshape(60, 60), requires_grad=True, name="w")
    page = show(mg.draw((w * w).sum(), widget=True))
    frame = inside(page)
    frame.locator("g.node.leaf").first.click()
    frame.locator(".mg-array").press("End")
    assert frame.locator(".mg-element").text_content() == "value[59, 59] = 3.6e+03"
