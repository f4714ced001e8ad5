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


class CubeInPlace(Function):
    def forward(self, x):
        y = x**3
        x *= 2
        return y


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


def moving_the_box(f, x, eps=1e-4):
    here = f(x).data
    x.data = x.data + eps
    return (f(x).data - here) / eps


class CubeByProducts(Function):
    def forward(self, x):
        return x * x * x


class CubeByNumpy(Function):
    def forward(self, x):
        return np.power(x, 3)


def moving_and_putting_back(f, x, eps=1e-4):
    here, before = f(x).data, x.data
    x.data = before + eps
    there = f(x).data
    x.data = before
    return (there - here) / eps


def with_names(f, x, eps=1e-4):
    right = f(Variable(np.array(float(x.data) + eps)))
    return float(right.data - f(x).data) / eps


WRONG = {
    "1a": [
        (Triple, Variable),
        (CubeOfSize, Variable),
        (CubeOfBoxes, Variable),
        (CubeWithoutReturn, Variable),
        (CubeInPlace, Variable),
        (CubeWithoutBoxes, Variable),
    ],
    "1b": [
        (central, Variable),
        (divided_by_two_eps, Variable),
        (from_the_left, Variable),
        (eps_ignored, Variable),
        (without_a_box, Variable),
        (slope_in_a_box, Variable),
        (moving_the_box, Variable),
    ],
    "1c": [(1e-9, 0.1), (1e-15, 1e-4), (0.0, 0.1)],
}

NAMED = {
    "1a": [((Triple, Variable), "x is taken three times")],
    "1b": [
        ((central, Variable), "f is measured on both sides"),
        ((divided_by_two_eps, Variable), "the rise is divided by 2 * eps"),
        ((from_the_left, Variable), "f is measured on the left side"),
        ((eps_ignored, Variable), "eps is written into the function"),
        ((moving_the_box, Variable), "x itself is moved"),
    ],
    "1c": [((-9, 0.1), "the exponent is given")],
}

RIGHT = {
    "1a": [(CubeByProducts, Variable), (CubeByNumpy, Variable)],
    "1b": [(moving_and_putting_back, Variable), (with_names, Variable)],
    "1c": [(1e-14, 0.3), (np.float64(1e-16), 2)],
}
