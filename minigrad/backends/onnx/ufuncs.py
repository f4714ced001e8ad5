"""NumPy's ufuncs on Symbols: `ufuncs.ini` has the ONNX operator of each; others are put together here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.shape import axis_tuple
from .graph import Graph
from .symbol import OPERATORS, NoCounterpart, Symbol, flat_places


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
