"""Plausible wrong answers to the exercises of step 2: every one must fail its check."""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = data
        self.grad = None


class Function:
    def __call__(self, input):
        self.input = input
        return Variable(self.forward(input.data))


class Exp(Function):
    def forward(self, x):
        return np.exp(x)

    def backward(self, gy):
        return np.exp(self.input.data) * gy


class Square(Function):
    def forward(self, x):
        return x**2

    def backward(self, gy):
        return 2 * self.input.data * gy


class Sin(Function):
    def forward(self, x):
        return np.sin(x)


class OwnSlope(Sin):
    def backward(self, gy):
        return np.cos(self.input.data)


class SlopeAtGy(Sin):
    def backward(self, gy):
        return np.cos(gy) * self.input.data


class WrongSign(Sin):
    def backward(self, gy):
        return -np.cos(self.input.data) * gy


class WithoutBoxes(Sin):
    def __call__(self, input):
        self.input = input
        return np.sin(input.data)


def one_exp_for_both(x):
    E, B = Exp(), Square()
    a = E(x)
    b = B(a)
    E(b)
    x.grad = E.backward(B.backward(E.backward(np.array(1.0))))
    return x.grad


def nothing_kept(x):
    A, B, C = Exp(), Square(), Exp()
    C(B(A(x)))
    return A.backward(B.backward(C.backward(np.array(1.0))))


def another_order(x):
    A, B, C = Square(), Exp(), Exp()
    C(B(A(x)))
    x.grad = A.backward(B.backward(C.backward(np.array(1.0))))
    return x.grad


WRONG = {
    "2a": [
        (OwnSlope, Variable),
        (SlopeAtGy, Variable),
        (WrongSign, Variable),
        (Sin, Variable),
        (WithoutBoxes, Variable),
    ],
    "2b": [(one_exp_for_both, Variable), (nothing_kept, Variable), (another_order, Variable)],
    "2c": [
        (lambda order: None if order == "CBA" else order[0],),
        (lambda order: None if order[0] == "C" else order[0],),
    ],
}
