"""What append_backward writes: operators, slots, names, and where each sum and each zero stands."""

from __future__ import annotations

import gc
import linecache

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError
from minigrad.primitives.registry import REGISTRY
from minigrad.static.backward.grad_ops import plan_of
from minigrad.static.backward.op_path import flow_slots


def built(build, **options):
    """The lines of the backward part of a program with x [2, 2] fed and parameters w, v."""
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2, 2])
        w, v = (static.parameter(n, np.full((2, 2), k)) for n, k in (("w", 0.5), ("v", 2.0)))
        loss = build(x, w, v)
        before = len(program.global_block().ops)
        pairs = static.append_backward(loss, **options)
    static.verify(program)
    lines = [str(op) for op in program.global_block().ops[before:]]
    return program, lines, [(p.name, g.name) for p, g in pairs]


def backward_of(build, **options):
    return built(build, **options)[1]


def test_a_chain_is_its_grad_ops_in_reverse_order():
    _, lines, pairs = built(lambda x, w, v: mg.tanh(mg.matmul(x, w)).sum())
    assert lines == [
        "reduce_sum_0@GRAD = fill_constant(value=1.0)",
        "tanh_0@GRAD = reduce_sum_grad(tanh_0, out_grad=reduce_sum_0@GRAD)",
        "matmul_0@GRAD = tanh_grad(out=tanh_0, out_grad=tanh_0@GRAD)",
        "y_grad=w@GRAD = matmul_grad(x, w, out_grad=matmul_0@GRAD)",
    ]
    assert pairs == [("w", "w@GRAD")]


def test_a_shared_weight_has_one_temporary_per_use_and_a_sum_at_the_end():
    lines = backward_of(lambda x, w, v: mg.matmul(mg.matmul(x, w), w).sum())
    assert lines[2:] == [
        "matmul_0@GRAD, w@GRAD@RENAME@0 = matmul_grad(matmul_0, w, out_grad=matmul_1@GRAD)",
        "y_grad=w@GRAD@RENAME@1 = matmul_grad(x, w, out_grad=matmul_0@GRAD)",
        "w@GRAD = sum([w@GRAD@RENAME@0, w@GRAD@RENAME@1])",
    ]


def test_an_intermediate_value_in_three_ops_is_summed_right_before_its_first_reader():
    def build(x, w, v):
        h = mg.exp(w)
        return ((mg.sin(h) + mg.cos(h)) + mg.sqrt(h)).sum()

    lines = backward_of(build)
    parts = [n for n, line in enumerate(lines) if line.startswith("exp_0@GRAD@RENAME@")]
    assert [lines[n].split(" ")[0] for n in parts] == [f"exp_0@GRAD@RENAME@{k}" for k in range(3)]
    assert [lines[n].split(" = ")[1].split("(")[0] for n in parts] == [
        "sqrt_grad",
        "cos_grad",
        "sin_grad",
    ]
    assert lines[-2:] == [
        "exp_0@GRAD = sum([exp_0@GRAD@RENAME@0, exp_0@GRAD@RENAME@1, exp_0@GRAD@RENAME@2])",
        "w@GRAD = exp_grad(out=exp_0, out_grad=exp_0@GRAD)",
    ]


def test_a_leaf_in_three_ops_is_summed_at_the_end():
    lines = backward_of(lambda x, w, v: ((mg.sin(w) + mg.cos(w)) * mg.exp(v) + mg.sqrt(w)).sum())
    assert lines[-1] == "w@GRAD = sum([w@GRAD@RENAME@0, w@GRAD@RENAME@1, w@GRAD@RENAME@2])"
    assert lines[-2].startswith("w@GRAD@RENAME@2 = sin_grad(")


def test_one_op_that_reads_a_value_twice_writes_two_temporaries():
    lines = backward_of(lambda x, w, v: (w * w).sum())
    assert lines[2:] == [
        "w@GRAD@RENAME@0, w@GRAD@RENAME@1 = mul_grad(w, w, out_grad=mul_0@GRAD)",
        "w@GRAD = sum([w@GRAD@RENAME@0, w@GRAD@RENAME@1])",
    ]


def test_one_list_that_holds_a_value_twice_gives_two_temporaries_in_one_slot():
    lines = backward_of(lambda x, w, v: mg.concat([w, w]).sum())
    assert lines[2:] == [
        "[w@GRAD@RENAME@0, w@GRAD@RENAME@1] = concat_grad([w, w], out_grad=concat_0@GRAD)",
        "w@GRAD = sum([w@GRAD@RENAME@0, w@GRAD@RENAME@1])",
    ]


def test_a_ladder_of_doublings_sums_on_every_rung():
    def build(x, w, v):
        h = w
        for _ in range(3):
            h = h + h
        return h.sum()

    lines = backward_of(build)
    assert lines[2:] == [
        "add_1@GRAD@RENAME@0, add_1@GRAD@RENAME@1 = add_grad(out_grad=add_2@GRAD)",
        "add_1@GRAD = sum([add_1@GRAD@RENAME@0, add_1@GRAD@RENAME@1])",
        "add_0@GRAD@RENAME@0, add_0@GRAD@RENAME@1 = add_grad(out_grad=add_1@GRAD)",
        "add_0@GRAD = sum([add_0@GRAD@RENAME@0, add_0@GRAD@RENAME@1])",
        "w@GRAD@RENAME@0, w@GRAD@RENAME@1 = add_grad(out_grad=add_0@GRAD)",
        "w@GRAD = sum([w@GRAD@RENAME@0, w@GRAD@RENAME@1])",
    ]


