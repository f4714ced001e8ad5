"""Passes: what each does to a small program, before and after."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.compiler.program_passes import climb, dead_code, decompose, specialise
from minigrad.primitives.registry import REGISTRY

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


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
    text = before.to_json()
    rungs = []
    for made in climb(before, {"x": (7, 3)}, [loss.name, "w@GRAD"], exact=False):
        assert made is not before and before.to_json() == text
        rungs.append(made.history[-1])
        static.verify(made)
        before, text = made, made.to_json()
    assert rungs == ["specialise", "decompose", "dead_code", "batch_products"]


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


def squared_in_place(x):
    """The parameter is written by an operator of the block that is being built."""
    block = x.program.current_block()
    block.append_op("mul", {"x": "w", "y": "w"}, {"out": "w"})
    return x


def in_a_loop(x):
    static.while_loop(lambda i: i < 2, lambda i: squared_in_place(i + 1), [0])


def in_a_branch(x):
    static.cond(x.sum() > 1.0, lambda: squared_in_place(x), lambda: x)


def in_a_branch_in_a_loop(x):
    def body(i):
        in_a_branch(x)
        return i + 1

    static.while_loop(lambda i: i < 2, body, [0])


@pytest.mark.parametrize("build", [in_a_loop, in_a_branch, in_a_branch_in_a_loop])
@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=needs_cc)])
def test_what_changes_a_parameter_in_a_block_stays_though_nobody_reads_its_results(build, backend):
    prog = static.Program()
    with static.program_guard(prog):
        static.parameter("w", [1.0, 2.0])
        x = static.data("x", [2])
        build(x)
        out = (x * 2.0).sum()
    executor, feed = static.Executor(), {"x": np.ones(2)}
    executor.run(prog, feed, [out])
    step = static.compile(prog, fetch=[out], backend=backend)
    step(**feed)
    np.testing.assert_array_equal(step.parameters["w"], executor.scope["w"])
    assert step.parameters["w"][1] > 2.0


def test_passes_leave_their_argument_as_it_was():
    def build():
        w = static.parameter("w", [1.0, 2.0])
        static.append_backward((w * w * 1.0).sum())

    prog, _ = program(build)
    before = str(prog)
    for apply in (
        decompose,
        lambda p: dead_code(p, []),
        lambda p: specialise(p, {}),
    ):
        apply(prog)
        assert str(prog) == before


# -- what stays, and what it is then -----------------------------------------------------


def same(before, after, feed, fetch):
    """Both programs give the same bits."""
    a, b = (static.Executor().run(p, feed, fetch) for p in (before, after))
    for x, y in zip(a, b, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, y)


def test_outputs_and_limits_of_what_is_gone_are_forgotten():
    program = mg.trace(lambda x: [x * 1.0, mg.exp(x * 3.0)], np.ones(2))
    block = program.global_block()
    for name in ("mul_0", "mul_1"):
        static.error_clip(block.var(name), -1.0, 1.0)
    made = dead_code(program, ["mul_1"])
    assert (made.outputs, list(made.error_clips)) == ([], ["mul_1"])
    assert static.Program.from_json(made.to_json()).to_json() == made.to_json()


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


def test_a_value_that_is_overwritten_by_what_reads_it_keeps_its_size():
    def build():
        x = static.data("x", [-1, 3])
        y = static.cond(x.sum() > 0, lambda: x * 2.0, lambda: x)
        y.program.global_block().append_op("tanh", {"x": y}, {"out": y})
        return y, y[:2]

    prog, outs = program(build)
    root = specialise(prog, {"x": (1, 3)}).global_block()
    assert [root.var(v.name).shape for v in outs] == [(1, 3), (1, 3)]
