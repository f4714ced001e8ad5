"""What `static.program.verify` refuses: a program with every kind of block, damaged in one place, and the words for it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError
from minigrad.static.program.operator import CONTROL, Operator, OpInfo


def whole():
    """A loop (blocks 1, 2), a choice (3, 4), a recurrence (5), parts (6) and their gradients (6 to 9)."""
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [2]), static.parameter("w", [2.0, 1.0])
        _, s = static.while_loop(lambda i, s: i < 2, lambda i, s: [i + 1, s * w], [0, x])
        y = static.cond(s.sum() > 0, lambda: s * w, lambda: s)
        (states,), _ = static.static_rnn(lambda a, h: ([h], [h * a * w]), [y], [w * 1.0])
        static.append_backward(mg.einsum("ij,ij->", *mg.split(states, 2)))
    return program


STORED = whole().to_json()


def the(program, kind):
    """The operator of a type."""
    (found,) = [op for b in program.blocks for op in b.ops if op.type == kind]
    return found


def place(program, kind):
    """How an error names it."""
    return next(
        f"block {b.idx}, #{k} {kind}: " for b in program.blocks for k, op in enumerate(b.ops) if op.type == kind
    )  # fmt: skip


def attr(kind, name, value):
    """The change: another attr of an operator."""
    return lambda p: the(p, kind).attrs.update({name: value})


def slot(kind, side, name, value):
    """The change: other names in a slot of an operator."""
    return lambda p: getattr(the(p, kind), side).update({name: value})


def inserted(block, at, op):
    return lambda p: p.blocks[block].ops.insert(at, op)


def written_outside(block):
    """The change: an operator of a block writes a variable of the root."""
    return inserted(block, 0, Operator("fill_constant", {}, {"out": ["mul_2"]}, {"shape": (2,)}))


def read_early(name):
    """The change: the loop's body reads this name first."""
    return inserted(1, 0, Operator("exp", {"x": [name]}, {"out": ["mul_0"]}))


def local(block, name, **flags):
    return lambda p: p.blocks[block].create_var(name, [2], **flags)


def several(*changes):
    return lambda p: [change(p) for change in changes]


def set_in(block, name, value):
    return lambda p: setattr(p.blocks[block], name, value)


def of_another_block(p):
    p.blocks[1].vars["w"] = p.blocks[0].vars["w"]


def of_another_program(p):
    p.blocks[1].program = static.Program()


def held_by(kind, name):
    """The change: the block of an attr is no longer in this attr."""
    return lambda p: the(p, kind).attrs.pop(name)


ROOT = "block 0 must be the root: it lies in no block and is no grad block"


LIES = "block {} lies in block {}, grad of {}: both must come before it"


NOT_THERE = "{} = block {}, which is not there or belongs to another operator"


NAMES = "'{}' must be a list of names, as long as '{}'"


