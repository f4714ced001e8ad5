"""The executor: scopes, transactions, programs that are copied, cut down and printed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import AnomalyError, MinigradError, ProgramError
from minigrad.static.run.interpreter import Scope, value_of
from minigrad.static.run.limits import HELD

X = np.arange(6.0).reshape(2, 3)


def net():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [-1, 3])
        w = static.parameter("w", np.full((3, 2), 0.5))
        h = mg.dropout(mg.matmul(x, w), 0.5, seed=3)
        loss = h.mean()
        mg.argmax(h, axis=1)
        mg.optim.SGD(lr=0.1).minimize(loss)
    return program, loss


def test_the_scope_of_a_run_can_be_looked_at():
    program, loss = net()
    scope = static.Scope()
    (value,) = static.Executor().run(program, {"x": X}, [loss], scope=scope)
    assert scope[loss.name] == value
    assert "w@GRAD" in scope
    assert scope["matmul_0"].shape == (2, 2)
    assert "nobody" not in scope


def test_fetched_values_belong_to_the_caller():
    program, loss = net()
    executor = static.Executor()
    (w,) = executor.run(program, {"x": X}, ["w"])
    w[:] = 7.0
    assert (executor.scope["w"] != 7.0).all()


def test_a_parameter_written_from_a_fed_array_does_not_share_its_memory():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [3])
        static.parameter("w", np.zeros(3))
        program.global_block().append_op("reshape", {"x": x}, {"out": "w"}, {"shape": (3,)})
    executor, fed = static.Executor(), np.ones(3)
    executor.run(program, {"x": fed})
    fed[:] = 5.0
    np.testing.assert_array_equal(executor.scope["w"], 1.0)


def test_a_clone_for_testing_keeps_forward_operators_and_switches_dropout_off():
    program, loss = net()
    test = program.clone(for_test=True)
    assert [op.type for op in test.global_block().ops] == ["matmul", "dropout", "mean", "arg_max"]
    (value,) = static.Executor().run(test, {"x": X}, [loss])
    assert value == (X @ np.full((3, 2), 0.5)).mean()
    assert str(test).startswith("# made by: clone(for_test)\n")


def test_a_clone_and_its_original_do_not_share_anything():
    program, loss = net()
    before = program.to_json()
    copy = program.clone()
    assert copy.to_json() == before
    with static.program_guard(copy):
        mg.exp(copy.global_block().var(loss.name))
        copy.initial["w"][:] = 9.0
        copy.global_block().ops[0].inputs["x"][0] = "w"
    assert program.to_json() == before


def test_pruning_keeps_what_the_targets_need():
    program, loss = net()
    pruned = program.prune("w@GRAD")
    kinds = [op.type for op in pruned.global_block().ops]
    assert kinds == [
        "matmul",
        "dropout",
        "fill_constant",
        "mean_grad",
        "dropout_grad",
        "matmul_grad",
    ]
    assert [op.type for op in program.prune(loss).global_block().ops] == [
        "matmul",
        "dropout",
        "mean",
    ]
    a, b = (static.Executor().run(p, {"x": X}, ["w@GRAD"])[0] for p in (program, pruned))
    np.testing.assert_array_equal(a, b)


def test_decomposition_gives_the_same_values():
    program, loss = net()
    parts = static.decompose(program)
    assert not any(op.type.endswith("_grad") for op in parts.global_block().ops)
    a, b = (static.Executor().run(p, {"x": X}, ["w@GRAD", "w"]) for p in (program, parts))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


SCRIPT = """
from tests.static.random_programs import program, recipe
for seed in range(6):
    made, loss, _ = program(recipe(seed))
    print(made, made.to_json(), made.pruned)