def test_only_the_slots_that_the_rules_read_are_listed():
    lines = backward_of(lambda x, w, v: mg.tanh(mg.exp(w) + mg.log(w) * x).sum())
    text = "\n".join(lines)
    assert "tanh_grad(out=" in text
    assert "exp_grad(out=" in text
    assert "log_grad(w, out_grad=" in text
    assert "add_grad(out_grad=" in text
    assert "x_grad=log_0@GRAD" not in text
    assert "log_0@GRAD = mul_grad(y=x, out_grad=" in text


def test_no_grad_cuts_a_branch():
    def build(x, w, v):
        h = mg.exp(w)
        h.stop_gradient = True
        return (h * mg.sin(v) + mg.cos(h)).sum()

    program, lines, pairs = built(build)
    assert pairs == [("v", "v@GRAD")]
    assert [line.split(" = ")[1].split("(")[0] for line in lines] == [
        "fill_constant", "reduce_sum_grad", "add_grad", "mul_grad", "sin_grad",
    ]  # fmt: skip
    assert lines[2].startswith("mul_0@GRAD = add_grad(")
    assert ("cos_grad", "gradients end at exp_0") in [p[:2] for p in program.pruned]


def test_a_name_in_no_grad_set_is_cut_like_one_marked_stop_gradient():
    lines = backward_of(lambda x, w, v: (w * x + v).sum(), no_grad_set=["mul_0"])
    assert lines[2:] == ["y_grad=v@GRAD = add_grad(out_grad=add_0@GRAD)"]


def test_the_unused_half_of_a_split_is_zero_right_before_its_reader():
    lines = backward_of(lambda x, w, v: mg.exp(mg.split(w, 2)[0]).sum())
    assert lines[2:] == [
        "split_0@GRAD = exp_grad(out=exp_0, out_grad=exp_0@GRAD)",
        "split_1@GRAD = fill_zeros_like(split_1)",
        "w@GRAD = split_grad(out_grad=[split_0@GRAD, split_1@GRAD])",
    ]


def test_a_dead_branch_and_a_metric_after_the_loss_are_never_visited():
    def build(x, w, v):
        h = mg.exp(w)
        mg.sin(h * v)
        loss = h.sum()
        (loss * 2.0).reshape([1])
        return loss

    program, lines, pairs = built(build)
    assert lines == [
        "reduce_sum_0@GRAD = fill_constant(value=1.0)",
        "exp_0@GRAD = reduce_sum_grad(exp_0, out_grad=reduce_sum_0@GRAD)",
        "w@GRAD = exp_grad(out=exp_0, out_grad=exp_0@GRAD)",
    ]
    assert pairs == [("w", "w@GRAD")]
    assert ("mul_grad", "the loss does not depend on mul_0") in [p[:2] for p in program.pruned]


def test_a_subset_of_the_parameters_needs_a_part_of_the_grad_ops():
    lines = backward_of(
        lambda x, w, v: mg.matmul(mg.tanh(mg.matmul(x, w)), v).sum(), parameter_list=["v"]
    )
    assert lines[2:] == ["y_grad=v@GRAD = matmul_grad(tanh_0, v, out_grad=matmul_1@GRAD)"]


def test_pairs_come_in_the_order_of_parameter_list():
    _, _, pairs = built(lambda x, w, v: (w * v).sum(), parameter_list=["v", "w"])
    assert pairs == [("v", "v@GRAD"), ("w", "w@GRAD")]


def test_if_everything_is_blocked_only_the_seed_is_left():
    program, lines, pairs = built(lambda x, w, v: (w * v).sum(), no_grad_set=["w", "v"])
    assert lines == ["reduce_sum_0@GRAD = fill_constant(value=1.0)"]
    assert pairs == []
    assert ("mul_grad", "gradients end at w, v") in [p[:2] for p in program.pruned]


def test_data_gets_a_gradient_if_it_is_asked_for():
    def build(x, w, v):
        x.stop_gradient = False
        return (x * w).sum()

    lines = backward_of(build)
    assert lines[-1] == "x@GRAD, w@GRAD = mul_grad(x, w, out_grad=mul_0@GRAD)"


def test_a_second_loss_gets_gradients_under_fresh_names():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0, 2.0])
        first, second = (w * 3.0).sum(), mg.exp(w).sum()
        a = static.append_backward(first)
        text = str(program)
        b = static.append_backward(second)
    assert str(program).startswith(text.partition("\n# no")[0])
    assert [(p.name, g.name) for p, g in a + b] == [("w", "w@GRAD"), ("w", "w@GRAD@2")]
    got = static.Executor().run(program, fetch_list=[g for _, g in a + b])
    np.testing.assert_array_equal(got[0], [3.0, 3.0])
    np.testing.assert_array_equal(got[1], np.exp([1.0, 2.0]))


