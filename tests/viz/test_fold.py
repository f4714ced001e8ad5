"""Big graphs: folded, counted, and said."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.viz import draw
from minigrad.viz.adapters.names import Names
from minigrad.viz.adapters.of_nodes import of_links
from minigrad.viz.fold import FULL, View, found_ops
from minigrad.viz.graph.graph import Graph, is_op
from tests.viz import sample_programs as samples
from tests.viz.linked_nodes import Add, Function, Mul, Square, Variable
from tests.viz.needs import needs_layout
from tests.work import calls


class Sine(Function):
    """Keeps a long chain of numbers small."""

    def forward(self, x):
        return np.sin(x)

    def backward(self, gy):
        x = self.inputs[0].data
        return np.cos(x) * gy


def chain(times, *kinds):
    x = v = Variable(0.1, "x")
    for i in range(times):
        kind = kinds[i % len(kinds)]
        v = kind()(v, x) if kind in (Add, Mul) else kind()(v)
    v.name = "y"
    return v


def irregular(count):
    draw_from = np.random.default_rng(0)
    values = [Variable(0.1, "x")]
    for _ in range(count):
        kind = [Add, Mul, Square][draw_from.integers(3)]
        near = [values[-1 - int(draw_from.integers(min(len(values), 20)))] for _ in range(2)]
        values.append(kind()(*near[: 1 if kind is Square else 2]))
    return values[-1]


def counted(graph):
    """Operations, folded ones counted by what they stand for."""
    return sum(n.data.get("ops", 1) for n in graph.nodes.values() if is_op(n))


def test_a_small_graph_is_drawn_in_full():
    graph = of_links([chain(5, Square)], Names())
    assert View(graph).graph is graph
    assert View(graph, "full").graph is graph


def test_a_repeated_segment_is_drawn_once_with_its_count():
    small = View(of_links([chain(40, Square, Sine)], Names()), "folded").graph
    names = [n.name for n in small.nodes.values() if n.kind == "folded"]
    assert names == ["20 × (Square, Sine)", "20 × (Sine.backward, Square.backward)"]
    forward, backward = (n for n in small.nodes.values() if n.kind == "folded")
    assert forward.twin == backward.id
    assert backward.twin == forward.id
    assert (forward.side, backward.side) == ("forward", "backward")


@pytest.mark.parametrize("kinds", [(Square,), (Square, Sine), (Square, Mul, Sine, Add)])
@pytest.mark.parametrize("times", [12, 100, 1000])
def test_every_operation_is_drawn_or_counted(times, kinds):
    graph = of_links([chain(times, *kinds)], Names())
    small = View(graph).graph
    plain = sum(is_op(n) and n.kind != "accumulate" for n in graph.nodes.values())
    drawn = sum(
        n.data.get("ops", 1) for n in small.nodes.values() if is_op(n) and n.kind != "accumulate"
    )
    assert drawn == plain == 2 * times
    assert len(small.nodes) <= FULL


def test_an_irregular_graph_folds_too_and_keeps_every_operation():
    graph = of_links([irregular(1200)], Names())
    small = View(graph).graph
    assert len(small.nodes) <= FULL
    lost = [n for n in graph.nodes.values() if n.kind == "accumulate"]
    assert counted(small) + len(lost) >= sum(map(is_op, graph.nodes.values())) >= counted(small)


def test_what_was_folded_is_said_below_the_picture():
    picture = draw(chain(300, Square, Sine))
    assert "nodes are folded into 2: 150 × (Square, Sine)" in picture.graph.notes[0]
    assert picture.graph.notes[0] in picture.text
    assert picture.graph.notes[0] in picture.describe()


def test_a_shared_leaf_and_its_gradient_stay():
    small = View(of_links([chain(300, Square, Mul)], Names())).graph
    assert [n.name for n in small.nodes.values() if not is_op(n)] == ["x", "y", "y.grad", "x.grad"]


def test_lines_end_at_nodes_that_are_there():
    for root in (chain(100, Square, Mul), irregular(400)):
        for detail in ("folded", "auto"):
            small = View(of_links([root], Names()), detail).graph
            assert all({e.tail, e.head} <= small.nodes.keys() for e in small.edges)
            assert all(n.twin is None or n.twin in small.nodes for n in small.nodes.values())


def test_the_graph_that_is_folded_is_not_changed():
    graph = of_links([chain(100, Square, Mul)], Names())
    before = (
        len(graph.nodes),
        len(graph.edges),
        [n.twin for n in graph.nodes.values()],
        list(graph.notes),
    )
    View(graph, "folded").graph
    assert before == (
        len(graph.nodes),
        len(graph.edges),
        [n.twin for n in graph.nodes.values()],
        graph.notes,
    )


def test_a_graph_with_one_side_only_folds():
    g = Graph()
    before = g.node("leaf", "x")
    for i in range(600):
        op, value = g.node("op", "mul" if i % 2 else "add", number=i), g.node("value", f"v{i}")
        g.edge(before, op), g.edge(op, value)
        before = value
    small = View(g).graph
    (segment,) = (n for n in small.nodes.values() if n.kind == "folded")
    assert (segment.name, segment.lines) == ("300 × (add, mul)", ("ops #0 to #599",))


@needs_layout
def test_ten_thousand_nodes_are_folded_and_drawn_for_bounded_work():
    picture = draw(chain(2500, Square, Sine))
    assert calls(lambda: picture.svg) < 10_000_000
    assert picture.svg is not None
    assert "of 10002 nodes" in picture.graph.notes[0]


def test_an_unknown_detail_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'tiny'; known: auto, full, folded, pruned"):
        draw(chain(2, Square), detail="tiny")


# Looking inside -------------------------------------------------------------------------------


def test_what_is_searched_for_is_drawn_in_full_and_the_rest_stays_folded():
    program = samples.big_program(3000)
    written = [op.outputs["out"][0] for op in program.blocks[0].ops if "out" in op.outputs]
    name = written[1500]
    graph = draw(program, expand=name).graph
    assert name in {n.name for n in graph.nodes.values()}
    assert len(graph.nodes) < 100
    assert ops_in(graph) == sum(len(b.ops) for b in program.blocks)


def test_every_operation_is_counted_wherever_a_picture_is_opened():
    program = samples.big_program(900)
    total = sum(len(b.ops) for b in program.blocks)
    for number in (0, 1, 2, 400, 600, 899):
        assert ops_in(draw(program, expand=f"#{number}").graph) == total


def test_a_search_without_a_hit_names_what_is_near():
    program = samples.big_program(900)
    with pytest.raises(ValueError, match="nothing called 'no such thing'.*block 2"):
        draw(program, expand="no such thing")


def ops_in(graph):
    """Operations of a picture, with those inside folded nodes."""
    return sum(n.data["ops"] if n.kind == "folded" else is_op(n) for n in graph.nodes.values())


# What a box says --------------------------------------------------------------------------------


def boxes(graph):
    return {n.side: (n.name, n.lines[0]) for n in graph.nodes.values() if n.kind == "folded"}


def test_steps_that_read_rows_and_are_stacked_fold_into_one_repeat():
    layer = nn.RNN(3, 4)
    out, _ = layer(mg.tensor(np.ones((20, 2, 3))))
    graph = draw((out * out).sum(), detail="folded").graph
    assert boxes(graph)["forward"] == ("20 × (addmm, tanh)", "40 operations")
    labels = {e.label for e in graph.edges if e.label}
    assert labels == {"20 parts"}  # not on the line from the weight, which is one value
    ends = {graph.nodes[e.tail].name for e in graph.edges if e.label and e.kind == "flow"}
    assert ends == {"unbind", "20 × (addmm, tanh)"}


def test_a_module_of_library_code_is_no_operand():
    layer = nn.RNN(3, 4)
    out, _ = layer(mg.tensor(np.ones((2, 2, 3))))
    assert "ops" not in {n.name for n in draw(out.sum()).graph.nodes.values()}


def test_modules_that_were_one_box_open_though_the_boxes_of_their_twins_are_gone():
    """Neighbouring boxes are one box; its frames open on both sides, and some of their boxes are gone."""
    g = Graph()
    forward, backward = g.region("forward"), g.region("backward", side="backward")
    value, gradient = g.node("leaf", "x"), g.node("leaf_gradient", "x.grad", side="backward")
    for i in range(100):
        frame = g.region(f"layer{i}", folds=True, parent=forward.id)
        behind = g.region(f"layer{i}", folds=True, side="backward", parent=backward.id)
        op = g.node("op", f"tanh{i}", region=frame.id)
        grad_op = g.node("grad_op", f"tanh{i}_grad", side="backward", region=behind.id)
        g.link(op, grad_op)
        g.edge(value, op)
        g.edge(grad_op, gradient, "grad")
        value, gradient = g.node("value", f"h{i}"), g.node("gradient", f"g{i}", side="backward")
        g.edge(op, value)
        g.edge(gradient, grad_op, "grad")
    shown = View(g, "pruned", found_ops(g, "tanh7")).graph
    assert {"tanh7", "tanh7_grad"} <= {n.name for n in shown}
    assert all(n.twin in shown.nodes for n in shown if n.twin)


def test_a_frame_opens_though_the_twins_of_what_stands_in_it_are_in_a_box_outside():
    """An operation is in one box at most: what stands in two left one of them with nothing in it."""
    g = Graph()
    inside = g.region("layer", folds=True, parent=g.region("net", folds=True).id)
    value, gradient = g.node("leaf", "x"), g.node("leaf_gradient", "x.grad", side="backward")
    for i in range(200):
        op = g.node("op", "tanh", number=i, region=inside.id)
        grad_op = g.node("grad_op", "tanh_grad", side="backward", number=i)
        g.link(op, grad_op)
        g.edge(value, op)
        g.edge(grad_op, gradient, "grad")
        value, gradient = op, grad_op
    shown = View(g, "auto", found_ops(g, "#40")).graph
    assert {40, 41} <= {n.number for n in shown}
    assert sum(n.data.get("ops", 1) for n in shown if is_op(n)) == 400
