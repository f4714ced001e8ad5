"""Plausible wrong answers to the exercises of step 11: every one must fail its check."""

import numpy as np
from literate import load

step = load("step11_saved_values")


def root(formula):
    return step.define("sqrt", np.sqrt, x=formula)


def lean(formula):
    return step.define("tanh", np.tanh, x=formula)


def twice(x):
    y = x * x
    y.backward()
    y.backward()


def changed(x):
    y = step.exp(x)
    y.add_(1)
    y.backward()


def twice_through_a_sum(x):
    y = x + x
    y.backward()
    y.backward()


def twice_with_retain_graph(x):
    y = x * x
    y.backward(retain_graph=True)
    y.backward()


def changed_but_not_kept(x):
    h = x * 1
    y = step.exp(h)
    h.add_(1)
    y.backward()


def changed_behind_its_back(x):
    y = step.exp(x)
    y.data += 1
    y.backward()


def twice_by_hand(x):
    raise RuntimeError("backward through <ExpBackward0> a second time")


def changed_by_hand(x):
    y = step.exp(x)
    y.backward()
    raise RuntimeError("the value was changed in place")


def counted_by_hand(x):
    y = step.sin(x)
    x.version = 1
    y.backward()


def twice_by_exp(x):
    y = step.exp(x)
    for _ in range(2):
        y.backward()


def changed_factor(x):
    h = x * 1
    y = h * h
    h.add_(1)
    y.backward()


def kept_by_the_result(node, inputs, out):
    values = {**dict(zip(node.formulas, inputs, strict=True)), "out": out}
    wanted = [f for f, (n, _) in zip(node.formulas.values(), node.next_functions, strict=True) if n]
    return {
        k: step.Saved(v, out) for k, v in values.items() if any(k in f.co_names for f in wanted)
    }


def named_by_any(node, inputs, out):
    values = {**dict(zip(node.formulas, inputs, strict=True)), "out": out}
    wanted = [f for f, (n, _) in zip(node.formulas.values(), node.next_functions, strict=True) if n]
    return {
        k: step.Saved(v, node) for k, v in values.items() if any(k in f.co_names for f in wanted)
    }


WRONG = {
    "11a": [
        (root(formula), step.Tensor)
        for formula in (
            "grad / (2 * power(x, n=0.5))",
            "grad / out",
            "grad * 2 * out",
            "1 / (2 * out)",
        )
    ],
    "11b": [
        (lean(formula), step.Tensor)
        for formula in (
            "grad * (1 - tanh(x) * tanh(x))",
            "grad * (1 - out)",
            "1 - out * out",
            "grad * (1 + out * out)",
        )
    ],
    "11c": [
        ((first, second), step.Tensor)
        for first, second in (
            (twice_through_a_sum, changed),
            (twice_with_retain_graph, changed),
            (twice, changed_but_not_kept),
            (twice, changed_behind_its_back),
            (twice, counted_by_hand),
            (changed, twice),
            (twice_by_hand, changed),
            (twice, changed_by_hand),
        )
    ],
}

NAMED = {
    "11e": [((kept_by_the_result, step.Tensor, step.Saved), "Saved is told another node")],
    "11c": [(((twice, counted_by_hand), step.Tensor), "only the count goes up")],
}

RIGHT = {
    "11e": [(named_by_any, step.Tensor, step.Saved)],
    "11c": [((twice_by_exp, changed_factor), step.Tensor)],
}