def test_a_second_call_for_the_same_loss_gives_the_same_values():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0, 2.0])
        loss = (w * w).sum()
        found = [static.append_backward(loss)[0][1] for _ in range(3)]
    assert [g.name for g in found] == ["w@GRAD", "w@GRAD@2", "w@GRAD@3"]
    for value in static.Executor().run(program, fetch_list=found):
        np.testing.assert_array_equal(value, [2.0, 4.0])


def test_gradients_of_several_targets_with_given_seeds_add_up():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [3])
        y, z = x * 2.0, x * x
        (g,) = static.gradients([y, z], [x], target_gradients=[np.array([1.0, 0.0, 2.0]), None])
    (value,) = static.Executor().run(program, {"x": np.array([1.0, 2.0, 3.0])}, [g])
    np.testing.assert_array_equal(value, [2.0 + 2.0, 4.0, 4.0 + 6.0])


def test_gradients_of_an_intermediate_value_and_of_nothing():
    program = static.Program()
    with static.program_guard(program):
        x, other = static.data("x", [2]), static.data("other", [2])
        h = mg.exp(x)
        loss = (h * h).sum()
        found = static.gradients(loss, [h, x, other, loss])
    assert found[2] is None
    feed = {"x": np.array([0.0, 1.0])}
    of_h, of_x, of_loss = static.Executor().run(program, feed, [g for g in found if g is not None])
    np.testing.assert_allclose(of_h, 2 * np.exp([0.0, 1.0]))
    np.testing.assert_allclose(of_x, 2 * np.exp([0.0, 2.0]))
    assert of_loss == 1.0


def test_a_target_that_another_target_depends_on_counts_for_both():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [])
        y = x * 3.0
        z = y * y
        (g,) = static.gradients([z, y], [x])
    assert static.Executor().run(program, {"x": 2.0}, [g])[0] == 2 * 6 * 3 + 3


def test_the_passes_can_be_looked_at_one_by_one():
    trace = []
    backward_of(lambda x, w, v: (mg.split(w * w, 2)[0]).sum(), trace=trace)
    assert [name for name, _ in trace] == ["raw", "added up", "zeros filled in", "with variables"]
    kinds = {name: [op.type for op in ops] for name, ops in trace}
    assert kinds["raw"] == ["fill_constant", "reduce_sum_grad", "split_grad", "mul_grad"]
    assert kinds["added up"] == [*kinds["raw"], "sum"]
    assert kinds["zeros filled in"] == [
        "fill_constant", "reduce_sum_grad", "fill_zeros_like", "split_grad", "mul_grad", "sum",
    ]  # fmt: skip
    raw = dict(trace)["raw"][-1]
    assert raw.output_names == ["w@GRAD", "w@GRAD"]


def test_the_grad_ops_of_lists_and_copies_are_forward_ops():
    lines = backward_of(lambda x, w, v: mg.add_n([w, v, w]).clone().sum())
    assert lines[2:] == [
        "sum_0@GRAD = assign(assign_0@GRAD)",
        "w@GRAD@RENAME@0 = scale(sum_0@GRAD)",
        "v@GRAD = scale(sum_0@GRAD)",
        "w@GRAD@RENAME@1 = scale(sum_0@GRAD)",
        "w@GRAD = sum([w@GRAD@RENAME@0, w@GRAD@RENAME@1])",
    ]


def test_what_a_callback_could_not_append_leaves_later_gradients_written():
    def refused(block, context):
        with pytest.raises(ProgramError):
            block.append_op("reshape", {"x": "w"}, {"out": "r"}, {"shape": (7,)})

    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0, 2.0])
        loss = mg.exp(w * w).sum()
        ((_, gradient),) = static.append_backward(loss, callbacks=refused)
        block = program.global_block()
        block.append_op("scale", {"x": gradient}, {"out": "twice"}, {"scale": 2.0})
    assert block.written == {n for op in block.ops for n in op.output_names}


def test_callbacks_run_after_every_grad_op_and_may_append():
    seen = []

    def clip_w(block, context):
        op = context["op"]
        seen.append(op.type)
        if "w@GRAD" in op.output_names:
            block.append_op(
                "clip", {"x": ["w@GRAD"]}, {"out": ["w@GRAD"]}, {"min": -0.5, "max": 0.5}
            )

    program, lines, _ = built(lambda x, w, v: (mg.exp(w * x) * v).sum(), callbacks=[clip_w])
    assert seen == ["fill_constant", "reduce_sum_grad", "mul_grad", "exp_grad", "mul_grad"]
    assert lines[-1] == "w@GRAD = clip(w@GRAD, min=-0.5, max=0.5)"
    (grad,) = static.Executor().run(program, {"x": np.ones((2, 2))}, ["w@GRAD"])
    assert (grad == 0.5).all()


