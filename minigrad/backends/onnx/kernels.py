"""Counterparts of kernels in ONNX, of the same arguments: its own operators, and what kernels do with values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.index import filled
from ...ops.windows import output_size, pair
from .symbol import NoCounterpart, Symbol, flat_places

COUNTERPARTS: dict[str, Callable[..., Any]] = {}


def counterpart(function: Any) -> Any:
    """Enter a function in the table under its own name."""
    COUNTERPARTS[function.__name__] = function
    return function


def _node(op: str) -> Callable[..., Any]:
    """One node of floating-point numbers."""

    def call(x: Any, **attrs: Any) -> Any:
        return (x if x.dtype.kind == "f" else x.astype(float)).node(op, **attrs)

    return call


#: kernels for which ONNX has the very operator
NODES = {"sigmoid": "Sigmoid", "erf": "Erf", "softmax": "Softmax", "log_softmax": "LogSoftmax"}
COUNTERPARTS |= {name: _node(op) for name, op in NODES.items()}


# -- elementwise -----------------------------------------------------------------------


@counterpart
def gelu(x):
    return x * (0.5 + 0.5 * (x * 0.5**0.5).node("Erf"))


@counterpart
def dropout(x, seed, *, p=0.5):
    if p:
        what = "its masks come from NumPy's generator"
        raise NoCounterpart(what, "export program.clone(for_test=True)")
    return x


# -- shapes ----------------------------------------------------------------------------


@counterpart
def spread(x, *, shape, source, target):
    unique = "".join(dict.fromkeys(target))
    sizes = dict(zip(target, shape, strict=True))
    flat = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    places = x.graph.symbol(np.array(np.einsum(f"{target}->{unique}", flat)))
    x = x.reshape([sizes[c] if c in source else 1 for c in unique])
    return x.graph.full(shape, 0, x.dtype).placed(places, x)


# -- order and indices -----------------------------------------------------------------


@counterpart
def topk(x, *, k, axis=-1, largest=True):
    shape = [k if a == axis % x.ndim else n for a, n in enumerate(x.shape)]
    how = {"axis": axis, "largest": int(largest)}
    values, indices = x.node("TopK", np.array([k], np.int64), shape=shape, outputs=2, **how)
    return values, Symbol(x.graph, indices.name, shape, np.int64)


@counterpart
def sort(x, *, axis=-1, descending=False):
    return topk(x, k=x.shape[axis], axis=axis, largest=descending)[0]


@counterpart
def argsort(x, *, axis=-1, descending=False):
    return topk(x, k=x.shape[axis], axis=axis, largest=descending)[1]


@counterpart
def put_winners(x, *index, template):
    places = flat_places(x.graph, x.shape, filled(template, index))
    number = x.graph.symbol(np.arange(places.size).reshape(places.shape))
    last = x.graph.full(x.shape, -1, np.int64).placed(places, number, reduction="max")
    return np.equal(last.picked(places), number)


# -- losses ----------------------------------------------------------------------------


@counterpart
def cross_entropy(x, target, *, axis=-1):
    rows = COUNTERPARTS["log_softmax"](x, axis=axis)
    target = x.graph.symbol(target, np.int64)
    picked = np.take_along_axis(rows, np.expand_dims(target, axis), axis)
    return -np.add.reduce(picked, axis=None) / float(max(picked.size, 1))


# -- windows; in double precision, which runtimes have no Conv for, the kernel's own columns ------


@counterpart
def conv2d(x, w, b=None, *, stride=1, padding=0, dilation=1, groups=1):
    if x.dtype != np.float32:
        return NotImplemented
    step, border, reach = pair(stride), pair(padding), pair(dilation)
    size = output_size(x.shape[2:], w.shape[2:], step, border, reach)
    how = {"kernel_shape": w.shape[2:], "strides": step, "pads": border * 2, "dilations": reach}
    inputs = [x, w] if b is None else [x, w, b]
    shape = (x.shape[0], w.shape[0], *size)
    return x.graph.node("Conv", inputs, shape, x.dtype, group=groups, **how)


@counterpart
def max_pool2d(x, *, kernel_size, stride=None, padding=0):
    kernel, border = pair(kernel_size), pair(padding)
    step = kernel if stride is None else pair(stride)
    size = output_size(x.shape[2:], kernel, step, border, (1, 1))
    shape = (*x.shape[:2], *size)
    return x.node("MaxPool", shape=shape, kernel_shape=kernel, strides=step, pads=border * 2)
