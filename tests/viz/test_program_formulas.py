"""Grad ops of Programs say their formulas; a player puts the numbers of the run in."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static


def built(function):
    with static.program_guard(static.Program()) as program:
        x = static.data("x", [1, 2])
        w = static.parameter("w", np.array([[1.0], [2.0]]))
        loss = function(x, w)
        static.append_backward(loss)
    return program, loss


def lines(program, op_type):
    nodes = mg.draw(program).graph.nodes.values()
    return [line for n in nodes if n.name == op_type for line in n.lines]


@pytest.mark.parametrize(
    ("function", "op_type", "line"),
    [
        (lambda x, w: mg.mean(mg.matmul(x, w)), "mean_grad", "g / n"),
        (lambda x, w: mg.mean(mg.matmul(x, w)), "matmul_grad", "xᵀ @ g"),
        (lambda x, w: mg.sum(w**3), "pow_grad", "3·w²·g"),
        (lambda x, w: mg.sum(w * w), "mul_grad", "x_grad = g·w"),
        (lambda x, w: mg.sum(mg.softmax(w, axis=0)), "softmax_grad", "softmax_0·(g − Σ(softmax_0·g))"),
    ],
)  # fmt: skip
def test_a_grad_op_says_its_formula_in_the_names_of_the_program(function, op_type, line):
    program, _ = built(function)
    assert line in lines(program, op_type)


def test_a_player_puts_the_numbers_of_the_run_in():
    program, loss = built(lambda x, w: mg.mean(mg.tanh(mg.matmul(x, w))))
    scope = static.Scope()
    static.Executor().run(program, {"x": np.array([[1.0, 0.5]])}, fetch_list=[loss], scope=scope)
    told = [event.formula for event in mg.play((program, scope)).events]
    value = np.tanh(2.0)
    text = (
        f"matmul_0@GRAD = g·(1 − tanh_0²) = [[1]]·(1 − [[{value:.5g}]]²) = [[{1 - value**2:.5g}]]"
    )
    assert text in told
    assert "w@GRAD = xᵀ @ g = [[0.070651], [0.035325]]" in told
