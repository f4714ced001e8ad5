"""What backward must not do: half-written gradients, shared memory, cycles, leaks between threads, recursion."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.eager.grad_fn import Node
from minigrad.errors import GradError


def leaf(value, **kw):
    return mg.tensor(value, requires_grad=True, **kw)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError, StopIteration])
@pytest.mark.parametrize("place", ["tensor", "pre", "post", "leaf", "accumulated"])
def test_an_exception_in_a_hook_leaves_every_grad_and_the_graph_as_they_were(error, place):
    x, y = leaf(2.0), leaf(3.0)
    x.grad, y.grad = mg.tensor(100.0), None
    h = x * y
    z = (h * x).sin() * y

    def hook(*args):
        raise error("stop")

    add = {
        "tensor": lambda: h.register_hook(hook),
        "pre": lambda: h.grad_fn.register_prehook(hook),
        "post": lambda: h.grad_fn.register_hook(hook),
        "leaf": lambda: x.register_hook(hook),
        "accumulated": lambda: y.register_post_accumulate_grad_hook(hook),
    }
    handle = add[place]()
    with pytest.raises(error):
        z.backward()
    assert float(x.grad) == 100 and y.grad is None
    handle.remove()
    z.backward()
    fresh_x, fresh_y = leaf(2.0), leaf(3.0)
    ((fresh_x * fresh_y * fresh_x).sin() * fresh_y).backward()
    assert float(x.grad) == 100 + float(fresh_x.grad) and float(y.grad) == float(fresh_y.grad)


def test_an_exception_in_a_rule_leaves_everything_as_it_was():
    class Fails(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError

    x = leaf(2.0)
    y = x * x + Fails.apply(x)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert x.grad is None and (x * x).grad_fn is not None


def test_no_gradient_shares_memory_with_anything():
    x, y, z = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([[1.0, 2.0]])
    seed = np.ones(2)
    out = x + y + mg.reshape(z, shape=(2,))
    out.backward(seed)
    arrays = [x.grad._data, y.grad._data, z.grad._data, seed, x._data, y._data, z._data]
    for i, a in enumerate(arrays):
        for b in arrays[i + 1 :]:
            assert not np.shares_memory(a, b)


def test_tensor_copies_what_it_is_made_of():
    a = np.ones(3)
    x = leaf(a)
    y = (x * x).sum()
    a[:] = 100
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.data.__setitem__(0, 100.0),
        lambda x: np.copyto(x.data, 100.0),
        lambda x: setattr(x, "data", np.zeros(2)),
        lambda x: np.add(x.data, 1, out=x.data),
        lambda x: x.data.fill(7),
    ],
)
@pytest.mark.parametrize("early", [True, False])
def test_writing_into_data_never_changes_a_gradient_silently(write, early):
    x = leaf([1.0, 2.0])
    held = x.data if early else None
    y = (x * x).sum()
    if held is not None:
        held[0] = 50.0
    write(x)
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_raw_array_that_was_saved_may_change():
    a = np.array([1.0, 2.0])
    x = leaf([3.0, 4.0])
    y = (x * a).sum()
    a[:] = 1000
    y.backward()
    assert x.grad.tolist() == [1.0, 2.0]


def test_numpy_gives_a_read_only_array():
    view = mg.tensor([1.0, 2.0]).numpy()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 3


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.exp(),
        lambda x: x * x,
        lambda x: x.tanh(),
        lambda x: x.sqrt(),
        lambda x: x / 3.0 * x,
    ],
)
def test_an_in_place_change_of_a_saved_value_is_an_error(make):
    x = leaf([1.0, 2.0])
    h = x * 1.0
    y = make(h)
    h.add_(1.0)
    y.add_(1.0)
    with pytest.raises(GradError, match="changed in place afterwards") as caught:
        y.sum().backward()
    assert "repair" in str(caught.value) and "saved at test_state.py" in str(caught.value)
    assert x.grad is None


def test_a_change_through_a_view_is_noticed():
    x = leaf([1.0, 2.0])
    h = x * 1.0
    v = mg.reshape(h, shape=(1, 2))
    y = v * v
    with mg.no_grad():
        h.add_(1.0)
    with pytest.raises(GradError, match="changed in place"):
        y.sum().backward()


def test_an_optimizer_step_between_iterations_is_no_error():
    w = leaf([1.0, 2.0])
    for _ in range(3):
        y = (w * w).sum()
        y.backward()
        with mg.no_grad():
            w.sub_(w.grad * 0.1)
        w.zero_grad()
    assert np.allclose(w.tolist(), [0.8**3, 2 * 0.8**3])


def test_no_grad_does_not_leak_into_threads():
    seen = []
    with mg.no_grad():
        t = threading.Thread(target=lambda: seen.append(mg.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_no_grad_does_not_leak_between_tasks():
    async def quiet(event):
        with mg.no_grad():
            event.set()
            await asyncio.sleep(0.01)
            return mg.is_grad_enabled()

    async def other(event):
        await event.wait()
        return mg.is_grad_enabled()

    async def both():
        event = asyncio.Event()
        return await asyncio.gather(quiet(event), other(event))

    assert asyncio.run(both()) == [False, True]


def test_a_decorated_function_may_run_in_several_threads_at_once():
    barrier = threading.Barrier(4)
    errors = []

    @mg.no_grad()
    def f():
        barrier.wait(timeout=10)
        if mg.is_grad_enabled():
            errors.append("grad on")
        barrier.wait(timeout=10)

    threads = [threading.Thread(target=f) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and mg.is_grad_enabled()


def test_threads_walk_one_graph_one_after_the_other():
    x = leaf(np.ones(100))
    h = (x * x).exp()
    outs = [(h * k).sum() for k in range(1, 5)]
    threads = [threading.Thread(target=o.backward, kwargs={"retain_graph": True}) for o in outs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert np.allclose(x.grad.tolist(), 2 * np.e * 10)


@pytest.mark.parametrize("create_graph", [False, True])
def test_training_leaves_no_object_behind_with_the_collector_off(create_graph):
    w = leaf(np.ones((3, 3)))
    x = mg.tensor(np.ones((2, 3)))

    def step():
        y = ((x @ w).tanh() ** 2).sum()
        if create_graph:
            (g,) = mg.grad(y, w, create_graph=True)
            (g * g).sum().backward()
        else:
            y.backward()
        w.grad = None

    step()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(100):
            step()
        assert len(gc.get_objects()) - before <= 20
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_graph_dies_with_its_output():
    def nodes():
        return {id(o) for o in gc.get_objects() if isinstance(o, Node)}

    gc.collect()
    before = nodes()  # of other tests in this process
    x = leaf(2.0)
    gc.disable()
    try:
        y = (x * x).sin()
        del y
        assert nodes() - before == {id(x._node)}  # which dies with its leaf
        del x
        assert nodes() == before
    finally:
        gc.enable()


def test_a_graph_keeps_the_leaves_it_uses():
    y = mg.concat([leaf(2.0) * leaf(3.0) + leaf(4.0), leaf([5.0])], axis=None)
    gc.collect()
    seen, found = [y.grad_fn], []
    for node in seen:
        found += [node.variable.tolist()] if node.name() == "AccumulateGrad" else []
        seen += [n for n, _ in node.next_functions if n is not None]
    assert sorted(map(str, found)) == ["2.0", "3.0", "4.0", "[5.0]"]


def test_the_gradient_is_one_tensor_however_often_it_is_asked_for():
    x = leaf([2.0, 3.0])
    (x * x).sum().backward()
    first = x.grad
    assert first is x.grad
    first.data[0] = 100.0
    assert x.grad.tolist() == [100.0, 6.0]


def test_attributes_of_tensors_are_looked_up_the_plain_way():
    for name in ("__getattr__", "__setattr__", "__getattribute__"):
        assert getattr(mg.Tensor, name, None) is getattr(object, name, None)


def test_a_chain_of_a_hundred_thousand_ops_needs_no_recursion():
    x = y = leaf(0.5)
    for _ in range(100_000):
        y = mg.sin(y)
    y.backward()
    assert np.isfinite(float(x.grad))
    del y


def test_backward_within_a_hook_does_not_disturb_the_walk():
    x = leaf(2.0)
    s = x * x
    h = s * 1.0
    inner = []

    def hook(g):
        z = x * 5.0
        inner.append(float(mg.grad(z, x)[0]))
        inner.append(float(mg.grad(s, x, retain_graph=True)[0]))

    h.register_hook(hook)
    (h * 3.0 + x).backward()
    assert inner == [5.0, 4.0] and float(x.grad) == 13.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_is_forked_while_a_thread_walks_can_walk(recwarn):
    x, stop = leaf(2.0), threading.Event()

    def walk():
        y = leaf(0.5)
        for _ in range(500):
            y = y.sin()
        while not stop.is_set():
            y.backward(retain_graph=True)

    thread = threading.Thread(target=walk)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if not child:
                try:
                    signal.alarm(20)  # ends a child that hangs
                    (x * x).backward()
                finally:
                    os._exit(int(x.grad is None or x.grad.item() != 4.0))
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
