"""Blocks, variables and operators by themselves: names, slots, what is declared and what is taken back."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import MinigradError, ProgramError
from minigrad.grad_names import EMPTY
from minigrad.primitives.registry import REGISTRY
from minigrad.static.program.operator import op_info
from minigrad.static.program.variable import ShapeOf


@pytest.fixture
def prog():
    program = static.Program()
    with static.program_guard(program):
        static.data("x", [2, 3])
        static.data("n", [-1])
        yield program


def var(program, name):
    return program.global_block().var(name)


# -- names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "w-1", "a/b", "1x", ".x", "+", "0-0", "é", "x@GRAD", "a" * 200, "-".join("a" * 100) + "a"])  # fmt: skip
def test_these_names_are_variables(prog, name):
    made = prog.global_block().create_var(name, [2])
    assert var(prog, name) is made
    assert static.Program.from_json(prog.to_json()).to_json() == prog.to_json()
    assert str(static.parse(str(prog))) == str(prog)


@pytest.mark.parametrize("name", ["", "a b", "a=b", "-x", "1", "+1", ".5", "1e5", "1j", "True", "None", EMPTY, "a\n", "a\u200b", "#", "a" * 201, "-".join("a" * 101), 3])  # fmt: skip
def test_these_names_are_none(prog, name):
    with pytest.raises(ProgramError, match="cannot be the name of a variable: use letters, digits"):
        prog.global_block().create_var(name, [2])
    assert list(prog.global_block().vars) == ["x", "n"]


def test_a_variable_without_a_name_gets_one_that_nobody_has(prog):
    block = prog.global_block()
    block.create_var("var_1", [2])
    assert [block.create_var(shape=[2]).name for _ in range(2)] == ["var_0", "var_2"]


def test_a_name_that_the_user_took_is_not_given_again(prog):
    prog.global_block().create_var("exp_0", [2])
    assert mg.exp(var(prog, "x")).name == "exp_1"
    inner = prog.create_block()
    inner.create_var("exp_2", [2])
    assert mg.exp(var(prog, "x")).name == "exp_3"


def test_a_type_of_operator_whose_names_become_too_long_is_refused(prog):
    made = mg.primitive(lambda x: np.abs(x), type="a" * 198)
    try:
        with pytest.raises(ProgramError, match="cannot be the name of a variable"):
            made(var(prog, "x"))
    finally:
        REGISTRY.pop("a" * 198)


def test_names_inside_blocks_are_known_to_the_program(prog):
    x = var(prog, "x")
    y = static.cond(x.sum() > 0, lambda: mg.exp(x), lambda: x)
    assert static.append_backward(y.sum(), no_grad_set=["exp_0"]) == []
    with pytest.raises(
        ProgramError, match="no_grad_set names 'nobody', which is no variable of this program"
    ):
        static.append_backward(y.sum(), no_grad_set=["nobody"])


# -- variables -----------------------------------------------------------------------------


def test_a_variable_has_the_length_and_the_parts_of_its_first_axis(prog):
    x = var(prog, "x")
    assert (x.ndim, len(x), len(static.data("e", [0, 2]))) == (2, 2, 0)
    rows = list(x)
    assert [r.shape for r in rows] == [(3,), (3,)]
    (a, b) = static.Executor().run(prog, {"x": np.arange(6.0).reshape(2, 3)}, rows)
    assert (a.tolist(), b.tolist()) == ([0, 1, 2], [3, 4, 5])
    for unknown in (static.data("s", []), var(prog, "n")):
        with pytest.raises(
            ProgramError,
            match=re.escape(
                f"the length of Variable {unknown.name!r} {list(unknown.shape)} is not known"
            ),
        ):
            len(unknown)


def test_protocols_of_python_are_not_there(prog):
    for name in ("_data", "_repr_html_", "__cuda_array_interface__"):
        assert not hasattr(var(prog, "x"), name)


def test_variables_and_blocks_show_themselves(prog):
    x = var(prog, "x")
    assert repr(x) == "Variable(x: float64[2, 3])"
    assert repr(prog.global_block()) == "<block 0, parent -1: 0 ops, 2 variables>"
    assert repr(prog) == "<Program: 1 blocks, 0 ops>"
    assert repr(ShapeOf("x", 1)) == "shape of x"
    assert prog._repr_mimebundle_()["text/plain"] == "Program: 0 ops, 0 grad ops"


def test_who_says_that_gradients_end_is_told_apart(prog):
    w = static.parameter("w", [1.0, 2.0, 3.0])
    c, y = mg.argmax(w), w * 2.0
    assert [v.stop_gradient for v in (var(prog, "x"), w, c, y)] == [True, False, True, False]
    assert [v.cuts for v in (var(prog, "x"), w, c, y)] == [False] * 4
    y.stop_gradient = 1
    assert (y.stop_gradient, y.cuts) == (True, True)
    y.stop_gradient = 0
    assert (y.stop_gradient, y.cuts) == (False, False)


def test_gradients_are_variables_that_gradients_may_flow_to(prog):
    assert prog.global_block().create_var("plain", [2]).stop_gradient is False
    x = static.data("v", [2])
    x.stop_gradient = False
    g = static.cond(x.sum() > 0, lambda: x * x * x, lambda: x)
    for _ in range(3):
        (g,) = static.gradients(g.sum(), [x])
    floats = [v for v in prog.all_variables() if v.dtype.kind == "f" and not v.is_data]
    assert len(floats) > 20
    assert not any(v.stop_gradient for v in floats)


def test_arrays_meet_variables_in_operators_and_in_no_function_of_numpy(prog):
    x = static.data("v", [2])
    y = np.array([3.0, 4.0]) * x - np.ones(2)
    (found,) = static.Executor().run(prog, {"v": [1.0, 2.0]}, y)
    assert found.tolist() == [2, 7]
    with pytest.raises(TypeError, match="np.exp does not know Variables"):
        np.exp(x)


# -- operators slot by slot ----------------------------------------------------------------


def test_an_operator_keeps_the_role_the_attrs_and_the_line_it_was_given(prog):
    block = prog.global_block()
    op = block.append_op("reduce_sum", {"x": "x"}, {"out": "s"}, {"axis": 0}, role="optimize")
    assert (op.role, op.attrs, op.input_names, op.output_names) == (
        "optimize",
        {"axis": 0},
        ["x"],
        ["s"],
    )
    assert op.source_line.startswith("test_block.py:")
    with prog.role_guard("backward"):
        assert block.append_op("exp", {"x": "x"}).role == "backward"
    assert block.append_op("exp", {"x": "x"}).role == "forward"
    assert (
        block.append_op("fill_constant", None, {"out": "c"}, {"shape": (2,), "value": 1.0}).inputs
        == {}
    )


def test_a_backward_operator_needs_the_values_that_its_rules_read(prog):
    block, g = prog.global_block(), static.data("g", [2, 3])
    arguments = "mul_grad", {"x": "x", "y": "x", "out_grad": g}, {"x_grad": "a"}
    op = block.append_op(*arguments, role="backward")
    assert op.reads == op.copy().reads == ("x",)
    assert block.append_op(*arguments).reads is None


def test_places_without_a_name_are_allowed_among_several(prog):
    block, g = prog.global_block(), static.data("g", [2, 1])
    block.append_op(
        "split", {"x": "x"}, {"out": ["a", EMPTY, EMPTY]}, {"num_or_sections": 3, "axis": 1}
    )
    op = block.append_op(
        "split_grad", {"x": "x", "out_grad": [g, EMPTY, EMPTY]}, {"x_grad": "d"}, {"num_or_sections": 3, "axis": 1}
    )  # fmt: skip
    assert op.inputs["out_grad"] == ["g", EMPTY, EMPTY]
    assert EMPTY not in block.vars


def test_a_number_stands_for_a_slot_of_a_grad_op(prog):
    block, g = prog.global_block(), static.data("g", [2, 3])
    block.append_op("mul_grad", {"out_grad": g}, {"x_grad": "d"}, {"y": 3.0})
    (d,) = static.Executor().run(prog, {"g": np.ones((2, 3))}, "d")
    assert np.array_equal(d, 3 * np.ones((2, 3)))


#: an operator, and what is said of it
REFUSED = {
    "an output slot for an input": (("exp", {"out": "x"}), "exp has no input slot 'out'. Known: 'x'"),
    "a second output of one value": (("exp", {"x": "x"}, {"out": ["a", "b"]}), "the slot 'out' of exp is one value, 2 names were given for it"),
    "a name nobody declared": (("exp", {"x": "y"}, {"out": "a"}), "block 0 has no variable 'y'"),
    "an odd name": (("exp", {"x": "x"}, {"out": "a b"}), "'a b' cannot be the name of a variable"),
    "a required attr": (("reshape", {"x": "x"}, {"out": "a"}), "reshape needs 'shape'"),
    "a number for a list": (("concat", {"x": 3}, {"out": "a"}), "Block.append_op(type: str, inputs: dict, outputs: dict) is not possible"),
    "a grad op of what has no rule": (("arg_max_grad", {"x": "x"}, {"x_grad": "a"}), "there is no operator type 'arg_max_grad'"),
    "a grad op of a grad op": (("exp_grad_grad", {"x": "x"}, {"x_grad": "a"}), "there is no operator type 'exp_grad_grad'"),
    "a type and five letters more": (("exp_back", {"x": "x"}, {"x_grad": "a"}), "there is no operator type 'exp_back'"),
    "a type of another kind": ((["exp"], {"x": "x"}), "there is no operator type ['exp']"),
    "several names for one output, twice the same": (("split", {"x": "x"}, {"out": ["a", "b", "a"]}, {"num_or_sections": 3, "axis": 1}), "split writes one name twice: ['a', 'b', 'a']"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_an_operator_that_does_not_fit_is_refused_with_the_reason(prog, what):
    arguments, words = REFUSED[what]
    with pytest.raises(MinigradError, match="^" + re.escape(words)):
        prog.global_block().append_op(*arguments)
    assert prog.global_block().ops == []


def test_a_shape_of_another_value_stands_for_an_attr(prog):
    n = static.data("m", [-1, 3])
    op = prog.global_block().append_op("broadcast_to", {"x": "x", "shape_like": n}, {"out": "b"})
    assert op.attrs == {}
    (b,) = static.Executor().run(prog, {"x": np.ones((2, 3)), "m": np.ones((2, 3))}, "b")
    assert b.shape == (2, 3)


def test_a_number_of_numpy_is_that_of_python_where_no_narrower_value_meets_it(prog):
    x = prog.global_block().var("x")
    x * np.sqrt(2.0), mg.clip(x, min=np.float64(0.5))
    shown = [repr(list(op.attrs.values())) for op in prog.global_block().ops]
    assert shown == ["[1.4142135623730951]", "[0.5]"]


def test_a_number_of_numpy_makes_float32_wider_and_is_stored_so(prog):
    x = static.data("f", [2], "float32")
    made = [x * np.sqrt(2.0), np.float64(2.0) - x, mg.clip(x, min=np.float64(0.5)), x * 2.0]
    assert [v.dtype.name for v in made] == ["float64", "float64", "float64", "float32"]
    for again in (prog, static.parse(str(prog)), static.Program.from_json(prog.to_json())):
        feed, names = {"f": np.ones(2, "float32")}, [v.name for v in made]
        for step in (static.Executor().run, static.compile):
            got = step(again, feed, names)
            values = got if isinstance(got, list) else got(**feed)
            assert [a.dtype for a in values] == [v.dtype for v in made]


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.sum() / x.shape[0],
        lambda x: x.shape[0] * x,
        lambda x: x * (2 * x).shape[0],
        lambda x: x.reshape(x.shape[0] * 3),
        lambda x: x.sum() / math.prod(x.shape),
        lambda x: x.sum() / float(x.shape[0]),
        lambda x: x[: x.shape[0]],
        lambda x: x[: x.shape[0] // 2],
        lambda x: x[x.shape[0] - 1],
    ],
)
def test_a_size_that_is_open_is_no_number_to_compute_with(prog, compute):
    x = static.data("open", [-1, 3])
    with pytest.raises(ProgramError, match=r"size of -1 is not known(?s:.*)repair: x.mean\(\)"):
        compute(x)


def test_the_package_computes_with_a_size_that_is_open_as_with_any_other(prog):
    size = static.data("open", [-1, 3]).shape[0]
    rule = "size * 3 + 1, 2 * size, -size, float(size)"
    assert eval(rule, {"size": size, "__minigrad_ops__": True}) == (-2, -2, 1, -1.0)
    with pytest.raises(ProgramError, match="size of -1 is not known"):
        eval(rule, {"size": size})


def test_a_size_that_is_open_may_be_asked_for_and_handed_on(prog):
    x = static.data("open", [-1, 3])
    assert x.shape == (-1, 3) and repr(x.shape) == "(-1, 3)" and x.shape[0] < 0
    y = x.reshape(x.shape[0], 3, 1)
    again = static.Program.from_json(prog.to_json())
    (value,) = static.Executor().run(again, {"open": np.ones((2, 3))}, [y.name])
    assert value.shape == (2, 3, 1)


def test_numbers_are_attrs_where_a_slot_is_one_value_and_constants_in_lists(prog):
    x = static.data("v", [2])
    x * True, x * 2, x * 2.5
    assert [op.attrs["y"] for op in prog.global_block().ops] == [True, 2, 2.5]
    mg.stack([x, np.ones(2), x])
    assert prog.global_block().ops[-1].inputs == {"x": ["v", "const_0", "v"]}
    mg.clip(x, max=1.0)
    assert prog.global_block().ops[-1].attrs == {"max": 1.0}
    assert prog.global_block().ops[-1].inputs == {"x": ["v"]}


def test_an_attr_that_is_the_default_is_not_kept_and_one_of_another_type_is(prog):
    x = var(prog, "x")
    for axis in (None, 0, False, 1.0 and 1):
        mg.sum(x, axis=axis) if axis is not False else mg.sum(x, axis=None, keepdims=False)
    assert [op.attrs for op in prog.global_block().ops] == [{}, {"axis": 0}, {}, {"axis": 1}]
    mg.sum(x, axis=0, keepdims=True)
    assert prog.global_block().ops[-1].attrs == {"axis": 0, "keepdims": True}
    mg.sum(x, axis=0, keepdims=0)
    assert prog.global_block().ops[-1].attrs == {"axis": 0, "keepdims": 0}
    assert type(prog.global_block().ops[-1].attrs["keepdims"]) is int


def test_what_a_program_knows_of_a_type_follows_from_its_kernel(prog):
    def strange(x, y, bias=None, *, size, base=2.0):
        return x * y * base + (0 if bias is None else bias) + np.zeros(size)

    def listed(*x, axis=0):
        return np.sum(x, axis=axis)

    try:
        made = mg.primitive(strange)
        made.grad(x=lambda y, out_grad: out_grad * y)
        info, grad = op_info("strange"), op_info("strange_grad")
        assert (info.inputs, info.outputs) == (
            ("x", "y", "bias", "size_like", "base_like"),
            ("out",),
        )
        assert (info.attrs, info.required, info.is_grad) == (
            ("size", "base"),
            ("x", "y", "size"),
            False,
        )
        assert grad.inputs == ("x", "y", "bias", "out", "out_grad", "size_like", "base_like")
        assert (grad.outputs, grad.attrs, grad.required, grad.is_grad) == (
            ("x_grad",),
            ("size", "base"),
            (),
            True,
        )
        assert info.forward is grad.forward
        mg.primitive(listed)
        assert (op_info("listed").inputs, op_info("listed").required) == (("x", "axis_like"), ())
        with pytest.raises(ProgramError, match="there is no operator type 'listed_grad'"):
            op_info("listed_grad")
    finally:
        REGISTRY.pop("strange"), REGISTRY.pop("listed", None)
    with pytest.raises(ProgramError, match="there is no operator type 'strange'"):
        op_info("strange")


# -- programs built slot by slot: whatever `append_op` accepts verifies ------------------


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


NO_OPERATORS = {
    "two names for a slot of one value": (
        ("mul", {"x": ["x", "x"], "y": "x"}, {"out": "c"}),
        "the slot 'x' of mul is one value, 2 names were given for it",
    ),
    "no name for a slot of one value": (
        ("mul", {"x": [], "y": "x"}, {"out": "c"}),
        "the slot 'x' of mul is one value, 0 names",
    ),
    "a list of slots": (
        ("mul", ["x", "x"], {"out": "c"}),
        "Block.append_op(type: str, inputs: a list of 2",
    ),
    "a number as a name": (("exp", {"x": 3}, {"out": "c"}), "'int' object is not iterable"),
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


@pytest.mark.parametrize("case", NO_OPERATORS)
def test_what_is_no_operator_is_refused_and_leaves_the_block_alone(block, case):
    arguments, message = NO_OPERATORS[case]
    with pytest.raises(MinigradError) as caught:
        block.append_op(*arguments)
    assert message in str(caught.value)
    assert "at test_block.py:" in str(caught.value)
    assert (len(block.ops), list(block.vars)) == (0, ["x", "i"])
