"""Plausible wrong answers to the exercises of step 5: every one must fail its check."""

from literate import load

_step = load("step05_many_inputs")
Variable, Function, np = _step.Variable, _step.Function, _step.np


class Sub(Function):
    def forward(self, x0, x1):
        return x0 - x1

    def backward(self, gy):
        return gy, -gy


class SubLikeAdd(Sub):
    def backward(self, gy):
        return gy, gy


class SubTurned(Sub):
    def backward(self, gy):
        return -gy, gy


class Div(Function):
    def forward(self, x0, x1):
        return x0 / x1

    def backward(self, gy):
        x0, x1 = self.inputs[0].data, self.inputs[1].data
        return gy / x1, -gy * x0 / x1**2


class DivFirstOnly(Div):
    def backward(self, gy):
        return gy / self.inputs[1].data, gy


class SubAsList(Sub):
    def backward(self, gy):
        return [gy, -gy]


class DivWithoutSign(Div):
    def backward(self, gy):
        x0, x1 = self.inputs[0].data, self.inputs[1].data
        return gy / x1, gy * x0 / x1**2


class DivWithoutGy(Div):
    def backward(self, gy):
        x0, x1 = self.inputs[0].data, self.inputs[1].data
        return 1 / x1, -x0 / x1**2


class SubInGy(Sub):
    def backward(self, gy):
        return gy.copy(), np.negative(gy, out=gy)


class DivLowerWithoutGy(Div):
    def backward(self, gy):
        x0, x1 = self.inputs[0].data, self.inputs[1].data
        return gy / x1, -x0 / x1**2


def never_cleared(x, functions):
    found = []
    for f in functions:
        f(x).backward()
        found.append(x.grad)
    return found


def cleared_once(x, functions):
    x.cleargrad()
    return never_cleared(x, functions)


def gradients_of_the_results(x, functions):
    found = []
    for f in functions:
        y = f(x)
        y.backward()
        found.append(y.grad)
    return found


def measured(x, functions):
    return [_step.numerical_diff(f, x) for f in functions]


def with_fresh_boxes(x, functions):
    found = []
    for f in functions:
        own = Variable(x.data)
        f(own).backward()
        found.append(own.grad)
    return found


def cleared_afterwards(x, functions):
    x.grad = None
    found = []
    for f in functions:
        f(x).backward()
        found.append(x.grad)
        x.grad = None
    return found


class DivByRule(Div):
    def backward(self, gy):
        y = self.output.data
        return gy / self.inputs[1].data, -gy * y / self.inputs[1].data


def from_a_fresh_zero(x, gx):
    if x.grad is None:
        x.grad = np.zeros_like(gx)
    x.grad = np.add(x.grad, gx)


def first_a_copy(x, gx):
    if x.grad is None:
        x.grad = np.array(gx)
    else:
        x.grad += gx


def the_last_alone(x, functions):
    for f in functions:
        x.cleargrad()
        f(x).backward()
    return x.grad


def in_place(x, gx):
    if x.grad is None:
        x.grad = gx
    else:
        x.grad += gx


def overwrite(x, gx):
    x.grad = gx


def from_zero(x, gx):
    x.grad = x.grad + gx


def given_back(x, gx):
    return gx if x.grad is None else x.grad + gx


WRONG = {
    "5a": [
        ((SubLikeAdd, Div), Variable),
        ((SubTurned, Div), Variable),
        ((SubInGy, Div), Variable),
        ((Sub, DivFirstOnly), Variable),
        ((Sub, DivWithoutSign), Variable),
        ((Sub, DivWithoutGy), Variable),
        ((SubAsList, Div), Variable),
    ],
    "5b": [
        (never_cleared, Variable),
        (cleared_once, Variable),
        (gradients_of_the_results, Variable),
        (the_last_alone, Variable),
        (measured, Variable),
    ],
    "5e": [
        (in_place, Variable),
        (overwrite, Variable),
        (from_zero, Variable),
        (given_back, Variable),
    ],
}


def what_backward_returns(x, functions):
    return [f(x).backward() for f in functions]


NAMED = {
    "5a": [
        (((SubLikeAdd, Div), Variable), "Sub hands on gy twice"),
        (((Sub, DivWithoutSign), Variable), "the minus of Div is missing"),
        (((Sub, DivWithoutGy), Variable), "Div forgets gy"),
        (((Sub, DivLowerWithoutGy), Variable), "the lower gradient of Div forgets gy"),
        (((SubAsList, Div), Variable), "the gradients of Sub come as a list"),
    ],
    "5b": [
        ((never_cleared, Variable), "x is not cleared before the first walk"),
        ((cleared_once, Variable), "x is cleared once"),
        ((measured, Variable), "the slopes are measured"),
        (
            (what_backward_returns, Variable),
            "backward() is never called, or what it returns is kept",
        ),
    ],
    "5e": [
        ((in_place, Variable), "+= writes into an array that others hold"),
        ((overwrite, Variable), "the second gradient overwrites the first"),
        ((from_zero, Variable), "the first gradient is added to None"),
    ],
}

RIGHT = {
    "5a": [((Sub, DivByRule), Variable)],
    "5b": [(with_fresh_boxes, Variable), (cleared_afterwards, Variable)],
    "5e": [(from_a_fresh_zero, Variable), (first_a_copy, Variable)],
}
