"""What a player plays is what ran: every step and every text, against kernels that the test wraps."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.viz.graph.graph import is_op, live_lines
from tests.viz.replayed import frame
from tests.viz.truth import check_program


@pytest.mark.parametrize("seed", range(40))
def test_a_player_of_a_random_program_says_what_ran(seed):
    check_program(seed)


def built(build, x):
    program, scope = static.Program(), static.Scope()
    with static.program_guard(program):
        v, w = static.data("x", ()), static.parameter("w", np.array(0.5))
        y = build(v, w)
        static.append_backward(mg.square(y))
    static.Executor().run(program, {"x": np.array(x)}, [y], scope=scope)
    return program, scope


def test_a_loop_of_three_turns_tests_four_times_and_the_last_test_is_false():
    loop = built(
        lambda x, w: static.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * w), [0, x])[1],
        8.0,
    )
    player = mg.play(loop)
    said = [e.text for e in player.events if "less_than_0 = " in e.text]
    assert [text.partition(" = ")[2].split()[0] for text in said] == ["True"] * 3 + ["False"]
    entered = [e.text.rpartition(": ")[2] for e in player.events if e.kind == "enter"]
    turns = [f"{what}, step {t}" for t in range(3) for what in ("condition", "loop body")]
    back = [f"one step backwards, step {t}" for t in (2, 1, 0)]
    assert entered == [*turns, "condition, step 3", *back]
    parts = [e.text for e in player.events if "w@GRAD = " in e.text]
    assert "w@GRAD = 12" in parts[-1]  # 3 · 8 · 0.5², and twice 1 for the square


@pytest.mark.parametrize("x", [8.0, -8.0])
def test_a_line_is_as_long_as_the_gradient_that_its_node_shows(x):
    """A name that other blocks use, too, has nothing on the lines of a block that did not run."""

    def steps(x, w):
        inner = lambda i, s: (i + 1, static.cond(x > 0, lambda: s * w, lambda: mg.exp(s * w)))
        return static.while_loop(lambda i, s: i < 2, inner, [0, x])[1]

    graph = mg.draw(built(steps, x), detail="full").graph
    for line in graph.edges:
        if line.kind in ("grad", "accumulate"):
            tail, head = graph.nodes[line.tail], graph.nodes[line.head]
            name = head if is_op(tail) else tail
            assert (line.norm is not None) == bool(live_lines(name)), (name, line)
    assert any(line.norm for line in graph.edges)


def test_the_branch_that_was_not_taken_is_grey_and_never_entered():
    branch = built(lambda x, w: static.cond(x > 0, lambda: x * w, lambda: mg.exp(x)), -8.0)
    player = mg.play(branch)
    entered = [e.text for e in player.events if e.kind == "enter"]
    assert ["else_block of" in entered[0], "forward block 2" in entered[1], len(entered)] == [
        1,
        1,
        2,
    ]
    last = frame(player, len(player.events))
    grey = {player.graph.nodes[n].name for n, s in last.states.items() if s == "pending"}
    assert {"mul", "mul_0", "mul_grad"} <= grey
    assert not {"exp", "exp_0", "cond"} & grey
    labels = [r.label for r in mg.draw(branch).graph.regions.values()]
    assert [label.endswith("did not run") for label in labels] == [0, 0, 1, 0, 1, 0]


def test_a_run_without_a_scope_notes_nothing():
    scope = static.Scope()
    assert scope.record is None
    program, scope = built(lambda x, w: x * w, 2.0)
    assert [s.kind for s in scope.record.steps][:2] == ["enter", "op"]


# ---- what is said about a graph of Tensors --------------------------------------------------


def leaf(value, name=None):
    return mg.tensor(value, requires_grad=True, name=name)


def texts_of(thing):
    nodes = mg.draw(thing).graph.nodes.values()
    return [text for n in nodes for text in (*n.lines, *(name for name, _ in n.ports))]


def chain(weights):
    h = mg.tensor(np.ones(3))
    for w in weights:
        h = mg.tanh(h @ w)
    h = h.sum()
    h.backward()
    return h


def test_a_folded_picture_keeps_the_gradient_of_a_shared_weight():
    w = leaf(np.full((3, 3), 0.1), "w")
    graph = mg.draw(chain([w] * 60)).graph
    sums = [n for n in graph.nodes.values() if n.kind == "accumulate"]
    assert [graph.nodes[n.twin].name for n in sums] == ["w"]
    assert any(e.head == sums[0].id for e in graph.edges)


def test_a_folded_picture_counts_the_parameters_and_gradients_inside():
    graph = mg.draw(chain([leaf(np.full((3, 3), 0.1), f"w{i}") for i in range(130)])).graph
    said = [n.lines[1:] for n in graph.nodes.values() if n.kind == "folded"]
    assert said == [("w0 … w129: 130 parameters",), ("w0.grad … w129.grad: 130 gradients",)]


def test_the_gradient_of_one_parameter_among_many_can_be_searched():
    loss = chain([leaf(np.full((3, 3), 0.1), f"w{i}") for i in range(130)])
    shown = mg.draw(loss, expand="w77.grad").graph.nodes.values()
    assert "w77.grad" in {n.data.get("called") for n in shown}


@pytest.mark.parametrize("name", ["w", "learning_rate_scale", "a_name_longer_than_any_label_has"])
def test_a_formula_speaks_of_the_users_variables_however_long_their_names(name):
    b, scale, y = leaf(2.0, "b"), leaf(7.0, name), leaf(100.0, "y")
    z = b * scale + y
    z.backward()
    assert f"[0] g·{name} = 7" in texts_of(z)
    assert not [text for text in texts_of(z) if text.startswith("[0] g·y")]


@pytest.mark.parametrize(
    "function",
    [
        lambda a: mg.einsum("ij,jk->ik", a, mg.tensor(np.ones((3, 4)))),
        lambda a: a[[0, 1], [1, 2]],
        lambda a: a[np.array([0, 1]), np.array([1, 2])] ** 2,
        lambda a: mg.stack([a, a * a]),
        lambda a: mg.where(a > 1, a, a * a),
    ],
)
@pytest.mark.parametrize("create", [False, True])
def test_what_ran_can_be_drawn_played_and_explained_before_and_after_backward(function, create):
    a = leaf(np.full((2, 3), 1.5), "a")
    y = function(a).sum()
    for look in (mg.draw, mg.play):
        assert str(look(y))
    mg.grad([y], [a], create_graph=True)
    y.backward(create_graph=create)
    for look in (mg.draw, mg.play, lambda y: mg.why(a)):
        assert str(look(y))
