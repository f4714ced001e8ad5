"""What a player plays is what ran: every step and every text, against kernels that the test wraps."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
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
    turns = [f"{what}, iteration {t}" for t in range(3) for what in ("condition", "loop body")]
    back = [f"one step backwards, iteration {t}" for t in (2, 1, 0)]
    assert entered == [*turns, "condition, iteration 3", *back]
    parts = [e.text for e in player.events if "w@GRAD = " in e.text]
    assert "w@GRAD = 12" in parts[-1]  # 3 · 8 · 0.5², and twice 1 for the square


def test_the_branch_that_was_not_taken_is_grey_and_never_entered():
    branch = built(lambda x, w: static.cond(x > 0, lambda: x * w, lambda: mg.exp(x)), -8.0)
    player = mg.play(branch)
    entered = [e.text for e in player.events if e.kind == "enter"]
    assert ["else_block of" in entered[0], "forward block 2" in entered[1], len(entered)] == [
        1,
        1,
        2,
    ]
    last = player.film.frame(len(player.events))
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
