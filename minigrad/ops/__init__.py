"""All primitives and the functions made of them, under the names users call."""
# ruff: noqa: F401

from __future__ import annotations

from ..errors.calls import check_functions
from ..primitives.values import install
from . import update
from .activations import elu, erf, gelu, leaky_relu, logaddexp, relu, sigmoid, silu, softplus
from .compare import (
    abs,
    ceil,
    clip,
    equal,
    floor,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    nan_to_num,
    not_equal,
    round,
    sign,
    where,
)
from .conv import conv1d, conv2d, conv_transpose2d
from .create import (
    arange,
    assign,
    astype,
    clone,
    eye,
    fill_constant,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from .einsum import einsum, tensordot
from .elementwise import (
    add,
    div,
    exp,
    exp2,
    expm1,
    floor_divide,
    increment,
    log,
    log1p,
    log2,
    log10,
    mod,
    mul,
    neg,
    pow,
    reciprocal,
    scale,
    sqrt,
    square,
    sub,
)
from .index import (
    embedding,
    getitem,
    index_add,
    merge_rows,
    scatter_add,
    select_rows,
    setitem,
    take,
    take_along_axis,
)
from .join import add_n, concat, pad, repeat, split, stack, tile, unbind
from .linalg import (
    cholesky,
    cross,
    det,
    diag,
    diagonal,
    dot,
    inv,
    kron,
    linear,
    matmul,
    outer,
    solve,
    trace,
    tril,
    triu,
)
from .losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber,
    mse,
    nll,
    one_hot,
)
from .order import argmax, argmin, argsort, sort, topk
from .pool import avg_pool2d, max_pool2d
from .random import dropout, normal, uniform
from .reduce import all, any, cumprod, cumsum, max, mean, min, prod
from .reduce import reduce_sum as sum
from .shape import (
    broadcast_to,
    expand_dims,
    flatten,
    flip,
    moveaxis,
    permute_dims,
    reshape,
    roll,
    squeeze,
    swapaxes,
    unbroadcast,
)
from .softmax import log_softmax, softmax
from .statistics import batch_norm, layer_norm, logsumexp, norm, normalize, std, var
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
