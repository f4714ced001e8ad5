"""What a traced function closes over: parameters, constants, and what it computes of them."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import MinigradError, ProgramError

X = np.arange(6.0).reshape(2, 3) / 10


def leaf(value, name=None):
    return mg.tensor(value, requires_grad=True, name=name)


def kinds(program):
    return [op.type for op in program.global_block().ops]


def gradients_of(program):
    """Names and values of the gradients of all parameters."""
    block = program.global_block()
    with static.program_guard(program):
        pairs = static.append_backward(block.var(program.outputs[0]))
    found = static.Executor().run(program, feed={"x0": X}, fetch_list=[g for _, g in pairs])
    return {p.name: g for (p, _), g in zip(pairs, found, strict=True)}


def same_as_eager(f, *leaves):
    program = mg.trace(f, X)
    assert [p.name for p in program.parameters()] == [t.name for t in leaves]
    found = gradients_of(program)
    expected = mg.grad(f(mg.tensor(X)), list(leaves))
    for t, g in zip(leaves, expected, strict=True):
        np.testing.assert_array_equal(found[t.name], g.numpy())
    return program


def test_what_a_function_derives_from_a_parameter_becomes_operators():
    w = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "w")
    program = same_as_eager(lambda x: (x @ w.T).sum(), w)
    assert kinds(program)[:3] == ["permute_dims", "matmul", "reduce_sum"]


def test_a_derivation_of_several_steps_is_written_once_and_in_order():
    w, b = leaf([1.0, 2.0, 3.0], "w"), leaf(0.5, "b")

    def f(x):
        scaled = mg.exp(w * b)
        column = scaled.reshape(3, 1)
        return (x @ column + column.sum() * x).sum()

    program = same_as_eager(f, w, b)
    assert kinds(program)[:3] == ["mul", "exp", "reshape"]
    assert kinds(program).count("exp") == 1


def test_a_derivation_with_several_outputs():
    w = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "w")

    def f(x):
        left, right = mg.split(w, axis=1)
        return (x @ left * (x @ mg.concat([right, left], axis=1))).sum()

    assert "split" in kinds(same_as_eager(f, w))


def test_what_nothing_of_the_program_reads_is_not_in_it():
    w = leaf([1.0, 2.0, 3.0], "w")

    def f(x):
        mg.exp(w)
        return (x * w).sum()

    assert kinds(mg.trace(f, X)) == ["mul", "reduce_sum"]


def test_a_long_derivation_needs_no_recursion():
    w = leaf([1.0, 2.0, 3.0], "w")

    def f(x):
        v = w
        for _ in range(3000):
            v = v * 1.0
        return (x * v).sum()

    assert len(kinds(mg.trace(f, X))) == 3002


def test_what_was_computed_before_is_refused_and_detached_it_is_a_constant():
    w = leaf([1.0, 2.0, 3.0], "w")
    before = w * 2
    with pytest.raises(ProgramError, match=r"MulBackward0[\s\S]*compute it inside the function"):
        mg.trace(lambda x: (x * before).sum(), X)
    program = mg.trace(lambda x: (x * before.detach()).sum(), X)
    assert not list(program.parameters())


def test_a_derived_value_that_was_changed_in_place_is_refused():
    w = leaf([1.0, 2.0, 3.0], "w")

    def f(x):
        v = w * 1
        v.add_(1.0)
        return (x * v).sum()

    with pytest.raises(ProgramError, match="changed in place"):
        mg.trace(f, X)


def test_under_no_grad_a_derived_value_is_a_constant():
    w = leaf([1.0, 2.0, 3.0], "w")

    def f(x):
        with mg.no_grad():
            v = w * 2
        return (x * v).sum()

    program = mg.trace(f, X)
    assert not list(program.parameters())
    assert kinds(program) == ["mul", "reduce_sum"]


def test_after_a_trace_ops_are_not_recorded_any_more():
    w = leaf([1.0, 2.0, 3.0], "w")
    program = mg.trace(lambda x: (x * w).sum(), X)
    assert (w * 2).grad_fn is not None
    assert program.derive is None


def test_an_op_that_does_not_fit_says_so_and_leaves_nothing_of_what_was_lifted_for_it():
    w, constant = leaf(np.ones((5, 5)), "w"), np.ones((5, 5))
    with pytest.raises(
        ProgramError, match=r"matmul\(x: float64\[2, 3\], y: float64\[5, 5\]\) is not possible"
    ):
        mg.trace(lambda x: mg.matmul(x, w), X)

    def f(x):
        doubled = w * 2.0
        for bad in (w, doubled, constant):
            with pytest.raises(MinigradError, match="is not possible"):
                mg.matmul(x, bad)
        return (x * x).sum() + doubled.sum()

    program = static.verify(same_as_eager(f, w))
    assert kinds(program)[:4] == ["mul", "reduce_sum", "mul", "reduce_sum"]
    assert list(program.initial) == ["w"]
