"""Every error of the eager engine once: the op, the shapes, the line and the repair."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import MinigradError, RuleError


def leaf(value=2.0, **kw):
    return mg.tensor(value, requires_grad=True, **kw)


def twice(x):
    y = x * x
    y.backward()
    y.backward()


def in_place(x):
    y = x.exp()
    y.add_(1.0)
    y.sum().backward()


CASES = {
    "second backward": (
        lambda: twice(leaf()),
        RuntimeError,
        ["second time", "MulBackward0", "made at test_errors.py", "retain_graph=True"],
    ),
    "in-place change": (
        lambda: in_place(leaf([1.0])),
        RuntimeError,
        [
            "ExpBackward0",
            "changed in place",
            "saved at test_errors.py",
            "changed at test_errors.py",
            "out-of-place",
        ],
    ),
    "non-scalar without seed": (
        lambda: (leaf([1.0, 2.0]) * 2).backward(),
        RuntimeError,
        ["float64[2]", "2 elements", "test_errors.py", ".sum().backward()"],
    ),
    "no graph": (
        lambda: mg.tensor(1.0).backward(),
        RuntimeError,
        ["no grad_fn", "does not require grad", "requires_grad=True"],
    ),
    "leaf in place": (
        lambda: leaf().add_(1.0),
        RuntimeError,
        ["leaf that requires grad", "no_grad"],
    ),
    "float of a big tensor": (
        lambda: float(leaf([1.0, 2.0])),
        TypeError,
        ["float64[2]", "2 elements", "x.sum()"],
    ),
    "bool of a big tensor": (
        lambda: bool(mg.tensor([1.0, 2.0])),
        TypeError,
        ["ambiguous", "any()"],
    ),
    "NumPy ufunc": (lambda: np.exp(leaf()), TypeError, ["np.exp", "mg.exp"]),
    "NumPy conversion": (
        lambda: np.asarray(leaf()),
        RuntimeError,
        ["cut the graph", "detach().numpy()"],
    ),
    "integers require grad": (lambda: leaf(1), TypeError, ["int64", "1.0 instead of 1"]),
    "complex requires grad": (lambda: leaf(1j), TypeError, ["complex"]),
    "shape mismatch": (
        lambda: leaf([1.0, 2.0]) + leaf([1.0, 2.0, 3.0]),
        ValueError,
        ["add(x: float64[2], y: float64[3])", "test_errors.py"],
    ),
    "matmul mismatch": (
        lambda: mg.matmul(leaf([[1.0, 2.0]]), leaf([[1.0, 2.0]])),
        ValueError,
        ["matmul(x: float64[1, 2], y: float64[1, 2])"],
    ),
    "wrong seed": (
        lambda: (leaf([1.0, 2.0]) * 2).backward(mg.tensor([1.0])),
        ValueError,
        ["float64[1]", "[2]"],
    ),
    "not numbers": (lambda: mg.tensor("abc"), TypeError, ["numbers"]),
    "ragged": (lambda: mg.tensor([[1.0], [1.0, 2.0]]), TypeError, ["regular grid"]),
    "item of many": (lambda: mg.tensor([1.0, 2.0]).item(), TypeError, ["one element", "2"]),
    "requires_grad of a non-leaf": (
        lambda: setattr(leaf() * 2, "requires_grad", False),
        RuntimeError,
        ["detach()"],
    ),
    "hook without grad": (
        lambda: mg.tensor(1.0).register_hook(print),
        RuntimeError,
        ["does not require grad"],
    ),
    "empty inputs": (lambda: (leaf() * 2).backward(inputs=[]), RuntimeError, ["inputs"]),
    "grad of what needs none": (
        lambda: mg.grad(leaf() * 2, mg.tensor(1.0)),
        RuntimeError,
        ["does not require grad"],
    ),
    "unknown attr": (
        lambda: mg.concat([leaf([1.0]), leaf([1.0])], axes=0),
        TypeError,
        ["axes", "axis"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_names_the_cause_and_the_repair(name):
    call, kind, texts = CASES[name]
    with pytest.raises(kind) as caught:
        call()
    for text in texts:
        assert text in str(caught.value), f"{text!r} is missing in: {caught.value}"
    assert isinstance(caught.value, MinigradError) or kind is TypeError


def test_registration_errors():
    from minigrad.registry import REGISTRY, primitive

    with pytest.raises(RuleError, match="registered already"):

        @primitive
        def exp(x):
            return x

    @primitive
    def test_thing(x, *, k=1):
        return x * k

    try:
        with pytest.raises(RuleError, match="names 'z'.*did you mean|names 'z'"):
            test_thing.grad(x=lambda z, out_grad: z)
        with pytest.raises(RuleError, match="no input 'y'"):
            test_thing.grad(y=lambda out_grad: out_grad)
        test_thing.grad(x=lambda out_grad, k: out_grad * k)
        x = leaf(3.0)
        test_thing(x, k=5).backward()
        assert float(x.grad) == 5
    finally:
        del REGISTRY["test_thing"]


def test_why_says_why_there_is_no_gradient():
    x = leaf(2.0, name="x")
    with mg.no_grad():
        assert "no_grad" in str(mg.why(x * x))
    assert "detach" in str(mg.why(x.detach()))
    assert "int64" in str(mg.why(mg.tensor(1)))
    assert "requires_grad=True" in str(mg.why(mg.tensor(1.0)))
    y = leaf(3.0) * 2
    y.backward(retain_graph=True)
    assert "not on a path" in str(mg.why(x))
    h = x * 3
    z = h * h
    z.backward()
    assert "retain_grad()" in str(mg.why(h))


def test_why_lists_contributions_that_add_up():
    x = leaf([1.0, 2.0], name="x")
    y = (x * x + x.sin() * 3).sum()
    y.backward()
    found = mg.why(x)
    assert np.allclose(sum(v for _, v in found.paths), x.grad.tolist()) and len(found.paths) == 3
    assert all(path[0] == "SumBackward0" for path, _ in found.paths)
