"""What assistive technology is told of a picture, a player and an explorer: Chromium's accessibility tree."""

from __future__ import annotations

import pytest

import minigrad as mg

pytestmark = pytest.mark.browser
BUTTONS = {
    "player": {"first step (Home)", "back (←)", "play (Space)", "forward (→)", "last step (End)"},
    "explorer": {"next match (Enter)"},
    "picture": set(),
}


def product():
    a = mg.tensor(2.0, requires_grad=True, name="a")
    y = mg.exp(a * a)
    y.name = "y"
    y.backward()
    return y


def page_of(kind, folder):
    file, y = folder / f"{kind}.html", product()
    if kind == "picture":
        html = mg.draw(y)._repr_mimebundle_()["text/html"]
        file.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{html}", "utf-8")
        return file
    return (mg.play(y) if kind == "player" else mg.draw(y, widget=True)).save(file)


@pytest.mark.parametrize("kind", BUTTONS)
def test_a_picture_its_nodes_its_buttons_and_its_panel_have_roles_and_names(
    browser, tmp_path, kind
):
    page = browser.new_page()
    page.goto(page_of(kind, tmp_path).as_uri())
    page.wait_for_selector("g.node")
    if kind == "player":
        page.click(".mg-last")  # what has not run is known by its name only
    found = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    tree = [
        (
            each.get("role", {}).get("value"),
            each.get("name", {}).get("value", ""),
            {p["name"]: p["value"].get("value") for p in each.get("properties", ())},
        )
        for each in found
        if not each["ignored"]
    ]
    (picture,) = [name for role, name, _ in tree if role == "graphics-document"]
    assert picture.startswith("y: a graph with 2 operations forward and 3 backward, from a to y")
    nodes = [each for each in tree if each[0] == "graphics-symbol"]
    assert len(nodes) == page.locator("g.node").count()
    assert all(facts.get("focusable") for _, _, facts in nodes)
    assert any(name.startswith("a: leaf or parameter; float64 [], 2.0") for _, name, _ in nodes)
    buttons = {name for role, name, _ in tree if role == "button"}
    assert all(buttons) and buttons >= BUTTONS[kind]
    page.focus("g.node.leaf")
    assert page.get_attribute(".mg-details", "role") == "status"
    live = [facts.get("live") for role, _, facts in tree if role == "status"]
    assert live and set(live) == {"polite"}
    assert page.inner_text(".mg-details").startswith("a leaf or parameter")
    page.close()
