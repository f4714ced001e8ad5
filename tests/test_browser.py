"""Notebooks in a real JupyterLab in a real browser: run, move each control, step each player.

Every fourth step, with ``MINIGRAD_LAB=all`` every notebook (the site's tests run them all, too);
``MINIGRAD_SHOTS=folder`` keeps a picture of each.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jupyter_browser import (
    Lab,
    browser,
    course_copy,
    move_controls,
    search_pictures,
    server,
    step_players,
    unexpected_errors,
)

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(
    path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if "." not in path.stem
)
DARK = [name for name in NOTEBOOKS if name.startswith(("step02", "step15", "step18"))]
if os.environ.get("MINIGRAD_LAB") != "all":
    others = [name for name in NOTEBOOKS if not name.startswith("step")]
    NOTEBOOKS = others + NOTEBOOKS[len(others) :][3::4]
VISITS = [(name, "JupyterLab Light") for name in NOTEBOOKS]
VISITS += [(name, "JupyterLab Dark") for name in DARK]

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


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
    lab.page.wait_for_selector(
        ".jp-OutputArea-output svg[role], .jp-OutputArea-output img[src^='data:image/svg']",
        timeout=30_000,
    )
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
