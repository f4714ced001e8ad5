"""Comparisons, choices and kinks: what picks, rounds or cuts, and the gradient at the corner; what is a number."""

import numpy as np

from ..primitives.arguments import Value, as_value
from ..primitives.registry import elementwise, primitive
from .create import assign, fill_zeros_like

__all__ = [
    "abs", "ceil", "clip", "equal", "floor", "greater", "greater_equal", "isfinite", "isinf",
    "isnan", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
    "maximum", "minimum", "nan_to_num", "not_equal", "round", "sign", "where",
]  # fmt: skip

# -- comparisons: no gradient --------------------------------------------------------------


@elementwise(type="less_than")
def less(x, y):
    """``x < y``, elementwise; no gradient.

    >>> import minigrad as mg
    >>> mg.less(mg.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """
    return np.less(x, y)


@elementwise
def less_equal(x, y):
    """``x <= y``, elementwise; no gradient.

    >>> import minigrad as mg
    >>> mg.less_equal(mg.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return np.less_equal(x, y)


@elementwise(type="greater_than")
def greater(x, y):
    """``x > y``, elementwise; no gradient.

    >>> import minigrad as mg
    >>> mg.greater(mg.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return np.greater(x, y)


@elementwise
def greater_equal(x, y):
    """``x >= y``, elementwise; no gradient.

    >>> import minigrad as mg
    >>> mg.greater_equal(mg.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return np.greater_equal(x, y)


@elementwise
def equal(x, y):
    """``x == y``, elementwise; no gradient.

    >>> import minigrad as mg
    >>> mg.equal(mg.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return np.equal(x, y)


@elementwise
def not_equal(x, y):
    """``x != y``, elementwise; no gradient.

    >>> import minigrad as mg
    >>> mg.not_equal(mg.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return np.not_equal(x, y)


@elementwise
def logical_and(x, y):
    """Whether both are true (not zero).

    >>> import minigrad as mg
    >>> mg.logical_and(mg.tensor([True, True]), mg.tensor([True, False]))
    tensor([ True, False])
    """
    return np.logical_and(x, y)


@elementwise
def logical_or(x, y):
    """Whether one of both is true (not zero).

    >>> import minigrad as mg
    >>> mg.logical_or(mg.tensor([True, False]), mg.tensor([False, False]))
    tensor([ True, False])
    """
    return np.logical_or(x, y)


@elementwise
def logical_xor(x, y):
    """Whether exactly one of both is true (not zero).

    >>> import minigrad as mg
    >>> mg.logical_xor(mg.tensor([True, True]), mg.tensor([True, False]))
    tensor([False,  True])
    """
    return np.logical_xor(x, y)


@primitive
def logical_not(x):
    """Whether ``x`` is false (zero).

    >>> import minigrad as mg
    >>> mg.logical_not(mg.tensor([True, False]))
    tensor([False,  True])
    """
    return np.logical_not(x)


# -- choices -------------------------------------------------------------------------------


@elementwise(nondiff=("condition",))
def where(condition, x, y):
    """``x`` where the condition holds, else ``y``; each gets the gradient of its places.

    >>> import minigrad as mg
    >>> mg.where(mg.tensor([True, False]), mg.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    """
    return np.where(condition, x, y)


where.grad(
    x=lambda condition, out_grad: where(condition, out_grad, 0),
    y=lambda condition, out_grad: where(condition, 0, out_grad),
)


@elementwise
def maximum(x, y):
    """The larger of two values; at a tie each gets half of the gradient.

    >>> import minigrad as mg
    >>> mg.maximum(mg.tensor([1.0, 5.0]), 3.0)
    tensor([3., 5.])
    """
    return np.maximum(x, y)


maximum.grad(
    x=lambda x, y, out_grad: out_grad * tie_weight(x, y),
    y=lambda x, y, out_grad: out_grad * tie_weight(y, x),
).formula(x="g * ((x > y) + (x == y) / 2)", y="g * ((y > x) + (x == y) / 2)")


@elementwise
def minimum(x, y):
    """The smaller of two values; at a tie each gets half of the gradient.

    >>> import minigrad as mg
    >>> mg.minimum(mg.tensor([1.0, 5.0]), 3.0)
    tensor([1., 3.])
    """
    return np.minimum(x, y)


minimum.grad(
    x=lambda x, y, out_grad: out_grad * tie_weight(y, x),
    y=lambda x, y, out_grad: out_grad * tie_weight(x, y),
).formula(x="g * ((x < y) + (x == y) / 2)", y="g * ((y < x) + (x == y) / 2)")


@elementwise
def tie_weight(x, y):
    """1 where ``x`` is larger (or one is NaN), 0 where it is smaller, ½ at a tie; no gradient."""
    dtype = np.result_type(x, y, np.float16)
    weight = np.logical_not(np.less(x, y)).astype(dtype)
    return weight - np.equal(x, y) * dtype.type(0.5)


def clip(x, min=None, max=None):
    """``x`` cut off below ``min`` and above ``max``; the gradient is 1 between them and on them.

    Bounds are numbers; arrays, Tensors and Variables work too, with the ties of `maximum`.

    >>> import minigrad as mg
    >>> mg.clip(mg.tensor([-2.0, 0.5, 2.0]), -1, 1)
    tensor([-1. ,  0.5,  1. ])
    """
    if any(isinstance(b, Value | np.ndarray) for b in (min, max)):
        x = x if min is None else maximum(x, min)
        return x if max is None else minimum(x, max)
    return clip_by_numbers(x, min, max)


@primitive(type="clip", title="Clamp")
def clip_by_numbers(x, *, min=None, max=None):
    """``x`` cut off at two numbers; None is no bound."""
    if min is None and max is None:
        raise ValueError("clip needs a bound; repair: give min=, max=, or both")
    return np.clip(x, min, max)


clip_by_numbers.grad(x=lambda x, out, out_grad: out_grad * equal(x, out)).formula(
    x="g * (min <= x) * (x <= max)"
)


@primitive
def abs(x):
    """Absolute value; the gradient at 0 is 0.

    >>> import minigrad as mg
    >>> mg.abs(mg.tensor([-2.0, 3.0]))
    tensor([2., 3.])
    """
    return np.absolute(x)


abs.grad(x=lambda x, out_grad: out_grad * sign(x))

# -- steps: the gradient is zero wherever there is one --------------------------------------


@primitive
def sign(x):
    """-1, 0 or 1; zero gradient.

    >>> import minigrad as mg
    >>> mg.sign(mg.tensor([-2.0, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])
    """
    return np.sign(x)


@primitive
def floor(x):
    """The next integer below; zero gradient.

    >>> import minigrad as mg
    >>> mg.floor(mg.tensor([-1.5, 1.2]))
    tensor([-2.,  1.])
    """
    return np.floor(x)


@primitive
def ceil(x):
    """The next integer above; zero gradient.

    >>> import minigrad as mg
    >>> mg.ceil(mg.tensor([-1.5, 1.2]))
    tensor([-1.,  2.])
    """
    return np.ceil(x)


@primitive
def round(x, *, decimals=0):
    """Rounded to ``decimals`` digits, halves to the even digit; zero gradient.

    >>> import minigrad as mg
    >>> mg.round(mg.tensor([0.5, 1.5, 2.25]))
    tensor([0., 2., 2.])
    """
    return np.round(x, decimals)


for _step in (sign, floor, ceil, round):
    _step.grad(x=(fill_zeros_like, "out_grad", "0"))


# -- NaN and the infinities ----------------------------------------------------------------


@primitive
def isnan(x):
    """Whether an element is NaN; no gradient.

    >>> import minigrad as mg
    >>> mg.isnan(mg.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    return np.isnan(x)


@primitive
def isinf(x):
    """Whether an element is infinite; no gradient.

    >>> import minigrad as mg
    >>> mg.isinf(mg.tensor([1.0, -float("inf")]))
    tensor([False,  True])
    """
    return np.isinf(x)


@primitive
def isfinite(x):
    """Whether an element is neither NaN nor infinite; no gradient.

    >>> import minigrad as mg
    >>> mg.isfinite(mg.tensor([1.0, float("nan")]))
    tensor([ True, False])
    """
    return np.isfinite(x)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """``x`` with numbers for NaN and the infinities (None: the largest there are), where the gradient is 0.

    >>> import minigrad as mg
    >>> mg.nan_to_num(mg.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    x = as_value(x)
    if x.dtype.kind != "f":
        return assign(x)
    most = float(np.finfo(x.dtype).max)
    out = where(isnan(x), nan, x)
    out = where(equal(x, np.inf), most if posinf is None else posinf, out)
    return where(equal(x, -np.inf), -most if neginf is None else neginf, out)
