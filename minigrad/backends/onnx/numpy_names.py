"""NumPy's names on Symbols: each call becomes ONNX nodes, and its shape and dtype are what NumPy finds on stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from .graph import Graph
from .symbol import NoCounterpart, Symbol
from .ufuncs import Ufunc

#: functions that move elements, and what says how: the shape, the order of axes, the place of each
MOVING = {
    "reshape": "shape", "expand_dims": "shape", "squeeze": "shape",
    "transpose": "axes", "swapaxes": "axes", "moveaxis": "axes",
    "flip": "places", "roll": "places", "tile": "places", "diagonal": "places", "as_strided": "places",
}  # fmt: skip


class OnnxNumPy:
    """The names of NumPy that kernels use; others are NumPy's own, for what is known without values."""

    def __init__(self, graph: Graph) -> None:
        self.graph, graph.numpy = graph, self
        self.lib = SimpleNamespace(stride_tricks=self)
        self.linalg = _Linalg()
        self.ndarray, self.generic = Symbol, np.generic

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if isinstance(function, np.ufunc):
            return Ufunc(self.graph, function)
        if not callable(function) or isinstance(function, type):
            return function
        return self._moving(function, name) if name in MOVING else _plain(function, name)

    def _moving(self, function: Any, name: str) -> Any:
        """A function that puts elements elsewhere: what it does to an array of their places says how."""

        def call(x: Any, *args: Any, **how: Any) -> Any:
            if not isinstance(x, Symbol):
                return function(x, *args, **how)
            if MOVING[name] == "shape":
                return x.reshape(function(x.like, *args, **how).shape)
            if MOVING[name] == "axes":  # the k-th axis has the length k + 2
                turned = function(np.broadcast_to(0, tuple(range(2, x.ndim + 2))), *args, **how)
                return x.transpose([n - 2 for n in turned.shape])
            places = np.arange(x.size).reshape(x.shape)
            return x.picked(self.graph.symbol(np.array(function(places, *args, **how))))

        return call

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        return x.astype(dtype or x.dtype) if isinstance(x, Symbol) else self.array(x, dtype)

    def array(self, x: Any, dtype: Any = None) -> Any:
        if isinstance(x, Symbol):
            return Symbol(self.graph, x.name, x.shape, x.dtype).astype(dtype or x.dtype)
        return np.array(x, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        small = self.graph.symbol(np.asarray(value, dtype))
        return self.array(small.expand((shape,) if isinstance(shape, int) else shape))

    def zeros(self, shape: Any, dtype: Any = float) -> Any:
        return self.full(shape, 0, dtype)

    empty = zeros

    def ones(self, shape: Any, dtype: Any = float) -> Any:
        return self.full(shape, 1, dtype)

    def zeros_like(self, x: Any, subok: bool = False) -> Any:
        return self.full(x.shape, 0, x.dtype)

    def ones_like(self, x: Any, subok: bool = False) -> Any:
        return self.full(x.shape, 1, x.dtype)

    def full_like(self, x: Any, value: Any) -> Any:
        return self.full(x.shape, value, x.dtype)

    def shape(self, x: Any) -> Any:
        return x.shape if isinstance(x, Symbol) else np.shape(x)

    def size(self, x: Any) -> Any:
        return x.size if isinstance(x, Symbol) else np.size(x)

    def result_type(self, *values: Any) -> Any:
        return np.result_type(*(v.dtype if isinstance(v, Symbol) else v for v in values))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        like = np.where(*(v.like if isinstance(v, Symbol) else v for v in (condition, x, y)))
        inputs = [self.graph.symbol(condition, bool)]
        inputs += [self.graph.symbol(v, like.dtype) for v in (x, y)]
        return self.graph.node("Where", inputs, like.shape, like.dtype)

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        x = x if low is None else self.maximum(x, low)
        return x if high is None else self.minimum(x, high)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        if not isinstance(x, Symbol):
            return np.broadcast_to(x, shape)
        return x.expand((shape,) if isinstance(shape, int) else shape)

    def concatenate(self, parts: Any, axis: int = 0) -> Any:
        like = np.concatenate([p.like if isinstance(p, Symbol) else p for p in parts], axis)
        inputs = [self.graph.symbol(p, like.dtype) for p in parts]
        return self.graph.node("Concat", inputs, like.shape, like.dtype, axis=axis % like.ndim)

    def stack(self, parts: Any, axis: int = 0) -> Any:
        parts = [self.graph.symbol(p) for p in parts]
        return self.concatenate([self.expand_dims(p, axis) for p in parts], axis)

    def split(self, x: Any, ends: Any, axis: int = 0) -> list[Any]:
        cuts = [0, *(int(e) for e in ends), x.shape[axis]]
        before = (slice(None),) * (axis % x.ndim)
        return [x[(*before, slice(a, b))] for a, b in pairwise(cuts)]

    def as_strided(self, x: Any, shape: Any, strides: Any, writeable: bool = True) -> Any:
        """Windows, as places of the flat value."""
        return self._moving(np.lib.stride_tricks.as_strided, "as_strided")(x, shape, strides)

    def tril(self, x: Any, k: int = 0) -> Any:
        return self.where(_triangle(x, k), x, 0)

    def triu(self, x: Any, k: int = 0) -> Any:
        return self.where(_triangle(x, k - 1), 0, x)

    def take(self, x: Any, indices: Any, axis: Any = None) -> Any:
        x, axis = (x.reshape(-1), 0) if axis is None else (x, axis % x.ndim)
        indices = self.graph.symbol(indices, np.int64)
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        return x.node("Gather", indices, shape=shape, axis=axis)

    def take_along_axis(self, x: Any, indices: Any, axis: int) -> Any:
        indices = self.graph.symbol(indices, np.int64)
        axis %= x.ndim
        shape, rows = list(x.shape), list(indices.shape)
        for k in set(range(x.ndim)) - {axis}:
            shape[k] = rows[k] = max(shape[k], rows[k]) if shape[k] and rows[k] else 0
        shape[axis] = x.shape[axis]
        return x.expand(shape).node("GatherElements", indices.expand(rows), shape=rows, axis=axis)

    def einsum(self, subscripts: str, *operands: Any, optimize: Any = False) -> Any:
        like = np.einsum(subscripts, *(o.like for o in operands))
        inputs = [o.astype(like.dtype) for o in operands]
        return self.graph.node("Einsum", inputs, like.shape, like.dtype, equation=subscripts)

    def argmax(self, x: Any, axis: Any = None, keepdims: bool = False, op: str = "ArgMax") -> Any:
        shape = np.asarray(np.argmax(x.like, axis=axis, keepdims=keepdims)).shape
        if axis is None:
            flat = x.reshape(-1).node(op, shape=(), dtype=np.int64, axis=0, keepdims=0)
            return flat.reshape(shape)
        return x.node(op, shape=shape, dtype=np.int64, axis=axis, keepdims=int(keepdims))

    def argmin(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self.argmax(x, axis, keepdims, "ArgMin")

    def dot(self, x: Any, y: Any) -> Any:
        return self.matmul(x, y)

    def any(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        hits = x.astype(bool).astype(np.int64)
        return self.greater(self.add.reduce(hits, axis=axis, keepdims=keepdims), 0)

    def all(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self.any(x.astype(bool).node("Not"), axis, keepdims).node("Not")

    def round(self, x: Any, decimals: int = 0) -> Any:
        scale = 10.0**decimals
        return (x * scale).node("Round") / scale if decimals else x.node("Round")

    @contextmanager
    def errstate(self, **kwargs: Any) -> Iterator[None]:
        """There is nothing that could warn."""
        yield


def _triangle(x: Any, k: int) -> Any:
    return np.tri(x.shape[-2], x.shape[-1], k, bool)


class _Linalg:
    """``np.linalg``: of it, ONNX has the determinant."""

    def __getattr__(self, name: str) -> Any:
        return _plain(getattr(np.linalg, name), f"linalg.{name}")

    def det(self, x: Any) -> Any:
        return x.node("Det", shape=x.shape[:-2])


def _plain(function: Any, name: str) -> Any:
    """A function of NumPy for numbers; with a Symbol it has no counterpart."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, Symbol) for a in (*args, *kwargs.values())):
            raise NoCounterpart(f"ONNX has no counterpart of np.{name}")
        return function(*args, **kwargs)

    return call
