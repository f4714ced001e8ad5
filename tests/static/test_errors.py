"""Every error of building and running programs, once, with its text; the program is then as it was before."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import AnomalyError, MinigradError, ProgramError


@pytest.fixture
def prog():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2, 3])
        w1, w2 = static.parameter("w1", np.ones((3, 2))), static.parameter("w2", np.ones((2, 1)))
        mg.mean(mg.tanh(mg.matmul(x, w1)) @ w2)
        yield program


def state(program):
    known = [sorted(b.written) for b in program.blocks]
    return (
        program.to_json(),
        known,
        dict(program._counts),
        len(program.pruned),
        len(program.backward_calls),
    )


def refused(program, action, *parts):
    """The action fails with an error that says all of this, and leaves the program alone."""
    before = state(program)
    with pytest.raises(MinigradError) as caught:
        action()
    for part in parts:
        assert part in str(caught.value), str(caught.value)
    assert state(program) == before
    return str(caught.value)


def var(program, name):
    return program.global_block().var(name)


# -- names ---------------------------------------------------------------------------------


def test_an_unknown_parameter(prog):
    loss = var(prog, "mean_0")
    refused(prog, lambda: static.append_backward(loss, parameter_list=["w3"]),
            "parameter_list names 'w3', which is no variable of the root block", "did you mean 'w2'?", "at test_errors.py:")  # fmt: skip


def test_an_unknown_name_in_no_grad_set(prog):
    loss = var(prog, "mean_0")
    refused(
        prog,
        lambda: static.append_backward(loss, no_grad_set={"tanh"}),
        "no_grad_set names 'tanh'",
        "did you mean 'tanh_0'?",
    )


def test_an_unknown_feed(prog):
    run = static.Executor().run
    refused(
        prog,
        lambda: run(prog, {"X": np.ones((2, 3))}),
        "feed names 'X', which is no data of this program",
        "Known: 'x'",
    )


def test_an_unknown_fetch(prog):
    run = static.Executor().run
    refused(
        prog,
        lambda: run(prog, {"x": np.ones((2, 3))}, ["w1@GRAD"]),
        "fetch_list names 'w1@GRAD'",
        "did you mean 'w1'?",
    )


def test_an_unknown_slot(prog):
    block = prog.global_block()
    refused(
        prog,
        lambda: block.append_op("matmul", {"x": "x", "z": "w1"}, {"out": "h"}),
        "matmul has no input slot 'z'",
        "Known: 'x', 'y'",
    )
    refused(
        prog,
        lambda: block.append_op("exp", {"x": "x"}, {"outs": "h"}),
        "exp has no output slot 'outs'",
        "did you mean 'out'?",
    )


def test_a_missing_slot(prog):
    block = prog.global_block()
    refused(
        prog,
        lambda: block.append_op("matmul", {"x": "x"}, {"out": "h"}),
        "matmul needs 'y'",
        "repair: inputs={'y': variable}, or a number: attrs={'y': 2.0}",
    )


def test_an_unknown_attr(prog):
    block = prog.global_block()
    refused(
        prog,
        lambda: block.append_op("reduce_sum", {"x": "x"}, {"out": "h"}, {"axes": 1}),
        "reduce_sum has no attr 'axes'",
        "did you mean 'axis'?",
    )


def test_an_unknown_operator_type(prog):
    block = prog.global_block()
    refused(
        prog,
        lambda: block.append_op("matmull", {"x": "x"}, {"out": "h"}),
        "there is no operator type 'matmull'",
        "did you mean 'matmul'?",
    )


def test_an_unknown_variable(prog):
    block = prog.global_block()
    refused(
        prog,
        lambda: block.append_op("exp", {"x": "w4"}, {"out": "h"}),
        "block 0 has no variable 'w4'",
        "did you mean 'w2'?",
    )
    refused(
        prog,
        lambda: prog.prune("loss"),
        "prune names 'loss', which is no variable of the root block",
    )


def test_a_name_that_is_taken(prog):
    refused(
        prog,
        lambda: static.data("w1", [2]),
        "block 0 has a variable 'w1' already: Variable(w1: float64[3, 2])",
    )


@pytest.mark.parametrize(
    "name",
    ["", "a b", "a,b", "f(x)", "a\n", "'a'", "-- loss", "True", "@EMPTY@", "1e5", "x" * 201, 3],
)
def test_a_name_that_the_text_of_a_program_could_not_hold(prog, name):
    refused(
        prog,
        lambda: static.data(name, [2]),
        "cannot be the name of a variable: use letters, digits",
    )


# -- what is asked -------------------------------------------------------------------------


def test_a_loss_that_is_not_one_number(prog):
    h = var(prog, "tanh_0")
    refused(
        prog,
        lambda: static.append_backward(h),
        "the loss must be one number, but Variable(tanh_0: float64[2, 2])",
        "tanh_0.mean()",
    )


def test_a_loss_that_no_operator_makes(prog):
    scalar = static.data("scalar", [])
    refused(
        prog,
        lambda: static.append_backward(scalar),
        "no operator of this program computes the loss 'scalar'; it is data",
    )


def test_a_loss_that_is_no_variable_or_no_float(prog):
    count = mg.argmax(var(prog, "x"))
    refused(
        prog,
        lambda: static.append_backward(3.0),
        "append_backward starts from a Variable, not from 3.0",
        "repair: a Variable of a Program",
    )
    refused(
        prog,
        lambda: static.append_backward(mg.tensor(3.0)),
        "append_backward starts from a Variable, not from float64[]",
        "repair: loss.backward(), then optimizer.step()",
    )
    refused(
        prog,
        lambda: static.append_backward(count),
        "the loss must be a floating-point number, but",
        "is int64",
    )


def test_targets_and_seeds_that_do_not_fit(prog):
    h, x = var(prog, "tanh_0"), var(prog, "x")
    refused(
        prog,
        lambda: static.gradients([h], [x], [1.0, 2.0]),
        "1 targets need 1 target_gradients, 2 were given",
    )
    refused(
        prog,
        lambda: static.gradients([h], [x], [x]),
        "the seed Variable(x: float64[2, 3]) must have the shape of its target",
    )
    refused(prog, lambda: static.gradients(2.0, [x]), "gradients() takes Variables, not 2.0")


def test_an_integer_target(prog):
    count, x = mg.argmax(var(prog, "x")), var(prog, "x")
    refused(
        prog,
        lambda: static.gradients([count], [x]),
        "is int64: only floating-point values have gradients",
    )


# -- running -------------------------------------------------------------------------------


def test_a_missing_feed(prog):
    message = refused(
        prog,
        lambda: static.Executor().run(prog, fetch_list=["mean_0"]),
        "the program reads 'x', but it was not fed",
    )
    assert "repair: feed {'x': …} with shape [2, 3]" in message


def test_a_feed_of_another_shape_or_type(prog):
    run = static.Executor().run
    refused(
        prog,
        lambda: run(prog, {"x": np.ones((3, 3))}),
        "feed 'x' is float64[3, 3], the program expects float64[2, 3]",
    )
    refused(
        prog, lambda: run(prog, {"x": np.ones((2, 3), complex)}), "feed 'x' is complex128[2, 3]"
    )


def test_a_parameter_without_a_value(prog):
    del prog.initial["w1"]
    feed = {"x": np.ones((2, 3))}
    refused(
        prog,
        lambda: static.Executor().run(prog, feed),
        "the parameter 'w1' has no value",
        "give static.parameter an init",
    )


def test_a_name_read_before_it_is_written(prog):
    block = prog.global_block()
    block.create_var("late", [2, 3])
    refused(
        prog,
        lambda: block.append_op("exp", {"x": "late"}, {"out": "h"}),
        "exp reads 'late', but no operator has written it",
    )
    block.append_op("assign", {"x": "x"}, {"out": "late"})
    block.append_op("exp", {"x": "late"}, {"out": "h"})
    block.ops[-2:] = block.ops[:-3:-1]
    feed = {"x": np.ones((2, 3))}
    with pytest.raises(ProgramError, match="'late' is read before anything wrote it"):
        static.Executor().run(prog, feed)
    with pytest.raises(ProgramError, match="#4 exp: it reads 'late' before anything wrote it"):
        static.verify(prog)


def test_an_operator_that_fails_says_where_it_was_written(prog):
    places = static.data("places", [2], np.int64)
    mg.take(var(prog, "x"), places, axis=1)
    with pytest.raises(ProgramError) as caught:
        static.Executor().run(prog, {"x": np.ones((2, 3)), "places": np.array([0, 7])})
    assert "#4 take(" in str(caught.value)
    assert "out of bounds" in str(caught.value)
    assert "at test_errors.py:" in str(caught.value)


def test_a_size_that_must_match_and_was_left_open(prog):
    y = static.data("y", [-1, 3, 4])
    x = static.data("z", [2, 4, 5])
    refused(
        prog,
        lambda: mg.matmul(y, x),
        "a size -1 can be any number, and 3 does not fit: declare a size that must match",
    )


def test_the_first_operator_that_makes_a_nan_is_named(prog):
    y = mg.log(var(prog, "x") - 2.0)
    y.sum()
    with pytest.raises(AnomalyError, match="#5 log made nan in 'log_0' from"):
        static.Executor().run(prog, {"x": np.ones((2, 3))}, check_finite=True)


def test_a_program_is_what_executors_and_guards_take():
    with pytest.raises(
        MinigradError, match=r"Executor.run\(program: None\)(.|\n)*program: Program"
    ):
        static.Executor().run(None)
    with (
        pytest.raises(ProgramError, match="program_guard takes a Program, not 3"),
        static.program_guard(3),
    ):
        pass
    with pytest.raises(ProgramError, match="there is no program to build in"):
        static.data("x", [2])


# -- Python on Variables -------------------------------------------------------------------


def test_if_while_and_bool_on_a_variable(prog):
    loss = mg.mean(var(prog, "x"))
    for use in (lambda: bool(loss), lambda: loss and 1, lambda: 1 if loss else 2):
        refused(
            prog,
            use,
            "the value of Variable 'mean_1' is not known while the program is being built",
            "static.cond(",
            "static.while_loop(",
        )


def test_a_variable_has_no_number_yet(prog):
    loss = var(prog, "mean_0")
    for use in (
        lambda: float(loss),
        lambda: int(loss),
        lambda: loss.item(),
        lambda: loss.numpy(),
        lambda: np.asarray(loss),
    ):
        refused(
            prog,
            use,
            "Variable 'mean_0' has no value while the program is being built",
            "fetch_list=['mean_0']",
        )


def test_a_length_that_is_not_known(prog):
    y = static.data("y", [-1])
    refused(prog, lambda: len(y), "the length of Variable 'y' [-1] is not known")


def test_a_tensor_mixed_with_a_variable(prog):
    x, t = var(prog, "x"), mg.tensor(np.ones((2, 3)))
    for use in (lambda: x + t, lambda: t + x, lambda: mg.concat([t, x])):
        refused(
            prog,
            use,
            "a Tensor (float64[2, 3]) cannot be mixed with Variables",
            "static.parameter(name, tensor)",
        )


def test_two_programs_mixed(prog):
    other = static.Program()
    with static.program_guard(other):
        y = static.data("y", [2, 3])
    x = var(prog, "x")
    refused(
        prog,
        lambda: x + y,
        "Variable 'y' belongs to another program",
        "build both in one program_guard",
    )


def test_something_that_is_no_number(prog):
    x = var(prog, "x")
    refused(prog, lambda: mg.concat([x, "text"]), "a program computes with numbers, not with str")


def test_shapes_that_do_not_fit_bring_no_constants_along(prog):
    x = var(prog, "x")
    before = state(prog)
    with pytest.raises(ProgramError, match="is not possible"):
        mg.matmul(x, np.ones((2, 2)))
    assert state(prog) == before


def test_traced_functions_that_look_at_values():
    with pytest.raises(ProgramError, match="cannot decide on it"):
        mg.trace(lambda x: x * 2 if x.sum() > 0 else x, np.ones(3))
    with pytest.raises(ProgramError, match="the traced function returned 3"):
        mg.trace(lambda x: 3, np.ones(3))


# -- control flow --------------------------------------------------------------------------


def test_branches_of_different_structure(prog):
    x = var(prog, "x")
    p = x.sum() > 0
    refused(
        prog,
        lambda: static.cond(p, lambda: (x, x), lambda: x),
        "return different structures: a tuple of 2 and one value",
    )
    refused(
        prog, lambda: static.cond(p, lambda: (x, x), lambda: [x, x]), "a tuple of 2 and a list of 2"
    )
    refused(
        prog,
        lambda: static.cond(p, lambda: x, lambda: mg.argmax(x, axis=0)),
        "return different types for value 0",
    )
    refused(
        prog,
        lambda: static.cond(p, lambda: x, lambda: x.sum()),
        "return different types for value 0",
    )


def test_a_condition_that_is_not_one_bool(prog):
    x = var(prog, "x")
    p = x > 0
    refused(
        prog,
        lambda: static.cond(p, lambda: x, lambda: x),
        "cond decides on one bool, not Variable(",
        "static.if_else",
    )
    refused(
        prog,
        lambda: static.while_loop(lambda s: s, lambda s: [s], [x]),
        "while_loop goes on while one bool holds, not",
    )
    refused(
        prog,
        lambda: static.if_else(x, lambda r: r, lambda r: r, x),
        "if_else takes one bool per row, not Variable(x",
    )


def test_a_loop_body_that_changes_shape_dtype_or_number_of_its_values(prog):
    x = var(prog, "x")
    go = lambda s: s.sum() > 0
    refused(prog, lambda: static.while_loop(go, lambda s: [s.sum(axis=0)], [x]),
            "the loop body changes loop variable 0: it starts as Variable(x: float64[2, 3])", "must stay the same from step to step")  # fmt: skip
    refused(
        prog,
        lambda: static.while_loop(go, lambda s: [s.astype("float32")], [x]),
        "goes on as Variable(cast_0: float32[2, 3])",
    )
    refused(
        prog,
        lambda: static.while_loop(go, lambda s: [s, s], [x]),
        "the loop body returns 2 value(s) for 1 loop variable(s)",
    )
    refused(
        prog,
        lambda: static.while_loop(lambda: True, lambda: [], []),
        "while_loop needs at least one loop variable",
    )


def test_an_error_inside_a_nest_leaves_no_blocks_behind(prog):
    x = var(prog, "x")

    def body(i, s):
        t = static.cond(s.sum() > 0, lambda: s * 2.0, lambda: s)
        return [i + 1, mg.matmul(t, t)]

    refused(
        prog,
        lambda: static.while_loop(lambda i, s: i < 3, body, [0, x]),
        "matmul(x: float64[2, 3], y: float64[2, 3]) is not possible",
    )


def test_a_value_of_a_body_used_outside(prog):
    x, kept = var(prog, "x"), []

    def body(s):
        kept.append(s * 2.0)
        return [kept[0]]

    static.while_loop(lambda s: s.sum() < 5.0, body, [x])
    refused(
        prog,
        lambda: kept[0] + 1.0,
        "lives inside block 1 and has no value outside of it",
        "return it from the branch or the body",
    )


def test_a_body_that_writes_a_variable_of_the_block_around_it(prog):
    x = mg.exp(var(prog, "x"))

    def body(s):
        prog.current_block().append_op("assign", {"x": s}, {"out": x})
        return [s]

    refused(
        prog,
        lambda: static.while_loop(lambda s: s.sum() < 5.0, body, [x]),
        "in block 1 writes 'exp_0' of block 0",
    )


def test_a_name_written_again_with_another_shape(prog):
    block, x = prog.global_block(), mg.exp(var(prog, "x"))
    refused(
        prog,
        lambda: block.append_op("reduce_sum", {"x": x}, {"out": x}),
        "reduce_sum writes float64[] to 'exp_0', which is float64[2, 3] already",
    )
    refused(
        prog,
        lambda: block.append_op("reduce_sum", {"x": x}, {"out": "w1"}),
        "reduce_sum writes float64[] to 'w1'",
    )


def test_a_recurrent_step_or_sequence_that_does_not_fit(prog):
    x = var(prog, "x")
    refused(
        prog,
        lambda: static.static_rnn(lambda a, h: h, [x], [np.zeros(3)]),
        "the step of static_rnn returns (outputs, next_states)",
    )
    refused(
        prog, lambda: static.static_rnn(lambda h: ([], [h]), [], [x]), "static_rnn needs sequences"
    )
    refused(prog, lambda: static.static_rnn(lambda a, b, h: ([], [h]), [x, var(prog, "w1")], [np.zeros(3)]),
            "the sequences of static_rnn have different lengths")  # fmt: skip


def test_sequences_whose_lengths_differ_when_the_program_runs():
    program = static.Program()
    with static.program_guard(program):
        a, b = static.data("a", [-1]), static.data("b", [-1])
        static.static_rnn(lambda s, t, h: ([], [h + s * t]), [a, b], [0.0])
    with pytest.raises(ProgramError, match=re.escape("have different lengths: [2, 3]")):
        static.Executor().run(program, {"a": np.ones(2), "b": np.ones(3)})


# -- the rest ------------------------------------------------------------------------------


def test_a_callback_that_fails_takes_the_backward_part_back(prog):
    loss = var(prog, "mean_0")

    def callback(block, context):
        if context["op"].type == "tanh_grad":
            raise ProgramError("the callback refuses")

    refused(
        prog, lambda: static.append_backward(loss, callbacks=[callback]), "the callback refuses"
    )


def test_sizes_names_and_values_of_declarations(prog):
    refused(
        prog, lambda: static.data("y", [-2]), "data 'y': a size is -1 (any) or at least 0, not -2"
    )
    refused(prog, lambda: static.parameter("y", ["a"]), "parameter 'y' needs real numbers")
    refused(prog, lambda: static.create_array(-1), "fill_constant(shape=(-1,)) is not possible")


def test_error_clips_that_make_no_sense(prog):
    refused(
        prog, lambda: static.error_clip(3, 0, 1), "error_clip(variable: 3", "variable: Variable"
    )
    refused(
        prog,
        lambda: static.error_clip(var(prog, "tanh_0"), 1, 0),
        "error_clip needs min <= max, not 1 and 0",
    )


def test_minimize_inside_a_block(prog):
    x = var(prog, "x")

    def body(s):
        mg.optim.SGD(lr=0.1).minimize(s.sum())
        return [s]

    refused(
        prog,
        lambda: static.while_loop(lambda s: s.sum() < 5.0, body, [x]),
        "minimize updates parameters in the root block, not in block 1",
    )
