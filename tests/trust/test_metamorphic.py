"""Relations that hold for every function: nobody has to know the right gradient to check them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from tests.trust import readings
from tests.trust.fuzz import check, near, same_bits
from tests.trust.random_functions import draw

SEEDS = pytest.mark.parametrize("seed", range(1000, 1040))


def pulled(out, leaves, seed):
    return [
        g.numpy() for g in mg.grad(out, leaves, seed, retain_graph=True, materialize_grads=True)
    ]


@pytest.mark.parametrize("first", range(0, 500, 125))
def test_five_hundred_random_functions_agree_in_all_readings(first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 125):
            check(draw(seed, 20), seed)


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
