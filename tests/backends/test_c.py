"""A Program as C: the interpreter's numbers, its errors and its transactions, from text that any compiler takes."""

from __future__ import annotations

import errno
import re
import shutil
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.backends.c import build
from minigrad.backends.c import step as c_step
from minigrad.backends.c import text as c_text
from minigrad.errors import MinigradError, ProgramError
from tests.backends import c_together
from tests.compiler import random_steps
from tests.compiler.test_every_op import chosen, program_of
from tests.ops.oracle import wanted
from tests.ops.test_records import DIFFERENTIABLE

COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

AS_FOR_USERS = build.FLAGS

#: operators without C, which are refused by name
REFUSED = {
    "cholesky",
    "cofactor",
    "det",
    "inv",
    "merge_rows",
    "select_rows",
    "solve",
    "spread",
    "spread_rows",
    "dropout",
}


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path_factory):
    """Compilers that do not try hard, and a cache of their own; the smallest programs, too, in C."""
    monkeypatch.setattr(c_step, "FEWEST", 0)
    for module in (build, c_together):
        monkeypatch.setattr(module, "FLAGS", [f if f != "-O3" else "-O1" for f in build.FLAGS])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def built(make, **settings):
    """A compiled step of ``make(x, w)`` with data and a parameter of shape [2]."""
    program = static.Program()
    with static.program_guard(program):
        fetch = make(static.data("x", [2]), static.parameter("w", [1.0, 2.0]))
    return static.compile(program, fetch=fetch, backend="c", **settings)


def trained():
    """A training step of a small network."""
    program = static.Program()
    with static.program_guard(program):
        x, w = (
            static.data("x", [4, 3], np.float32),
            static.parameter("w", np.ones((3, 2), np.float32)),
        )
        loss = mg.mean(mg.square(mg.tanh(x @ w)))
        mg.optim.Adam(lr=0.1).minimize(loss)
    return program, loss


# -- the same numbers ----------------------------------------------------------------------


