"""Puzzles: the operators of a backward part, in order, among some that do not belong."""

import itertools

import pytest

import minigrad as mg
from minigrad.course.parsons import Parsons

FUNCTIONS = {
    "a chain": lambda x, w: mg.exp(mg.square(x)) * w,
    "a value used twice": lambda x, w: mg.exp(x * x) * w,
    "a diamond": lambda x, w: (a := x * w) * a,
    "a product computed twice": lambda x, w: (x * w) * (x * w),
    "a shared weight": lambda x, w: (x * w) * w,
    "saved values": lambda x, w: mg.tanh(x * w) * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_answer_is_right_and_every_wrong_line_is_told(name):
    puzzle = Parsons(FUNCTIONS[name])
    assert puzzle.verdict(puzzle.ordered(puzzle.answer)) == "✓ every gradient is right"
    letters = [line[0] for line in str(puzzle).splitlines()]
    strangers = [letter for letter in letters if letter not in puzzle.answer]
    assert strangers
    for place, stranger in itertools.product(range(len(puzzle.answer)), strangers):
        order = puzzle.answer[:place] + stranger + puzzle.answer[place + 1 :]
        assert puzzle.verdict(puzzle.ordered(order)).startswith("✗"), order


@pytest.mark.parametrize("name", FUNCTIONS)
def test_orders_are_right_exactly_where_every_operator_finds_what_it_reads(name):
    puzzle = Parsons(FUNCTIONS[name])
    right = [
        order
        for order in itertools.islice(itertools.permutations(puzzle.answer), 120)
        if puzzle.verdict(puzzle.ordered("".join(order))).startswith("✓")
    ]
    assert 1 <= len(right) < 12
    assert puzzle.verdict(puzzle.ordered(puzzle.answer[:-1])).startswith("✗")


def test_what_is_ordered_is_drawn_and_judged_and_a_strange_letter_refused(capsys):
    puzzle = Parsons(FUNCTIONS["a chain"])
    picture = puzzle(" ".join(puzzle.answer))
    assert capsys.readouterr().out == "✓ every gradient is right\n"
    assert any("exp_grad" in str(node) for node in picture.graph.nodes.values())
    puzzle(puzzle.answer + puzzle.answer[-1])  # a line twice changes no gradient
    assert capsys.readouterr().out == "✗ every gradient is right, and one line does not belong\n"
    puzzle("")
    assert "your turn" in capsys.readouterr().out
    with pytest.raises(ValueError, match="no line 'z'"):
        puzzle("z")


def test_trying_an_order_leaves_the_puzzle_as_it_was():
    puzzle = Parsons(FUNCTIONS["a diamond"])
    before = str(puzzle)
    puzzle.verdict(puzzle.ordered(puzzle.answer[::-1]))
    assert str(puzzle) == before
    assert puzzle.verdict(puzzle.ordered(puzzle.answer)).startswith("✓")
