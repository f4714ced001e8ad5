"""Every public function called wrongly; ``python -m tests.campaign calls`` does it with more values."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim, static
from minigrad.errors import ArgumentError, DTypeError
from tests.trust.wrong_calls import WAYS, callees, check


def test_every_function_is_looked_at():
    assert len(callees()) > 300 and len(WAYS) == 20
    assert {"mg.exp", "mg.where", "nn.Linear", "Tensor.backward"} <= {c.title for c in callees()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", range(20), ids=WAYS)
def test_a_wrong_call_is_answered_with_our_error_the_line_and_a_name_that_fits(way):
    for k in range(len(callees())):
        check(way * len(callees()) + k)


def of_data():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    x.data -= 0.1 * x.grad


def appended(type, x="x"):
    program = static.Program()
    with static.program_guard(program):
        v = static.data("v", [2, 2])
    program.global_block().append_op(type, {x: v, "Y": v}, {"Out": "z"})


class Double(mg.Function):
    """Nothing but a name."""


T = mg.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "error", "repair"),
    [
        (of_data, DTypeError, "with mg.no_grad(): x -= …"),
        (lambda: T.size(0), DTypeError, "x.shape[0]"),
        (lambda: T.size(), DTypeError, "x.shape"),
        (lambda: mg.tensor([2]) ** -1, DTypeError, "x.astype(float) ** -1"),
        (lambda: optim.SGD([], lr=-1), None, None),
        (lambda: optim.Adam([mg.tensor(1.0, requires_grad=True)], lr=-1), ArgumentError, "lr=0.01"),
        (lambda: mg.max(T, T), DTypeError, "mg.maximum(x, y)"),
        (lambda: mg.min(T, 1.5 * T), DTypeError, "mg.minimum(x, y)"),
        (lambda: mg.where(T > 0), DTypeError, "np.nonzero(condition.data)"),
        (lambda: Double(T), DTypeError, "Double.apply(…)"),
        (lambda: mg.checkpoint(T, T), DTypeError, "pass a function there"),
        (lambda: mg.trace(lambda x: x, T, offset=1), DTypeError, None),
        (lambda: mg.cross_entropy(np.zeros((2, 5, 3)), np.zeros((2, 3), int)), ValueError, "axis=1"),
        (lambda: mg.jacobian(T, T), DTypeError, "pass a function there"),
        (lambda: appended("elementwise_add"), ValueError, "the type is 'add'"),
        (lambda: appended("mul", "X"), ValueError, "the type is 'matmul'"),
    ],
)  # fmt: skip
def test_a_line_of_another_library_is_answered_with_the_line_to_write_here(call, error, repair):
    with pytest.raises(error or mg.MinigradError) as caught:
        call()
    text = str(caught.value)
    assert isinstance(caught.value, mg.MinigradError)
    assert "\n  at test_wrong_calls.py:" in text
    if repair:
        assert "repair: " in text and repair in text.partition("repair: ")[2]


def test_a_matrix_has_a_trace_with_an_offset():
    assert float(mg.trace(T, offset=1)) == 2.0


def test_the_size_is_a_number_all_the_same():
    assert T.size == 4 and T.size + 1 == 5 and np.zeros(T.size).shape == (4,) and f"{T.size}" == "4"


def test_no_guess_is_made_of_a_type_of_operator_that_is_not_near():
    for name in ("no_such_op", None):
        with pytest.raises(ValueError, match=re.escape(f"no operator type {name!r}. Known:")):
            appended(name)


def test_an_error_of_a_function_of_the_user_stays_theirs():
    def wrong(x):
        return x.no_such_attribute

    with pytest.raises(AttributeError) as caught:
        mg.jacobian(wrong, T)
    assert not isinstance(caught.value, mg.MinigradError)
    with pytest.raises(KeyError):
        mg.checkpoint(lambda x: {}["a"], T)
