"""Names that try to break out: nothing runs anywhere, and the name is shown as it is."""

from __future__ import annotations

import html
import re
import unicodedata
from html.parser import HTMLParser

import pytest

import minigrad as mg
from minigrad.viz import draw
from minigrad.viz.graph.format import shorten, visible, wrapped
from minigrad.viz.graph.graph import Graph
from minigrad.viz.picture import Picture
from tests.viz.linked_nodes import Add, Square, Variable, backward
from tests.viz.needs import needs_layout
from tests.viz.svg_facts import SVG, active_content, parts, texts

MARKUP = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "</svg><script>",
    "]]>",
    "<![CDATA[x]]>",
    "<!-- x -->",
    "-->",
    "<!--",
    "<?xml?>",
    "<!DOCTYPE a>",
    "<!ENTITY a 'b'>",
    "&amp;",
    "&lt;b&gt;",
    "&#60;b&#62;",
    "&#x3c;",
    "&nbsp;",
    "&",
    "&;",
    "&unknown;",
    "<b>bold</b>",
    "<B",
    "</B>",
    "</TD></TR></TABLE>",
    "<TABLE><TR><TD>x</TD></TR></TABLE>",
    "<BR/>",
    "<FONT",
    '<TD HREF="javascript:alert(1)">',
    "<a href='javascript:alert(1)'>x</a>",
    "</title><script>",
    "</desc>",
    "</style><script>alert(1)</script>",
    "<style>*{display:none}</style>",
    "<foreignObject>",
    "<math><mi//xlink:href=x>",
    "<iframe src=//a>",
    "<",
    ">",
    "<>",
    "<<<>>>",
    "< >",
    "</",
    "/>",
    "<a b=c",
    "x<y>z",
]
QUOTES = [
    '"',
    "'",
    "`",
    '""',
    '" onload="alert(1)',
    "' onload='alert(1)",
    '"];a->b;"',
    '"} digraph {',
    '"\\"',
    '\\"',
    'x" shape=box y="',
    'x", URL="javascript:alert(1)',
    "'); alert(1); ('",
    "${alert(1)}",
    "{{7*7}}",
    "#{7*7}",
    "%s%n",
    "{x|y}",
    "{",
    "}",
    "[",
    "]",
    ";",
    "|",
    "->",
    "--",
    "a -> b",
    "node",
    "graph",
    "digraph",
    "subgraph",
    "strict",
    "edge",
]
BACKSLASHES = [
    "\\N",
    "\\G",
    "\\L",
    "\\E",
    "\\T",
    "\\H",
    "\\n",
    "\\l",
    "\\r",
    "\\\\N",
    "\\",
    "\\\\",
    "a\\",
    "\\x00",
    "\\u0041",
    "\\'",
]
INVISIBLE = [
    "\n",
    "a\nb",
    "\r\n",
    "\t",
    "\x00",
    "a\x00b",
    "\x01\x02",
    "\x1b[31mred",
    "\x7f",
    "\x85",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\u200b",
    "\u202eevil",
    "\u2066x\u2069",
    "\u200fx",
    "\ud800",
    "\udfff",
    "\ufffe",
    "\uffff",
    "\U000e0001",
]
SCRIPTS = [
    "שלום",
    "مرحبا",
    "x שלום y",
    "日本語",
    "Ελληνικά",
    "Привет",
    "नमस्ते",
    "é",
    "e\u0301",
    "ﬁ",
    "ß",
    "İ",
    "😀",
    "👩\u200d🔬",
    "🇫🇷",
    "∂L/∂w",
    "x²",
    "𝒙",
    "𝟙",
    "½",
    "\u0300",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L",
]
SHAPES = [
    "",
    " ",
    "   ",
    "a  b",
    " x",
    "x ",
    "a" * 28,
    "a" * 29,
    "a" * 5000,
    "<" * 3000,
    "&" * 3000,
    "\\" * 500,
    "é" * 100,
    "n",
    "s",
    "e",
    "w",
    "c",
    "_",
    "ne",
    "0",
    "-1",
    "1e5",
    "None",
    "n0",
    "r0",
    "cluster_r0",
    "mg",
    "__proto__",
    "constructor",
    "prefix-n1",
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "../../etc/passwd",
    "C:\\new\\table",
    "url(#a)",
    "expression(alert(1))",
    "@import 'x'",
    "x@GRAD@RENAME@0",
    "%1",
]
NAMES = MARKUP + QUOTES + BACKSLASHES + INVISIBLE + SCRIPTS + SHAPES


