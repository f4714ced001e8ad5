"""Pictures of linked nodes: what really ran, mirrored, and nothing that did not."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad.viz import draw, watch
from minigrad.viz.adapters.names import Names
from minigrad.viz.adapters.of_nodes import of_links
from minigrad.viz.graph.graph import Graph, live_lines
from minigrad.viz.render import layout
from tests.viz import linked_nodes
from tests.viz.linked_nodes import (
    Add,
    Exp,
    Function,
    Halves,
    Mul,
    Square,
    Variable,
    backward,
    functions_behind,
    random_variable,
)
from tests.viz.needs import needs_layout
from tests.viz.svg_facts import centres, overlapping, parts

RANDOM = range(60)


def kinds(graph, kind):
    return [n for n in graph.nodes.values() if n.kind == kind]


def named(graph, name):
    return next(n for n in graph.nodes.values() if n.name == name)


def ends(graph, kind):
    return sorted(
        (graph.nodes[e.tail].name, graph.nodes[e.head].name) for e in graph.edges if e.kind == kind
    )


# The course's chain ---------------------------------------------------------------------------


def chain_by_hand():
    A, B, C = Square(), Exp(), Square()
    with watch(Function) as run:
        x = Variable(0.5, "x")
        a, b = A(x), None
        b = B(a)
        y = C(b)
        y.grad = np.array(1.0)
        b.grad = C.backward(y.grad)
        a.grad = B.backward(b.grad)
        x.grad = A.backward(a.grad)
    return run, {"x": x, "a": a, "b": b, "y": y}


def test_a_watched_chain_shows_values_gradients_and_formulas_with_numbers():
    run, names = chain_by_hand()
    graph = draw(run, names=names).graph
    shown = {n.name: n.lines for n in graph.nodes.values() if n.kind not in ("op", "grad_op")}
    assert shown == {
        "x": ("0.5",),
        "a": ("0.25",),
        "b": ("1.284",),
        "y": ("1.6487",),
        "y.grad": ("1 (seed)",),
        "b.grad": ("2.5681",),
        "a.grad": ("3.2974",),
        "x.grad": ("3.2974",),
    }
    assert [n.lines for n in kinds(graph, "grad_op")] == [
        ("gx = 2·x·gy", "= 2·1.284·1"),
        ("gx = eˣ·gy", "= exp(0.25)·2.5681"),
        ("gx = 2·x·gy", "= 2·0.5·3.2974"),
    ]
    assert ends(graph, "saved") == [
        ("a", "Exp.backward"),
        ("b", "Square.backward"),
        ("x", "Square.backward"),
    ]


def test_a_number_that_a_function_keeps_is_put_into_its_formula():
    class Scale(Function):
        def __init__(self, c):
            self.c = c

        def forward(self, x):
            return self.c * x

        def backward(self, gy):
            return self.c * gy

    with watch(Function) as run:
        y = Scale(3.0)(Variable(0.5))
        y.creator.backward(np.array(2.0))
    (lines,) = [n.lines for n in kinds(draw(run).graph, "grad_op")]
    assert lines == ("gx = c·gy", "= 3·2")


def test_without_backward_calls_there_is_nothing_to_walk_yet():
    with watch(Function) as run:
        x = Variable(0.5)
        y = Square()(x)
    graph = draw(run).graph
    assert not any(n.side == "backward" for n in graph.nodes.values())
    assert graph.notes == ["backward: nothing to walk yet"]
    assert named(graph, "y").kind == "output"
    assert y is not None


def test_backward_holds_only_the_calls_that_were_made():
    A, B = Square(), Exp()
    with watch(Function) as run:
        x = Variable(0.5, "x")
        a = A(x)
        y = B(a)
        B.backward(np.array(1.0))
    graph = draw(run, names={"a": a, "y": y}).graph
    assert [n.name for n in kinds(graph, "grad_op")] == ["Exp.backward"]
    assert named(graph, "a.grad").lines == ("—",)  # the result was not stored


def test_a_function_object_used_twice_belongs_to_its_last_call():
    f = Square()
    with watch(Function) as run:
        x = Variable(3.0, "x")
        a = f(x)
        y = f(a)
        f.backward(np.array(1.0))
    graph = draw(run, names={"a": a, "y": y}).graph
    assert ends(graph, "grad") == [("Square.backward", "a.grad"), ("y.grad", "Square.backward")]


def test_links_broken_by_a_function_used_twice_are_drawn_as_they_are():
    f = Square()
    x = Variable(3.0, "x")
    a = f(x)
    y = f(a)
    a.name, y.name = "a", "y"
    graph = of_links([y], Names())
    assert ends(graph, "flow") == [("Square", "y"), ("a", "Square")]
    assert "x" not in {n.name for n in graph.nodes.values()}
    assert draw(y).svg is not None or not layout.available()


def test_backward_without_the_forward_in_sight_is_found_by_its_links():
    f = Square()
    x = Variable(3.0, "x")
    y = f(x)
    y.name = "y"
    with watch(Function) as run:
        f.backward(np.array(1.0))
    graph = draw(run).graph
    assert ends(graph, "grad") == [("Square.backward", "x.grad"), ("y.grad", "Square.backward")]


# Meeting gradients ----------------------------------------------------------------------------


def test_two_gradients_meet_in_a_sum_with_its_numbers():
    x = Variable(3.0, "x")
    y = x + x
    backward(y)
    graph = of_links([y], Names())
    (meeting,) = kinds(graph, "accumulate")
    assert (meeting.name, meeting.lines) == ("+=", ("1 + 1",))
    assert [e.kind for e in graph.edges if e.head == meeting.id] == ["accumulate"] * 2
    assert named(graph, "x.grad").lines == ("2",)


def test_an_engine_that_assigns_is_shown_to_lose_a_gradient():
    x = Variable(3.0, "x")
    y = x + x
    backward(y, overwrite=True)
    (meeting,) = kinds(of_links([y], Names()), "accumulate")
    assert (meeting.name, meeting.lines) == ("=", ("1, then 1", "the earlier one is lost"))


def test_a_second_backward_call_of_a_function_is_a_second_node():
    x = Variable(2.0, "x")
    f = Square()
    with watch(Function) as run:
        y = f(x)
        f.backward(np.array(1.0))
        f.backward(np.array(1.0))
    graph = draw(run, names={"y": y}).graph
    assert len(kinds(graph, "grad_op")) == 2
    assert "called again" in kinds(graph, "grad_op")[1].lines
    assert len({n.twin for n in kinds(graph, "grad_op")}) == 1


def test_weak_references_to_outputs_are_dotted_lines(monkeypatch):
    monkeypatch.setattr(Function, "weak", True)
    x = Variable(3.0, "x")
    y = Square()(x)
    y.name = "y"
    graph = of_links([y], Names())
    assert ends(graph, "weak") == [("Square", "y")]
    assert ends(graph, "flow") == [("x", "Square")]


def test_an_output_that_is_gone_is_left_out(monkeypatch):
    monkeypatch.setattr(Function, "weak", True)
    x = Variable(3.0, "x")
    one, _ = Halves()(x)
    one.name = "one"
    del _
    graph = of_links([one], Names())
    assert [n.name for n in graph.nodes.values() if n.side == "forward"] == ["x", "Halves", "one"]


def test_several_roots_share_one_picture():
    x = Variable(2.0, "x")
    a, b = Square()(x), Exp()(x)
    a.name, b.name = "a", "b"
    graph = draw([a, b]).graph
    assert len(kinds(graph, "leaf")) == 1
    assert [n.name for n in kinds(graph, "output")] == ["a", "b"]


def test_a_leaf_alone_is_drawn():
    graph = draw(Variable(2.0, "x")).graph
    assert [(n.kind, n.name) for n in graph.nodes.values()] == [("leaf", "x")]


def test_a_function_is_drawn_by_what_it_made():
    f = Square()
    y = f(Variable(2.0, "x"))
    assert [n.kind for n in draw(f).graph.nodes.values()].count("op") == 1
    assert y is not None


def test_large_arrays_show_shape_and_type_a_strip_of_cells_and_their_norm():
    x = Variable(np.arange(6.0).reshape(2, 3), "x")
    node = named(of_links([Square()(x)], Names()), "x")
    assert node.lines == ("[2,3] float64", "▁▂▄▅▇█ ‖7.42‖")
    assert [before for _, before in live_lines(node)] == ["—", ""]
    assert "max 5" in node.tooltip


def test_a_function_without_readable_source_shows_what_came_out():
    namespace = {"Function": Function}
    exec(
        "class Hidden(Function):\n def forward(self, x): return x\n"
        " def backward(self, gy): return gy * 3",
        namespace,
    )
    f = namespace["Hidden"]()
    with watch(Function) as run:
        f(Variable(2.0, "x"))
        f.backward(np.array(2.0))
    assert kinds(draw(run).graph, "grad_op")[0].lines == ("gx = 6",)


# Structure, on random graphs ------------------------------------------------------------------


@pytest.fixture(scope="module", params=RANDOM)
def drawn(request):
    root = random_variable(request.param)
    if request.param % 2:
        backward(root)
    return root, of_links([root], Names())


def test_operation_nodes_are_the_functions(drawn):
    root, graph = drawn
    functions = functions_behind(root)
    expected = sorted(type(f).__name__ for f in functions)
    assert sorted(n.name for n in kinds(graph, "op")) == expected
    assert sorted(n.name for n in kinds(graph, "grad_op")) == [f"{n}.backward" for n in expected]


def test_operations_are_listed_in_an_order_in_which_they_can_run(drawn):
    _, graph = drawn
    place = {n: i for i, n in enumerate(graph.nodes)}
    assert all(
        place[e.tail] < place[e.head]
        for e in graph.edges
        if e.kind == "flow" and graph.nodes[e.head].kind == "op"
    )


def test_lines_are_exactly_the_arguments_and_results(drawn):
    root, graph = drawn
    functions = functions_behind(root)
    count = sum(len(f.inputs) + len(f.outputs) for f in functions)
    assert sum(e.kind == "flow" for e in graph.edges) == count


def test_every_operation_has_one_twin_and_every_gradient_its_variable(drawn):
    _, graph = drawn
    for node in graph.nodes.values():
        if node.kind == "accumulate":
            continue
        assert graph.nodes[node.twin].twin == node.id
        assert graph.nodes[node.twin].side != node.side


def test_the_seed_is_there_once(drawn):
    assert len(kinds(drawn[1], "seed")) == 1


def test_k_readers_meet_in_one_sum_with_k_lines(drawn):
    root, graph = drawn
    readers: dict[int, int] = {}
    for f in functions_behind(root):
        for v in f.inputs:
            readers[id(v)] = readers.get(id(v), 0) + 1
    expected = sorted(k for k in readers.values() if k > 1)
    into = [sum(e.head == n.id for e in graph.edges) for n in kinds(graph, "accumulate")]
    assert sorted(into) == expected


def test_before_backward_no_gradient_has_a_number(drawn):
    root, graph = drawn
    if root.grad is None:
        gradients = [
            n for n in graph.nodes.values() if n.kind in ("gradient", "leaf_gradient", "seed")
        ]
        assert {line for n in gradients for line in n.lines} == {"—"}
        assert not any(n.lines for n in kinds(graph, "accumulate"))


def test_after_backward_the_numbers_are_those_of_the_variables(drawn):
    root, graph = drawn
    if root.grad is not None:
        assert all("—" not in n.lines for n in graph.nodes.values())


@needs_layout
def test_twins_stand_on_one_rank_forward_left_of_backward_and_nothing_overlaps(drawn):
    _root, graph = drawn
    picture = draw(
        Graph(**{f: getattr(graph, f) for f in ("title", "direction", "nodes", "edges", "regions")})
    )
    at = centres(picture.svg)
    for node in graph.nodes.values():
        if node.side == "forward" and node.twin:
            assert at[node.id][1] == pytest.approx(at[node.twin][1], abs=1)
            assert at[node.id][0] < at[node.twin][0]
    assert not overlapping(picture.svg)
    assert len(parts(picture.svg, "node")) == len(graph.nodes)


def test_a_chain_deeper_than_the_recursion_limit_is_drawn():
    v = Variable(0.1, "x")
    for _ in range(3000):
        v = Square()(v)
    picture = draw(v)
    assert picture.graph.notes
    assert len(picture.graph.nodes) < 20


def test_drawing_changes_nothing():
    root = random_variable(5)
    backward(root)
    leaf = functions_behind(root)[0].inputs[0]
    before = leaf.grad.copy()
    draw(root).text
    assert leaf.grad == before
    assert set(vars(leaf)) == {"data", "name", "grad", "creator"}


def test_helpers_of_this_test_compute_right_gradients():
    x = Variable(2.0)
    t = Square()(x)
    y = Square()(t) + Square()(t)
    backward(y)
    assert x.grad == 64
    assert issubclass(Add, linked_nodes.Function)
    assert issubclass(Mul, Function)


@needs_layout
@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_no_two_operators_of_a_side_share_a_rank_so_that_lines_of_twins_do_not_cross(seed):
    root = random_variable(seed)
    backward(root)
    picture = draw(root, detail="full")
    at = centres(picture.svg)
    heights = [at[n.id][1] for n in picture.graph.nodes.values() if n.kind == "op"]
    assert all(abs(a - b) > 5 for i, a in enumerate(heights) for b in heights[:i])
