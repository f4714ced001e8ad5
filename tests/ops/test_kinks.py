"""docs/kinks.md is a promise: every row of its table is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import minigrad as mg

TEXT = (Path(__file__).parents[2] / "docs" / "kinks.md").read_text(encoding="utf-8")
NAMES = {n: getattr(mg.ops, n) for n in mg.ops.__all__} | {"inf": np.inf, "nan": np.nan}


def rows():
    for line in TEXT.splitlines():
        cells = [c.strip().strip("`") for c in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[0] not in ("expression", "---"):
            yield cells[:4]


def run(expression, x):
    with np.errstate(all="ignore"):
        y = eval(expression, dict(NAMES), {"x": x})
        return y, mg.grad(y.sum(), x)[0]


def test_the_table_is_there():
    assert len(list(rows())) >= 35


@pytest.mark.parametrize(("expression", "at", "value", "gradient"), list(rows()))
def test_a_row_of_the_table_is_true(expression, at, value, gradient):
    point, value, gradient = (eval(t, dict(NAMES)) for t in (at, value, gradient))
    y, g = run(expression, mg.tensor(point, requires_grad=True))
    np.testing.assert_allclose(y.data, value, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(g.data, gradient, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "expression", ["relu(x)", "abs(x)", "norm(x)", "std(x)", "prod(x)", "x ** 0", "cumprod(x)"]
)
def test_at_a_kink_of_finite_slope_nothing_warns(expression):
    x = mg.tensor([0.0, 0.0, 0.0], requires_grad=True)
    y = eval(expression, dict(NAMES), {"x": x})
    assert np.isfinite(mg.grad(y.sum(), x)[0].data).all()


def test_second_derivatives_of_a_product_are_exact_with_zeros():
    hessian = mg.hessian(lambda x: mg.prod(x), mg.tensor([0.0, 0.0, 3.0], requires_grad=True))
    np.testing.assert_array_equal(np.asarray(hessian), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])