"""


def test_the_text_of_a_program_does_not_change_with_the_hash_seed():
    texts = set()
    for seed in ("0", "1", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        texts.add(
            subprocess.run(
                [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
            ).stdout
        )
    assert len(texts) == 1
    assert len(texts.pop()) > 1000


def test_tensor_arrays_are_written_and_read_in_loops_with_gradients():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", np.array([0.5, 1.5]))
        array = static.create_array(4, [2])

        def fill(i, a):
            return [i + 1, static.array_write(a, i, w * mg.astype(i, "float64"))]

        _, array = static.while_loop(lambda i, a: i < 4, fill, [0, array])
        assert static.array_length(array) == 4
        loss = (static.array_read(array, 3) * static.array_read(array, np.asarray(2))).sum()
        ((_, g),) = static.append_backward(loss)
    value, grad = static.Executor().run(program, fetch_list=[loss, g])
    np.testing.assert_allclose(value, 6 * (0.25 + 2.25))
    np.testing.assert_allclose(grad, [6.0, 18.0])


# -- runs, and what goes in and comes out ------------------------------------------------


def program(function, shapes):
    """A program of a function of data that want gradients: (program, values, result)."""
    prog = static.Program()
    with static.program_guard(prog):
        values = [static.data(f"v{k}", shape) for k, shape in enumerate(shapes)]
        for v in values:
            v.stop_gradient = False
        return prog, values, function(*values)


# -- runs ----------------------------------------------------------------------------------

#: operators whose results may be larger than what they take, for each reason to ask beforehand
GROWING = {
    "broadcasting": (lambda x: x + mg.expand_dims(x, axis=1), "add"),
    "a table of its own": (lambda x: mg.tile(x, repetitions=(50,)), "tile"),
    "a shape in an attr": (lambda x: mg.broadcast_to(x, shape=(50, 50)), "broadcast_to"),
}


@pytest.mark.parametrize("why", GROWING)
def test_what_may_become_large_is_refused_before_it_is_computed(why):
    function, op_type = GROWING[why]
    prog, _, y = program(function, [[50]])
    with pytest.raises(ProgramError, match=rf"{op_type}\(.*would give 2500 elements"):
        static.Executor().run(prog, {"v0": np.ones(50)}, [y], memory_limit=10_000)


@pytest.mark.parametrize("function", [lambda x: x + 1.0, lambda x: mg.sin(x)])
def test_a_run_may_use_all_bytes_of_its_limit_and_not_one_more(function):
    """What is counted: the elements, the array that holds them, the block and the values it starts with."""
    prog, _, y = program(function, [[50]])
    feed = {"v0": np.ones(50)}
    constants = sum(name.startswith("const") for name in prog.initial)
    limit = 50 * 8 + HELD * (len(prog.global_block().ops) + 1 + len(feed) + constants)
    assert static.Executor().run(prog, feed, [y], memory_limit=limit)[0].shape == (50,)
    with pytest.raises(ProgramError, match="memory_limit"):
        static.Executor().run(prog, feed, [y], memory_limit=limit - 1)


def test_gradients_that_nobody_wants_have_no_part_in_a_run_that_looks_for_nan():
    """The gradient by the first part is not wanted; the error names the inputs there are."""
    prog, (x, y), out = program(lambda x, y: mg.concat([x, y]), [[2], [3]])
    with static.program_guard(prog):
        (g,) = static.gradients(mg.sum(out * out), [y])
        (twice,) = static.gradients(mg.sum(mg.log(g)), [y])
    assert "@EMPTY@" in str(prog)
    feed = {"v0": np.ones(2), "v1": np.full(3, 2.0)}
    found = static.Executor().run(prog, feed, [g, twice], check_finite=True)
    assert [f.tolist() for f in found] == [[4.0] * 3, [0.5] * 3]
    feed["v1"][1] = 0.0
    with np.errstate(all="ignore"), pytest.raises(AnomalyError) as error:
        static.Executor().run(prog, feed, [twice], check_finite=True)
    assert f"log made inf in 'log_0' from ({g.name} = " in str(error.value)


def test_nan_and_inf_of_an_attr_are_written_as_words_and_read_back():
    prog, _, y = program(lambda x: mg.where(x > 0.0, x, np.nan), [[2]])
    text = prog.to_json()
    assert "NaN" not in text
    assert static.Program.from_json(text).to_json() == text


def test_what_json_has_no_form_for_is_refused_while_writing():
    """Numbers that are not finite stand nowhere outside attrs: whoever puts one there is told."""
    prog, _, y = program(lambda x: x * 2.0, [[2]])
    prog.history.append(float("nan"))
    with pytest.raises(ValueError, match="JSON compliant"):
        prog.to_json()


def chain(steps, size=10):
    """A program of some operators that each make ``size`` elements."""
    prog = static.Program()
    with static.program_guard(prog):
        y = static.data("x", [size])
        for _ in range(steps):
            y = mg.sin(y)
    return prog, y


def test_the_elements_of_all_values_of_a_run_are_counted():
    """No value is too large by itself; together they are."""
    prog, y = chain(5)
    feed = {"x": np.zeros(10)}
    static.Executor().run(prog, feed, [y], memory_limit=10_000)
    with pytest.raises(ProgramError, match=r"memory_limit.* is one too many"):
        static.Executor().run(prog, feed, [y], memory_limit=1200)


def test_what_is_one_too_many_is_named():
    prog, y = chain(1)
    feed = {"x": np.zeros(10)}
    with pytest.raises(ProgramError, match="; what block 0 starts with is one too many"):
        static.Executor().run(prog, feed, [y], memory_limit=1)
    with pytest.raises(ProgramError, match=rf"; '{y.name}', float64\[10\], is one too many"):
        static.Executor().run(prog, feed, [y], memory_limit=2 * HELD + 80)


def test_a_value_that_no_shape_tells_beforehand_is_refused_before_it_is_made():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [-1, 1])
        y = mg.matmul(x, mg.permute_dims(x))
    with pytest.raises(ProgramError, match="memory_limit"):
        static.Executor().run(prog, {"x": np.zeros((1000, 1))}, [y], memory_limit=100_000)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_first_operator_that_makes_nan_or_inf_is_named_with_its_inputs(bad):
    prog, y = chain(1, size=2)
    with static.program_guard(prog):
        z = y * static.data("k", []) + 1.0
        static.gradients(mg.sum(z), [prog.global_block().var("x")])
    feed = {"x": np.ones(2), "k": np.array(bad)}
    with np.errstate(all="ignore"), pytest.raises(AnomalyError, match=rf"#1 mul made {bad} in"):
        static.Executor().run(prog, feed, [z], check_finite=True)
    sound = static.Executor().run(prog, {**feed, "k": np.array(2.0)}, [z], check_finite=True)
    assert np.isfinite(sound[0]).all()


def test_a_scope_names_its_values():
    prog, y = chain(1)
    scope = static.Executor()
    scope.run(prog, {"x": np.zeros(10)}, [y])
    assert repr(scope.scope).startswith("<scope of block 0")


def test_records_are_told_apart_by_what_they_are_not_by_their_arrays():
    program = static.Program()
    with static.program_guard(program):
        y = static.data("x", [2]) * 2.0
    scopes = static.Scope(), static.Scope()
    for scope in scopes:
        static.Executor().run(program, {"x": [1.0, 2.0]}, y, scope=scope)
    first, second = (scope.record for scope in scopes)
    assert first == first and first != second and len({first, second}) == 2


def test_a_record_holds_what_every_block_found_and_every_operator_wrote():
    program, scope = static.Program(), static.Scope()
    with static.program_guard(program):
        x = static.data("x", [])
        ends = static.while_loop(lambda s: s < 5.0, lambda s: s + x, [0.0])
    static.Executor().run(program, {"x": 3.0}, scope=scope)
    record = scope.record
    assert record.program is program
    assert [(kind, block, number, turn) for kind, block, number, turn, _ in record.steps[:8]] == [
        ("enter", 0, None, None),
        ("enter", 2, None, 0),
        ("op", 2, 0, 0),
        ("leave", 2, None, 0),
        ("enter", 1, None, 0),
        ("op", 1, 0, 0),
        ("leave", 1, None, 0),
        ("enter", 2, None, 1),
    ]
    values = [{k: np.ravel(v).tolist() for k, v in s.values.items()} for s in record.steps]
    assert values[0] == {"const_0": [0.0], "x": [3.0]}
    assert values[4:7] == [{"const_0@step_0": [0.0], "x": [3.0]}, {"add_0": [3.0]}, {}]
    assert [v["add_0"] for v in values if "add_0" in v] == [[3.0], [6.0]]
    assert record.steps[-2].values[ends[0].name] == 6.0 and not record.steps[-1].values


def test_both_outputs_of_an_operator_that_has_two_are_written():
    prog, _, (values, places) = program(lambda x: mg.topk(x, k=2), [[4]])
    found = static.Executor().run(prog, {"v0": np.array([1.0, 4.0, 2.0, 3.0])}, [values, places])
    assert [f.tolist() for f in found] == [[4.0, 3.0], [1, 3]]


def test_names_without_a_value_are_an_error():
    scope = Scope()
    with pytest.raises(KeyError, match="w"):
        scope["w"]
    with pytest.raises(ProgramError, match="'w' is read before anything wrote it"):
        value_of(scope, "w")


# -- what goes in and what comes out -------------------------------------------------------


def test_a_feed_is_a_dict_and_a_scope_is_a_scope():
    prog, y = chain(1, size=2)
    run = static.Executor().run
    with pytest.raises(MinigradError, match=r"feed: a list of 1(.|\n)*feed: Mapping\[str, Any\]"):
        run(prog, [np.ones(2)], [y])
    with pytest.raises(MinigradError, match=r"scope=\{\}(.|\n)*scope: Scope"):
        run(prog, {"x": np.ones(2)}, [y], scope={})


def test_nan_is_a_value_unless_it_is_asked_about():
    prog, y = chain(1, size=2)
    assert np.isnan(static.Executor().run(prog, {"x": [np.nan, 1.0]}, [y])[0][0])


def test_data_that_is_only_fetched_must_be_fed_and_belongs_to_the_caller():
    prog, y = chain(1, size=2)
    with static.program_guard(prog):
        alone = static.data("alone", [2])
    given = np.ones(2)
    with pytest.raises(ProgramError, match="'alone', but it was not fed"):
        static.Executor().run(prog, {"x": given}, [y, alone])
    assert static.Executor().run(prog, {"x": given}, [y])[0].shape == (2,)
    found = static.Executor().run(prog, {"x": given, "alone": given}, [alone, "x", alone])
    assert not any(np.shares_memory(f, given) for f in found)
    assert not np.shares_memory(found[0], found[2])


def test_a_value_of_a_branch_that_was_not_taken_cannot_be_fetched():
    inside = []
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [])

        def double():
            inside.append(x * 2.0)
            return inside[0]

        static.cond(x > 0.0, double, lambda: x)
    assert static.Executor().run(prog, {"x": 1.5}, inside)[0].tolist() == 3.0
    with pytest.raises(
        ProgramError, match="has no value in this run: no operator that ran writes it"
    ):
        static.Executor().run(prog, {"x": -1.5}, inside)


def test_a_scope_that_is_given_keeps_the_scopes_of_gradients_for_looking_at():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", 2.0)
        _, y = static.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w), [0, 1.0])
        static.append_backward(y)
    scope = static.Scope()
    static.Executor().run(prog, scope=scope)
    (steps,) = [v for v in scope.values.values() if isinstance(v, list)]
    assert [any(n.startswith("@GRAD@SCOPE_") for n in s.values) for s in steps] == [True] * 3


# -- Variables or names, one or several --------------------------------------------------


FED = np.arange(6.0).reshape(2, 3) / 7


@pytest.fixture
def network():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [None, 3]), static.parameter("w", np.full((3, 2), 0.3))
        yield program, x, w, mg.tanh(mg.matmul(x, w)).mean()


def test_one_variable_or_name_to_fetch_counts_as_a_list_of_one(network):
    program, x, _, loss = network
    run = static.Executor().run
    (expected,) = run(program, {"x": FED}, [loss])
    for fetch in (loss, loss.name, (loss,), iter([loss.name])):
        assert run(program, {x: FED.tolist()}, fetch) == [expected]


def test_a_gradient_that_was_not_made_is_answered_with_what_makes_it(network):
    program, _, _, loss = network
    with pytest.raises(ProgramError, match="'w@GRAD', which is no variable") as caught:
        static.Executor().run(program, {"x": FED}, ["w@GRAD"])
    assert "repair: static.append_backward(loss) makes gradients" in str(caught.value)
    with pytest.raises(ProgramError, match="which is no variable") as caught:
        static.Executor().run(program, {"x": FED}, ["w2"])
    assert "did you mean 'w'?" in str(caught.value)
    assert "repair" not in str(caught.value)
    with pytest.raises(ProgramError, match="not from str"):
        static.append_backward(loss.name)


def test_a_step_is_compiled_for_feeds_that_are_named_listed_or_shown(network):
    program, x, _, loss = network
    (expected,) = static.Executor().run(program, {"x": FED}, loss)
    for feed in (["x"], "x", [x], x, {"x": FED}, {"x": FED.tolist()}, {"x": [2, 3]}, None):
        step = static.compile(program, feed, [loss])
        assert step(x=FED.tolist()) == [expected], feed


def test_a_list_of_numbers_is_a_shape_only_if_it_is_as_long_as_the_variable_has_axes():
    program = static.Program()
    with static.program_guard(program):
        total = static.data("v", [-1]).sum()
    step = static.compile(program, {"v": [1, 2, 3]}, total)
    assert step(v=[1, 2, 3]) == 6.0


def test_one_parameter_or_name_counts_as_a_list_of_one(network):
    program, _, w, loss = network
    (pair,) = static.append_backward(loss, parameter_list=w)
    assert (pair[0], pair[1].name) == (w, "w@GRAD")
    assert static.append_backward(loss, parameter_list="w", no_grad_set="w") == []
    assert not [op for op in program.global_block().ops if op.type == "getitem"]


def refusals(network):
    program, x, w, loss = network
    run = static.Executor().run
    feed = {"x": FED}
    return {
        "fetch_list: 3) is not possible": lambda: run(program, feed, 3),
        "fetch_list holds Variables or names, not 3": lambda: run(program, feed, [3]),
        "feed: a list of 1": lambda: run(program, [("x", FED)], loss),
        "feed: float64[2, 3]": lambda: run(program, FED, loss),
        "feed holds Variables or names, not 1": lambda: run(program, {1: FED}, loss),
        "feed 'x' is no array": lambda: run(program, {"x": [[1, 2], [3]]}, loss),
        "scope: Scope | None": lambda: run(program, feed, loss, scope=3),
        "no_grad_set=3": lambda: static.append_backward(loss, no_grad_set=3),
        "parameter_list=3": lambda: static.append_backward(loss, parameter_list=3),
        "callbacks=": lambda: static.append_backward(loss, callbacks=[3]),
        "append_backward(loss: float64[": lambda: static.append_backward(loss, callbacks=3),
        "must have the shape of its target": lambda: static.gradients(
            loss, [w], target_gradients=[np.ones(7)]
        ),
        "prune needs at least one target": lambda: program.prune([]),
        "prune holds Variables or names, not 3": lambda: program.prune([3]),
        "while_loop(cond: 3": lambda: static.while_loop(3, lambda i: i, [0]),
        "'Variable' object is not callable": lambda: static.while_loop(lambda i: i < 3, x, [0]),
        "cond(pred: True, true_fn: float64[": lambda: static.cond(True, x, lambda: x),
        "if_else takes one bool per row": lambda: static.if_else(x, lambda: x, None),
        "switch(cases: a list of 0, default=3)": lambda: static.switch([], default=3),
        "switch(cases: a list of 1": lambda: static.switch([3], default=lambda: x),
        "data(name: str, shape: 3": lambda: static.data("y", 3),
        "a size is -1 (any) or at least 0, not 'q'": lambda: static.data("y", ["q"]),
        "a size is -1 (any) or at least 0, not 2.5": lambda: static.data("y", [2.5]),
        "numbers and truth values, not with 'complex128'": lambda: static.data(
            "y", [2], "complex128"
        ),
        "data type 'text' not understood": lambda: static.data("y", [2], "text"),
    }


def test_what_is_neither_is_refused_with_the_users_line_and_changes_nothing(network):
    program = network[0]
    before = program.to_json()
    for message, action in refusals(network).items():
        with pytest.raises(MinigradError) as caught:
            action()
        assert message in str(caught.value)
        assert "at test_executor.py:" in str(caught.value), message
        assert program.to_json() == before, message
