"""NumPy's ufuncs on Symbols: which ONNX operator each is, and how others are put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.shape import axis_tuple
from .graph import Graph
from .symbol import NoCounterpart, Symbol, flat_places

#: ufunc → ONNX operator of the same meaning
SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "true_divide": "Div", "power": "Pow",
    "maximum": "Max", "minimum": "Min", "matmul": "MatMul", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "tanh": "Tanh", "arcsinh": "Asinh", "arccosh": "Acosh", "arctanh": "Atanh",
    "negative": "Neg", "absolute": "Abs", "sign": "Sign", "floor": "Floor", "ceil": "Ceil",
    "rint": "Round",
}  # fmt: skip
COMPARE = {
    "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual",
    "equal": "Equal",
}  # fmt: skip
LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not"}
REDUCE = {
    "add": "ReduceSum",
    "maximum": "ReduceMax",
    "minimum": "ReduceMin",
    "multiply": "ReduceProd",
}


def ufunc(graph: Graph, function: np.ufunc, *args: Any, out: Any = None) -> Any:
    """A ufunc of Symbols, arrays and numbers."""
    *args, out = args if len(args) > function.nin else (*args, out)  # type: ignore[assignment]
    name = function.__name__
    with np.errstate(all="ignore"):
        like = np.asarray(function(*(a.like if isinstance(a, Symbol) else a for a in args)))
    if name == "not_equal":
        made = ufunc(graph, np.equal, *args).node("Not")
    elif name in COMPARE:
        common = np.result_type(*(a.dtype if isinstance(a, Symbol) else a for a in args))
        common = np.dtype(np.int32) if common.kind == "b" else common  # ONNX orders no truth values
        made = graph.node(COMPARE[name], [graph.symbol(a, common) for a in args], like.shape, bool)
    elif name in LOGIC:
        made = graph.node(LOGIC[name], [graph.symbol(a, bool) for a in args], like.shape, bool)
    elif name in COMPOSED:
        made = COMPOSED[name](graph, *args)
    elif name in SAME:
        inputs = [graph.symbol(a, like.dtype) for a in args]
        made = graph.node(SAME[name], inputs, like.shape, like.dtype)
    else:
        raise NoCounterpart(f"ONNX has no counterpart of np.{name}")
    if out is None:
        return made
    out.put(made)
    return out


def _log1p(graph: Graph, x: Any) -> Any:
    return ufunc(graph, np.log, 1.0 + x)


def _expm1(graph: Graph, x: Any) -> Any:
    return ufunc(graph, np.exp, x) - 1.0


def _logaddexp(graph: Graph, x: Any, y: Any) -> Any:
    far = ufunc(graph, np.absolute, ufunc(graph, np.subtract, x, y))
    return ufunc(graph, np.maximum, x, y) + _log1p(graph, ufunc(graph, np.exp, -far))


def _log2(graph: Graph, x: Any) -> Any:
    return ufunc(graph, np.log, x) / float(np.log(2.0))


def _log10(graph: Graph, x: Any) -> Any:
    return ufunc(graph, np.log, x) / float(np.log(10.0))


def _arctan2(graph: Graph, y: Any, x: Any) -> Any:
    from .numpy_names import OnnxNumPy

    space = OnnxNumPy(graph)
    y, x = graph.symbol(y), graph.symbol(x)
    turned = space.where(y < 0, -np.pi, np.pi).astype(np.result_type(y.dtype, x.dtype))
    angle = space.arctan(y / x) + space.where(x < 0, turned, 0.0)
    return space.where(space.logical_and(x == 0, y == 0), 0.0, angle)


def _remainder(graph: Graph, x: Any, y: Any) -> Any:
    x, y = _alike(graph, x, y)
    if x.dtype.kind == "f":
        return x - _floor_divide(graph, x, y) * y
    return graph.node("Mod", [x, y], np.broadcast_shapes(x.shape, y.shape), x.dtype)


def _floor_divide(graph: Graph, x: Any, y: Any) -> Any:
    x, y = _alike(graph, x, y)
    if x.dtype.kind == "f":
        return ufunc(graph, np.floor, x / y)
    exact = x - _remainder(graph, x, y)  # ONNX divides integers towards zero
    return graph.node("Div", [exact, y], exact.shape, x.dtype)


def _alike(graph: Graph, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands in their common dtype."""
    common = np.result_type(*(a.dtype if isinstance(a, Symbol) else a for a in (x, y)))
    return graph.symbol(x, common), graph.symbol(y, common)


def _isfinite(graph: Graph, x: Any) -> Any:
    return ufunc(graph, np.less, ufunc(graph, np.absolute, x), np.inf)


def _isinf(graph: Graph, x: Any) -> Any:
    return ufunc(graph, np.equal, ufunc(graph, np.absolute, x), np.inf)


def _isnan(graph: Graph, x: Any) -> Any:
    return ufunc(graph, np.not_equal, x, x)


#: ufunc → how it is put together; logarithms and exponentials near 0 lose what log1p and expm1 would keep
COMPOSED: dict[str, Callable[..., Any]] = {
    "log1p": _log1p,
    "expm1": _expm1,
    "logaddexp": _logaddexp,
    "log2": _log2,
    "log10": _log10,
    "isfinite": _isfinite,
    "isinf": _isinf,
    "isnan": _isnan,
    "arctan2": _arctan2,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
}


class Ufunc:
    """``np.add``, with its ``reduce``, ``accumulate`` and ``at``."""

    def __init__(self, graph: Graph, function: np.ufunc) -> None:
        self.graph, self.function = graph, function

    def __call__(self, *args: Any, out: Any = None) -> Any:
        if not any(isinstance(a, Symbol) for a in args):
            return self.function(*args)
        return ufunc(self.graph, self.function, *args, out=out)

    def reduce(
        self,
        x: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        **_: Any,
    ) -> Any:
        """Along axes."""
        axes = axis_tuple(axis, x.ndim)
        like = self.function.reduce(x.like, axis=axes, keepdims=keepdims)
        if not x.size:
            raise NoCounterpart("ONNX has no reduction over no elements")
        return self.graph.node(
            REDUCE[self.function.__name__],
            [x.astype(like.dtype), np.array(axes, np.int64)],
            like.shape,
            like.dtype,
            keepdims=int(keepdims),
            noop_with_empty_axes=1,
        )

    def accumulate(self, x: Any, axis: Any = 0, dtype: Any = None) -> Any:
        """Running along an axis."""
        from .numpy_names import OnnxNumPy

        x, space = x.astype(dtype or x.dtype), OnnxNumPy(self.graph)
        if self.function is np.add:
            return x.node("CumSum", np.int64(axis % x.ndim))
        rows: list[Any] = []
        for row in space.moveaxis(x, axis, 0):
            rows.append(self(rows[-1], row) if rows else row)
        return space.stack(rows, axis=axis)

    def at(self, out: Any, index: Any, value: Any) -> None:
        """``out[index] += value``, where an index may repeat."""
        parts = index if isinstance(index, tuple) else (index,)
        places = flat_places(self.graph, out.shape, parts)
        out.put(out.placed(places, self.graph.symbol(value, out.dtype), reduction="add"))
