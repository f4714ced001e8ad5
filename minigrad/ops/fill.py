"""Constants, copies and changes of dtype."""

from __future__ import annotations

import numpy as np

from ..registry import primitive


@primitive
def fill_zeros_like(x):
    """Zeros in the shape and dtype of ``x``; no gradient."""
    return np.zeros_like(x, subok=False)


@primitive
def fill_ones_like(x):
    """Ones in the shape and dtype of ``x``; no gradient."""
    return np.ones_like(x, subok=False)


@primitive
def fill_constant(*, shape=(), value=0.0, dtype="float64"):
    """An array of one value: how a Program makes a constant, the seed of backward for one."""
    return np.full(shape, value, dtype)


@primitive(title="Clone")
def assign(x):
    """A copy of ``x``."""
    return np.array(x)


assign.grad(x=lambda out_grad: out_grad)


def clone(x):
    """A copy of ``x`` in memory of its own, with the gradient of ``x``."""
    return assign(x)


@primitive(title="ToCopy", view=True)
def cast(x, *, dtype):
    """``x`` in another floating-point dtype; the gradient is cast back."""
    x = np.asarray(x)
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        raise TypeError(
            f"{x.dtype} as {np.dtype(dtype)} would lose the imaginary part; repair: minigrad "
            f"differentiates real functions: keep real and imaginary parts as two Tensors"
        )
    return x.astype(dtype, copy=False)


cast.grad(x=lambda out_grad, x_dtype: cast(out_grad, dtype=x_dtype))


@primitive(view=True)
def discretize(x, *, dtype):
    """``x`` as integers or truth values; no gradient, since the result moves in steps."""
    return np.asarray(x).astype(dtype, copy=False)


def astype(x, dtype):
    """``x`` in another dtype.  The gradient is cast back; integers and bools have none.

    >>> import minigrad as mg
    >>> mg.astype(mg.tensor([1.5, 2.5]), "int64")
    tensor([1, 2])
    """
    dtype = np.dtype(dtype)
    op = cast if dtype.kind in "fc" else discretize
    return op(x, dtype=dtype.name)
