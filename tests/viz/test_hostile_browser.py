"""The pictures of all hostile names in a real browser: no dialog, no script, no request."""

from __future__ import annotations

import pytest

from minigrad.viz.picture import Picture
from tests.viz.test_hostile_names import NAMES, everywhere

pytestmark = pytest.mark.browser
WATCHED = """() => {
    const pictures = [...document.querySelectorAll('svg.mg-picture')];
    const nodes = pictures.map(p => p.querySelectorAll('g.node').length);
    return {pictures: pictures.length, five: nodes.every(n => n === 5),
            scripts: document.querySelectorAll('script,iframe,image,foreignObject,a').length};
}"""
HOVER = """() => {
    const picture = document.querySelector('svg.mg-picture');
    return getComputedStyle(picture.querySelector('[id$="-n3"] polygon[stroke]:not([stroke=none])'))
        .strokeWidth;
}"""


def test_showing_and_hovering_runs_nothing_and_asks_for_nothing(browser, tmp_path):
    drawings = "".join(f"<div>{Picture(everywhere(name)).svg}</div>" for name in NAMES)
    page_file = tmp_path / "all.html"
    page_file.write_text(
        f"<!DOCTYPE html><meta charset=utf-8><title>all</title>{drawings}", encoding="utf-8"
    )
    page = browser.new_page()
    happened = []
    page.on("dialog", lambda d: (happened.append(d.message), d.dismiss()))
    page.on("console", lambda m: happened.append(m.text))
    page.on("pageerror", lambda e: happened.append(str(e)))
    page.on("request", lambda r: happened.append(r.url) if "all.html" not in r.url else None)
    page.goto(page_file.as_uri())
    seen = page.evaluate(WATCHED)
    before = page.evaluate(HOVER)
    page.locator("svg.mg-picture").first.locator("g.op.fwd").first.hover(force=True)
    after = page.evaluate(HOVER)
    page.close()
    assert happened == []
    assert seen == {"pictures": len(NAMES), "five": True, "scripts": 0}
    assert (before, after) == ("2px", "4px")  # the twin lights up


def test_a_saved_page_runs_nothing(browser, tmp_path):
    page = browser.new_page()
    happened = []
    page.on("dialog", lambda d: (happened.append(d.message), d.dismiss()))
    page.on("pageerror", lambda e: happened.append(str(e)))
    for i, name in enumerate(NAMES[::6]):
        page.goto(Picture(everywhere(name)).save(tmp_path / f"{i}.html").as_uri())
    page.close()
    assert happened == []