def test_every_backward_operator_remembers_the_users_line():
    program, _, _ = built(lambda x, w, v: mg.exp(w).sum())
    for op in program.global_block().ops:
        assert op.source_line.startswith("test_append_backward.py:")
        assert "mg.exp(w).sum()" in op.source_line


# -- overwritten names ---------------------------------------------------------------------


def test_an_overwritten_value_that_a_grad_op_needs_is_an_error_that_names_both_operators():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0, 2.0])
        block = program.global_block()
        h = w * 1.0
        block.append_op("square", {"x": [h]}, {"out": [h]})
        loss = h.sum()
        before = program.to_json()
        with pytest.raises(ProgramError) as caught:
            static.append_backward(loss)
    assert (
        "square_grad needs the value that 'mul_0' had at #1 square, but #1 square overwrites it"
        in str(caught.value)
    )
    assert "give the result of square a name of its own" in str(caught.value)
    assert program.to_json() == before


def test_an_accumulator_whose_old_values_nobody_needs_has_the_right_gradient():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0, 2.0])
        block = program.global_block()
        total = w * 0.0
        for k in range(3):
            block.append_op(
                "add", {"x": [total], "y": [mg.sin(w * float(k + 1))]}, {"out": [total]}
            )
        ((_, g),) = static.append_backward(total.sum())
    (value,) = static.Executor().run(program, fetch_list=[g])
    w = np.array([1.0, 2.0])
    np.testing.assert_allclose(value, sum((k + 1) * np.cos(w * (k + 1)) for k in range(3)))


def test_readers_before_and_after_an_overwriting_each_get_their_own_gradient():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [0.3, 0.7])
        block = program.global_block()
        h = w + 0.0
        before = h * 3.0
        block.append_op("add", {"x": [h], "y": [w]}, {"out": [h]})
        loss = (before + h * 5.0).sum()
        ((_, g),) = static.append_backward(loss)
    (value,) = static.Executor().run(program, fetch_list=[g])
    np.testing.assert_allclose(value, [3.0 + 10.0] * 2)


def test_a_wanted_name_that_holds_two_values_is_an_error():
    program = static.Program()
    with static.program_guard(program):
        w, v = static.parameter("w", [1.0]), static.parameter("v", [2.0])
        first = mg.exp(w)
        program.global_block().append_op("assign", {"x": [v]}, {"out": [w]})
        loss = (first + mg.exp(w)).sum()
        with pytest.raises(ProgramError, match="'w' has two values on the way to the loss"):
            static.append_backward(loss, parameter_list=["w"])


def test_a_carried_value_that_a_step_overwrites_is_there_before_the_step():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [0.5, 0.7])

        def step(x, s):
            squared = s * s
            program.current_block().append_op("exp", {"x": s}, {"out": s})
            return [], [squared + s * x]

        _, (last,) = static.static_rnn(step, [static.data("x", [2, 2])], [w])
        with pytest.raises(ProgramError, match="needs the value that 'w@step_0' had at"):
            static.append_backward(last.sum())


def writing(build):
    """The loss that ``build`` makes; it is given two parameters and a branch that writes the first one."""
    program = static.Program()
    with static.program_guard(program):
        w, v = static.parameter("w", [0.5, 0.7]), static.parameter("v", [2.0, 3.0])

        def branch():
            program.current_block().append_op("assign", {"x": v}, {"out": w})
            return v * 1.0

        loss = build(w, v, lambda: static.cond(v.sum() > 0, branch, lambda: v * 2.0)).sum()
        return loss, str(program)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda w, v, write: w * v + write(), "mul_grad needs the value that 'w' had at #0 mul"),
        (lambda w, v, write: write() + w * 3.0, "mul reads 'w', which cond writes in a block"),
        (
            lambda w, v, write: static.while_loop(
                lambda i, s: i < 2, lambda i, s: (i + 1, s + w + write()), [0, v]
            )[1],
            "while reads 'w', which while writes in a block",
        ),
    ],
)
def test_what_a_block_writes_is_overwritten_for_those_around_it(build, said):
    loss, before = writing(build)
    with pytest.raises(ProgramError, match=said) as caught:
        static.append_backward(loss)
    assert "repair: carry the value as a loop variable" in str(caught.value)
    assert str(loss.program) == before


def moving_a_state(build):
    """The loss that ``build`` makes of w, a state, and what moves the state by 2 w."""
    program = static.Program()
    with static.program_guard(program):
        w, v = static.parameter("w", 3.0), static.parameter("v", 5.0)
        state = program.add_persistable("state", 1.0, trainable=False)

        def move():
            outputs = {"out": state}
            program.current_block().append_op("assign", {"x": state + w * 2.0}, outputs)
            return v * 1.0

        return build(w, v, state, move)


def branched(v, branch):
    return static.cond(v > 0, branch, lambda: v * 2.0)


