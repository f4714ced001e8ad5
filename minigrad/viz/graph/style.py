"""The look of every mark: one table for nodes, one for lines, one for regions.

Every stroke has a contrast of at least 3:1 on a white page and on a near-black one (``#111111``),
every text at least 4.5:1 on the fill it stands on, and no text stands on the page itself. So one
static picture, with a transparent background, is right in a light and in a dark theme. Colour is
never the only carrier: shape, border and line style say the same again.
"""

import math
from typing import NamedTuple

from .graph import Edge, Node, Region

BLUE, GREEN, GREY = "#0072B2", "#009E73", "#767676"
VERMILLION, PURPLE, OLIVE = "#D55E00", "#A8457E", "#8A7A00"

TEXT = "#1A1A1A"  # names
SMALL_TEXT = "#444444"  # values, shapes, slots
FAINT_TEXT = "#5A5A5A"  # what was dropped
PAPER = "#FFFFFF"  # chips, legend and notes
FONT = "DejaVu Sans,Verdana,Geneva,sans-serif"  # the first two have the same widths

ACTIVE_WIDTH = 5


class NodeStyle(NamedTuple):
    """How one kind of node is drawn; ``meaning`` is its line in the legend."""

    shape: str
    stroke: str
    fill: str
    width: float
    meaning: str
    peripheries: int = 1
    dashed: bool = False
    rounded: bool = False
    struck: bool = False
    text: str = TEXT


class EdgeStyle(NamedTuple):
    """How one kind of line is drawn; ``reversed`` lines run against the ranks of the layout."""

    stroke: str
    width: float
    meaning: str
    line: str = "solid"
    head: str = "normal"
    reversed: bool = False
    constraint: bool = True


class RegionStyle(NamedTuple):
    """How a frame around nodes is drawn."""

    stroke: str
    fill: str


_N, _E = NodeStyle, EdgeStyle  # short, so that a row of a table is a line

# fmt: off
NODE_STYLES = {
    "value":         _N("ellipse", BLUE,       "#EAF4FB", 1.5, "forward value"),
    "leaf":          _N("ellipse", GREEN,      "#E3F5EF", 1.5, "leaf or parameter", peripheries=2),
    "data":          _N("ellipse", GREY,       "#F3F3F3", 1.5, "no gradient here", dashed=True),
    "output":        _N("ellipse", BLUE,       "#EAF4FB", 3,   "output, loss"),
    "op":            _N("box",     BLUE,       "#CFE5F5", 2,   "forward operator"),
    "grad_op":       _N("box",     VERMILLION, "#FBD9C3", 2,   "backward operator"),
    "gradient":      _N("ellipse", VERMILLION, "#FEF2EA", 1.5, "gradient"),
    "leaf_gradient": _N("ellipse", VERMILLION, "#FEF2EA", 1.5, "gradient of a leaf", peripheries=2),
    "seed":          _N("ellipse", OLIVE,      "#F7F0A0", 2,   "seed: backward starts here"),
    "sum":           _N("box",     PURPLE,     "#F6DFEC", 2,   "gradients are added"),
    "accumulate":    _N("box",     PURPLE,     "#F6DFEC", 2,   "gradients add up", rounded=True),
    "renamed":       _N("ellipse", PURPLE,     "#F6DFEC", 2,   "one part of a gradient"),
    "zeros":         _N("box",     GREY,       "#E4E4E4", 2,   "makes a zero gradient", dashed=True),
    "zero":          _N("ellipse", GREY,       "#E4E4E4", 2,   "zero gradient", dashed=True),
    "pruned":        _N("box",     GREY,       "#F3F3F3", 1.5, "dropped, with the reason",
                        dashed=True, struck=True, text=FAINT_TEXT),
    "scopes":        _N("cylinder",BLUE,       "#EAF4FB", 1.5, "values of each step"),
    "folded":        _N("box",     BLUE,       "#CFE5F5", 2,   "repeated segment", peripheries=3),
}

EDGE_STYLES = {
    "flow":       _E(BLUE,       1.5, "data, forward"),
    "grad":       _E(VERMILLION, 1.5, "gradient, backward", reversed=True),
    "accumulate": _E(PURPLE,     1.5, "gradient on its way into a sum", reversed=True),
    "twin":       _E(GREY,       1,   "operator and its backward", "dashed", "none",
                     constraint=False),
    "saved":      _E(GREY,       1.6, "value read by a backward operator", "dotted", "vee",
                     constraint=False),
    "ref":        _E(GREEN,      1.3, "reference", "dashed", "vee", constraint=False),
    "weak":       _E(BLUE,       1.5, "data, held by a weak reference", "dotted"),
    "sub_block":  _E(GREY,       2.2, "operator and its sub-block", "dashed"),
    "loop":       _E(BLUE,       3,   "carried to the next step"),
}

REGION_STYLES = {
    ("forward", False):  RegionStyle("#4A90C2", "#F6FAFD"),
    ("forward", True):   RegionStyle(BLUE, "#E4F1FA"),
    ("backward", False): RegionStyle("#CF7234", "#FFFAF6"),
    ("backward", True):  RegionStyle(VERMILLION, "#FCE7D8"),
}
# fmt: on

#: Kinds that take the colours of another one on the backward side.
_BACKWARD = {"folded": "grad_op", "scopes": "gradient", "output": "gradient"}
#: The fill of a node that the player is at.
ACTIVE_FILLS = {
    BLUE: "#8FC3E8",
    VERMILLION: "#F4A36B",
    GREEN: "#8FD9BF",
    PURPLE: "#DDA0C4",
    OLIVE: "#EFE25A",
    GREY: "#C9C9C9",
}


def node_style(node: Node) -> NodeStyle:
    """The look of one node: that of its kind, in the colours of its side, heavier if it holds a
    sub-block.
    """
    style = NODE_STYLES[node.kind]
    if node.side == "backward" and node.kind in _BACKWARD:
        twin = NODE_STYLES[_BACKWARD[node.kind]]
        style = style._replace(stroke=twin.stroke, fill=twin.fill)
    if node.kind == "seed" and (node.ports or node.number is not None):
        style = style._replace(shape="box")
    return style._replace(width=4) if node.bold else style


def edge_style(edge: Edge, side: str) -> EdgeStyle:
    """The look of one line; a loop-carried value takes the colour of its side, and a gradient is as
    wide as the logarithm of its norm: one that vanishes is a hair, one that explodes a beam.
    """
    style = EDGE_STYLES[edge.kind]
    if edge.norm is not None:
        power = math.log10(max(1e-9, min(1e9, edge.norm)))  # where it is no number, it exploded
        width = min(max(style.width + power / 2, 0.4), 6)
        style = style._replace(width=round(width, 2))
    if edge.kind == "loop":
        forward = side == "forward"
        return style._replace(stroke=BLUE if forward else VERMILLION, reversed=forward)
    return style


def region_style(region: Region) -> RegionStyle:
    """The look of one region."""
    style = REGION_STYLES[region.side, region.strong]
    inner = region.parent and not region.strong
    return style._replace(fill=REGION_STYLES[region.side, True].fill) if inner else style
