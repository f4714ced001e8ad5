"""Counterparts of kernels in ONNX: its own operators, and what kernels do with values or views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.index import filled
from ...ops.windows import output_size, pair
from .numpy_names import OnnxNumPy
from .symbol import Graph, NoCounterpart, Symbol, flat_places

COUNTERPARTS: dict[str, Callable[..., Any]] = {}


def counterpart(function: Any) -> Any:
    """Enter a method in the table under its own name."""
    COUNTERPARTS[function.__name__] = function
    return function


def _node(op: str) -> Callable[..., Any]:
    """One node of floating-point numbers."""

    def call(_: Kernels, x: Any, **attrs: Any) -> Any:
        return (x if x.dtype.kind == "f" else x.astype(float)).node(op, **attrs)

    return call


#: kernels for which ONNX has the very operator
NODES = {"sigmoid": "Sigmoid", "erf": "Erf", "softmax": "Softmax", "log_softmax": "LogSoftmax"}
COUNTERPARTS |= {name: _node(op) for name, op in NODES.items()}


class Kernels:
    """Functions of the same arguments as the kernels they stand for."""

    def __init__(self, graph: Graph, numpy: OnnxNumPy) -> None:
        self.graph, self.np = graph, numpy

    # -- elementwise -----------------------------------------------------------------------

    @counterpart
    def gelu(self, x):
        return x * (0.5 + 0.5 * (x * 0.5**0.5).node("Erf"))

    @counterpart
    def dropout(self, x, seed, *, p=0.5):
        if p:
            what = "its masks come from NumPy's generator"
            raise NoCounterpart(what, "export program.clone(for_test=True)")
        return x

    # -- shapes ----------------------------------------------------------------------------

    @counterpart
    def spread(self, x, *, shape, source, target):
        unique = "".join(dict.fromkeys(target))
        sizes = dict(zip(target, shape, strict=True))
        flat = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        places = self.graph.symbol(np.array(np.einsum(f"{target}->{unique}", flat)))
        x = x.reshape([sizes[c] if c in source else 1 for c in unique])
        return self.np.zeros(tuple(shape), x.dtype).placed(places, x)

    # -- order and indices -----------------------------------------------------------------

    @counterpart
    def topk(self, x, *, k, axis=-1, largest=True):
        shape = [k if a == axis % x.ndim else n for a, n in enumerate(x.shape)]
        values, indices = self.graph.node(
            "TopK", [x, np.array([k], np.int64)], shape, x.dtype, outputs=2, axis=axis, largest=int(largest)
        )  # fmt: skip
        return values, Symbol(self.graph, indices.name, shape, np.int64)

    @counterpart
    def sort(self, x, *, axis=-1, descending=False):
        return self.topk(x, k=x.shape[axis], axis=axis, largest=descending)[0]

    @counterpart
    def argsort(self, x, *, axis=-1, descending=False):
        return self.topk(x, k=x.shape[axis], axis=axis, largest=descending)[1]

    @counterpart
    def put_winners(self, x, *index, template):
        places = flat_places(self.graph, x.shape, filled(template, index))
        number = self.graph.symbol(np.arange(places.size).reshape(places.shape))
        last = self.np.full(x.shape, -1, np.int64).placed(places, number, reduction="max")
        return self.np.equal(last.picked(places), number)

    # -- losses ----------------------------------------------------------------------------

    @counterpart
    def cross_entropy(self, x, target, *, axis=-1):
        rows = COUNTERPARTS["log_softmax"](self, x, axis=axis)
        target = self.graph.symbol(target, np.int64)
        picked = self.np.take_along_axis(rows, self.np.expand_dims(target, axis), axis)
        return -self.np.add.reduce(picked, axis=None) / float(max(picked.size, 1))

    # -- windows; in double precision, which runtimes have no Conv for, the kernel's own columns ------

    @counterpart
    def conv2d(self, x, w, b=None, *, stride=1, padding=0, dilation=1, groups=1):
        if x.dtype != np.float32:
            return NotImplemented
        step, border, reach = pair(stride), pair(padding), pair(dilation)
        size = output_size(x.shape[2:], w.shape[2:], step, border, reach)
        how = {"kernel_shape": w.shape[2:], "strides": step, "pads": border * 2, "dilations": reach}
        inputs = [x, w] if b is None else [x, w, b]
        shape = (x.shape[0], w.shape[0], *size)
        return self.graph.node("Conv", inputs, shape, x.dtype, group=groups, **how)

    @counterpart
    def max_pool2d(self, x, *, kernel_size, stride=None, padding=0):
        kernel, border = pair(kernel_size), pair(padding)
        step = kernel if stride is None else pair(stride)
        size = output_size(x.shape[2:], kernel, step, border, (1, 1))
        shape = (*x.shape[:2], *size)
        return x.node("MaxPool", shape=shape, kernel_shape=kernel, strides=step, pads=border * 2)
