"""What is measured on a picture: its size, its smallest text, lines that run through boxes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from minigrad.viz.graph.graph import is_op
from tests.viz.svg_facts import SVG, box, parsed

PIXELS = 4 / 3  # to a point
_FORMULA = re.compile(r"\bg[yx]?\d?\b|\bout_grad\b|·| = |\w\(")
INSIDE = 1.5  # points: how deep in a box a line runs through it


@dataclass(frozen=True)
class Measures:
    """Pixels at natural size, and numbers of lines and of slots."""

    width: float
    height: float
    smallest_text: float
    through_boxes: int
    slots: int
    formulas: int


def measured(picture: Any) -> Measures:
    """The measures of a picture that is drawn."""
    root = parsed(picture.svg)
    wide = float(root.get("width").removesuffix("pt"))
    high = float(root.get("height").removesuffix("pt"))
    scale = PIXELS * wide / float(root.get("viewBox").split()[2])
    sizes = [float(t.get("font-size")) for t in root.iter(SVG + "text")]
    slots, formulas = slots_of(picture.graph)
    return Measures(
        round(wide * PIXELS),
        round(high * PIXELS),
        round(scale * min(sizes, default=99), 2),
        len(through_boxes(root)),
        slots,
        formulas,
    )


def slots_of(graph: Any) -> tuple[int, int]:
    """How many gradients the operators drawn give, and how many of these have a formula: in the
    row of the slot, or, for operators with named slots, in rows of their own.
    """
    slots = formulas = 0
    for node in graph.nodes.values():
        if node.kind == "grad_op" and not node.bold:  # what holds a block has no other rule
            ports = [text for text, way in node.ports if way == "out"]
            heads = [graph.nodes[e.head].name for e in graph.edges if e.tail == node.id]
            rows = [text for text in (*ports, *node.lines) if _FORMULA.search(text)]
            count = (len(ports) or len(rows) or 1) - heads.count("@EMPTY@")  # nobody wants it
            slots += count
            formulas += min(count, len(rows))
    return slots, formulas


Point = tuple[float, float]


def curve(path: str) -> list[Point]:
    """Points on a path of Bézier pieces."""
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", path)]
    corners = list(zip(numbers[::2], numbers[1::2], strict=True))
    points = corners[:1]
    for at in range(0, len(corners) - 3, 3):
        a, b, c, d = corners[at : at + 4]
        for step in range(1, 21):
            t = step / 20
            w = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            points.append(
                tuple(sum(k * p[i] for k, p in zip(w, (a, b, c, d), strict=True)) for i in (0, 1))
            )
    return points


def through_boxes(root: Any) -> list[tuple[str, str]]:
    """(line, node) for every line that runs through a node at which it does not end."""
    groups = [(g, g.get("class", "").split()) for g in root.iter(SVG + "g")]
    boxes = {
        g.get("id").partition("-")[2]: (box(g), _is_round(g)) for g, c in groups if "node" in c
    }
    found = []
    for group, classes in groups:
        if "edge" not in classes:
            continue
        ends = {c for c in classes if c in boxes}
        points = [p for path in group.iter(SVG + "path") for p in curve(path.get("d", ""))]
        for name, (sides, round_) in boxes.items():
            if name not in ends and any(_within(p, sides, round_) for p in points):
                found.append((" ".join(classes[2:]), name))
    return found


def _is_round(group: Any) -> bool:
    return any(e.tag == SVG + "ellipse" for e in group)


def _within(point: Point, sides: tuple[float, float, float, float], round_: bool) -> bool:
    (x, y), (left, top, right, bottom) = point, sides
    if not (left + INSIDE < x < right - INSIDE and top + INSIDE < y < bottom - INSIDE):
        return False
    if not round_:
        return True
    wide, high = (right - left) / 2 - INSIDE, (bottom - top) / 2 - INSIDE
    return ((x - left) / wide - 1) ** 2 + ((y - top) / high - 1) ** 2 < 1


def columns_apart(picture: Any) -> bool:
    """Does everything forward stand left of everything backward?"""
    sides = _sides(picture)
    return not all(sides.values()) or max(b[2] for b in sides["forward"]) < min(
        b[0] for b in sides["backward"]
    )


def shared_ranks(picture: Any) -> int:
    """How often two operators of the forward side stand beside each other."""
    tops = sorted((found[1] + found[3]) / 2 for found in _sides(picture, ops=True)["forward"])
    return sum(b - a < 1 for a, b in pairwise(tops))


def _sides(picture: Any, ops: bool = False) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"forward": [], "backward": []}
    for group in parsed(picture.svg).iter(SVG + "g"):
        node = picture.graph.nodes.get(group.get("id", "").rpartition("-")[2])
        if node is not None and (is_op(node) or not ops):
            found[node.side].append(box(group))
    return found
