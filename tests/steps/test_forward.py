"""Forward mode, linearised and transposed."""

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

step = load("forward")
FUNCTIONS = {
    "a product": (lambda x, y: x * y, (2.0, 3.0)),
    "one input twice": (lambda x, y: x * x + y * x, (2.0, -3.0)),
    "a diamond": (lambda x, y: (x + y) * (x + y) * x, (0.5, 2.0)),
    "bent": (lambda x, y: x * y * (y * x).sin() + x.sin(), (0.7, 1.9)),
    "one input unused": (lambda x, y: x.sin() * x, (0.3, 5.0)),
}


def gradients(f, values):
    leaves = [mg.tensor(value, requires_grad=True) for value in values]
    f(*leaves).backward()
    return [0.0 if leaf.grad is None else leaf.grad.item() for leaf in leaves]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_three_ways_give_one_gradient(name):
    f, values = FUNCTIONS[name]
    expected = gradients(f, values)
    for direction, slope in zip(np.eye(2), expected, strict=True):
        assert np.isclose(step.jvp(f, values, direction)[1], slope)
    y, result, lines = step.linearise(f, x=values[0], y=values[1])
    assert np.isclose(y, step.jvp(f, values, (0.0, 0.0))[0])
    back = step.push(step.transpose(lines), {result: 1.0})
    np.testing.assert_allclose([back["x"], back["y"]], expected)
    np.testing.assert_allclose(step.push(lines, {"x": 1.0})[result], expected[0])


def test_turning_twice_changes_nothing():
    _, _, lines = step.linearise(FUNCTIONS["bent"][0], x=0.7, y=1.9)
    assert step.transpose(step.transpose(lines)) == lines


def test_the_cells_of_the_page_run():
    shown = [cell for cell in cells("forward", "active-ipynb") if "mg.draw" not in cell]
    _, printed = run_cells("forward", shown)
    assert "(20.0, 4.0)" in printed


MUTANTS = {
    "the product rule has one part": ("self.slope * other.value + self.value * other.slope", "self.slope * other.value"),
    "the slope of sin is sin": ("np.cos(self.value) * self.slope", "np.sin(self.value) * self.slope"),
    "lines overwrite": ("slopes[out] += factor", "slopes[out] = factor"),
    "lines are turned in place": ("in reversed(lines)]", "in lines]"),
    "lines are not turned round": ("[(each, factor, out) for", "[(out, factor, each) for"),
    "factors are swapped": ("other.value, self.name), (new, self.value", "self.value, self.name), (new, other.value"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "forward", *MUTANTS[name]).startswith("killed")


def test_one_gradient_without_parameters():
    for name in FUNCTIONS:
        test_three_ways_give_one_gradient(name)
    test_turning_twice_changes_nothing()
