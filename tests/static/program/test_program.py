"""A program by itself: what is taken back if building fails, what it knows of itself, what is declared."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError


@pytest.fixture
def prog():
    program = static.Program()
    with static.program_guard(program):
        static.data("x", [2, 3])
        yield program


def var(program, name):
    return program.global_block().var(name)


def test_constants_of_an_operator_that_fails_are_taken_back_and_their_numbers_used_again(prog):
    x = var(prog, "x")
    for first in ("const_0", "const_1"):
        names = list(prog.global_block().vars)
        with pytest.raises(ProgramError):
            mg.concat([np.ones((2, 3)), x, np.ones((5, 5))])
        assert list(prog.global_block().vars) == names
        assert sorted(prog.initial) == [n for n in names if n.startswith("const")]
        op = mg.concat([x, np.ones((2, 3))])
        assert prog.global_block().ops[-1].input_names == ["x", first]
        assert op.shape == (4, 3)


def test_a_transaction_that_fails_leaves_values_that_were_written_before(prog):
    block, x = prog.global_block(), var(prog, "x")
    late, early = block.create_var("late", [2, 3]), mg.exp(x)
    before = prog.to_json(), set(block.written)
    with pytest.raises(KeyError), prog.transaction():
        block.append_op("assign", {"x": x}, {"out": late})
        block.append_op("assign", {"x": x}, {"out": early})
        mg.sin(x) * np.ones(3)
        prog.create_block()
        raise KeyError
    assert (prog.to_json(), block.written) == before
    assert len(prog.blocks) == 1
    assert mg.sin(x).name == "sin_0"
    mg.exp(early)
    with pytest.raises(ProgramError, match="exp reads 'late', but no operator has written it"):
        block.append_op("exp", {"x": late}, {"out": "h"})


def test_a_program_changes_its_version_with_every_change(prog):
    seen = [prog.version]
    x = var(prog, "x")
    for change in (
        lambda: mg.exp(x),
        lambda: prog.global_block().create_var("v", [1]),
        prog.create_block,
    ):
        change()
        assert prog.version not in seen
        seen.append(prog.version)


def test_parameters_are_those_that_train_and_blocks_are_found_by_number(prog):
    v, w = static.parameter("v", [1.0]), static.parameter("w", [2.0])
    (w * np.ones(1)).sum()
    assert prog.parameters() == [v, w]
    inner = prog.create_block()
    assert (prog.block(1), inner.parent_block, prog.global_block().parent_block) == (
        inner,
        prog.block(0),
        None,
    )
    inner.create_var("inside", [2])
    assert [v.name for v in prog.all_variables()][-1] == "inside"
    assert inner.visible_names()[:2] == ["inside", "x"]
    with prog.block_guard(inner):
        assert prog.current_block() is inner
        assert prog.create_block().parent == 1
    assert prog.current_block() is prog.global_block()


def test_shapes_of_several_values_that_are_open_are_read_when_the_program_runs():
    for parts in (1, 2):
        program = static.Program()
        with static.program_guard(program):
            w = static.parameter("w", [[1.0, 2.0]])
            x = static.data("x", [-1, 2])
            x.stop_gradient = False
            joined = mg.concat([x, w * 2.0][:parts])
            static.append_backward((joined * joined).sum(), parameter_list=["x"])
        spread = static.decompose(program)
        assert "split_like" in [op.type for op in spread.global_block().ops]
        for rows in (1, 3):
            feed = {"x": np.arange(2.0 * rows).reshape(rows, 2)}
            for at in (program, spread):
                assert np.array_equal(static.Executor().run(at, feed, ["x@GRAD"])[0], 2 * feed["x"])


def test_a_backward_part_that_fails_leaves_what_is_known_of_the_ones_before(prog):
    w, v = static.parameter("w", [1.0, 2.0]), static.parameter("v", [1.0, 2.0])
    loss = mg.where(mg.argmax(w) > 0, w * v, mg.ceil(w)).sum()

    def refuse(block, context):
        raise KeyError

    known = [(0, 0)]
    for _ in range(3):
        with pytest.raises(KeyError):
            static.append_backward(loss, callbacks=[refuse])
        assert (len(prog.pruned), len(prog.backward_calls)) == known[-1]
        static.append_backward(loss)
        known.append((len(prog.pruned), len(prog.backward_calls)))
    assert [calls for _, calls in known] == [0, 1, 2, 3]
    assert all(left_out > calls for left_out, calls in known[1:])


# -- declarations ------------------------------------------------------------------------


@pytest.fixture
def empty_program():
    program = static.Program()
    with static.program_guard(program):
        yield program


# -- declarations --------------------------------------------------------------------------


def test_whole_numbers_of_a_parameter_become_floats(empty_program):
    w = static.parameter("w", [1, 2])
    assert (w.dtype, empty_program.initial["w"].dtype, w.trainable) == (
        np.float64,
        np.float64,
        True,
    )
    assert not static.parameter("fixed", [1.0], trainable=False).trainable


def test_a_gradient_may_be_clipped_to_one_number(empty_program):
    w = static.parameter("w", [1.0, 2.0])
    h = w * 3.0
    static.error_clip(h, 0.5, 0.5)
    ((_, g),) = static.append_backward(h.sum())
    assert static.Executor().run(empty_program, fetch_list=[g])[0].tolist() == [1.5, 1.5]


def test_an_array_may_have_no_places(empty_program):
    assert static.create_array(0, (2,)).shape == (0, 2)
    assert static.create_array(2, (0,)).shape == (2, 0)


def test_parameters_that_are_met_have_their_names_or_new_ones():
    leaf = lambda name: mg.tensor([1.0, 2.0], requires_grad=True, name=name)
    named, twin, nameless = leaf("w"), leaf("w"), mg.tensor([1.0, 2.0], requires_grad=True)
    program = mg.trace(lambda x: (x * named * twin * nameless * named).sum(), np.ones(2))
    assert [p.name for p in program.parameters()] == ["w", "param_0", "param_1"]
