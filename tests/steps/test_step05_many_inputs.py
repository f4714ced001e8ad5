"""Step 5: many inputs, reuse, accumulation."""

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

STEP = "step05_many_inputs"
step = load(STEP)


def box(value):
    return step.Variable(np.array(value))


def chain(x):
    return step.square(step.exp(step.square(x)))


def test_two_squares_added():
    x, y = box(2.0), box(3.0)
    z = step.square(x) + step.square(y)
    z.backward()
    assert (z.data, x.grad, y.grad) == (13, 4, 6)


def test_the_running_example():
    a, b, d = box(2.0), box(3.0), box(4.0)
    e = (a + b) * d
    e.backward()
    assert (e.data, a.grad, b.grad, d.grad) == (20, 4, 4, 5)


def test_a_variable_used_twice_or_three_times():
    for f, expected in (
        (lambda x: x + x, 2),
        (lambda x: (x + x) + x, 3),
        (lambda x: x * x, 10),
        (lambda x: x * x * x, 75),
    ):
        x = box(5.0)
        f(x).backward()
        assert x.grad == expected


def test_the_numbers_of_part_a_still_hold():
    x = box(0.5)
    y = chain(x)
    y.backward()
    assert (str(y.data), str(x.grad)) == ("1.648721270700128", "3.297442541400256")
    assert str(step.numerical_diff(step.square, box(2.0))) == "4.000000000004"
    assert abs(step.numerical_diff(chain, box(0.5)) - 3.2974426293330694) < 1e-11
    assert y.creator.input.creator.input.creator.input is x


def test_inputs_are_a_tuple_in_order():
    a, b = box(1.0), box(2.0)
    c = a + b
    assert c.creator.inputs == (a, b)
    assert c.creator.output is c


def test_every_gradient_agrees_with_the_judge():
    def f(x):
        return x * x + step.exp(x) * x

    x = box(1.5)
    f(x).backward()
    assert abs(x.grad - step.numerical_diff(f, x)) < 1e-6


def test_a_second_backward_adds_and_cleargrad_forgets():
    x = box(3.0)
    (x + x).backward()
    (x + x).backward()
    assert x.grad == 4
    x.cleargrad()
    assert x.grad is None
    (x + x).backward()
    assert x.grad == 2


def test_adding_leaves_the_arrays_of_others_alone():
    a, b = box([1.0, 1.0]), box([1.0, 1.0])
    y = (a + b) + a
    y.backward()
    np.testing.assert_array_equal(y.grad, [1, 1])
    np.testing.assert_array_equal(a.grad, [2, 2])
    np.testing.assert_array_equal(b.grad, [1, 1])


def test_the_mistake_overwriting_loses_all_but_the_last_way():
    namespace, printed = run_cells(STEP, ["import minigrad as mg", cells(STEP, "mistake")[0]])
    assert printed == "1.0\n"
    x = namespace["Variable"](np.array(3.0))
    namespace["backward_overwrite"]((x + x) + x)
    assert x.grad == 1


def test_the_mistake_adding_in_place_changes_what_others_hold():
    _, printed = run_cells(STEP, [cells(STEP, "mistake")[1]])
    assert printed == "a 2.0 b 2.0 and even y 2.0\n"


def test_leaf_float_and_second_call_are_still_refused():
    with pytest.raises(RuntimeError, match="leaf"):
        box(1.0).backward()
    with pytest.raises(TypeError, match=r"not the float 1\.5"):
        step.Variable(1.5)
    function = step.Add()
    function(box(1.0), box(2.0))
    with pytest.raises(RuntimeError, match="this Add was called before"):
        function(box(1.0), box(2.0))


def test_two_edges_go_into_add_and_two_come_back():
    x = box(3.0)
    y = x + x
    y.backward()
    graph = mg.draw(y, names={"x": x, "y": y}).graph
    (op,) = [n.id for n in graph.nodes.values() if n.kind == "op"]
    (back,) = [n.id for n in graph.nodes.values() if n.kind == "grad_op"]
    assert sum(e.head == op for e in graph.edges if e.kind == "flow") == 2
    assert sum(e.tail == back for e in graph.edges if e.kind in ("grad", "accumulate")) == 2


def test_the_backward_calls_are_those_of_the_graph():
    with mg.watch(step.Function) as run:
        a, b, d = box(2.0), box(3.0), box(4.0)
        ((a + b) * d).backward()
    assert [(e[0], type(e[1]).__name__) for e in run.events] == [
        ("forward", "Add"),
        ("forward", "Mul"),
        ("backward", "Mul"),
        ("backward", "Add"),
    ]


MUTANTS = {
    "overwrite instead of add": ("x.grad = gx if x.grad is None else x.grad + gx", "x.grad = gx"),
    "add in place": (
        "x.grad = gx if x.grad is None else x.grad + gx",
        "x.grad = gx if x.grad is None else x.grad.__iadd__(gx)",
    ),
    "the first gradient counts twice": (
        "gx if x.grad is None else",
        "gx + gx if x.grad is None else",
    ),
    "multiply instead of add": ("else x.grad + gx", "else x.grad * gx"),
    "only the first input": ("zip(f.inputs, gxs, strict=True):", "zip(f.inputs[:1], gxs):"),
    "inputs in reverse": ("zip(f.inputs, gxs, strict=True):", "zip(f.inputs[::-1], gxs):"),
    "the walk stops": ("functions.append(x.creator)", "pass"),
    "cleargrad makes a zero": (
        "    def cleargrad(self):\n        self.grad = None",
        "    def cleargrad(self):\n        self.grad = 0.0",
    ),
    "cleargrad does nothing": (
        "    def cleargrad(self):\n        self.grad = None",
        "    def cleargrad(self):\n        pass",
    ),
    "add gives to one input": ("return gy, gy", "return gy, 0 * gy"),
    "mul gives each its own value": ("return x1 * gy, x0 * gy", "return x0 * gy, x1 * gy"),
    "mul forgets gy": ("return x1 * gy, x0 * gy", "return x1, x0"),
    "plus multiplies": ("return Add()(self, other)", "return Mul()(self, other)"),
    "one input is kept": (
        "self.inputs, self.input = inputs, inputs[0]",
        "self.inputs = self.input = inputs[0],",
    ),
    "a function is used twice": ('if hasattr(self, "input"):', "if False:"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, STEP, *MUTANTS[name]).startswith("killed")
