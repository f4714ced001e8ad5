"""Pictures of grad_fn graphs: the tensors that can still be reached above, the backward graph
below.

Solid arrows of the backward graph are ``next_functions``, ``[i]`` is the slot, and AccumulateGrad
points at its ``variable``. Only what the objects hold is shown: no gradient has a number before
backward, and afterwards only those that were kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from minigrad.viz.fold import FULL
from minigrad.viz.format import explain_value, format_value
from minigrad.viz.grad_nodes import (
    about_saved,
    accumulates,
    first_line,
    forward_name,
    nodes_behind,
    output_number,
    remembered,
    saved_bytes,
    saved_values,
    slot_texts,
    slots_of,
    title_of,
)
from minigrad.viz.graph import Graph, Node
from minigrad.viz.names import Names

_SHORT = 8  # letters of a name that is put into a formula
Key = tuple[int, int]  # a tensor that was computed: (id of its grad_fn, which output)


def of_grad_fn(roots: Iterable[Any], names: Names, values: bool = True) -> Graph:
    """The graph behind tensors, or behind nodes of the backward graph."""
    drawing = _Drawing(names, values)
    for root in roots:
        drawing.start(root)
    drawing.draw()
    return drawing.graph


class _Drawing:
    """Builds the graph: forward in the order in which it ran, backward in the order of the walk."""

    def __init__(self, names: Names, values: bool) -> None:
        self.names, self.values = names, values
        self.graph = Graph(direction="LR")
        self.forward = self.graph.region("forward: tensors")
        self.backward = self.graph.region(
            "backward: the grad_fn graph, [i] is the slot in next_functions", side="backward"
        )
        self.roots: list[tuple[Any, Any, int]] = []  # (tensor or None, node, output)
        self.loose: list[Any] = []  # tensors without a graph
        self.known: dict[Key, Any] = {}  # the tensors that somebody still holds
        self.read: dict[int, set[int]] = {}  # which outputs of a node somebody reads or holds
        self.places: dict[Any, Node] = {}
        self.seeds: dict[int, Any] = {}  # root node -> what the last backward began with
        self.given: dict[tuple[int, int], Any] = {}  # (node, slot) -> what it gave then
        self.inputs: dict[int, list[Node]] = {}
        self.slots: dict[int, tuple[str, ...]] = {}

    def start(self, root: Any) -> None:
        """Begin at a tensor or at a node."""
        if hasattr(root, "next_functions"):
            self.roots.append((None, root, 0))
        elif root.grad_fn is not None:
            self.roots.append((root, root.grad_fn, output_number(root)))
        else:
            self.loose.append(root)

    def draw(self) -> None:
        order = nodes_behind([node for _, node, _ in self.roots])
        self._find_tensors(order)
        self._look_back(order)
        for tensor in self.loose:
            self._leaf(tensor, output=True)
        for node in reversed(order):
            if not accumulates(node):
                self._operation(node)
        for tensor, node, number in self.roots:
            self._seed(tensor, node, number)
        for node in order:
            self._backward_node(node)
        for node in order:
            self._edges(node)
        for _, node, number in self.roots:
            self.graph.edge(
                self.places["seed", id(node), number], self.places["backward", id(node)], "grad"
            )
        self._words(order)
        self._references()

    def _words(self, order: list[Any]) -> None:
        self.graph.title = ", ".join(
            n.name for n in self.graph.nodes.values() if n.kind == "output"
        )
        if self.loose and not order:
            self.graph.notes.append(
                "no grad_fn: nothing was computed from something that requires a gradient"
            )
            del self.graph.regions[self.backward.id]

    def _look_back(self, order: list[Any]) -> None:
        """The gradients of the last backward, of a graph that is drawn in full."""
        for _, node, _ in self.roots if self.values and len(order) <= FULL else ():
            self.seeds[id(node)], given = remembered(node)
            self.given |= given

    # forward

    def _find_tensors(self, order: list[Any]) -> None:
        """Tensors of this graph that are held by the roots, by saved values, or by variables of the
        caller.
        """
        in_graph = {id(node) for node in order}
        held = (
            [t for t, _, _ in self.roots]
            + [v for n in order for v in (saved_values(n) or {}).values()]
            + self.names.things
        )
        for thing in held:
            grad_fn = (
                getattr(thing, "grad_fn", None)
                if not isinstance(thing, (np.ndarray, type))
                else None
            )
            if grad_fn is not None and id(grad_fn) in in_graph:
                self.known.setdefault((id(grad_fn), output_number(thing)), thing)
        edges = [(id(n), k) for reader in order for n, k in reader.next_functions if n is not None]
        for node, number in [*edges, *self.known, *((id(n), k) for _, n, k in self.roots)]:
            self.read.setdefault(node, set()).add(number)

    def _operation(self, node: Any) -> None:
        """One forward operation: its inputs, a box, its outputs."""
        inputs = [self._input(node, i) for i in range(len(node.next_functions))]
        self.inputs[id(node)] = inputs
        op = self.graph.node(
            "op", forward_name(node), region=self.forward.id, lines=first_line(node)
        )
        self.places["forward", id(node)] = op
        for value in inputs:
            self.graph.edge(value, op)
        for number in self._outputs(node):
            self.graph.edge(op, self._result(node, number))

    def _outputs(self, node: Any) -> list[int]:
        return sorted(self.read.get(id(node), ()))

    def _input(self, node: Any, slot: int) -> Node:
        target, number = node.next_functions[slot]
        if target is None:
            return self._constant(node, slot)
        if accumulates(target):
            return self._leaf(target.variable)
        return self._result(target, number)

    def _result(self, node: Any, number: int) -> Node:
        key = ("tensor", id(node), number)
        if key not in self.places:
            tensor = self.known.get((id(node), number))
            root = any(n is node and k == number for _, n, k in self.roots)
            name = self.names(tensor) if tensor is not None else self.names(key)
            self.places[key] = self.graph.node(
                "output" if root else "value",
                name,
                region=self.forward.id,
                lines=self._shown(tensor),
                tooltip=_about(tensor),
            )
        return self.places[key]

    def _leaf(self, tensor: Any, output: bool = False) -> Node:
        key = ("leaf", id(tensor))
        if key not in self.places:
            kind = "leaf" if getattr(tensor, "requires_grad", True) else "data"
            self.places[key] = self.graph.node(
                kind,
                self.names(tensor),
                region=self.forward.id,
                lines=self._shown(tensor),
                tooltip=_about(tensor),
            )
        return self.places[key]

    def _constant(self, node: Any, slot: int) -> Node:
        """An input that needs no gradient: the graph knows it only if its value was saved."""
        saved = list((saved_values(node) or {}).items())
        names = slots_of(node)
        value = dict(saved).get(names[slot]) if slot < len(names) else None
        name = self.names.known(value) if value is not None else ""
        return self.graph.node(
            "data",
            name or "constant",
            region=self.forward.id,
            tooltip=_about(value),
            lines=self._shown(value) if value is not None else (),
        )

    def _shown(self, tensor: Any) -> tuple[str, ...]:
        """The value; nothing for a tensor that is gone: it was computed, so no dash."""
        return (format_value(tensor),) if self.values and tensor is not None else ()

    # backward

    def _seed(self, tensor: Any, node: Any, number: int) -> None:
        result = self._result(node, number)
        key, seed = ("seed", id(node), number), self.seeds.get(id(node))
        if key not in self.places:
            self.places[key] = self.graph.node(
                "seed",
                f"{result.name}.grad",
                side="backward",
                region=self.backward.id,
                lines=("seed" if seed is None else f"{format_value(seed)} (seed)",),
                tooltip="the gradient that backward starts with",
            )
            self.graph.link(result, self.places[key])

    def _backward_node(self, node: Any) -> None:
        made = self._accumulator(node) if accumulates(node) else self._grad_op(node)
        self.places["backward", id(node)] = made

    def _accumulator(self, node: Any) -> Node:
        leaf = self._leaf(node.variable)
        grad = getattr(node.variable, "grad", None)
        lines = (
            (f"{leaf.name}.grad = {format_value(grad)}",) if self.values else (f"{leaf.name}.grad",)
        )
        made = self.graph.node(
            "accumulate",
            title_of(node),
            side="backward",
            region=self.backward.id,
            lines=lines,
            tooltip=f"adds to {leaf.name}.grad: {explain_value(grad)}",
            data={"live": lines},
        )
        self.graph.link(leaf, made)
        return made

    def _grad_op(self, node: Any) -> Node:
        texts = self.slots[id(node)] = self._slot_texts(node)
        ports = tuple((text, "out") for text in texts) if len(texts) > 1 else ()
        lines = () if ports else tuple(filter(None, texts))
        live = tuple(t for i, t in enumerate(texts) if (id(node), i) in self.given)
        made = self.graph.node(
            "grad_op",
            title_of(node),
            side="backward",
            region=self.backward.id,
            ports=ports,
            lines=lines,
            tooltip=about_saved(node),
            data={"saved_bytes": saved_bytes(node)} | ({"live": live} if live else {}),
        )
        self.graph.link(self.places["forward", id(node)], made)
        return made

    def _slot_texts(self, node: Any) -> tuple[str, ...]:
        """What each slot computes, in the names of the tensors, and what it gave."""
        given = {slot: g for (n, slot), g in self.given.items() if n == id(node)}
        inputs = self.inputs[id(node)]
        result = self.places.get(("tensor", id(node), 0))
        named = [*zip(slots_of(node), inputs, strict=False), *([("out", result)] if result else [])]
        names = {slot: place.name for slot, place in named if 0 < len(place.name) <= _SHORT}
        return slot_texts(node, names, given)

    def _edges(self, node: Any) -> None:
        """One line per entry of ``next_functions``, and a dotted one per saved value that can be
        reached.
        """
        here = self.places["backward", id(node)]
        texts = self.slots.get(id(node), ())
        for i, (target, number) in enumerate(node.next_functions):
            if target is not None:
                there = self.places["backward", id(target)]
                many = len(self.read.get(id(target), ())) > 1
                self.graph.edge(
                    here,
                    there,
                    "grad",
                    tail_port=texts[i] if here.ports else None,
                    label=f"output {number}" if many else "",
                )
        for tensor in self._saved_here(node):
            self.graph.edge(tensor, here, "saved")

    def _saved_here(self, node: Any) -> list[Node]:
        found = [
            self._place_of(node, name, value) for name, value in (saved_values(node) or {}).items()
        ]
        return list({n.id: n for n in found if n is not None}.values())

    def _place_of(self, node: Any, name: str, value: Any) -> Node | None:
        """The drawn tensor that a saved value is: by identity, else by the name of its slot."""
        grad_fn = getattr(value, "grad_fn", None) if not isinstance(value, np.ndarray) else None
        if grad_fn is not None:
            return self.places.get(("tensor", id(grad_fn), output_number(value)))
        if ("leaf", id(value)) in self.places:
            return self.places["leaf", id(value)]
        names = slots_of(node)
        if name in names and names.index(name) < len(node.next_functions):
            target, number = node.next_functions[names.index(name)]
            key = (
                None
                if target is None
                else ("leaf", id(target.variable))
                if accumulates(target)
                else ("tensor", id(target), number)
            )
            return self.places.get(key)
        result = self.places.get(("tensor", id(node), 0))
        return result if name in ("out", "y", "result") else None

    def _references(self) -> None:
        """AccumulateGrad.variable; tensor.grad_fn is the dashed line of the twins."""
        for (what, *_), place in list(self.places.items()):
            if what == "backward" and place.kind == "accumulate" and place.twin is not None:
                self.graph.edge(place, self.graph.nodes[place.twin], "ref")


def _about(tensor: Any) -> str:
    return explain_value(tensor) if tensor is not None else "computed, but nobody holds it any more"
