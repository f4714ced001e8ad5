"""A call that does not fit names the function, its parameters, and the keyword that was meant."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import DTypeError

X = mg.tensor([[1.0, 2.0]], requires_grad=True)

UNKNOWN = {
    "a method of a primitive": (lambda: X.sum(dim=0), "sum() has no keyword 'dim'; did you mean 'axis'?"),
    "a primitive": (lambda: mg.mean(X, dims=1), "mean() has no keyword 'dims'; did you mean 'axis'?"),
    "a spelling": (lambda: mg.max(X, keepdim=True), "did you mean 'keepdims'?"),
    "a list of values": (lambda: mg.concat([X, X], dim=1), "it is called as concat(*x, axis=0)"),
    "two axes": (lambda: mg.swapaxes(X, dim0=0, dim1=1), "did you mean 'axis1'?"),
    "a function of primitives": (lambda: mg.norm(X, p=1), "norm() has no keyword 'p'; did you mean 'ord'?"),
    "a method of primitives": (lambda: X.clip(a_min=0), "did you mean 'min'?"),
    "a creation function": (lambda: mg.zeros([2], requiresgrad=True), "did you mean 'requires_grad'?"),
    "nothing near": (lambda: X.reshape(2, order="F"), "reshape() has no keyword 'order'\n"),
    "arrays": (lambda: mg.softmax(np.ones(2), dim=0), "did you mean 'axis'?"),
    "both ways at once": (lambda: mg.topk(X, 1, k=2), "got 'k' twice, by position and by name"),
    "an input both ways": (lambda: mg.topk(X, 1, x=X), "got 'x' twice"),
}  # fmt: skip
COUNT = {
    "too many": (lambda: mg.sum(X, 0, False, 3), "sum() takes at most 3 values, 4 were given"),
    "too many for a function": (lambda: X.clip(0, 1, 2), "clip() takes at most 3 values, 4 were given"),
    "too many for several outputs": (lambda: mg.split(X, 2, 1, 3), "split() takes at most 3 values, 4 were given"),
    "no attr": (lambda: mg.reshape(X), "reshape() needs 'shape'\n  it is called as reshape(x, shape)"),
    "no second axis": (lambda: mg.swapaxes(X, 0), "swapaxes() needs 'axis2'"),
    "no input": (lambda: mg.sum(axis=0), "sum() needs 'x'"),
    "no second input": (lambda: mg.take(X, axis=1), "take() needs 'indices'"),
    "no filters": (lambda: mg.conv2d(X), "conv2d() needs 'w'"),
    "no attr of several outputs": (lambda: mg.topk(X), "topk() needs 'k'"),
    "no target": (lambda: mg.cross_entropy(X), "cross_entropy() needs 'target'"),
    "no generator": (lambda: mg.normal([2]), "normal() needs 'generator'"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"), {**UNKNOWN, **COUNT}.values(), ids={**UNKNOWN, **COUNT}
)
def test_a_call_that_does_not_fit_names_what_it_is_called_as(call, message):
    with pytest.raises(DTypeError) as found:
        call()
    assert message in str(found.value)
    assert "it is called as" in str(found.value)
    assert "at test_calls.py" in str(found.value)


def test_a_program_says_the_same_of_a_wrong_call():
    with static.program_guard(static.Program()):
        x = static.data("x", [2, 3])
        with pytest.raises(DTypeError, match="did you mean 'axis'"):
            x.sum(dim=0)
        with pytest.raises(DTypeError, match="reshape\\(\\) needs 'shape'"):
            mg.reshape(x)


def test_a_wrong_value_inside_a_right_call_keeps_its_own_error():
    with pytest.raises(DTypeError, match="is not possible"):
        mg.norm(X, axis="rows")


def test_a_list_given_as_an_attr_may_change_afterwards():
    x = mg.tensor(np.arange(6.0).reshape(1, 2, 3), requires_grad=True)
    axes, widths, shifts, lengths = [2, 0, 1], [[0, 0], [1, 0], [0, 1]], [1, 2], [1, 1]
    y = mg.roll(mg.pad(x, pad_width=widths), shift=shifts, axis=(1, 2))
    y = mg.concat(mg.split(y, num_or_sections=[1, 2], axis=1), axis=1)
    y = mg.permute_dims(y, axes=axes)
    seed = np.random.default_rng(0).normal(size=y.shape)
    (before,) = mg.grad(y, x, seed, retain_graph=True)
    axes[:], widths[1], shifts[0], lengths[:] = [0, 1, 2], [0, 1], 0, [2]
    (after,) = mg.grad(y, x, seed)
    assert after.tolist() == before.tolist()


def test_a_list_given_as_an_attr_of_a_program_may_change_afterwards():
    program = static.Program()
    with static.program_guard(program):
        axes, shape = [1, 0], [6]
        y = mg.reshape(mg.permute_dims(static.data("x", [2, 3]), axes=axes), shape=shape)
    axes[:], shape[:] = [0, 1], [1]
    x = np.arange(6.0).reshape(2, 3)
    (found,) = static.Executor().run(program, feed={"x": x}, fetch_list=[y])
    assert found.tolist() == x.T.reshape(-1).tolist()
