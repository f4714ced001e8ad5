"""The widget of a big picture in a real JupyterLab, in both themes."""

from __future__ import annotations

import os

import pytest

from tests import jupyter_browser

CELLS = [
    """import numpy as np, minigrad as mg
w = mg.tensor(np.full((2, 2), 0.1), requires_grad=True)
h = mg.tensor(np.ones(2))
for i in range(1000):
    h = mg.tanh(h @ w + 0.5)
    if i == 500:
        middle = h
loss = (h * h).sum()
mg.draw(loss)""",
    """hostile = mg.tensor(1.0, requires_grad=True, name='<img src=x onerror=alert(1)>')
mg.draw(mg.sin(hostile) * hostile, widget=True)""",
]


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_in_jupyterlab_a_click_opens_a_search_jumps_and_everything_folds_back(
    browser, tmp_path, monkeypatch
):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("jupyterlab")
    monkeypatch.setattr(jupyter_browser, "trust", lambda *_: None)
    root, private = tmp_path / "course", tmp_path / "private"
    root.mkdir()
    private.mkdir()
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, root / "big.ipynb")
    with jupyter_browser.server(root, private) as address:
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        lab = jupyter_browser.Lab(page, address)
        lab.page.on("dialog", lambda d: (lab.errors.append(f"dialog {d.message}"), d.dismiss()))
        for theme in ("Light", "Dark"):
            lab.theme(f"JupyterLab {theme}")
            lab.open("big.ipynb")
            lab.run_all()
            drive(lab.page, lab.page.locator(".mg-explorer").first)
            hostile = lab.page.frame_locator("iframe.mg-frame >> nth=-1").locator("g.node")
            hostile.first.wait_for()
            for group in hostile.all():
                group.hover(force=True)
                group.click(force=True)
            photograph(lab.page, theme)
            lab.close()
        page.close()
    assert (lab.errors, lab.outside) == ([], set())


def drive(page, widget):
    widget.locator("g.mg-fold.fwd").first.click(timeout=60_000)
    said(widget, "Opened 1000 × (matmul, add, tanh) into 10 parts.")
    assert widget.locator("g.mg-fold").count() >= 10
    widget.locator("g.mg-fold.fwd").nth(4).focus()
    page.keyboard.press("Enter")
    said(widget, "Opened 100 × (matmul, add, tanh) into 10 parts.")
    assert page.evaluate("document.activeElement.matches('g.mg-fold.fwd')")  # the focus stays
    widget.locator(".mg-query").fill("middle")
    widget.locator(".mg-count", has_text="1 match").wait_for(timeout=30_000)
    widget.locator(".mg-query").press("Enter")
    said(widget, "Found middle; its neighbours are open, too.")
    assert widget.locator("g.mg-here").count() == 1
    widget.locator(".mg-fold-back").click()
    said(widget, "Folded back.")
    widget.locator(".mg-fold-all").click()
    said(widget, "Everything is folded.")


def said(widget, words):
    widget.locator(".mg-say", has_text=words).wait_for(timeout=30_000)


def photograph(page, name):
    """Keep a picture, where that is wanted."""
    folder = os.environ.get("MINIGRAD_SHOTS")
    if folder:
        page.locator(".mg-explorer").first.screenshot(path=f"{folder}/explorer-{name}.png")
