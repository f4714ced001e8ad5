"""backend="jax": the same pure function on NumPy and under jax.jit gives the numbers of the interpreter.

Run with ``pip install jax``; skipped where JAX is not installed.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim, static
from minigrad.errors import ProgramError
from tests.compiler.test_every_op import program_of
from tests.ops.oracle import wanted
from tests.ops.test_records import DIFFERENTIABLE
from tests.trust import readings
from tests.trust.corpus import CASES

EVERY = pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])


@pytest.fixture(scope="module", autouse=True)
def quick():
    """XLA does not try hard: what it compiles means the same, in half the time."""
    try:
        import jax
    except ImportError:
        yield
        return
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def jitted(program, feed, fetch_list):
    step = static.compile(program, fetch=fetch_list, backend="jax", max_steps=20)
    return [np.asarray(v) for v in step(**feed)]


def assert_near(found, expected, tolerance):
    np.testing.assert_allclose(found[0], expected[0], rtol=tolerance, atol=tolerance)
    for g, want in zip(found[1], expected[1], strict=True):
        assert (g.shape, g.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(g, want, rtol=tolerance, atol=tolerance)


@EVERY
def test_jax_agrees_with_the_interpreter(case):
    pytest.importorskip("jax", reason="pip install jax")
    program, names = readings.with_gradients(case.traced, case.args)
    if any(op.type in ("select_rows", "merge_rows") for op in program.global_block().ops):
        with pytest.raises(ProgramError, match="how many rows a mask chooses"):
            readings.fetched(jitted, program, names, case.args)
        return
    found = readings.fetched(jitted, program, names, case.args)
    assert_near(found, readings.interpreted(case.traced, case.args), 1e-9)


REFUSED = ("select_rows", "spread_rows", "merge_rows")


@pytest.mark.parametrize("record", DIFFERENTIABLE, ids=[r.type for r in DIFFERENTIABLE])
def test_every_op_and_its_first_and_second_gradients_agree_on_jax(record):
    pytest.importorskip("jax", reason="pip install jax")
    samples = [
        (s, positions)
        for s in record.samples[:3]  # numbers, rows and matrices
        if (positions := wanted(record, s))
        and not any(np.asarray(a).dtype.kind == "b" for a in s.args[1:])
    ]
    if not samples:
        pytest.skip("no gradient, or a mask")
    for sample, positions in samples:
        program, feed, fetch = program_of(record, sample, positions)
        if record.type in REFUSED:
            with pytest.raises(ProgramError, match=r"rows a mask chooses(.|\n)*repair"):
                jitted(program, feed, fetch)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # samples at kinks and poles
            theirs = static.Executor().run(program, feed, fetch)
        for var, a, b in zip(fetch, jitted(program, feed, fetch), theirs, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), var
            near = 1e-9 if a.dtype.itemsize > 4 else 1e-4
            size = max(1.0, np.nan_to_num(np.abs(b)).max(initial=0.0))
            np.testing.assert_allclose(a, b, near, near * size, err_msg=f"{var}, {sample.attrs}")


# -- models, with their updates ---------------------------------------------------------------


def mlp():
    model = nn.Sequential(nn.Linear(4, 8, seed=0), mg.relu, nn.Linear(8, 3, seed=1))
    return model, np.random.default_rng(0).normal(size=(6, 4))


def cnn():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, seed=0), mg.relu, lambda x: mg.max_pool2d(x, kernel_size=2),
        lambda x: mg.flatten(x, start=1), nn.Linear(4 * 4 * 4, 3, seed=1),
    )  # fmt: skip
    return model, np.random.default_rng(0).normal(size=(6, 1, 8, 8))


class Reader(nn.Module):
    """A small transformer: positions, one block of attention and a feed-forward net, the mean over places."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiHeadAttention(8, 2, seed=0)
        self.norm = nn.LayerNorm(8)
        self.wide, self.out = nn.Linear(8, 16, seed=1), nn.Linear(16, 3, seed=2)

    def forward(self, x):
        h = self.norm(x + self.attention(x))
        return mg.mean(self.out(mg.gelu(self.wide(h))), axis=1)


def transformer():
    return Reader(), np.random.default_rng(0).normal(size=(6, 5, 8))


