"""Plausible wrong answers to the exercises of step 3: every one must fail its check."""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = data
        self.grad = None
        self.creator = None


class Function:
    def __call__(self, input):
        output = Variable(self.forward(input.data))
        output.creator = self
        self.input = input
        self.output = output
        return output


class Square(Function):
    def forward(self, x):
        return x**2


class Exp(Function):
    def forward(self, x):
        return np.exp(x)


def counts_boxes(v):
    count = 1
    while v.creator is not None:
        count, v = count + 1, v.creator.input
    return count


def only_one(v):
    return 0 if v.creator is None else 1


def knows_the_example(v):
    return 3


def names(v):
    made = []
    while v.creator is not None:
        made.append(type(v.creator).__name__)
        v = v.creator.input
    return made


def leaf_forgotten(v):
    return " of ".join(names(v))


def first_function_first(v):
    return " of ".join([*reversed(names(v)), "a leaf"])


def twice_new():
    x = Variable(np.array(3.0))
    a = Square()(x)
    return x, a, Square()(a)


def called_on_x_again():
    square = Square()
    x = Variable(np.array(3.0))
    a = square(x)
    return x, a, square(x)


def only_once():
    square = Square()
    x = Variable(np.array(3.0))
    a = square(x)
    return x, a, a


def turned():
    square = Square()
    x = Variable(np.array(3.0))
    a = square(x)
    return square(a), a, x


def exp_at_the_end():
    x = Variable(np.array(3.0))
    a = Square()(x)
    return x, a, Exp()(a)


def link_put_back():
    square = Square()
    x = Variable(np.array(3.0))
    a = square(x)
    y = square(a)
    square.input = x
    return x, a, y


WRONG = {
    "3a": [
        (counts_boxes, Variable, Square),
        (only_one, Variable, Square),
        (knows_the_example, Variable, Square),
    ],
    "3b": [(leaf_forgotten, Variable, Square, Exp), (first_function_first, Variable, Square, Exp)],
    "3c": [
        (twice_new, Square),
        (called_on_x_again, Square),
        (only_once, Square),
        (turned, Square),
        (exp_at_the_end, Square),
        (link_put_back, Square),
    ],
}


def printed(v):
    print(" of ".join([*names(v), "a leaf"]))


def a_leaf_each_time(v):
    return "".join(f"{name} of a leaf" for name in names(v))


def without_an_end(v):
    return f"{type(v.creator).__name__} of {without_an_end(v.creator.input)}"


NAMED = {
    "3a": [((counts_boxes, Variable, Square), "boxes are counted")],
    "3b": [
        ((leaf_forgotten, Variable, Square, Exp), "the leaf at the end is not named"),
        ((printed, Variable, Square, Exp), "the text is printed"),
        ((without_an_end, Variable, Square, Exp), "a leaf is asked for its creator, too"),
        ((a_leaf_each_time, Variable, Square, Exp), 'every name ends in " of a leaf"'),
    ],
    "3c": [((twice_new, Square), "Square() stands there twice")],
}

RIGHT = {
    "3a": [(lambda v: len(names(v)), Variable, Square)],
    "3b": [(lambda v: " of ".join([*names(v), "a leaf"]), Variable, Square, Exp)],
}
