"""The list of events: complete, in order, about nodes that exist."""

from __future__ import annotations

import numpy as np

from minigrad.viz.adapters.of_net import of_net
from minigrad.viz.adapters.of_program import of_program
from minigrad.viz.adapters.watching import watch
from minigrad.viz.graph.graph import Graph, is_op
from minigrad.viz.picture import Picture, graph_of
from minigrad.viz.player import Player, run_events
from tests.viz import sample_programs as samples
from tests.viz.replayed import frame

KINDS = {
    "forward", "seed", "backward", "accumulate", "update", "enter", "leave", "zeros",
}  # fmt: skip


class Value:
    def __init__(self, data):
        self.data, self.grad, self.creator = data, None, None


class Function:
    def __call__(self, *inputs):
        self.inputs = inputs
        self.output = Value(self.forward(*(v.data for v in inputs)))
        self.output.creator = self
        return self.output


class Square(Function):
    def forward(self, x):
        return x**2

    def backward(self, gy):
        x = self.inputs[0].data
        gx = 2 * x * gy
        return gx


class Add(Function):
    def forward(self, a, b):
        return a + b

    def backward(self, gy):
        return gy, gy


def watched():
    with watch(Function) as run:
        x = Value(np.array(3.0))
        y = Square()(x)
        z = Add()(y, y)
        z.grad = np.array(1.0)
        left, right = z.creator.backward(z.grad)
        y.grad = left + right
        x.grad = y.creator.backward(y.grad)
    return run


def test_a_watched_run_plays_forward_then_the_seed_then_backward():
    events = run_events(graph_of(watched()))
    assert [e.kind for e in events] == [
        "forward",
        "forward",
        "seed",
        "backward",
        "accumulate",
        "backward",
    ]
    assert "18" not in events[0].text
    assert "9" in events[0].text
    assert "12" in events[-1].text
    assert events[-1].formula.startswith("gx = 2")


def test_gradients_meet_after_the_last_of_them_arrived():
    events = run_events(graph_of(watched()))
    meeting = next(i for i, e in enumerate(events) if e.kind == "accumulate")
    assert events[meeting - 1].kind == "backward"


def test_every_operator_has_one_event_in_random_programs():
    for seed in range(120):
        graph = of_program(samples.random_program(seed))
        events = run_events(graph)
        ran = [e.nodes[0] for e in events if e.kind not in ("enter", "leave")]
        ops = [n.id for n in graph.nodes.values() if is_op(n) and n.kind != "pruned"]
        assert sorted(ran) == sorted(ops)
        assert {e.kind for e in events} <= KINDS
        assert all(n in graph.nodes for e in events for n in e.nodes)


def test_a_value_is_written_before_it_is_read():
    for seed in range(60):
        graph = of_program(samples.random_program(seed))
        film = Player(Picture(graph), run_events(graph))
        written = {e.head for e in graph.edges if e.kind in ("flow", "grad", "accumulate")}
        for edge in graph.edges:
            reads = edge.kind in ("flow", "grad", "accumulate") and edge.head_port
            if reads and edge.tail in written:
                assert film.first[edge.tail] < film.first[edge.head]


def test_a_loop_is_entered_once_and_left_once_when_its_values_are_not_known():
    events = run_events(of_program(samples.while_loop()))
    marks = [e.kind for e in events if e.kind in ("enter", "leave")]
    assert marks == ["enter", "leave", "enter", "leave"]
    assert "loop body" in next(e for e in events if e.kind == "enter").text


def test_step_scopes_play_every_iteration_and_backward_counts_down():
    scopes = {"step_scopes": [{"t": np.array([2.0, 3.0]) ** (k + 1)} for k in range(3)]}
    events = run_events(of_program(samples.while_loop()), scopes)
    entered = [e.iteration for e in events if e.kind == "enter"]
    assert entered == [0, 1, 2, 2, 1, 0]
    made = [next(iter(e.values.values())) for e in events if "gives t =" in e.text]
    assert made == ["[2, 3]", "[4, 9]", "[8, 27]"]


def test_an_iteration_starts_with_what_the_one_before_it_left():
    graph = of_program(samples.while_loop(), {"i": 3, "w": np.array(2.0)})
    scopes = {"step_scopes": [{"i": 1, "w": np.array(2.0)}, {"i": 2, "w": np.array(2.0)}]}
    entered = [e for e in run_events(graph, scopes) if e.kind == "enter"][:2]
    said = [{graph.nodes[n].name: text for n, text in e.values.items()} for e in entered]
    assert said == [{"w": "2"}, {"w": "2", "i": "1"}]


def test_a_turn_backwards_starts_with_what_the_turn_after_it_left():
    graph = of_program(samples.while_loop())
    scopes = {"step_scopes": [{"s@GRAD": 9.0}, {"s@GRAD": 3.0}]}
    entered = [e for e in run_events(graph, scopes) if e.kind == "enter"][2:]
    said = [{graph.nodes[n].name: text for n, text in e.values.items()} for e in entered]
    assert said == [{}, {"s@GRAD": "3"}]


def test_a_loop_without_iterations_enters_nothing():
    events = run_events(of_program(samples.while_loop()), {"step_scopes": []})
    assert not [e for e in events if e.kind == "enter"]


def test_a_net_runs_its_operators_in_order_after_the_seed_is_given():
    events = run_events(of_net(samples.nested_net()))
    kinds = [e.kind for e in events]
    assert kinds == ["forward"] * 4 + ["seed"] + ["backward"] * 4 + ["accumulate"]


def test_an_optimizer_op_is_an_update():
    assert run_events(of_program(samples.with_sgd()))[-1].kind == "update"


def test_a_graph_without_operators_has_no_events():
    graph = Graph()
    graph.node("leaf", "x", lines=("1",))
    assert run_events(graph) == []


def test_frame_k_is_the_replay_of_the_first_k_events():
    graph = graph_of(watched())
    film = Player(Picture(graph), run_events(graph))
    for k in range(len(film.events) + 1):
        states, texts = frame(film, k)
        touched = {n for e in film.events[:k] for n in e.nodes}
        assert {n for n, s in states.items() if s != "pending"} == touched
        active = set(film.events[k - 1].nodes) if k else set()
        assert {n for n, s in states.items() if s == "active"} == active
        for node, shown in texts.items():
            final = [text for text, _ in film.live[node]]
            assert (shown == final) == (node in touched), (k, node, shown)
