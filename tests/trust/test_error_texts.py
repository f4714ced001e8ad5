"""Errors that no other test reads: a call that makes each, and words of it."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim, static
from minigrad.errors import MinigradError
from minigrad.static.text.literals import from_plain
from minigrad.viz.graph import Graph
from minigrad.viz.layout import layout
from minigrad.viz.watching import watch
from tests.static.test_serialize import sample


def leaf(value):
    return mg.tensor(value, requires_grad=True)


def changed(x, change):
    """``change(x)`` in place, outside the graph."""
    with mg.no_grad():
        change(x)


class Blank(mg.Function):
    pass


class OneWay(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return x


class Bare(nn.Module):
    pass


class InATuple(nn.Module):
    def __init__(self):
        self.parts = (leaf(1.0),)

    def forward(self, x):
        return x


def twice():
    seen = watch(OneWay)
    with seen, seen:
        pass


def other_gradient(optimizer):
    p = leaf([1.0, 2.0])
    p.grad = mg.tensor([1.0, 2.0])
    p.data = np.ones(3)
    optimizer([p]).step()


def other_state():
    made = optim.SGD([leaf([1.0, 2.0])], momentum=0.9)
    made.load_state_dict(made.state_dict() | {"velocity.0": np.ones(3)})


def building(make):
    """``make(x)`` with data ``x`` of shape [2] in a Program."""
    with static.program_guard(static.Program()):
        return make(static.data("x", [2]))


def parsed(*lines):
    return static.parse("\n".join(lines))


def stored(*path, to):
    data = json.loads(sample()[0].to_json())
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return static.Program.from_json(json.dumps(data))


def stepping(*args, **kwargs):
    program = static.Program()
    with static.program_guard(program):
        y = static.data("x", [2]) * 2.0
    return static.compile(program, fetch=y, **kwargs)(*args)


def wrong_block(name, value):
    program = static.Program()
    setattr(program.global_block(), name, value)
    return static.verify(program)


def known_as_another():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2])
    program.global_block().vars["y"] = x
    return static.verify(program)


EAGER = {
    "float32[1] is too coarse": lambda: mg.gradcheck(mg.sin, [mg.tensor(np.float32([1]), requires_grad=True)]),
    "equally many examples": lambda: mg.data.DataLoader((np.ones(3), np.ones(2))),
    "write forward(ctx": lambda: Blank.apply(leaf(1.0)),
    "write backward(ctx": lambda: OneWay.apply(leaf(1.0)).backward(),
    "cannot change the shape [1] to [2]": lambda: changed(mg.tensor([1.0]), lambda x: x.add_(np.ones(2))),
    "cannot turn int64 into float64": lambda: changed(mg.tensor([1]), lambda x: x.add_(0.5)),
    "has views": lambda: (lambda y: (y[:1], y.add_(1.0)))(leaf([1.0, 2.0]) * 1.0),
    "is a view of another Tensor": lambda: (lambda y: y[:1].add_(1.0))(leaf([1.0, 2.0]) * 1.0),
    "inputs must be Tensors": lambda: mg.grad(leaf(1.0) * 2.0, [3.0]),
    "must hold real numbers": lambda: (leaf(1.0) * 2.0).backward(1j),
    "a Tensor holds numbers, not": lambda: mg.tensor("text"),
    "its data must be floating-point": lambda: setattr(leaf([1.0]), "data", np.array([1])),
    "only real floating-point Tensors can require grad": lambda: mg.tensor([1], requires_grad=True),
    "only leaves can be copied deeply": lambda: copy.deepcopy(leaf(1.0) * 2.0),
    "only leaves can be stored or copied": lambda: pickle.dumps(leaf(1.0) * 2.0),
    "register_hook()": lambda: mg.tensor(1.0).register_hook(print),
    "retain_grad()": lambda: mg.tensor(1.0).retain_grad(),
    "item() needs one element": lambda: mg.tensor([1.0, 2.0]).item(),
    "is ambiguous: it has 2 elements": lambda: bool(mg.tensor([1.0, 2.0])),
    "is for one number, not for": lambda: f"{mg.tensor([1.0, 2.0]):.2f}",
    "needs 2 vectors, a tuple": lambda: mg.jvp(lambda x, y: x * y, (leaf(1.0), leaf(2.0)), (1.0,)),
    "has no forward(self, x): write one": lambda: Bare()(1.0),
    "this Bare": lambda: Bare().weihgt,
    "stands in a tuple": lambda: building(InATuple()),
    "this Linear has no 'wieght'": lambda: nn.Linear(2, 3, seed=0).load_state_dict({"wieght": 1.0}),
    "seed is": lambda: nn.Linear(2, 3, seed=-1),
    "count from 1, padding": lambda: mg.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), stride=0),
    "takes the sizes as one shape": lambda: mg.zeros(2, 3),
    "erf is defined here for real numbers": lambda: mg.erf(np.array([1j])),
    "do not add up to the 4 elements": lambda: mg.split(np.ones(4), [1, 2]),
    "is not a probability below 1": lambda: mg.dropout(np.ones(3), 1.0, seed=0),
    "nesterov looks ahead": lambda: optim.SGD([leaf(1.0)], nesterov=True),
    "expected": other_state,
    "gradient": lambda: other_gradient(lambda p: optim.SGD(p, lr=0.1)),
    "grad": lambda: other_gradient(lambda p: optim.SGD(p, lr=0.1, clip=lambda g: g)),
    "np.exp does not know Tensors": lambda: np.exp(mg.tensor(1.0)),
}  # fmt: skip
HEAD = "block 0:"
PROGRAMS = {
    "is no rung of the ladder": lambda: stepping(stop_after="rols"),
    "feeds are given by name": lambda: stepping(np.ones(2)),
    "compare first (x > 0)": lambda: building(lambda x: static.cond(x, lambda: x, lambda: x)),
    "needs real numbers, not": lambda: building(lambda x: static.parameter("p", [1j])),
    "are a dict, slot": lambda: building(lambda x: x.program.global_block().append_op("sin", [x], {})),
    "Variable": lambda: building(lambda x: x.shpae),
    "a program starts with 'block 0:'": lambda: parsed("x = 1"),
    "line 1: a program starts with": lambda: parsed("data x: float64[2]"),
    "unknown role 'bakward'": lambda: parsed(HEAD, "-- bakward"),
    "block 1 stands where block 0": lambda: parsed("block 1:"),
    "an operator reads: targets": lambda: parsed(HEAD, "y"),
    "is given twice": lambda: parsed(HEAD, "data x: float64[2]", "y = sin(x=x, x=x)"),
    "there are only 1 slots": lambda: parsed(HEAD, "data x: float64[2]", "y = sin(x, x)"),
    "'z' is no input slot, and x no value": lambda: parsed(HEAD, "data x: float64[2]", "y = sin(z=x)"),
    "is no shape": lambda: from_plain(["array", "float64", [-1], []]),
    "the limit is": lambda: from_plain(["array", "float64", [10**9], []]),
    "has another number of elements": lambda: from_plain(["array", "float64", [2], [1.0]]),
    "an array holds numbers": lambda: from_plain(["array", "float64", [1], ["a"]]),
    "an attr cannot hold a": lambda: from_plain({}),
    "is no slice": lambda: from_plain(["slice", 1]),
    "'version' must be a int": lambda: stored("version", to="1"),
    "block 0 must be the root": lambda: wrong_block("parent", 0),
    "knows Variable(x: float64[2]) as 'y'": known_as_another,
    "calls itself 3": lambda: wrong_block("idx", 3),
}  # fmt: skip


PICTURES = {
    "unknown node kind 'boks'": lambda: Graph().node("boks", "x"),
    "unknown edge kind 'floww'": lambda: (lambda g: g.edge(g.node("leaf", "x"), g.node("op", "y"), "floww"))(Graph()),
    "unknown picture format": lambda: layout("digraph {}", "gif"),
    "watch needs classes": lambda: watch(3),
    "this watch is running already": twice,
}  # fmt: skip


@pytest.mark.parametrize("words", [*EAGER, *PROGRAMS, *PICTURES])
def test_an_error_says_these_words(words):
    call = (EAGER | PROGRAMS | PICTURES)[words]
    kinds = (
        MinigradError,
        ValueError,
        TypeError,
        RuntimeError,
        AttributeError,
        NotImplementedError,
    )
    with pytest.raises(kinds) as caught:
        call()
    assert words in str(caught.value)
