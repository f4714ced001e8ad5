"""What no test of pictures looked at: drawings that are too large to show."""

from __future__ import annotations

import pytest

from minigrad.viz import svg
from minigrad.viz.graph import Graph

DRAWN = b'<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt" viewBox="0 0 9 9"></svg>'


def test_a_drawing_that_is_too_large_is_refused_with_its_size():
    with pytest.raises(ValueError, match="^a picture of 20000001 bytes is too large to show$"):
        svg.to_svg(Graph(), b" " * 20_000_001)


def test_a_drawing_may_be_as_large_as_the_limit(monkeypatch):
    monkeypatch.setattr(svg, "_SIZE_LIMIT", len(DRAWN))
    assert svg.to_svg(Graph(), DRAWN).startswith("<svg")
    with pytest.raises(ValueError, match="too large to show"):
        svg.to_svg(Graph(), DRAWN + b" ")
