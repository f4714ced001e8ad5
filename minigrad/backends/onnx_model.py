"""export_onnx: a Program as an ONNX file, its backward part included.

The program runs once, as a pure function, on `Symbol`s, and what it leaves behind is the graph.  The feeds are its
inputs, the fetched variables its outputs, parameters are stored in it.

Kernels run retargeted, on `OnnxNumPy`.  A few have a counterpart: where ONNX has the very operator (`Conv`, `Erf`),
or where a kernel looks at values.  Sequences are unrolled as on NumPy, branches become `If`, while loops become `Loop`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from itertools import accumulate, pairwise
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from numpy.lib.mixins import NDArrayOperatorsMixin
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from ..atomic import replacing
from ..compiler.memory import start_values
from ..compiler.program_passes import limited_depth
from ..compiler.tracer import Retarget
from ..errors import ProgramError, refusal
from ..ops.index import filled
from ..ops.shape import axis_tuple
from ..ops.windows import output_size, pair
from ..primitives.registry import REGISTRY
from ..static.program.infer import stand_in
from ..static.program.operator import names_of
from ..static.program.program import Program
from ..static.run.executor import data_of, fed_shapes
from .lowering import Function, Values, lowered

Shape = tuple[int, ...]

_tables = ConfigParser()
_tables.read_string(Path(__file__).with_name("onnx_ufuncs.ini").read_text("utf-8"))
OPERATORS = {section: dict(_tables[section]) for section in _tables.sections()}


class NoCounterpart(ProgramError):
    """ONNX has nothing for what a kernel does: why, and what to do instead."""

    def __init__(self, what: str, repair: str = "") -> None:
        super().__init__(what)
        self.repair = repair or "other ops; or static.compile(program), which takes every op"


class Symbol(NDArrayOperatorsMixin):
    """A value in the graph that behaves like an array: operators, indices, reshape, astype.

    Writing into a Symbol makes a new value and lets the Symbol stand for it; what it is a view of gets the value, too.
    So kernels that fill arrays run as they are.
    """

    __hash__ = object.__hash__  # ``==`` is a node like any other operator

    def __init__(self, graph: Any, name: str, shape: Any, dtype: Any) -> None:
        self.graph, self.name = graph, name
        self.shape: Shape = tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.write_through: Any = None  # for a view: writes its value into what it shows

    @property
    def like(self) -> Any:
        """An array of this shape and dtype that costs no memory."""
        return stand_in(self.shape, self.dtype, 0)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    strides = property(lambda self: np.empty(self.shape, np.int64).strides)
    T = property(lambda self: self.transpose())

    def node(
        self, op: str, *others: Any, shape: Any = None, dtype: Any = None, **attrs: Any
    ) -> Any:
        """The result of an operator whose first input is this value."""
        return self.graph.node(
            op,
            [self, *others],
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            **attrs,
        )

    def astype(self, dtype: Any, copy: bool = True) -> Symbol:
        """In another dtype."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return Symbol(self.graph, self.name, self.shape, dtype) if copy else self
        return self.node("Cast", dtype=dtype, to=helper.np_dtype_to_tensor_dtype(dtype))  # type: ignore[no-any-return]

    def reshape(self, *shape: Any) -> Symbol:
        """The same elements in another shape."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        known = self.like.reshape(wanted).shape
        if known == self.shape:
            return self
        reshaped = self.node("Reshape", _ints(known), shape=known)
        return reshaped.shows(lambda value: self.put(value.reshape(self.shape)))  # type: ignore[no-any-return]

    def transpose(self, *axes: Any) -> Symbol:
        """The axes in another order."""
        asked = axes[0] if len(axes) == 1 else axes
        order = [a % self.ndim for a in asked] if asked else list(range(self.ndim))[::-1]
        if order == list(range(self.ndim)):
            return self
        turned = self.node("Transpose", shape=[self.shape[a] for a in order], perm=order)
        back = np.argsort(order).tolist()
        return turned.shows(lambda value: self.put(value.transpose(back)))  # type: ignore[no-any-return]

    def dot(self, other: Any) -> Any:
        """The matrix product."""
        return self @ other

    def expand(self, shape: Any) -> Symbol:
        """Repeated along new and stretched axes."""
        shape = tuple(shape)
        return self if shape == self.shape else self.node("Expand", _ints(shape), shape=shape)

    def put(self, value: Symbol) -> None:
        """Take on the value of another Symbol."""
        if value.shape != self.shape or value.dtype != self.dtype:
            value = value.astype(self.dtype).expand(self.shape)
        self.name = value.name
        if self.write_through is not None:
            self.write_through(value)

    def shows(self, write_through: Any) -> Symbol:
        """The same, as a view of another Symbol."""
        self.write_through = write_through
        return self

    # -- indices ---------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Symbol:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(p, Symbol | np.ndarray | list) for p in parts):
            return self.picked(flat_places(self.graph, self.shape, parts))
        places = np.arange(self.size).reshape(self.shape)[index]
        if places.size == self.size and (places.ravel() == np.arange(self.size)).all():
            return self.reshape(places.shape)
        part = self._sliced(places).reshape(places.shape)
        return part.shows(lambda value: self.__setitem__(index, value))

    def _sliced(self, places: Any) -> Symbol:
        """What numbers and slices leave of each axis; all axes stay."""
        part = self
        for axis, found in enumerate(np.unravel_index(places.ravel(), self.shape)):
            rows = list(dict.fromkeys(found.tolist()))
            if rows != list(range(self.shape[axis])):
                shape = (*part.shape[:axis], len(rows), *part.shape[axis + 1 :])
                part = part.node("Gather", _ints(rows), shape=shape, axis=axis)
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        value = self.graph.symbol(value, self.dtype)
        if any(isinstance(p, Symbol | np.ndarray | list) for p in parts):
            self.put(self.placed(flat_places(self.graph, self.shape, parts), value))
            return
        places = np.arange(self.size).reshape(self.shape)[index]
        if places.size == self.size and (places.ravel() == np.arange(self.size)).all():
            self.put(value.expand(places.shape).reshape(self.shape))
        elif places.size:
            self.put(self.placed(self.graph.symbol(places), value))

    def picked(self, places: Symbol) -> Symbol:
        """The elements at places of the flat value."""
        flat = self.reshape(-1)
        return flat.node("Gather", places, shape=places.shape, axis=0)  # type: ignore[no-any-return]

    def placed(self, places: Symbol, value: Symbol, **how: Any) -> Symbol:
        """With a value at places of the flat value; ``reduction="add"`` adds it."""
        values = value.astype(self.dtype).expand(places.shape).reshape(-1)
        changed = self.reshape(-1).node(
            "ScatterElements", places.reshape(-1), values, axis=0, **how
        )
        return changed.reshape(self.shape)  # type: ignore[no-any-return]

    def __array_ufunc__(self, *call: Any, **how: Any) -> Any:
        return self.graph.functions.ufunc(*call, **how)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.graph.functions.call(function, args, kwargs)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Symbol]:
        return iter([self[k] for k in range(len(self))])

    def __bool__(self) -> bool:
        raise NoCounterpart("a kernel looks at a value, and there is none while a graph is written")


def _ints(values: Any) -> np.ndarray[Any, Any]:
    return np.array(list(values), np.int64)


def flat_places(graph: Any, shape: Shape, parts: tuple[Any, ...]) -> Symbol:
    """Where an index with arrays points to in the flat value: what is fixed, and for each array its stride."""
    arrays = {
        k: graph.symbol(p) for k, p in enumerate(parts) if isinstance(p, Symbol | np.ndarray | list)
    }
    if any(p.dtype.kind == "b" for p in arrays.values()):
        what = "how many elements a mask chooses is not known while a graph is written"
        raise NoCounterpart(what, "use where instead")
    zeros = [np.zeros(arrays[k].shape, int) if k in arrays else p for k, p in enumerate(parts)]
    axes = _axes(parts, len(shape))
    base = graph.symbol(np.arange(math.prod(shape)).reshape(shape)[tuple(zeros)])
    for k, p in arrays.items():
        # which element of the array stands where: NumPy says it of an axis that counts them
        count = np.arange(p.size).reshape(-1, *[1] * (len(shape) - axes[k] - 1))
        index = [*zeros[:k], np.arange(p.size).reshape(p.shape), *zeros[k + 1 :]]
        sizes = (*shape[: axes[k]], p.size, *shape[axes[k] + 1 :])
        which = graph.symbol(np.broadcast_to(count, sizes)[tuple(index)])
        n, stride = max(shape[axes[k]], 1), math.prod(shape[axes[k] + 1 :])
        from_end = p.astype(np.int64).node("Add", np.int64(n)).node("Mod", np.int64(n))
        base = base + from_end.picked(which) * np.int64(stride)
    return base  # type: ignore[no-any-return]


def _axes(parts: tuple[Any, ...], ndim: int) -> dict[int, int]:
    """Place in the index → the axis of the value it is for."""
    axes, axis = {}, 0
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    for k, p in enumerate(parts):
        if p is None:
            continue
        axes[k] = axis
        axis += ndim - taken if p is Ellipsis else 1
    return axes


class Graph:
    """Nodes and initializers, in order; `node` adds one and gives its result."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.initializers: dict[str, TensorProto] = {}
        self.taken: set[str] = set()
        self.functions: Any = None  # what NumPy's functions add here
        self.scope = ""  # the primitive that is being written
        self._known: dict[Any, str] = {}

    def unique(self, stem: str) -> str:
        """A name nobody has."""
        name, k = stem, 2
        while name in self.taken:
            name, k = f"{stem}_{k}", k + 1
        self.taken.add(name)
        return name

    def node(
        self, op: str, inputs: list[Any], shape: Any, dtype: Any, outputs: int = 1, **attrs: Any
    ) -> Any:
        """The result of one ONNX operator; a list of results if it has several of one shape."""
        names = [self.unique(f"{self.scope}/{op}") for _ in range(outputs)]
        sources = [i if isinstance(i, str) else self.symbol(i).name for i in inputs]
        self.nodes.append(helper.make_node(op, sources, names, names[0], **attrs))
        results = [Symbol(self, n, shape, dtype) for n in names]
        return results if outputs > 1 else results[0]

    def symbol(self, value: Any, dtype: Any = None) -> Symbol:
        """A Symbol: as it is, or an array or number as an initializer; cast to ``dtype``."""
        if isinstance(value, Symbol):
            return value if dtype is None else value.astype(dtype)
        array = np.asarray(value, dtype)
        key = array.dtype.name, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = self.initializer(self.unique("constant"), array)
        return Symbol(self, self._known[key], array.shape, array.dtype)

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Symbol:
        """One value everywhere."""
        one = self.symbol(np.asarray(value, dtype))
        return one.expand((shape,) if isinstance(shape, int) else shape)

    def initializer(self, name: str, array: Any) -> str:
        """An array that is stored in the file."""
        self.taken.add(name)
        self.initializers[name] = numpy_helper.from_array(
            np.ascontiguousarray(array).reshape(array.shape), name
        )
        return name

    @contextmanager
    def inner(self) -> Iterator[list[NodeProto]]:
        """Nodes made meanwhile belong to an inner graph."""
        before, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = before

    def needed(self, outputs: list[str]) -> list[NodeProto]:
        """The nodes the outputs depend on."""
        wanted, nodes = set(outputs), []
        for node in reversed(self.nodes):
            if not wanted.isdisjoint(node.output):
                nodes.append(node)
                wanted.update(names_read(node))
        self.initializers = {n: t for n, t in self.initializers.items() if n in wanted}
        return nodes[::-1]


