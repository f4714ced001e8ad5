"""Step 3: creator links."""

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

step = load("step03_creator_links")


def box(value):
    return step.Variable(np.array(value))


def chain(x):
    """The functions and boxes of C(B(A(x)))."""
    A, B, C = step.Square(), step.Exp(), step.Square()
    a = A(x)
    b = B(a)
    return (A, B, C), (x, a, b, C(b))


def walk(y):
    """The three lines, as often as there is a creator; the boxes passed."""
    passed = [y]
    while y.creator is not None:
        function = y.creator
        x = function.input
        x.grad = function.backward(y.grad)
        passed.append(y := x)
    return passed


def test_the_six_asserts_of_the_document():
    (A, B, C), (x, a, b, y) = chain(box(0.5))
    assert y.creator == C
    assert y.creator.input == b
    assert y.creator.input.creator == B
    assert y.creator.input.creator.input == a
    assert y.creator.input.creator.input.creator == A
    assert y.creator.input.creator.input.creator.input == x


def test_equal_means_the_same_object():
    assert box(1.0) != box(1.0)
    assert step.Square() != step.Square()


def test_nobody_made_a_leaf():
    assert box(0.5).creator is None


def test_links_go_both_ways():
    (A, B, C), (x, a, b, y) = chain(box(0.5))
    assert (A.input, A.output, B.input, B.output, C.input, C.output) == (x, a, a, b, b, y)


def test_set_creator_sets_the_creator():
    x, function = box(1.0), step.Square()
    x.set_creator(function)
    assert x.creator is function


def test_the_walk_gives_the_gradient_of_the_chain():
    _, (x, a, b, y) = chain(box(0.5))
    y.grad = np.array(1.0)
    assert walk(y) == [y, b, a, x]
    assert str(x.grad) == "3.297442541400256"


def test_the_numbers_of_step_1_still_hold():
    _, (_x, _a, _b, y) = chain(box(0.5))
    assert str(y.data) == "1.648721270700128"
    assert str(step.numerical_diff(step.Square(), box(2.0))) == "4.000000000004"
    assert abs(step.numerical_diff(lambda x: chain(x)[1][3], box(0.5)) - 3.2974426293330694) < 1e-11


def test_the_graph_is_made_by_the_run():
    _namespace, printed = run_cells(
        "step03_creator_links",
        [source for source in cells("step03_creator_links") if source.startswith("def grow")],
    )
    assert printed == "1.5 ['Square', 'Square', 'Square']\n5.0 ['Square']\n"


def test_the_mistake_a_repacked_box_cuts_the_graph():
    _, (x, _a, b, _) = chain(box(0.5))
    y = step.Square()(step.Variable(b.data))
    y.grad = np.array(1.0)
    assert str(y.data) == "1.648721270700128"
    assert x not in walk(y)
    assert x.grad is None


def test_the_mistake_one_function_used_twice_leads_round_in_a_circle():
    square, x = step.Square(), box(3.0)
    a = square(x)
    y = square(a)
    assert y.data == 81
    assert a.creator.input is a


def test_the_picture_is_drawn_from_the_links():
    _, (_x, _a, _b, y) = chain(box(0.5))
    nodes = mg.draw(y).graph.nodes.values()
    assert [n.name for n in nodes if n.kind == "op"].count("Square") == 2
    assert not [
        n
        for n in nodes
        if n.kind in ("gradient", "leaf_gradient")
        and n.state == "done"
        and n.lines
        and n.lines[0] not in ("—",)
    ]


def test_the_picture_after_the_walk_shows_its_numbers():
    _, (_x, _a, _b, y) = chain(box(0.5))
    y.grad = np.array(1.0)
    walk(y)
    described = str(mg.draw(y).text)
    assert "3.2974" in described


def test_the_picture_of_a_cut_graph_begins_at_the_cut():
    y = step.Square()(step.Variable(step.Exp()(box(0.25)).data))
    nodes = mg.draw(y).graph.nodes.values()
    assert [n.name for n in nodes if n.kind == "op"] == ["Square"]


MUTANTS = {
    "no creator": ("        output.set_creator(self)\n", ""),
    "the input is said to be created": ("output.set_creator(self)", "input.set_creator(self)"),
    "the creator is a class": ("self.creator = function", "self.creator = type(function)"),
    "a leaf has a creator": ("self.creator = None", "self.creator = self"),
    "input and output swapped": (
        "self.input = input\n        self.output = output",
        "self.input = output\n        self.output = input",
    ),
    "the output is forgotten": ("        self.output = output\n", ""),
    "a copy of the input is linked": ("self.input = input", "self.input = Variable(input.data)"),
    "a copy of the output is returned": ("return output", "return Variable(y)"),
    "square drops gy": ("return 2 * x * gy", "return 2 * x"),
    "exp reads its output": ("return np.exp(x) * gy", "return np.exp(self.output.data) * gy"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step03_creator_links", *MUTANTS[name]).startswith("killed")