def everywhere(name):
    """A graph with the name in every place that takes text."""
    g = Graph(title=name, direction="TB", notes=[name])
    one, two = g.region(name), g.region(name, side="backward", strong=True)
    x = g.node("leaf", name, lines=(name, name), region=one.id, tooltip=name)
    op = g.node(
        "op",
        name,
        lines=(name,),
        number=1,
        region=one.id,
        ports=((name, "in"), (name, "out")),
        bold=True,
    )
    gx = g.node("leaf_gradient", name, side="backward", region=two.id)
    back = g.node(
        "grad_op", name, side="backward", region=two.id, reads=(name, name), ports=((name, "out"),)
    )
    lost = g.node("pruned", name, lines=(name,), side="backward", region=two.id)
    g.edge(x, op, head_port=name, label=name)
    g.edge(back, gx, "grad", tail_port=name, label=name)
    g.edge(x, back, "saved"), g.edge(op, back, "sub_block"), g.edge(lost, gx, "loop", label=name)
    g.link(op, back), g.link(x, gx)
    return g


def test_there_are_enough_of_them():
    assert len(set(NAMES)) >= 100


@needs_layout
@pytest.mark.parametrize("name", NAMES)
def test_the_svg_runs_nothing_and_shows_the_name(name):
    svg = Picture(everywhere(name), legend=True).svg
    assert svg is not None
    assert not active_content(svg)
    nodes = parts(svg, "node")
    assert len(nodes) == 5
    shown = "".join(texts(nodes[0])).replace("\xa0", " ")
    assert "".join(wrapped(shorten(name))).strip() in shown or not name.strip()
    title = nodes[0].find(SVG + "title").text
    assert title.startswith(visible(name)) or not name


@pytest.mark.parametrize("name", NAMES)
def test_the_texts_show_the_name_and_no_control_character(name):
    picture = Picture(everywhere(name))
    dot = re.sub(r"^\t+", "", picture.dot, flags=re.MULTILINE)  # how its lines are indented
    for text in (picture.text, picture.describe(), dot):
        assert not {c for c in set(text) if unicodedata.category(c) in ("Cc", "Cs", "Cf")} - {
            "\n",
            "\u200d",
        }
        text.encode()
    assert visible(name) in picture.describe()


class Page(HTMLParser):
    """Reads a page as a browser would, and keeps its tags."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.scripts, self.inside = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {k for k, _ in attrs}
        self.inside = tag
        self.scripts += [""] if tag == "script" else []

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data


@needs_layout
@pytest.mark.parametrize("name", NAMES)
def test_the_page_holds_no_more_than_the_drawing_its_words_and_the_search(name, tmp_path):
    page, plain = Page(), Page()
    page.feed(Picture(everywhere(name)).save(tmp_path / "a.html").read_text(encoding="utf-8"))
    plain.feed(Picture(everywhere("x")).save(tmp_path / "b.html").read_text(encoding="utf-8"))
    _, code = page.scripts
    assert code == plain.scripts[1]  # names reach the page as data and as text only
    assert page.tags <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "template",
        "script",
        "details",
        "summary",
        "pre",
        "svg",
        "desc",
        "g",
        "polygon",
        "polyline",
        "path",
        "ellipse",
        "text",
    }
    assert not [
        a for a in page.attributes if a.startswith("on") or a in ("href", "src", "xlink:href")
    ]


@needs_layout
def test_a_variable_with_a_hostile_name_is_drawn_through_draw():
    x = Variable(1.0, '" onload="alert(1)')
    y = Add()(Square()(x), x)
    y.name = "<script>alert(1)</script>"
    backward(y)
    svg = draw(y).svg
    assert not active_content(svg)
    assert html.escape(y.name, quote=False) in svg


@needs_layout
def test_names_given_to_draw_may_be_anything():
    x = Variable(1.0)
    y = Square()(x)
    assert not active_content(draw(y, names={"<b>": x, "\\N\x00": y}).svg)


def test_a_value_that_prints_itself_in_markup_is_not_asked_to():
    class Loud:
        def __str__(self):
            raise AssertionError("a picture does not print foreign objects")

        __repr__ = __str__

    x = Variable(1.0, "x")
    x.data = Loud()
    assert "Loud" in draw(x).text


@needs_layout
@pytest.mark.parametrize("name", NAMES)
def test_every_node_is_drawn_whatever_its_name(name):
    nodes = parts(Picture(everywhere(name)).svg, "node")
    assert len(nodes) == 5
    for node in nodes:
        tags = {child.tag.rpartition("}")[2] for child in node.iter()}
        assert tags & {"polygon", "ellipse", "path"}, tags


@needs_layout
@pytest.mark.parametrize("name", NAMES)
def test_a_player_of_a_tensor_of_this_name_is_shown_and_saved(name, tmp_path):
    """With a gradient that is there before: its line in the drawing is taken back in the first frame."""
    x = mg.tensor([2.0, 3.0], requires_grad=True, name=name)
    (x * x).sum().backward()
    player = mg.play((x * x).sum())
    shown = player._repr_mimebundle_()
    assert set(active_content(shown["image/svg+xml"])) <= {"rect"}  # the paper of the captions
    page = player.save(tmp_path / "a.html").read_text(encoding="utf-8")
    for text in (shown["text/plain"], shown["image/svg+xml"], page):
        assert not {c for c in set(text) if unicodedata.category(c) in ("Cc", "Cs")} - {"\n", "\t"}