def names_read(node: NodeProto) -> Iterator[str]:
    """What a node reads, inner graphs included."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from (o.name for o in attribute.g.output)
            for inner in attribute.g.node:
                yield from names_read(inner)


def info(name: str, value: Any) -> ValueInfoProto:
    """Name, dtype and shape, as ONNX declares them."""
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype)), list(value.shape)
    )


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


OPSET = 18
Body = Callable[..., Any]


def onnx_model(program: Program, feed: Any, fetch: Any, executor: Any) -> Any:
    """The checked `onnx.ModelProto` of a program for feeds of these shapes."""
    names = names_of(program, fetch, "fetch", root=True)
    shapes = fed_shapes(program, feed)
    for name, shape in shapes.items():
        if -1 in shape:
            raise refusal(
                f"the sizes of {name!r} {list(shape)} must be known to write a graph",
                f"feed={{{name!r}: (…)}}, an array or a shape",
                ProgramError,
            )
    graph = Graph()
    data = data_of(program)
    feeds = {n: Symbol(graph, graph.unique(n), shapes[n], v.dtype) for n, v in data.items()}
    start = start_values(program, executor)
    parameters = {
        n: Symbol(graph, graph.initializer(n, v), v.shape, v.dtype) for n, v in start.items()
    }
    with limited_depth():
        step = Function(lowered(program, shapes, names), names)
        _, results = step(OnnxSpace(graph), parameters, feeds)
    outputs = [_output(graph, n, v) for n, v in zip(names, results, strict=True)]
    nodes = graph.needed([o.name for o in outputs])
    read = {name for node in nodes for name in names_read(node)}
    graph_proto = helper.make_graph(
        nodes,
        "program",
        [info(f.name, f) for f in feeds.values() if f.name in read],
        [info(o.name, o) for o in outputs],
        list(graph.initializers.values()),
    )
    model = helper.make_model(
        graph_proto,
        producer_name="minigrad",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _output(graph: Graph, name: str, value: Any) -> Symbol:
    """A result under the name of its variable; of a parameter that is updated, the new value is ``w_out``."""
    own = graph.unique(name if name not in graph.taken else f"{name}_out")
    graph.nodes.append(helper.make_node("Identity", [value.name], [own], f"fetch/{own}"))
    return Symbol(graph, own, value.shape, value.dtype)


def write_model(model: Any, path: str | Path) -> None:
    """Write a model to a file."""
    with replacing(path) as file:
        onnx.save_model(model, file)


class OnnxSpace:
    """Every primitive by its type, as a function that writes nodes into a graph."""

    max_steps = None  #: an ONNX Loop keeps no values for a gradient

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.retarget = Retarget(
            OnnxNumPy(graph), lambda p, inputs, attrs: getattr(self, p.type)(*inputs, **attrs)
        )

    def __getattr__(self, type: str) -> Callable[..., Any]:
        p = REGISTRY[type]
        own = COUNTERPARTS.get(type)

        def call(*args: Any, **attrs: Any) -> Any:
            before, self.graph.scope = self.graph.scope, type
            try:
                out = own(*args, **attrs) if own else NotImplemented
                if out is NotImplemented:
                    out = self.retarget.of(p.kernel)(*args, **attrs)
            except NoCounterpart as error:
                if before:
                    raise  # the op of the program says it, not one inside its kernel
                what = f"{type} has no counterpart in ONNX: {error}"
                raise refusal(what, error.repair, ProgramError) from None
            finally:
                self.graph.scope = before
            several = p.several
            return [self.graph.symbol(v) for v in out] if several else self.graph.symbol(out)

        return call

    def cond(self, pred: Any, yes: Body, no: Body) -> Values:
        """An `If`, whose branches see everything around them."""
        branches = {}
        for name, branch in (("then_branch", yes), ("else_branch", no)):
            with self.graph.inner() as nodes:
                results = self._own([self.graph.symbol(v) for v in branch()])
            outputs = [info(v.name, v) for v in results]
            branches[name] = helper.make_graph(nodes, self.graph.unique(name), [], outputs)
        if not results:
            return ()
        names = [self.graph.unique("If") for _ in results]
        asked = self.graph.symbol(pred, bool).reshape(()).name
        self.graph.nodes.append(helper.make_node("If", [asked], names, names[0], **branches))
        return tuple(
            Symbol(self.graph, n, v.shape, v.dtype) for n, v in zip(names, results, strict=True)
        )

    def while_loop(self, test: Body, step: Body, starts: Values, save: bool) -> Any:
        """A `Loop` without a limit."""
        goes_on = self.graph.symbol(test(starts), bool).reshape(())
        carried = tuple(
            Symbol(self.graph, self.graph.unique("carried"), s.shape, s.dtype) for s in starts
        )
        count, before = (self.graph.unique(n) for n in ("count", "goes_on"))
        with self.graph.inner() as nodes:
            after = [
                self.graph.symbol(v, c.dtype)
                for v, c in zip(step(carried)[0], carried, strict=True)
            ]
            again = self.graph.symbol(test(tuple(after)), bool).reshape(())
            results = self._own([again, *after])
        inputs = [
            info(count, np.int64()),
            info(before, np.bool_()),
            *(info(c.name, c) for c in carried),
        ]
        body = helper.make_graph(
            nodes, self.graph.unique("step"), inputs, [info(v.name, v) for v in results]
        )
        names = [self.graph.unique("Loop") for _ in starts]
        sources = ["", goes_on.name, *(self.graph.symbol(s).name for s in starts)]
        self.graph.nodes.append(helper.make_node("Loop", sources, names, names[0], body=body))
        ends = (
            Symbol(self.graph, n, c.shape, c.dtype) for n, c in zip(names, carried, strict=True)
        )
        return tuple(ends), None

    def scan(self, step: Body, starts: Values, sequences: Values) -> Any:
        """A step for each place of the sequences: the last carried values, stacked outputs, and what is kept."""
        carried, kept, outs = starts, [], []
        for slices in zip(*sequences, strict=True):
            kept.append((carried, slices))
            carried, out = step(carried, slices)
            outs.append(out)
        return carried, tuple(map(np.stack, zip(*outs, strict=True))), kept

    def loop_grad(self, back: Body, kept: Any, seeds: Values, grads: Values, params: Values) -> Any:
        """The steps backwards: gradients of the starts, of what the body reads from outside, of the sequences."""
        totals = tuple(self.graph.full(p.shape, 0, p.dtype) for p in params)
        rows = []
        for k in range(len(kept) - 1, -1, -1):
            grads, shares, row = back(grads, *kept[k], tuple(s[k] for s in seeds))
            totals = tuple(t + s for t, s in zip(totals, shares, strict=True))
            rows.append(row)
        return grads, totals, tuple(map(np.stack, zip(*rows[::-1], strict=True)))

    def _own(self, values: list[Symbol]) -> list[Symbol]:
        """Results an inner graph has made itself."""
        return [v.node("Identity") for v in values]
