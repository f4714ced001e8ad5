"""Step 1: boxes, functions, a numerical judge."""

import numpy as np
import pytest
from literate import load, verdict_on

step = load("step01_boxes")


def box(value):
    return step.Variable(np.array(value))


def chain(x):
    return step.Square()(step.Exp()(step.Square()(x)))


def test_the_chain_at_one_half():
    assert str(chain(box(0.5)).data) == "1.648721270700128"


def test_a_function_returns_a_new_box_and_leaves_the_old_one_alone():
    x = box(10.0)
    y = step.Square()(x)
    assert isinstance(y, step.Variable)
    assert y is not x
    assert (x.data, y.data) == (10.0, 100.0)


def test_functions_work_on_arrays_of_any_shape():
    y = step.Exp()(box([[0.0, 1.0], [2.0, 3.0]]))
    np.testing.assert_allclose(y.data, np.exp([[0.0, 1.0], [2.0, 3.0]]), rtol=1e-15)


def test_the_judge_of_the_square_at_two():
    assert str(step.numerical_diff(step.Square(), box(2.0))) == "4.000000000004"


def test_the_judge_of_the_chain():
    slope = step.numerical_diff(chain, box(0.5))
    assert abs(slope - 3.2974426293330694) < 1e-11


def test_the_judge_looks_from_both_sides_and_takes_the_step_it_is_given():
    cube = type("Cube", (step.Function,), {"forward": lambda self, x: x**3})()
    assert step.numerical_diff(cube, box(1.0), eps=0.5) == 3.25  # 3x² + eps²


def test_the_mistake_a_step_below_the_spacing_of_numbers_sees_no_slope():
    assert step.numerical_diff(chain, box(0.5), eps=1e-17) == 0


def test_the_error_is_a_valley():
    error = {
        k: abs(step.numerical_diff(chain, box(0.5), 10.0**k) - 3.297442541400256)
        for k in (-1, -5, -14)
    }
    assert error[-1] > 0.01 > 1e-8 > error[-5]
    assert error[-14] > 1e-3


def test_the_bare_function_says_what_it_lacks():
    with pytest.raises(NotImplementedError, match=r"Function has no forward\(x\) of its own"):
        step.Function()(box(1.0))


def test_there_is_no_backward_yet():
    assert not hasattr(step.Function, "backward")
    assert not hasattr(box(1.0), "grad")


def test_the_pictures_hold_three_functions_and_nothing_to_walk():
    mg = pytest.importorskip("minigrad.viz")
    with mg.watch(step.Function) as run:
        chain(box(0.5))
    assert [type(event[1]).__name__ for event in run.events] == ["Square", "Exp", "Square"]
    assert {event[0] for event in run.events} == {"forward"}
    graph = mg.draw(run).graph
    assert sum(node.kind == "op" for node in graph.nodes.values()) == 3
    assert not any(node.side == "backward" for node in graph.nodes.values())


MUTANTS = {
    "square doubles": ("return x ** 2", "return x * 2"),
    "exp to another base": ("return np.exp(x)", "return 2.0 ** x"),
    "the box is used again": ("return Variable(y)", "input.data = y\n        return input"),
    "the bare array is returned": ("return Variable(y)", "return y"),
    "forward is skipped": ("y = self.forward(x)", "y = x"),
    "one-sided": ("left = f(Variable(x.data - eps))", "left = f(Variable(x.data))"),
    "the run is eps": ("/ (2 * eps)", "/ eps"),
    "left minus right": ("(right.data - left.data)", "(left.data - right.data)"),
    "eps is fixed": ("/ (2 * eps)", "/ 2e-4"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step01_boxes", *MUTANTS[name]).startswith("killed")