def three_steps(step, v):
    return static.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, step(s)), [0, v])[1]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda w, v, s, move: branched(v, move) + s, "add reads 'state', which cond"),
        (lambda w, v, s, move: branched(v, lambda: branched(v, move)) + s, "add reads 'state'"),
        (lambda w, v, s, move: branched(v, lambda: branched(v, move) + s), "add reads 'state'"),
        (lambda w, v, s, move: three_steps(lambda a: a + move(), v) * s, "mul reads 'state'"),
        (lambda w, v, s, move: three_steps(lambda a: a * s + move(), v), "while reads 'state'"),
        (
            lambda w, v, s, move: three_steps(lambda a: a * s + branched(v, move), v),
            "while reads 'state', which while",
        ),
    ],
)
def test_a_gradient_through_a_state_that_a_block_writes_is_refused(build, said):
    loss = moving_a_state(build)
    with pytest.raises(ProgramError, match=said):
        static.append_backward(loss)


def after_a_constant(v, move):
    """The state is written in two branches, and only what the second writes depends on w."""
    program = v.block.program
    state, five = program.global_block().var("state"), static.data("five", [])

    def put():
        program.current_block().append_op("assign", {"x": five}, {"out": state})
        return v * 1.0

    return branched(v, put) + branched(v, move)


@pytest.mark.parametrize(
    "around", [branched, lambda v, move: three_steps(lambda a: move(), v), after_a_constant]
)
def test_a_state_that_a_block_writes_is_no_target(around):
    loss = moving_a_state(lambda w, v, state, move: around(v, move))
    with pytest.raises(ProgramError, match="the target is 'state', which"):
        static.gradients(loss.block.var("state"), [loss.block.var("w")])
    assert static.gradients(loss, [loss.block.var("v")])[0] is not None


def test_a_state_that_is_written_again_behind_the_block_is_a_target():
    def build(w, v, state, move):
        loss = branched(v, move)
        state.program.current_block().append_op("assign", {"x": w * 3.0}, {"out": state})
        return loss

    loss = moving_a_state(build)
    (dw,) = static.gradients(loss.block.var("state"), [loss.block.var("w")])
    assert static.Executor().run(loss.program, fetch_list=[dw]) == [3.0]


@pytest.mark.parametrize(
    "build",
    [
        lambda w, v, s, move: three_steps(lambda a: a + move(), v * w),
        lambda w, v, s, move: s + w + branched(v, move),
    ],
)
def test_a_state_that_no_gradient_goes_through_may_be_written(build):
    loss = moving_a_state(build)
    static.append_backward(loss)
    value, dw = static.Executor().run(loss.program, fetch_list=[loss, "w@GRAD"])
    assert (value, dw) in ((30.0, 5.0), (9.0, 1.0))


def test_a_value_that_a_block_overwrites_later_has_its_gradient():
    loss, _ = writing(lambda w, v, write: (w + 1.0) * 3.0 + write())
    static.append_backward(loss)
    gradients = static.Executor().run(loss.program, fetch_list=["w@GRAD", "v@GRAD"])
    np.testing.assert_array_equal(gradients, [[3.0, 3.0], [1.0, 1.0]])


def test_a_state_that_every_step_moves_is_not_there_for_the_grad_block():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", 3.0)
        count = program.add_persistable("count", 0.0, trainable=False)

        def body(i, s):
            program.current_block().append_op("increment", {"x": count}, {"out": count})
            return i + 1, s + w * count

        s = static.while_loop(lambda i, s: i < 3, body, [0, w])[1]
        with pytest.raises(ProgramError, match="needs the value that 'count' had"):
            static.append_backward(s)


def test_a_target_overwritten_by_a_constant_is_not_mixed_with_what_it_was():
    program = static.Program()
    with static.program_guard(program):
        w, c = static.parameter("w", [1.0]), static.data("c", [1])

        def branch():
            h = w * 2.0
            before = h * 3.0
            program.current_block().append_op("assign", {"x": c}, {"out": h})
            return h, before

        for targets in branch(), static.cond(c.sum() > 0, branch, lambda: (w, w)):
            with pytest.raises(ProgramError, match="overwrites it, the target is the other"):
                static.gradients(targets, [w])


def test_an_update_between_two_backward_parts_is_an_error():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0])
        first, second = (w * w).sum(), mg.sin(w).sum()
        ((_, g),) = static.append_backward(first)
        program.global_block().append_op(
            "sgd", {"param": [w], "grad": [g], "learning_rate": [program.constant(np.asarray(0.1))]},
            {"param_out": [w]}, role="optimize",
        )  # fmt: skip
        with pytest.raises(
            ProgramError, match=r"sin_grad needs the value that 'w' had .* sgd overwrites it"
        ):
            static.append_backward(second)


# -- text ----------------------------------------------------------------------------------


def test_a_network_of_eight_operators_and_its_backward_print_in_1500_characters():
    program = static.Program()
    with static.program_guard(program):
        x, y = static.data("x", [-1, 4]), static.data("y", [-1, 1])
        w1, b1 = static.parameter("w1", np.ones((4, 3))), static.parameter("b1", np.zeros(3))
        w2, b2 = static.parameter("w2", np.ones((3, 1))), static.parameter("b2", np.zeros(1))
        h = mg.tanh(mg.matmul(x, w1) + b1)
        loss = mg.square(mg.matmul(h, w2) + b2 - y).mean()
        static.append_backward(loss)
    assert len([op for op in program.global_block().ops if op.role == "forward"]) == 8
    text = str(program)
    assert len(text) < 1500
    assert str(static.parse(text)) == text


