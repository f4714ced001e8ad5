"""Opening a folded picture, step by step."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.viz import draw
from minigrad.viz.adapters.names import Names
from minigrad.viz.adapters.of_net import of_net
from minigrad.viz.fold import View, closed, size_of
from minigrad.viz.graph.graph import Graph, is_op
from minigrad.viz.picture import view_of_any
from minigrad.viz.render import layout
from tests.viz import sample_programs as samples
from tests.viz.sample_programs import Net, Op
from tests.work import calls


def loop(steps):
    """One eager loop with a shared weight; the value in the middle has a name."""
    w = mg.tensor(np.full((2, 2), 0.1), requires_grad=True, name="w")
    h = mg.tensor(np.ones(2))
    for i in range(steps):
        h = mg.tanh(h @ w + 0.5)
        if i == steps // 2:
            h.name = "middle"
            middle = h
    return (h * h).sum(), middle


def conds(times):
    """A program with a `cond` after the other: blocks beside blocks."""
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [3]), static.parameter("w", np.ones(3))
        y = w * x
        for _ in range(times):
            y = static.cond(y.sum() > 0, lambda y=y: mg.tanh(y), lambda y=y: mg.sin(y) * w)
        static.append_backward(y.sum())
    return prog


def view_of(x, **names):
    return view_of_any(x, "auto", True, Names(names), None)


def operations(graph):
    return size_of(n for n in graph.nodes.values() if is_op(n) and n.kind != "accumulate")


def boxes(view, side="forward"):
    nodes = view.graph.nodes
    return [name for name in view.folds() if nodes[name].side == side]


THINGS = {
    "eager": lambda: loop(300)[0],
    "program": lambda: samples.big_program(900),
    "blocks": lambda: conds(80),
}


@pytest.mark.parametrize("make", THINGS.values(), ids=list(THINGS))
def test_every_operation_is_drawn_or_counted_whatever_is_opened(make):
    view = view_of(kept := make())
    total = operations(view.whole)
    choose = np.random.default_rng(0)
    for _ in range(8):
        assert operations(view.graph) == total
        if view.folds():
            view.open(str(choose.choice(list(view.folds()))))
    assert kept is not None


@pytest.mark.parametrize("make", THINGS.values(), ids=list(THINGS))
def test_lines_and_twins_end_at_nodes_that_are_there_whatever_is_opened(make):
    view = view_of(kept := make())
    choose = np.random.default_rng(1)
    for _ in range(8):
        graph = view.graph
        assert all({e.tail, e.head} <= graph.nodes.keys() | graph.regions for e in graph.edges)
        assert all(n.twin is None or n.twin in graph.nodes for n in graph.nodes.values())
        assert all(n.region is None or n.region in graph.regions for n in graph.nodes.values())
        if view.folds():
            view.open(str(choose.choice(list(view.folds()))))
    assert kept is not None


def test_a_large_segment_opens_into_parts_and_a_small_one_in_full():
    view = view_of(kept := loop(300)[0])
    assert view.open(boxes(view)[0]) == "Opened 300 × (matmul, add, tanh) into 10 parts."
    assert [view.graph.nodes[b].name for b in boxes(view)] == ["30 × (matmul, add, tanh)"] * 10
    view.open(boxes(view)[3])
    view.open(boxes(view)[3])
    assert sum(n.kind == "op" and n.name == "tanh" for n in view.graph.nodes.values()) >= 3
    assert kept is not None


def test_both_twins_open_whichever_is_clicked():
    forward, backward = view_of(a := loop(300)[0]), view_of(b := loop(300)[0])
    forward.open(boxes(forward)[0])
    backward.open(boxes(backward, "backward")[0])
    assert [n.name for n in forward.graph.nodes.values()] == [
        n.name for n in backward.graph.nodes.values()
    ]
    assert a is not b


def test_a_closed_frame_opens_where_the_operator_that_holds_it_stands():
    view = view_of(conds(80))
    assert not any(r.strong for r in view.graph.regions.values())
    for _ in range(3):
        view.open(boxes(view)[0])
    holders = [b for b in boxes(view) if "regions" in view.graph.nodes[b].data]
    view.open(holders[0])
    assert any(r.strong for r in view.graph.regions.values())


def test_the_index_of_a_page_has_what_is_in_its_boxes():
    loss, middle = loop(300)
    assert any("middle" in names for names in view_of(loss, middle=middle).index().values())


# Large graphs ---------------------------------------------------------------------------------


def sines(count):
    y = mg.tensor(0.5, requires_grad=True, name="x")
    for _ in range(count):
        y = mg.sin(y)
    return y


def long_program(count):
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", np.ones(2))
        y = w
        for _ in range(count // 2):
            y = mg.sin(y) * w
        static.append_backward(y.sum())
    return prog


LARGE = {
    "10,000 ops, eager": lambda: sines(10_000),
    "10,000 ops, a program": lambda: long_program(10_000),
    "a loop of 1,000 steps": lambda: loop(1_000)[0],
    "500 blocks": lambda: conds(250),
    "30,000 ops, eager": lambda: sines(30_000),
}


@pytest.mark.parametrize("make", LARGE.values(), ids=list(LARGE))
def test_a_large_graph_is_a_folded_picture_for_bounded_work(make):
    picture = draw(make())
    assert calls(lambda: (picture.graph, picture.svg, picture.text)) < 15_000_000
    assert len(picture.graph.nodes) <= 150
    assert picture.graph.notes[0] in picture.text
    assert picture.svg is not None or not layout.available()


@pytest.mark.parametrize("make", [sines, long_program], ids=["eager", "a program"])
def test_the_work_of_a_picture_grows_with_the_graph_and_not_faster(make):
    def work(count):
        x = make(count)
        return calls(lambda: draw(x).svg)

    assert work(3_000) < 2.5 * work(1_500)


@pytest.mark.parametrize("make", [lambda: sines(40), lambda: long_program(40)])
def test_a_graph_of_too_many_nodes_is_refused_with_what_to_do(make, monkeypatch):
    monkeypatch.setattr("minigrad.viz.graph.graph.MOST_NODES", 100)
    with pytest.raises(ValueError, match="more than 100 nodes .* draw a part of it"):
        draw(make())


def test_all_parts_of_a_shared_gradient_fold_into_one_line_with_their_number():
    graph = draw(long_program(2_000)).graph
    assert "1000 parts" in {e.label for e in graph.edges} or any(
        "parts" in e.label for e in graph.edges
    )
    assert all(len(n.ports) <= 12 for n in graph.nodes.values())


def test_an_empty_graph_has_nothing_to_open():
    assert View(Graph()).folds() == {}


def test_a_folded_picture_that_is_drawn_again_opens_as_before():
    picture = draw(loop(300)[0])
    again = draw(picture)
    assert picture.view.folds() and again.view.index() == picture.view.index()
    assert len(draw(picture, detail="full").graph.nodes) == len(picture.view.whole.nodes)


def test_the_graph_of_a_folded_picture_is_drawn_as_it_is_with_nothing_to_open(tmp_path):
    small = draw(conds(80)).graph
    again = draw(small, detail="folded", widget=True)
    assert again.graph is small
    assert again.view.folds() == {}
    assert again.save(tmp_path / "again.html").exists()


def test_boxes_of_one_name_on_one_side_are_no_twins():
    layers = [
        Net("fc", [Op("scale", {"x": [a]}, {"out": [a + "s"]}), Op("tanh", {"x": [a + "s"]}, {"out": [b]})])
        for a, b in ("xh", "hy")
    ]  # fmt: skip
    boxes = [n for n in closed(of_net(Net("mlp", layers))) if n.kind == "folded"]
    assert [(box.name, box.twin) for box in boxes] == [("NetOp fc", None)] * 2
