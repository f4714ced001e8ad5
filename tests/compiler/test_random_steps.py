"""Compiled steps of random programs, called again and again with other feeds, against the interpreter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from tests.compiler.random_steps import check


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_every_call_of_a_step_gives_what_the_interpreter_gives(first):
    """`.ci/run` looks at 200, the campaign at more: ``python -m tests.campaign steps --programs 20000``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 20):
            check(seed)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: mg.pad(x, 1) + 1.0,
        lambda x: mg.tanh(mg.pad(x, [(2, 0)])) * 2.0,
        lambda x: (x * x).sum() + x[0].sum(),
        lambda x: mg.setitem(mg.zeros_like(x), x[:1] * 2.0, slice(1, 2)) - 1.0,
        lambda x: mg.stack([x, x * 2.0, x + 1.0]) * 3.0,
    ],
    ids=["pad", "pad and tanh", "gradient of a part", "a part that is set", "stacked values"],
)
def test_memory_that_is_used_again_holds_nothing_of_the_call_before(function, exact):
    prog = mg.trace(function, np.ones(3))
    block = prog.global_block()
    with static.program_guard(prog):
        gradients = static.gradients([block.var(prog.outputs[0])], [block.var("x0")])
    fetch = [prog.outputs[0], *gradients]
    step = static.compile(prog, fetch=fetch, exact=exact)
    for k in range(4):
        feed = {"x0": np.array([1.0, -2.0, 3.0]) * (k + 1)}
        for ours, theirs in zip(step(feed), static.Executor().run(prog, feed, fetch), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def turned(x):
    return mg.permute_dims(x, (0, 1, 3, 2))


def chosen(x):
    return static.cond(x.sum() > 0.0, lambda: turned(x), lambda: x * 2.0)


def carried(x):
    return static.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, turned(h) * 0.9), [0, x])[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, :, [1, 0]] * 1.1,
        lambda x: mg.setitem(turned(x), x[:, :, :2], (slice(None), slice(None), [2, 1])),
        lambda x: mg.sort(turned(x), axis=1),
        chosen,
        carried,
        lambda x: static.static_rnn(lambda r, h: ([turned(r)], [r]), [mg.stack([x, x])], [x])[0][0],
        lambda x: mg.conv2d(chosen(x), np.arange(4.0).reshape(1, 1, 2, 2)),
        lambda x: mg.max_pool2d(carried(x), 2, stride=1),
    ],
    ids=["index", "set", "sort", "cond", "while", "recurrent", "conv2d", "pool"],
)
def test_values_in_any_order_of_memory_have_the_bits_of_the_interpreter(function):
    prog, rng = static.Program(), np.random.default_rng(0)
    with static.program_guard(prog):
        x = static.data("x", [2, 1, 7, 7])
        y = function(x)
        fetch = [y, y.sum(), (y * y).mean(axis=0), *static.gradients(mg.exp(y).sum(), [x])]
    step = static.compile(prog, fetch=fetch)
    for sign in (1.0, -1.0, 1.0):
        feed = {"x": sign * np.abs(rng.normal(size=(2, 1, 7, 7)))}
        for ours, theirs in zip(step(feed), static.Executor().run(prog, feed, fetch), strict=True):
            assert ours.tobytes() == theirs.tobytes()


def test_a_kernel_of_the_user_may_return_a_view_in_any_order():
    @mg.primitive
    def turned_if_small(x):
        return np.transpose(x) if np.max(x) < 100 else np.array(x)

    try:
        prog = static.Program()
        with static.program_guard(prog):
            x = static.data("x", [4, 4])
            y = mg.avg_pool2d(mg.reshape(turned_if_small(x), [1, 1, 4, 4]), 2)
        feed = {"x": np.arange(16.0).reshape(4, 4)}
        ours = static.compile(prog, fetch=y)(feed)
        np.testing.assert_array_equal(ours, static.Executor().run(prog, feed, [y])[0])
    finally:
        del mg.primitives.REGISTRY["turned_if_small"]
