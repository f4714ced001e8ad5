"""Titles of frames: lines pass behind the rim around them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from minigrad.viz.graph.graph import Graph
from minigrad.viz.picture import Picture
from minigrad.viz.render.svg import clear_titles
from tests.viz.needs import needs_layout
from tests.viz.svg_facts import SVG, parsed, parts

FRAME = (
    '<g class="cluster"><path fill="#EEEEEE" d="M0,0C0,0 {0},0 {0},0C{0},0 {0},90 {0},90"/>'
    '<text text-anchor="start" x="8" y="15" font-size="10">frame</text></g>'
)


def drawing(width, *lines):
    """A frame with its title at the left, and straight lines down through it."""
    edges = [f'<g class="edge"><path d="M{x},-9C{x},0 {x},50 {x},90"/></g>' for x in lines]
    inside = FRAME.format(width) + "".join(edges)
    return ET.fromstring(
        f'<svg xmlns="http://www.w3.org/2000/svg"><g class="graph">{inside}</g></svg>'
    )


def title(root):
    (found,) = root.iter(SVG + "text")
    return float(found.get("x")), [e.tag.removeprefix(SVG) for e in root[0]]


def test_a_title_stands_before_the_lines_with_a_rim_around_it():
    root = drawing(50, 15, 30, 45)
    clear_titles(root)
    x, order = title(root)
    assert x == 8
    assert order == ["g", "g", "g", "g", "text"]
    assert root[0][-1].get("stroke") == "#EEEEEE"


def test_a_drawing_without_frames_is_left_alone():
    root = ET.fromstring('<svg xmlns="http://www.w3.org/2000/svg"><g class="graph"/></svg>')
    clear_titles(root)
    assert len(root[0]) == 0


@needs_layout
def test_a_line_into_a_nested_frame_does_not_run_through_its_title():
    g = Graph(direction="TB")
    outer = g.region("outer")
    inner = g.region("a title", parent=outer.id)
    x = g.node("leaf", "x", region=outer.id)
    for name in ("one", "two"):
        g.edge(x, g.node("op", name, region=inner.id))
    svg = Picture(g).svg
    words = [t.text for t in parsed(svg).iter(SVG + "text")]
    assert words.count("a title") == 1
    assert len(parts(svg, "cluster")) == 2