def training(model, x):
    """The program of a training step with Adam."""
    program = static.Program()
    with static.program_guard(program):
        data = static.data("x", x.shape, dtype=x.dtype)
        target = static.data("t", [len(x)], dtype="int64")
        loss = mg.cross_entropy(model(data), target)
        pairs = optim.Adam(lr=0.01).minimize(loss)
    return program, loss, pairs


@pytest.mark.parametrize("make", [mlp, cnn, transformer])
def test_ten_steps_of_a_model_are_those_of_the_executor(make):
    pytest.importorskip("jax", reason="pip install jax")
    model, x = make()
    program, loss, pairs = training(model, x)
    fetch = [loss, *(g for _, g in pairs)]
    feed = {"x": x, "t": np.arange(len(x)) % 3}
    theirs, exe = [], static.Executor()
    step = static.compile(program, fetch=fetch, backend="jax")
    for _ in range(10):
        ours, theirs = step(**feed), exe.run(program, feed, fetch)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    for name, value in step.parameters.items():
        np.testing.assert_allclose(
            value, exe.scope.values.get(name, program.initial.get(name)), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
@pytest.mark.parametrize(
    "dtypes", ["float32 float64", "float64 float32", "int64 float32", "int64 int64"]
)
def test_a_convolution_takes_images_and_filters_of_two_dtypes(name, dtypes):
    pytest.importorskip("jax", reason="pip install jax")
    rng = np.random.default_rng(0)
    shapes = [2, 3, 5, 4], [3, 3, 2, 2]
    feed = {
        n: rng.integers(-4, 5, s).astype(d)
        for n, s, d in zip("xw", shapes, dtypes.split(), strict=True)
    }
    program = static.Program()
    with static.program_guard(program):
        x, w = (static.data(n, v.shape, v.dtype) for n, v in feed.items())
        y = getattr(mg, name)(x, w)
        fetch = [y]
        if "int" not in dtypes:
            x.stop_gradient = w.stop_gradient = False
            fetch += static.gradients([(y * y).sum()], [x, w])
    run = static.Executor().run(program, feed, fetch)
    for a, b in zip(jitted(program, feed, fetch), run, strict=True):
        np.testing.assert_allclose(a, b, strict=True, rtol=1e-5)


def test_an_executor_lends_its_parameters_and_gets_them_back():
    pytest.importorskip("jax", reason="pip install jax")
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0, 2.0])
        loss = (w * w).sum()
        optim.SGD(lr=0.1).minimize(loss)
    exe = static.Executor()
    exe.run(program, fetch_list=[loss])
    step = static.compile(program, fetch=loss, executor=exe, backend="jax")
    assert float(step()) == pytest.approx(5 * 0.8**2)
    np.testing.assert_allclose(exe.scope.values["w"], [0.64, 1.28])


@pytest.mark.parametrize(
    "change",
    [
        lambda x: mg.setitem(x, 0.0, x < 2),
        lambda x: mg.setitem(x, 0.0, np.array([True, False, True])),
    ],
)
def test_a_value_put_at_a_mask_is_refused_with_the_line_and_what_does_it(change):
    pytest.importorskip("jax", reason="pip install jax")
    program = mg.trace(change, np.arange(3.0))
    words = r"index_put needs values[\s\S]*test_jax.py:\d+: \[?lambda x: mg.setitem[\s\S]*mg.where\(mask, y, x\)"
    with pytest.raises(ProgramError, match=words):
        jitted(program, {"x0": np.arange(3.0)}, program.outputs)
    program = mg.trace(lambda x: mg.where(x < 2, 0.0, x), np.arange(3.0))
    (value,) = jitted(program, {"x0": np.arange(3.0)}, program.outputs)
    assert value.tolist() == [0.0, 0.0, 2.0]


def test_one_seed_means_one_mask_on_every_backend():
    pytest.importorskip("jax", reason="pip install jax")
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [50])
        y = mg.dropout(x, 0.5, seed=3)
    feed = {"x": np.ones(50)}
    (expected,) = static.Executor().run(program, feed, [y])
    np.testing.assert_array_equal(static.compile(program, fetch=y, backend="jax")(**feed), expected)


