"""What no test of second derivatives, declarations and updates in programs looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim, static
from minigrad.errors import ProgramError


@pytest.fixture
def prog():
    program = static.Program()
    with static.program_guard(program):
        yield program


# -- second derivatives --------------------------------------------------------------------


def test_a_value_that_is_overwritten_before_a_grad_op_reads_it_again_is_refused(prog):
    w = static.parameter("w", [1.0, 2.0])
    e = w * 1.0
    (g,) = static.gradients((e * e * e).sum(), [w])
    prog.global_block().append_op("assign", {"x": w}, {"out": e})
    with pytest.raises(
        ProgramError, match="needs the value that 'mul_0' had at .* assign overwrites it"
    ):
        static.gradients((g * g).sum(), [w])


def test_a_value_that_only_the_rule_itself_reads_again_must_be_there_too(prog):
    x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
    x.stop_gradient = False
    e = x * 1.0
    (g,) = static.gradients((mg.sin(e) * w).sum(), [e])
    again = (g * g).sum()
    (fine,) = static.gradients(again, [w])
    at = np.array([0.3, 0.4])
    (found,) = static.Executor().run(prog, {"x": at}, [fine])
    np.testing.assert_allclose(found, 2 * np.cos(at) ** 2 * [1.0, 2.0])
    prog.global_block().append_op("assign", {"x": x}, {"out": e})
    with pytest.raises(
        ProgramError, match="cos needs the value that 'mul_0' had at .* assign overwrites it"
    ):
        static.gradients(again, [w])


def test_every_step_of_a_rule_is_differentiated(prog):
    x = static.data("x", [3])
    x.stop_gradient = False
    (g,) = static.gradients(mg.softmax(x * x)[:1], [x])
    (h,) = static.gradients((g * g).sum(), [x])
    at = np.array([0.3, -0.7, 1.1])
    leaf = mg.tensor(at, requires_grad=True)
    (first,) = mg.grad(mg.softmax(leaf * leaf)[:1].sum(), leaf, create_graph=True)
    (second,) = mg.grad((first * first).sum(), leaf)
    found = static.Executor().run(prog, {"x": at}, [g, h])
    np.testing.assert_allclose(found[0], first.detach().numpy())
    np.testing.assert_allclose(found[1], second.numpy())


# -- declarations --------------------------------------------------------------------------


def test_whole_numbers_of_a_parameter_become_floats(prog):
    w = static.parameter("w", [1, 2])
    assert (w.dtype, prog.initial["w"].dtype, w.trainable) == (np.float64, np.float64, True)
    assert not static.parameter("fixed", [1.0], trainable=False).trainable


def test_a_gradient_may_be_clipped_to_one_number(prog):
    w = static.parameter("w", [1.0, 2.0])
    h = w * 3.0
    static.error_clip(h, 0.5, 0.5)
    ((_, g),) = static.append_backward(h.sum())
    assert static.Executor().run(prog, fetch_list=[g])[0].tolist() == [1.5, 1.5]


def test_an_array_may_have_no_places(prog):
    assert static.create_array(0, (2,)).shape == (0, 2)
    assert static.create_array(2, (0,)).shape == (2, 0)


def test_parameters_that_are_met_have_their_names_or_new_ones():
    leaf = lambda name: mg.tensor([1.0, 2.0], requires_grad=True, name=name)
    named, twin, nameless = leaf("w"), leaf("w"), mg.tensor([1.0, 2.0], requires_grad=True)
    program = mg.trace(lambda x: (x * named * twin * nameless * named).sum(), np.ones(2))
    assert [p.name for p in program.parameters()] == ["w", "param_0", "param_1"]


# -- updates -------------------------------------------------------------------------------


def test_only_a_loss_is_minimized(prog):
    with pytest.raises(ProgramError, match="append_backward starts from a Variable, not from 3"):
        optim.SGD(lr=0.1).minimize(3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_schedule_that_is_a_number_is_one(prog, dtype):
    w = static.parameter("w", np.ones(2, dtype))
    optim.SGD(lr=lambda count: 0.25).minimize((w * w).sum())
    executor = static.Executor()
    for _ in range(2):
        executor.run(prog)
    assert executor.scope["w"].tolist() == [0.25, 0.25]
    assert prog.global_block().var("learning_rate").dtype == dtype


@pytest.mark.parametrize(("dtype", "casts"), [("float64", 0), ("float32", 1)])
def test_a_rate_is_cast_only_where_parameters_have_another_dtype(prog, dtype, casts):
    w = static.parameter("w", np.ones(2, dtype))
    optim.SGD(lr=lambda count: 0.5 / (count + 1.0)).minimize((w * w).sum())
    kinds = [op.type for op in prog.global_block().ops if op.role == "optimize"]
    assert kinds.count("cast") == casts
    executor = static.Executor()
    for _ in range(2):
        executor.run(prog)
    assert executor.scope["w"].dtype == dtype
    assert executor.scope["w"].tolist() == [0.0, 0.0]
