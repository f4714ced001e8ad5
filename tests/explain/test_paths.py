"""Where a gradient goes wrong: the first node that makes it 0, NaN, infinite, small or large."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import minigrad as mg
from minigrad.explain.source_cuts import Code, cuts


def leaf(value):
    return mg.tensor(value, requires_grad=True, name="x")


def deep(function, x, times):
    for _ in range(times):
        x = function(x)
    return mg.sum(x)


CASES = {
    "the root of 0": (lambda x: mg.sum(mg.sqrt(x) * mg.tensor([0.0, 1.0])), [0.0, 4.0], "NaN: made first by SqrtBackward0"),
    "the logarithm of 0": (lambda x: mg.sum(mg.log(x)), [0.0, 1.0], "the output itself is infinite, so its gradients are worth nothing; it began in the forward pass at LogBackward0 (saved x: 0 to 1, 1 of 2 are 0)"),
    "dead units": (lambda x: mg.sum(mg.relu(x - 5)), [1.0, 2.0], "0: lost first by ReluBackward0"),
    "a closed gate": (lambda x: mg.sum(x * mg.tensor([0.0, 0.0])), [1.0, 2.0], "0: lost first by MulBackward0"),
    "paths that cancel": (lambda x: mg.sum(x - x), [1.0, 2.0], "cancels out"),
    "a saturated chain": (lambda x: deep(mg.sigmoid, x, 20), [1.0], "it vanishes"),
    "a growing chain": (lambda x: deep(lambda v: v * 10, x, 10), [1.0], "it explodes"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_the_first_node_is_named(name):
    function, value, told = CASES[name]
    x = leaf(value)
    with np.errstate(all="ignore"):
        assert told in mg.why(x, function(x)).note


@pytest.mark.parametrize(
    "function",
    [lambda x: mg.sum(mg.tanh(x)), lambda x: mg.mean(x**2), lambda x: mg.logsumexp(x), lambda x: deep(mg.tanh, x, 5)],
    ids=["tanh", "squares", "logsumexp", "five layers"],
)  # fmt: skip
def test_a_healthy_gradient_has_no_alarm(function):
    x = leaf(np.linspace(-1, 1, 7))
    told = mg.why(x, function(x))
    assert told.note == "" and told.repair == ""


@pytest.mark.parametrize("start, word", [(np.nan, "NaN"), (np.inf, "infinite")])
def test_a_gradient_that_backward_started_with_may_be_no_number(start, word):
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.backward(mg.tensor([start, 1.0]))
    assert f"it is {word} because the gradient that backward started with is" in mg.why(x).note


@pytest.mark.parametrize(
    "grad, note",
    [([0.0, 0.0], ".grad is 0: zero_grad"), ([1.0, 2.0], "0.5 times that: clip_grad_norm_"),
     ([-1.0, -2.0], "-0.5 times that: a loss scale"), ([4.0, 8.0], "2 times that: 2 backward")],
)  # fmt: skip
def test_what_made_a_gradient_another_one_is_told_from_its_numbers(grad, note):
    x = leaf([1.0, 2.0])
    loss = mg.sum(x * x)
    loss.backward()
    x.grad = mg.tensor(grad)
    assert note in str(mg.why(x, loss))


CODE = {
    "h = w.detach()\nloss = h.sum()": ["w.detach()"],
    "with torch.no_grad():\n    h = w * 2\nloss = h.sum()": ["with torch.no_grad()"],
    "h = w * 2\nprint(h.detach())\nloss = h.sum()": [],
    "parts = []\nfor k in range(3):\n    parts.append((w * k).item())\nloss = sum(parts)": ["(w * k).item()"],
    "a = w.argmax()\nb = float(w)\nloss = b * 2": ["float(w)"],
    "loss = ((w > 0) * 1.0).sum()": ["w > 0"],
    "torch.set_grad_enabled(False)\nh = w * 2\ntorch.set_grad_enabled(True)\nloss = h.sum()": ["torch.set_grad_enabled(False)"],
    "try:\n    h, k = w.data, 1\nexcept ValueError:\n    h = 0\nloss = h": ["w.data"],
    "h: float = w.to(torch.int64)\nloss = h": ["w.to(torch.int64)"],
    "for k in range(9):\n    d = c\n    c = b\n    b = a\n    a = w * k\nloss = d.detach()": ["d.detach()"],
}  # fmt: skip


@pytest.mark.parametrize("text", CODE)
def test_the_expressions_that_cut_a_way_are_found(text):
    found = cuts(Code(ast.parse(text).body, "", 1, {}), ["w"], ["loss"])
    assert [c.what for c in found] == CODE[text]


def test_functions_of_the_users_are_looked_into():
    def halved(v):
        return v.detach() / 2

    code = Code(ast.parse("h = halved(w)\nloss = h").body, "", 1, {"halved": halved})
    assert [c.what for c in cuts(code, ["w"], ["loss"])] == ["v.detach()"]
