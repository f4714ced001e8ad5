"""NumPy's names on Symbols: each call becomes ONNX nodes, and its shape and dtype are what NumPy finds on stand-ins.

`ufuncs.ini` has the ONNX operator of each ufunc; others are put together here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...ops.shape import axis_tuple
from .symbol import OPERATORS, Graph, NoCounterpart, Symbol, flat_places

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


class Ufunc:
    """``np.add`` on Symbols, arrays and numbers, with its ``reduce``, ``accumulate`` and ``at``."""

    def __init__(self, graph: Graph, function: np.ufunc) -> None:
        self.graph, self.function, self.name = graph, function, function.__name__

    def __call__(self, *args: Any, out: Any = None) -> Any:
        if not any(isinstance(a, Symbol) for a in args):
            return self.function(*args)
        if len(args) > self.function.nin:
            *args, out = args  # type: ignore[assignment]
        result = self._result(*args)
        if out is None:
            return result
        out.put(result)
        return out

    def _result(self, *args: Any) -> Any:
        with np.errstate(all="ignore"):
            like = np.asarray(
                self.function(*(a.like if isinstance(a, Symbol) else a for a in args))
            )
        if self.name in COMPOSED:
            return COMPOSED[self.name](self.graph.numpy, *args)
        for section, dtype in (("same", like.dtype), ("compare", _common(args)), ("logic", bool)):
            if op := OPERATORS[section].get(self.name):
                inputs = [self.graph.symbol(a, dtype) for a in args]
                return self.graph.node(op, inputs, like.shape, like.dtype)
        raise NoCounterpart(f"ONNX has no counterpart of np.{self.name}")

    def reduce(
        self, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **_: Any
    ) -> Any:  # fmt: skip
        """Along axes."""
        axes = axis_tuple(axis, x.ndim)
        like = self.function.reduce(x.like, axis=axes, keepdims=keepdims)
        if not x.size:
            raise NoCounterpart("ONNX has no reduction over no elements")
        inputs = [x.astype(like.dtype), np.array(axes, np.int64)]
        how = {"keepdims": int(keepdims), "noop_with_empty_axes": 1}
        return self.graph.node(
            OPERATORS["reduce"][self.name], inputs, like.shape, like.dtype, **how
        )

    def accumulate(self, x: Any, axis: Any = 0, dtype: Any = None) -> Any:
        """Running along an axis."""
        x = x.astype(dtype or x.dtype)
        if self.function is np.add:
            return x.node("CumSum", np.int64(axis % x.ndim))
        rows: list[Any] = []
        for row in self.graph.numpy.moveaxis(x, axis, 0):
            rows.append(self(rows[-1], row) if rows else row)
        return self.graph.numpy.stack(rows, axis=axis)

    def at(self, out: Any, index: Any, value: Any) -> None:
        """``out[index] += value``, where an index may repeat."""
        parts = index if isinstance(index, tuple) else (index,)
        places = flat_places(self.graph, out.shape, parts)
        out.put(out.placed(places, self.graph.symbol(value, out.dtype), reduction="add"))


def _common(args: tuple[Any, ...]) -> Any:
    """The dtype in which operands are compared: ONNX orders no truth values."""
    common = np.result_type(*(a.dtype if isinstance(a, Symbol) else a for a in args))
    return np.dtype(np.int32) if common.kind == "b" else common


def _alike(xp: Any, *args: Any) -> list[Any]:
    """Operands in their common dtype."""
    common = xp.result_type(*args)
    return [xp.graph.symbol(a, common) for a in args]


def _logaddexp(xp: Any, x: Any, y: Any) -> Any:
    far = xp.absolute(xp.subtract(x, y))
    return xp.maximum(x, y) + xp.log1p(xp.exp(-far))


def _arctan2(xp: Any, y: Any, x: Any) -> Any:
    y, x = xp.graph.symbol(y), xp.graph.symbol(x)
    turned = xp.where(y < 0, -np.pi, np.pi).astype(xp.result_type(y, x))
    angle = xp.arctan(y / x) + xp.where(x < 0, turned, 0.0)
    return xp.where(xp.logical_and(x == 0, y == 0), 0.0, angle)


def _remainder(xp: Any, x: Any, y: Any) -> Any:
    x, y = _alike(xp, x, y)
    if x.dtype.kind == "f":
        return x - xp.floor_divide(x, y) * y
    return xp.graph.node("Mod", [x, y], np.broadcast_shapes(x.shape, y.shape), x.dtype)


def _floor_divide(xp: Any, x: Any, y: Any) -> Any:
    x, y = _alike(xp, x, y)
    if x.dtype.kind == "f":
        return xp.floor(x / y)
    exact = x - xp.remainder(x, y)  # ONNX divides integers towards zero
    return xp.graph.node("Div", [exact, y], exact.shape, x.dtype)


#: ufunc → how it is put together; logarithms and exponentials near 0 lose what log1p and expm1 would keep
COMPOSED: dict[str, Callable[..., Any]] = {
    "not_equal": lambda xp, x, y: xp.equal(x, y).node("Not"),
    "log1p": lambda xp, x: xp.log(1.0 + x),
    "expm1": lambda xp, x: xp.exp(x) - 1.0,
    "log2": lambda xp, x: xp.log(x) / float(np.log(2.0)),
    "log10": lambda xp, x: xp.log(x) / float(np.log(10.0)),
    "isfinite": lambda xp, x: xp.less(xp.absolute(x), np.inf),
    "isinf": lambda xp, x: xp.equal(xp.absolute(x), np.inf),
    "isnan": lambda xp, x: xp.not_equal(x, x),
    "logaddexp": _logaddexp,
    "arctan2": _arctan2,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
}
