"""The published description of the backward builder, rule by rule: `RULES` says which test holds which rule.

The tests below are those of the rules that no other file holds.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError

TESTS = Path(__file__).parents[2]


RULES = {
    "a loss is one number": "static/test_errors::test_a_loss_that_is_not_one_number",
    "a loss is made by an operator": "static/test_errors::test_a_loss_that_no_operator_makes",
    "parameter_list chooses, in its order": "static/test_append_backward::test_pairs_come_in_the_order_of_parameter_list",
    "grad ops stand in reverse order": "static/test_append_backward::test_a_chain_is_its_grad_ops_in_reverse_order",
    "the seed stands behind all forward operators": "static/backward/test_fluid_text::test_the_seed_stands_behind_all_forward_operators",
    "sub-blocks come first, recursively": "static/backward/test_fluid_text::test_grad_blocks_mirror_the_nest_and_hold_grad_ops_in_reverse",
    "stop_gradient counts in every block": "static/backward/test_fluid_text::test_a_mark_inside_a_loop_cuts_there",
    "a carried value feeds the next turn": "static/program/test_control_flow::test_carried_values_that_are_swapped",
    "dead branches are not visited": "static/test_append_backward::test_a_dead_branch_and_a_metric_after_the_loss_are_never_visited",
    "only needed slots are listed": "static/test_append_backward::test_only_the_slots_that_the_rules_read_are_listed",
    "makers reuse forward operators": "static/test_append_backward::test_the_grad_ops_of_lists_and_copies_are_forward_ops",
    "array reads and writes": "static/run/test_executor::test_tensor_arrays_are_written_and_read_in_loops_with_gradients",
    "a list keeps its places, a slot goes": "static/backward/test_fluid_text::test_a_list_keeps_a_place_without_gradient_and_a_single_slot_goes",
    "k writers, k parts, one sum": "static/test_append_backward::test_an_intermediate_value_in_three_ops_is_summed_right_before_its_first_reader",
    "a leaf is summed at the end": "static/test_append_backward::test_a_leaf_in_three_ops_is_summed_at_the_end",
    "one operator, two parts": "static/test_append_backward::test_one_op_that_reads_a_value_twice_writes_two_temporaries",
    "parts inside blocks carry the block": "static/backward/test_fluid_text::test_parts_are_numbered_by_block",
    "no wanted output: no grad op": "static/test_append_backward::test_no_grad_cuts_a_branch",
    "only zeros arrive: no grad op, and so on": "static/backward/test_fluid_text::test_behind_a_cut_nothing_is_made_up_to_the_leaves",
    "a missing gradient is a zero": "static/test_append_backward::test_the_unused_half_of_a_split_is_zero_right_before_its_reader",
    "gradient variables are declared": "static/backward/test_fluid_text::test_every_gradient_has_the_shape_and_dtype_of_its_variable_in_every_block",
    "callbacks in every block": "static/backward/test_fluid_text::test_callbacks_run_inside_loops_and_may_change_gradients_there",
    "several targets, seeds, None": "static/test_append_backward::test_gradients_of_an_intermediate_value_and_of_nothing",
    "a second call disturbs nothing": "static/test_append_backward::test_a_second_loss_gets_gradients_under_fresh_names",
    "second derivatives": "static/backward/test_second::test_first_and_second_derivatives_of_a_program_are_those_of_eager",
    "updates live in the program": "static/backward/test_minimize::test_update_operators_have_the_role_optimize_and_write_the_parameters_own_name",
    "a clone for testing": "static/run/test_executor::test_a_clone_for_testing_keeps_forward_operators_and_switches_dropout_off",
    "prune": "static/run/test_executor::test_pruning_keeps_what_the_targets_need",
    "parameters live in the root": "static/backward/test_fluid_text::test_a_parameter_that_a_loop_declares_lives_in_the_root",
    "one scope for each step": "static/program/test_control_flow::test_values_inside_a_loop_are_fetched_step_by_step",
    "the four processes of a grad op": "nets/test_nets::test_the_four_processes_make_the_grad_op",
    "an op gives its grad op at once": "nets/test_nets::test_an_operator_gives_its_grad_op_at_once",
    "a blocked op gives a NOP": "nets/test_nets::test_a_blocked_operator_gives_the_nop_an_empty_net",
    "nests are mirrored": "nets/test_nets::test_nesting_is_mirrored",
    "shared names, one sum behind the last writer": "nets/test_nets::test_a_shared_name_gets_parts_in_order_of_production_and_one_sum_behind_the_last",
    "v@ZERO": "nets/test_nets::test_a_partly_unwanted_output_is_a_zero_right_before_its_reader",
    "step nets over time": "nets/test_nets::test_gradients_of_shared_parameters_are_summed_over_the_steps",
    "the branch not taken": "static/program/test_control_flow::test_cond_has_the_gradient_of_the_branch_taken",
    "no turn is the identity": "static/program/test_control_flow::test_a_loop_of_n_steps_has_the_gradient_of_the_unrolled_one",
    "known error: overwritten values": "static/test_append_backward::test_an_overwritten_value_that_a_grad_op_needs_is_an_error_that_names_both_operators",
    "known error: cond in while": "static/program/test_control_flow::test_cond_in_while",
    "known error: overwritten, not read": "static/program/test_control_flow::test_a_carried_value_that_is_overwritten_without_being_read",
    "known error: two carried values": "static/program/test_control_flow::test_several_carried_values",
    "known error: nested loops": "static/program/test_control_flow::test_a_loop_in_a_loop",
    "known error: all is blocked": "static/test_append_backward::test_if_everything_is_blocked_only_the_seed_is_left",
    "known error: unknown names": "static/test_errors::test_an_unknown_name_in_no_grad_set",
    "known error: if on a variable": "static/test_errors::test_if_while_and_bool_on_a_variable",
    "known error: read before written": "static/test_errors::test_a_name_read_before_it_is_written",
    "known error: no line": "static/test_append_backward::test_every_backward_operator_remembers_the_users_line",
    "known error: long and shuffled text": "static/run/test_executor::test_the_text_of_a_program_does_not_change_with_the_hash_seed",
    "known error: why is there no gradient": "explain/test_programs::test_the_exact_cut_is_named",
    "the passes one by one": "static/test_append_backward::test_the_passes_can_be_looked_at_one_by_one",
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_test(rule):
    file, _, name = RULES[rule].partition("::")
    text = (TESTS / f"{file}.py").read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\(", text, re.MULTILINE)


def turns(n, body, start):
    """A loop of n turns around ``body(value)``."""
    return static.while_loop(lambda i, s: i < n, lambda i, s: [i + 1, body(s)], [0, start])[1]


def nest():
    """A loop in a loop: exp and sin outside, a product and cos inside."""
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [0.5, 0.2])

        def body(s):
            h = mg.exp(-s)
            return mg.sin(h) + turns(2, lambda t: t * w + mg.cos(t), h)

        loss = turns(3, body, w).sum()
    return program, loss


def test_the_seed_stands_behind_all_forward_operators():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", 2.0)
        loss = w * w
        mg.exp(loss)
        static.append_backward(loss)
    kinds = [op.type for op in program.global_block().ops]
    assert kinds == ["mul", "exp", "fill_constant", "mul_grad", "sum"]


def test_grad_blocks_mirror_the_nest_and_hold_grad_ops_in_reverse():
    program, loss = nest()
    with static.program_guard(program):
        static.append_backward(loss)
    root = program.global_block()
    (outer,) = [op for op in root.ops if op.type == "while_grad"]
    outer_grad = program.block(outer.attrs["sub_block"])
    (inner,) = [op for op in outer_grad.ops if op.type == "while_grad"]
    inner_grad = program.block(inner.attrs["sub_block"])
    for grad_block, grad_op in ((outer_grad, outer), (inner_grad, inner)):
        assert grad_block.forward_block == grad_op.forward_op.attrs["sub_block"]
        forward = [id(op) for op in program.block(grad_block.forward_block).ops]
        places = [forward.index(id(op.forward_op)) for op in grad_block.ops if op.forward_op]
        assert places == sorted(places, reverse=True)
        assert places
    assert (outer_grad.parent, inner_grad.parent) == (root.idx, outer_grad.idx)


def test_parts_are_numbered_by_block():
    program, loss = nest()
    with static.program_guard(program):
        static.append_backward(loss)
    sums = [(b, op) for b in program.blocks for op in b.ops if op.type == "sum"]
    assert len(sums) == 3
    for block, op in sums:
        (name,) = op.output_names
        where = f"block{block.idx}@" if block.idx else ""
        assert op.input_names == [f"{name}@RENAME@{where}{k}" for k in range(len(op.input_names))]


def test_every_gradient_has_the_shape_and_dtype_of_its_variable_in_every_block():
    program, loss = nest()
    with static.program_guard(program):
        static.append_backward(loss)
    found = 0
    for block in program.blocks:
        for op in block.ops:
            for name in op.output_names:
                if op.role == "backward" and name != "@EMPTY@":
                    made, base = block.vars[name], block.var(name.partition("@GRAD")[0])
                    assert (made.shape, made.dtype) == (base.shape, base.dtype)
                    found += 1
    assert found > 10


def test_a_mark_inside_a_loop_cuts_there():
    def body(s):
        h = mg.exp(s)
        h.stop_gradient = True
        return s * 3.0 + h

    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", 0.1)
        ((_, g),) = static.append_backward(turns(2, body, w))
    assert not any(op.type == "exp_grad" for b in program.blocks for op in b.ops)
    assert static.Executor().run(program, fetch_list=g)[0] == pytest.approx(9.0)


def test_a_list_keeps_a_place_without_gradient_and_a_single_slot_goes():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        loss = (mg.concat([x, w]) * 2.0).sum() + (x * w).sum()
        ((_, g),) = static.append_backward(loss)
    lines = [str(op) for op in program.global_block().ops if op.role == "backward"]
    assert "[@EMPTY@, w@GRAD@RENAME@1] = concat_grad([x, w], out_grad=concat_0@GRAD)" in lines
    (product,) = [op for op in program.global_block().ops if op.output_names == ["w@GRAD@RENAME@0"]]
    assert list(product.outputs) == ["y_grad"]
    (value,) = static.Executor().run(program, {"x": np.array([5.0, 6.0])}, g)
    assert value.tolist() == [7.0, 8.0]


def test_behind_a_cut_nothing_is_made_up_to_the_leaves():
    program = static.Program()
    with static.program_guard(program):
        w, v = static.parameter("w", 2.0), static.parameter("v", 3.0)
        h = mg.cos(mg.sin(mg.exp(w)))
        pairs = static.append_backward(h * v, no_grad_set=[h])
    assert [p.name for p, _ in pairs] == ["v"]
    made = [op.type for op in program.global_block().ops if op.role == "backward"]
    assert made == ["mul_grad"]
    assert [p.grad_op for p in program.pruned] == ["cos_grad", "sin_grad", "exp_grad"]


def test_callbacks_run_inside_loops_and_may_change_gradients_there():
    """Halving what sin gives in each of three turns, by hand: each turn counts for half."""
    seen = []

    def halve(block, context):
        seen.append((block.idx, context["op"].type))
        if context["op"].type == "sin_grad":
            (name,) = context["op"].output_names
            block.append_op("scale", {"x": [name]}, {"out": [name]}, {"scale": 0.5})

    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", 0.7)
        ((_, g),) = static.append_backward(turns(3, mg.sin, w), callbacks=[halve])
    static.verify(program)
    (loop,) = [op for op in program.global_block().ops if op.type == "while_grad"]
    assert (loop.attrs["sub_block"], "sin_grad") in seen
    assert (0, "while_grad") in seen
    expected, at = 1.0, 0.7
    for _ in range(3):
        expected, at = expected * 0.5 * np.cos(at), np.sin(at)
    assert static.Executor().run(program, fetch_list=g)[0] == pytest.approx(expected)


def test_a_callback_that_fails_inside_a_loop_leaves_the_program_as_it_was():
    def fail(block, context):
        if block.idx:
            raise RuntimeError("no")

    program, loss = nest()
    before = program.to_json()
    with static.program_guard(program), pytest.raises(RuntimeError):
        static.append_backward(loss, callbacks=[fail])
    assert program.to_json() == before


def test_a_parameter_that_a_loop_declares_lives_in_the_root():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [])
        loss = turns(2, lambda s: s * static.parameter("v", 3.0), x)
        ((v, g),) = static.append_backward(loss)
    assert v.block is program.global_block()
    assert static.Executor().run(program, {"x": 5.0}, g)[0] == 2 * 3.0 * 5.0


def test_a_clone_for_testing_never_normalises_with_the_batch_in_silence():
    norm = mg.nn.BatchNorm(2)
    train, use = static.Program(), static.Program()
    with static.program_guard(train):
        loss = (norm(static.data("x", [-1, 2])) ** 2).sum()
        static.append_backward(loss)
    with static.program_guard(use):
        y = norm.eval()(static.data("x", [-1, 2]))
    with pytest.raises(
        ProgramError, match=r"(?s)'running_mean' is moved .* net\.eval\(\)"
    ) as caught:
        train.clone(for_test=True)
    assert "at test_fluid_text.py:" in str(caught.value)
    executor, x = static.Executor(), np.array([[1.0, 2.0], [3.0, 8.0]])
    for _ in range(2):
        executor.run(train, {"x": x}, loss)
    mean, var = 0.19 * x.mean(0), 0.81 + 0.19 * x.var(0, ddof=1)
    np.testing.assert_allclose(executor.scope["running_mean"], mean)
    (value,) = executor.run(use, {"x": x}, y)
    np.testing.assert_allclose(value, (x - mean) / np.sqrt(var + norm.eps))
    assert use.clone(for_test=True).to_json()