def test_dropout_is_the_same_where_jax_computes_in_several_threads():
    """Seeds have 64 bits, and so have the numbers: a thread of JAX's own would halve both."""
    pytest.importorskip("jax", reason="pip install jax")
    program, total = static.Program(), 0
    with static.program_guard(program):
        x, seed = static.data("x", [30, 30]), static.data("seed", [], "int64")
        w = static.parameter("w", np.eye(30))
        for k in range(8):
            h = mg.dropout(mg.tanh((x + k) @ w), 0.1, seed=seed + k)
            total = total + mg.dropout(mg.tanh(h @ w), 0.1, seed=seed - k) @ x
        loss = (total * total).mean()
        static.append_backward(loss)
    step = static.compile(program, fetch=[loss, "w@GRAD"], backend="jax")
    values = np.random.default_rng(0).normal(size=(30, 30)) / 30
    for start in range(2**40 + 2**31, 2**62, 2**59):
        feed = {"x": values, "seed": np.int64(start)}
        expected = static.Executor().run(program, feed, [loss, "w@GRAD"])
        for ours, theirs in zip(step(**feed), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)


# -- shapes, loops, errors ----------------------------------------------------------------------


def doubling():
    """x doubled n times, and its gradient."""
    program = static.Program()
    with static.program_guard(program):
        x, n = static.data("x", []), static.data("n", [], dtype="int64")
        x.stop_gradient = False
        _, y = static.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * 2.0), [0, x])
    return program, x, y


def test_a_while_loop_runs_forward_for_as_many_steps_as_it_takes():
    pytest.importorskip("jax", reason="pip install jax")
    program, _, y = doubling()
    step = static.compile(program, fetch=y, backend="jax")
    assert [float(step(x=1.0, n=n)) for n in (0, 3, 10)] == [1.0, 8.0, 1024.0]
    assert len(step.history) == 1


def test_the_gradient_of_a_while_loop_needs_a_bound_and_says_so():
    pytest.importorskip("jax", reason="pip install jax")
    program, x, y = doubling()
    with static.program_guard(program):
        (grad,) = static.gradients([y], [x])
    with pytest.raises(ProgramError, match=r"values of every step(.|\n)*repair: (.|\n)*max_steps"):
        static.compile(program, fetch=grad, backend="jax")(x=1.0, n=3)
    step = static.compile(program, fetch=grad, backend="jax", max_steps=5)
    assert [float(step(x=1.0, n=n)) for n in (0, 3, 5)] == [1.0, 8.0, 32.0]
    with pytest.raises(ProgramError, match="did not end within max_steps=5"):
        step(x=1.0, n=6)


def test_other_shapes_are_compiled_again_and_the_history_says_so():
    pytest.importorskip("jax", reason="pip install jax")
    program = static.Program()
    with static.program_guard(program):
        y = static.data("x", [-1]).sum()
    step = static.compile(program, fetch=y, backend="jax")
    assert [float(step(x=np.ones(n))) for n in (2, 3, 2)] == [2.0, 3.0, 2.0]
    assert step.history == ["compiled for x [2]", "compiled for x [3]"]


def test_wrong_feeds_are_refused_before_anything_runs():
    pytest.importorskip("jax", reason="pip install jax")
    program = static.Program()
    with static.program_guard(program):
        y = static.data("x", [2]).sum()
    step = static.compile(program, fetch=y, backend="jax")
    for feed, said in (
        ({}, "was not fed"),
        ({"x": np.ones(3)}, r"expects float64\[2\]"),
        ({"y": 1.0}, "no data"),
    ):
        with pytest.raises(ProgramError, match=said):
            step(**feed)


def test_without_jax_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("minigrad.backends.lowering.find_spec", lambda name: None)
    with pytest.raises(ProgramError, match=r"pip install jax"):
        static.compile(static.Program(), backend="jax")


def test_an_unknown_backend_is_refused_with_the_nearest_one():
    with pytest.raises(ProgramError, match="did you mean 'jax'"):
        static.compile(static.Program(), backend="jaxx")


def test_importing_minigrad_loads_no_jax():
    code = "import minigrad, minigrad.compiler, sys; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_on_four_devices_the_gradients_are_those_on_one():
    pytest.importorskip("jax", reason="pip install jax")
    script = Path(__file__).parents[2] / "examples" / "four_devices.py"
    done = subprocess.run(
        [sys.executable, script, "--steps", "3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "4 devices" in done.stdout
