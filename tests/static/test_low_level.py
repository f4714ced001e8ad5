"""Programs built slot by slot: whatever `append_op` accepts is a program that verifies."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad import static
from minigrad.errors import ProgramError


@pytest.fixture
def block():
    program = static.Program()
    with static.program_guard(program):
        static.data("x", [2, 3])
        static.data("i", [2], "int64")
        yield program.global_block()


def test_an_operator_without_names_for_its_outputs_gets_some(block):
    op = block.append_op("mul", {"x": "x", "y": ["x"]})
    assert op.output_names == ["mul_0"]
    static.verify(block.program)


def test_a_grad_op_built_by_hand_declares_the_gradients_it_makes(block):
    g = static.data("g", [2, 3])
    block.append_op("mul_grad", {"x": "x", "y": "x", "out_grad": g}, {"x_grad": "a", "y_grad": "b"})
    assert (block.var("a").shape, block.var("b").dtype.name) == ((2, 3), "float64")
    static.verify(block.program)
    x = np.arange(6.0).reshape(2, 3)
    (a,) = static.Executor().run(block.program, {"x": x, "g": x + 1}, "a")
    np.testing.assert_array_equal(a, x * (x + 1))


REFUSED = {
    "two names for a slot of one value": (
        ("mul", {"x": ["x", "x"], "y": "x"}, {"out": "c"}),
        "the slot 'x' of mul is one value, 2 names were given for it",
    ),
    "no name for a slot of one value": (
        ("mul", {"x": [], "y": "x"}, {"out": "c"}),
        "the slot 'x' of mul is one value, 0 names",
    ),
    "a list of slots": (("mul", ["x", "x"], {"out": "c"}), "the inputs of mul are a dict"),
    "a number as a name": (("exp", {"x": 3}, {"out": "c"}), "slot 'x' is a list of Variables"),
    "a number among names": (
        ("exp", {"x": [3]}, {"out": "c"}),
        "slot 'x' holds Variables or names",
    ),
    "no type": ((None, {"x": "x"}, {"out": "c"}), "there is no operator type None"),
    "one name for two outputs": (
        ("split", {"x": "x"}, {"out": ["c", "c", "c"]}, {"num_or_sections": 3, "axis": 1}),
        "split writes one name twice: ['c', 'c', 'c']",
    ),
    "an unknown role": (
        ("exp", {"x": "x"}, {"out": "c"}, {}, "backwards"),
        "'backwards' is no role; did you mean 'backward'?",
    ),
    "a loop": (
        ("while", {"x": "x"}, {"out": "c"}),
        "while holds blocks, which append_op cannot build",
    ),
    "the gradient of a loop": (("while_grad", {"x": "x"}, {}), "repair: static.append_backward"),
    "a shape that does not fit": (
        ("reshape", {"x": "x"}, {"out": "c"}, {"shape": (5,)}),
        "reshape(x: float64[2, 3], shape=(5,)) is not possible",
    ),
    "a grad op without what its rule reads": (
        ("mul_grad", {"y": "x"}, {"x_grad": "c"}),
        "mul_grad needs the slot 'out_grad' for x_grad",
    ),
    "a grad op that makes nothing": (("mul_grad", {"y": "x"}, {}), "needs a name for its result"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_operator_is_refused_and_leaves_the_block_alone(block, case):
    arguments, message = REFUSED[case]
    with pytest.raises(ProgramError) as caught:
        block.append_op(*arguments)
    assert message in str(caught.value)
    assert "at test_low_level.py:" in str(caught.value)
    assert (len(block.ops), list(block.vars)) == (0, ["x", "i"])
