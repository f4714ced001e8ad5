"""The picture as SVG: what Graphviz drew, passed through a list of what is allowed, with the words
of the graph added.

Only known elements and attributes are kept, so whatever a name contains, the picture runs
nothing. Every node gets a ``<title>`` (its tooltip), the whole picture a title and a description; a
twin lights up under the mouse by CSS alone.
"""

import hashlib
import json
import xml.etree.ElementTree as ET

from ..graph.format import visible
from ..graph.graph import Graph
from ..graph.style import ACTIVE_FILLS, ACTIVE_WIDTH, GREY, NODE_STYLES, node_style
from .dot import node_classes, side_class
from .rank import leader
from .words import describe, describe_edge, describe_node

SVG = "http://www.w3.org/2000/svg"
_SPACE = f"{{{SVG}}}"  # stands before the name of every element
TAGS = {f"{_SPACE}{tag}" for tag in ("svg", "g", "polygon", "polyline", "path", "ellipse", "text")}
_ATTRIBUTES = """
    id class transform fill stroke stroke-width stroke-dasharray points d cx cy rx ry x y
    text-anchor font-family font-size font-weight font-style text-decoration width height viewBox
    fill-opacity stroke-opacity
"""
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
_PAGE = 637.0  # points
_SMALLEST_SCALE = 0.94  # below it words have less than 12 pixels
WIDEST = _PAGE / _SMALLEST_SCALE  # points that are as wide as a page when they are made smaller
_SMALL = 10.5  # points: browsers set such letters wider than the layout measures them
_TIGHTER = 0.96  # what they are made smaller by


def to_svg(graph: Graph, drawn: bytes) -> str:
    """The SVG of a graph, from what Graphviz drew of it.

    Ids start with a digest of the drawing, so that several pictures can stand on one page.
    """
    prefix = "mg" + hashlib.sha256(drawn).hexdigest()[:10]
    root = _cleaned(drawn)
    # a wide picture is made smaller, as long as it can be read; a notebook scrolls what is wider
    sizes = {side: float(root.get(side, "0").removesuffix("pt")) for side in ("width", "height")}
    if sizes["width"] > _PAGE:
        scale = max(_SMALLEST_SCALE, _PAGE / sizes["width"])
        root.attrib |= {side: f"{size * scale:.0f}pt" for side, size in sizes.items()}
    clear_titles(root)
    _name_parts(graph, root, prefix)
    title = f"{prefix}-title"
    desc = f"{prefix}-desc"
    words = describe(graph)
    root.attrib |= {"id": prefix, "class": "mg-picture", "role": "img"}
    root.attrib |= {"aria-labelledby": title, "aria-describedby": desc}
    # pixels: a picture that is narrower has words that are too small
    width = _SMALLEST_SCALE * 4 / 3 * float(root.get("viewBox", "0 0 0 0").split()[2])
    root[:0] = [
        _element("title", words.split("\n", 1)[0], id=title),
        _element("desc", words, id=desc),
        _element("style", style_sheet(graph, prefix, width)),
    ]
    ET.register_namespace("", SVG)
    return ET.tostring(root, encoding="unicode")


def _cleaned(drawn: bytes) -> ET.Element:
    """What Graphviz drew, with what is allowed of it."""
    root = ET.fromstring(drawn)  # the parser drops comments
    root.text = None
    for part in list(root.iter()):
        part.tail = None
        for child in [child for child in part if child.tag not in TAGS]:
            part.remove(child)
        for name in part.attrib.keys() - ATTRIBUTES:
            del part.attrib[name]
        size = float(part.get("font-size", "inf"))
        if size <= _SMALL:
            part.set("font-size", f"{size * _TIGHTER:.2f}")
    return root


def _name_parts(graph: Graph, root: ET.Element, prefix: str) -> None:
    """Give every node, line and frame its id, its classes and its words."""
    lines = {(e.tail, e.head, e.kind): e for e in graph.edges}
    for part in list(root.iter(f"{_SPACE}g")):
        classes = part.get("class", "").split()
        name, words = part.attrib.pop("id", ""), None
        if name in graph.nodes or name in graph.regions:
            part.set("id", f"{prefix}-{name}")
        if name in graph.nodes:
            node = graph.nodes[name]
            twin = [f"t{leader(node)}"] if node.twin else []
            part.set("class", " ".join(["node", *node_classes(node), *twin]))
            if "paths" in node.data:  # the browser follows them
                part.set("data-paths", json.dumps(node.data["paths"]))
            words = describe_node(graph, node)
        elif name in graph.regions:
            words = visible(graph.regions[name].label)
        elif len(classes) >= 5:  # of a line, and its ends
            line = lines.get((classes[-2], classes[-1], classes[2]))
            words = describe_edge(graph, line) if line else "twins: an operator and its backward"
        if words is not None:
            part.insert(0, _element("title", words))


def _element(tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.Element(f"{_SPACE}{tag}", attributes)
    element.text = text
    return element


def style_sheet(graph: Graph, prefix: str, width: float) -> str:
    """Twins that light up together, and the look of pending and active nodes; every rule is bound
    to this picture. A page narrower than ``width`` pixels scrolls.
    """
    twins = dict.fromkeys(leader(n) for n in graph if n.twin)
    shapes = ":is(polygon,ellipse,path,polyline)"
    rules = [
        f"#{prefix}{{max-width:max(100%,{width:.0f}px);height:auto}}",
        f"#{prefix} .node:hover>{shapes}{{stroke-width:4}}",
        *(f"#{prefix}:has(.t{t}:hover) .t{t}>{shapes}{{stroke-width:4}}" for t in twins),
        f"#{prefix} .pending>{shapes}:not([stroke=none]){{stroke:{GREY};stroke-dasharray:1.5,3}}",
        f"#{prefix} .pending>{shapes}:not([fill=none]){{fill:{NODE_STYLES['data'].fill}}}",
        f"#{prefix} .active>{shapes}{{stroke-width:{ACTIVE_WIDTH}}}",
    ]
    looks = {f"{n.kind}.{side_class(n)}": node_style(n).stroke for n in graph}
    rules += [
        f"#{prefix} .active.{kind}>{shapes}:not([fill=none]){{fill:{ACTIVE_FILLS[stroke]}}}"
        for kind, stroke in sorted(looks.items())
    ]
    return "".join(rules)


# ---- Titles of frames that no line runs through ----


def clear_titles(root: ET.Element) -> None:
    """Put the titles of frames before the lines, with a rim in the colour of their frame."""
    sheet = root.find(f"{_SPACE}g")
    for frame in list(root.iter(f"{_SPACE}g")):
        shape = frame.find(f"{_SPACE}path")
        if sheet is None or shape is None or "cluster" not in frame.get("class", "").split():
            continue
        for row in frame.findall(f"{_SPACE}text"):
            frame.remove(row)
            row.attrib |= {"stroke": shape.get("fill", "none"), "stroke-width": "6"}
            row.attrib |= {"stroke-linejoin": "round", "paint-order": "stroke"}
            sheet.append(row)
