"""Pictures of grad_fn graphs: next_functions and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad.viz import draw
from minigrad.viz.adapters.names import Names
from minigrad.viz.adapters.of_grad_fn import forward_name, of_grad_fn, walk_order
from tests.viz.linked_nodes import AccumulateGrad, Tensor, random_tensor, unbind
from tests.viz.needs import needs_layout
from tests.viz.svg_facts import centres, overlapping

RANDOM = range(40)


def example():
    a, b, d = (Tensor(v, True, name=n) for v, n in ((2, "a"), (3, "b"), (4, "d")))
    c = a + b
    e = c * d
    c.name, e.name = "c", "e"
    return a, b, c, d, e


def kinds(graph, kind):
    return [n for n in graph.nodes.values() if n.kind == kind]


def lines(graph, kind):
    return sorted(
        (graph.nodes[e.tail].name, graph.nodes[e.head].name) for e in graph.edges if e.kind == kind
    )


def test_the_documents_example():
    *_, e = example()
    graph = draw(e).graph
    assert [n.name for n in kinds(graph, "grad_op")] == ["MulBackward0", "AddBackward0"]
    assert lines(graph, "grad") == [
        ("AddBackward0", "AccumulateGrad"),
        ("AddBackward0", "AccumulateGrad"),
        ("MulBackward0", "AccumulateGrad"),
        ("MulBackward0", "AddBackward0"),
        ("e.grad", "MulBackward0"),
    ]
    assert lines(graph, "ref") == [("AccumulateGrad", n) for n in "abd"]
    assert lines(graph, "saved") == [("c", "MulBackward0"), ("d", "MulBackward0")]
    assert kinds(graph, "grad_op")[0].ports == (("[0] grad·y", "out"), ("[1] grad·x", "out"))


def test_values_of_tensors_that_somebody_holds_are_shown():
    *_, e = example()
    shown = {
        n.name: n.lines
        for n in draw(e).graph.nodes.values()
        if n.kind in ("leaf", "value", "output")
    }
    assert shown == {"a": ("2",), "b": ("3",), "c": ("5",), "d": ("4",), "e": ("20",)}


def test_a_tensor_that_nobody_holds_has_no_value_and_no_dash():
    a = Tensor(2, True, name="a")
    y = (a + a) + a
    y.name = "y"
    graph = of_grad_fn([y], Names())
    (gone,) = kinds(graph, "value")
    assert gone.lines == ()
    assert "nobody holds it" in gone.tooltip


def test_a_tensor_in_a_variable_of_the_caller_is_found():
    a = Tensor(2, True)
    middle = a + a
    y = middle + a
    shown = {
        n.name: n.lines
        for n in draw(y).graph.nodes.values()
        if n.kind in ("leaf", "value", "output")
    }
    assert shown == {"a": ("2",), "middle": ("4",), "y": ("6",)}
    assert middle is not None


def test_before_backward_no_gradient_has_a_number():
    *_, e = example()
    graph = draw(e).graph
    assert sorted(n.lines for n in kinds(graph, "accumulate")) == [
        (f"{n}.grad = —",) for n in "abd"
    ]
    assert kinds(graph, "seed")[0].lines == ("seed",)


def test_after_backward_the_leaves_show_what_they_hold():
    a, b, _, d, e = example()
    a.grad, b.grad, d.grad = Tensor(4), np.array(4.0), Tensor(5)
    assert {line for n in kinds(draw(e).graph, "accumulate") for line in n.lines} == {
        "a.grad = 4",
        "b.grad = 4",
        "d.grad = 5",
    }


def test_saved_values_come_with_their_bytes():
    *_, e = example()
    node = kinds(draw(e).graph, "grad_op")[0]
    assert node.tooltip.splitlines() == [
        "saved x: float64 [], 5.0, 8 bytes",
        "saved y: float64 [], 4.0, 8 bytes",
    ]


def test_freed_values_are_called_freed():
    class Freed:
        next_functions = ()

        def name(self):
            return "MulBackward0"

        @property
        def saved(self):
            raise RuntimeError("freed the first time")

    graph = draw(Tensor(1, grad_fn=Freed())).graph
    assert kinds(graph, "grad_op")[0].tooltip == "saved values: freed"


def test_a_leaf_used_twice_has_one_accumulator_with_two_lines():
    a = Tensor(2, True, name="a")
    graph = draw(a * a).graph
    (acc,) = kinds(graph, "accumulate")
    assert sum(e.head == acc.id for e in graph.edges) == 2


def test_a_constant_is_an_input_without_a_way_back():
    a, k = Tensor(2, True, name="a"), Tensor(3, name="k")
    node = (a * k).grad_fn
    node.next_functions = (node.next_functions[0], (None, 0))
    graph = draw(Tensor(6, grad_fn=node, name="y")).graph
    assert [n.name for n in kinds(graph, "data")] == ["k"]
    assert len(lines(graph, "grad")) == 2  # from the seed, and to the only leaf


def test_a_constant_tensor_of_an_engine_of_ones_own_is_called_by_its_slot():
    a = Tensor(2, True, name="a")
    node = (a * Tensor(3)).grad_fn
    node.next_functions = (node.next_functions[0], (None, 0))
    (constant,) = kinds(draw(Tensor(6, grad_fn=node, name="y")).graph, "data")
    assert (constant.name, constant.lines) == ("y of mul", ("3",))


def test_a_constant_whose_value_no_rule_reads_says_that_it_is_not_kept():
    a = Tensor(2, True, name="a")
    node = (a + Tensor(3)).grad_fn
    node.next_functions = (node.next_functions[0], (None, 0))
    (constant,) = kinds(draw(Tensor(5, grad_fn=node, name="y")).graph, "data")
    assert (constant.name, constant.lines) == ("y of add", ())
    assert constant.tooltip.startswith("not known any more")


def test_a_second_output_says_its_index():
    x = Tensor([1.0, 2.0], True, name="x")
    one, two = unbind(x)
    graph = draw(one * two).graph
    assert sorted(e.label for e in graph.edges if e.kind == "grad" and e.label) == [
        "output 0",
        "output 1",
    ]


def test_a_node_can_be_drawn_itself():
    *_, e = example()
    assert len(kinds(draw(e.grad_fn).graph, "grad_op")) == 2


def test_a_leaf_has_no_graph_and_the_picture_says_so():
    graph = draw(Tensor(2, True, name="a")).graph
    assert [n.name for n in graph.nodes.values()] == ["a"]
    assert "no grad_fn" in graph.notes[0]


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        ("AddBackward0", "add"),
        ("ReduceSumBackward0", "reduce_sum"),
        ("MmBackward", "mm"),
        ("Strange", "strange"),
    ],
)
def test_the_operation_is_named_after_its_node(class_name, expected):
    assert forward_name(type(class_name, (), {"next_functions": ()})()) == expected


# Structure, on random graphs ------------------------------------------------------------------


@pytest.fixture(scope="module", params=RANDOM)
def drawn(request):
    root = random_tensor(request.param)
    return root, walk_order([root.grad_fn]), of_grad_fn([root], Names())


def test_nodes_are_the_nodes_behind_the_root(drawn):
    _, nodes, graph = drawn
    expected = sorted(n.name() for n in nodes)
    assert (
        sorted(n.name for n in graph.nodes.values() if n.kind in ("grad_op", "accumulate"))
        == expected
    )


def test_lines_are_the_entries_of_next_functions_and_one_from_the_seed(drawn):
    _, nodes, graph = drawn
    entries = sum(target is not None for n in nodes for target, _ in n.next_functions)
    assert len(lines(graph, "grad")) == entries + 1


def test_the_order_is_that_of_a_walk(drawn):
    _, nodes, _ = drawn
    place = {id(n): i for i, n in enumerate(nodes)}
    assert all(
        place[id(n)] < place[id(t)] for n in nodes for t, _ in n.next_functions if t is not None
    )


def test_every_backward_node_has_its_twin_and_there_is_one_seed(drawn):
    _, _, graph = drawn
    backward = [n for n in graph.nodes.values() if n.side == "backward"]
    assert all(graph.nodes[n.twin].twin == n.id for n in backward)
    assert len(kinds(graph, "seed")) == 1
    assert set(graph.regions) == {"r0", "r1"}


def test_every_accumulator_points_at_its_leaf(drawn):
    _, nodes, graph = drawn
    assert len(lines(graph, "ref")) == sum(isinstance(n, AccumulateGrad) for n in nodes)


@needs_layout
def test_twins_stand_on_one_rank_forward_left_of_backward_and_nothing_overlaps(drawn):
    root, _, graph = drawn
    svg = draw(root).svg
    at = centres(svg)
    forward = [at[n.id][0] for n in graph.nodes.values() if n.side == "forward"]
    backward = [at[n.id][0] for n in graph.nodes.values() if n.side == "backward"]
    assert max(forward) < min(backward)
    assert not overlapping(svg)
    for node in graph.nodes.values():
        if node.twin:
            assert at[node.id][1] == pytest.approx(at[node.twin][1], abs=1)


def test_a_graph_deeper_than_the_recursion_limit_is_drawn():
    x = y = Tensor(1, True, name="x")
    for _ in range(3000):
        y = y + x
    assert len(draw(y).graph.nodes) < 20
