"""What no test of passes looked at until a mutant survived: what stays, and what it is then."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.static.passes import dead_code, decompose, fold, merge_duplicates, specialise


def same(before, after, feed, fetch):
    """Both programs give the same bits."""
    a, b = (static.Executor().run(p, feed, fetch) for p in (before, after))
    for x, y in zip(a, b, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, y)


def test_shapes_of_several_values_that_became_known_are_all_kept():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [-1, 2]), static.parameter("w", [[1.0, 2.0]])
        static.append_backward((mg.concat([w * 2.0, x]) ** 2.0).sum())
    known = fold(specialise(decompose(program), {"x": (3, 2)}), ["w@GRAD"])
    (split,) = [op for op in known.global_block().ops if op.type == "split_like"]
    assert split.attrs["shapes"] == [(1, 2), (3, 2)]
    assert list(split.inputs) == ["x"]
    same(program, known, {"x": np.ones((3, 2))}, ["w@GRAD"])


@pytest.mark.parametrize("change", [fold, merge_duplicates])
def test_the_outputs_of_a_traced_function_stay(change):
    program = mg.trace(lambda x: [x * 1.0, mg.exp(x), mg.exp(x)], np.ones(2))
    made = change(program)
    assert made.outputs == program.outputs == ["mul_0", "exp_0", "exp_1"]
    assert static.Program.from_json(made.to_json()).to_json() == made.to_json()
    same(program, made, {"x0": np.array([1.0, 2.0])}, program.outputs)


def test_outputs_and_limits_of_what_is_gone_are_forgotten():
    program = mg.trace(lambda x: [x * 1.0, mg.exp(x * 3.0)], np.ones(2))
    block = program.global_block()
    for name in ("mul_0", "mul_1"):
        static.error_clip(block.var(name), -1.0, 1.0)
    made = dead_code(program, ["mul_1"])
    assert (made.outputs, list(made.error_clips)) == ([], ["mul_1"])
    assert static.Program.from_json(made.to_json()).to_json() == made.to_json()
    program.outputs = []
    made = fold(program, ["exp_0"])
    assert list(made.error_clips) == ["mul_1"]
    assert static.Program.from_json(made.to_json()).to_json() == made.to_json()
