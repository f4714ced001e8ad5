"""The engine of one page agrees with the package on the common corpus, eagerly and as a program."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from functools import reduce
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.trust import corpus, readings

PAGE = Path(__file__).parent.parent / "examples" / "one_page.py"


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("one_page", PAGE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions(page):
    """What the corpus calls, written in the primitives of the page."""

    def axes_of(x, axis):
        axis = range(np.ndim(x)) if axis is None else [axis]
        return [k % np.ndim(x) for k in axis]

    def sum(x, axis=None, keepdims=False):
        axes = axes_of(x, axis)
        shape = [1 if k in axes else n for k, n in enumerate(x.shape)]
        kept = page.sum_to(x, shape=tuple(shape))
        left = tuple(n for k, n in enumerate(x.shape) if k not in axes)
        return kept if keepdims else page.reshape(kept, shape=left)

    def mean(x, axis=None, keepdims=False):
        count = np.prod([x.shape[k] for k in axes_of(x, axis)])
        return sum(x, axis, keepdims) / float(count)

    def maximum(x, y):
        return page.where(page.greater(x, y), x, y)

    def elements(x):
        return [x[k] for k in range(x.shape[0])]

    def var(x):
        return mean((x - mean(x)) ** 2.0)

    def softmax(x, axis=-1):
        return page.exp(x) / sum(page.exp(x), axis, True)

    def mse(x, y):
        return mean((x - y) ** 2.0)

    def cross_entropy(x, labels):
        return -mean(page.log(softmax(x)[np.arange(len(labels)), labels]))

    def joined(parts, axis=0):
        size = sum_of([p.shape[0] for p in parts])
        starts = np.cumsum([0, *(p.shape[0] for p in parts)])
        shape = (int(size), *parts[0].shape[1:])
        placed = [
            page.put(p, index=np.arange(a, a + p.shape[0]), shape=shape)
            for p, a in zip(parts, starts, strict=False)
        ]
        return sum_of(placed)

    def sum_of(values):
        return reduce(lambda a, b: a + b, values)

    def split(x, n):
        size = x.shape[0] // n
        return [x[k * size : (k + 1) * size] for k in range(n)]

    def stack(parts):
        return joined([page.reshape(p, shape=(1, *p.shape)) for p in parts])

    names = ["exp", "log", "sin", "cos", "tanh", "where", "add_n"]
    return SimpleNamespace(
        **{n: getattr(page, n) for n in names if hasattr(page, n)},
        sum=sum, mean=mean, maximum=maximum, var=var, std=lambda x: var(x) ** 0.5, mse=mse,
        minimum=lambda x, y: page.where(page.greater(x, y), y, x), softmax=softmax,
        cross_entropy=cross_entropy, concat=joined, split=split, stack=stack, add_n=sum_of,
        sqrt=lambda x: x**0.5, abs=lambda x: page.where(page.greater(x, 0.0), x, -x),
        max=lambda x: reduce(maximum, elements(x)), prod=lambda x: reduce(lambda a, b: a * b, elements(x)),
        min=lambda x: -reduce(maximum, elements(-x)), clip=lambda x, a, b: -maximum(-maximum(x, a), -b),
        logsumexp=lambda x, axis: page.log(sum(page.exp(x), axis)),
        reshape=page.reshape, permute_dims=page.flipped, broadcast_to=page.broadcast_to,
        take=lambda x, indices, axis: x[indices], cumsum=lambda x, axis: np.tri(x.shape[0]) @ x,
    )  # fmt: skip


#: cases with primitives that the page leaves out
LEFT_OUT = {
    "angle of a point", "padded and rolled", "inverse and determinant", "convolution", "pooling",
    "running sums",
}  # fmt: skip
CASES = [c for c in corpus.CASES if c.name not in LEFT_OUT]
EVERY = pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])


@pytest.fixture
def on_the_page(page, monkeypatch):
    monkeypatch.setattr(corpus, "mg", functions(page))
    monkeypatch.setattr(corpus, "static", page)


@EVERY
def test_the_eager_engine_agrees_with_the_package(case, page, request):
    expected = readings.eager(case.function, case.args)
    request.getfixturevalue("on_the_page")
    leaves = [page.Tensor(a) for a in case.args]
    out = case.function(*leaves)
    page.backward(out)
    gradients = [np.zeros(x.shape) if x.grad is None else x.grad for x in leaves]
    np.testing.assert_allclose(out.data, expected[0], rtol=1e-12)
    for gradient, wanted in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(gradient, wanted, rtol=1e-11, atol=1e-12)


@EVERY
def test_a_program_with_its_generated_backward_agrees_with_the_package(case, page, request):
    expected = readings.eager(case.function, case.args)
    request.getfixturevalue("on_the_page")
    function = case.function if case.name == "a recurrent net" else case.traced
    program = page.trace(function, *case.args)
    gradients = page.append_backward(program.block, {program.output: "ones"}, program.inputs)
    scope = program.run(*case.args)
    np.testing.assert_allclose(scope[program.output], expected[0], rtol=1e-12)
    for name, wanted in zip(program.inputs, expected[1], strict=True):
        gradient = scope[gradients[name]] if name in gradients else np.zeros_like(wanted)
        np.testing.assert_allclose(gradient, wanted, rtol=1e-11, atol=1e-12)


def test_gradients_of_gradients_of_the_page(page):
    x = page.Tensor(2.0)
    page.backward(page.sin(x) * x, create_graph=True)
    first, x.grad = x.grad, None
    page.backward(first)
    assert abs(float(x.grad) - (2 * np.cos(2.0) - 2 * np.sin(2.0))) < 1e-12


def test_the_page_runs_by_itself_and_is_one_page():
    ran = subprocess.run([sys.executable, PAGE], capture_output=True, text=True, check=True)
    assert "while_grad" in ran.stdout
    assert ran.stdout.endswith("4637.0\n")
    source = PAGE.read_text(encoding="utf-8")
    documented = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    code = [
        line
        for k, line in enumerate(source.splitlines(), 1)
        if line.strip() and k not in documented and not line.lstrip().startswith("#")
    ]
    assert len(code) <= 300
    assert max(map(len, code)) <= 100
