"""Titles of frames that no line runs through.

Graphviz keeps a strip free of nodes for the title of a frame, but lines cross it. A crossed title
moves along its strip to the nearest place that is free; where none is, it stands before the lines,
on a plate in the colour of its frame.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

_SVG = "{http://www.w3.org/2000/svg}"
_LETTER, _THIN = 0.63, 0.36  # widths of letters, of the font's size
_THIN_ONES = frozenset(" !'(),-./:;I[]fijlrt|·")
_ABOVE, _BELOW = 0.85, 0.3  # what a line of words takes above and below its foot
_GAP, _MARGIN = 3.0, 6.0  # points between a title and a line, and its frame
_BENDS = 12  # straight pieces that stand for a curve

Point = tuple[float, float]
Line = tuple[float, float, list[list[Point]]]  # top, bottom, and its strokes


def clear_titles(root: ET.Element) -> None:
    """Move the titles of frames out of the way of lines, or before them."""
    groups = [(g, g.get("class", "").split()) for g in root.iter(f"{_SVG}g")]
    frames = [g for g, classes in groups if "cluster" in classes]
    if not frames:
        return
    lines = [found for g, classes in groups if "edge" in classes if (found := _line(g))]
    sheet = next(g for g, classes in groups if "graph" in classes)
    for frame in frames:
        _clear(frame, lines, sheet)


def _clear(frame: ET.Element, lines: list[Line], sheet: ET.Element) -> None:
    shape, words = frame.find(f"{_SVG}path"), frame.find(f"{_SVG}text")
    if shape is None or words is None or words.get("text-anchor") != "start":
        return
    x, y, size = (float(words.get(k, "0")) for k in ("x", "y", "font-size"))
    width, top, bottom = size * _width(words.text or ""), y - _ABOVE * size, y + _BELOW * size
    sides = [corner for corner, _ in _points(shape.get("d", ""))]
    taken = [
        (low - width - _GAP, high + _GAP)
        for line in lines
        for low, high in _crossings(line, top, bottom)
    ]
    if _free(x, taken):
        return
    ends = [min(sides) + _MARGIN, max(sides) - _MARGIN - width]
    places = [at for pair in (*taken, ends) for at in pair if ends[0] <= at <= ends[1]]
    free = [at for at in places if _free(at, taken)]
    if free:
        words.set("x", f"{min(free, key=lambda at: abs(at - x)):.2f}")
        return
    left, right = x - 2, min(x + width + 2, max(sides) - 2)
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    plate = {"fill": shape.get("fill", "none"), "stroke": "none"}
    plate["points"] = " ".join(f"{a:.2f},{b:.2f}" for a, b in corners)
    frame.remove(words)
    ET.SubElement(sheet, f"{_SVG}polygon", plate)
    sheet.append(words)


def _width(words: str) -> float:
    """About how wide a text is, in sizes of its font: the browser that sets it knows exactly."""
    thin = sum(letter in _THIN_ONES for letter in words)
    return _LETTER * (len(words) - thin) + _THIN * thin


def _free(x: float, taken: list[tuple[float, float]]) -> bool:
    return not any(low < x < high for low, high in taken)


def _line(group: ET.Element) -> Line | None:
    """The strokes of a line: its curve as a polyline, its arrow and its label as polygons."""
    strokes = [_bent(_points(e.get("d", ""))) for e in group.iter(f"{_SVG}path")]
    strokes += [_points(e.get("points", "")) for e in group.iter(f"{_SVG}polygon")]
    heights = [y for stroke in strokes for _, y in stroke]
    return (min(heights), max(heights), strokes) if heights else None


def _points(numbers: str) -> list[Point]:
    found = [float(n) for n in re.findall(r"-?[\d.]+", numbers)]
    return list(zip(found[::2], found[1::2], strict=False))


def _bent(corners: list[Point]) -> list[Point]:
    """Points on a curve of Bézier pieces, each given by its end and two points that pull it."""
    made = corners[:1]
    for start in range(0, len(corners) - 3, 3):
        piece = corners[start : start + 4]
        for step in range(1, _BENDS + 1):
            t = step / _BENDS
            pulls = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            xs, ys = (sum(p * c[i] for p, c in zip(pulls, piece, strict=True)) for i in (0, 1))
            made.append((xs, ys))
    return made


def _crossings(line: Line, top: float, bottom: float) -> list[tuple[float, float]]:
    """From where to where each stroke of a line lies between two heights."""
    if line[1] < top or line[0] > bottom:
        return []
    found = []
    for stroke in line[2]:
        xs = [x for a, b in pairwise(stroke) for x in _within(a, b, top, bottom)]
        if xs:
            found.append((min(xs), max(xs)))
    return found


def _within(a: Point, b: Point, top: float, bottom: float) -> list[float]:
    """The ends of the part of a straight piece that lies between two heights."""
    (x, y), (to_x, to_y) = a, b
    if max(y, to_y) < top or min(y, to_y) > bottom:
        return []
    if y == to_y:
        return [x, to_x]
    heights = (max(top, min(bottom, h)) for h in (y, to_y))
    return [x + (to_x - x) * (h - y) / (to_y - y) for h in heights]
