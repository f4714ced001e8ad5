"""Random views and in-place changes: numbers as in NumPy, gradients as of central differences, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg

VIEWS = [
    lambda x: x[...],
    lambda x: x[:, ::-1],
    lambda x: x[::-1],
    lambda x: x.T,
    lambda x: x[None][0],
    lambda x: x[:, None, :][:, 0, :],
]


def shifted(x, y):
    x += 2.0


def scaled(x, y):
    x *= y * 0.5


def doubled(x, y):
    x += x


def squared(x, y):
    x **= 2


def replaced(x, y):
    x[...] = y


def turned(x, y):
    x[::-1] = y


def first_row(x, y):
    x[0] = y[0]


def other_rows(x, y):
    x[1:] *= 2


CHANGES = [shifted, scaled, doubled, squared, replaced, turned, first_row, other_rows]


def run(values, steps):
    """What the steps make of a start: every value, in the order made."""
    made = [values]
    for kind, step, i, j in steps:
        if kind == "view":
            made.append(step(made[i]))
        else:
            step(made[i], made[j])
    return made


def refused(call, *args):
    """The text of the package's refusal, empty if there is none."""
    try:
        call(*args)
    except mg.MinigradError as error:
        return str(error)
    return ""


def drawn(rng, grad):
    """Steps that both accept, the Tensors they made, and the leaf."""
    start = rng.uniform(0.5, 1.5, (3, 3))
    leaf = mg.tensor(start, requires_grad=grad)
    tensors, arrays, steps = [leaf * 1], [start * 1], []
    for _ in range(rng.integers(1, 8)):
        i, j = (int(k) for k in rng.integers(len(tensors), size=2))
        if rng.random() < 0.5:
            step = VIEWS[rng.integers(len(VIEWS))]
            tensors.append(step(tensors[i]))
            arrays.append(step(arrays[i]))
            steps.append(("view", step, i, j))
            continue
        if grad and i != j and np.shares_memory(arrays[i], arrays[j]):
            continue  # such an operand keeps its values: a rule of its own
        step = CHANGES[rng.integers(len(CHANGES))]
        refusal = refused(step, tensors[i], tensors[j])
        if refusal:
            assert grad, refusal
            assert "repair" in refusal
            continue
        step(arrays[i], arrays[j])
        steps.append(("change", step, i, j))
        for t, a in zip(tensors, arrays, strict=True):
            np.testing.assert_allclose(t.detach().numpy(), a)
    return start, leaf, tensors, steps


@pytest.mark.parametrize("seed", range(150))
def test_without_a_graph_every_view_sees_what_numpy_would_show(seed):
    drawn(np.random.default_rng(seed), grad=False)


def test_with_a_graph_gradients_are_those_of_the_values_shown():
    compared = 0
    for seed in range(250):
        rng = np.random.default_rng(seed)
        start, leaf, tensors, steps = drawn(rng, grad=True)
        weights = rng.normal(size=(len(tensors), 3, 3))
        total = sum((t * w).sum() for t, w in zip(tensors, weights, strict=True))
        refusal = refused(total.backward)
        if refusal:
            assert "in place" in refusal
            continue
        compared += 1
        ours = leaf.grad

        def f(x, steps=steps, weights=weights):
            return sum((a * w).sum() for a, w in zip(run(x * 1, steps), weights, strict=True))

        for place in np.ndindex(3, 3):
            e = np.zeros((3, 3))
            e[place] = 1e-6
            slope = (f(start + e) - f(start - e)) / 2e-6
            assert ours.numpy()[place] == pytest.approx(slope, rel=1e-4, abs=1e-4)
    assert compared > 150
