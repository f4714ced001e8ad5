"""Relations that hold for every function: nobody has to know the right gradient to check them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from tests.trust import readings
from tests.trust.fuzz import near, same_bits
from tests.trust.random_functions import Programs, Taken, Unrolled, draw, run
from tests.trust.rewriting import permuted, renamed

SEEDS = pytest.mark.parametrize("seed", range(1000, 1040))


def pulled(out, leaves, seed):
    return [
        g.numpy() for g in mg.grad(out, leaves, seed, retain_graph=True, materialize_grads=True)
    ]


@SEEDS
def test_the_vjp_is_linear_in_its_seed(seed):
    function = draw(seed)
    leaves = [mg.tensor(a, requires_grad=True) for a in function.args]
    out = function(*leaves)
    if not out.requires_grad:
        return
    a, b = pulled(out, leaves, 2.5), pulled(out, leaves, -1.0)
    for x, y, both in zip(a, b, pulled(out, leaves, 2.5 - 1.0), strict=True):
        near("vjp", x + y, both, 1e-10)


@SEEDS
def test_the_gradient_of_a_sum_is_the_sum_of_the_gradients(seed):
    function = draw(seed)
    _, once = readings.eager(function, function.args)
    _, twice = readings.eager(lambda *xs: function(*xs) + function(*xs) * 2.0, function.args)
    for a, b in zip(once, twice, strict=True):
        near("sum", b, 3 * a, 1e-10)


@SEEDS
def test_dead_code_changes_nothing(seed):
    function = draw(seed)

    def with_dead(*xs):
        mg.sum(mg.exp(xs[0]) * 2.0)
        return function(*xs)

    value, grads = readings.interpreted(function, function.args)
    dead_value, dead_grads = readings.interpreted(with_dead, function.args)
    same_bits([dead_value, *dead_grads], [value, *grads])


@SEEDS
def test_float32_is_near_float64(seed):
    function = draw(seed)
    value, grads = readings.eager(function, function.args)
    small = readings.eager(function, [a.astype(np.float32) for a in function.args])
    near("value", small[0], value, 1e-2)
    for a, b in zip(small[1], grads, strict=True):
        assert a.dtype == np.float32
        near("gradient", a, b, 2e-2)


@SEEDS
def test_inferred_shapes_and_dtypes_are_those_of_the_values(seed):
    function = draw(seed)
    prog, _ = readings.with_gradients(function, function.args)
    names = [n for n, v in prog.global_block().vars.items() if "SCOPES" not in n]
    feed = dict(zip(prog.inputs, function.args, strict=True))
    written = {n for op in prog.global_block().ops for n in op.output_names}
    names = [n for n in names if n in written]
    for name, value in zip(
        names, static.Executor().run(prog, feed=feed, fetch_list=names), strict=True
    ):
        var = prog.global_block().vars[name]
        assert var.dtype == value.dtype, name
        assert len(var.shape) == value.ndim, name
        assert all(m in (-1, n) for m, n in zip(var.shape, value.shape, strict=True)), name


@SEEDS
def test_a_program_goes_through_json_byte_for_byte(seed):
    function = draw(seed)
    prog, _ = readings.with_gradients(function, function.args)
    text = prog.to_json()
    assert static.Program.from_json(text).to_json() == text


@SEEDS
def test_other_names_change_no_bit(seed):
    """Renamed before the backward part is made, and after."""
    function = draw(seed)
    expected = interpreted(function)
    forward = mg.trace(function, *function.args)
    found = readings.run_program(*readings.gradients_of(renamed(forward)[0]), function.args)
    same_bits([found[0], *found[1]], expected)
    prog, names = readings.with_gradients(function, function.args)
    other, new = renamed(prog)
    names = [new[n] if n else "" for n in names]
    found = readings.run_program(other, names, function.args)
    same_bits([found[0], *found[1]], expected)
    assert not {v.name for v in prog.all_variables()} & {v.name for v in other.all_variables()}


@SEEDS
def test_independent_operators_may_change_places(seed):
    """Their order changes no bit; nor a gradient, where it is made behind them, but its last bits."""
    function, rng = draw(seed), np.random.default_rng(seed)
    expected = interpreted(function)
    prog, names = readings.with_gradients(function, function.args)
    found = readings.run_program(permuted(prog, rng), names, function.args)
    same_bits([found[0], *found[1]], expected)
    forward = permuted(mg.trace(function, *function.args), rng)
    found = readings.run_program(*readings.gradients_of(forward), function.args)
    for k, (a, b) in enumerate(zip([found[0], *found[1]], expected, strict=True)):
        near(f"result {k}", a, b, 1e-10)


@pytest.mark.parametrize("n", range(7))
def test_a_random_loop_of_n_steps_is_the_loop_written_out(n):
    seeds = [s for s in range(2000, 2060) if loops(draw(s).plan)][:8]
    assert len(seeds) == 8
    for seed in seeds:
        function = draw(seed)
        plan = with_steps(function.plan, n)
        loop, flat = (
            readings.interpreted(lambda *xs, p=plan, w=w: run(p, list(xs), w)[0], function.args)
            for w in (Programs, Unrolled)
        )
        for a, b in zip([loop[0], *loop[1]], [flat[0], *flat[1]], strict=True):
            near(f"seed {seed}", a, b, 1e-10)


@SEEDS
def test_a_random_choice_is_the_branch_that_is_taken(seed):
    """A program of the branches alone: eager bit for bit, and the program with choices."""
    function, world = draw(seed), Taken()
    eager = readings.eager(lambda *xs: run(function.plan, list(xs), world)[0], function.args)
    taken = readings.interpreted(lambda *xs: run(function.plan, list(xs), world)[0], function.args)
    assert world.followed == len(world.noted)
    same_bits([taken[0], *taken[1]], [eager[0], *eager[1]])
    for k, (a, b) in enumerate(zip([taken[0], *taken[1]], interpreted(function), strict=True)):
        near(f"result {k}", a, b, 1e-10)


def interpreted(function):
    value, grads = readings.interpreted(function, function.args)
    return [value, *grads]


def loops(plan):
    return any(s.op == "while" for s in plan.steps)


def with_steps(plan, n):
    """The plan with ``n`` steps in each of its loops that stand in no other."""
    steps = [replace(s, attr=n) if s.op == "while" else s for s in plan.steps]
    return replace(plan, steps=tuple(steps))


@pytest.mark.parametrize("n", range(7))
def test_a_loop_of_n_steps_is_the_loop_written_out(n):
    from tests.trust.corpus import repeated, repeated_program

    args = (np.array(0.7),)
    loop = readings.interpreted(lambda x: repeated_program(x, n), args)
    flat = readings.interpreted(lambda x: repeated(x, n), args)
    near("value", loop[0], flat[0], 1e-14)
    near("gradient", loop[1][0], flat[1][0], 1e-12)


@pytest.mark.parametrize("x", [0.2, 0.9])
def test_a_choice_is_the_branch_that_is_taken(x):
    from tests.trust.corpus import by_value, by_value_program

    args = (np.array(x),)
    same_bits(
        [readings.interpreted(by_value_program, args)[1][0]], [readings.eager(by_value, args)[1][0]]
    )