#: what is done to the program, the operator that is named, and what is said of it
DAMAGE = {
    # blocks
    "no blocks": (lambda p: p.blocks.clear(), None, ROOT),
    "a root in a block": (set_in(0, "parent", 0), None, ROOT),
    "a root that is a grad block": (set_in(0, "forward_block", 0), None, ROOT),
    "another number": (set_in(3, "idx", 4), None, "block 3 calls itself 4"),
    "another program": (of_another_program, None, "block 1 calls itself 1"),
    "a second root": (set_in(2, "parent", -1), None, LIES.format(2, -1, -1)),
    "a block in itself": (set_in(2, "parent", 2), None, LIES.format(2, 2, -1)),
    "a block in a later one": (set_in(2, "parent", 3), None, LIES.format(2, 3, -1)),
    "the grad block of itself": (set_in(6, "forward_block", 6), None, LIES.format(6, 0, 6)),
    "the grad block of block -2": (set_in(6, "forward_block", -2), None, LIES.format(6, 0, -2)),
    # variables
    "another block's variable": (of_another_block, None, "block 1 knows Variable(w: float64[2]) as 'w'"),
    "data in a branch": (local(3, "y", is_data=True), None, "'y' is data or outlives a run, so it must be declared in block 0, not in 3"),
    "a parameter in a branch": (local(3, "y", persistable=True), None, "'y' is data or outlives a run, so it must be"),
    "a start value of data": (lambda p: p.initial.update(x=np.ones(2)), None, "'x' has a start value but is no variable that outlives a run"),
    "a start value of another dtype": (lambda p: p.initial.update(w=np.ones(2, "float32")), None, "the start value of Variable(w: float64[2]) is float32[2]"),
    # operators
    "an unknown role": (lambda p: setattr(the(p, "split"), "role", "backwards"), None, "block 0, #6: 'backwards' is no role; did you mean 'backward'?"),
    "nothing is written": (lambda p: setattr(the(p, "split"), "outputs", {}), "split", "it writes nothing"),
    "no name for a slot of one value": (slot("einsum_grad", "inputs", "out_grad", []), None, "block 0, #9: the slot 'out_grad' of einsum_grad is one value, 0 names were given for it"),
    "two names for an output of one value": (slot("reduce_sum", "outputs", "out", ["mul_2", "mul_2"]), None, "block 0, #1: the slot 'out' of reduce_sum is one value, 2 names were given for it"),
    "a list of fewer gradients": (lambda p: the(p, "einsum_grad").outputs["x_grad"].pop(), "einsum_grad", "'x_grad' is not as long as its input"),
    "an unknown output": (slot("split", "outputs", "out", ["a", "split_1"]), "split", "no variable 'a'"),
    "a value that nobody writes": (several(local(0, "late"), read_early("late")), None, "block 1, #0 exp: it reads 'late' before anything wrote it"),
    "a value of the block that comes later": (several(local(1, "late"), read_early("late")), None, "block 1, #0 exp: it reads 'late' before anything wrote it"),
    "a value of the block around it that comes later": (read_early("mul_2"), None, "block 1, #0 exp: it reads 'mul_2' before anything wrote it"),
    "a value of the body before the body has run": (inserted(2, 0, Operator("exp", {"x": ["mul_0"]}, {"out": ["less_than_0"]})), None, "block 2, #0 exp: it reads 'mul_0' before anything wrote it"),
    "the result of the loop itself": (read_early("while_1"), None, "block 1, #0 exp: it reads 'while_1' before anything wrote it"),
    "a name of the block hides one around it": (several(local(1, "x"), read_early("x")), None, "block 1, #0 exp: it reads 'x' before anything wrote it"),
    # who holds a block
    "a block less": (held_by("cond", "else_block"), "cond", "it holds ['sub_block'], not ['else_block', 'sub_block']"),
    "a truth value for a block": (attr("while", "sub_block", True), "while", NOT_THERE.format("sub_block", True)),
    "the root as a branch": (attr("cond", "sub_block", 0), "cond", NOT_THERE.format("sub_block", 0)),
    "a block behind the last": (attr("cond", "sub_block", 10), "cond", NOT_THERE.format("sub_block", 10)),
    "a block held twice": (attr("cond", "else_block", 3), "cond", NOT_THERE.format("else_block", 3)),
    "a branch inside a loop": (set_in(4, "parent", 1), "cond", "else_block = block 4 lies elsewhere"),
    "a condition beside its loop": (several(set_in(2, "parent", 0), lambda p: p.blocks[2].ops.clear()), "while", "cond_block = block 2 lies elsewhere"),
    "a block nobody holds": (lambda p: p.create_block(0), None, "no operator holds block 10"),
    # what goes in and comes out
    "no place for scopes": (slot("while", "outputs", "scopes", []), "while", "'scopes' is one value"),
    "two places for scopes": (slot("cond_grad", "inputs", "scopes", ["x", "x"]), "cond_grad", "'scopes' is one value"),
    "no condition": (slot("cond", "inputs", "pred", []), "cond", "'pred' is one value"),
    "a start value less": (lambda p: the(p, "while").inputs["x"].pop(), "while", NAMES.format("out", "x")),
    "a gradient less": (lambda p: the(p, "while_grad").outputs["x_grad"].pop(), "while_grad", NAMES.format("x_grad", "x")),
    "a text for a list": (attr("cond", "true_out", "m"), "cond", NAMES.format("true_out", "out")),
    "no list": (held_by("cond", "true_out"), "cond", NAMES.format("true_out", "out")),
    "a name more": (attr("cond", "true_out", ["mul_1", "mul_1"]), "cond", NAMES.format("true_out", "out")),
    "a number among names": (attr("cond", "true_out", [3]), "cond", NAMES.format("true_out", "out")),
    "the other branch's result": (attr("cond", "false_out", ["mul_1"]), "cond", "false_out: nothing in block 4 writes 'mul_1'"),
    "a name of the block around it": (attr("cond", "true_out", ["while_1"]), "cond", "true_out: nothing in block 3 writes 'while_1'"),
    "a condition that is a number": (attr("while", "cond", 3), "while", "the condition 3 is no variable"),
    "a condition that is nothing": (attr("while", "cond", "nobody"), "while", "the condition 'nobody' is no variable"),
    "a condition that nobody writes": (lambda p: p.blocks[2].ops.clear(), "while", "nothing writes its condition 'less_than_0'"),
    "a condition that nobody writes, of the block around it": (several(local(0, "go"), attr("while", "cond", "go")), "while", "nothing writes its condition 'go'"),
    "a result that nobody writes": (lambda p: p.blocks[3].ops.clear(), "cond", "true_out: nothing in block 3 writes 'mul_1'"),
    "a result of the second branch that nobody writes": (lambda p: p.blocks[4].ops.clear(), "cond", "false_out: nothing in block 4 writes 'assign_0'"),
    "a body that writes a value around it": (written_outside(1), None, "block 1, #0 fill_constant: it writes 'mul_2' of a block around it"),
    "a condition that writes a value around it": (written_outside(2), None, "block 2, #0 fill_constant: it writes 'mul_2' of a block around it"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_program_is_refused_with_the_place_and_the_reason(what):
    change, kind, words = DAMAGE[what]
    program = static.Program.from_json(STORED)
    change(program)
    where = "" if kind is None else place(program, kind)
    with pytest.raises(ProgramError, match="^" + re.escape(where + words)):
        static.verify(program)


def test_a_program_that_is_whole_is_returned():
    program = static.Program.from_json(STORED)
    assert static.verify(program) is program
    assert len(program.blocks) == 10


def test_a_condition_is_tested_before_the_body_has_written_anything():
    program = static.Program()
    with static.program_guard(program):
        s = mg.cos(mg.sin(mg.exp(static.data("x", [2]))))
        static.while_loop(lambda i, s: i < 2, lambda i, s: [i + 1, s * 2.0], [0, s])
    static.verify(program)
    body, condition = program.blocks[1:]
    (first,) = body.ops[0].output_names
    condition.ops.insert(0, Operator("exp", {"x": [first]}, {"out": ["less_than_0"]}))
    with pytest.raises(
        ProgramError, match=f"block 2, #0 exp: it reads '{first}' before anything wrote it"
    ):
        static.verify(program)


def test_every_block_but_the_root_is_held():
    program = static.Program()
    program.create_block(0)
    with pytest.raises(ProgramError, match="^no operator holds block 1$"):
        static.verify(program)


def test_a_new_kind_of_control_flow_says_by_its_attrs_which_blocks_it_holds(monkeypatch):
    monkeypatch.setitem(CONTROL, "twice", OpInfo("twice", (), ("out",), ("sub_block",)))
    program = static.Program()
    block, inner = program.global_block(), program.create_block(0)
    block.create_var("y", [2])
    block.ops.append(Operator("twice", {}, {"out": ["y"]}, {"sub_block": inner.idx}))
    assert static.verify(program) is program
    block.ops[0].attrs.clear()
    with pytest.raises(ProgramError, match=re.escape("#0 twice: it holds [], not ['sub_block']")):
        static.verify(program)


#: what looks odd and is allowed
FINE = {
    "a condition of the block around it": lambda p: (
        p.blocks[0].create_var("go", [], bool, is_data=True),
        the(p, "while").attrs.update(cond="go"),
    ),
    "a carried value as a result": lambda p: the(p, "while").attrs.update(next=["const_0@step_0", "x@step_0"]),
    "a parameter that a loop's body writes": inserted(
        1, 0, Operator("fill_constant", {}, {"out": ["w"]}, {"shape": (2,)})
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FINE)
def test_what_looks_odd_and_is_allowed(what):
    program = static.Program.from_json(STORED)
    FINE[what](program)
    static.verify(program)
