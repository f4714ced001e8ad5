"""The gallery: every picture can be drawn, and the committed page shows them all."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from docs import gallery_pictures, make_gallery
from tests.viz.needs import needs_layout
from tests.viz.svg_facts import active_content, overlapping

DOCS = Path(__file__).parents[2] / "docs"
GRAPHS = [m for m in gallery_pictures.PICTURES if not m.__name__.startswith("plot_")]
ALL = [*gallery_pictures.PICTURES, *make_gallery.PLAYERS]


@pytest.mark.parametrize("make", ALL, ids=lambda m: m.__name__)
def test_the_committed_page_shows_it_on_white_and_on_black(make):
    page = (DOCS / "gallery.html").read_text(encoding="utf-8")
    name = f"pictures/{make.__name__}.svg"
    assert page.count(f'<img src="{name}"') == 2
    ET.fromstring((DOCS / name).read_text(encoding="utf-8"))


@needs_layout
@pytest.mark.parametrize("make", GRAPHS, ids=lambda m: m.__name__)
def test_it_is_drawn_without_overlap_and_runs_nothing(make):
    picture = make()
    assert picture.svg is not None
    assert not overlapping(picture.svg)
    assert not active_content(picture.svg)
    assert picture.describe()


def test_every_picture_has_a_caption():
    assert all(len(make_gallery.caption(make)) > 20 for make in ALL)
