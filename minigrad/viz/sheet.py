"""First, middle and last frame of a film in one static SVG, for viewers that run nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from .film import Film
from .format import shorten, visible
from .style import FONT, GREY, PAPER, TEXT

_SVG = "http://www.w3.org/2000/svg"
_CAPTION, _GAP = 22.0, 10.0  # height of a caption, space between two frames
MOST = 150  # nodes: of a larger graph only the first frame is drawn


def sheet(film: Film) -> str | None:
    """The frames one below the other, each under its words; None without a layout engine."""
    if len(film.graph.nodes) > MOST:
        return film.svg(0)
    frames = film.static_frames()
    roots = [ET.fromstring(svg) for _, svg in frames if svg is not None]
    if len(roots) < len(frames):
        return None
    left, top, width, height = map(float, roots[0].get("viewBox", "0 0 100 100").split())
    step = height + _CAPTION + _GAP
    page = _page(film, width, step * len(frames) - _GAP)
    for k, (root, (words, _)) in enumerate(zip(roots, frames, strict=True)):
        page.append(_caption(words, k * step, width))
        page.append(_frame(root, k, -left, k * step + _CAPTION - top))
    ET.register_namespace("", _SVG)
    return ET.tostring(page, encoding="unicode")


def _page(film: Film, width: float, height: float) -> ET.Element:
    size = {
        "width": f"{width:g}pt",
        "height": f"{height:g}pt",
        "viewBox": f"0 0 {width:g} {height:g}",
    }
    page = ET.Element(f"{{{_SVG}}}svg", {**size, "role": "img", "class": "mg-sheet"})
    for tag, words in (("title", film.graph.title or "Steps"), ("desc", film.text())):
        ET.SubElement(page, f"{{{_SVG}}}{tag}").text = "\n".join(map(visible, words.splitlines()))
    return page


def _caption(words: str, y: float, width: float) -> ET.Element:
    """The words of a frame on a strip of paper: no text may stand on the page."""
    strip = ET.Element(f"{{{_SVG}}}g", {"transform": f"translate(0,{y:g})"})
    box = {
        "x": "0.5",
        "y": "0.5",
        "width": f"{width - 1:g}",
        "height": f"{_CAPTION - 3:g}",
        "rx": "4",
    }
    ET.SubElement(strip, f"{{{_SVG}}}rect", {**box, "fill": PAPER, "stroke": GREY})
    place = {"x": "7", "y": "14", "font-family": FONT, "font-size": "11", "fill": TEXT}
    said = ET.SubElement(strip, f"{{{_SVG}}}text", place)
    said.text = shorten(words, max(12, int(width / 7)))
    return strip


def _frame(root: ET.Element, k: int, x: float, y: float) -> ET.Element:
    """A drawing as a part of the page, with ids of its own."""
    old = root.get("id", "mg")
    new = f"{old}f{k}"
    for part in root.iter():
        if part.get("id"):
            part.set("id", str(part.get("id")).replace(old, new, 1))
        if part.tag == f"{{{_SVG}}}style" and part.text:
            part.text = part.text.replace(f"#{old}", f"#{new}")
    frame = ET.Element(
        f"{{{_SVG}}}g", {"id": new, "class": "mg-picture", "transform": f"translate({x:g},{y:g})"}
    )
    frame.extend(list(root))
    return frame
