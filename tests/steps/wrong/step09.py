"""Plausible wrong answers to the exercises of step 9: every one must fail its check."""

from literate import load

_step = load("step09_arrays")
Variable, Function, gradcheck, np = _step.Variable, _step.Function, _step.gradcheck, _step.np


class SumTo(Function):
    def __init__(self, shape):
        self.shape = shape

    def forward(self, x):
        return _step.sum_to_shape(x, self.shape)


class GradientAsItIs(SumTo):
    def backward(self, gy):
        return gy


class GradientSummed(SumTo):
    def backward(self, gy):
        return _step.sum_to_shape(gy, self.shape)


class Stretched(SumTo):
    def forward(self, x):
        return np.broadcast_to(x, self.shape)

    def backward(self, gy):
        return np.broadcast_to(gy, self.input.data.shape)


class SumsEverything(SumTo):
    def forward(self, x):
        return np.broadcast_to(x.sum(), self.shape)

    def backward(self, gy):
        return np.broadcast_to(gy, self.input.data.shape)


class InATuple(SumTo):
    def backward(self, gy):
        return (np.broadcast_to(gy, self.input.data.shape),)


def divided_by_rows(x, axis=None):
    return x.sum(axis=axis) / len(x.data)


def divided_by_all(x, axis=None):
    return x.sum(axis=axis) / x.data.size


def out_of_the_box(x, axis=None):
    return Variable(np.asarray(x.data.mean(axis=axis)))


def bare_number(x, axis=None):
    return x.data.mean(axis=axis)


def keeps_the_axis(x, axis=None):
    n = x.data.size if axis is None else x.data.shape[axis]
    return x.sum(axis=axis, keepdims=True) / n


def right(n, i, o):
    return {
        "x": (n, i),
        "W": (i, o),
        "b": (o,),
        "x @ W": (n, o),
        "y": (n, o),
        "gy": (n, o),
        "gradient of x @ W": (n, o),
        "gb": (o,),
        "gW": (i, o),
        "gx": (n, i),
    }


def bias_not_summed(n, i, o):
    return right(n, i, o) | {"gb": (n, o)}


def brackets_without_a_comma(n, i, o):
    return right(n, i, o) | {"b": o, "gb": o}


def transposed_weight(n, i, o):
    return right(n, i, o) | {"gW": (o, i)}


def scalar_seed(n, i, o):
    return right(n, i, o) | {"gy": ()}


def without_names(n, i, o):
    return list(right(n, i, o).values())


def one_axis_in_front(array, shape):
    if shape == ():
        return array.sum()
    if array.ndim > len(shape):
        array = array.sum(0)
    for axis, size in enumerate(shape):
        if size == 1:
            array = array.sum(axis, keepdims=True)
    return array


def one_stretched_axis(array, shape):
    while array.ndim > len(shape):
        array = array.sum(0)
    return array.sum(shape.index(1), keepdims=True) if 1 in shape else array


WRONG = {
    "9a": [
        (cls, Variable, gradcheck)
        for cls in (GradientAsItIs, GradientSummed, Stretched, SumsEverything)
    ],
    "9b": [
        (f, Variable, gradcheck)
        for f in (divided_by_rows, divided_by_all, out_of_the_box, bare_number, keeps_the_axis)
    ],
    "9c": [(f, Variable) for f in (bias_not_summed, transposed_weight, scalar_seed, without_names)],
    "9e": [(f, Variable) for f in (one_axis_in_front, one_stretched_axis)],
}


def compared_from_the_left(array, shape):
    array = np.asarray(array)
    for axis, (here, wanted) in enumerate(zip(array.shape, shape, strict=False)):
        if here != wanted:
            array = array.sum(axis=axis, keepdims=True)
    return array.reshape(shape)


NAMED = {
    "9b": [
        ((keeps_the_axis, Variable, gradcheck), "the summed axes stay"),
        ((np.mean, Variable, gradcheck), "np.mean gets a box"),
    ],
    "9e": [
        ((compared_from_the_left, Variable), "the sizes are compared from the left"),
        ((np.reshape, Variable), "the axes in front are not summed: reshape alone adds nothing"),
    ],
    "9c": [((brackets_without_a_comma, Variable), "(o) is a number in brackets")],
}

RIGHT = {
    "9a": [(InATuple, Variable, gradcheck)],
    "9c": [(lambda *sizes: {key: list(shape) for key, shape in right(*sizes).items()}, Variable)],
}
