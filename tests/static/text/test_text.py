"""The text of a program: what is read, what is refused and why, and what is kept on the way there and back."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError, ProgramFormatError
from tests.static.program.test_verify import STORED, whole

HEAD = "block 0:\n  data x: float64[2]\n  "


#: what stands behind the head, and what is said of it
REFUSED = {
    "a root in a block": ("block 0 in 0:", "line 1: block 0 lies in block 0, grad of -1: both must come before it"),
    "a root that is a grad block": ("block 0 grad of 0:", "line 1: block 0 lies in block -1, grad of 0: both must come"),
    "a second root": (HEAD + "block 1:", "block 1 lies in block -1, grad of -1: both must come before it"),
    "a block in itself": (HEAD + "block 1 in 1:", "line 3: block 1 lies in block 1, grad of -1: both must come before it"),
    "the grad block of itself": (HEAD + "block 1 in 0 grad of 1:", "line 3: block 1 lies in block 0, grad of 1: both must come"),
    "a block twice": (HEAD + "block 0:", "line 3: block 0 stands where block 1 is expected"),
    "a parameter in a branch": (HEAD + "block 1 in 0:\n param p: float64[2]", "'p' is data or outlives a run, so it must be declared in block 0"),
    "a constant in a branch": (HEAD + "block 1 in 0:\n const c: float64[1] = [1.0]", "'c' is data or outlives a run, so it must be declared in block 0"),
    "an open parameter": (HEAD + "param p: float64[-1]", "line 3: [-1] is no shape"),
    "a size of -2": (HEAD + "data y: float64[-2]", "line 3: [-2] is no shape"),
    "a value of a parameter": (HEAD + "param p: float64[1] = [1.0]", "line 3: only a constant has a value here"),
    "a constant of another shape": (HEAD + "const c: float64[2, 1] = [1.0, 2.0]", "line 3: [1.0, 2.0] is no float64[2, 1]"),
    "no closing bracket": (HEAD + "y = sin(x", "line 3: an operator reads: targets = type(arguments)"),
    "no brackets": (HEAD + "sin)", "line 3: an operator reads: targets = type(arguments)"),
    "no argument": (HEAD + "y = sin(x=)", "line 3: 'x=' cannot be the name of a variable"),
    "an argument without a slot": (HEAD + "y = sin(=x)", "line 3: '=x' cannot be the name of a variable"),
    "an output more": (HEAD + "y, z = sin(x)", "line 3: there are only 1 slots: out"),
    "two names for one value": (HEAD + "[y, z] = sin(x)", "line 3: the slot 'out' of sin is one value, 2 names were given for it"),
    "no name for one value": (HEAD + "[] = sin(x)", "line 3: the slot 'out' of sin is one value, 0 names were given for it"),
    "an output twice": (HEAD + "out=y, out=z = sin(x)", "line 3: 'out' is given twice"),
    "an attr twice": (HEAD + "y = reduce_sum(x, axis=0, axis=0)", "line 3: 'axis' is given twice"),
    "a number for a block": (HEAD + "c, s = cond(x, [], sub_block=1)", "line 3: sub_block is a block"),
    "an odd name in a list": (HEAD + "y = concat([x, 3])", "line 3: '3' cannot be the name of a variable"),
    "an attr without a value": (HEAD + "y = reduce_sum(x, axis=q)", "line 3: axis=q gives neither an input slot a name nor an attr a value"),
    "a variable that is too large": ("block 0:\n  data x: float64[100000, 100000]", "line 2: shape [100000, 100000] has 8e+10 bytes, the limit is"),
    "a parameter of whole numbers": ("block 0:\n  param p: int64[2]", "Variable(p: int64[2]): a parameter holds floating-point numbers"),
    "a sum for a number": (HEAD + "y = reshape(x, shape=(1+1,))", "line 3: shape=(1+1,) gives neither an input slot a name nor an attr a value"),
    "a call for a number": (HEAD + "y = reshape(x, shape=int(2))", "line 3: shape=int(2) gives neither an input slot a name nor an attr a value"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_text_that_is_no_program_is_refused_with_its_line_and_the_reason(what):
    text, words = REFUSED[what]
    with pytest.raises(ProgramFormatError, match="^" + re.escape(words)):
        static.parse(text)


#: texts that are printed as they are read
KEPT = {
    "an empty constant": "const c: float64[0, 3] = []",
    "a constant of one number": "const c: float64[] = 2.5",
    "a constant of many": "const c: int64[2, 2] = [[1, 2], [3, 4]]",
    "a constant of truth values": "const c: bool[2] = [True, False]",
    "numbers that are not finite": "const c: float64[2] = [['float', 'inf'], ['float', 'nan']]",
    "a parameter without gradient": "param p: float64[2] stop",
    "data that wants one": "data d: float64[-1, 2] grad",
    "a gradient that is declared": "var x@GRAD: float64[2] stop\n  x@GRAD = exp(x)",
    "an operator without slots": "y = fill_constant(shape=(2,), value=1.0)",
    "slots out of order": "y = mul(y=x, x=x)",
    "a number for a slot": "y = mul(x, y=2.0)",
    "a list of names": "y = concat([x, x, x], axis=0)",
    "several results": "[y, z] = split(x, num_or_sections=2)",
    "a place without a name": "[y, @EMPTY@] = split(x, num_or_sections=2)",
    "a role": "y = exp(x)\n  -- optimize\n  z = exp(y)",
}


@pytest.mark.parametrize("what", KEPT)
def test_a_text_is_printed_as_it_was_read(what):
    text = HEAD + KEPT[what]
    assert str(static.parse(text)) == text


def test_what_made_a_program_stands_in_its_text_and_other_comments_do_not():
    program = static.parse("# made by: prune\n# a note\n\n" + HEAD + "# another\n")
    assert program.history == ["prune"]
    assert str(program) == "# made by: prune\n" + HEAD.rstrip()


def test_a_block_begins_with_forward_operators():
    text = str(whole())
    again = static.parse(text)
    assert str(again) == text
    assert [op.role for op in again.blocks[3].ops] == ["forward"]
    assert {op.role for op in again.blocks[7].ops} == {"backward"}


def looped():
    """A loop and a branch, with a value that nothing differentiates and one that is read twice."""
    with static.program_guard(static.Program()) as program:
        x, w = static.data("x", [2, 3]), static.parameter("w", np.ones((3, 3)))
        _, h = static.while_loop(
            lambda i, h: i < 3.0, lambda i, h: (i + 1.0, mg.tanh(h @ w)), [0.0, x]
        )
        y = static.cond(mg.sum(h) > 0.0, lambda: h * w.sum(), lambda: h * 2.0)
        static.append_backward(mg.mean(y))
    return program


def test_grad_ops_of_loops_and_branches_are_read_as_the_slots_and_attrs_they_were():
    program = looped()
    again = static.parse(str(program))
    assert str(again) == str(program)
    ops = zip(program.global_block().ops, again.global_block().ops, strict=True)
    for op, read in ops:
        assert (op.inputs, op.outputs, op.attrs) == (read.inputs, read.outputs, read.attrs)


def test_a_constant_that_is_read_has_its_value_and_dtype():
    program = static.parse(HEAD + "const c: float32[2] = [1.5, 2.0]\n  y = mul(x, c)")
    assert program.initial["c"].dtype == np.float32
    (y,) = static.Executor().run(program, {"x": np.ones(2)}, ["y"])
    assert y.tolist() == [1.5, 2.0]


def test_what_is_read_says_whether_it_wants_a_gradient():
    program = static.parse(
        HEAD
        + "param p: float64[2]\n  const c: float64[1] = [1.0]\n  y = mul(p, c)\n  z = mul(c, 2.0)"
    )
    stops = {v.name: v.stop_gradient for v in program.all_variables()}
    assert stops == {"x": True, "p": False, "c": True, "y": False, "z": True}
    with static.program_guard(program):
        pairs = static.append_backward(mg.sum(program.global_block().var("y")))
    assert [p.name for p, _ in pairs] == ["p"]


def test_a_program_that_is_read_can_be_built_on_inside_its_loops():
    text = str(whole())
    for program in (static.parse(text), static.Program.from_json(STORED)):
        body, grad = program.blocks[1], program.blocks[9]
        for block, name in ((body, "x@step_0"), (grad, "mul_0@GRAD"), (grad, "x@step_0")):
            block.append_op("exp", {"x": name}, {"out": f"{name}.exp"})
            assert block.var(f"{name}.exp").shape == (2,)
        static.verify(program)


def test_what_is_declared_and_never_written_cannot_be_read():
    program = static.parse(HEAD + "var late: float64[2]")
    with pytest.raises(ProgramError, match="exp reads 'late', but no operator has written it"):
        program.global_block().append_op("exp", {"x": "late"}, {"out": "y"})


def test_operators_that_are_read_have_no_line_of_the_user():
    program = static.parse(HEAD + "y = exp(x)\n  --loss\n  z = sin(y)")
    assert [(op.role, op.source_line) for op in program.global_block().ops] == [
        ("forward", ""),
        ("loss", ""),
    ]


def test_a_small_constant_is_shown_with_its_value_and_a_larger_one_is_not():
    program = static.Program()
    with static.program_guard(program):
        for size in (16, 17):
            static.data(f"x{size}", [size]) * np.arange(float(size))
    few, many = (line for line in str(program).splitlines() if line.startswith("  const "))
    assert few.endswith("15.0]")
    assert many.endswith("const const_1: float64[17]")


def test_an_operator_of_an_unknown_type_is_shown_with_its_slots():
    op = static.Operator("nobody", {"x": ["a"], "y": ["b", "c"]}, {"out": ["d"]}, {"n": 1})
    assert repr(op) == "out=d = nobody(x=a, y=[b, c], n=1)"


def test_what_control_flow_makes_and_an_operator_overwrites_is_declared():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [])

        def body(i, s):
            prog.current_block().append_op("tanh", {"x": s}, {"out": s})
            return i + 1, s

        _, s = static.while_loop(lambda i, s: i < 2, body, [0, x])
        prog.global_block().append_op("exp", {"x": s}, {"out": s})
    again = static.parse(str(prog))
    assert str(again) == str(prog)
    results = [static.Executor().run(p, {"x": 0.5}, [s.name]) for p in (prog, again)]
    np.testing.assert_array_equal(*results)
