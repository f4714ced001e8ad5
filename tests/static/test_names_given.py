"""What users pass where names, feeds and functions are expected: Variables or names, one or several."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError

X = np.arange(6.0).reshape(2, 3) / 7


@pytest.fixture
def net():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [None, 3]), static.parameter("w", np.full((3, 2), 0.3))
        yield program, x, w, mg.tanh(mg.matmul(x, w)).mean()


def test_one_variable_or_name_to_fetch_counts_as_a_list_of_one(net):
    program, x, _, loss = net
    run = static.Executor().run
    (expected,) = run(program, {"x": X}, [loss])
    for fetch in (loss, loss.name, (loss,), iter([loss.name])):
        assert run(program, {x: X.tolist()}, fetch) == [expected]


def test_a_gradient_that_was_not_made_is_answered_with_what_makes_it(net):
    program, _, _, loss = net
    with pytest.raises(ProgramError, match="'w@GRAD', which is no variable") as caught:
        static.Executor().run(program, {"x": X}, ["w@GRAD"])
    assert "repair: static.append_backward(loss) makes gradients" in str(caught.value)
    with pytest.raises(ProgramError, match="which is no variable") as caught:
        static.Executor().run(program, {"x": X}, ["w2"])
    assert "did you mean 'w'?" in str(caught.value)
    assert "repair" not in str(caught.value)
    with pytest.raises(ProgramError, match="not from str") as caught:
        static.append_backward(loss.name)
    assert f"program.global_block().var({loss.name!r})" in str(caught.value)


def test_a_step_is_compiled_for_feeds_that_are_named_listed_or_shown(net):
    program, x, _, loss = net
    (expected,) = static.Executor().run(program, {"x": X}, loss)
    for feed in (["x"], "x", [x], x, {"x": X}, {"x": X.tolist()}, {"x": [2, 3]}, None):
        step = static.compile(program, feed, [loss])
        assert step(x=X.tolist()) == [expected], feed


def test_a_list_of_numbers_is_a_shape_only_if_it_is_as_long_as_the_variable_has_axes():
    program = static.Program()
    with static.program_guard(program):
        total = static.data("v", [-1]).sum()
    step = static.compile(program, {"v": [1, 2, 3]}, total)
    assert step(v=[1, 2, 3]) == 6.0


def test_one_parameter_or_name_counts_as_a_list_of_one(net):
    program, _, w, loss = net
    (pair,) = static.append_backward(loss, parameter_list=w)
    assert (pair[0], pair[1].name) == (w, "w@GRAD")
    assert static.append_backward(loss, parameter_list="w", no_grad_set="w") == []
    assert not [op for op in program.global_block().ops if op.type == "getitem"]


def refusals(net):
    program, x, w, loss = net
    run = static.Executor().run
    feed = {"x": X}
    return {
        "fetch_list is a list of Variables or names, not 3": lambda: run(program, feed, 3),
        "fetch_list holds Variables or names, not 3": lambda: run(program, feed, [3]),
        "feed is a dict, name → array, not a list of 1": lambda: run(program, [("x", X)], loss),
        "feed is a dict, name → array, not float64[2, 3]": lambda: run(program, X, loss),
        "feed holds Variables or names, not 1": lambda: run(program, {1: X}, loss),
        "feed 'x' is no array": lambda: run(program, {"x": [[1, 2], [3]]}, loss),
        "scope is a static.Scope, not 3": lambda: run(program, feed, loss, scope=3),
        "no_grad_set is a list of Variables or names": lambda: static.append_backward(
            loss, no_grad_set=3
        ),
        "parameter_list is a list of Variables or names": lambda: static.append_backward(
            loss, parameter_list=3
        ),
        "a callback is a function, not 3": lambda: static.append_backward(loss, callbacks=[3]),
        "a callback is a function": lambda: static.append_backward(loss, callbacks=3),
        "must have the shape of its target": lambda: static.gradients(
            loss, [w], target_gradients=[np.ones(7)]
        ),
        "prune needs at least one target": lambda: program.prune([]),
        "prune holds Variables or names, not 3": lambda: program.prune([3]),
        "cond is a function, not 3": lambda: static.while_loop(3, lambda i: i, [0]),
        "body is a function, not": lambda: static.while_loop(lambda i: i < 3, x, [0]),
        "true_fn is a function": lambda: static.cond(True, x, lambda: x),
        "false_fn is a function": lambda: static.if_else(x, lambda: x, None),
        "default is a function": lambda: static.switch([], default=3),
        "switch takes a list of pairs": lambda: static.switch([3], default=lambda: x),
        "the shape is a list of sizes, not 3": lambda: static.data("y", 3),
        "a size is -1 (any) or at least 0, not 'q'": lambda: static.data("y", ["q"]),
        "a size is -1 (any) or at least 0, not 2.5": lambda: static.data("y", [2.5]),
        "numbers and truth values, not with 'complex128'": lambda: static.data(
            "y", [2], "complex128"
        ),
        "numbers and truth values, not with 'text'": lambda: static.data("y", [2], "text"),
    }


def test_what_is_neither_is_refused_with_the_users_line_and_changes_nothing(net):
    program = net[0]
    before = program.to_json()
    for message, action in refusals(net).items():
        with pytest.raises(ProgramError) as caught:
            action()
        assert message in str(caught.value)
        assert "at test_names_given.py:" in str(caught.value), message
        assert program.to_json() == before, message
