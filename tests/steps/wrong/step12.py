"""Plausible wrong answers to the exercises of step 12: every one must fail its check."""

import numpy as np
from literate import load

step = load("step12_double_backward")


def rosenbrock(x, y):
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def leaves_of(numbers):
    return [step.Tensor(number, requires_grad=True) for number in numbers]


def diagonal_only(f, *numbers):
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves, create_graph=True)
    second = [step.grad(s, x, create_graph=True).data for s, x in zip(slopes, leaves, strict=True)]
    return np.diag(second)


def outer_product(f, *numbers):
    leaves = leaves_of(numbers)
    slopes = [each.data for each in step.grad(f(*leaves), *leaves)]
    return np.outer(slopes, slopes)


def forgot_create_graph(f, *numbers):
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves)
    return np.array([[g.data for g in step.grad(s, *leaves)] for s in slopes])


def freed_too_early(f, *numbers):
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves, create_graph=True)
    return np.array([[step.grad(s, x).data for x in leaves] for s in slopes])


def gradient_times_vector(f, numbers, vector):
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves)
    return np.array([s.data * v for s, v in zip(slopes, vector, strict=True)])


def without_cross_terms(f, numbers, vector):
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves, create_graph=True)
    return np.array(
        [
            step.grad(s * v, x, create_graph=True).data
            for s, v, x in zip(slopes, vector, leaves, strict=True)
        ]
    )


def with_the_whole_matrix(f, numbers, vector):
    rows = []
    for i in range(len(numbers)):
        leaves = leaves_of(numbers)
        slopes = step.grad(f(*leaves), *leaves, create_graph=True)
        rows.append([g.data for g in step.grad(slopes[i], *leaves)])
    return np.array(rows) @ vector


def row_by_row(f, numbers, vector):
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves, create_graph=True)
    rows = [[x.data for x in step.grad(s, *leaves, create_graph=True)] for s in slopes]
    return np.array(rows) @ vector


def not_cleared(f, number):
    x = step.Tensor(number, requires_grad=True)
    f(x).backward(create_graph=True)
    x.grad.backward()
    return x.grad.data


def cleared_too_early(f, number):
    x = step.Tensor(number, requires_grad=True)
    f(x).backward(create_graph=True)
    x.grad = None
    slope = x.grad
    slope.backward()
    return x.grad.data


def subtracted(f, number):
    x = step.Tensor(number, requires_grad=True)
    f(x).backward(create_graph=True)
    slope = x.grad
    slope.backward()
    return x.grad.data - 24


WRONG = {
    "12a": [
        (each, rosenbrock)
        for each in (diagonal_only, outer_product, forgot_create_graph, freed_too_early)
    ],
    "12b": [
        (each, rosenbrock)
        for each in (gradient_times_vector, without_cross_terms, with_the_whole_matrix, row_by_row)
    ],
    "12c": [(not_cleared,), (cleared_too_early,), (subtracted,)],
}
