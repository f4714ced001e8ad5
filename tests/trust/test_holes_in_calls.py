"""What no test of the arguments of calls, and of traced functions, looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim, static
from minigrad.errors import DTypeError
from minigrad.primitives.arguments import frozen
from minigrad.primitives.registry import REGISTRY


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
