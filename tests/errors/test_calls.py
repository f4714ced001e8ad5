"""Calls that do not fit: functions, classes and methods say what they are called as and what they need."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim, static
from minigrad.errors import DTypeError
from minigrad.primitives.arguments import frozen
from minigrad.primitives.registry import REGISTRY

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


# -- what a call needs -------------------------------------------------------------------


def built(make):
    """What a function makes of two Variables of a program."""
    with static.program_guard(static.Program()):
        return make(static.data("x", [2, 2]), static.data("y", [2, 2]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: mg.mul(x, None), r"mul\(\) needs 'y'"),
        (lambda x, y: mg.linear(x, None), r"linear\(\) needs 'w'\n  it is called as linear\(x, w, b=None\)"),
        (lambda x, y: mg.topk(x), r"topk\(\) needs 'k'"),
        (lambda x, y: mg.concat([x, y], 1, 2), r"takes at most 2 values, 3 were given\n.*concat\(\*x, axis=0\)"),
    ],
)  # fmt: skip
def test_a_program_says_what_a_call_needs(call, words):
    with pytest.raises(DTypeError, match=words):
        built(call)


@pytest.mark.parametrize("call", [mg.sub, mg.mse, mg.logical_and])
def test_a_missing_value_is_told_before_a_list_of_unequal_rows(call):
    with pytest.raises(DTypeError, match=rf"{call.__name__}\(\) needs 'y'"):
        call([1.0, [2.0]])


def test_a_program_takes_inputs_by_name_and_leaves_out_what_may_be():
    assert built(lambda x, y: mg.mul(x=x, y=y)).shape == (2, 2)
    assert built(lambda x, y: mg.mul(x, y=y)).shape == (2, 2)
    assert built(lambda x, y: mg.linear(x, y)).shape == (2, 2)
    assert built(lambda x, y: mg.linear(x, y, None)).shape == (2, 2)
    assert built(lambda x, y: mg.concat([x, y], 1)).shape == (2, 4)
    assert built(lambda x, y: mg.concat((x, y), axis=1)).shape == (2, 4)
    assert built(lambda x, y: mg.topk(x=x, k=1))[0].shape == (2, 1)
    assert mg.topk(x=mg.tensor([1.0, 3.0]), k=1)[0].tolist() == [3.0]


def test_attrs_become_what_nobody_can_change():
    assert frozen([1, [2, (3,)]]) == (1, (2, (3,)))
    assert frozen(np.array([[1, 2], [3, 4]])) == ((1, 2), (3, 4))
    assert frozen("text") == "text" and frozen(np.float64(2.0)) == 2.0
    shift = np.array([1, 0])
    x = mg.tensor([[1.0, 2.0]], requires_grad=True)
    y = mg.roll(x, shift=shift, axis=(1, 0))
    shift[:] = 0
    assert mg.grad(y, x, np.array([[1.0, 10.0]]))[0].tolist() == [[10.0, 1.0]]


def test_a_required_attr_reads_so():
    assert repr(REGISTRY["reshape"].attrs) == "{'shape': required}"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mg.norm(axis=0), r"norm\(\) needs 'x'"),
        (lambda: mg.normal([2], 0.0, 1.0), r"normal\(\) needs 'generator'"),
        (lambda: mg.normal([2], 0.0, 1.0, 5), r"normal\(\) takes at most 3 values, 4 were given"),
        (lambda: mg.normal(generator=3), r"normal\(\) needs 'shape'"),
        (lambda: nn.Sequential(layer=3), r"has no keyword 'layer'(?s:.*)it is called as Sequential\(\*layers\)"),
        (lambda: optim.SGD(rate=3), r"SGD\(\) has no keyword 'rate'(?s:.*)it is called as SGD\(parameters=None, lr=0.01"),
        (lambda: static.Executor().run(feeds={}), r"Executor.run\(\) has no keyword 'feeds'; did you mean 'feed'(?s:.*)Executor.run\(program"),
    ],
)  # fmt: skip
def test_functions_classes_and_methods_say_what_a_call_needs(call, words):
    with pytest.raises(DTypeError, match=words):
        call()


def test_a_class_of_ones_own_says_the_same_of_its_constructor():
    class Steps(optim.Optimizer):
        def __init__(self, parameters, size):
            super().__init__(parameters, lr=size)

    class Others(Steps):
        pass

    with pytest.raises(
        DTypeError, match=r"Steps\(\) needs 'size'\n  it is called as Steps\(parameters, size\)"
    ):
        Steps(None)
    with pytest.raises(DTypeError, match=r"Others\(\) has no keyword 'sise'; did you mean 'size'"):
        Others(None, sise=1)
    assert Others(None, 0.5).lr == 0.5


def test_a_traced_function_may_name_its_inputs_and_return_several_values():
    program = mg.trace(lambda x, y: (x * y, x), np.ones(2), np.ones(2), names=["a", "b"])
    assert program.inputs == ["a", "b"]
    assert [program.global_block().var(name).stop_gradient for name in "ab"] == [True, True]
    assert program.outputs[1] == "a" and len(program.outputs) == 2
    assert mg.trace(lambda x: [x * 2.0], np.ones(2)).inputs == ["x0"]


def test_the_trace_of_a_matrix_is_a_number():
    assert mg.trace(mg.tensor([[1.0, 2.0], [3.0, 4.0]])).item() == 5.0
    assert mg.trace(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1).item() == 2.0
