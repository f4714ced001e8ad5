"""Watching calls: everything is seen, nothing is left behind."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad.viz import draw, watch
from tests.viz.linked_nodes import Add, Exp, Function, Mul, Square, Variable


def test_forward_and_backward_calls_are_seen_in_order():
    square, exp = Square(), Exp()
    with watch(Function) as run:
        x = Variable(0.5)
        a = square(x)
        b = exp(a)
        gb = exp.backward(np.array(1.0))
        square.backward(gb)
    assert [(e.kind, e.function) for e in run.events] == [
        ("forward", square),
        ("forward", exp),
        ("backward", exp),
        ("backward", square),
    ]
    assert run.events[0].inputs == (x,)
    assert run.events[0].outputs == (a,)
    assert run.events[1].outputs == (b,)
    assert run.events[2].outputs == (gb,)


def test_the_classes_are_as_before_afterwards_also_after_an_exception():
    classes = (Function, Square, Exp, Add, Mul)
    before = [dict(c.__dict__) for c in classes]

    def interrupted():
        with watch(Function):
            Square()(Variable(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert [dict(c.__dict__) for c in classes] == before


def test_a_failing_call_is_no_event():
    class Broken(Function):
        def forward(self, x):
            raise ValueError("no")

    with watch(Function) as run, pytest.raises(ValueError, match="no"):
        Broken()(Variable(1))
    assert run.events == []


def test_arrays_are_kept_as_they_were():
    square = Square()
    with watch(Function) as run:
        x = Variable([1.0, 2.0])
        square(x)
        gy = np.ones(2)
        square.backward(gy)
        gy += 5
        x.data += 5
    assert run.snapshots[0].inputs[0].tolist() == [1, 2]
    assert run.snapshots[1].inputs[0].tolist() == [1, 1]


def test_a_subclass_made_while_watching_is_seen():
    with watch(Function) as run:

        class Triple(Function):
            def forward(self, x):
                return 3 * x

            def backward(self, gy):
                return 3 * gy

        f = Triple()
        f(Variable(1))
        f.backward(np.array(1.0))
    assert [e.kind for e in run.events] == ["forward", "backward"]
    assert not hasattr(Triple.backward, "__wrapped__")


def test_a_call_through_super_is_one_event():
    class Loud(Square):
        def backward(self, gy):
            return super().backward(gy)

    with watch(Function) as run:
        f = Loud()
        f(Variable(2))
        f.backward(np.array(1.0))
    assert [e.kind for e in run.events] == ["forward", "backward"]


def test_functions_called_inside_backward_are_kept_apart():
    class Deep(Function):
        def forward(self, x):
            return x

        def backward(self, gy):
            return Square()(gy)

    with watch(Function) as run:
        f = Deep()
        f(Variable(2))
        f.backward(Variable(3))
    assert [e.kind for e in run.events] == ["forward", "backward"]


def test_forward_called_directly_is_seen():
    with watch(Square) as run:
        Square().forward(3.0)
    assert [(e.kind, e.outputs) for e in run.events] == [("forward", (9.0,))]


def test_two_watches_may_be_nested():
    with watch(Function) as outer, watch(Square) as inner:
        Square()(Variable(1))
        Exp()(Variable(1))
    assert len(inner.events) == 1
    assert len(outer.events) == 2
    assert not hasattr(Square.forward, "__wrapped__")


def test_names_and_docstrings_of_methods_stay():
    with watch(Function):
        assert Square.backward.__name__ == "backward"


@pytest.mark.parametrize("wrong", [(), (Square(),), ("Function",)])
def test_something_else_than_a_class_is_refused_with_an_example(wrong):
    with pytest.raises(TypeError, match=r"watch\(Function\)"):
        watch(*wrong)


def test_names_of_the_place_that_watched_are_kept():
    def somewhere():
        with watch(Function) as run:
            start = Variable(2)
            result = Square()(start)
        return run, result

    run, result = somewhere()
    assert [n.name for n in draw(run).graph.nodes.values() if n.kind != "op"] == ["start", "result"]
    assert sorted(run.names) == ["result", "start"]
    assert result.data == 4


def test_a_watch_tells_what_it_saw():
    with watch(Function) as run:
        Square()(Variable(1))
    assert repr(run) == "<watch: 1 forward, 0 backward>"
