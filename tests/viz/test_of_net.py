"""Pictures of operators and nets, judged by their structure."""

from __future__ import annotations

import random

import numpy as np
import pytest

from minigrad.grad_names import base
from minigrad.viz.adapters.of_net import is_net, leaves, of_net
from minigrad.viz.picture import draw
from minigrad.viz.render import layout
from minigrad.viz.render.dot import to_dot
from tests.viz import sample_programs as samples
from tests.viz.needs import needs_layout
from tests.viz.sample_programs import Net, Op


def only(graph, name):
    (found,) = [n for n in graph.nodes.values() if n.name == name]
    return found


@pytest.fixture
def graph():
    return of_net(samples.nested_net())


def test_every_operator_of_both_nets_is_one_node(graph):
    forward, backward = samples.nested_net()
    wanted = sorted(op.type for op in leaves(forward) + leaves(backward))
    assert sorted(n.name for n in graph.nodes.values() if n.number is not None) == wanted


def test_nets_nest_as_frames_and_the_nesting_is_mirrored(graph):
    frames = {r.label: r for r in graph.regions.values()}
    for inner, outer in (("fc1", "mlp"), ("fc2", "mlp"), ("fc1_grad", "mlp_grad")):
        assert frames[f"NetOp {inner}"].parent == frames[f"NetOp {outer}"].id
    assert frames["NetOp mlp"].side == "forward"
    assert frames["NetOp mlp_grad"].side == "backward"


def test_a_value_stands_in_the_innermost_frame_of_those_who_touch_it(graph):
    label = {n.name: graph.regions[n.region].label for n in graph.nodes.values()}
    assert label["h1"] == "NetOp fc1"
    assert label["h2@GRAD"] == "NetOp fc2_grad"
    assert label["y1"] == "NetOp mlp"
    assert label["y1@GRAD"] == "NetOp mlp_grad"
    assert label["X"] == label["W"] == label["Out"] == "NetOp mlp"
    assert label["W@GRAD"] == label["Out@GRAD"] == "NetOp mlp_grad"


def test_operators_and_values_find_their_twins_by_name(graph):
    for node in graph.nodes.values():
        if node.kind == "grad_op":
            assert graph.nodes[node.twin].name == node.name.removesuffix("_grad")
        if node.kind in ("gradient", "leaf_gradient", "seed"):
            assert graph.nodes[node.twin].name == base(node.name)


def test_a_shared_name_has_one_renamed_gradient_per_writer_and_one_add(graph):
    assert [n.name for n in graph.nodes.values() if n.kind == "renamed"] == [
        "W@GRAD@RENAME@0",
        "W@GRAD@RENAME@1",
    ]
    assert only(graph, "add").kind == "sum"
    assert only(graph, "W@GRAD").kind == "leaf_gradient"


def test_the_gradient_that_nobody_in_the_net_writes_is_the_seed(graph):
    assert [n.name for n in graph.nodes.values() if n.kind == "seed"] == ["Out@GRAD"]
    assert only(graph, "Out@GRAD").lines == ("given",)


def test_values_come_from_a_scope_and_missing_ones_are_a_dash():
    scope = {"X": np.array([1.0, 2.0]), "W": np.zeros((3, 3)), "Out@GRAD": np.array(1.0)}
    graph = of_net(samples.nested_net(), scope)
    assert only(graph, "X").lines == ("[1, 2]",)
    assert only(graph, "Out@GRAD").lines == ("1", "given")
    assert only(graph, "h1").lines == ("—",)
    assert only(graph, "W").lines == ("[3,3] float64",)


def test_an_empty_net_is_a_nop_with_its_reason():
    op = Op("mul", {"x": ["a"], "y": ["b"]}, {"out": ["c"]})
    nop = Net("nop", [])
    nop.forward_op = op
    graph = of_net((Net("net", [op]), Net("net_grad", [nop])))
    node = only(graph, "nop")
    assert node.kind == "pruned"
    assert "NOP" in node.lines[0]
    assert graph.nodes[node.twin].name == "mul"


def test_a_zero_for_a_missing_gradient_is_drawn_as_zero():
    split = Op("split", {"x": ["x"]}, {"out": ["a", "b"]})
    zeros = Op("fill_zeros_like", {"x": ["b"]}, {"out": ["b@ZERO"]})
    back = Op("split_grad", {"out_grad": ["a@GRAD", "b@ZERO"]}, {"x_grad": ["x@GRAD"]})
    graph = of_net((Net("net", [split]), Net("net_grad", [zeros, back])))
    assert only(graph, "fill_zeros_like").kind == "zeros"
    assert only(graph, "b@ZERO").kind == "zero"
    assert only(graph, "split").twin == only(graph, "split_grad").id


