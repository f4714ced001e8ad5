"""What an SVG says, for tests: parsed, never matched as text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "g", "title", "desc", "style", "polygon", "polyline", "path", "ellipse", "text"}


def parsed(svg):
    return ET.fromstring(svg)


def parts(svg, kind):
    """The groups of one class: "node", "edge" or "cluster"."""
    return [g for g in parsed(svg).iter(SVG + "g") if kind in g.get("class", "").split()]


def texts(part):
    return [t.text or "" for t in part.iter(SVG + "text")]


def colours(svg):
    """Every colour that something is filled or stroked with."""
    found = {e.get(a) for e in parsed(svg).iter() for a in ("fill", "stroke")}
    return {c.upper() for c in found if c} - {"NONE", "TRANSPARENT", "BLACK"}


def active_content(svg):
    """Everything in a picture that could run or fetch something; empty for a harmless one."""
    found = []
    for element in parsed(svg).iter():
        tag = element.tag.removeprefix(SVG)
        if tag not in TAGS:
            found.append(tag)
        for name, value in element.attrib.items():
            if (
                name.lower().startswith("on")
                or name.endswith("href")
                or "javascript" in value.lower()
            ):
                found.append(f"{name}={value}")
            if "url(" in value.lower():
                found.append(f"{name}={value}")
        if tag == "style" and re.search(r"@import|url\(|expression|</", element.text or "", re.I):
            found.append("style")
    return found


def box(part):
    """The rectangle around the shapes of a node."""
    xs, ys = [], []
    for e in part:
        if e.tag == SVG + "ellipse":
            cx, cy, rx, ry = (float(e.get(k)) for k in ("cx", "cy", "rx", "ry"))
            xs += [cx - rx, cx + rx]
            ys += [cy - ry, cy + ry]
        elif e.tag in (SVG + "polygon", SVG + "path"):
            numbers = [float(n) for n in re.findall(r"-?[\d.]+", e.get("points") or e.get("d"))]
            xs += numbers[::2]
            ys += numbers[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def overlapping(svg):
    """Pairs of nodes whose rectangles lie over each other."""
    boxes = {g.get("id"): box(g) for g in parts(svg, "node")}
    return [
        (a, b)
        for (a, p), (b, q) in combinations(boxes.items(), 2)
        if p[0] < q[2] - 1 and q[0] < p[2] - 1 and p[1] < q[3] - 1 and q[1] < p[3] - 1
    ]


def centre(part):
    left, top, right, bottom = box(part)
    return (left + right) / 2, (top + bottom) / 2


def centres(svg):
    """Node id of the graph -> where it stands."""
    return {g.get("id").partition("-")[2]: centre(g) for g in parts(svg, "node")}
