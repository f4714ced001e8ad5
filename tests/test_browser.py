"""Every notebook in a real JupyterLab in a real browser: run, move each control, step each player.

``MINIGRAD_SHOTS=folder`` keeps a picture of each notebook.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jupyter_browser import Lab, browser, course_copy, server

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(
    path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if "." not in path.stem
)
DARK = [name for name in NOTEBOOKS if name.startswith(("step02", "step15", "step18"))]
VISITS = [(name, "JupyterLab Light") for name in NOTEBOOKS]
VISITS += [(name, "JupyterLab Dark") for name in DARK]

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

#: What a control changes: everything a widget shows, but not the control itself.
SHOWN = """area => [...area.querySelectorAll('.mg-explore, .widget-html, .widget-output, img, svg')]
    .map(each => each.tagName === 'IMG' ? each.src : each.outerHTML).join()"""
WIDGETS = ".jp-OutputArea-output:is(.jupyter-widgets, :has(.jupyter-widgets))"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """One server and one page for all notebooks."""
    with browser() as running:
        root = course_copy(ROOT, tmp_path_factory.mktemp("course"))
        with server(root, tmp_path_factory.mktemp("jupyter")) as address:
            yield Lab(running.new_page(viewport={"width": 1200, "height": 1000}), address)


@pytest.fixture
def visit(lab, request):
    """A notebook, open and run, in a theme."""
    name, theme = request.param
    lab.errors.clear()
    lab.theme(theme)
    try:
        lab.open(f"notebooks/{name}.ipynb")
        lab.run_all()
        yield lab
        photograph(lab.page, f"{name}-{theme.split()[1].lower()}")
    finally:
        lab.close()


def photograph(page, name: str) -> None:
    """Keep a picture of each cell that shows one, where that is wanted."""
    folder = os.environ.get("MINIGRAD_SHOTS")
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, cell in enumerate(page.query_selector_all(".jp-CodeCell")):
        if cell.query_selector(".jp-OutputArea-output img, .jupyter-widgets"):
            cell.screenshot(path=f"{folder}/{name}-{number:02d}.png")


def test_a_trusted_notebook_shows_its_pictures_before_anything_runs(lab):
    lab.open("notebooks/step03_creator_links.ipynb")
    lab.page.wait_for_selector(".jp-OutputArea-output img[src^='data:image/svg']", timeout=30_000)
    lab.close()


@pytest.mark.parametrize(
    "visit", VISITS, indirect=True, ids=lambda each: f"{each[0]}-{each[1][11:]}"
)
def test_everything_in_a_notebook_works(visit):
    assert unexpected_errors(visit) == []
    moved = move_controls(visit.page) + step_players(visit.page) + search_pictures(visit.page)
    assert [what for what, works in moved if not works] == []
    assert moved or not any("interactive" in tags for tags, _ in visit.outputs())
    assert visit.errors == [], "the console"
    assert visit.outside == set(), "requests to other machines"


def unexpected_errors(lab) -> list[str]:
    """Errors below cells that are not there to show one, warnings, widgets that are not drawn."""
    found = []
    for tags, outputs in lab.outputs():
        for each in outputs:
            if each["output_type"] == "error" and "raises-exception" not in tags:
                found.append(f"{each['ename']}: {each['evalue']}")
            if each.get("name") == "stderr":
                found.append("".join(each["text"]))
    texts = [each.text_content() for each in lab.page.query_selector_all(".jp-OutputArea-output")]
    return found + [
        text for text in texts if "Error displaying widget" in text or "model not found" in text
    ]


def move_controls(page) -> list[tuple[str, bool]]:
    """Move every slider, choose, press: for each control whether the picture changed."""
    done = []
    for number, area in enumerate(page.query_selector_all(WIDGETS)):
        area.scroll_into_view_if_needed()
        for kind, acts in controls(page, area):
            changed = any(changes(page, area, act) for act in acts)
            done.append((f"{kind} of widget {number}", changed))
    return done


def controls(page, area):
    """The controls of a widget, each with the acts of which one at least must show."""
    for handle in area.query_selector_all(".noUi-handle"):
        value = handle.get_attribute("aria-valuenow")
        keys = ("ArrowRight", "ArrowLeft", "Home", "End")
        yield "slider", [lambda key=key, at=handle: press(page, at, key) for key in keys]
        put_back(page, handle, value)
    for choice in area.query_selector_all(".widget-toggle-buttons"):
        yield (
            "choice",
            [each.click for each in choice.query_selector_all("button:not(.mod-active)")],
        )
    for menu in area.query_selector_all("select"):
        values = menu.evaluate("menu => [...menu.options].map(each => each.value)")
        yield "menu", [lambda value=value, at=menu: at.select_option(value) for value in values]
    for box in area.query_selector_all("input[type=checkbox]"):
        yield "checkbox", [box.click]
    buttons = area.query_selector_all("button.jupyter-button:not(.widget-toggle-button)")
    if buttons:
        yield "buttons", [each.click for each in buttons]


def put_back(page, handle, value: str) -> None:
    """A slider moved one step goes back, so that the next control meets the first picture."""
    for key in ("ArrowLeft", "ArrowRight", "ArrowRight"):
        if handle.get_attribute("aria-valuenow") != value:
            changes(page, page.query_selector("body"), lambda key=key: press(page, handle, key))


def step_players(page) -> list[tuple[str, bool]]:
    """Step every player by its keys: for each whether picture and words follow."""
    done = []
    for number, player in enumerate(page.query_selector_all(".mg-player:not(.mg-explorer)")):
        player.scroll_into_view_if_needed()
        said = {player.query_selector(".mg-say").text_content()}
        for key in ("ArrowRight", "ArrowRight", "End", "Home"):
            moved = changes(page, player, lambda key=key, at=player: press(page, at, key))
            done.append((f"player {number} at {key}", moved))
            said.add(player.query_selector(".mg-say").text_content())
        done.append((f"what player {number} says", len(said) >= 3))
    return done


def search_pictures(page) -> list[tuple[str, bool]]:
    """Search every picture that can be searched: for each whether it shows what it found."""
    done = []
    for number, picture in enumerate(page.query_selector_all(".mg-explorer")):
        query = picture.query_selector(".mg-query")
        query.scroll_into_view_if_needed()
        found = changes(page, picture, lambda at=query: at.fill("x"))
        done.append((f"search of picture {number}", found))
        query.fill("")
    return done


def press(page, element, key: str) -> None:
    element.focus()
    page.keyboard.press(key)


def changes(page, area, act) -> bool:
    """Whether what the area shows changes within five seconds of the act."""
    before = area.evaluate(SHOWN)
    act()
    for _ in range(100):
        page.wait_for_timeout(50)
        if area.evaluate(SHOWN) != before:
            return True
    return False