def rnn():
    step = Net("step", [Op("mul", {"x": ["h_pre"], "y": ["W"]}, {"out": ["h"]})])
    forward = Op("rnn", {"x": ["xs", "W"]}, {"out": ["hs"], "step_scopes": ["step_scopes"]})
    forward.stepnet, forward.memories = step, [("h_pre", "h")]
    back = Net(
        "step_grad",
        [
            Op(
                "mul_grad",
                {"x": ["h_pre"], "y": ["W"], "out_grad": ["h@GRAD"]},
                {"x_grad": ["h_pre@GRAD"], "y_grad": ["W@GRAD"]},
            )
        ],
    )
    backward = Op("rnn_grad", {"out_grad": ["hs@GRAD"]}, {"x_grad": ["xs@GRAD", "W@GRAD"]})
    backward.stepnet, backward.memories = back, [("h_pre", "h")]
    return forward, backward


def test_an_rnn_shows_its_step_net_below_and_the_state_that_goes_round():
    graph = of_net(rnn())
    strong = [r.label for r in graph.regions.values() if r.strong]
    assert len(strong) == 2
    assert "step net" in strong[0]
    assert sum(e.kind == "sub_block" for e in graph.edges) == 2
    loops = [
        (graph.nodes[e.tail].name, graph.nodes[e.head].name)
        for e in graph.edges
        if e.kind == "loop"
    ]
    assert loops == [("h", "h_pre"), ("h_pre@GRAD", "h@GRAD")]
    assert only(graph, "rnn").bold
    assert only(graph, "rnn").twin == only(graph, "rnn_grad").id
    assert only(graph, "mul").twin == only(graph, "mul_grad").id


def test_a_backward_net_that_knows_its_forward_is_drawn_with_it():
    forward, backward = samples.nested_net()
    backward.forward = forward
    assert of_net(backward).title == of_net((forward, backward)).title == "Net: 4 ops, 5 grad ops"


def test_a_backward_net_alone_stands_on_the_backward_side():
    _, backward = samples.nested_net()
    graph = of_net(backward)
    assert {r.side for r in graph.regions.values()} == {"backward"}


def test_nets_in_nets_to_any_depth_need_no_recursion():
    graph = of_net(samples.deep_net(3000))
    assert len(graph.regions) == 3000
    assert only(graph, "relu").region == "r2999"


def test_draw_takes_an_operator_a_net_a_pair_and_a_pair_with_values():
    forward, backward = samples.nested_net()
    op = forward.ops[0].ops[0]
    for x in (op, forward, (forward, backward), ((forward, backward), {"X": 1.0})):
        assert is_net(x) or is_net(x[0])
        assert draw(x).graph.nodes
    assert not is_net("mul")
    assert not is_net((forward, backward, forward))


@needs_layout
def test_twins_of_random_nests_share_a_rank_and_stand_left_and_right():
    rng = random.Random(7)
    for _ in range(8):
        ops = [
            Op("mul", {"x": [f"h{i}"], "y": [f"w{rng.randint(0, i)}"]}, {"out": [f"h{i + 1}"]})
            for i in range(rng.randint(1, 6))
        ]
        grads = [
            Op(
                "mul_grad",
                {"x": op.inputs["x"], "out_grad": [f"h{i + 1}@GRAD"]},
                {"x_grad": [f"h{i}@GRAD"]},
            )
            for i, op in enumerate(ops)
        ][::-1]
        graph = of_net((nest(rng, "net", ops), nest(rng, "net_grad", grads)))
        rows = [r.split() for r in layout.layout(to_dot(graph), "plain").decode().splitlines()]
        at = {r[1]: (float(r[2]), float(r[3])) for r in rows if r[0] == "node"}
        for node in graph.nodes.values():
            if node.kind == "op":
                (x, y), (x2, y2) = at[node.id], at[node.twin]
                assert abs(y - y2) < 0.02
                assert x < x2


def nest(rng, name, ops):
    """The operators in one net, some of them in nets of their own."""
    inside, at = [], 0
    while at < len(ops):
        size = rng.randint(1, 3)
        inside.append(Net(f"{name}{at}", ops[at : at + size]) if size > 1 else ops[at])
        at += size if size > 1 else 1
    return Net(name, inside)


def test_an_operator_may_have_a_method_called_reads():
    class Reading(Op):
        def reads(self):
            return []

    op = Reading("tanh_grad", {"out_grad": ["y@GRAD"], "out": ["y"]}, {"x_grad": ["x@GRAD"]})
    assert only(of_net(op), "tanh_grad").kind == "grad_op"
