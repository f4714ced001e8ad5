"""All primitives and the functions made of them, under the names users call."""
# ruff: noqa: F401

from __future__ import annotations

from ..errors.calls import check_functions
from ..primitives.values import install
from . import update
from .activations import elu, erf, gelu, leaky_relu, logaddexp, relu, sigmoid, silu, softplus
from .along_axis import index_add, scatter_add, take, take_along_axis
from .arrange import flip, moveaxis, repeat, roll
from .compare import (
    abs,
    ceil,
    clip,
    equal,
    floor,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    not_equal,
    round,
    sign,
    where,
)
from .conv import conv1d, conv2d, conv_transpose2d
from .create import arange, eye, full, linspace, ones, zeros
from .diagonals import diagonal, tril, triu
from .einsum import einsum
from .elementwise import (
    add,
    div,
    exp,
    expm1,
    increment,
    log,
    log1p,
    log2,
    log10,
    mul,
    neg,
    reciprocal,
    scale,
    sqrt,
    square,
    sub,
)
from .fill import assign, astype, clone, fill_constant, ones_like, zeros_like
from .finite import isfinite, isinf, isnan, nan_to_num
from .index import getitem, setitem
from .join import add_n, concat, pad, split, stack, tile, unbind
from .linalg import dot, linear, matmul, outer, trace
from .losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber,
    mse,
    nll,
)
from .normalise import batch_norm, layer_norm, normalize
from .order import argmax, argmin, argsort, sort, topk
from .pool import avg_pool2d, max_pool2d
from .power import pow
from .products import cross, kron, tensordot
from .random import dropout, normal, uniform
from .reduce import all, any, max, mean, min, prod
from .reduce import reduce_sum as sum
from .remainder import floor_divide, mod
from .rows import embedding, merge_rows, select_rows
from .scan import cumprod, cumsum
from .shape import (
    broadcast_to,
    expand_dims,
    flatten,
    permute_dims,
    reshape,
    squeeze,
    swapaxes,
    unbroadcast,
)
from .softmax import log_softmax, softmax
from .solve import cholesky, det, inv, solve
from .statistics import logsumexp, norm, std, var
from .trigonometry import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)

__minigrad_ops__ = True  # frames of this module are never "the user's line"
transpose = permute_dims
subtract, multiply, divide, negative = sub, mul, div, neg  # the array API's longer names
remainder = mod

#: every function users call as ``mg.…``
__all__ = sorted(
    n
    for n, f in globals().items()
    if callable(f) and n[0] != "_" and n not in ("install", "check_functions")
)
check_functions(globals(), __all__)


def _variadic(function):
    """A method that takes a shape in one piece or in several: ``x.reshape(2, 3)``."""

    def method(self, *args, **attrs):
        if len(args) > 1 or (args and isinstance(args[0], int)):
            args = (args,)
        return function(self, *args, **attrs)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    return method


install(
    globals()
    | {
        n: _variadic(globals()[n])
        for n in ("reshape", "permute_dims", "transpose", "broadcast_to", "tile")
    }
)