# -- the gradient program ----------------------------------------------------------------


def program(function, shapes):
    """A program of a function of data that want gradients: (program, values, result)."""
    prog = static.Program()
    with static.program_guard(prog):
        values = [static.data(f"v{k}", shape) for k, shape in enumerate(shapes)]
        for v in values:
            v.stop_gradient = False
        return prog, values, function(*values)


# -- the gradient program ------------------------------------------------------------------


def test_the_seed_has_the_line_of_the_operator_that_made_the_loss():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", 2.0)
        before = mg.sin(w)
        loss = before * w  # THE LOSS
        after = mg.exp(loss)
    with static.program_guard(prog):
        static.append_backward(loss)
    (seed,) = [op for op in prog.global_block().ops if op.role == "loss"]
    line = int(seed.source_line.split(":")[1].split(",")[0].split()[0])
    assert "# THE LOSS" in linecache.getline(__file__, line)
    assert after.shape == ()


@pytest.mark.parametrize(
    ("shape", "made"),
    [([-1], "fill_ones_like"), ([3], "fill_constant"), ([2, -1], "fill_ones_like")],
)
def test_the_seed_of_a_target_is_as_large_as_the_target(shape, made):
    prog, (x,), y = program(lambda x: x * x, [shape])
    with static.program_guard(prog):
        (g,) = static.gradients(y, [x])
    assert [op.type for op in prog.global_block().ops if op.role == "loss"] == [made]
    for n in (3, 5) if -1 in shape else (3,):
        feed = np.ones([n if s == -1 else s for s in shape])
        (found,) = static.Executor().run(prog, {"v0": feed}, [g])
        assert np.array_equal(found, 2.0 * feed)


FUNCTIONS = {
    "sum of stretched": (lambda x, y: mg.sum(x * y * x), [(2, 3), (2, 1)]),
    "stretched on both sides": (lambda x, y: mg.sum(mg.sin(x * y)), [(2, 1), (1, 3)]),
    "another rank": (lambda x, y: mg.sum(mg.tanh(x + y) * y), [(2, 3), (3,)]),
    "a number": (lambda x, y: mg.sum((x - y) * x), [(2, 3), ()]),
    "concat": (lambda x, y: mg.sum(mg.concat([x, y]) ** 3.0), [(2, 3), (4, 3)]),
    "concat along 1": (lambda x, y: mg.sum(mg.exp(mg.concat([x, y], axis=1))), [(2, 3), (2, 2)]),
    "mean of rows": (lambda x, y: mg.sum(mg.square(mg.mean(x, axis=0)) * y), [(4, 3), (3,)]),
    "reshape": (lambda x, y: mg.sum(mg.reshape(x * x, shape=(-1,)) * y), [(2, 3), (6,)]),
    "solve": (lambda x, y: mg.sum(mg.square(mg.solve(x, y))), [(3, 3), (3, 2)]),
    "matmul": (lambda x, y: mg.sum(mg.square(x @ y)), [(2, 3), (3, 2)]),
    "pieces": (lambda x, y: mg.sum(mg.split(x, num_or_sections=2)[1] * y * y), [(4, 3), (3,)]),
    "where": (lambda x, y: mg.sum(mg.where(x > y, x * x, y * x)), [(2, 3), (3,)]),
}


def derivatives(grad, function, values, which):
    """The result, its derivatives by the chosen values, and theirs."""
    out = function(*values)
    first = grad(out, [values[k] for k in which])
    total = out * out
    for g in first:
        total = total + mg.sum(g * g)
    return [out, *first, *grad(total, [values[k] for k in which])]


#: those whose sizes cannot be open
FIXED = {"reshape", "solve", "matmul", "pieces"}


CASES = [(name, opened) for name in FUNCTIONS for opened in (False, True)[: 2 - (name in FIXED)]]


@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize(("name", "opened"), CASES)
def test_derivatives_by_some_inputs_are_those_of_the_eager_engine(name, opened, which):
    """First and second, as grad ops and decomposed, with sizes that are known or open."""
    function, sizes = FUNCTIONS[name]
    rng = np.random.default_rng(5)
    arrays = [
        rng.random(s) + np.eye(*s) if name == "solve" and k == 0 else rng.random(s)
        for k, s in enumerate(sizes)
    ]
    shapes = [(-1, *s[1:]) if opened and s else s for s in sizes]
    prog = static.Program()
    with static.program_guard(prog):
        values = [static.data(f"v{k}", s) for k, s in enumerate(shapes)]
        for v in values:
            v.stop_gradient = False
        fetch = derivatives(static.gradients, function, values, which)
    leaves = [mg.tensor(a, requires_grad=True) for a in arrays]
    expected = derivatives(lambda o, i: mg.grad(o, i, create_graph=True), function, leaves, which)
    feed = {f"v{k}": a for k, a in enumerate(arrays)}
    names = [v.name for v in fetch]
    for read in (prog, static.decompose(prog)):
        found = static.Executor().run(read, feed, names)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-12, atol=1e-14)


