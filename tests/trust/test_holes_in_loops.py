"""What no test of control flow looked at until a mutant survived: limits, empty loops, what branches return."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError


@pytest.fixture
def prog():
    made = static.Program()
    with static.program_guard(made):
        yield made


def run(prog, fetch, **feed):
    return [np.asarray(v).tolist() for v in static.Executor().run(prog, feed, fetch)]


def test_a_loop_may_take_all_steps_of_its_limit_and_not_one_more(prog):
    (i,) = static.while_loop(lambda i: i < 5, lambda i: [i + 1], [0])
    assert static.Executor().run(prog, {}, [i], step_limit=5)[0] == 5
    with pytest.raises(ProgramError, match="did not end within 4 steps"):
        static.Executor().run(prog, {}, [i], step_limit=4)


@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
def test_a_decision_is_one_bool_of_any_rank(prog, shape):
    x = static.data("x", shape)
    y = static.cond(x > 0.0, lambda: mg.sum(x) * 2.0, lambda: -mg.sum(x))
    i, _ = static.while_loop(
        lambda i, z: mg.reshape(z < 3.0, shape=shape), lambda i, z: [i + 1, z + 1.0], [0, y]
    )
    for value, wanted in [(1.0, [2.0, 1]), (-1.5, [1.5, 2])]:
        assert run(prog, [y, i], x=np.full(shape, value)) == wanted


@pytest.mark.parametrize("shape", [[2], [-1], [1, 2], [0]])
def test_more_than_one_bool_decides_nothing(prog, shape):
    x = static.data("x", shape)
    with pytest.raises(ProgramError, match="cond decides on one bool, not"):
        static.cond(x > 0.0, lambda: x, lambda: x)
    with pytest.raises(ProgramError, match="cond decides on one bool, not"):
        static.cond(mg.sum(x), lambda: x, lambda: x)
    with pytest.raises(ProgramError, match="while_loop goes on while one bool holds, not"):
        static.while_loop(lambda i: x > 0.0, lambda i: [i + 1], [0])


def test_a_condition_may_be_a_value_from_outside(prog):
    go, x = static.data("go", [], "bool"), static.data("x", [])
    (y,) = static.while_loop(lambda y: go, lambda y: [y * 2.0], [x])
    assert run(prog, [y], go=False, x=3.0) == [3.0]
    with pytest.raises(ProgramError, match="did not end within 7 steps"):
        static.Executor().run(prog, {"go": True, "x": 3.0}, [y], step_limit=7)


def test_numbers_start_a_loop_and_are_handed_on(prog):
    out = static.while_loop(
        lambda n, x, b: n < 2, lambda n, x, b: [n + 1, 7, True], [0, 0.5, False]
    )
    assert [v.dtype.kind for v in out] == ["i", "f", "b"]
    assert run(prog, out) == [2, 7.0, True]
    with pytest.raises(ProgramError, match="loop_vars is a list of Variables or numbers, not "):
        static.while_loop(lambda n: n < 2, lambda n: n, 0)
    with pytest.raises(ProgramError, match="needs at least one loop variable"):
        static.while_loop(lambda: True, lambda: [], [])


def test_a_branch_returns_a_value_or_several_or_none(prog):
    x = static.data("x", [])
    for packed, kind in [(lambda v: (v, v), tuple), (lambda v: [v], list), (lambda v: None, list)]:
        got = static.cond(x > 0.0, lambda p=packed: p(x * 2.0), lambda p=packed: p(x))
        assert type(got) is kind and len(got) == len(packed(x) or ())
        assert all(run(prog, list(got), x=3.0)[k] == 6.0 for k in range(len(got)))
    for one, other in [((x, x), [x, x]), ((x,), (x, x)), (x, (x,))]:
        with pytest.raises(ProgramError, match="return different structures: .* and "):
            static.cond(x > 0.0, lambda r=one: r, lambda r=other: r)


def test_a_size_that_differs_between_branches_is_open_behind_them(prog):
    x, y = static.data("x", [-1, 2]), static.data("y", [3, 2])
    z = static.cond(mg.sum(x) > 0.0, lambda: x * 1.0, lambda: y * 1.0)
    assert z.shape == (-1, 2)
    with pytest.raises(ProgramError, match="return different types for value 0"):
        static.cond(mg.sum(x) > 0.0, lambda: x, lambda: mg.sum(y, axis=1))


@pytest.mark.parametrize("rows", [[-1], [4]])
def test_if_else_packs_as_its_branches_do(prog, rows):
    x = static.data("x", rows)
    several = static.if_else(x > 0.0, lambda r: (r, -r), lambda r: (r * 0.0, r), x)
    listed = static.if_else(x > 0.0, lambda r: [r], lambda r: [-r], x)
    assert (type(several), type(listed)) == (tuple, list)
    found = run(prog, [*several, *listed], x=[1.0, -2.0, 3.0, -4.0])
    assert found == [[1.0, -0.0, 3.0, -0.0], [-1.0, -2.0, -3.0, -4.0], [1.0, 2.0, 3.0, 4.0]]
    for mask in (x, mg.sum(x) > 0.0, mg.expand_dims(x > 0.0, axis=1)):
        with pytest.raises(ProgramError, match="if_else takes one bool per row, not"):
            static.if_else(mask, lambda r: r, lambda r: r, x)


def test_sequences_have_one_length_and_may_be_empty(prog):
    a, b, c = (static.data(n, s) for n, s in [("a", [-1, 2]), ("b", [3, 2]), ("c", [4, 2])])
    step = lambda x, y, s: ([s + x, x * y], [s + y])
    with pytest.raises(ProgramError, match="have different lengths"):
        static.static_rnn(step, [b, c], [mg.sum(a, axis=0)])
    with pytest.raises(ProgramError, match="needs sequences"):
        static.static_rnn(lambda s: ([s], [s]), [], [0.0])
    a.stop_gradient = False
    (outs, products), (last,) = static.static_rnn(step, [a, a], [np.zeros(2)])
    (by_a,) = static.gradients([outs, products, last], [a])
    assert outs.shape == (-1, 2)
    assert run(prog, [outs, last, by_a], a=np.zeros((0, 2))) == [[], [0.0, 0.0], []]
    found = static.Executor().run(prog, {"a": np.zeros((0, 2))}, [outs, by_a])
    assert [f.shape for f in found] == [(0, 2), (0, 2)]
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert run(prog, [outs, last, by_a], a=x) == [
        [[1.0, 2.0], [4.0, 6.0]], [4.0, 6.0], [[5.0, 7.0], [8.0, 10.0]],
    ]  # fmt: skip


def test_the_result_of_a_loop_of_no_step_has_the_gradient_of_its_start(prog):
    w, x = static.parameter("w", 3.0), static.parameter("x", 2.0)
    _, y = static.while_loop(lambda i, y: i < 0, lambda i, y: [i + 1, y * w], [0, x * 1.0])
    static.append_backward(y * 5.0)
    assert run(prog, ["x@GRAD", "w@GRAD"]) == [5.0, 0.0]


def test_gradients_go_round_only_for_what_depends_on_something_wanted(prog):
    """``b`` is read by the result, and nothing wanted lies behind it: the grad block has no part for it."""
    x, c = static.data("x", []), static.data("c", [])
    x.stop_gradient = False
    step = lambda i, a, b: [i + 1, mg.sin(a), b * 2.0]
    _, a, b = static.while_loop(lambda i, a, b: i < 3, step, [0, x, c])
    static.gradients(a * b, [x])
    (op,) = [op for op in prog.global_block().ops if op.type == "while_grad"]
    assert [n == "@EMPTY@" for n in op.attrs["carried_grad"]] == [True, False, True]
    assert [n == "@EMPTY@" for n in op.inputs["out_grad"]] == [True, False, True]


def test_a_start_that_is_overwritten_has_a_gradient_where_no_step_is_taken(prog):
    x, n = static.data("x", []), static.data("n", [], "int64")
    x.stop_gradient = False
    other = static.data("other", [])
    other.stop_gradient = False
    step = lambda i, y, z: [i + 1, n * 2.0, z * 3.0]
    _, y, _ = static.while_loop(lambda i, y, z: i < n, step, [0, x * 5.0, other])
    by_x, by_other = static.gradients(y, [x, other])
    assert by_other is None
    (op,) = [op for op in prog.global_block().ops if op.type == "while_grad"]
    assert [name == "@EMPTY@" for name in op.attrs["carried_grad"]] == [True, False, True]
    for steps, wanted in [(0, 5.0), (1, 0.0), (2, 0.0)]:
        assert run(prog, [by_x], x=1.0, other=1.0, n=steps) == [wanted]


def test_a_branch_makes_no_gradients_that_nobody_wants(prog):
    x, c = static.data("x", []), static.data("c", [])
    x.stop_gradient = False
    y = static.cond(x > 0.0, lambda: x * c, lambda: x - c)
    (by_x,) = static.gradients(y, [x])
    assert not any("c@GRAD" in name for block in prog.blocks for name in block.vars)
    assert [run(prog, [by_x], x=v, c=7.0)[0] for v in (2.0, -2.0)] == [7.0, 1.0]


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_loop_that_reads_a_gradient_and_its_variable_keeps_them_apart(prog, steps):
    x = static.parameter("x", 3.0)
    (g,) = static.gradients(x * x, [x])
    (_, s) = static.while_loop(
        lambda i, s: i < steps, lambda i, s: [i + 1, s + x * g], [0, x * 0.0]
    )
    (by_x,) = static.gradients(s, [x])
    assert run(prog, [g, s, by_x]) == [6.0, 18.0 * steps, 12.0 * steps]


def test_one_value_counts_as_a_list_of_one_and_no_case_as_the_default(prog):
    (n,) = static.while_loop(lambda n: n < 4, lambda n: n + 3, [0])
    x = static.data("x", [])
    assert static.switch([], default=lambda: x) is x
    assert run(prog, [n], x=0.0) == [6]


@pytest.mark.parametrize("wanted", [False, True])
def test_gradients_end_at_integers_and_at_what_reads_nothing_wanted(prog, wanted):
    x, inside = static.data("x", []), []
    x.stop_gradient = not wanted

    def step(i, y):
        inside.append((i, y))
        return [i + 1, y * 2.0]

    out = static.while_loop(lambda i, y: i < 2, step, [0, x])
    assert [v.stop_gradient for v in out] == [True, not wanted]
    assert [v.stop_gradient for v in inside[0]] == [True, False]
    scopes = prog.global_block().ops[-1].outputs["scopes"][0]
    assert prog.global_block().var(scopes).stop_gradient


def test_a_step_returns_a_pair(prog):
    x = static.data("x", [3])
    for returned in ([[x], [x]], (x, x, x), (x,), x):
        with pytest.raises(ProgramError, match=r"returns \(outputs, next_states\)"):
            static.static_rnn(lambda a, s, r=returned: r, [x], [0.0])


def test_sequences_of_open_and_known_length_go_together_and_operators_know_their_line(prog):
    a, b = static.data("a", [-1]), static.data("b", [3])
    (outs,), _ = static.static_rnn(lambda x, y, s: ([x + y], [s]), [a, b], [0.0])  # THE STEP
    assert run(prog, [outs], a=[1.0, 2.0, 3.0], b=[10.0, 20.0, 30.0]) == [[11.0, 22.0, 33.0]]
    assert "# THE STEP" in prog.global_block().ops[-1].source_line
    static.while_loop(lambda i: i < 2, lambda i: i + 1, [0])  # THE LOOP
    assert "# THE LOOP" in prog.global_block().ops[-1].source_line
