"""Compiled programs: the same bits as the interpreter, in fewer calls, and source a person can read."""

from __future__ import annotations

import gc
import linecache
import re
import shutil
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.compiler import step as pipeline
from minigrad.errors import MinigradError, ProgramError
from minigrad.static.program.operator import CONTROL, OpInfo

DESIGN = Path(mg.__file__).parents[1] / "docs" / "design.md"
CORPUS = {}


def case(build):
    """Enter a function that builds a program and returns (fetch, feed)."""
    CORPUS[build.__name__] = build
    return build


def numbers(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def built(build):
    prog = static.Program()
    with static.program_guard(prog):
        fetch, feed = build()
    return prog, fetch, feed


def update(kind, inputs, outputs, **attrs):
    block = static.program.program.default_program().global_block()
    block.append_op(kind, inputs, outputs, attrs, role="optimize")


# -- the corpus ----------------------------------------------------------------------------


@case
def shared_weights():
    w, x = static.parameter("w", numbers(0, 3, 3)), static.data("x", [-1, 3])
    h = mg.tanh(mg.matmul(mg.tanh(mg.matmul(x, w)), w))
    loss = (h * h).sum()
    static.append_backward(loss)
    return [loss, "w@GRAD"], {"x": numbers(1, 4, 3)}


@case
def broadcasting():
    a, b = static.parameter("a", numbers(0, 3, 1)), static.parameter("b", numbers(1, 4))
    x = static.data("x", [-1, 3, 4])
    loss = ((x * a + b) / (1 + mg.exp(a))).mean()
    static.append_backward(loss)
    return [loss, "a@GRAD", "b@GRAD"], {"x": numbers(2, 5, 3, 4)}


@case
def reductions():
    a = static.parameter("a", numbers(0, 3, 4))
    loss = mg.max(a, axis=0).sum() + mg.mean(a, axis=1, keepdims=True).sum() + mg.prod(a)
    loss = loss + mg.min(a) + mg.logsumexp(a, axis=1).sum() + mg.std(a) + mg.norm(a)
    static.append_backward(loss)
    return [loss, "a@GRAD"], {}


@case
def convolution_and_pooling():
    x, t = static.data("x", [2, 1, 8, 8]), static.data("t", [2], np.int64)
    k, b = static.parameter("k", numbers(0, 4, 1, 3, 3)), static.parameter("b", numbers(1, 4))
    w = static.parameter("w", numbers(3, 64, 3))
    h = mg.max_pool2d(mg.relu(mg.conv2d(x, k, b, padding=1)), kernel_size=2)
    loss = mg.cross_entropy(mg.matmul(mg.flatten(h, start=1), w), t)
    static.append_backward(loss)
    feed = {"x": numbers(2, 2, 1, 8, 8), "t": np.array([0, 2])}
    return [loss, "k@GRAD", "b@GRAD", "w@GRAD"], feed


@case
def strided_convolution():
    x, k = static.data("x", [2, 2, 8, 8]), static.parameter("k", numbers(0, 4, 2, 3, 3))
    h = mg.avg_pool2d(mg.sigmoid(mg.conv2d(x, k, stride=2, padding=1)), kernel_size=2)
    loss = (h * h).mean()
    static.append_backward(loss)
    return [loss, "k@GRAD"], {"x": numbers(2, 2, 2, 8, 8)}


def _loop(steps):
    def loop():
        w, x = static.parameter("w", numbers(0, 3, 3) / 2), static.data("x", [2, 3])

        def body(i, h):
            return i + 1, mg.tanh(mg.matmul(h, w) + x)

        _, h = static.while_loop(lambda i, h: i < steps, body, [0, x])
        loss = (h * h).sum() + w.sum()
        static.append_backward(loss)
        return [loss, "w@GRAD", h], {"x": numbers(2, 2, 3)}

    loop.__name__ = f"while_loop_of_{steps}_steps"
    return loop


def _branch(sign):
    def branch():
        w, v = static.parameter("w", numbers(0, 3)), static.parameter("v", numbers(1, 3))
        x = static.data("x", [3])
        y = static.cond(x.sum() > 0, lambda: mg.exp(w * x), lambda: (w - v) * mg.sin(v))
        loss = (y * y).sum()
        static.append_backward(loss)
        return [loss, "w@GRAD", "v@GRAD"], {"x": sign * np.ones(3)}

    branch.__name__ = "branch_taken" if sign > 0 else "branch_not_taken"
    return branch


for made in (_loop(0), _loop(1), _loop(4), _branch(1), _branch(-1)):
    case(made)


@case
def nested_control_flow():
    w, x = static.parameter("w", numbers(0, 3) / 2), static.data("x", [3])

    def body(i, h):
        h = static.cond(h.sum() > 0, lambda: mg.tanh(h * w), lambda: h - w * w)
        inner = static.while_loop(
            lambda j, g: j < i, lambda j, g: (j + 1, mg.sin(g * w) + x), [0, h]
        )
        return i + 1, inner[1]

    _, h = static.while_loop(lambda i, h: i < 4, body, [0, x])
    loss = (h * h).sum()
    static.append_backward(loss)
    return [loss, "w@GRAD", h], {"x": numbers(2, 3)}


@case
def recurrent_net():
    w, u = static.parameter("w", numbers(0, 4, 4) / 2), static.parameter("u", numbers(1, 3, 4))
    xs, start = static.data("xs", [-1, 2, 3]), static.parameter("h0", np.zeros((2, 4)))

    def step(x, h):
        z = mg.tanh(mg.matmul(x, u) + mg.matmul(h, w))
        return [z * z], [z]

    ys, hs = static.static_rnn(step, [xs], [start])
    loss = ys[0].mean() + hs[0].sum()
    static.append_backward(loss)
    return [loss, "w@GRAD", "u@GRAD", "h0@GRAD", ys[0]], {"xs": numbers(2, 5, 2, 3)}


def lstm(h, c, x, wx, wh, b):
    i, f, g, o = mg.split(mg.linear(x, wx, b) + h @ wh, num_or_sections=4, axis=1)
    c = mg.sigmoid(f) * c + mg.sigmoid(i) * mg.tanh(g)
    return mg.sigmoid(o) * mg.tanh(c), c


def lstm_parameters():
    shapes = {"wx": (3, 20), "wh": (5, 20), "b": (20,)}
    return [static.parameter(n, numbers(k, *s)) for k, (n, s) in enumerate(shapes.items())]


@case
def unrolled_lstm():
    xs, h0 = static.data("xs", [6, 2, 3]), static.data("h0", [2, 5])
    parameters, h, c, hs = lstm_parameters(), h0, h0, []
    for k in range(6):
        h, c = lstm(h, c, xs[k], *parameters)
        hs.append(h)
    loss = (h * h).sum() + mg.tanh(c).sum()
    static.append_backward(loss, parameter_list=["wx", "wh", "b", "h0"])
    for n in ("wx", "wh", "b"):
        update("sgd", {"param": n, "grad": f"{n}@GRAD"}, {"param_out": n}, learning_rate=0.1)
    return [loss, hs[2], "wh@GRAD", "h0@GRAD"], {"xs": numbers(5, 6, 2, 3), "h0": numbers(6, 2, 5)}


@case
def lstm_in_a_loop():
    xs, h0 = static.data("xs", [6, 2, 3]), static.data("h0", [2, 5])
    parameters = lstm_parameters()

    def cell(x, h, c):
        h, c = lstm(h, c, x, *parameters)
        return [h], [h, c]

    (ys,), _ = static.static_rnn(cell, [xs], [h0, h0])
    loss = (ys * ys).sum()
    static.append_backward(loss)
    return [loss, ys, "wx@GRAD", "wh@GRAD"], {"xs": numbers(5, 6, 2, 3), "h0": numbers(6, 2, 5)}


@case
def joined_products():
    x, y = static.data("x", [3, 4]), static.data("y", [3, 2])
    a, b = x * 2.0, mg.exp(y)
    z = mg.concat([a, x + 1.0, b, y * y], axis=1)
    t = mg.concat([x * x, x - 1.0], axis=0)
    u = mg.concat([a, a], axis=0)
    return [z, t, u, a], {"x": numbers(0, 3, 4), "y": numbers(1, 3, 2)}


@case
def gates_that_are_read_elsewhere():
    z, w = static.data("z", [3, 8]), static.parameter("w", numbers(2, 8, 8))
    a, b = mg.split(z @ w, 2, axis=1)
    c, d, e = mg.split(mg.tanh(z), (2, 2, 4), axis=-1)
    gate, other = mg.sigmoid(a), mg.tanh(b)
    loss = (gate * other * b).sum() + (mg.sigmoid(c) * mg.sigmoid(d) * mg.tanh(e)[:, :2]).sum()
    static.append_backward(loss)
    return [loss, gate, "w@GRAD"], {"z": numbers(1, 3, 8)}


@case
def gradient_of_a_sequence():
    w, xs = static.parameter("w", numbers(0, 3, 3) / 2), static.parameter("xs", numbers(5, 4, 2, 3))
    start = static.parameter("h0", np.zeros((2, 3)))

    def step(x, h):
        z = mg.tanh(x + mg.matmul(h, w))
        return [z], [z]

    ys, _ = static.static_rnn(step, [xs], [start])
    loss = (ys[0] * ys[0]).sum()
    static.append_backward(loss)
    return [loss, "w@GRAD", "xs@GRAD"], {}


@case
def second_derivatives():
    x = static.parameter("x", numbers(0, 3))
    y = (mg.tanh(x) * x * x).sum()
    (g,) = static.gradients(y, [x])
    (h,) = static.gradients((g * g).sum(), [x])
    return [y, g, h], {}


@case
def losses():
    x = static.parameter("x", np.random.default_rng(0).random((4, 3)))
    t, p = static.data("t", [4], np.int64), static.data("p", [4, 3])
    loss = mg.cross_entropy(x, t) + mg.cross_entropy(x, p) + mg.huber(x, p)
    loss = loss + mg.binary_cross_entropy(mg.sigmoid(x), p) + mg.nll(mg.log_softmax(x), t)
    loss = loss + mg.binary_cross_entropy_with_logits(x, p) + mg.mse(x, p)
    static.append_backward(loss)
    feed = {"t": np.array([0, 1, 2, 0]), "p": np.random.default_rng(3).random((4, 3))}
    return [loss, "x@GRAD"], feed


@case
def optimizers():
    w, u = static.parameter("w", numbers(0, 3)), static.parameter("u", numbers(1, 3))
    for name in ("velocity", "m1", "m2"):
        static.parameter(name, np.zeros(3), trainable=False)
    static.parameter("count", 0.0, trainable=False)
    static.parameter("rate", 0.1, trainable=False)
    loss = (w * w * u).sum() + mg.exp(u).sum()
    static.append_backward(loss)
    update(
        "momentum",
        {"param": "w", "grad": "w@GRAD", "velocity": "velocity", "learning_rate": "rate"},
        {"param_out": "w", "velocity_out": "velocity"},
        use_nesterov=True,
    )
    update(
        "adam",
        {"param": "u", "grad": "u@GRAD", "moment1": "m1", "moment2": "m2", "step": "count", "learning_rate": "rate"},
        {"param_out": "u", "moment1_out": "m1", "moment2_out": "m2", "step_out": "count"},
    )  # fmt: skip
    return [loss, "w@GRAD", "w"], {}


@case
def updates_in_slabs():
    x, y = static.data("x", [5, 3]), static.data("y", [5, 2])
    h = x
    for k, (rows, cols) in enumerate([(3, 4), (4, 4), (4, 2)]):
        w, b = (
            static.parameter(f"w{k}", numbers(k, rows, cols)),
            static.parameter(f"b{k}", numbers(9, cols)),
        )
        h = mg.tanh(mg.matmul(h, w) + b)
    loss = mg.mse(h, y)
    for p, g in static.append_backward(loss):
        v = static.parameter(f"v_{p.name}", np.zeros(p.shape), trainable=False)
        update(
            "momentum",
            {"param": p, "grad": g, "velocity": v},
            {"param_out": p, "velocity_out": v},
            learning_rate=0.1,
        )
    return [loss, "w1@GRAD", "v_b1"], {"x": numbers(7, 5, 3), "y": numbers(8, 5, 2)}


@case
def views_and_copies():
    a = static.parameter("a", numbers(0, 3, 4))
    b = mg.permute_dims(a)
    c = b[1:3]
    d = mg.concat([c, c * 2], axis=0)
    e, f = mg.split(d, 2)
    g = mg.stack([e, f])
    h = mg.reshape(g, (-1,))
    loss = (h * h).sum() + mg.cumsum(h).sum() + mg.where(a > 0, a, 0.0).sum()
    loss = loss + mg.take(a, np.array([0, 2, 2]), axis=0).sum() + mg.flip(a, axis=0)[0].sum()
    static.append_backward(loss)
    return [loss, "a@GRAD", b, c, d, e, g, h], {}


@case
def a_view_of_a_parameter_before_its_update():
    a = static.parameter("a", numbers(0, 3, 4))
    b = mg.reshape(a, (12,))
    loss = (b * b).sum()
    static.append_backward(loss)
    update("sgd", {"param": "a", "grad": "a@GRAD"}, {"param_out": "a"}, learning_rate=0.1)
    return [loss, b, b * 2, "a@GRAD", "a"], {}


@case
def a_copy_of_what_lies_apart():
    x = static.data("x", [300, 40], np.float32)
    number = static.program.program.default_program().global_block()
    number.append_op("assign", {}, {"out": number.create_var(name="two", shape=[])}, {"x": 2.0})
    return [mg.clone(x[:, :33]).sum(), "two"], {"x": numbers(0, 300, 40, dtype=np.float32)}


@case
def rows_by_condition():
    a, x = static.parameter("a", numbers(0, 5, 2)), static.data("x", [5])
    y = static.if_else(x > 0, lambda r: r * r, lambda r: mg.sin(r), a)
    loss = y.sum()
    static.append_backward(loss)
    return [loss, "a@GRAD"], {"x": numbers(3, 5)}


@case
def activations():
    a = static.parameter("a", numbers(0, 5, 2, dtype=np.float32))
    functions = (
        mg.relu, mg.sigmoid, mg.leaky_relu, mg.elu, mg.softplus, mg.silu, mg.gelu, mg.softmax, mg.abs, mg.square,
        lambda x: mg.clip(x, -1, 1), lambda x: mg.pow(mg.abs(x) + 1, 2.5), lambda x: mg.maximum(x, 0.5),
    )  # fmt: skip
    loss = sum((f(a) * f(a)).mean() for f in functions)
    static.append_backward(loss)
    return [loss, "a@GRAD"], {}


@case
def memory_order():
    a, b = static.parameter("a", numbers(0, 30, 40)), static.parameter("b", numbers(1, 40, 30))
    c = mg.permute_dims(a)
    d = c * mg.sin(c) + c
    loss = d.sum() + (c * c).mean() + (c + b).sum()
    static.append_backward(loss)
    return [loss, d, mg.concat([c, d], axis=0).sum(axis=1), "a@GRAD"], {}


# -- the same bits -------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORPUS)
def test_compiled_programs_give_the_bits_of_the_interpreter(name):
    prog, fetch, feed = built(CORPUS[name])
    exe, step = static.Executor(), static.compile(prog, feed, fetch=fetch)
    for _ in range(3):
        for one, other in zip(step(**feed), exe.run(prog, feed, fetch), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_array_equal(one, other)
    for var in prog.global_block().vars.values():
        if var.persistable and var.name in exe.scope.values:
            np.testing.assert_array_equal(step.parameters[var.name], exe.scope.values[var.name])


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("rung", ["specialise", "decompose", "dead_code"])
def test_every_rung_of_the_ladder_runs_and_prints(name, rung):
    prog, fetch, feed = built(CORPUS[name])
    lower = static.compile(prog, feed, fetch=fetch, stop_after=rung)
    assert f"# made by: {rung}" in str(lower)
    one = static.Executor().run(lower, feed, [getattr(f, "name", f) for f in fetch])
    other = static.Executor().run(prog, feed, fetch)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


# -- feeds, parameters, results ------------------------------------------------------------


def doubled():
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [-1]), static.parameter("w", [1.0, 2.0, 3.0])
        y = x * 2.0
        z = w * 1.0
    return prog, x, w, y, z


def test_one_variable_gives_one_array_and_a_list_gives_a_list():
    prog, _, _, y, _ = doubled()
    assert static.compile(prog, fetch=y)(x=np.ones(1)).tolist() == [2.0]
    assert [a.tolist() for a in static.compile(prog, fetch=[y])(x=np.ones(1))] == [[2.0]]


def test_results_share_no_memory_with_feeds_parameters_or_earlier_results():
    prog, x, w, y, z = doubled()
    step, feed = static.compile(prog, fetch=[x, w, y, z]), np.ones(3)
    first, second = step(x=feed), step(x=feed)
    owners = [feed, *step.parameters.values()]
    for k, a in enumerate(first):
        assert not any(np.shares_memory(a, b) for b in [*owners, *second, *first[:k]])


def test_feeds_of_other_shapes_compile_again_and_the_history_says_so():
    prog, _, _, y, _ = doubled()
    step = static.compile(prog, {"x": np.ones(2)}, fetch=y)
    assert step(x=np.ones(2)).shape == (2,)
    assert step(x=np.ones(5)).shape == (5,)
    assert step(x=np.ones(2)).shape == (2,)
    assert step.history == ["compiled for x [2]", "compiled for x [5]"]


def test_feeds_are_converted_as_the_executor_does():
    prog, _, _, y, _ = doubled()
    step = static.compile(prog, fetch=y)
    assert step(x=np.array([1, 2])).dtype == np.float64
    with pytest.raises(ProgramError, match=r"feed 'x' is float64\[1, 1\]"):
        step(x=np.ones((1, 1)))
    with pytest.raises(ProgramError, match="did you mean 'x'"):
        step(xx=np.ones(1))
    with pytest.raises(ProgramError, match="was not fed"):
        step()


def test_feeds_come_by_name_or_in_one_dict():
    prog, x, _, y, _ = doubled()
    step = static.compile(prog, fetch=y)
    assert step({"x": np.ones(2)}).tolist() == step({x: np.ones(2)}).tolist() == [2.0, 2.0]
    with pytest.raises(ProgramError, match=r"by name\n.*\n  repair: step\(\{'x': …\}\)"):
        step(np.ones(2))
    with pytest.raises(ProgramError, match=r"float64\[2, 2\], the program expects float64\[-1\]"):
        static.compile(prog, {"x": np.ones((2, 2))}, fetch=y)


@pytest.mark.parametrize(
    "feed",
    [
        np.ones((3, 4), np.float32).astype(np.float64),
        np.ones((3, 4), np.float32),
        np.asfortranarray(np.ones((3, 4))),
        np.ones((6, 8))[::2, ::2],
        np.ones((4, 3)).T,
        np.ones((3, 4))[::-1, ::-1],
        np.broadcast_to(1.0, (3, 4)),
        np.ones((3, 4)).tolist(),
        np.ones((3, 4), int),
        np.ones((3, 4)).view(np.recarray),
        np.ones((0, 4)),
    ],
    ids=lambda f: f"{type(f).__name__}",
)
@pytest.mark.parametrize("exact", [True, False])
def test_whatever_way_a_feed_is_stored_the_result_is_the_interpreters(feed, exact):
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [-1, 4]), static.parameter("w", numbers(0, 4, 2))
        loss = (mg.tanh(mg.matmul(x, w)) * x[:, :2]).sum()
        static.append_backward(loss)
    step = static.compile(prog, fetch=[loss, x, "w@GRAD"], exact=exact)
    ours, theirs = step(x=feed), static.Executor().run(prog, {"x": feed}, [loss, x, "w@GRAD"])
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
        assert not np.shares_memory(one, np.asarray(feed))
    for one in ours:
        one[...] = -9.0  # what is done to results does not reach the step
    for one, other in zip(step(x=feed), theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_read_may_have_an_open_size_beside_what_is_not():
    prog = static.Program()
    with static.program_guard(prog):
        _, x = static.data("unread", [-1, 3]), static.data("x", [-1])
        y = x * 2.0
    step = static.compile(prog, fetch=y)
    for feed in ({"x": np.ones(2)}, {"x": np.ones(2), "unread": np.ones((1, 3))}):
        assert step(**feed).tolist() == [2.0, 2.0]
        assert static.Executor().run(prog, feed, [y])[0].tolist() == [2.0, 2.0]


def test_one_array_may_be_fed_twice():
    prog = static.Program()
    with static.program_guard(prog):
        a, b = static.data("a", [-1]), static.data("b", [-1])
        c = mg.exp(a) * b + a
    both = np.arange(3.0)
    both.flags.writeable = False
    np.testing.assert_array_equal(
        static.compile(prog, fetch=c)(a=both, b=both), np.exp(both) * both + both
    )


def test_an_executor_shares_its_parameters():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", [1.0, 2.0])
        loss = (w * w).sum()
        static.append_backward(loss)
        update("sgd", {"param": "w", "grad": "w@GRAD"}, {"param_out": "w"}, learning_rate=0.25)
    exe = static.Executor()
    step = static.compile(prog, fetch=loss, executor=exe)
    for _ in range(2):
        step()
        exe.run(prog, fetch_list=[loss])
    np.testing.assert_array_equal(exe.scope.values["w"], np.array([1.0, 2.0]) / 16)
    exe.scope.values["w"] = np.array([8.0, 8.0])
    assert step() == 128.0


def test_parameters_are_updated_in_place():
    prog, fetch, feed = built(CORPUS["updates_in_slabs"])
    step = static.compile(prog, fetch=fetch)
    before = {n: (a, a.copy()) for n, a in step.parameters.items() if n.startswith("w")}
    step(**feed)
    for name, (array, old) in before.items():
        assert step.parameters[name] is array
        assert not np.array_equal(array, old)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fetch": "nobody"}, "no variable of this program"),
        ({"fetch": "w", "stop_after": "dead_cod"}, "did you mean 'dead_code'"),
        ({"fetch": "w", "feed": {"y": 1}}, "no data of this program"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    prog = doubled()[0]
    with pytest.raises(ProgramError, match=message):
        static.compile(prog, **arguments)
    with pytest.raises(ProgramError, match="takes a Program"):
        static.compile("prog")


# -- source --------------------------------------------------------------------------------


def test_the_source_is_prose_with_names_of_its_own():
    prog = static.Program()
    with static.program_guard(prog):
        a = static.parameter("a@1/b-c", [1.0, 2.0])
        loss = mg.tanh(a).sum()
        static.append_backward(loss)
    step = static.compile(prog, fetch=[loss, "a@1/b-c@GRAD"])
    assert "# tanh_0 = tanh(a_1_b_c)" in step.source
    assert "# grad of: tanh_0 = tanh(a_1_b_c)" in step.source
    assert "a@1" not in step.source
    assert "a@1/b-c" in step.names.values()


def test_source_is_a_function_that_runs_on_its_own():
    prog, _, _, y, _ = doubled()
    step = static.compile(prog, {"x": np.ones(2)}, fetch=[y])
    space = {"np": np}
    exec(step.source, space)
    run, fits = space["prepare"]({"w": np.ones(3)}, {"zeros": np.zeros}, {})
    assert fits(np.ones(2))
    assert not fits(np.ones(3))
    assert run(np.ones(2))[0].tolist() == [2.0, 2.0]


def test_an_error_names_the_operator_and_the_users_line():
    prog = static.Program()
    with static.program_guard(prog):
        x, t = static.data("x", [2, 3]), static.data("t", [2], np.int64)
        loss = mg.cross_entropy(x, t)
    step = static.compile(prog, fetch=loss)
    with pytest.raises(ProgramError, match="cross_entropy") as caught:
        step(x=np.zeros((2, 3)), t=np.array([0, 7]))
    assert "loss = mg.cross_entropy(x, t)" in str(caught.value)
    assert "classes from 0 to 7" in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value))
    assert "cross_entropy_refuses(x, t)" in shown  # the generated line, from linecache


