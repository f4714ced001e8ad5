"""Products, einsum and norms: ranks, open sizes, letters and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import DTypeError, ProgramError, ShapeError
from minigrad.ops.linalg import matmul_nt, matmul_tn
from tests.pieces import leaf


def same(found, wanted):
    found = np.asarray(getattr(found, "data", found))
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_products_are_summed_to_a_shape_of_lower_rank():
    x, y = np.arange(24.0).reshape(3, 2, 4), np.arange(20.0).reshape(5, 4)
    same(matmul_nt(x, y, shape=(2, 5)), (x @ y.T).sum(0))
    same(matmul_tn(x.mT, y.T, shape=(3, 2, 5)), x @ y.T)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_the_bias_of_a_layer_may_have_another_dtype(dtype):
    x, w = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    b = np.arange(4).astype(dtype)
    same(mg.linear(x, w, b), x @ w + b)
    same(mg.linear(x[0], w[:, 0], np.float32(2.0)), np.float32(5.0))
    assert float(mg.linear(x[0], w[:, 0], 0.5)) == 3.5


def test_the_order_of_a_norm_is_above_zero():
    x = np.array([4.0, 9.0])
    assert float(mg.norm(x, 0.5)) == 25.0
    for order in (0, -1, "fro"):
        with pytest.raises(ShapeError, match="is no norm"):
            mg.norm(x, order)


def test_einsum_takes_one_value_and_a_list_of_values():
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([5.0, 6.0])
    trace, diagonal = mg.einsum("ii->", x), mg.einsum("ij,j->i", [x, y])
    assert (float(trace), diagonal.tolist()) == (5.0, [17.0, 39.0])
    assert mg.grad(trace, x)[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert mg.grad(diagonal.sum(), y)[0].tolist() == [4.0, 6.0]


def test_products_of_different_ranks_and_open_sizes():
    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0])
    for a, b in [(x, y), (y, x), (x, np.float64(2.0))]:
        assert np.array_equal(mg.kron(a, b), np.kron(a, b))
    with static.program_guard(static.Program()):
        a, b = static.data("a", [2, -1]), static.data("b", [3, 4])
        with pytest.raises(ProgramError, match="declare a size that must match"):
            mg.tensordot(a, b, 1)
        with pytest.raises(ProgramError, match="could not be broadcast"):
            mg.tensordot(static.data("c", [2, 2]), b, 1)
    for axis in (0, 2, -3):
        with pytest.raises(ShapeError, match=rf"axis={axis}\) needs vectors of three numbers"):
            mg.cross(x, x, axis=axis)
    assert mg.cross(x, x[::-1]).tolist() == [[-3.0, 6.0, -3.0], [3.0, -6.0, 3.0]]


def test_einsum_takes_its_letters_first():
    with pytest.raises(DTypeError, match="einsum takes the subscripts first"):
        mg.einsum(leaf([1.0]), "i->")
