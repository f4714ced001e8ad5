"""The checkers of step 9."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


@checker("9e")
def sum_to_shape(sum_to_shape, Variable):
    g = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    wanted = {
        (3,): [11.0, 22.0, 33.0],
        (2, 1): [[6.0], [60.0]],
        (): 66.0,
        (1, 3): [[11.0, 22.0, 33.0]],
        (2, 3): g,
    }
    for shape, expected in wanted.items():
        close(f"sum_to_shape(g, {shape})", sum_to_shape(g, shape), expected)
    cube = np.arange(24.0).reshape(4, 2, 3)
    expected = cube.sum(0).sum(1, keepdims=True)
    close("sum_to_shape of a (4, 2, 3) to (2, 1)", sum_to_shape(cube, (2, 1)), expected)
    square = np.arange(9.0).reshape(3, 3)
    close("sum_to_shape of a (3, 3) to (3,)", sum_to_shape(square, (3,)), square.sum(0))
    x, b = Variable(g), Variable(np.array([1.0, 2.0, 3.0]))
    (x + b).backward()
    close("b.grad of x + b", b.grad, [2.0, 2.0, 2.0])


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


@checker("9c")
def shapes(shapes, Variable):
    for n, i, o in ((2, 3, 4), (5, 1, 1), (1, 7, 2)):
        x, W, b = Variable(np.ones((n, i))), Variable(np.ones((i, o))), Variable(np.ones(o))
        t = x @ W
        y = t + b
        y.backward(retain_grad=True)
        real = {
            "x": x.data,
            "W": W.data,
            "b": b.data,
            "x @ W": t.data,
            "y": y.data,
            "gy": y.grad,
            "gradient of x @ W": t.grad,
            "gb": b.grad,
            "gW": W.grad,
            "gx": x.grad,
        }
        given = shapes(n, i, o)
        if not isinstance(given, dict):
            raise Mismatch(f"shapes({n}, {i}, {o})", given, "a dict from names to shapes")
        for key, array in real.items():
            shape = given.get(key)
            shape = tuple(shape) if isinstance(shape, list) else shape
            same(f"the shape of {key} for n={n}, i={i}, o={o}", shape, array.shape)
