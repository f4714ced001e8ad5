"""What append_backward writes: operators, slots, names, and where each sum and each zero stands."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError


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
        "[w@GRAD@RENAME@0, w@GRAD@RENAME@1] = split(concat_0@GRAD, num_or_sections=(2, 2))",
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
    assert ("cos_grad", "#3 cos: gradients end at exp_0") in program.pruned


def test_a_name_in_no_grad_set_is_cut_like_one_marked_stop_gradient():
    lines = backward_of(lambda x, w, v: (w * x + v).sum(), no_grad_set=["mul_0"])
    assert lines[2:] == ["y_grad=v@GRAD = add_grad(out_grad=add_0@GRAD)"]


def test_the_unused_half_of_a_split_is_zero_right_before_its_reader():
    lines = backward_of(lambda x, w, v: mg.exp(mg.split(w, 2)[0]).sum())
    assert lines[2:] == [
        "split_0@GRAD = exp_grad(out=exp_0, out_grad=exp_0@GRAD)",
        "split_1@GRAD = fill_zeros_like(split_1)",
        "w@GRAD = concat([split_0@GRAD, split_1@GRAD])",
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
    assert ("mul_grad", "#1 mul: the loss does not depend on mul_0") in program.pruned


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
    assert ("mul_grad", "#0 mul: gradients end at w, v") in program.pruned


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
    assert kinds["raw"] == ["fill_constant", "reduce_sum_grad", "concat", "mul_grad"]
    assert kinds["added up"] == [*kinds["raw"], "sum"]
    assert kinds["zeros filled in"] == [
        "fill_constant", "reduce_sum_grad", "fill_zeros_like", "concat", "mul_grad", "sum",
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