def plan_by_hand(name, wanted, slots):
    plan = plan_of(REGISTRY[name], wanted, slots)
    return plan.operands, plan.results, plan.given, plan.made


def test_a_grad_op_has_the_slots_that_its_rules_read_and_no_others():
    """Slot, is it there for its shape alone and only where it was stretched."""
    out = (("out", "out_grad"),)
    assert plan_by_hand("mul", ("x",), ("x", "y")) == (
        (("x", True), ("y", False)), (), out, (("x", "x_grad"),),
    )  # fmt: skip
    assert plan_by_hand("add", ("y",), ("x", "y")) == (
        (("y", True),), (), out, (("y", "y_grad"),),
    )  # fmt: skip
    assert plan_by_hand("add", ("x",), ("x",))[0] == ()  # its other operand is a number
    assert plan_by_hand("tanh", ("x",), ("x",)) == ((), ("out",), out, (("x", "x_grad"),))
    assert plan_by_hand("reduce_sum", ("x",), ("x",))[0] == (("x", False),)
    assert plan_by_hand("reshape", ("x",), ("x", "shape_like"))[0] == (
        ("x", False), ("shape_like", False),
    )  # fmt: skip
    assert plan_by_hand("solve", ("b",), ("a", "b"))[1] == ("out",)


def grad_op(function, shapes, which):
    prog, values, out = program(function, shapes)
    with static.program_guard(prog):
        static.gradients(out, [values[k] for k in which])
    return prog.global_block().ops[-1]


def test_an_operand_is_kept_for_its_shape_only_if_it_may_have_been_stretched():
    add = lambda x, y: x + y
    assert set(grad_op(add, [[2, 3], [2, 3]], (0, 1)).inputs) == {"out_grad"}
    assert set(grad_op(add, [[2, 3], [3]], (0, 1)).inputs) == {"y", "out_grad"}
    assert set(grad_op(add, [[2, 3], [2, 3]], (1,)).inputs) == {"out_grad"}
    assert set(grad_op(add, [[-1, 3], [-1, 3]], (0, 1)).inputs) == {"x", "y", "out_grad"}


def test_a_grad_op_says_whose_values_it_reads_not_whose_shapes():
    assert grad_op(lambda x, y: x * y, [[2, 3], [3]], (0, 1)).reads == ("v0", "v1")
    assert grad_op(lambda x, y: x + y, [[2, 3], [3]], (0, 1)).reads == ()
    assert grad_op(lambda x: mg.sum(x), [[-1]], (0,)).reads == ()
    assert grad_op(mg.tanh, [[2]], (0,)).reads == ("tanh_0",)
    assert grad_op(lambda x, y: x * y, [[2], [2]], (1,)).reads == ("v0",)


def test_types_say_through_which_slots_gradients_flow():
    assert flow_slots("no_such_type") == ((), ())
    assert flow_slots("mul") == (("x", "y"), ("out",))
    assert flow_slots("while")[0] == ("x", "params", "seq")
    assert flow_slots("argmax") == ((), ())
    for control in ("while", "cond", "recurrent"):
        assert "out_grad" in flow_slots(f"{control}_grad")[0], (
            "so that a second derivative is refused"
        )
        assert "params_grad" in flow_slots(f"{control}_grad")[1]
    assert set(flow_slots("mul_grad")[0]) >= {"x", "y", "out_grad"}
    assert flow_slots("mul_grad")[1] == ("x_grad", "y_grad")


def test_a_list_of_parameters_leaves_out_what_a_flag_asks_for():
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        x.stop_gradient = False
        pairs = static.append_backward(mg.sum(x * w), parameter_list=[w])
    assert [v.name for v, _ in pairs] == ["w"]
    assert not prog.global_block().has_var("x@GRAD")


@pytest.mark.parametrize("shape", [[], [1], [1, 1], [2], [-1], [1, 2]])
def test_a_loss_has_one_element_whatever_its_rank(shape):
    prog, (x,), y = program(lambda x: x * 2.0, [shape])
    with static.program_guard(prog):
        if shape.count(1) < len(shape):
            with pytest.raises(ProgramError, match="the loss must be one number"):
                static.append_backward(y)
        else:
            static.append_backward(y)
            grad = prog.global_block().var("v0@GRAD")
            assert static.Executor().run(prog, {"v0": np.ones(shape)}, [grad])[0].sum() == 2.0


def test_only_variables_with_real_numbers_are_differentiated():
    prog, _, y = program(lambda x: mg.argmax(x), [[3]])
    with static.program_guard(prog):
        with pytest.raises(ProgramError, match="starts from a Variable"):
            static.append_backward(3.0)
        with pytest.raises(ProgramError, match="the loss must be a floating-point number"):
            static.append_backward(y)
        with pytest.raises(ProgramError, match="only floating-point values have gradients"):
            static.gradients(y, [prog.global_block().var("v0")])


