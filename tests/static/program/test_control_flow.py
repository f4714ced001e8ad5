"""Control flow: values and gradients against a plain Python version of the same, by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError

X, W, V = np.array([0.7, -0.4, 1.1]), np.array([0.9, 1.2, -0.5]), np.array([0.3, 0.2, 0.8])


def slopes(run, program, loss, values, step=1e-6):
    """Central differences of a fetched loss, by every parameter."""
    found = {}
    for name, value in values.items():
        found[name] = np.zeros_like(value)
        for place in np.ndindex(*value.shape):
            ends = []
            for sign in (1, -1):
                executor = static.Executor()
                moved = value.copy()
                moved[place] += sign * step
                executor.scope.values[name] = moved
                ends.append(float(run(executor)))
            found[name][place] = (ends[0] - ends[1]) / (2 * step)
    return found


def check(build, feed=None, **values):
    """Build a loss from parameters, append backward, and compare with differences."""
    values = values or {"x": X, "w": W}
    program = static.Program()
    with static.program_guard(program):
        loss = build(**{n: static.parameter(n, v) for n, v in values.items()})
        pairs = dict((p.name, g) for p, g in static.append_backward(loss))
    static.verify(program)
    names = [g.name for g in pairs.values()]
    got = dict(zip(pairs, static.Executor().run(program, feed, names), strict=True))
    expected = slopes(lambda e: e.run(program, feed, [loss])[0], program, loss, values)
    for name in values:
        ours = got.get(name, np.zeros_like(values[name]))
        np.testing.assert_allclose(ours, expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
    text = str(program)
    assert str(static.parse(text)) == text
    stored = program.to_json()
    assert static.Program.from_json(stored).to_json() == stored
    return program


def counted(n, body, *starts):
    """A while loop of n steps around ``body(i, *values)``."""
    out = static.while_loop(
        lambda i, *vs: i < n, lambda i, *vs: (i + 1, *body(i, *vs)), [np.asarray(0), *starts]
    )
    return out[1:]


@pytest.mark.parametrize("n", range(7))
def test_a_loop_of_n_steps_has_the_gradient_of_the_unrolled_one(n):
    check(lambda x, w: counted(n, lambda i, s: [mg.tanh(s * w)], x)[0].sum())


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_loop_of_n_steps_equals_the_unrolled_one_to_the_last_bit(n):
    found = []
    for loop in (True, False):
        program = static.Program()
        with static.program_guard(program):
            x, w = static.parameter("x", X), static.parameter("w", W)
            s = x
            if loop:
                (s,) = counted(n, lambda i, s, w=w: [mg.tanh(s * w)], x)
            else:
                for _ in range(n):
                    s = mg.tanh(s * w)
            loss = s.sum()
            names = [g.name for _, g in static.append_backward(loss, parameter_list=["x"])]
        found.append(static.Executor().run(program, fetch_list=[loss, *names]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("start", [0.3, -0.3])
def test_cond_has_the_gradient_of_the_branch_taken(start):
    check(
        lambda x, w: static.cond(x.sum() > 0, lambda: (x * w).sum(), lambda: mg.exp(x).sum()),
        x=np.full(3, start),
        w=W,
    )


def test_several_carried_values():
    def body(i, a, b):
        return [a * w_[0] + b, mg.sin(b) * a]

    w_ = []

    def build(x, w):
        w_[:] = [w]
        a, b = counted(3, body, x, w)
        return (a * b).sum()

    check(build)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_carried_values_that_are_swapped(n):
    def build(x, w):
        a, b = counted(n, lambda i, a, b: [b, a * 2.0], x, w)
        return (a * a + b).sum()

    check(build)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_carried_value_that_is_overwritten_without_being_read(n):
    def build(x, w):
        a, b = counted(n, lambda i, a, b: [w * w, b + a], x, x)
        return (a * 3.0).sum() + b.sum()

    check(build)


@pytest.mark.parametrize("n", [0, 2])
def test_a_carried_value_that_is_handed_on_unchanged(n):
    check(lambda x, w: (counted(n, lambda i, a, b: [a, b * a], x, w)[1]).sum())


def test_a_result_returned_twice():
    def build(x, w):
        def body(i, a, b):
            c = a * b
            return [c, c]

        a, b = counted(2, body, x, w)
        return (a + b * 2.0).sum()

    check(build)


def test_integers_carried_along():
    def build(x, w):
        n, s = counted(
            4, lambda i, n, s: [n * 2, s + w * mg.astype(n, "float64")], np.asarray(1), x
        )
        return s.sum()

    check(build)


def test_a_loop_decided_by_its_values():
    def build(x, w):
        (s,) = static.while_loop(
            lambda s: s.sum() < 20.0, lambda s: [s * 1.5 + mg.abs(w)], [mg.abs(x)]
        )
        return s.sum()

    check(build)


@pytest.mark.parametrize(("outer", "inner"), [(0, 2), (2, 0), (1, 1), (2, 3)])
def test_a_loop_in_a_loop(outer, inner):
    def build(x, w):
        def body(i, s):
            (t,) = counted(inner, lambda j, t: [mg.tanh(t * w) + s], s)
            return [t + w]

        return counted(outer, body, x)[0].sum()

    check(build)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_cond_in_while(n):
    def build(x, w):
        def body(i, s):
            return [static.cond(s.sum() > 1.0, lambda: s * w, lambda: s + mg.exp(w))]

        return counted(n, body, x)[0].sum()

    check(build)


@pytest.mark.parametrize("start", [0.5, -0.5])
def test_while_in_cond(start):
    def build(x, w):
        def looped():
            return counted(3, lambda i, s: [s * w + x], x)[0]

        return static.cond(x.sum() > 0, looped, lambda: x * x).sum()

    check(build, x=np.full(3, start), w=W)


@pytest.mark.parametrize("start", [0.5, -0.5])
def test_cond_in_while_in_cond_in_while(start):
    def build(x, w):
        def inner(s):
            def step(j, t):
                return [static.cond(t.sum() > s.sum(), lambda: t * w, lambda: t + s * w)]

            return counted(2, step, s)[0]

        def body(i, s):
            return [static.cond(s.sum() > 0.0, lambda: inner(s), lambda: s - w)]

        return counted(3, body, x)[0].sum()

    check(build, x=np.full(3, start), w=W)


def test_while_in_while_in_while():
    def build(x, w):
        def level(k, s):
            if k == 0:
                return mg.sin(s * w) + x
            return counted(2, lambda i, t: [level(k - 1, t)], s)[0]

        return level(3, x).sum()

    check(build)


def test_a_parameter_read_at_every_depth_of_a_nest():
    def build(x, w):
        def body(i, s):
            return [static.cond(s.sum() > -5.0, lambda: s * w, lambda: s) * w]

        return (counted(2, body, x * w)[0] * w).sum()

    check(build)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_static_rnn_over_sequences_of_any_length(length):
    def build(w, v, seq):
        def step(xt, h):
            h = mg.tanh(xt * w + h * v)
            return [h, xt * h], [h]

        (hs, ys), (last,) = static.static_rnn(step, [seq], [np.zeros(3)])
        return hs.sum() + (ys * 2.0).sum() + (last * last).sum()

    seq = np.sin(np.arange(length * 3.0)).reshape(length, 3)
    check(build, w=W, v=V, seq=seq)


def test_static_rnn_with_a_start_that_wants_a_gradient_and_an_unused_output():
    def build(x, w):
        (hs, unused), (last,) = static.static_rnn(
            lambda xt, h: ([h * w, mg.exp(h)], [h + xt * w]), [np.ones((4, 3))], [x]
        )
        return hs.sum()

    check(build)


def test_static_rnn_in_while():
    def build(x, w):
        def body(i, s):
            _, (h,) = static.static_rnn(lambda xt, h: ([], [h * w + xt]), [np.ones((3, 3))], [s])
            return [mg.tanh(h)]

        return counted(2, body, x)[0].sum()

    check(build)


@pytest.mark.parametrize("value", [-2.0, 0.5, 3.0])
def test_switch_takes_the_first_case_that_holds(value):
    def build(x, w):
        s = x.sum()
        return static.switch(
            [(s > 1.0, lambda: (x * w).sum()), (s > 0.0, lambda: (w * w).sum())],
            default=lambda: mg.exp(x).sum(),
        )

    check(build, x=np.full(3, value / 3), w=W)


@pytest.mark.parametrize("signs", [(1, -1, 1), (1, 1, 1), (-1, -1, -1)])
def test_if_else_decides_row_by_row(signs):
    def build(x, w):
        return static.if_else(x > 0, lambda a, b: a * b, lambda a, b: mg.exp(a) - b, x, w).sum()

    check(build, x=np.array(signs) * 0.5, w=W)


def test_if_else_returns_as_many_values_as_its_branches():
    def build(x, w):
        a, b = static.if_else(x > 0, lambda r: (r, r * 2.0), lambda r: (r * r, -r), x)
        return (a * b * w).sum()

    check(build)


def test_values_inside_a_loop_are_fetched_step_by_step():
    program = static.Program()
    with static.program_guard(program):
        x = static.parameter("x", 1.0)
        inner = []

        def body(i, s):
            t = s * 2.0
            inner.append(t)
            return [t + 1.0]

        (s,) = counted(3, body, x)
        static.append_backward(s)
    name = inner[0].name
    values, grads = static.Executor().run(program, fetch_list=[name, f"{name}@GRAD"])
    assert [float(v) for v in values] == [2.0, 6.0, 14.0]
    assert sorted(float(g) for g in grads) == [1.0, 2.0, 4.0]


def test_a_loop_without_end_stops_at_the_step_limit():
    program = static.Program()
    with static.program_guard(program):
        (s,) = static.while_loop(lambda s: s < 1.0, lambda s: [s * 1.0], [0.0])
    with pytest.raises(ProgramError, match=r"did not end within 50 steps \(step_limit\)"):
        static.Executor().run(program, fetch_list=[s], step_limit=50)


def test_the_gradient_inside_a_loop_body_is_a_value_like_any_other():
    """Gradient descent as a loop: the body asks for gradients; the result is differentiated once more."""

    def build(x, w):
        def body(i, s):
            loss = (s * s * w).sum()
            (g,) = static.gradients(loss, [s])
            return [s - 0.1 * g]

        return counted(3, body, x)[0].sum()

    check(build)


def test_second_derivatives_through_control_flow_are_refused_with_a_repair():
    program = static.Program()
    with static.program_guard(program):
        x = static.parameter("x", X)
        loss = counted(2, lambda i, s: [s * x], x)[0].sum()
        (g,) = static.gradients(loss, [x])
        total = g.sum()
        before = str(program), len(program.blocks)
        with pytest.raises(
            ProgramError, match="second derivatives through while are not available"
        ):
            static.gradients(total, [x])
    assert (str(program), len(program.blocks)) == before


# -- limits, empty loops, what branches return -------------------------------------------


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
    (alone,) = static.while_loop(lambda n: n < 2, lambda n: n + 1, 0)
    assert run(prog, [alone]) == [2]
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


def test_a_step_of_a_sequence_without_gradient_is_read_from_text_as_it_was():
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [3]), static.parameter("w", 2.0)
        (sums,), _ = static.static_rnn(lambda x, s: ([s * w + x], [s + x]), [x], [0.0])
    (step,) = prog.global_block().ops[-1].attrs["steps"]
    again = static.parse(str(prog))
    assert (
        again.blocks[1].var(step).stop_gradient is prog.blocks[1].var(step).stop_gradient is False
    )


@pytest.mark.parametrize("cases", [{"a": 1}, {"ab": 1}, [1]])
def test_cases_of_a_switch_that_are_no_pairs_are_refused(prog, cases):
    with pytest.raises(mg.MinigradError):
        static.switch(cases, default=lambda: 1.0)
