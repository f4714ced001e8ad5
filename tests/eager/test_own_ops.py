"""Ops of the user: their names and defaults are data, and their rules are called as they are written."""

from __future__ import annotations

import builtins
import functools
import keyword
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import RuleError
from minigrad.primitives.arguments import REQUIRED
from minigrad.primitives.registry import REGISTRY


@pytest.fixture
def own(monkeypatch):
    """`mg.primitive` and `mg.elementwise` whose rows leave the table after the test."""
    before = set(REGISTRY)
    yield mg.primitive
    for name in set(REGISTRY) - before:
        REGISTRY.pop(name)


def from_text(text, **names):
    exec(text, names)
    return names["op"]


#: names that the engine's own code uses, or Python, or this test
NAMES = re.findall(
    r"\w+",
    """
    Value Leaf Tensor isinstance primitive dict list REQUIRED AccumulateGrad GRAD FREED ndarray NodeClass t m n f s h g
    d0 e0 g0 x0 a0 x1 t_ m_ _new _kernel _mode _attrs _call_error _own more unknown more_ unknown_ out_ error kept rule_0
    self hooks freed values shapes title __builtins__ __minigrad_ops__ __class__ np
    """,
)


@pytest.mark.parametrize("name", NAMES)
def test_an_input_an_attr_or_a_function_may_have_any_name(own, name):
    kernel = from_text(f"def op({name}, other, *, k=2.0):\n return {name} * other * k", np=np)
    op = own(kernel, type="op_of_input")
    rule = from_text(f"def op({name}, out_grad, k): return out_grad * {name} * k")
    first = from_text("def op(other, out_grad, k): return out_grad * other * k")
    op.grad(**{name: first, "other": rule})
    x, y = mg.tensor([1.0, 2.0], requires_grad=True), mg.tensor([3.0, 4.0], requires_grad=True)
    assert op(**{name: x}, other=y, k=3.0).tolist() == [9.0, 24.0]
    assert mg.gradcheck(op, (x, y)) and mg.gradgradcheck(op, (x, y))
    kernel = from_text(f"def op(x, *, {name}=2.0): return x * {name}")
    op = own(kernel, type="op_of_attr")
    op.grad(x=from_text(f"def op({name}, out_grad): return out_grad * {name}"))
    assert op(x, **{name: 5.0}).tolist() == [5.0, 10.0] and op(x).tolist() == [2.0, 4.0]
    assert mg.gradcheck(lambda x: op(x, **{name: 5.0}), x)
    kernel.__name__ = name
    op = own(kernel, type="op_of_name")
    assert op(x).tolist() == [2.0, 4.0] and op.__name__ == name


@pytest.mark.parametrize("word", [*keyword.kwlist, *dir(builtins)][::7])
def test_a_function_named_by_a_word_of_python(own, word):
    def kernel(x):
        return x * 2.0

    kernel.__name__ = word
    assert own(kernel, type=f"named_{word}")(mg.tensor([1.0])).tolist() == [2.0]


class Surprise:
    """A default whose text would do something if anything executed it."""

    ran: list[str] = []

    def __repr__(self):
        return "__import__('tests.eager.test_own_ops').eager.test_own_ops.Surprise.ran.append('x')"


@pytest.mark.parametrize(
    "default",
    [np.nan, np.inf, -np.inf, np.float32(2), np.dtype("f4"), np.float64, Surprise(), Surprise,
     "'", "x\ny", (), {"a": [1]}, None, ..., slice(1), lambda: 0, np.zeros(2)],
    ids=lambda default: type(default).__name__,
)  # fmt: skip
def test_a_default_is_handed_over_and_never_text(own, default):
    seen = []
    op = own(lambda x, *, fill=default: seen.append(fill) or x * 2.0, type="with_a_default")
    op.grad(x=lambda out_grad, fill: seen.append(fill) or out_grad * 2.0)
    x = mg.tensor([1.0], requires_grad=True)
    op(x).sum().backward()
    assert all(value is default for value in seen) and len(seen) == 2
    assert x.grad.tolist() == [2.0] and not Surprise.ran
    assert op(x, 7.0).tolist() == [2.0] and seen[-1] == 7.0


def test_a_rule_that_hands_on_one_of_several_is_called(own):
    op = own(lambda x, *, k=1.0: x + k, type="plus_k")
    op.grad(x=lambda out_grad, k: out_grad)
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    op(x, k=3.0).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


class Doubling:
    def __call__(self, out_grad):
        return out_grad * 2.0


@pytest.mark.parametrize(
    "rule",
    [
        Doubling(),
        functools.partial(lambda out_grad, by: out_grad * by, by=2.0),
        Doubling().__call__,
    ],
)
def test_a_rule_is_anything_that_can_be_called(own, rule):
    op = own(lambda x: x * 2.0, type="doubled")
    try:
        op.grad(x=rule)
    except RuleError:  # a parameter that names nothing, as that of a partial function
        return
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    assert mg.gradcheck(op, x)


def test_a_kernel_that_looks_like_a_function_of_numpy_is_not_taken_for_it(own):
    class other:
        exp = staticmethod(lambda x: np.asarray(x) + 100.0)

    kernel = from_text("def op(x): return other.exp(x)", other=other, np=np)
    op = own(kernel, type="of_another_module")
    assert op(mg.tensor([1.0])).tolist() == [101.0]


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [
        (lambda out, k: out * k, lambda out, out_grad: out_grad * out),
        (lambda k, x_shape=2: k * x_shape, None),
        (lambda k, out_grad: k * out_grad, lambda out_grad: out_grad),
    ],
)
def test_a_name_that_could_mean_two_things_is_refused(own, kernel, rule):
    op = own(kernel, type="ambiguous")
    if rule is None:
        return
    with pytest.raises(RuleError, match=r"could mean two things(.|\n)*repair"):
        op.grad(k=rule)


def test_an_input_named_as_the_output_is_right_where_no_rule_reads_it(own):
    op = own(lambda out: out * 2.0, type="doubled_out")
    op.grad(out=lambda out_grad: out_grad * 2.0)
    assert mg.gradcheck(op, mg.tensor([1.0, 2.0], requires_grad=True))


@pytest.mark.parametrize("output", ["a b", "class", "x; import os", ""])
def test_an_output_has_a_name(own, output):
    with pytest.raises(RuleError, match=r"no name for an output(.|\n)*repair"):
        own(lambda x: (x, x), type="misnamed", outputs=("out", output))


def test_a_required_attr_behind_an_optional_input(own):
    op = own(lambda x, y=None, *, k, j=np.nan: x * k, type="scaled_by")
    op.grad(x=lambda out_grad, k: out_grad * k)
    x = mg.tensor([1.0], requires_grad=True)
    assert op(x, k=3.0).tolist() == [3.0]
    with pytest.raises(TypeError, match="k"):
        op(x)
    assert REGISTRY["scaled_by"].attrs["k"] is REQUIRED
