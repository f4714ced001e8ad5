"""What is said where JAX or ONNX cannot have a program, or get what does not fit: the reason, and how to go on."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.backends import lowering
from minigrad.errors import ProgramError
from minigrad.primitives.registry import REGISTRY

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="needs jax")


needs_onnx = pytest.mark.skipif(find_spec("onnx") is None, reason="needs onnx")


def built(build):
    """A program, what it feeds, and what is fetched: ``build(x, w)`` with data and a parameter of shape [2]."""
    program = static.Program()
    with static.program_guard(program):
        return program, build(static.data("x", [2]), static.parameter("w", [1.0, 2.0]))


def on_jax(build, **feed):
    program, fetch = built(build)
    return static.compile(program, fetch=fetch, backend="jax")(**(feed or {"x": np.ones(2)}))


def in_onnx(build, **feed):
    program, fetch = built(build)
    return static.export_onnx(program, feed=feed, fetch=fetch)


def gradient_of_a_loop(x, w):
    _, s = static.while_loop(lambda i, s: i < 2, lambda i, s: [i + 1, s * w], [0, x])
    return dict((p.name, g) for p, g in static.append_backward(s.sum()))["w"]


def written_in_a_loop(x, w):
    def body(i, s):
        x.program.current_block().append_op("assign", {"x": s}, {"out": w})
        return [i + 1, s * 2.0]

    return static.while_loop(lambda i, s: i < 2, body, [0, x])[1]


JAX = {
    "the gradient of a while loop needs the values of every step": (gradient_of_a_loop, {}, "repair: static.static_rnn"),
    "a loop or branch writes the parameter 'w': a pure function returns": (written_in_a_loop, {}, "repair: carry it as a loop variable, or run the program with static.Executor()"),
    "feed names 'y', which is no data of this program": (lambda x, w: x * w, {"x": np.ones(2), "y": 1.0}, "Known: 'x'"),
    "feed 'x' is float64[3], the program expects float64[2]": (lambda x, w: x * w, {"x": np.ones(3)}, "at test_errors.py:"),
    "feed 'x' is complex128[2], the program expects float64[2]": (lambda x, w: x * w, {"x": np.ones(2) * 1j}, "at test_errors.py:"),
    "gather needs values that JAX does not know": (lambda x, w: x[np.array([True, False])] * w[0], {}, "repair: mg.where(mask, x, 0.0), or run"),
    "the program reads 'x', but it was not fed": (lambda x, w: [x * w, w * static.data("k", [])], {"k": 1.0}, "repair: feed {'x': …} with shape [2]"),
}  # fmt: skip


@needs_jax
@pytest.mark.parametrize("words", JAX)
def test_what_jax_cannot_have_is_said(words):
    build, feed, repair = JAX[words]
    with pytest.raises(ProgramError) as caught:
        on_jax(build, **feed)
    assert str(caught.value).startswith(words)
    assert repair in str(caught.value)


@needs_onnx
def test_sizes_of_a_graph_must_be_known():
    build = lambda x, w: (static.data("rows", [-1, 2]) * w).sum()
    with pytest.raises(
        ProgramError, match=r"the sizes of 'rows' \[-1, 2\] must be known to write a graph"
    ) as caught:
        in_onnx(build)
    assert "repair: feed={'rows': (…)}, an array or a shape" in str(caught.value)
    assert in_onnx(build, rows=(3, 2)).graph.input


def test_a_type_that_is_no_name_of_python_runs_on_every_backend():
    def made(x):
        return np.abs(x)

    strange = mg.primitive(made, type="my-op")
    try:
        program, y = built(lambda x, w: strange(x))
        assert static.Executor().run(program, {"x": -np.ones(2)}, y)[0].tolist() == [1, 1]
        assert static.compile(program, fetch=y)(x=-np.ones(2)).tolist() == [1, 1]
        if find_spec("jax"):
            step = static.compile(program, fetch=y, backend="jax")
            assert step(x=-np.ones(2)).tolist() == [1, 1]
        if find_spec("onnx"):
            nodes = static.export_onnx(program, fetch=y).graph.node
            assert "Abs" in [n.op_type for n in nodes]
    finally:
        REGISTRY.pop("my-op")


def test_a_backend_that_is_not_there_is_named(monkeypatch):
    program, y = built(lambda x, w: x * w)
    with pytest.raises(ProgramError) as caught:
        static.compile(program, fetch=y, backend="jaxx")
    assert str(caught.value).startswith(
        "there is no backend 'jaxx'; did you mean 'jax'? Known: 'numpy', 'c', 'jax'"
    )
    monkeypatch.setattr(lowering, "find_spec", lambda name: None)
    with pytest.raises(ProgramError) as caught:
        static.compile(program, fetch=y, backend="jax")
    assert str(caught.value).startswith(
        'backend="jax" needs jax, which is not installed.\n  at test_errors.py:'
    )
    assert str(caught.value).endswith("repair: pip install jax")
