"""A gradient has the dtype of its variable, in programs as in eager mode, also where dtypes are mixed."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static

A = np.array([0.5, -1.5, 2.0], np.float32)


B = np.array([1.25, 0.75, -0.5])


def looped(a, b):
    _, total = static.while_loop(
        lambda k, s: k < 3.0, lambda k, s: (k + 1.0, s + mg.tanh(a * b * k)), [0.0 * b[0], 0.0 * b]
    )
    return total.sum()


FUNCTIONS = {
    "product": lambda a, b: (a * b).sum(),
    "sum": lambda a, b: (a + b).sum(),
    "chosen": lambda a, b: mg.where(a > 0, a, b).sum(),
    "joined": lambda a, b: (mg.concat([a, b]) ** 2).sum(),
    "several readers": lambda a, b: (mg.tanh(a) * b + a / b + a).sum(),
    "one reader, twice": lambda a, b: (a * a * b).sum(),
    "matrices": lambda a, b: mg.matmul(a, b),
    "loss": lambda a, b: mg.mse(a, b),
    "cast": lambda a, b: (a.astype("float64") * b).sum(),
    "stretched": lambda a, b: (a[0] * b).sum(),
}


def program(function):
    prog = static.Program()
    with static.program_guard(prog):
        a, b = static.parameter("a", A), static.parameter("b", B)
        pairs = static.append_backward(function(a, b))
    return prog, [g for _, g in pairs]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_and_tensors_agree(name):
    a, b = (mg.tensor(v, requires_grad=True) for v in (A, B))
    FUNCTIONS[name](a, b).backward()
    prog, found = program(FUNCTIONS[name])
    for how in (
        static.Executor().run(prog, fetch_list=found),
        static.compile(prog, fetch=found)(),
        static.compile(prog, fetch=found, exact=False)(),
    ):
        assert [g.dtype for g in how] == [np.float32, np.float64] == [g.dtype for g in found]
        np.testing.assert_allclose(how[0], a.grad.numpy(), rtol=2e-6)
        np.testing.assert_allclose(how[1], b.grad.numpy(), rtol=1e-12)


def test_loops_and_second_derivatives():
    prog, found = program(looped)
    assert [g.dtype for g in static.Executor().run(prog, fetch_list=found)] == [A.dtype, B.dtype]
    prog = static.Program()
    with static.program_guard(prog):
        a, b = static.parameter("a", A), static.parameter("b", B)
        first = static.gradients((a**3 * b).sum(), [a])
        second = static.gradients(first, [a, b])
    one, two, three = static.Executor().run(prog, fetch_list=[*first, *second])
    assert (one.dtype, two.dtype, three.dtype) == (A.dtype, A.dtype, B.dtype)
    np.testing.assert_allclose(two, 6 * A * B, rtol=1e-6)
    np.testing.assert_allclose(three, 3 * A**2, rtol=1e-6)


def test_a_program_of_one_dtype_has_no_casts():
    prog = static.Program()
    with static.program_guard(prog):
        a, b = static.parameter("a", A), static.parameter("b", A)
        static.append_backward((a * b).sum())
    assert "cast" not in str(prog)
