"""Products of matrices and what belongs to them."""
from __future__ import annotations

import numpy as np

from ..registry import primitive


@primitive
def matmul(x, y):
    """Matrix product, ``x @ y``, with NumPy's rules for vectors and stacks of matrices."""
    return np.matmul(x, y)


matmul.grad(x=lambda x, y, out_grad: out_grad @ y.T,
            y=lambda x, y, out_grad: x.T @ out_grad)
