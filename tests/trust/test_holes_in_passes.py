"""What no test of passes looked at until a mutant survived: what stays, and what it is then."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.primitives.registry import REGISTRY
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


def branching(make):
    """A program of ``make(x)``, which adds blocks; and what it returns, by name."""
    program = static.Program()
    with static.program_guard(program):
        out = make(static.data("x", [2]))
    return program, out.name


FEED = {"x": np.array([0.3, 0.8])}


@pytest.mark.parametrize("change", [fold, merge_duplicates])
def test_blocks_inside_read_what_stands_for_a_value_that_is_gone(change):
    def make(x):
        kept, gone = mg.exp(x), mg.exp(x)
        gone = gone if change is merge_duplicates else kept * 1.0

        def body(i, h):
            return i + 1, static.cond(h.sum() > 3.0, lambda: h * gone, lambda: h + gone)

        return static.while_loop(lambda i, h: i < 3, body, [0, kept])[1]

    program, out = branching(make)
    made = static.verify(change(program, [out]))
    same(program, made, FEED, [out])
    assert len(made.global_block().ops) == len(program.global_block().ops) - 1
    inner = [n for b in made.blocks[1:] for op in b.ops for n in op.input_names]
    assert "exp_0" in inner
    assert "exp_1" not in inner
    assert "mul_0" not in inner or change is merge_duplicates


TEXT = """\
block 0:
  data x: float64[2]
  y = mul(x, y=1.0)
  s = reduce_sum(x)
  p = greater_than(s, y=0.0)
  var out: float64[2]
  var scopes: int64[]
  out, scopes = cond(p, [x], sub_block=block 1, else_block=block 2, true_out=['z'], false_out=['z'])
  last = add(out, y)
block 1 in 0:
  var y: float64[2]
  y = exp(x)
  z = sin(y)
block 2 in 0:
  z = cos(y)"""


def test_a_name_that_a_block_has_itself_is_not_replaced_in_it():
    program = static.parse(TEXT)
    made = static.verify(fold(program, ["last"]))
    assert [op.input_names for b in made.blocks[1:] for op in b.ops] == [["x"], ["y"], ["x"]]
    for sign in (1.0, -1.0):
        same(program, made, {"x": sign * FEED["x"]}, ["last"])


def test_operators_stay_whose_blocks_compute_what_is_fetched():
    inside = []

    def make(x):
        def body(i, h):
            inside[:] = [h * 2.0, static.cond(i > 0, lambda: mg.sin(h), lambda: h)]
            return i + 1, inside[0]

        static.while_loop(lambda i, h: i < 2, body, [0, x])
        return mg.exp(x)

    program, out = branching(make)
    (deep,) = program.blocks[3].ops[0].output_names
    for fetch in ([inside[0].name], [deep]):
        assert [op.type for op in dead_code(program, fetch).global_block().ops] == ["while"]
    assert [op.type for op in dead_code(program, [out]).global_block().ops] == ["exp"]


@pytest.mark.parametrize("change", [fold, merge_duplicates])
def test_values_that_only_control_flow_or_the_caller_names_stay(change):
    def make(x):
        x.program.global_block().create_var("asked", [2])
        x.program.global_block().create_var("not_asked", [2])
        return static.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, mg.exp(x)), [0, x])[1]

    program, out = branching(make)
    made = static.verify(change(program, [out, "asked"]))
    assert "asked" in made.global_block().vars
    assert "not_asked" not in made.global_block().vars
    assert list(made.blocks[1].vars) == list(program.blocks[1].vars)
    same(program, made, FEED, [out])


def test_operators_whose_attrs_hold_different_arrays_are_different():
    def shifted(x, *, by):
        return x + by[0][500]

    made = mg.primitive(shifted)
    try:
        a, b = np.zeros(2000), np.zeros(2000)
        b[500] = 1.0
        program, out = branching(lambda x: made(x, by=(a,)) + made(x, by=(b,)) + made(x, by=(a,)))
        merged = merge_duplicates(program, [out])
        assert [op.type for op in merged.global_block().ops] == ["shifted", "shifted", "add", "add"]
        same(program, merged, FEED, [out])
    finally:
        REGISTRY.pop("shifted")


def test_one_gradient_of_two_inputs_has_both_names():
    def kernel(x, y):
        return x * 2.0 + y * 2.0

    both = mg.primitive(kernel, type="both")
    both.grad(lambda out_grad: (lambda g: (g, g))(out_grad * 2.0))
    try:
        program = static.Program()
        with static.program_guard(program):
            x, y = static.parameter("x", [1.0, 2.0]), static.parameter("y", [3.0, 4.0])
            static.append_backward((both(x, y) * x).sum())
        same(program, decompose(program), {}, ["x@GRAD", "y@GRAD"])
    finally:
        REGISTRY.pop("both")


def test_sizes_that_leave_a_choice_are_known_if_both_branches_agree():
    program = static.Program()
    with static.program_guard(program):
        x, n = static.data("x", [-1, 2]), static.data("n", [-1])
        agreed = static.cond(x.sum() > 0, lambda: x * 2.0, lambda: x)
        open_ = static.cond(x.sum() > 0, lambda: mg.exp(n), lambda: x[:, 0])
        after = mg.exp(agreed)
    known = specialise(program, {"x": (3, 2), "n": (4,)}).global_block()
    assert [known.var(v.name).shape for v in (agreed, open_, after)] == [(3, 2), (-1,), (3, 2)]
    same_sizes = specialise(program, {"x": (3, 2), "n": (3,)}).global_block()
    assert same_sizes.var(open_.name).shape == (3,)
    assert program.global_block().var(agreed.name).shape == (-1, 2)


def test_sizes_become_known_in_loops_and_in_gradients():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [-1, 2]), static.parameter("w", [1.0, 2.0])
        _, h = static.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, mg.tanh(h * w)), [0, x])
        (states,), last = static.static_rnn(lambda a, s: ([s * 1.0], [s + a]), [h], [w * 1.0])
        loss = (states * states).sum()
        x.stop_gradient = False
        static.gradients([loss], [x, w])
    known = static.verify(specialise(program, {"x": (3, 2)}))
    assert known.global_block().var(states.name).shape == (3, 2)
    assert not [v for v in known.all_variables() if -1 in v.shape]
    same(program, known, {"x": np.arange(6.0).reshape(3, 2) / 7}, [loss.name, "x@GRAD", "w@GRAD"])
