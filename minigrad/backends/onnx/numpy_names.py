"""NumPy's names on Symbols: each call becomes ONNX nodes, and its shape and dtype are what NumPy finds on stand-ins.

`ufuncs.ini` has the ONNX operator of each ufunc; others are put together here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...ops.shape import axis_tuple
from .symbol import OPERATORS, Graph, NoCounterpart, Symbol, flat_places


class OnnxNumPy:
    """What kernels call np: NumPy, whose functions ask a Symbol what they do; what makes arrays makes Symbols."""

    ndarray = Symbol

    def __init__(self, graph: Graph) -> None:
        self.graph, graph.functions = graph, Functions(graph)
        self.lib = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=self._as_strided))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        return x.astype(dtype or x.dtype) if isinstance(x, Symbol) else np.array(x, dtype)

    def array(self, x: Any, dtype: Any = None) -> Any:
        if isinstance(x, Symbol):
            return Symbol(self.graph, x.name, x.shape, x.dtype).astype(dtype or x.dtype)
        return np.array(x, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        return self.array(self.graph.full(shape, value, dtype))

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

    def _as_strided(self, x: Any, shape: Any, strides: Any, writeable: bool = True) -> Any:
        """Windows, as places of the flat value."""
        return self.graph.functions.moved(np.lib.stride_tricks.as_strided, x, shape, strides)


class Functions:
    """NumPy's functions on Symbols."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """What a function of NumPy is that has a Symbol among its arguments."""
        name = function.__name__
        if name in OPERATORS["moving"]:
            return self.moved(function, *args, **kwargs)
        if not hasattr(Functions, name):
            path = f"{function.__module__}.{name}".removeprefix("numpy.")
            raise NoCounterpart(f"ONNX has no counterpart of np.{path}")
        return getattr(self, name)(*args, **kwargs)

    def moved(self, function: Any, x: Symbol, *args: Any, **how: Any) -> Any:
        """With elements elsewhere: what a function does to an array of their places says where."""
        kind = OPERATORS["moving"][function.__name__]
        if kind == "shape":
            return x.reshape(function(x.like, *args, **how).shape)
        if kind == "axes":  # the k-th axis has the length k + 2
            turned = function(np.broadcast_to(0, tuple(range(2, x.ndim + 2))), *args, **how)
            return x.transpose([n - 2 for n in turned.shape])
        places = np.arange(x.size).reshape(x.shape)
        return x.picked(self.graph.symbol(np.array(function(places, *args, **how))))

    shape, size = attrgetter("shape"), attrgetter("size")

    def result_type(self, *values: Any) -> Any:
        return np.result_type(*(v.dtype if isinstance(v, Symbol) else v for v in values))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        like = np.where(*(v.like if isinstance(v, Symbol) else v for v in (condition, x, y)))
        inputs = [self.graph.symbol(condition, bool)]
        inputs += [self.graph.symbol(v, like.dtype) for v in (x, y)]
        return self.graph.node("Where", inputs, like.shape, like.dtype)

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        x = x if low is None else np.maximum(x, low)
        return x if high is None else np.minimum(x, high)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        return x.expand((shape,) if isinstance(shape, int) else shape)

    def concatenate(self, parts: Any, axis: int = 0) -> Any:
        like = np.concatenate([p.like if isinstance(p, Symbol) else p for p in parts], axis)
        inputs = [self.graph.symbol(p, like.dtype) for p in parts]
        return self.graph.node("Concat", inputs, like.shape, like.dtype, axis=axis % like.ndim)

    def stack(self, parts: Any, axis: int = 0) -> Any:
        parts = [self.graph.symbol(p) for p in parts]
        return np.concatenate([np.expand_dims(p, axis) for p in parts], axis)

    def split(self, x: Any, ends: Any, axis: int = 0) -> list[Any]:
        sizes = map(len, np.split(np.arange(x.shape[axis]), ends))
        before = (slice(None),) * (axis % x.ndim)
        return [x[(*before, slice(a, b))] for a, b in pairwise([0, *accumulate(sizes)])]

    def tril(self, x: Any, k: int = 0) -> Any:
        return np.where(_triangle(x, k), x, 0)

    def triu(self, x: Any, k: int = 0) -> Any:
        return np.where(_triangle(x, k - 1), 0, x)

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

    def det(self, x: Any) -> Any:
        return x.node("Det", shape=x.shape[:-2])

    def any(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        hits = x.astype(bool).astype(np.int64)
        return self._reduce(np.add, hits, axis, keepdims=keepdims) > 0

    def all(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self.any(x.astype(bool).node("Not"), axis, keepdims).node("Not")

    def round(self, x: Any, decimals: int = 0) -> Any:
        scale = 10.0**decimals
        return (x * scale).node("Round") / scale if decimals else x.node("Round")

    # -- ufuncs, which call this themselves where an operand is a Symbol -------------------

    def ufunc(
        self, function: np.ufunc, method: str, *args: Any, out: Any = None, **how: Any
    ) -> Any:
        """``np.add`` and its kin, and their ``reduce``, ``accumulate`` and ``at``."""
        if method != "__call__":
            return getattr(self, f"_{method}")(function, *args, **how)
        result = self._applied(function, *args)
        if out is None:
            return result
        out[0].put(result)
        return out[0]

    def _applied(self, function: np.ufunc, *args: Any) -> Any:
        with np.errstate(all="ignore"):
            like = np.asarray(function(*(a.like if isinstance(a, Symbol) else a for a in args)))
        if function.__name__ in COMPOSED:
            return COMPOSED[function.__name__](*args)
        for section, dtype in (("same", like.dtype), ("compare", _common(args)), ("logic", bool)):
            if op := OPERATORS[section].get(function.__name__):
                inputs = [self.graph.symbol(a, dtype) for a in args]
                return self.graph.node(op, inputs, like.shape, like.dtype)
        raise NoCounterpart(f"ONNX has no counterpart of np.{function.__name__}")

    def _reduce(
        self,
        function: Any,
        x: Any,
        axis: Any = 0,
        dtype: Any = None,
        keepdims: bool = False,
        **_: Any,
    ) -> Any:
        axes = axis_tuple(axis, x.ndim)
        like = function.reduce(x.like, axis=axes, keepdims=keepdims)
        if not x.size:
            raise NoCounterpart("ONNX has no reduction over no elements")
        inputs = [x.astype(like.dtype), np.array(axes, np.int64)]
        how = {"keepdims": int(keepdims), "noop_with_empty_axes": 1}
        op = OPERATORS["reduce"][function.__name__]
        return self.graph.node(op, inputs, like.shape, like.dtype, **how)

    def _accumulate(self, function: np.ufunc, x: Any, axis: Any = 0, dtype: Any = None) -> Any:
        x = x.astype(dtype or x.dtype)
        if function is np.add:
            return x.node("CumSum", np.int64(axis % x.ndim))
        rows: list[Any] = []
        for row in np.moveaxis(x, axis, 0):
            rows.append(function(rows[-1], row) if rows else row)
        return np.stack(rows, axis=axis)

    def _at(self, function: np.ufunc, out: Any, index: Any, value: Any) -> None:
        """``np.add.at``, where an index may repeat."""
        parts = index if isinstance(index, tuple) else (index,)
        places = flat_places(self.graph, out.shape, parts)
        out.put(out.placed(places, self.graph.symbol(value, out.dtype), reduction="add"))


def _triangle(x: Any, k: int) -> Any:
    return np.tri(x.shape[-2], x.shape[-1], k, bool)


def _common(args: tuple[Any, ...]) -> Any:
    """The dtype in which operands are compared: ONNX orders no truth values."""
    common = np.result_type(*(a.dtype if isinstance(a, Symbol) else a for a in args))
    return np.dtype(np.int32) if common.kind == "b" else common


def _alike(*args: Any) -> list[Any]:
    """Operands in their common dtype."""
    graph, common = next(a.graph for a in args if isinstance(a, Symbol)), np.result_type(*args)
    return [graph.symbol(a, common) for a in args]


def _logaddexp(x: Any, y: Any) -> Any:
    far = np.absolute(np.subtract(x, y))
    return np.maximum(x, y) + np.log1p(np.exp(-far))


def _arctan2(y: Any, x: Any) -> Any:
    y, x = _alike(y, x)
    turned = np.where(y < 0, -np.pi, np.pi).astype(np.result_type(y, x))
    angle = np.arctan(y / x) + np.where(x < 0, turned, 0.0)
    return np.where(np.logical_and(x == 0, y == 0), 0.0, angle)


def _remainder(x: Any, y: Any) -> Any:
    x, y = _alike(x, y)
    if x.dtype.kind == "f":
        return x - np.floor_divide(x, y) * y
    return x.graph.node("Mod", [x, y], np.broadcast_shapes(x.shape, y.shape), x.dtype)


def _floor_divide(x: Any, y: Any) -> Any:
    x, y = _alike(x, y)
    if x.dtype.kind == "f":
        return np.floor(x / y)
    exact = x - np.remainder(x, y)  # ONNX divides integers towards zero
    return x.graph.node("Div", [exact, y], exact.shape, x.dtype)


#: ufunc → how it is put together; logarithms and exponentials near 0 lose what log1p and expm1 would keep
COMPOSED: dict[str, Callable[..., Any]] = {
    "not_equal": lambda x, y: np.equal(x, y).node("Not"),
    "invert": lambda x: x.astype(bool).node("Not"),
    "log1p": lambda x: np.log(1.0 + x),
    "expm1": lambda x: np.exp(x) - 1.0,
    "log2": lambda x: np.log(x) / float(np.log(2.0)),
    "log10": lambda x: np.log(x) / float(np.log(10.0)),
    "isfinite": lambda x: np.less(np.absolute(x), np.inf),
    "isinf": lambda x: np.equal(np.absolute(x), np.inf),
    "isnan": lambda x: np.not_equal(x, x),
    "logaddexp": _logaddexp,
    "arctan2": _arctan2,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
}