def test_a_loop_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr("minigrad.compiler.source.STEP_LIMIT", 20)
    prog = static.Program()
    with static.program_guard(prog):
        (i,) = static.while_loop(lambda i: i >= 0, lambda i: [i + 1], [0])
    with pytest.raises(MinigradError, match="within 20 steps"):
        static.compile(prog, fetch=i)()


def test_a_kernel_of_the_user_is_called_by_its_name():
    @mg.primitive
    def twice_as_much(x):
        return np.multiply(x, 2) if np.max(x) > 0 else x

    try:
        prog = static.Program()
        with static.program_guard(prog):
            x = static.data("x", [2])
            y = twice_as_much(x)
        step = static.compile(prog, fetch=y)
        assert "twice_as_much_kernel(x)" in step.source
        assert step(x=np.ones(2)).tolist() == [2.0, 2.0]
        assert step(x=-np.ones(2)).tolist() == [-1.0, -1.0]
    finally:
        del mg.primitives.REGISTRY["twice_as_much"]


# -- loops, and sums in another order ------------------------------------------------------


def test_what_a_loop_saves_is_not_overwritten_before_its_backward():
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [2, 3]), static.parameter("w", numbers(0, 3, 3))
        start = x * 2.0
        _, h = static.while_loop(
            lambda i, h: i < 3, lambda i, h: (i + 1, mg.sin(h * h) + mg.matmul(h, w)), [0, start]
        )
        loss = (mg.exp(mg.tanh(h * 3.0)) * mg.cos(h)).sum()
        static.append_backward(loss)
    feed = {"x": numbers(1, 2, 3)}
    step, exe = static.compile(prog, fetch=["w@GRAD", loss]), static.Executor()
    for one, other in zip(step(**feed), exe.run(prog, feed, ["w@GRAD", loss]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", CORPUS)
def test_inexact_programs_differ_in_the_last_bits_at_most(name):
    prog, fetch, feed = built(CORPUS[name])
    step = static.compile(prog, feed, fetch=fetch, exact=False)
    for one, other in zip(step(**feed), static.Executor().run(prog, feed, fetch), strict=True):
        np.testing.assert_allclose(
            one, other, rtol=1e-6 if one.dtype == np.float32 else 1e-12, atol=1e-12
        )


def test_what_a_loop_hands_on_under_another_name_is_not_overwritten_before_its_backward():
    prog = static.Program()
    with static.program_guard(prog):
        x, u = static.data("x", [1]), static.parameter("u", [0.7])
        m = x * u * 0.5
        _, a, b = static.while_loop(
            lambda i, a, b: i < 3, lambda i, a, b: (i + 1, mg.tanh(x / (1 + b * b)), a), [0, m, x]
        )
        pairs = static.append_backward(mg.sum((a + b * 0.69) * m) + mg.mean(m) * 0.5)
    feed, fetch = {"x": np.array([-0.327])}, [g for _, g in pairs]
    (expected,) = static.Executor().run(prog, feed, fetch)
    (got,) = static.compile(prog, fetch=fetch)(**feed)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_what_every_step_of_a_nest_of_loops_computes_alike_has_the_right_bits():
    prog = static.Program()
    with static.program_guard(prog):
        w, x = static.parameter("w", numbers(0, 3, 3) / 2), static.data("x", [2, 3])

        def body(i, h):
            inner = static.while_loop(
                lambda j, g: j < i, lambda j, g: (j + 1, mg.sin(g) + mg.exp(w)[:2] * 0.1), [0, h]
            )
            return i + 1, mg.matmul(inner[1], mg.cos(mg.exp(w))) + x

        _, h = static.while_loop(lambda i, h: i < 3, body, [0, x])
        loss = (h * h).sum()
        static.append_backward(loss)
    feed = {"x": numbers(1, 2, 3)}
    step = static.compile(prog, fetch=[loss, "w@GRAD", h])
    for one, other in zip(
        step(**feed), static.Executor().run(prog, feed, [loss, "w@GRAD", h]), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_an_op_that_cannot_be_compiled_says_so(monkeypatch):
    monkeypatch.setitem(CONTROL, "odd", OpInfo("odd", (), ("out",), ()))
    prog = static.Program()
    block = prog.global_block()
    out = block.create_var("y", (2,))
    block.ops.append(static.Operator("odd", {}, {"out": [out.name]}))
    with pytest.raises(ProgramError, match=r"odd cannot be compiled yet\.\n.*\n.*static.Executor"):
        static.compile(prog, fetch=out)


def test_arrays_written_in_loops_are_compiled():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", [1.0, 2.0])
        held = static.create_array(4, (2,))

        def body(i, h, held):
            return i + 1, h * w, static.array_write(held, i, h)

        _, _, held = static.while_loop(lambda i, h, held: i < 4, body, [0, w, held])
        loss = (static.array_read(held, 2) * static.array_read(held, 3)).sum()
        static.append_backward(loss)
    step = static.compile(prog, fetch=[loss, "w@GRAD"])
    for one, other in zip(step(), static.Executor().run(prog, {}, [loss, "w@GRAD"]), strict=True):
        np.testing.assert_array_equal(one, other)


# -- limits --------------------------------------------------------------------------------


def nested_loops(depth, x):
    if not depth:
        return x * 1.5
    return static.while_loop(
        lambda i, h: i < 1, lambda i, h: (i + 1, nested_loops(depth - 1, h)), [0, x]
    )[1]


def nested_branches(depth, x):
    if not depth:
        return x * 1.5
    return static.cond(x.sum() > 0, lambda: nested_branches(depth - 1, x), lambda: x * 2.0)


@pytest.mark.parametrize(("nested", "depth"), [(nested_loops, 25), (nested_branches, 100)])
def test_blocks_that_are_nested_too_deep_are_refused(nested, depth):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        prog = static.Program()
        with static.program_guard(prog):
            y = nested(depth, static.data("x", [2]))
    finally:
        sys.setrecursionlimit(limit)
    sys.setrecursionlimit(260)
    try:
        with pytest.raises(ProgramError, match=r"nested too deep(.|\n)*at test_compile.py"):
            static.compile(prog, fetch=y)
    finally:
        sys.setrecursionlimit(limit)


def test_the_source_of_a_step_is_forgotten_with_it():
    prog, _, _, y, _ = doubled()
    before = set(linecache.cache)
    step = static.compile(prog, {"x": np.ones(2)}, fetch=y)
    assert step(x=np.ones(3)).shape == (3,)
    assert sum("minigrad compiled" in name for name in set(linecache.cache) - before) == 2
    del step
    gc.collect()
    assert not any("minigrad compiled" in name for name in set(linecache.cache) - before)


@pytest.mark.parametrize("pred", [True, False])
def test_a_value_and_its_copy_that_a_branch_saves_both_reach_its_backward(pred):
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", np.array([0.5, 0.8]))

        def with_a_copy():
            made = mg.exp(w)
            return made * mg.assign(made) * w

        loss = static.cond(static.data("pred", [], "bool"), with_a_copy, lambda: w * w).sum()
        static.append_backward(loss)
    (expected,) = static.Executor().run(program, {"pred": pred}, ["w@GRAD"])
    (found,) = static.compile(program, fetch=["w@GRAD"])({"pred": pred})
    np.testing.assert_array_equal(found, expected)


def test_design_has_the_passes_in_order_and_says_which_need_exact_to_be_false():
    table = DESIGN.read_text(encoding="utf-8").partition("## The compiler's passes")[2]
    passes = [*pipeline.PASSES, *pipeline.INEXACT]
    files = [p.__module__.replace("minigrad.", "").replace(".", "/") + ".py" for p in passes]
    rows = {
        f: row for row in table.splitlines() for f in re.findall(r"`(compiler/passes/\w+.py)`", row)
    }
    assert [f for f in rows if f in files] == files
    only = {f for f in files if "hence only with `exact=False`" in rows[f]}
    assert only == set(files[len(pipeline.PASSES) :])


def test_a_value_of_which_only_the_shape_is_read_is_there():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [3])
        rows = mg.select_rows(x, x > 0)
        (g,) = static.gradients(mg.cos(rows) + rows * 2.0, [x])
    feed = {"x": np.array([1.0, -1.0, 2.0])}
    wanted = static.Executor().run(prog, feed, [g])
    np.testing.assert_array_equal(static.compile(prog, fetch=[g])(feed), wanted)


def test_a_long_chain_behind_which_a_parameter_changes_is_compiled():
    prog = static.Program()
    with static.program_guard(prog):
        y = static.parameter("w", [1.0, 2.0])
        for _ in range(1500):
            y = y * 1.001
        mg.optim.SGD(lr=0.1).minimize(y.sum())
    step, other = static.compile(prog), static.Executor()
    step()
    other.run(prog)
    np.testing.assert_array_equal(step.parameters["w"], other.scope.values["w"])


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=needs_cc)])
def test_data_of_an_open_size_that_nobody_reads_need_not_be_fed(backend):
    prog = static.Program()
    with static.program_guard(prog):
        x, _ = static.data("x", [3]), static.data("unread", [-1, 2])
        y = mg.exp(mg.sin(mg.tanh(x * 2.0)))
    step = static.compile(prog, fetch=y, backend=backend)
    wanted = static.Executor().run(prog, {"x": np.ones(3)}, [y])[0]
    np.testing.assert_array_equal(step(x=np.ones(3)), wanted)
    np.testing.assert_array_equal(step(x=np.ones(3), unread=np.ones((4, 2))), wanted)
    np.testing.assert_array_equal(step(x=np.ones(3)), wanted)


def test_the_source_of_a_program_with_an_open_size_is_refused():
    prog = static.Program()
    with static.program_guard(prog):
        y = static.data("x", [-1]) * 2.0
    with pytest.raises(ProgramError, match=r"size of 'x' is open(.|\n)*repair: feed="):
        static.compile(prog, fetch=y, stop_after="source")
