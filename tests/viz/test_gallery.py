"""The gallery: every picture can be drawn, and the committed page shows them all."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from docs import gallery_pictures, make_gallery
from tests.viz.needs import needs_layout
from tests.viz.svg_facts import active_content, overlapping

DOCS = Path(__file__).parents[2] / "docs"
ALL = [*gallery_pictures.PICTURES, *make_gallery.PLAYERS]


@pytest.mark.parametrize("make", ALL, ids=lambda m: m.__name__)
def test_the_committed_page_shows_it_on_white_and_on_black(make):
    page = (DOCS / "gallery.html").read_text(encoding="utf-8")
    name = f"pictures/{make.__name__}.svg"
    assert page.count(f'<img src="{name}"') == 2
    ET.fromstring((DOCS / name).read_text(encoding="utf-8"))


@needs_layout
@pytest.mark.parametrize("make", gallery_pictures.PICTURES, ids=lambda m: m.__name__)
def test_it_is_drawn_without_overlap_and_runs_nothing(make):
    picture = make()
    assert picture.svg is not None
    assert not overlapping(picture.svg)
    assert not active_content(picture.svg)
    assert picture.describe()


@needs_layout
def test_the_moving_picture_shows_every_frame_of_the_player_and_runs_nothing():
    film = gallery_pictures.player()
    svg = make_gallery.moving(film)
    assert svg.count('class="turn') == len(film.events) + 1
    assert "—" in make_gallery.still(film, 0)
    assert ">20<" not in make_gallery.still(film, 0)
    assert ">20<" in make_gallery.still(film, len(film.events))
    assert set(active_content(svg)) <= {"rect", "style"}


def test_every_picture_has_a_caption():
    assert all(len(make_gallery.caption(make)) > 20 for make in ALL)
