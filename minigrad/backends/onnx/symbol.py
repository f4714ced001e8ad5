"""Symbol: a value of an ONNX graph, with a name, a shape and a dtype, and no numbers; Graph: what it is a value of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from ...errors import ProgramError
from ...static.program.infer import stand_in

Shape = tuple[int, ...]

_tables = ConfigParser()
_tables.read_string(Path(__file__).with_name("ufuncs.ini").read_text("utf-8"))
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
        part = self._sliced(parts).reshape(places.shape)
        return part.shows(lambda value: self.__setitem__(index, value))

    def _sliced(self, parts: tuple[Any, ...]) -> Symbol:
        """Numbers and slices as one ONNX Slice; axes stay."""
        real = [p for p in parts if p is not None]
        rest = [slice(None)] * (self.ndim - len([p for p in real if p is not Ellipsis]))
        at = real.index(Ellipsis) if Ellipsis in real else len(real)
        cuts = [*real[:at], *rest, *real[at + 1 :]]
        ranges = [
            range(n)[c] if isinstance(c, slice) else range(n)[int(c) : (int(c) + 1) or None]
            for n, c in zip(self.shape, cuts, strict=True)
        ]
        shape = [len(r) for r in ranges]
        axes = [k for k, (r, n) in enumerate(zip(ranges, self.shape, strict=True)) if r != range(n)]
        low = -(2**62)
        inputs = (
            [ranges[k].start for k in axes],
            [ranges[k].stop if ranges[k].stop >= 0 else low for k in axes],
            axes,
            [ranges[k].step for k in axes],
        )
        return self.node("Slice", *map(_ints, inputs), shape=shape) if axes else self

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
    arrays = [
        (k, p if isinstance(p, Symbol) else np.asarray(p))
        for k, p in enumerate(parts)
        if isinstance(p, Symbol | np.ndarray | list)
    ]
    if any(p.dtype.kind == "b" for _, p in arrays):
        what = "how many elements a mask chooses is not known while a graph is written"
        raise NoCounterpart(what, "use where instead")
    zero = list(parts)
    for k, p in arrays:
        zero[k] = np.zeros(p.shape, int)
    base = np.arange(math.prod(shape)).reshape(shape)[tuple(zero)]
    block = np.broadcast_shapes(*(p.shape for _, p in arrays))
    numbers = [k for k, p in enumerate(parts) if isinstance(p, int) or k in dict(arrays)]
    apart = numbers[-1] - numbers[0] >= len(numbers)
    axes = _axes(parts, len(shape))
    before = 0 if apart else sum(not isinstance(p, int) for p in parts[: numbers[0]])
    if not apart and Ellipsis in parts[: numbers[0]]:
        before += len(shape) - sum(p is not None and p is not Ellipsis for p in parts) - 1
    after = base.ndim - before - len(block)
    strides = [math.prod(shape[a + 1 :]) for a in range(len(shape))]
    total = graph.symbol(base)
    for k, p in arrays:
        n = np.int64(max(shape[axes[k]], 1))
        from_end = graph.symbol(p, np.int64).node("Add", n).node("Mod", n)  # -1 is the last one
        offset = from_end.node("Mul", np.int64(strides[axes[k]]))
        wide = offset.reshape(*(1,) * (len(block) - len(p.shape)), *p.shape, *(1,) * after)
        total = total.node("Add", wide)
    return total  # type: ignore[no-any-return]


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
