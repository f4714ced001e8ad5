"""A graph in words."""

from __future__ import annotations

from minigrad.viz.adapters.names import Names
from minigrad.viz.adapters.of_nodes import of_links
from minigrad.viz.adapters.of_program import of_program
from minigrad.viz.graph.graph import Graph
from minigrad.viz.render.words import describe, describe_edge, describe_node
from tests.viz import sample_programs as samples
from tests.viz.linked_nodes import Square, Variable, backward


def chain():
    x = Variable(3, "x")
    y = Square()(x)
    y.name = "y"
    return y


def test_one_sentence_and_the_steps_in_order():
    y = chain()
    backward(y)
    assert describe(of_links([y], Names())).splitlines() == [
        "y: a graph with 1 operation forward and 1 backward, from x to y.",
        "1. Square: x = 3 to y = 9 (y = x²)",
        "2. Square.backward: y.grad = 1 (seed) to x.grad = 6 (gx = 2·x·gy; = 2·3·1)",
    ]


def test_before_backward_no_gradient_is_named_with_a_number():
    assert (
        describe(of_links([chain()], Names())).splitlines()[-1]
        == "2. Square.backward: y.grad = — to x.grad = — (gx = 2·x·gy)"
    )


def test_a_program_is_told_block_by_block_in_the_order_it_runs():
    program = samples.while_loop()
    told = [line.split() for line in describe(of_program(program)).splitlines()[1:]]
    ran = [["block", str(b.idx), op.type] for b in program.blocks for op in b.ops]
    assert [[*t[1:3], t[4].rstrip(":")] for t in told] == ran


def test_many_steps_are_counted():
    g = Graph()
    for _ in range(100):
        g.node("op", "sin")
    assert describe(g).splitlines()[-1] == "… and 40 more steps"


def test_an_empty_graph_is_described():
    assert describe(Graph()) == "A graph with 0 operations forward and 0 backward."


def test_a_graph_without_steps_is_described_from_its_lines():
    g = Graph()
    op = g.node("op", "mul", number=3, reads=("h", "w"))
    g.edge(g.node("leaf", "x"), op)
    assert describe(g).splitlines()[1] == "1. #3 mul: x to nothing, reads h, w"


def test_the_tooltip_tells_the_whole_name_what_it_is_and_its_twin():
    g = Graph()
    long = "encoder_layer_12_attention_output_weights"
    w, gw = (
        g.node("leaf", long, tooltip="float64 [2,3]"),
        g.node("leaf_gradient", "w.grad", side="backward"),
    )
    g.link(w, gw)
    assert describe_node(g, w).splitlines() == [
        long,
        "leaf or parameter",
        "float64 [2,3]",
        "twin: w.grad",
    ]


def test_a_line_is_described_by_its_ends_and_its_meaning():
    g = Graph()
    line = g.edge(g.node("leaf", "x"), g.node("op", "mul"), label="twice")
    assert describe_edge(g, line) == "x → mul: data, forward: twice"
