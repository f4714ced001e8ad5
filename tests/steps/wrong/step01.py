"""Plausible wrong answers to the exercises of step 1: every one must fail its check."""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = data


class Function:
    def __call__(self, input):
        return Variable(self.forward(input.data))


class Triple(Function):
    def forward(self, x):
        return 3 * x


class CubeOfSize(Function):
    def forward(self, x):
        return np.abs(x) ** 3


class CubeOfBoxes(Function):
    def forward(self, x):
        return Variable(x**3)


class CubeWithoutReturn(Function):
    def forward(self, x):
        x**3


class CubeWithoutBoxes:
    def __call__(self, input):
        return input.data**3


def central(f, x, eps=1e-4):
    return (f(Variable(x.data + eps)).data - f(Variable(x.data - eps)).data) / (2 * eps)


def divided_by_two_eps(f, x, eps=1e-4):
    return (f(Variable(x.data + eps)).data - f(x).data) / (2 * eps)


def from_the_left(f, x, eps=1e-4):
    return (f(x).data - f(Variable(x.data - eps)).data) / eps


def eps_ignored(f, x, eps=1e-4):
    return (f(Variable(x.data + 1e-4)).data - f(x).data) / 1e-4


def without_a_box(f, x, eps=1e-4):
    return (f(x.data + eps).data - f(x).data) / eps


def slope_in_a_box(f, x, eps=1e-4):
    return Variable((f(Variable(x.data + eps)).data - f(x).data) / eps)


WRONG = {
    "1a": [
        (Triple, Variable),
        (CubeOfSize, Variable),
        (CubeOfBoxes, Variable),
        (CubeWithoutReturn, Variable),
        (CubeWithoutBoxes, Variable),
    ],
    "1b": [
        (central, Variable),
        (divided_by_two_eps, Variable),
        (from_the_left, Variable),
        (eps_ignored, Variable),
        (without_a_box, Variable),
        (slope_in_a_box, Variable),
    ],
    "1c": [(1e-9, 0.1), (1e-15, 1e-4), (0.0, 0.1)],
}
