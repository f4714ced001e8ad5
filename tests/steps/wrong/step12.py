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


def without_allow_unused(f, *numbers):
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves, create_graph=True)
    rows = [step.grad(slope, *leaves, create_graph=True) for slope in slopes]
    return np.array([[each.data for each in row] for row in rows])


def each_row_anew(f, *numbers):
    rows = []
    for i in range(len(numbers)):
        leaves = leaves_of(numbers)
        slope = step.grad(f(*leaves), leaves[i], create_graph=True)
        second = step.grad(slope, *leaves, allow_unused=True)
        rows.append([float(each.data) if each else 0.0 for each in second])
    return np.array(rows)


def by_backward(f, *numbers):
    """Each slope walked by backward, leaves cleared in between: what is not reached stays None."""
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves, create_graph=True)
    matrix = np.zeros((len(leaves), len(leaves)))
    for i, slope in enumerate(slopes):
        for leaf in leaves:
            leaf.grad = None
        slope.backward(create_graph=True)
        matrix[i] = [0.0 if leaf.grad is None else leaf.grad.data for leaf in leaves]
    return matrix


def gradient_times_vector(f, numbers, vector):
    leaves = leaves_of(numbers)
    slopes = step.grad(f(*leaves), *leaves)
    return np.array([s.data * v for s, v in zip(slopes, vector, strict=True)])


def slopes_without_graph(f, numbers, vector):
    leaves = leaves_of(numbers)
    first, *others = step.grad(f(*leaves), *leaves)
    along = first * vector[0]
    for slope, v in zip(others, vector[1:], strict=True):
        along = along + slope * v
    return np.array([each.data for each in step.grad(along, *leaves)])


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
        for each in (
            diagonal_only,
            outer_product,
            forgot_create_graph,
            freed_too_early,
            without_allow_unused,
        )
    ],
    "12b": [
        (each, rosenbrock)
        for each in (gradient_times_vector, without_cross_terms, with_the_whole_matrix, row_by_row)
    ],
    "12c": [(not_cleared,), (cleared_too_early,), (subtracted,)],
}

RIGHT = {"12a": [(each, rosenbrock) for each in (each_row_anew, by_backward)]}

NAMED = {"12b": [((slopes_without_graph, rosenbrock), "the slopes have no graph")]}
