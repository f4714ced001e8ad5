"""State: nothing half-written, whatever stops a run and wherever; no memory shared, nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import linecache
import sys
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.eager import backward as backward_module
from minigrad.eager.inplace import memory_of
from minigrad.errors import GradError
from tests.work import calls

ERRORS = (ValueError, KeyboardInterrupt, MemoryError, StopIteration)
BY_ERROR = pytest.mark.parametrize("error", ERRORS, ids=[e.__name__ for e in ERRORS])


def leaf(value):
    return mg.tensor(value, requires_grad=True)


def small_graph():
    """Two leaves, eight nodes of every kind: binary, unary, reduction, list, several outputs."""
    x, w = leaf([0.5, -0.3, 0.8]), leaf([1.0, 2.0, -1.0])
    h = mg.tanh(x * w)
    parts = mg.unbind(h)
    y = mg.stack([parts[0], parts[2], parts[0] * parts[1]])
    return x, w, mg.sum(mg.sin(y) * x)


def nodes_of(out):
    found, stack = [], [out.grad_fn]
    while stack:
        n = stack.pop()
        if n is not None and n not in found:
            found.append(n)
            stack += [m for m, _ in n.next_functions]
    return [n for n in found if n.primitive is not None]


def expected_gradients():
    x, w, out = small_graph()
    out.backward()
    return x.grad.tolist(), w.grad.tolist()


def assert_untouched_and_usable(x, w, out):
    """The old gradients stand, and the graph gives the right ones when asked again."""
    assert x.grad.tolist() == [100.0, 100.0, 100.0]
    assert w.grad is None
    x.grad = None
    out.backward()
    assert (x.grad.tolist(), w.grad.tolist()) == expected_gradients()


# -- crash sweep: eager --------------------------------------------------------------------

ASK = {
    "plain": lambda out: out.backward(),
    "hooked": lambda out: (out.register_hook(lambda g: None), out.backward()),
    "graph": lambda out: out.backward(create_graph=True),
    "two roots": lambda out: mg.backward([out, out * 0.0]),
}


def stopping(function, error, at):
    """A function that raises at its call number ``at``."""
    calls = iter(range(10_000))

    def stopped(*args, **kwargs):
        if next(calls) == at:
            raise error("stop")
        return function(*args, **kwargs)

    return stopped


@BY_ERROR
@pytest.mark.parametrize("ask", ASK)
def test_an_error_in_any_rule_leaves_gradients_and_graph_as_they_were(error, ask, monkeypatch):
    count = len(nodes_of(small_graph()[2]))
    assert count >= 7
    for k in range(count):
        x, w, out = small_graph()
        x.grad = mg.tensor([100.0] * 3)
        node = nodes_of(out)[k]
        kind = type(node)
        with monkeypatch.context() as patch:
            for name in ("pull_graph", "pull", "push"):
                run = getattr(kind, name)

                def stop(n, *g, node=node, run=run):
                    if n is node:
                        raise error("stop")
                    return run(n, *g)

                patch.setattr(kind, name, stop)
            with pytest.raises(error):
                ASK[ask](out)
        assert_untouched_and_usable(x, w, out)


@BY_ERROR
@pytest.mark.parametrize("kind", ["tensor", "pre", "post"])
def test_an_error_in_a_hook_at_any_node_leaves_everything_as_it_was(error, kind):
    def hook(*args):
        raise error("stop")

    for k in range(len(nodes_of(small_graph()[2]))):
        x, w, out = small_graph()
        x.grad = mg.tensor([100.0] * 3)
        node = nodes_of(out)[k]
        hooks = {"pre": node._hooks().pre, "post": node._hooks().post}
        table = hooks[kind] if kind in hooks else node._hooks().tensor.setdefault(0, {})
        table[0] = hook
        with pytest.raises(error):
            out.backward()
        table.clear()
        assert_untouched_and_usable(x, w, out)


@BY_ERROR
@pytest.mark.parametrize("at", [0, 1])
def test_an_error_while_gradients_are_being_added_up_leaves_everything(error, at, monkeypatch):
    for hooked in (False, True):
        x, w, out = small_graph()
        x.grad = mg.tensor([100.0] * 3)
        with monkeypatch.context() as patch:
            # the usual walk adds up only where there is something already: at x
            stop = stopping(backward_module.accumulated, error, at if hooked else 0)
            patch.setattr(backward_module, "accumulated", stop)
            with pytest.raises(error):
                ASK["hooked" if hooked else "plain"](out)
        assert_untouched_and_usable(x, w, out)


@BY_ERROR
@pytest.mark.parametrize("which", [0, 1])
def test_an_error_in_a_hook_after_the_commit_undoes_the_commit(error, which):
    x, w, out = small_graph()
    x.grad = mg.tensor([100.0] * 3)

    def hook(tensor):
        raise error("stop")

    handle = (x, w)[which].register_post_accumulate_grad_hook(hook)
    with pytest.raises(error):
        out.backward()
    handle.remove()
    assert_untouched_and_usable(x, w, out)


def at_an_edge(frame):
    """At a ``with`` or ``try:``, or at the first line behind a ``finally:``."""
    before, line = (
        linecache.getline(frame.f_code.co_filename, frame.f_lineno - k).strip() for k in (1, 0)
    )
    return line.startswith(("with ", "try:")) or before == "finally:"


@contextmanager
def interrupted(at, files):
    """Ctrl-C at the line number ``at``, counted over all lines of some files that run.

    Not where a block begins: Python runs signal handlers at calls and jumps, never there.
    """
    count = iter(range(1_000_000))
    before = sys.gettrace()

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.endswith(files):
            return None
        if event == "line" and not at_an_edge(frame) and next(count) == at:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("ask", ["plain", "hooked"])
def test_an_interrupt_at_any_line_of_backward_leaves_all_gradients_or_none(ask):
    """All old, or all new; and a later backward over a new graph is right in either case."""
    files = ("eager/backward.py",)
    new = expected_gradients()
    done = 0
    for at in range(3000):
        x, w, out = small_graph()
        try:
            with interrupted(at, files):
                ASK[ask](out)
        except KeyboardInterrupt:
            done += 1
        else:
            break
        both = (x.grad is None, w.grad is None)
        assert both in ((True, True), (False, False)), f"line event {at}: half-written"
        if not both[0]:
            assert (x.grad.tolist(), w.grad.tolist()) == new
        else:
            out.backward()
            assert (x.grad.tolist(), w.grad.tolist()) == new, f"line event {at}"
    else:
        raise AssertionError("backward did not end")
    assert done > 100
    assert_another_thread_can_walk()


def assert_another_thread_can_walk():
    found = []
    thread = threading.Thread(target=lambda: found.append(expected_gradients()), daemon=True)
    thread.start()
    thread.join(timeout=10)
    assert found, "an interrupt left the engine locked"


# -- crash sweep: programs -----------------------------------------------------------------


def training_program():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [2, 3])
        w = static.parameter("w", np.full((3, 1), 0.5))
        b = static.parameter("b", np.zeros(1))
        rate = static.data("rate", [])
        loss = mg.mean(mg.square(mg.tanh(x @ w + b)))
        block = prog.global_block()
        for p, g in static.append_backward(loss):
            block.append_op(
                "sgd",
                {"param": p, "grad": g, "learning_rate": rate},
                {"param_out": p},
                role="optimize",
            )
    return prog, {"x": np.ones((2, 3)), "rate": np.array(0.1)}


@BY_ERROR
def test_an_error_in_any_operator_leaves_all_parameters_as_they_were(error, monkeypatch):
    from minigrad.static.run.interpreter import Run

    prog, feed = training_program()
    count = len(prog.global_block().ops)
    assert count >= 10
    executor = static.Executor()
    executor.run(prog, feed)
    before = {n: np.array(executor.scope.values[n]) for n in ("w", "b")}
    for k in range(count):
        with monkeypatch.context() as patch:
            patch.setattr(Run, "simple", stopping(Run.simple, error, k))
            with pytest.raises(BaseException, match="stop"):
                executor.run(prog, feed)
        for name, value in before.items():
            assert executor.scope.values[name].tobytes() == value.tobytes(), (k, name)
    executor.run(prog, feed)
    assert all(executor.scope.values[n].tobytes() != v.tobytes() for n, v in before.items())


def test_an_interrupt_at_any_line_of_the_executor_leaves_all_parameters_or_none():
    prog, feed = training_program()
    executor = static.Executor()
    executor.run(prog, feed)
    old = {n: np.array(executor.scope.values[n]) for n in ("w", "b")}
    twin = static.Executor()
    twin.run(prog, feed)
    twin.run(prog, feed)
    new = {n: twin.scope.values[n] for n in ("w", "b")}
    done = 0
    for at in range(0, 20_000, 7):
        executor.scope.values.update({n: v.copy() for n, v in old.items()})
        try:
            with interrupted(at, ("static/run/executor.py", "static/run/interpreter.py")):
                executor.run(prog, feed)
        except KeyboardInterrupt:
            done += 1
        else:
            break
        now = executor.scope.values
        same = [all(np.array_equal(now[n], v[n]) for n in v) for v in (old, new)]
        assert any(same), f"line event {at}: half-written"
    assert done > 20


def trained_by(optimizer):
    """The program above, trained by an optimizer; it has two layers, so that slabs are made where they can be."""
    prog = static.Program()
    with static.program_guard(prog):
        h = static.data("x", [2, 3])
        for k in range(2):
            w, b = (
                static.parameter(f"w{k}", np.full((3, 3), 0.5)),
                static.parameter(f"b{k}", [0.0] * 3),
            )
            h = mg.tanh(h @ w + b)
        optimizer.minimize(mg.mean(mg.square(h)))
    return prog, {"x": np.ones((2, 3))}


def changed_in_a_loop():
    """A loop in a loop that keeps a running mean; then parameters are updated."""
    prog = static.Program()
    with static.program_guard(prog):
        x, mean = static.data("x", [3]), static.parameter("mean", np.zeros(3), trainable=False)
        w, u = static.parameter("w", np.full(3, 0.5)), static.parameter("u", np.full(3, 0.2))

        def inner(j, h):
            block = static.program.program.default_program().current_block()
            inputs = {"param": mean, "grad": h}
            block.append_op("sgd", inputs, {"param_out": mean}, {"learning_rate": 0.1}, "optimize")
            return j + 1, mg.tanh(h * w + mean)

        def outer(i, h):
            return i + 1, static.while_loop(lambda j, h: j < 2, inner, [0, h])[1]

        _, h = static.while_loop(lambda i, h: i < 2, outer, [0, x])
        mg.optim.SGD(lr=0.1).minimize((h * h * u).sum())
    return prog, {"x": np.ones(3)}


TRAINED = {
    "descent": training_program,
    "descent in slabs": lambda: trained_by(mg.optim.SGD(lr=0.1)),
    "momentum": lambda: trained_by(mg.optim.SGD(lr=0.1, momentum=0.9)),
    "Adam": lambda: trained_by(mg.optim.Adam(lr=mg.optim.cosine(0.1, 10))),
    "AdamW": lambda: trained_by(mg.optim.AdamW(lr=0.1, weight_decay=0.1)),
    "Adagrad": lambda: trained_by(mg.optim.Adagrad(lr=0.1)),
    "RMSprop": lambda: trained_by(mg.optim.RMSprop(lr=0.1)),
    "clipped": lambda: trained_by(mg.optim.Adam(clip=mg.optim.clip_by_global_norm(0.1))),
    "in a loop": changed_in_a_loop,
}


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "inexact"])
@pytest.mark.parametrize("kind", TRAINED)
def test_an_interrupt_at_any_line_of_a_compiled_step_leaves_all_parameters_or_none(kind, exact):
    """Parameters and what the optimizer remembers: all of it is as before, or all of it is new."""
    prog, feed = TRAINED[kind]()
    step = static.compile(prog, feed=feed, fetch=[], exact=exact)
    step(**feed)
    old = {n: a.copy() for n, a in step.parameters.items()}
    step(**feed)
    new = {n: a.copy() for n, a in step.parameters.items()}
    changing = [n for n in old if not np.array_equal(old[n], new[n])]
    assert len(changing) >= 2
    done = 0
    for at in range(500):
        for name, value in old.items():
            step.parameters[name][...] = value
        try:
            with interrupted(at, (file_of(step), "compiler/step.py")):
                step(**feed)
        except KeyboardInterrupt:
            done += 1
        else:
            break
        same = [all(np.array_equal(step.parameters[n], v[n]) for n in v) for v in (old, new)]
        assert any(same), f"line event {at}: half-written"
        if same[0]:  # what was interrupted left nothing behind
            step(**feed)
            assert all(np.array_equal(step.parameters[n], new[n]) for n in new)
    else:
        raise AssertionError("the step did not end")
    assert done >= 15


def test_a_compiled_step_that_cannot_return_its_results_changes_nothing():
    """Results are copied first: copying needs memory, and may fail."""
    for kind in TRAINED:
        step = static.compile(TRAINED[kind]()[0], feed=TRAINED[kind]()[1], fetch=[])
        body = step.source.split("def step(")[1].split("def fits(")[0]
        lines = [s for line in body.splitlines() if (s := line.strip()) and s[0] != "#"]
        assert lines[-3].startswith("results = "), kind
        assert lines[-1] == "return results", kind


def file_of(step):
    return next(f for f in linecache.cache if linecache.cache[f][2] == step.source.splitlines(True))


# -- memory --------------------------------------------------------------------------------


def assert_own_memory(tensors, others=()):
    owners = [memory_of(t.grad._data) for t in tensors if t.grad is not None]
    values = [memory_of(t._data) for t in tensors] + [memory_of(o) for o in others]
    for k, a in enumerate(owners):
        assert not any(np.shares_memory(a, b) for b in owners[k + 1 :] + values)


def samples():
    """Every primitive that has a gradient, once per distinct kind of sample."""
    from tests.ops import test_records

    for record in test_records.DIFFERENTIABLE:
        for sample in record.samples[:4]:
            yield record, sample


def test_no_gradient_of_any_op_shares_memory_with_anything():
    from tests.ops.oracle import call, floats, tensors, wanted

    count = 0
    for record, sample in samples():
        positions = wanted(record, sample)
        if not positions:
            continue
        leaves = tensors(sample, positions)
        outs = [o for o in floats(call(record, sample, leaves)) if o.requires_grad]
        seeds = [np.ones(o.shape, o.dtype) for o in outs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if outs:
                mg.backward(outs, seeds)
        assert_own_memory(list(leaves.values()), seeds)
        count += 1
    assert count > 200


#: ways to change the memory of a value from outside or inside
WAYS = {
    "add_": lambda t: quietly(t.add_, 1.0),
    "mul_": lambda t: quietly(t.mul_, 3.0),
    "setitem": lambda t: quietly(t.__setitem__, ..., 7.0),
    "data[...]": lambda t: t.data.__setitem__(..., 7.0),
    "out=": lambda t: np.add(t.data, 1.0, out=t.data),
}


def quietly(method, *args):
    with mg.no_grad():
        method(*args)


@pytest.mark.parametrize("way", WAYS)
def test_no_way_of_changing_a_value_changes_a_gradient_silently(way):
    """Over every op, every input and the output: the right gradient or an error."""
    from tests.ops.oracle import call, floats, tensors, wanted

    refused = right = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record, sample in samples():
            positions = wanted(record, sample)
            expected = gradients_of(record, sample, positions, None)
            for place in [*positions, "out"] if expected is not None else []:
                leaves = tensors(sample, positions)
                copies = {k: v * 1.0 for k, v in leaves.items()}
                outs = [o for o in floats(call(record, sample, copies)) if o.requires_grad]
                WAYS[way](outs[0] if place == "out" else copies[place])
                try:
                    mg.backward(outs, [np.ones(o.shape, o.dtype) for o in outs])
                except GradError:
                    refused += 1
                    continue
                right += 1
                for x, want in zip(leaves.values(), expected, strict=True):
                    got = x.grad.tolist() if x.grad is not None else None
                    assert np.array_equal(got, want, equal_nan=True) or got == want, (
                        f"{record.type}: changed {place} by {way}"
                    )
    assert refused + right > 400
    assert right > 100


def gradients_of(record, sample, positions, _):
    from tests.ops.oracle import call, floats, tensors

    if not positions:
        return None
    leaves = tensors(sample, positions)
    copies = {k: v * 1.0 for k, v in leaves.items()}
    outs = [o for o in floats(call(record, sample, copies)) if o.requires_grad]
    if not outs:
        return None
    mg.backward(outs, [np.ones(o.shape, o.dtype) for o in outs])
    return [x.grad.tolist() if x.grad is not None else None for x in leaves.values()]


# -- leaks and depth -----------------------------------------------------------------------


@pytest.mark.parametrize("ask", ["plain", "hooked", "graph", "two roots", "second"])
def test_a_hundred_steps_leave_nothing_behind_with_the_collector_off(ask):
    def step():
        x, w, out = small_graph()
        if ask == "second":
            (g,) = mg.grad(out, w, create_graph=True)
            mg.sum(g * g).backward()
        else:
            ASK[ask](out)
        if ask == "graph":  # a gradient with a graph holds its leaf, as in other systems
            x.grad = w.grad = None

    step()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(100):
            step()
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()


def test_runs_of_a_program_leave_nothing_behind_with_the_collector_off():
    prog, feed = training_program()
    executor = static.Executor()
    executor.run(prog, feed)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(100):
            executor.run(prog, feed)
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()


def test_a_chain_of_a_hundred_thousand_ops_through_every_kind_of_walk():
    for ask in ("plain", "hooked"):
        x = y = leaf(0.5)
        for _ in range(50_000):
            y = mg.sin(y)
        ASK[ask](y)
        assert np.isfinite(float(x.grad))
        del y


def test_appending_the_backward_part_is_work_in_proportion_to_the_operators():
    def work(count):
        prog = static.Program()
        with static.program_guard(prog):
            y = static.parameter("w", 0.5)
            for _ in range(count):
                y = mg.sin(y)
            return calls(lambda: static.append_backward(y))

    work(100)
    assert work(4000) < 8.1 * work(500)


# -- threads and tasks ---------------------------------------------------------------------


def test_threads_with_graphs_of_their_own_do_not_meet():
    expected, found = expected_gradients(), []

    def work():
        for _ in range(20):
            x, w, out = small_graph()
            out.backward()
            found.append((x.grad.tolist(), w.grad.tolist()))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=20)
    assert len(found) == 80
    assert all(f == expected for f in found)


def test_every_switch_stays_in_its_thread_and_in_its_task():
    async def quiet():
        with mg.no_grad(), mg.detect_anomaly():
            await asyncio.sleep(0)
            return (leaf(1.0) * 2.0).requires_grad

    async def loud():
        await asyncio.sleep(0)
        return (leaf(1.0) * 2.0).requires_grad

    async def all_of_them():
        return await asyncio.gather(*(f() for f in (quiet, loud) * 5))

    assert asyncio.run(all_of_them()) == [False, True] * 5
    seen = []
    with mg.no_grad():
        t = threading.Thread(target=lambda: seen.append((leaf(1.0) * 2.0).requires_grad))
        t.start()
        t.join()
    assert seen == [True]