def test_seeds_fit_their_targets_in_number_and_shape():
    prog, (x,), y = program(lambda x: x * 2.0, [[3]])
    with static.program_guard(prog):
        with pytest.raises(ProgramError, match="1 targets need 1 target_gradients, 2 were given"):
            static.gradients(y, [x], [x, x])
        with pytest.raises(ProgramError, match="must have the shape of its target"):
            static.gradients(y, [x], [mg.sum(x)])
        with pytest.raises(ProgramError, match=r"gradients\(\) takes Variables"):
            static.gradients(y, [3.0])
        for targets, inputs, empty in ([], [x], "targets"), (y, [], "inputs"):
            with pytest.raises(ProgramError, match=rf"{empty}=\[\]\) names no Variable"):
                static.gradients(targets, inputs)


def test_building_leaves_the_collector_as_it_was():
    assert gc.isenabled()
    for _ in range(2):
        prog, _, y = program(lambda x: x * 2.0, [[]])
        with static.program_guard(prog):
            static.append_backward(y)
        running = gc.isenabled()
        gc.enable()
        assert running


def test_a_target_that_nothing_computes_has_itself_as_gradient():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [2])
        (by_x,) = static.gradients(x, [x])
    assert static.Executor().run(prog, {"x": [5.0, 6.0]}, [by_x])[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", ["data", "a parameter"])
def test_a_loss_that_nothing_computes_is_refused(kind):
    prog = static.Program()
    with static.program_guard(prog):
        loss = static.data("v", []) if kind == "data" else static.parameter("v", 1.0)
        with pytest.raises(ProgramError, match=f"no operator of this .* loss 'v'; it is {kind}"):
            static.append_backward(loss)


def test_a_parameter_list_names_variables_of_the_program():
    prog = static.Program()
    with static.program_guard(prog):
        weight = static.parameter("weight", 2.0)
        with pytest.raises(ProgramError, match="'wieght', which is no variable(.|\n)*weight"):
            static.append_backward(weight * weight, parameter_list=["wieght"])


def test_every_grad_op_that_is_not_made_has_its_reason():
    prog = static.Program()
    with static.program_guard(prog):
        w, v = static.parameter("w", [1.0, 2.0]), static.parameter("v", [3.0, 4.0])
        s = mg.sin(static.data("d", [2]))
        mg.exp(w)
        mask = w > 1.5
        place = mg.argmax(w * 2.0)
        cut = mg.cos(v)
        loss = mg.sum(w * s * mg.astype(mask, float) + cut) * mg.astype(place, float)
        static.append_backward(loss, no_grad_set=[cut])
    assert [p[:2] for p in prog.pruned] == [
        ("cast_grad", "nothing wanted lies behind its inputs"),
        ("cast_grad", "nothing wanted lies behind its inputs"),
        ("cos_grad", "gradients end at cos_0"),
        ("arg_max_grad", "it has no gradient rule"),
        ("mul_grad", "gradients end before they come back to it"),
        ("greater_than_grad", "it has no gradient rule"),
        ("exp_grad", "the loss does not depend on exp_0"),
        ("sin_grad", "nothing wanted lies behind its inputs"),
    ]


@pytest.mark.parametrize("last", ["add", "fill_ones_like"])
def test_a_name_that_nobody_wants_may_have_two_values(last):
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", [1.0, 2.0])
        t = w + w
        a = t + w
        inputs = {"x": a, "y": a} if last == "add" else {"x": a}
        prog.global_block().append_op(last, inputs, {"out": t.name})
        static.append_backward(mg.sum(t + w))
    factor = 7.0 if last == "add" else 1.0
    assert prog.global_block().has_var(f"{t.name}@GRAD") == (last == "add")
    assert static.Executor().run(prog, fetch_list="w@GRAD")[0].tolist() == [factor] * 2
    assert sum(op.type == "add_grad" for op in prog.global_block().ops) == (
        4 if last == "add" else 1
    )


def test_a_sum_of_gradients_has_the_line_of_the_last_that_was_written():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", [1.0, 2.0])
        first = mg.sin(w)  # THE FIRST USER
        static.append_backward(mg.sum(first * w * w))
    (total,) = [op for op in prog.global_block().ops if op.type == "sum"]
    assert total.outputs["out"] == ["w@GRAD"]
    assert "# THE FIRST USER" in total.source_line


@pytest.mark.parametrize(("open_seed", "fed"), [(1, 4), (3, 1), (-1, 1), (-1, 4), (4, 4)])
def test_a_seed_has_the_sizes_of_its_target_when_it_runs(open_seed, fed):
    program = static.Program()
    with static.program_guard(program):
        x, seed = static.data("x", [-1]), static.data("seed", [open_seed])
        y = x * static.parameter("w", [2.0])
        gradients = static.gradients([y], [x], [seed])
    feeds = {"x": np.ones(fed), "seed": np.arange(float(4 if open_seed < 0 else open_seed))}
    for run in (
        lambda: static.Executor().run(program, feeds, gradients),
        lambda: static.compile(program, fetch=gradients)(**feeds),
    ):
        if feeds["seed"].shape == (fed,):
            np.testing.assert_array_equal(run(), [feeds["seed"] * 2.0])
        else:
            with pytest.raises(ProgramError, match="cannot reshape array of size"):
                run()