def test_what_is_concatenated_is_made_in_its_place_however_else_it_is_read():
    def wholes(x, w):
        a, b = mg.sin(x * w), mg.cos(x)
        both, twice = mg.concat([a, b]), mg.concat([b, b, x])
        return [both, twice, a * b, mg.concat([both, mg.exp(a)]), mg.setitem(both, a, slice(1, 3))]

    step = built(wholes)
    x, w = np.array([0.5, -1.0]), np.array([1.0, 2.0])
    a, b = np.sin(x * w), np.cos(x)
    whole = np.concatenate([a, b])
    changed = np.array([whole[0], *a, whole[3]])
    for ours, theirs in zip(
        step(x=x),
        [whole, np.concatenate([b, b, x]), a * b, np.concatenate([whole, np.exp(a)]), changed],
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_weight_that_many_products_read_turned_is_copied_once_and_trained():
    program = static.Program()
    with static.program_guard(program):
        h, w = static.data("h", [3, 4]), static.parameter("w", np.eye(4) + 0.1)
        for _ in range(12):
            h = mg.tanh(h @ w)
        loss = mg.sum(h) + mg.sum(mg.diagonal(w) * mg.squeeze(w))
        mg.optim.SGD(lr=0.1).minimize(loss)
    feed = {"h": np.linspace(-0.5, 1, 12).reshape(3, 4)}
    exact, step = (
        static.compile(program, fetch=loss, backend="c", exact=exact) for exact in (True, False)
    )
    executor = static.Executor()
    for _ in range(3):
        (expected,) = executor.run(program, feed, [loss])
        np.testing.assert_allclose([exact(feed), step(feed)], [expected] * 2, rtol=1e-12)
    np.testing.assert_allclose(step.parameters["w"], executor.scope.values["w"], rtol=1e-12)
    assert ["w_turned" in s.source for s in (exact, step)] == [False, True]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_few_numbers_have_numpys_bits(dtype):
    program, random = static.Program(), np.random.default_rng(0)
    feed = {f"x{n}": random.normal(size=(5, n)).astype(dtype) for n in range(1, 20)}
    with static.program_guard(program):
        read = [static.data(name, x.shape, dtype) for name, x in feed.items()]
        fetch = [mg.sum(x, axis=k) for x in read for k in (0, 1, None)]
    step = static.compile(program, fetch=fetch, backend="c")
    for ours, theirs in zip(step(feed), static.Executor().run(program, feed, fetch), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_second_factor_of_an_inexact_product_may_be_padded():
    def products(x, w):
        wide = mg.stack([x, w])
        return [wide @ mg.pad(wide, ((0, 0), (1, 1))), wide @ mg.stack([w, x]), mg.exp(wide)]

    x, w = np.array([3.0, 5.0]), np.array([1.0, 2.0])
    wide = np.stack([x, w])
    wanted = [wide @ np.pad(wide, ((0, 0), (1, 1))), wide @ np.stack([w, x]), np.exp(wide)]
    for ours, theirs in zip(built(products, exact=False)(x=x), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_elements_are_taken_from_the_flat_array_where_it_lies_in_one_piece():
    step = built(lambda x, w: mg.take(mg.outer(x, w), [3, -3, 0], axis=None) * 2.0)
    np.testing.assert_array_equal(step(x=np.array([3.0, 5.0])), [20.0, 12.0, 6.0])
    text = refused(built, lambda x, w: mg.take(mg.transpose(mg.outer(x, w)), [1], axis=None))
    assert text.startswith("take cannot be said in C: take from what does not lie in one piece")


@pytest.mark.parametrize("threads", ["1", "2"])
def test_products_by_rows_are_the_whole_product(threads, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", threads)  # read when the text is loaded
    program, random = static.Program(), np.random.default_rng(0)
    with static.program_guard(program):
        a, b = static.data("a", [70, 900]), static.data("b", [900, 33])
        c, d = static.data("c", [600, 70], "float32"), static.data("d", [70, 33], "float32")
        e, wide = static.data("e", [10, 400]), static.data("wide", [400, 400])
        turned = mg.transpose(mg.transpose(d) @ mg.transpose(c))
        fetch = [a @ b, c @ d, turned, c @ np.ones((70, 1)), e @ wide]
    feed = {
        name: random.normal(size=v.shape).astype(v.dtype)
        for name, v in zip(["a", "b", "c", "d", "e", "wide"], (a, b, c, d, e, wide), strict=True)
    }
    exact, step = (
        static.compile(program, fetch=fetch, backend="c", exact=exact) for exact in (True, False)
    )
    for ours, theirs in zip(step(feed), static.Executor().run(program, feed, fetch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4 if ours.dtype == "f4" else 1e-10)
    called = re.findall(r"^    product(\w*)_(?:float|double)\(", step.source, re.M)
    assert sorted(called) == ["", "", "_by_rows", "_by_rows"]
    assert "by_rows" not in exact.source
    assert build.one_thread() == (threads == "1")


@pytest.mark.parametrize("first", range(0, len(DIFFERENTIABLE), 16))
def test_ops_and_their_derivatives_agree_with_the_interpreter(first, monkeypatch):
    compared, makes = [], []
    for record in DIFFERENTIABLE[first : first + 16]:
        for sample in chosen(record):
            positions = wanted(record, sample)
            if not positions or any(np.asarray(a).dtype.kind == "b" for a in sample.args[1:]):
                continue
            program, feed, fetch = program_of(record, sample, positions)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                theirs = static.Executor().run(program, feed, fetch)
            unsaid = {op.type for op in static.decompose(program).global_block().ops} & REFUSED
            if unsaid and "dropout" not in unsaid:  # dropout of nothing is a copy
                assert "cannot be said in C" in refused(static.to_c, program, None, fetch)
                continue
            compared.append((f"{record.type} {sample.attrs}", feed, fetch, theirs, unsaid))
            makes.append(partial(static.compile, program, fetch=fetch, backend="c"))
    steps = c_together.together(makes)
    for (name, feed, fetch, theirs, unsaid), step in zip(compared, steps, strict=True):
        if isinstance(step, ProgramError):
            assert unsaid, (name, step)
            continue
        for var, a, b in zip(fetch, step(**feed), theirs, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), (name, var)
            tolerance = 1e-9 if a.dtype == np.float64 else 1e-4
            np.testing.assert_allclose(
                a, b, rtol=tolerance, atol=tolerance, err_msg=f"{name}, {var}"
            )


@pytest.mark.parametrize("first", [0, 20])
def test_random_programs_agree_with_the_interpreter(first):
    assert list(c_together.trials(first, 20)) == []


def test_texts_that_are_cut_into_many_functions_agree_with_the_interpreter(monkeypatch):
    monkeypatch.setattr(c_text, "LONG", 10)
    assert list(c_together.trials(40, 20)) == []


def test_exact_sums_products_and_quotients_have_the_bits_of_numpy():
    program, rng = static.Program(), np.random.default_rng(0)
    with static.program_guard(program):
        x, w = static.data("x", [40, 300]), static.parameter("w", rng.normal(size=(300, 50)))
        y = mg.sqrt(x * x + 0.3) / (x - 0.1)
        fetch = [
            y,
            y.sum(),
            y.sum(axis=0),
            y.sum(axis=1),
            x @ w,
            mg.max(y),
            mg.cumsum(x, axis=1),
            mg.var(x, axis=1),
        ]
        fetch += static.gradients(fetch[-1].sum(), [x])
    feed = {"x": rng.normal(size=(40, 300))}
    theirs = static.Executor().run(program, feed, fetch)
    for a, b in zip(static.compile(program, fetch=fetch, backend="c")(feed), theirs, strict=True):
        np.testing.assert_array_equal(a, b)


FUNCTIONS = [mg.exp, mg.log, mg.log1p, mg.sin, mg.tan, mg.tanh, mg.sinh, mg.atan2, mg.logaddexp]


def seen_otherwise(r, x):
    """A Variable with its axes in another order, backwards, with steps."""
    x = mg.permute_dims(x, axes=tuple(map(int, r.permutation(len(x.shape)))))
    if backwards := tuple(k for k in range(len(x.shape)) if r.random() < 0.5):
        x = mg.flip(x, axis=backwards)
    return x[tuple(slice(None, None, int(r.choice([1, 1, 1, 2, -1]))) for _ in x.shape)]


@pytest.mark.parametrize("seed", [2, 4, 6])  # which GCC 12 got wrong
def test_sums_over_any_axes_of_any_view_are_those_of_the_interpreter(seed, monkeypatch):
    monkeypatch.setattr(build, "FLAGS", AS_FOR_USERS)
    r, program, sums, feed = np.random.default_rng(seed), static.Program(), [], {}
    with static.program_guard(program):
        for k in range(60):
            shape = [int(n) for n in r.integers(2, (18, 9, 6)[k % 3], k % 3 + 2)]
            dtype = ("float64", "float32")[k % 2]
            feed[f"x{k}"] = r.standard_normal(shape).astype(dtype)
            x = seen_otherwise(r, static.data(f"x{k}", shape, dtype))
            x = [x, x * 2.0, x * x, seen_otherwise(r, x * 1.5)][r.integers(4)]
            axes = tuple(a for a in range(len(shape)) if r.random() < 0.8)
            add_up = [mg.sum, mg.sum, mg.mean, mg.prod, mg.max][r.integers(5)]
            sums.append(add_up(x, axis=axes or None))
    right = static.Executor().run(program, feed=feed, fetch_list=sums)
    for exact in (True, False):
        step = static.compile(program, fetch=sums, backend="c", exact=exact)
        for value, expected in zip(step(**feed), right, strict=True):
            tolerance = 1e-4 if value.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(value, expected, tolerance, tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exact", [True, False])
def test_functions_are_numpys_own_loops_on_views_and_pairs_alike(dtype, exact):
    program, rng = static.Program(), np.random.default_rng(0)
    with static.program_guard(program):
        x = mg.abs(static.data("x", [30, 40], dtype)) + 0.5
        both = [x[::2, 1:], mg.permute_dims(x)[:39, :15].transpose(1, 0)]
        fetch = [f(*both[: len(f.primitive.inputs)]) for f in FUNCTIONS]
        fetch += [both[0] ** 1.7, mg.max(x, axis=1), mg.min(both[1], axis=1), x @ x[0]]
        fetch += [mg.einsum("ij,kj->ik", *both), mg.einsum("aij,akj->aki", x[None], x[None, :7])]
    feed = {"x": rng.normal(size=(30, 40)).astype(dtype)}
    theirs = static.Executor().run(program, feed, fetch)
    step = static.compile(program, fetch=fetch, exact=exact, backend="c")
    for var, a, b in zip(fetch, step(feed), theirs, strict=True):
        if exact and "einsum" not in var.name:
            np.testing.assert_array_equal(a, b, err_msg=str(var))
        np.testing.assert_allclose(a, b, rtol=1e-4 if dtype == np.float32 else 1e-12)


def test_large_feeds_are_read_where_they_are_however_they_lie():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [100, 80])
        w = static.parameter("w", np.ones(80))
        y = (x * w).sum(axis=1)
        fetch = [x, x[3:5, ::-1], y]
    step = static.compile(program, fetch=fetch, backend="c")
    whole = np.random.default_rng(0).normal(size=(200, 160))
    unaligned = np.frombuffer(bytes(8) + b"?" + whole[:100, :80].tobytes(), np.float64, 8000, 9)
    read_only = whole[:100, :80].copy()
    read_only.flags.writeable = False
    for fed in (
        whole[::2, ::2],
        whole[:100, :80],
        unaligned.reshape(100, 80),
        read_only,
        whole.T[:100, :80],
    ):
        before = fed.copy()
        same, part, total = step(x=fed)
        np.testing.assert_array_equal(same, before)
        np.testing.assert_array_equal(part, before[3:5, ::-1])
        np.testing.assert_allclose(total, before.sum(axis=1))
        same[...] = 0
        np.testing.assert_array_equal(fed, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tanh_and_exp_are_numpys_to_the_ends_of_their_range(dtype):
    x = np.concatenate(
        [np.linspace(-30, 30, 40001), np.geomspace(1e-30, 1, 5000), -np.geomspace(1e-30, 700, 5000)]
    )
    x = np.concatenate(
        [x, [0.0, -0.0, np.inf, -np.inf, np.nan, 88.72, 88.73, 709.78, 709.79, -87.3, -708.3]]
    ).astype(dtype)
    program = static.Program()
    with static.program_guard(program):
        given = static.data("x", [len(x)], dtype)
        fetch = [mg.tanh(given), mg.exp(given)]
    for exact in (True, False):
        values = static.compile(program, fetch=fetch, backend="c", exact=exact)(x=x)
        with np.errstate(all="ignore"):
            for value, function in zip(values, (np.tanh, np.exp), strict=True):
                np.testing.assert_array_equal(value, function(x))


def test_steps_go_on_from_each_other_and_share_an_executors_parameters():
    program, loss = trained()
    executor, other = static.Executor(), static.Executor()
    step = static.compile(program, fetch=loss, executor=executor, backend="c")
    for k in range(4):
        feed = {"x": np.random.default_rng(k).normal(size=(4, 3)).astype(np.float32)}
        np.testing.assert_allclose(step(feed), other.run(program, feed, [loss])[0], rtol=1e-5)
    for name, value in other.scope.values.items():
        if name in step.parameters:
            np.testing.assert_allclose(executor.scope.values[name], value, rtol=1e-4, atol=1e-6)
    executor.scope.values["w"] = np.zeros((3, 2), np.float32)
    assert step(feed) == 0


def test_parameters_and_constants_without_numbers_do_not_move_those_beside_them():
    program = static.Program()
    with static.program_guard(program):
        few = [static.parameter(name, [[1.0, 2.0], [3.0, 4.0]]) for name in "ac"]
        none = [static.parameter(name, np.zeros((0, 2))) for name in "bd"]
        both = mg.concat([few[0] @ few[1], *none, none[0] + few[0][0]])
        loss = mg.sum(mg.exp(both - mg.max(few[1])) * few[1] / 7.0)
        fetch = [loss, *(g for _, g in static.append_backward(loss))]
    expected = static.Executor().run(program, {}, fetch)
    step = static.compile(program, fetch=fetch, backend="c")
    assert isinstance(step, c_step.CStep), step.history
    for ours, theirs in zip(step(), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_a_program_that_sorts_is_a_numpy_step_and_says_so():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [-1, 3]), static.parameter("w", np.ones(3))
        fixed = static.parameter("fixed", [2.0], trainable=False)
        loss = mg.square(mg.sort(x * w * fixed)).sum()
        mg.optim.Adam(lr=0.1).minimize(loss)
    step, other = static.compile(program, fetch=loss, backend="c"), static.Executor()
    for k in range(3):
        feed = {"x": np.random.default_rng(k).normal(size=(2 + k, 3))}
        np.testing.assert_allclose(step(feed), other.run(program, feed, [loss])[0])
    assert (
        step.history[0]
        == "in NumPy, which is faster: sort cannot be said in C: np.sort has no counterpart here"
    )
    assert "sort cannot be said in C" in refused(static.to_c, program, {"x": (2, 3)}, loss)


def test_a_large_einsum_is_a_numpy_step():
    step = built(lambda x, w: mg.einsum("i,jkl->il", x, mg.ones_like(x) * np.ones((200, 100, 2))))
    assert step.history[0].startswith("in NumPy, which is faster: einsum cannot be said in C: more")


def test_a_long_program_is_cut_into_functions_and_adds_up_very_many_values():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0, 2.0])
        y = mg.tanh(w * 2.0)
        y.block.append_op("sum", {"x": [y.name] * 11_000}, {"out": ["total"]})
    step = static.compile(program, fetch="total", backend="c")
    assert "static int part1(" in step.source
    np.testing.assert_array_equal(step(), static.Executor().run(program, {}, ["total"])[0])


def test_a_few_calls_of_numpy_stay_calls_of_numpy_and_the_step_says_so(monkeypatch):
    monkeypatch.setattr(c_step, "FEWEST", 3)
    one, four = (built(lambda x, w: mg.tanh(x)), built(lambda x, w: mg.tanh(mg.exp(x * w) - 2.0)))
    assert (
        one.history[0] == "in NumPy, which is faster: 1 calls of NumPy take no longer than one of C"
    )
    assert four.history == ["compiled for x [2]"]


def test_what_is_fed_may_be_a_parameter_and_what_nobody_reads_need_not_be_fed():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [2000]), static.parameter("w", np.arange(2000.0))
        static.data("unread", [3], np.int64)
        loss = (x * w).sum()
        mg.optim.SGD(lr=1.0).minimize(loss)
    step = static.compile(program, fetch=[loss, x], backend="c")
    before = step.parameters["w"].copy()
    _, fed = step(x=step.parameters["w"])
    np.testing.assert_array_equal(fed, before)
    np.testing.assert_array_equal(step.parameters["w"], 0)


def test_the_gradient_of_a_loop_in_a_loop_knows_how_often_each_inner_one_ran():
    program = static.Program()
    with static.program_guard(program):
        x, n = static.data("x", [3]), static.data("n", [], np.int64)
        w = static.parameter("w", [0.5, 0.6, 0.7])

        def inner(i, h):
            more = lambda j, g: [j + 1, mg.tanh(g * w)]
            _, g = static.while_loop(lambda j, g: j < i + 1, more, [0, h])
            return [i + 1, g + x]

        _, h = static.while_loop(lambda i, h: i < n, inner, [0, x])
        fetch = [h, *static.gradients((h * h).sum(), [x, w])]
    step = static.compile(program, fetch=fetch, backend="c", max_steps=5)
    for count in (0, 1, 3):
        feed = {"x": np.array([1.0, 2.0, 3.0]), "n": np.array(count)}
        for a, b in zip(step(feed), static.Executor().run(program, feed, fetch), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("outer, inner", [(0, 2), (3, 0), (3, 2)])
def test_the_text_of_a_recurrence_in_another_one_depends_on_no_address_if_one_has_no_steps(
    outer, inner
):
    program = static.Program()
    with static.program_guard(program):
        xs, ys = static.data("xs", [outer, 3]), static.data("ys", [inner, 3])
        w = static.parameter("w", [0.5, 0.6, 0.7])

        def cell(y, h):
            h = mg.tanh(h * w + y)
            return [h * y], [h]

        def step(x, h):
            (out,), (last,) = static.static_rnn(cell, [ys * x], [h])
            return [mg.sum(out, axis=0) + h], [last * w]

        (out,), (last,) = static.static_rnn(step, [xs], [w])
        fetch = [last, *static.gradients(mg.sum(out * last), [xs, ys, w])]
    text = static.to_c(program, fetch=fetch)
    moved = [np.ones(1000) for _ in range(100)]  # what is made next lies elsewhere
    assert static.to_c(program, fetch=fetch) == text and moved
    step = static.compile(program, fetch=fetch, backend="c")
    feed = {"xs": np.ones((outer, 3)), "ys": np.ones((inner, 3))}
    for a, b in zip(step(feed), static.Executor().run(program, feed, fetch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_rungs_of_a_step_in_c_can_be_looked_at():
    program = static.Program()
    with static.program_guard(program):
        y = (static.data("x", [-1, 100]) * 2.0).sum()
    shown = partial(static.compile, program, {"x": (30, 100)}, y, backend="c")
    assert shown(stop_after="specialise").global_block().var("x").shape == (30, 100)
    assert "for (int" in static.compile(program, {"x": (30, 100)}, y, backend="c").source
    assert shown(stop_after="source") == shown().source


def test_open_sizes_are_compiled_for_each_shape_with_the_same_parameters():
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [-1, 2]), static.parameter("w", [1.0, 2.0])
        loss = (x * w).sum()
        mg.optim.SGD(lr=1.0).minimize(loss)
    step = static.compile(program, fetch=loss, backend="c")
    assert [float(step(x=np.ones((n, 2)))) for n in (1, 2, 1)] == [3.0, 2.0, -3.0]
    assert len(step.history) == 2


# -- the text ------------------------------------------------------------------------------


def corpus():
    """Programs of many kinds as text."""
    program, loss = trained()
    yield static.to_c(program, fetch=loss)
    yield static.to_c(program, fetch=loss, exact=False)
    for seed in range(20):
        drawn = random_steps.draw(seed)
        yield static.to_c(drawn.program, fetch=drawn.fetch, max_steps=8, exact=bool(seed % 2))


@pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")
def test_compilers_have_nothing_to_say(tmp_path):
    for k, text in enumerate(corpus()):
        (tmp_path / f"{k}.c").write_text(text, encoding="ascii")
    files = sorted(map(str, tmp_path.glob("*.c")))
    for compiler in COMPILERS:
        command = [
            compiler,
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-pedantic",
            "-O1",
            "-fsyntax-only",
            *files,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), compiler


HOSTILE = [
    "@/.-/",
    "a--b/c@d",
    "int",
    "p",
    "i",
    "system",
    "memory",
    "s",
    "@GRAD.x",
    "exp",
    "INT8_MAX",
    "x" * 90,
    "3d",
    "row",
    "step",
]


def test_every_operator_of_a_nest_stands_in_front_of_its_lines_once():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [3])
        first = mg.silu(
            x * x
        )  # the lines of a nest: mul, sigmoid; behind exp: sigmoid, sigmoid, mul
        second = mg.silu(first)
    text = static.to_c(program, fetch=[first, second])
    said = re.findall(r"/\* (\w+) = ", text.partition("int step")[2])
    assert said == ["mul_0", *["sigmoid_0"] * 3, "mul_1", *["sigmoid_1"] * 3, "mul_2"]


def test_no_text_of_a_program_becomes_c():
    program = static.Program()
    with static.program_guard(program):
        total = sum(
            (static.data(name, [2]) * 1.5 for name in HOSTILE), start=static.data("ok", [2]) * 0.5
        )
        out = mg.exp(total)
    text = static.to_c(program, fetch=out)
    assert set(re.sub(r"/\* [\w .,()=:;+<>\[\]-]* \*/", "", text)) <= set(
        map(chr, range(32, 127))
    ) | {"\n"}
    assert text.count("#") == 2
    feed = dict.fromkeys([*HOSTILE, "ok"], np.ones(2))
    np.testing.assert_allclose(
        static.compile(program, fetch=out, backend="c")(feed), np.exp(1.5 * len(HOSTILE) + 0.5)
    )


# -- what is refused -------------------------------------------------------------------------


def refused(make, *args):
    with pytest.raises(MinigradError) as error:
        make(*args)
    return str(error.value)


def test_what_c_cannot_say_is_refused_with_the_operator_and_the_line():
    text = refused(built, lambda x, w: mg.solve(mg.outer(x, x), w))
    assert text.startswith("solve cannot be said in C")
    assert "at test_c.py:" in text
    assert "without backend" in text


@pytest.mark.parametrize(
    "declared", [static.data, lambda n, s, d: static.parameter(n, np.ones(s, d))]
)
def test_a_type_of_numbers_that_c_has_not_is_refused(declared):
    program = static.Program()
    with static.program_guard(program):
        y = mg.exp(declared("x", [3], np.float16))
    text = refused(static.to_c, program, None, y)
    assert "cannot be said in C: there are no float16" in text
    assert "without backend" in text


def test_an_index_that_points_outside_raises_what_numpy_raises_and_changes_nothing():
    program = static.Program()
    with static.program_guard(program):
        w, i = static.parameter("w", [1.0, 2.0]), static.data("i", [2], np.int64)
        loss = w[i].sum()
        mg.optim.SGD(lr=1.0).minimize(loss)
    step = static.compile(program, fetch=loss, backend="c")
    text = refused(lambda: step(i=np.array([0, 2])))
    assert "index 2 is out of bounds for axis 0 with size 2" in text
    assert "test_c.py" in text
    np.testing.assert_array_equal(step.parameters["w"], [1.0, 2.0])
    assert step(i=np.array([0, -1])) == 3.0


def test_a_target_that_is_no_class_is_refused_as_by_numpy():
    program = static.Program()
    with static.program_guard(program):
        loss = mg.cross_entropy(static.data("x", [2, 3]), static.data("t", [2], np.int64))
    feed = {"x": np.zeros((2, 3)), "t": np.array([0, 3])}
    steps = [static.compile(program, fetch=loss, backend=b) for b in ("numpy", "c")]
    theirs, ours = (refused(step, feed) for step in steps)
    assert ours.partition("\n")[0] == theirs.partition("\n")[0]


def test_a_loop_without_end_and_one_of_too_many_steps_stop():
    forever = built(
        lambda x, w: static.while_loop(lambda s: s.sum() > 0.0, lambda s: [s + 1.0], [x])[0]
    )
    assert "step_limit" in refused(lambda: forever(x=np.ones(2)))

    def gradient(x, w):
        s = static.while_loop(lambda s: s.sum() < 9.0, lambda s: [s * w], [x])[0]
        return static.gradients(s.sum(), [w])

    assert "give max_steps" in refused(built, gradient)
    step = built(gradient, max_steps=3)
    np.testing.assert_allclose(step(x=np.ones(2))[0], [3.0, 12.0])
    assert "3" in refused(lambda: step(x=np.full(2, 1e-3)))


def test_feeds_that_do_not_fit_are_refused_as_by_numpy():
    step = built(lambda x, w: x * w)
    assert "float64[3], the program expects float64[2]" in refused(lambda: step(x=np.ones(3)))
    assert "was not fed" in refused(step)
    np.testing.assert_array_equal(step(x=[1, 1]), [1.0, 2.0])
    np.testing.assert_array_equal(step(x=np.arange(4.0)[::2]), [0.0, 4.0])


# -- compilers and folders ---------------------------------------------------------------------


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_without_a_compiler_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "apt install gcc" in refused(built, lambda x, w: x * 1.01)


def test_a_compiler_that_fails_or_hangs_is_an_error(monkeypatch, tmp_path):
    for body, said in (
        ("echo 'error: no' >&2; exit 1", "error: no"),
        ("sleep 60", "not done after"),
        ("exit 0", "failed"),
    ):
        monkeypatch.setattr(build, "PATIENCE", 0.5)
        monkeypatch.setenv("CC", script(tmp_path / f"cc{len(said)}", body))
        assert said in refused(built, lambda x, w: x * 1.02)


def test_a_changed_compiler_builds_afresh(monkeypatch, tmp_path):
    for version in ("one", "two"):
        cc = script(
            tmp_path / "cc", f'test "$1" = --version && echo {version} && exit\nexec gcc "$@"'
        )
        monkeypatch.setenv("CC", cc)
        built(lambda x, w: x * 1.03)
    assert len(set(build.folders()[0].glob("*.so"))) >= 2


def test_a_folder_that_cannot_be_written_to_is_left_alone(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert built(lambda x, w: x * 1.04)(x=np.ones(2))[0] == 1.04
    open_to_all = tmp_path / "minigrad" / "c"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built(lambda x, w: x * 1.05)
    assert not list(open_to_all.iterdir())


def test_a_full_folder_is_passed_over_and_nothing_is_left_in_it(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write, full = build.Path.write_text, OSError(errno.ENOSPC, "No space left on device")

    def write_text(path, text, **settings):
        if tmp_path in path.parents:
            raise full
        return write(path, text, **settings)

    monkeypatch.setattr(build.Path, "write_text", write_text)
    assert built(lambda x, w: x * 1.07)(x=np.ones(2))[0] == 1.07
    monkeypatch.undo()
    monkeypatch.setattr(c_step, "FEWEST", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    says = "echo 'fatal error: error writing: No space left on device' >&2; exit 1"
    cc = f'case "$*" in *{tmp_path}*) {says};; esac; exec gcc "$@"'
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("CC", script(tmp_path / "bin" / "cc", cc))
    assert built(lambda x, w: x * 1.08)(x=np.ones(2))[0] == 1.08
    assert not list((tmp_path / "minigrad" / "c").iterdir())
    monkeypatch.setattr(build, "folders", lambda: [tmp_path / "minigrad" / "c"])
    assert "XDG_CACHE_HOME" in refused(built, lambda x, w: x * 1.09)


def test_a_damaged_file_is_built_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = "import minigrad as mg, numpy as np\nfrom minigrad import static\np = static.Program()\nwith static.program_guard(p):\n    y = static.data('x', [2]) * 1.06\n    for _ in range(4): y = -y\nprint(static.compile(p, fetch=y, backend='c')(x=np.ones(2))[0])"
    for damage in (None, b"", b"\x7fELF nonsense"):
        for path in tmp_path.glob("minigrad/c/*.so"):
            if damage is not None:
                path.write_bytes(damage)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "1.06\n", done.stderr
        assert len(list(tmp_path.glob("minigrad/c/*.so"))) >= 1


def test_two_processes_build_the_same(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = "import minigrad as mg, numpy as np\nfrom minigrad import static\np = static.Program()\nwith static.program_guard(p):\n    y = static.data('x', [2])\n    for _ in range(4): y = mg.tanh(y)\nprint(static.compile(p, fetch=y, backend='c')(x=np.zeros(2))[0])"
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [r.communicate()[0] for r in runs] == ["0.0\n"] * 3
    assert {p.suffix for p in tmp_path.glob("minigrad/c/*")} == {".so"}
