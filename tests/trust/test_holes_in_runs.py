"""What no test of running and writing programs looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import AnomalyError, ProgramError
from minigrad.static.run.limits import HELD
from minigrad.static.run.scope import Run, Scope


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


def test_both_outputs_of_an_operator_that_has_two_are_written():
    prog, _, (values, places) = program(lambda x: mg.topk(x, k=2), [[4]])
    found = static.Executor().run(prog, {"v0": np.array([1.0, 4.0, 2.0, 3.0])}, [values, places])
    assert [f.tolist() for f in found] == [[4.0, 3.0], [1, 3]]


def test_names_without_a_value_are_an_error():
    scope = Scope()
    with pytest.raises(KeyError, match="w"):
        scope["w"]
    run = Run(static.Program(), scope, 10, check_finite=False)
    with pytest.raises(ProgramError, match="'w' is read before anything wrote it"):
        run.value(scope, "w")


# -- what goes in and what comes out -------------------------------------------------------


def test_a_feed_is_a_dict_and_a_scope_is_a_scope():
    prog, y = chain(1, size=2)
    run = static.Executor().run
    with pytest.raises(
        ProgramError, match=r"feed is a dict, name → array, not (.|\n)*repair: feed="
    ):
        run(prog, [np.ones(2)], [y])
    with pytest.raises(ProgramError, match="scope is a static.Scope, not "):
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
    with pytest.raises(ProgramError, match="has no value in this run: the block it belongs to"):
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
