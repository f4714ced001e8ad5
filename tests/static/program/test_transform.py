"""Programs made of programs: copies, what is kept for testing, what some targets need, what is computed again."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError
from tests.static.program.test_verify import STORED

RUN = {"x": np.array([0.5, 2.0])}


def loaded():
    return static.Program.from_json(STORED)


def test_a_copy_is_the_same_program_and_shares_nothing_with_it():
    program = loaded()
    copy = program.clone()
    assert copy.to_json() == STORED
    copy.initial["w"] += 1.0
    copy.blocks[1].ops.clear()
    copy.blocks[3].vars.clear()
    copy.history.append("something")
    copy.error_clips["w"] = (0.0, 1.0)
    assert program.to_json() == STORED


def test_a_copy_has_no_name_twice():
    program = static.Program()
    with static.program_guard(program):
        mg.exp(static.data("x", [2]))
    copy = program.clone()
    with static.program_guard(copy):
        assert mg.exp(copy.global_block().var("x")).name == "exp_1"


def test_what_is_kept_for_testing_is_the_forward_part_of_every_block():
    program = loaded()
    test = program.clone(for_test=True)
    assert [[op.type for op in b.ops] for b in test.blocks] == [
        [op.type for op in b.ops if op.role == "forward"] for b in program.blocks[:6]
    ]
    assert [(b.idx, b.parent, b.forward_block) for b in test.blocks] == [
        (b.idx, b.parent, b.forward_block) for b in program.blocks[:6]
    ]
    assert not [n for v in test.all_variables() for n in [v.name] if "@GRAD" in n]
    assert test.history == ["clone(for_test)"]
    fetch = [program.global_block().ops[6].output_names[0]]
    (a,), (b,) = (static.Executor().run(p, RUN, fetch) for p in (program, test))
    assert np.array_equal(a, b)


def test_blocks_that_stay_get_new_numbers_and_links():
    program = loaded()
    kept = program.prune("cond_0")
    assert [(b.idx, b.parent) for b in kept.blocks] == [(0, -1), (1, 0), (2, 1), (3, 0), (4, 0)]
    assert len(program.prune("w@GRAD").blocks) == len(program.blocks)

    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [2]), static.parameter("w", [2.0, 3.0])
        static.cond(x.sum() > 0, lambda: x * 2.0, lambda: x)
        y = static.cond(w.sum() > 0, lambda: w * x, lambda: w)
        loss = y.sum()
        ((_, g),) = static.append_backward(loss)
    assert len(program.blocks) == 7
    kept = program.prune(g)
    assert [(b.idx, b.parent, b.forward_block) for b in kept.blocks] == [
        (0, -1, -1), (1, 0, -1), (2, 0, -1), (3, 0, 1), (4, 0, 2),
    ]  # fmt: skip
    (a,), (b,) = (static.Executor().run(p, RUN, [g.name]) for p in (program, kept))
    assert np.array_equal(a, b)


def test_what_targets_need_is_kept_and_nothing_else():
    program = static.Program()
    with static.program_guard(program):
        x, w, v = (
            static.data("x", [2]),
            static.parameter("w", [1.0, 2.0]),
            static.parameter("v", [3.0, 4.0]),
        )
        h = mg.exp(x * w)
        static.error_clip(h, -1.0, 1.0)
        static.error_clip(w, -2.0, 2.0)
        mg.sin(v) + np.ones(2)
        unread = program.global_block().create_var("unread", [2])
        loss = h.sum()
    program.outputs = [loss.name, "sin_0"]
    kept = program.prune([loss, "unread"])
    assert [op.type for op in kept.global_block().ops] == ["mul", "exp", "reduce_sum"]
    assert list(kept.global_block().vars) == [
        "x",
        "w",
        "v",
        "mul_0",
        "exp_0",
        "unread",
        "reduce_sum_0",
    ]
    assert sorted(kept.initial) == ["v", "w"]
    assert kept.outputs == [loss.name]
    assert unread.name not in kept.global_block().written
    sine = program.prune("sin_0")
    assert sine.error_clips == {"w": (-2.0, 2.0)}
    assert static.Program.from_json(sine.to_json()).to_json() == sine.to_json()
    assert program.prune(h).error_clips == {"exp_0": (-1.0, 1.0), "w": (-2.0, 2.0)}


@pytest.mark.parametrize("inside", ["less_than_0", "add_0"])
def test_a_target_inside_a_loop_is_none_of_the_root(inside):
    with pytest.raises(
        ProgramError, match=f"prune names '{inside}', which is no variable of the root block"
    ):
        loaded().prune(inside)


def test_a_value_that_a_loop_carries_and_never_reads_is_kept():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [2]), static.parameter("w", [2.0, 3.0])
        _, y = static.while_loop(lambda i, s: i < 2, lambda i, s: [i + 1, w * 2.0], [0, x])
    for copy in (program.clone(for_test=True), program.prune(y)):
        assert static.Executor().run(copy, RUN, [y.name])[0].tolist() == [4, 6]


def test_dropout_is_switched_off_for_testing_in_loops_too():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2])
        (_, y) = static.while_loop(
            lambda i, h: i < 3, lambda i, h: (i + 1, mg.dropout(h, 0.5, seed=1)), [0, x]
        )
    test = program.clone(for_test=True)
    (y,) = static.Executor().run(test, RUN, [y.name])
    assert np.array_equal(y, RUN["x"])


def test_numbers_of_an_optimizer_are_not_kept_for_testing():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        static.parameter("unused", [1.0])
        loss = (x * w + np.ones(2)).sum()
        mg.optim.Adam(lr=0.1).minimize(loss)
    test = program.clone(for_test=True)
    assert sorted(test.initial) == ["const_0", "unused", "w"]
    assert sorted(n for n, v in test.global_block().vars.items() if v.persistable) == [
        "const_0",
        "unused",
        "w",
    ]


# -- running statistics --------------------------------------------------------------------


def moving(read, trainable=False, role="optimize"):
    """A program that moves a value by ``sgd``; whether a forward operator reads it, too."""
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2])
        s = program.add_persistable("mean", np.zeros(2), trainable=trainable)
        if read:
            mg.sin(s)
        block = program.global_block()
        block.append_op(
            "sgd",
            {"param": s, "grad": x, "learning_rate": static.data("lr", [])},
            {"param_out": s},
            role=role,
        )
    return program


def test_statistics_that_nobody_reads_are_refused_and_others_are_not():
    with pytest.raises(ProgramError, match="'mean' is moved at test_transform.py:"):
        moving(read=False).clone(for_test=True)
    for fine in (
        moving(read=True),
        moving(read=False, trainable=True),
        moving(read=False, role="forward"),
    ):
        assert fine.clone(for_test=True).history == ["clone(for_test)"]


def gradient(build):
    """The gradient of ``w``, of a program that is built from ``w``."""
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [[0.5, 0.7], [0.2, 0.9]])
        ((_, g),) = static.append_backward(build(w, program))
    static.verify(program)
    return program, static.Executor().run(program, fetch_list=[g])[0]


def test_an_operator_may_overwrite_a_value_that_nobody_needs_and_not_its_own_input():
    def build(w, program, kind):
        block = program.global_block()
        block.append_op("assign", {"x": w}, {"out": "e"})
        block.append_op(kind, {"x": w if kind == "exp" else "e"}, {"out": "e"})
        return block.var("e").sum()

    _, found = gradient(lambda w, program: build(w, program, "exp"))
    assert np.array_equal(found, np.exp([[0.5, 0.7], [0.2, 0.9]]))
    with pytest.raises(
        ProgramError,
        match="sin_grad needs the value that 'e' had at #1 sin, but #1 sin overwrites it",
    ):
        gradient(lambda w, program: build(w, program, "sin"))


def test_why_after_prune_follows_the_last_value_of_a_name():
    program = static.Program()
    with static.program_guard(program):
        static.parameter("p", np.ones(4))
        static.parameter("q", np.ones(2))
        block = program.global_block()
        block.append_op("scale", {"x": "q"}, {"out": "t"}, {"scale": 3.0})
        block.append_op("split", {"x": "p"}, {"out": ["t", "u"]}, {"num_or_sections": 2})
        block.append_op("neg", {"x": "t"}, {"out": "y"})
        (of_p,) = static.gradients([block.var("y")], [block.var("p")])
    pruned = program.prune([of_p, block.var("u")])
    assert pruned.backward_calls[0].targets == ["t"]
    assert str(mg.why(pruned.global_block().var("p"))).endswith("p → #0 split → t")
