"""Passes: what each does to a small program, before and after."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.static.passes import climb, dead_code, decompose, fold, merge_duplicates, specialise


def lines(program):
    """The operators of the root block, as text."""
    return [repr(op) for op in program.global_block().ops]


def program(build):
    prog = static.Program()
    with static.program_guard(prog):
        out = build()
    return prog, out


def test_every_rung_leaves_what_it_was_given_and_a_program_that_bears_its_name():
    def build():
        x, w = static.data("x", [-1, 3]), static.parameter("w", np.ones((3, 2)))
        loss = mg.tanh(mg.matmul(x, w)).sum()
        static.append_backward(loss)
        return loss

    before, loss = program(build)
    for rung, made in climb(before, {"x": (7, 3)}, [loss.name, "w@GRAD"]):
        text = str(before)
        assert made is not before
        assert made.history[-1].startswith(rung), f"made.history.append({rung!r})"
        static.verify(made)
        assert str(before) == text
        before = made


def test_specialise_settles_open_sizes_in_forward_and_backward():
    def build():
        x, w = static.data("x", [-1, 3]), static.parameter("w", np.ones((3, 2)))
        loss = mg.tanh(mg.matmul(x, w)).sum()
        static.append_backward(loss)

    prog, _ = program(build)
    made = specialise(prog, {"x": (7, 3)}).global_block()
    assert prog.global_block().var("tanh_0@GRAD").shape == (-1, 2)
    assert made.var("matmul_0").shape == made.var("tanh_0@GRAD").shape == (7, 2)


def test_specialise_settles_open_sizes_inside_loops():
    def build():
        xs = static.data("xs", [-1, -1, 3])
        w = static.parameter("w", np.ones((3, 3)))
        start = mg.zeros_like(xs[0])
        ys, _ = static.static_rnn(lambda x, h: ([mg.tanh(x + mg.matmul(h, w))], [x]), [xs], [start])
        static.append_backward(ys[0].sum())
        return ys[0]

    prog, out = program(build)
    made = specialise(prog, {"xs": (5, 2, 3)})
    assert made.global_block().var(out.name).shape == (5, 2, 3)
    assert not any(-1 in v.shape for v in made.all_variables() if "SCOPES" not in v.name)


def test_specialise_quotes_shapes_that_do_not_fit():
    def build():
        return static.data("x", [-1, 3]) + static.data("y", [-1, 3])

    prog, _ = program(build)
    with pytest.raises(ValueError, match=r"add\(x: float64\[4, 3\], y: float64\[5, 3\]\)"):
        specialise(prog, {"x": (4, 3), "y": (5, 3)})


def test_decompose_writes_grad_ops_out_in_primitives():
    def build():
        w = static.parameter("w", [1.0, 2.0])
        static.append_backward(mg.exp(w).sum())

    prog, _ = program(build)
    assert [op.type for op in prog.global_block().ops if op.role == "backward"] == [
        "reduce_sum_grad",
        "exp_grad",
    ]
    made = decompose(prog)
    assert [op.type for op in made.global_block().ops if op.role == "backward"] == [
        "expand_reduced",
        "mul",
    ]
    assert made.global_block().ops[-1].output_names == ["w@GRAD"]


FOLDED = [
    ("an op that changes nothing", lambda x: mg.sin(mg.reshape(x, (2, 3))), ["out = sin(x)"]),
    ("a factor of one", lambda x: mg.sin(x * 1.0), ["out = sin(x)"]),
    ("a copy", lambda x: mg.sin(mg.clone(x)), ["out = sin(x)"]),
    ("two factors, one a power of two", lambda x: x * 3.0 * 2.0, ["out = mul(x, y=6.0)"]),
    ("two other factors stay", lambda x: x * 3.0 * 5.0, ["mul_0 = mul(x, y=3.0)", "out = mul(mul_0, y=5.0)"]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "build", "after"), FOLDED, ids=[f[0] for f in FOLDED])
def test_fold(what, build, after):
    prog, out = program(lambda: build(static.data("x", [2, 3])))
    made = [
        line.replace(out.name, "out")
        for line in lines(dead_code(fold(prog, [out.name]), [out.name]))
    ]
    assert made == after


def test_fold_makes_constants_of_what_is_known():
    def build():
        w = static.parameter("w", np.ones((2, 2)))
        static.append_backward((w * w).mean())

    prog, _ = program(build)
    made = dead_code(fold(decompose(prog), ["w@GRAD"]), ["w@GRAD"])
    constants = [op.attrs for op in made.global_block().ops if op.role != "forward"]
    assert {"x": 0.25} in constants  # 1 / 4 elements, nothing else is left of the loss's gradient


def test_fold_keeps_what_is_asked_for_and_what_is_updated():
    def build():
        w = static.parameter("w", [1.0, 2.0])
        copy = mg.clone(w)
        block = static.program.program.default_program().global_block()
        block.append_op(
            "sgd",
            {"param": w, "grad": copy},
            {"param_out": w},
            {"learning_rate": 0.5},
            role="optimize",
        )
        return copy, mg.sin(copy)

    prog, (copy, sine) = program(build)
    assert lines(fold(prog, [copy.name])) == lines(prog)
    step = static.compile(prog, fetch=sine)
    np.testing.assert_array_equal(step(), np.sin([1.0, 2.0]))


def test_operators_that_differ_in_the_middle_of_a_large_attr_are_no_duplicates():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [2000])
        rows = [np.ones(2000), np.ones(2000)]
        rows[1][1000] = 7.0  # printed, both are [1. 1. 1. ... 1. 1. 1.]
        block, names = prog.global_block(), ["a", "b", "c"]
        for name, row in zip(names, [*rows, rows[0].copy()], strict=True):
            block.append_op("mul", {"x": x}, {"out": name}, {"y": 2.0})
            block.ops[-1].attrs["y"] = row
        y = block.var("a") + block.var("b") + block.var("c")
    made = merge_duplicates(prog, [y.name])
    assert sum(op.type == "mul" for op in made.global_block().ops) == 2


def test_duplicates_are_merged_only_where_the_values_are_the_same():
    def build():
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        a, b = mg.exp(x), mg.exp(x)
        c = mg.exp(w)
        block = static.program.program.default_program().global_block()
        block.append_op("sgd", {"param": w, "grad": c}, {"param_out": w}, {"learning_rate": 0.5})
        return a + b, c + mg.exp(w)

    prog, _ = program(build)
    made = merge_duplicates(prog)
    assert [op.type for op in made.global_block().ops].count("exp") == 3
    assert [op.type for op in prog.global_block().ops].count("exp") == 4


def test_dead_code_keeps_updates_and_what_loops_read():
    def build():
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        scale = mg.exp(w)
        mg.sin(x)
        static.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h * scale), [0, x])
        (_, out) = static.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h * scale), [0, x])
        return out

    prog, out = program(build)
    made = dead_code(prog, [out.name])
    assert [op.type for op in made.global_block().ops] == ["exp", "while"]
    assert len(made.blocks) == 3
    feed = {"x": np.ones(2)}
    np.testing.assert_array_equal(
        static.Executor().run(made, feed, [out.name])[0],
        static.Executor().run(prog, feed, [out])[0],
    )


def test_passes_leave_their_argument_as_it_was():
    def build():
        w = static.parameter("w", [1.0, 2.0])
        static.append_backward((w * w * 1.0).sum())

    prog, _ = program(build)
    before = str(prog)
    for apply in (
        decompose,
        fold,
        merge_duplicates,
        lambda p: dead_code(p, []),
        lambda p: specialise(p, {}),
    ):
        apply(prog)
        assert str(prog) == before
