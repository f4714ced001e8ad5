"""export_onnx: ONNX Runtime computes the same numbers, forward and backward; what cannot be exported is named.

Run with ``pip install onnx onnxruntime``; skipped where onnx or onnxruntime is not installed.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim, static
from minigrad.errors import ProgramError
from minigrad.primitives.registry import REGISTRY
from tests.backends.test_jax import cnn, mlp, training, transformer
from tests.compiler.test_every_op import program_of
from tests.ops.oracle import wanted
from tests.ops.test_records import DIFFERENTIABLE
from tests.trust import readings
from tests.trust.corpus import CASES

#: what the runtime has in single precision only, although ONNX allows double
SINGLE = {
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "atan2",
    "erf",
    "gelu",
}


#: what ONNX has not, with a word of the message
NONE = {
    "inv": "linalg.inv", "solve": "linalg.solve", "det": "cofactor", "cofactor": "svd", "cholesky": "cholesky",
    "dropout": "for_test", "select_rows": "mask", "spread_rows": "mask", "merge_rows": "mask",
}  # fmt: skip


OF_CORPUS = {
    "inverse and determinant": "linalg.inv", "a loop of four steps": "while loop", "a loop that runs until": "while loop",
    "a loop in a loop": "while loop", "angle of a point": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def runtime():
    pytest.importorskip("onnx", reason="pip install onnx onnxruntime")
    made = pytest.importorskip("onnxruntime", reason="pip install onnx onnxruntime")
    made.set_default_logger_severity(4)

    def run(program, feed, fetch_list):
        """Export, check, and run it elsewhere."""
        session = made.InferenceSession(
            static.export_onnx(program, feed=feed, fetch=fetch_list).SerializeToString()
        )
        reads = {i.name for i in session.get_inputs()}
        return session.run(None, {k: np.asarray(v) for k, v in feed.items() if k in reads})

    return run


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_the_corpus_and_its_gradients_go_round_trip(case, runtime):
    program, names = readings.with_gradients(case.traced, case.args)
    if OF_CORPUS.get(case.name):
        with pytest.raises(ProgramError, match=OF_CORPUS[case.name]):
            readings.fetched(runtime, program, names, case.args)
        return
    if case.name in OF_CORPUS:
        pytest.skip("the runtime has it in single precision only")
    found = readings.fetched(runtime, program, names, case.args)
    expected = readings.interpreted(case.traced, case.args)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-12)
    for g, want in zip(found[1], expected[1], strict=True):
        assert (g.shape, g.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(g, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("record", DIFFERENTIABLE, ids=[r.type for r in DIFFERENTIABLE])
def test_every_op_and_its_first_and_second_gradients_agree(record, runtime):
    sample = record.samples[0]
    positions = wanted(record, sample)
    if not positions or any(np.asarray(a).dtype.kind == "b" for a in sample.args[1:]):
        pytest.skip("no gradient, or a mask")
    if record.type in SINGLE:
        sample = type(sample)(tuple(_single(a) for a in sample.args), sample.attrs)
        positions = wanted(record, sample)
    program, feed, fetch = program_of(record, sample, positions)
    if record.type in NONE:
        with pytest.raises(
            ProgramError, match=f"(?s)(?=.*no counterpart in ONNX).*{NONE[record.type]}"
        ):
            runtime(program, feed, fetch)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # samples at kinks and poles
        theirs = static.Executor().run(program, feed, fetch)
    near = 1e-5 if record.type in SINGLE else 1e-11
    for var, a, b in zip(fetch, runtime(program, feed, fetch), theirs, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), var
        np.testing.assert_allclose(a, b, rtol=near, atol=near, err_msg=f"{var}, {sample.attrs}")


def _single(value):
    return (
        value.astype(np.float32)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
        else value
    )


@pytest.mark.parametrize("make", [mlp, cnn, transformer])
def test_a_training_step_of_a_model_gives_the_same_gradients_in_single_precision(make, runtime):
    model, x = make()
    model.astype("float32")
    program, loss, pairs = training(model, x.astype(np.float32))
    fetch = [loss.name, *(g.name for _, g in pairs)]
    feed = {"x": x.astype(np.float32), "t": np.arange(len(x)) % 3}
    theirs = static.Executor().run(program, feed, fetch)
    for a, b in zip(runtime(program, feed, fetch), theirs, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_recurrent_network_is_unrolled_forward_and_backward(runtime):
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [4, 2, 3])
        w = static.parameter("w", np.random.default_rng(0).normal(size=(3, 3)))
        (hs,), _ = static.static_rnn(
            lambda a, h: ([mg.tanh(a + h @ w)],) * 2, [x], [np.zeros((2, 3))]
        )
        loss = (hs * hs).sum()
        static.append_backward(loss)
    feed = {"x": np.random.default_rng(1).normal(size=(4, 2, 3))}
    theirs = static.Executor().run(program, feed, [loss, "w@GRAD"])
    for a, b in zip(runtime(program, feed, [loss.name, "w@GRAD"]), theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_branch_and_a_loop_without_gradient_stay_control_flow(runtime):
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [])
        y = static.cond(x > 0, lambda: x * 2.0, lambda: -x)
        _, z = static.while_loop(
            lambda i, s: s < 100.0, lambda i, s: (i + 1, s * 2.0 + y), [0, x * 0.0 + 1.0]
        )
    for value in (3.0, -3.0, 200.0):
        feed = {"x": np.array(value)}
        found = runtime(program, feed, [y.name, z.name])
        np.testing.assert_array_equal(found, static.Executor().run(program, feed, [y, z]))
    model = static.export_onnx(program, fetch=[y, z])
    assert {"If", "Loop"} <= {n.op_type for n in model.graph.node}


def test_a_value_that_both_sides_of_a_branch_save_for_their_gradients_is_that_of_either(runtime):
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [3])
        x.stop_gradient = False
        a = x * 2.0

        def powers(function):
            y = mg.assign(a)  # another name for the value outside
            return mg.square(y) * function(y)

        out = static.cond(mg.sum(x) > 0.0, lambda: powers(mg.exp), lambda: powers(mg.tanh))
        ((_, gradient),) = static.append_backward(mg.sum(out), [x])
    for sign in (1.0, -1.0):
        feed = {"x": sign * np.array([1.0, 2.0, 3.0])}
        (wanted,) = static.Executor().run(program, feed, [gradient])
        np.testing.assert_allclose(runtime(program, feed, [gradient])[0], wanted)


def test_an_updated_parameter_becomes_an_output_of_its_own(runtime):
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0, 2.0])
        loss = (w * w).sum()
        optim.SGD(lr=0.1).minimize(loss)
    np.testing.assert_allclose(runtime(program, {}, ["w"])[0], [0.8, 1.6])
    assert [o.name for o in static.export_onnx(program, fetch="w").graph.output] == ["w_out"]


def test_the_file_names_inputs_outputs_and_parameters_as_the_program_does(tmp_path):
    onnx = pytest.importorskip("onnx", reason="pip install onnx onnxruntime")
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [-1, 3]), static.parameter("w", np.ones((3, 1)))
        loss = ((x @ w) ** 2).mean()
        static.append_backward(loss)
    path = tmp_path / "model.onnx"
    static.export_onnx(program, path, feed={"x": (5, 3)}, fetch=[loss, "w@GRAD"])
    graph = onnx.load(path).graph
    assert [i.name for i in graph.input] == ["x"]
    assert [o.name for o in graph.output] == [loss.name, "w@GRAD"]
    assert "w" in [t.name for t in graph.initializer]
    onnx.shape_inference.infer_shapes(
        onnx.load(path), check_type=True, strict_mode=True, data_prop=True
    )


def test_parameters_of_an_executor_are_stored(runtime):
    pytest.importorskip("onnx", reason="pip install onnx onnxruntime")
    from onnx import numpy_helper

    program, exe = static.Program(), static.Executor()
    with static.program_guard(program):
        y = static.parameter("w", [1.0]) * 2.0
    exe.scope.values["w"] = np.array([7.0])
    (stored,) = static.export_onnx(program, fetch=y, executor=exe).graph.initializer[:1]
    assert numpy_helper.to_array(stored) == 7.0


def test_nodes_are_called_after_the_operator_that_they_come_from():
    pytest.importorskip("onnx", reason="pip install onnx onnxruntime")
    program = static.Program()
    with static.program_guard(program):
        y = mg.exp(mg.log1p(static.data("x", [2])))
    nodes = static.export_onnx(program, fetch=y).graph.node
    assert [n.name for n in nodes][:-1] == ["log1p/Add", "log1p/Log", "exp/Exp"]


def test_whole_numbers_are_divided_as_numpy_divides_them(runtime):
    program = static.Program()
    with static.program_guard(program):
        x, y = (static.data(name, [4], np.int64) for name in "xy")
        fetch = [(x // y).name, (x % y).name]
    feed = {"x": np.array([7, -7, 7, -7]), "y": np.array([2, 2, -2, -2])}
    for a, b in zip(
        runtime(program, feed, fetch), static.Executor().run(program, feed, fetch), strict=True
    ):
        assert a.dtype == b.dtype and a.tolist() == b.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_vectors_matrices_and_stacks_turned_or_not(dtype, runtime):
    program = static.Program()
    with static.program_guard(program):
        v, m, s = (static.data(n, [3] * k, dtype) for k, n in enumerate("vms", 1))
        for x in (v, m, s):
            x.stop_gradient = False
        factors = [v, m, mg.transpose(m), mg.transpose(m) * 2.0, s, mg.swapaxes(s, -1, -2)]
        fetch = [a @ b for a in factors for b in factors]
        fetch += static.gradients([mg.sum(y * y) for y in fetch], [v, m, s])
    random = np.random.default_rng(0)
    feed = {x.name: random.normal(size=x.shape).astype(dtype) for x in (v, m, s)}
    wanted = static.Executor().run(program, feed, fetch)
    for a, b in zip(runtime(program, feed, fetch), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4 if dtype == "float32" else 1e-10)


def test_values_without_elements_keep_their_shape(runtime):
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [3, 2])
        none = x[:, 2:]
        fetch = [
            mg.concat(none, x, axis=1),
            mg.stack(none, none),
            mg.setitem(x, x[3:], slice(3, 4)),
        ]
    feed = {"x": np.arange(6.0).reshape(3, 2)}
    run = static.Executor().run(program, feed, fetch)
    for a, b in zip(runtime(program, feed, fetch), run, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_open_sizes_are_asked_for():
    pytest.importorskip("onnx", reason="pip install onnx onnxruntime")
    program = static.Program()
    with static.program_guard(program):
        y = static.data("x", [-1]).sum()
    with pytest.raises(
        ProgramError, match=r"sizes of 'x' \[-1\] must be known(.|\n)*repair: feed="
    ):
        static.export_onnx(program, fetch=y)


def test_nothing_is_written_when_an_op_has_no_counterpart(tmp_path):
    pytest.importorskip("onnx", reason="pip install onnx onnxruntime")
    program = static.Program()
    with static.program_guard(program):
        y = mg.inv(static.data("x", [2, 2]))
    with pytest.raises(ProgramError, match="inv has no counterpart in ONNX"):
        static.export_onnx(program, tmp_path / "model.onnx", fetch=y)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [
        ("conv2d", ["float32", "float64"]),
        ("conv2d", ["float64", "float32"]),
        ("conv2d", ["float32", "float32", "float64"]),
        ("conv2d", ["float32", "int64"]),
        ("max_pool2d", ["int64"]),
        ("max_pool2d", ["float64"]),
    ],
)
def test_windows_of_dtypes_that_onnx_has_no_operator_for(runtime, name, dtypes):
    shapes = [[2, 3, 5, 4], [4, 3, 2, 2], [4]]
    values = [np.arange(np.prod(s)).reshape(s) % 7 for s in shapes]
    feed = {n: v.astype(d) for n, v, d in zip("xwb", values, dtypes, strict=False)}
    program = static.Program()
    with static.program_guard(program):
        given = [static.data(n, v.shape, v.dtype) for n, v in feed.items()]
        y = mg.conv2d(*given) if name == "conv2d" else mg.max_pool2d(*given, 2)
    (expected,) = static.Executor().run(program, feed, y)
    np.testing.assert_array_equal(runtime(program, feed, [y])[0], expected, strict=True)


@pytest.mark.parametrize("function", [mg.sort, mg.argsort, lambda x: mg.topk(x, k=2)])
def test_truth_values_are_sorted_as_numbers(runtime, function):
    program = static.Program()
    with static.program_guard(program):
        fetch = function(static.data("x", [2, 3], "bool"))
    fetch = [*fetch] if isinstance(fetch, list | tuple) else [fetch]
    feed = {"x": np.array([[True, False, True], [False, False, True]])}
    run = static.Executor().run(program, feed, fetch)
    for a, b in zip(runtime(program, feed, fetch), run, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("shape", [[4], [4, 2]])
def test_a_product_of_truth_values_has_no_counterpart(shape):
    pytest.importorskip("onnx", reason="pip install onnx onnxruntime")
    program = static.Program()
    with static.program_guard(program):
        y = mg.matmul(static.data("x", [3, 4], "bool"), static.data("y", shape, "bool"))
    with pytest.raises(ProgramError, match="matmul has no counterpart in ONNX"):
        static.export_onnx(program, fetch=y)


def test_a_model_in_test_mode_exports_without_its_dropout(runtime):
    model = nn.Sequential(nn.Linear(3, 2, seed=0), nn.Dropout(0.5, seed=0))
    program = static.Program()
    with static.program_guard(program):
        y = model(static.data("x", [4, 3]))
    test = program.clone(for_test=True)
    feed = {"x": np.ones((4, 3))}
    np.testing.assert_allclose(
        runtime(test, feed, [y.name])[0], static.Executor().run(test, feed, [y.name])[0]
    )


def test_without_onnx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("minigrad.backends.lowering.find_spec", lambda name: None)
    with pytest.raises(ProgramError, match=r"pip install onnx"):
        static.export_onnx(static.Program())


def test_importing_minigrad_loads_no_onnx():
    code = "import minigrad, sys; from minigrad.static import export_onnx; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_feeds_that_only_a_branch_or_a_loop_reads_are_inputs(runtime):
    prog = static.Program()
    with static.program_guard(prog):
        p, x, n = static.data("p", []), static.data("x", [3]), static.data("n", [], np.int64)
        y = static.cond(p > 0, lambda: x * 2.0, lambda: x - 1.0)
        _, z = static.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, h + x), [0, y])
    feed = {"p": np.array(1.0), "x": np.arange(3.0), "n": np.array(2)}
    for fetch, read in (([y], {"p", "x"}), ([z], {"p", "x", "n"})):
        wanted = static.Executor().run(prog, feed, fetch)
        assert {i.name for i in static.export_onnx(prog, fetch=fetch).graph.input} == read
        np.testing.assert_allclose(runtime(prog, feed, fetch)[0], wanted[0])


def test_truth_values_and_bits_are_those_of_numpy(runtime, request):
    @mg.primitive
    def turned(x):
        return np.invert(x)

    @mg.primitive
    def largest(x):
        return np.maximum.reduce(x, axis=0)

    for primitive in ("turned", "largest"):
        request.addfinalizer(partial(REGISTRY.pop, primitive))
    numbers, truth = np.array([5, -3, 0]), np.array([[True, False], [False, False]])
    some, every = (lambda x: mg.any(x, 1)), (lambda x: mg.all(x, keepdims=True))
    for function, value in [(turned, numbers)] + [
        (f, truth) for f in (turned, largest, some, every)
    ]:
        program = static.Program()
        with static.program_guard(program):
            out = function(static.data("x", list(value.shape), str(value.dtype)))
        wanted = static.Executor().run(program, {"x": value}, [out])[0]
        (found,) = runtime(program, {"x": value}, [out])
        np.testing.assert_array_equal(found, wanted, strict=True)
