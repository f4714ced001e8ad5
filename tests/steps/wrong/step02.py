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


class InGy(Sin):
    def backward(self, gy):
        gy *= np.cos(self.input.data)
        return gy


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


def measured(x, eps=1e-5):
    def f(v):
        return np.exp(np.exp(v) ** 2)

    x.grad = (f(x.data + eps) - f(x.data - eps)) / (2 * eps)
    return x.grad


def by_formula(x):
    x.grad = 2 * np.exp(2 * x.data) * np.exp(np.exp(2 * x.data))
    return x.grad


def each_in_one_line(x):
    A, B, C = Exp(), Square(), Exp()
    C(B(A(x)))
    x.grad = A.backward(B.backward(C.backward(np.ones_like(x.data))))
    return x.grad


def in_a_loop(x):
    functions, v = [Exp(), Square(), Exp()], x
    for f in functions:
        v = f(v)
    g = np.array(1.0)
    for f in reversed(functions):
        g = f.backward(g)
    x.grad = g
    return x.grad


def walked_forward(x):
    A, B, C = Exp(), Square(), Exp()
    C(B(A(x)))
    x.grad = C.backward(B.backward(A.backward(np.array(1.0))))
    return x.grad


def seeded_with_the_box(x):
    A, B, C = Exp(), Square(), Exp()
    a = A(x)
    b = B(a)
    y = C(b)
    b.grad = C.backward(y)
    a.grad = B.backward(b.grad)
    x.grad = A.backward(a.grad)
    return x.grad


def who_should_have_come(order):
    for letter, expected in zip(order, "CBA", strict=True):
        if letter != expected:
            return expected
    return None


WRONG = {
    "2a": [
        (OwnSlope, Variable),
        (SlopeAtGy, Variable),
        (WrongSign, Variable),
        (InGy, Variable),
        (Sin, Variable),
        (WithoutBoxes, Variable),
    ],
    "2b": [
        (each, Variable, Exp, Square)
        for each in (
            one_exp_for_both,
            nothing_kept,
            another_order,
            measured,
            by_formula,
            walked_forward,
            seeded_with_the_box,
        )
    ],
    "2c": [
        (lambda order: None if order == "CBA" else order[0],),
        (lambda order: None if order[0] == "C" else order[0],),
        (who_should_have_come,),
        (
            lambda order: (
                "nothing"
                if order == "CBA"
                else {"C": {"A": "A"}.get(order[1])}.get(order[0], order[0])
            ),
        ),
    ],
}


def new_objects_on_the_way_back(x):
    Exp()(Square()(Exp()(x)))
    x.grad = Exp().backward(Square().backward(Exp().backward(1.0)))
    return x.grad


NAMED = {
    "2a": [
        ((OwnSlope, Variable), "backward returns its own slope and forgets gy"),
        ((SlopeAtGy, Variable), "the slope is taken at gy and multiplied by the input"),
        ((WrongSign, Variable), "the sign is wrong"),
    ],
    "2b": [
        ((one_exp_for_both, Variable, Exp, Square), "one Exp object serves both calls"),
        ((nothing_kept, Variable, Exp, Square), "the gradient is returned but not kept"),
        ((by_formula, Variable, Exp, Square), "the gradient is measured or written as a formula"),
        ((walked_forward, Variable, Exp, Square), "backward runs in the order of forward"),
        ((seeded_with_the_box, Variable, Exp, Square), "the first backward gets the box y"),
        ((new_objects_on_the_way_back, Variable, Exp, Square), "backward is called on new objects"),
    ],
    "2c": [((who_should_have_come,), "the answer is the letter that should have come")],
}

RIGHT = {
    "2b": [(each, Variable, Exp, Square) for each in (each_in_one_line, in_a_loop)],
    "2c": [(lambda order: {"C": {"A": "A"}.get(order[1])}.get(order[0], order[0]),)],
}
