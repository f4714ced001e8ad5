"""The forward side of a grad_fn graph: the tensors that can still be reached, and the operations
between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .expressions import number_text
from .format import explain_value, format_value
from .grad_nodes import (
    Walk,
    accumulates,
    first_line,
    forward_name,
    output_number,
    slots_of,
)
from .graph import Graph, Node
from .names import Names

_GONE = ("computed, but nobody holds it any more", "not kept: no gradient rule reads its value")
Key = tuple[int, int]  # a tensor that was computed: (id of its grad_fn, which output)
Root = tuple[Any, Any, int]  # (tensor or None, node, output)


class Tensors:
    """Draws tensors and operations, in the order in which they ran."""

    def __init__(
        self, graph: Graph, names: Names, values: bool, walk: Walk, roots: Sequence[Root]
    ) -> None:
        self.graph, self.names, self.values = graph, names, values
        self.walk, self.roots = walk, roots
        self.region = graph.region("forward: tensors").id
        self.known: dict[Key, Any] = {}  # the tensors that somebody still holds
        self.read: dict[int, set[int]] = {}  # which outputs of a node somebody reads or holds
        self.drawn: dict[Any, Node] = {}
        self.ops: dict[int, Node] = {}
        self.inputs: dict[int, list[Node]] = {}
        self.remembered: dict[int, Mapping[str, Any]] = {}  # saved values of nodes that let go

    def draw(self) -> None:
        """Everything but leaves that stand alone."""
        self._find()
        for node in reversed(self.walk.order):
            if not accumulates(node):
                self._operation(node)

    def _find(self) -> None:
        """Tensors of this graph that are held by the roots, by saved values, or by variables of the
        caller.
        """
        order = self.walk.order
        in_graph = {id(node) for node in order}
        saved = [v for n in order for v in (self.walk.saved(n) or {}).values()]
        for thing in [*(t for t, _, _ in self.roots), *saved, *self.names.things]:
            plain = isinstance(thing, (np.ndarray, type))
            grad_fn = None if plain else getattr(thing, "grad_fn", None)
            if grad_fn is not None and id(grad_fn) in in_graph:
                self.known.setdefault((id(grad_fn), output_number(thing)), thing)
        edges = [(id(n), k) for reader in order for n, k in self.walk.next(reader) if n is not None]
        for node, number in [*edges, *self.known, *((id(n), k) for _, n, k in self.roots)]:
            self.read.setdefault(node, set()).add(number)

    def _operation(self, node: Any) -> None:
        """One forward operation: its inputs, a box, its outputs."""
        inputs = [self._input(node, i, *target) for i, target in enumerate(self.walk.next(node))]
        self.inputs[id(node)] = inputs
        op = self.graph.node("op", forward_name(node), region=self.region, lines=first_line(node))
        self.ops[id(node)] = op
        for value in inputs:
            self.graph.edge(value, op)
        for number in sorted(self.read.get(id(node), ())):
            self.graph.edge(op, self.result(node, number))

    def _input(self, node: Any, slot: int, target: Any, number: int) -> Node:
        if target is None:
            return self._constant(node, slot)
        if accumulates(target):
            return self.leaf(target.variable)
        return self.result(target, number)

    def result(self, node: Any, number: int) -> Node:
        """The tensor that is one output of a node."""
        key = ("tensor", id(node), number)
        if key not in self.drawn:
            tensor = self.known.get((id(node), number))
            root = any(n is node and k == number for _, n, k in self.roots)
            name = self.names(tensor) if tensor is not None else self.names(key)
            self.drawn[key] = self._node("output" if root else "value", name, tensor)
        return self.drawn[key]

    def leaf(self, tensor: Any) -> Node:
        """A tensor that nothing in the graph made."""
        key = ("leaf", id(tensor))
        if key not in self.drawn:
            kind = "leaf" if getattr(tensor, "requires_grad", True) else "data"
            self.drawn[key] = self._node(kind, self.names(tensor), tensor)
        return self.drawn[key]

    def _constant(self, node: Any, slot: int) -> Node:
        """An input that needs no gradient: the graph knows it only if its value was saved."""
        names = slots_of(node)
        saved = self.walk.saved(node) or self.remembered.get(id(node), {})
        value = saved.get(names[slot]) if slot < len(names) else None
        name = self.names.known(value) if value is not None else ""
        number = number_text(value) if value is not None and not name else ""
        if number:  # a number is called by its value
            return self._node("data", number, None, explain_value(value))
        return self._node("data", name, value)

    def _node(self, kind: str, name: str, tensor: Any, tooltip: str = "") -> Node:
        """A tensor with its value; without one if it is gone: it was computed, so no dash."""
        shown = self.values and tensor is not None
        return self.graph.node(
            kind,
            name or "constant",
            region=self.region,
            lines=(format_value(tensor),) if shown else (),
            tooltip=tooltip or (_GONE[kind == "data"] if tensor is None else explain_value(tensor)),
        )

    def saved_by(self, node: Any) -> list[Node]:
        """The drawn tensors that a node keeps for its formula."""
        saved = (self.walk.saved(node) or {}).items()
        found = [self._place_of(node, name, value) for name, value in saved]
        return list({n.id: n for n in found if n is not None}.values())

    def _place_of(self, node: Any, name: str, value: Any) -> Node | None:
        """The drawn tensor that a saved value is: by identity, else by the name of its slot."""
        grad_fn = getattr(value, "grad_fn", None) if not isinstance(value, np.ndarray) else None
        if grad_fn is not None:
            return self.drawn.get(("tensor", id(grad_fn), output_number(value)))
        if ("leaf", id(value)) in self.drawn:
            return self.drawn["leaf", id(value)]
        names, edges = slots_of(node), self.walk.next(node)
        if name in names and names.index(name) < len(edges):
            return self._target(*edges[names.index(name)])
        result = self.drawn.get(("tensor", id(node), 0))
        return result if name in ("out", "y", "result") else None

    def _target(self, node: Any, number: int) -> Node | None:
        if node is None:
            return None
        leaf = accumulates(node)
        return self.drawn.get(("leaf", id(node.variable)) if leaf else ("tensor", id(node), number))
