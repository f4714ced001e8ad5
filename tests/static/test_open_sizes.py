"""Sizes that are known only when the program runs: broadcasting, joining, and their derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import MinigradError


def eager(function, *arrays):
    values = [mg.tensor(a, requires_grad=True) for a in arrays]
    out = function(*values)
    grads = mg.grad(out, values)
    return [v.detach().numpy() for v in (out, *grads)]


def programmed(function, shapes):
    program = static.Program()
    with static.program_guard(program):
        values = [static.data(f"v{k}", shape) for k, shape in enumerate(shapes)]
        for v in values:
            v.stop_gradient = False
        out = function(*values)
        return static.verify(program), [out, *static.gradients(out, values)]


def feeds(arrays):
    return {f"v{k}": a for k, a in enumerate(arrays)}


def mixed(x, y, z):
    both = x + y
    return (both * both * z).sum() + (x * z).sum()


@pytest.mark.parametrize("sizes", list(itertools.product((1, 2), (1, 2))))
def test_an_open_size_beside_a_known_one_may_be_that_or_one_when_the_program_runs(sizes):
    program, fetch = programmed(mixed, [[-1, 3], [2, 3], [-1, 3]])
    n, m = sizes
    rng = np.random.default_rng(n + 2 * m)
    arrays = [rng.random((n, 3)), rng.random((2, 3)), rng.random((m, 3))]
    expected = eager(mixed, *arrays)
    for found in (
        static.Executor().run(program, feeds(arrays), fetch),
        static.compile(program, fetch=fetch)(**feeds(arrays)),
    ):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_the_result_has_the_known_size_and_stays_open_where_nobody_knows_it():
    with static.program_guard(static.Program()):
        x, y, z = (static.data(n, s) for n, s in (("x", [-1, 2]), ("y", [4, 2]), ("z", [1, 2])))
        assert [(x + y).shape, (x * z).shape, (x * x).shape] == [(4, 2), (-1, 2), (-1, 2)]
        assert (x.sum(axis=0) + y).shape == (4, 2)


def test_another_size_is_found_when_the_program_runs():
    program, fetch = programmed(lambda x, y: (x + y).sum(), [[-1, 2], [4, 2]])
    with pytest.raises(MinigradError, match="could not be broadcast"):
        static.Executor().run(program, feeds([np.ones((3, 2)), np.ones((4, 2))]), fetch)


def test_values_of_open_length_are_joined_twice_differentiably():
    def joined(x, y):
        both = mg.concat([x, y, x])
        return (both * both * both).sum()

    program, (_, gx, _) = programmed(joined, [[-1, 2], [-1, 2]])
    with static.program_guard(program):
        (second,) = static.gradients((gx * gx).sum(), [program.global_block().var("v0")])
    x, y = np.random.default_rng(0).random((2, 2)), np.ones((3, 2))
    (found,) = static.Executor().run(program, {"v0": x, "v1": y}, [second])
    np.testing.assert_allclose(found, 2 * (6 * x**2) * 12 * x, rtol=1e-13)
