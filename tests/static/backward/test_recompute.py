"""Recomputation by checkpoints: the same gradients to the last bit, from fewer kept values."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError


def deep(checkpoints, layers=6):
    """A chain of tanh(matmul) with a skip connection and dropout; ``checkpoints`` by layer number, or None."""
    program = static.Program()
    with static.program_guard(program):
        h = static.data("x", [4, 3])
        w = static.parameter("w", np.linspace(-0.5, 0.6, 9).reshape(3, 3))
        states = []
        for k in range(layers):
            h = mg.dropout(mg.tanh(mg.matmul(h, w)), 0.2, seed=k) + (states[1] if k == 4 else 0.1)
            states.append(h)
        loss = (h * h).mean()
        kept = None if checkpoints is None else [states[k] for k in checkpoints]
        ((_, g),) = static.append_backward(loss, checkpoints=kept)
    static.verify(program)
    text = str(program)
    assert str(static.parse(text)) == text
    return program, g, states


@pytest.mark.parametrize("checkpoints", [[], [2], [1, 3], [0, 1, 2, 3, 4, 5]])
def test_gradients_with_checkpoints_are_equal_to_the_last_bit(checkpoints):
    feed = {"x": np.cos(np.arange(12.0)).reshape(4, 3)}
    plain, g, _ = deep(None)
    again, h, _ = deep(checkpoints)
    (a,), (b,) = static.Executor().run(plain, feed, [g]), static.Executor().run(again, feed, [h])
    np.testing.assert_array_equal(a, b)


def test_the_backward_part_reads_checkpoints_and_recomputed_values_only():
    program, _, states = deep([1, 3])
    ops = program.global_block().ops
    first = next(k for k, op in enumerate(ops) if op.role == "loss")
    made = [n for op in ops[:first] for n in op.output_names]
    last_segment = made[made.index(states[3].name) + 1 :]
    read = {n for op in ops[first:] for n in op.input_names if n in made}
    assert read <= {states[1].name, states[3].name, *last_segment}
    copies = [op for op in ops if op.output_names[0].endswith("@RECOMPUTE")]
    assert len(copies) == 12
    assert all(op.role == "backward" for op in copies)


def test_the_copies_of_a_segment_stand_right_before_its_grad_ops():
    program, _, _ = deep([2], layers=4)
    kinds = [op.output_names[0].endswith("@RECOMPUTE") for op in program.global_block().ops]
    first, last = kinds.index(True), len(kinds) - 1 - kinds[::-1].index(True)
    assert all(kinds[first : last + 1])


def test_loops_are_not_run_a_second_time():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [0.5, 0.7])
        h = mg.tanh(w)
        _, h = static.while_loop(lambda i, s: i < 3, lambda i, s: [i + 1, s * w], [0, h])
        mark = mg.sin(h)
        loss = mg.exp(mark).sum()
        ((_, g),) = static.append_backward(loss, checkpoints=[mark])
    assert [op.type for op in program.global_block().ops].count("while") == 1
    (got,) = static.Executor().run(program, fetch_list=[g])
    leaf = mg.tensor([0.5, 0.7], requires_grad=True)
    s = mg.tanh(leaf)
    for _ in range(3):
        s = s * leaf
    mg.exp(mg.sin(s)).sum().backward()
    np.testing.assert_allclose(got, leaf.grad.numpy())


def test_a_value_that_was_overwritten_before_it_is_computed_again_is_an_error():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [0.5])
        a = w * 1.0
        h = mg.tanh(mg.sin(a + 1.0))
        program.global_block().append_op("assign", {"x": [h]}, {"out": [a]})
        mark = mg.cos(h) + a
        with pytest.raises(
            ProgramError, match=r"add needs the value that 'mul_0' had .* overwrites it"
        ):
            static.append_backward(mg.exp(mark).sum(), checkpoints=[mark])


@pytest.mark.parametrize("single", [lambda h: h, lambda h: h.name])
def test_a_single_checkpoint_counts_as_a_list_of_one(single):
    def built(checkpoints):
        program = static.Program()
        with static.program_guard(program):
            w = static.parameter("w", [0.5, 1.0])
            h = mg.tanh(mg.tanh(w))
            static.append_backward(mg.tanh(h).sum(), checkpoints=checkpoints(h))
        return str(program)

    assert built(single) == built(lambda h: [h])
