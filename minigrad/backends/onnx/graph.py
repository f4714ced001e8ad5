"""An ONNX graph that grows while a function runs on `Symbol`s."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from .symbol import Symbol


class Graph:
    """Nodes and initializers, in order; `node` adds one and gives its result."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.initializers: dict[str, TensorProto] = {}
        self.taken: set[str] = set()
        self.numpy: Any = None  # NumPy's names, as functions that add nodes here
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
