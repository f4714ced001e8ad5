"""DOT: the same graph, the same bytes; text enters in one place."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from minigrad.viz.adapters.names import Names
from minigrad.viz.adapters.of_nodes import of_links
from minigrad.viz.graph.graph import Graph
from minigrad.viz.render.dot import quote, to_dot
from tests.viz.linked_nodes import random_variable
from tests.viz.palette import palette

SCRIPT = """
from minigrad.viz import draw
from tests.viz.linked_nodes import random_variable, random_tensor
for seed in range(6):
    print(draw(random_variable(seed)).dot, draw(random_tensor(seed)).dot)
"""


def chain():
    g = Graph()
    x, f, y = g.node("leaf", "x"), g.node("op", "Square"), g.node("output", "y")
    gx, b = (
        g.node("leaf_gradient", "x.grad", side="backward"),
        g.node("grad_op", "B", side="backward"),
    )
    g.edge(x, f), g.edge(f, y), g.edge(b, gx, "grad")
    g.link(x, gx), g.link(f, b)
    return g


def test_the_same_graph_gives_the_same_bytes_under_every_hash_seed():
    def made(seed):
        return subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()},
        ).stdout

    assert len({made(seed) for seed in ("0", "1", "4242")}) == 1


def test_ids_are_counters_and_hold_no_text_of_the_user():
    g = Graph()
    g.node("leaf", "my secret name")
    ids = re.findall(r"^\s*(\S+) \[", to_dot(g), flags=re.M)
    assert ids
    assert all(re.fullmatch(r"[nr]\d+|node|edge|graph", i) for i in ids)


def test_twins_stand_on_one_rank():
    rows = re.findall(r"\[rank=same\](.*?)\}", to_dot(chain()), flags=re.S)
    assert [row.split() for row in rows] == [["n0", "n3"], ["n1", "n4"], ["n2"]]


def test_a_backward_line_is_written_in_the_order_of_ranks_with_its_arrow_at_the_start():
    line = next(row for row in to_dot(chain()).splitlines() if row.startswith("\tn3 -> n4"))
    assert "dir=back" in line


def test_ports_have_numbers_because_some_names_are_compass_points():
    g = Graph(direction="TB")
    op = g.node("op", "mul", ports=(("n", "in"), ("s", "in"), ("w", "out")))
    for name, _way in (("n", 0), ("s", 1)):
        g.edge(g.node("value", name), op, head_port=name)
    dot = to_dot(g)
    assert "n0:p0" in dot
    assert "n0:p1" in dot
    assert not re.search(r"n0:[nsew]\b", dot)


def test_the_same_port_name_on_both_sides_is_two_ports():
    g = Graph(direction="TB")
    op = g.node("op", "relu_", ports=(("x", "in"), ("x", "out")))
    g.edge(g.node("value", "a"), op, head_port="x")
    g.edge(op, g.node("value", "b"), tail_port="x")
    assert "n1 -> n0:p0" in to_dot(g)
    assert "n0:p1 -> n2" in to_dot(g)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a<b", "a&lt;b"),
        ("a&b", "a&amp;b"),
        ('"', "&quot;"),
        ("\\N", "\\\\N"),
        ("a\nb", "a␊b"),
        ("a\x00b", "a␀b"),
        ("\u202eabc", "⟨202E⟩abc"),
        ("\ud800", "⟨D800⟩"),
    ],
)
def test_quote_leaves_nothing_that_graphviz_or_xml_would_read(text, quoted):
    assert quote(text) == quoted


def test_names_are_cut_in_the_middle_at_28_characters():
    g = Graph()
    g.node("leaf", "a" * 20 + "b" * 20)
    assert "<B>" + "a" * 13 + "…" + "b" * 12 + "<BR/>bb</B>" in to_dot(g)


def test_a_line_to_a_value_far_away_becomes_a_chip():
    g = Graph()
    far = g.node("leaf", "w")
    before = far
    for i in range(4):
        op, value = g.node("op", f"f{i}"), g.node("value", f"v{i}")
        g.edge(before, op), g.edge(op, value)
        before = value
    reader = g.node("grad_op", "g", side="backward")
    g.link(op, reader)
    g.edge(far, reader, "saved")
    dot = to_dot(g)
    assert "reads w" in dot
    assert "mg saved" not in dot


def test_a_near_saved_value_is_a_dotted_line_and_no_chip():
    g = chain()
    g.edge(g.nodes["n0"], g.nodes["n4"], "saved")
    dot = to_dot(g)
    assert "mg saved" in dot
    assert "reads x" not in dot


def test_a_sub_block_line_ends_at_the_frame():
    g = Graph(direction="TB")
    outer, inner = g.region("block 0"), g.region("block 1", strong=True)
    loop = g.node("op", "while", region=outer.id, bold=True)
    g.node("op", "mul", region=inner.id)
    g.edge(loop, g.nodes["n1"], "sub_block")
    assert "lhead=cluster_r1" in to_dot(g)


def test_only_colours_of_the_table_are_used():
    for seed in range(20):
        dot = to_dot(of_links([random_variable(seed)], Names()), legend=True)
        assert set(re.findall(r"#[0-9A-Fa-f]{6}", dot)) <= palette()


def test_the_legend_names_only_what_is_there():
    dot = to_dot(chain(), legend=True)
    assert "forward operator" in dot
    assert "zero gradient" not in dot


def test_notes_stand_in_a_box_and_not_on_the_page():
    g = chain()
    g.notes.append("folded: 10 <b>")
    dot = to_dot(g)
    assert "folded: 10 &lt;b&gt;" in dot
    assert dot.rindex("BGCOLOR") < dot.rindex("folded: 10")


def test_a_note_as_long_as_its_row_is_not_cut():
    g = chain()
    g.notes.append("41 numbers in 4 parameters; call it and draw what it returns to see its graph")
    assert g.notes[0] in to_dot(g)
