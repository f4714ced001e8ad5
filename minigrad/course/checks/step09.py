"""The checkers of step 9."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


@checker("9a")
def sum_to(SumTo, Variable, gradcheck):
    values = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    for shape in ((3,), (1, 3), (2, 1), (), (2, 3)):
        x = Variable(values)
        y = SumTo(shape)(x)
        same(f"the shape of SumTo({shape}) of a (2, 3)", y.data.shape, shape)
        close(f"the sum of all numbers after SumTo({shape})", y.data.sum(), values.sum())
        function = SumTo(shape)
        y = function(x)
        gy = np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)
        close(f"the gradient of SumTo({shape})", function.backward(gy), np.broadcast_to(gy, (2, 3)))
        gradcheck(lambda x, shape=shape: SumTo(shape)(x) * SumTo(shape)(x), x)


@checker("9b")
def mean(mean, Variable, gradcheck):
    values = np.array([[1.0, 2.0, 6.0], [-3.0, 0.5, 4.0]])
    for axis in (None, 0, 1, -1):
        x = Variable(values)
        y = mean(x) if axis is None else mean(x, axis=axis)
        if not isinstance(y, Variable):
            raise Mismatch(f"what mean(x, axis={axis}) returns", type(y).__name__, "Variable")
        close(f"mean(x, axis={axis})", y.data, values.mean(axis=axis))
        if y.creator is None:
            raise Mismatch(
                f"the creator of mean(x, axis={axis})", None, "a function: stay in the boxes"
            )
        gradcheck(lambda x, axis=axis: mean(x, axis=axis) * mean(x, axis=axis), x)
