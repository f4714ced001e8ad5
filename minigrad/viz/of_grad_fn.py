"""Pictures of grad_fn graphs: the tensors that can still be reached above, the backward graph
below.

Solid arrows of the backward graph are ``next_functions``, ``[i]`` is the slot, and AccumulateGrad
points at its ``variable``. Only what the objects hold is shown: no gradient has a number before
backward, and afterwards only those that were kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .fold import FULL
from .format import LONGEST_NAME, NOT_YET, explain_value, format_value
from .grad_nodes import (
    Walk,
    about_saved,
    accumulates,
    forward_name,
    output_number,
    remembered,
    saved_bytes,
    slot_texts,
    slots_of,
    title_of,
)
from .graph import Graph, Node
from .names import Names
from .summary import MOST, summary
from .tensors import Key, Root, Tensors

_BETWEEN = "call retain_grad() before backward to keep the gradient of a tensor in between"


def of_grad_fn(roots: Iterable[Any], names: Names, values: bool | str = True) -> Graph:
    """The graph behind tensors, or behind nodes of the backward graph.

    The gradient of a tensor in between is a node of its own where somebody kept it
    (``retain_grad``); with ``values="grad"`` every one is.
    """
    starts = [_start(root) for root in roots]
    roots = [s for s in starts if s[1] is not None]
    walk = Walk(node for _, node, _ in roots)
    if len(walk.order) > MOST:
        return _summary(roots, walk, names)
    drawing = _Drawing(roots, walk, names, values)
    drawing.draw([tensor for tensor, node, _ in starts if node is None])
    return drawing.graph


def _start(root: Any) -> Root:
    """(tensor, node, output) of where backward begins; no node for a tensor without a graph."""
    if hasattr(root, "next_functions"):
        return None, root, 0
    return root, root.grad_fn, output_number(root)


def _summary(roots: list[Root], walk: Walk, names: Names) -> Graph:
    leaves = [n for n in walk.order if accumulates(n)]
    nodes = [n for n in walk.order if not accumulates(n)]
    ends = [names(tensor) for tensor, _, _ in roots if tensor is not None]
    return summary(
        map(forward_name, nodes), map(title_of, nodes), [names(n.variable) for n in leaves], ends
    )


class _Drawing:
    """Builds the graph: forward in the order in which it ran, backward in the order of the walk."""

    def __init__(self, roots: list[Root], walk: Walk, names: Names, values: bool | str) -> None:
        self.roots, self.values = roots, bool(values)
        self.every_gradient = values == "grad"
        self.graph = Graph(direction="LR")
        self.walk = walk
        self.tensors = Tensors(self.graph, names, self.values, self.walk, roots)
        self.region = self.graph.region(
            "backward: the grad_fn graph, [i] is the index in next_functions", side="backward"
        ).id
        self.nodes: dict[int, Node] = {}  # the backward nodes
        self.given: dict[Key, Any] = {}  # (node, slot) -> what it gave
        self.slots: dict[int, tuple[str, ...]] = {}
        self.between: dict[Key, Node] = {}  # gradients of tensors in between
        self.arrives: dict[Key, Node] = {}  # the same, or the sum before it
        self.readers: dict[Key, list[tuple[Any, int]]] = {}

    def draw(self, loose: list[Any]) -> None:
        order = self.walk.order
        seeds = self._look_back()
        for tensor in loose:
            self.tensors.leaf(tensor)
        self.tensors.draw()
        starts = {(id(n), k): self._seed(n, k, seeds.get(id(n))) for _, n, k in self.roots}
        for node in order:
            self._gradients_of(node, starts)
            self.nodes[id(node)] = (
                self._accumulator(node) if accumulates(node) else self._grad_op(node)
            )
        for node in order:
            self._edges(node)
        for (node, _), seed in starts.items():
            self.graph.edge(seed, self.nodes[node], "grad")
        self._words(loose)
        self._references()

    def _words(self, loose: list[Any]) -> None:
        outputs = [n.name for n in self.graph.nodes.values() if n.kind == "output"]
        self.graph.title = ", ".join(outputs)
        if loose and not self.walk.order:
            self.graph.notes.append(
                "no grad_fn: nothing was computed from something that requires a gradient"
            )
            del self.graph.regions[self.region]
        ran = any(n.kind == "accumulate" and n.twin and _known(n) for n in self.nodes.values())
        if ran and any(not _known(n) for n in self.between.values()):
            self.graph.notes.append(f"— is not known: {_BETWEEN}")

    def _look_back(self) -> dict[int, Any]:
        """The seeds and gradients of the last backward, of a graph that is drawn in full."""
        seeds = {}
        if self.values and len(self.walk.order) <= FULL:
            for _, node, _ in self.roots:
                seeds[id(node)], given, saved = remembered(node)
                self.given |= given
                self.tensors.remembered |= saved
        return seeds

    # gradients that flow

    def _seed(self, node: Any, number: int, seed: Any) -> Node:
        """The gradient that backward starts with."""
        result = self.tensors.result(node, number)
        made = self._node(
            "seed",
            f"{result.name}.grad",
            lines=("seed" if seed is None else f"{format_value(seed)} (seed)",),
            tooltip="the gradient that backward starts with",
        )
        self.graph.link(result, made)
        return made

    def _gradients_of(self, node: Any, starts: dict[Key, Node]) -> None:
        """The gradients of the tensors that a node made: those that are kept, or every one."""
        outputs = () if accumulates(node) else sorted(self.tensors.read.get(id(node), ()))
        for number in outputs:
            kept = getattr(self.tensors.known.get((id(node), number)), "grad", None)
            wanted = self.every_gradient or (self.values and kept is not None)
            if wanted and (id(node), number) not in starts:
                self._between(node, number, kept)

    def _between(self, node: Any, number: int, kept: Any) -> None:
        """The gradient of a tensor in between, and the sum where several parts of it arrive."""
        parts = self._parts(node, number)
        hooked = getattr(node, "hooks", None) is not None  # and may change what arrives
        known = bool(parts) and not hooked and all(part is not None for part in parts)
        grad = kept if kept is not None else sum(parts[1:], parts[0]) if known else None
        value = self.tensors.result(node, number)
        made = self._node(
            "gradient",
            f"{value.name}.grad",
            lines=(format_value(grad),) if self.values else (),
            tooltip=explain_value(grad) if grad is not None else _BETWEEN,
        )
        self.graph.link(value, made)
        self.between[id(node), number] = self.arrives[id(node), number] = made
        if len(parts) > 1:
            words = " + ".join(map(format_value, parts)) if known and self.values else ""
            lines = (words,) if 0 < len(words) <= LONGEST_NAME else (f"{len(parts)} parts",)
            plus = self._node("accumulate", "+=", lines=lines, data={"live": ()})
            self.arrives[id(node), number] = plus
            self.graph.edge(plus, made, "accumulate")

    def _parts(self, node: Any, number: int) -> list[Any]:
        """What each reader of a tensor gave in the last backward; None where it is forgotten."""
        return [self.given.get((id(reader), slot)) for reader, slot in self._readers(node, number)]

    def _readers(self, node: Any, number: int) -> list[tuple[Any, int]]:
        if not self.readers:
            for reader in self.walk.order:
                for slot, (target, k) in enumerate(self.walk.next(reader)):
                    if target is not None:
                        self.readers.setdefault((id(target), k), []).append((reader, slot))
        return self.readers.get((id(node), number), [])

    # nodes

    def _node(self, kind: str, name: str, **fields: Any) -> Node:
        return self.graph.node(kind, name, side="backward", region=self.region, **fields)

    def _accumulator(self, node: Any) -> Node:
        leaf = self.tensors.leaf(node.variable)
        grad = getattr(node.variable, "grad", None)
        name = f"{leaf.name}.grad"
        lines = (f"{name} = {format_value(grad)}",) if self.values else (name,)
        made = self._node(
            "accumulate",
            title_of(node),
            lines=lines,
            tooltip=f"adds to {name}: {explain_value(grad)}",
            data={"live": lines, "called": name},
        )
        self.graph.link(leaf, made)
        return made

    def _grad_op(self, node: Any) -> Node:
        texts = self.slots[id(node)] = self._slot_texts(node)
        ports = tuple((text, "out") for text in texts) if len(texts) > 1 else ()
        live = tuple(t for i, t in enumerate(texts) if (id(node), i) in self.given)
        saved = self.walk.saved(node)
        made = self._node(
            "grad_op",
            title_of(node),
            ports=ports,
            lines=() if ports else tuple(filter(None, texts)),
            tooltip=about_saved(saved),
            data={"saved_bytes": saved_bytes(saved)} | ({"live": live} if live else {}),
        )
        self.graph.link(self.tensors.ops[id(node)], made)
        return made

    def _slot_texts(self, node: Any) -> tuple[str, ...]:
        """What each slot computes, in the names of the tensors, and what it gave."""
        count = len(self.walk.next(node))
        given = {i: self.given[id(node), i] for i in range(count) if (id(node), i) in self.given}
        result = self.tensors.drawn.get(("tensor", id(node), 0))
        places = [*zip(slots_of(node), self.tensors.inputs[id(node)], strict=False)]
        places += [("out", result)] if result else []
        names = {slot: place.name for slot, place in places if place.name}
        return slot_texts(node, count, names, given)

    # lines

    def _edges(self, node: Any) -> None:
        """One line per entry of ``next_functions``, through the gradient where that is drawn, and a
        dotted one per saved value that can be reached.
        """
        here = self.nodes[id(node)]
        texts = self.slots.get(id(node), ())
        for i, (target, number) in enumerate(self.walk.next(node)):
            if target is not None:
                many = len(self.tensors.read.get(id(target), ())) > 1
                there = self.arrives.get((id(target), number)) or self.nodes[id(target)]
                sums = there.kind == "accumulate" and not accumulates(target)
                self.graph.edge(
                    here,
                    there,
                    "accumulate" if sums else "grad",
                    tail_port=texts[i] if here.ports else None,
                    label=f"output {number}" if many else "",
                )
        for number in self.tensors.read.get(id(node), ()) if self.between else ():
            if (id(node), number) in self.between:
                self.graph.edge(self.between[id(node), number], here, "grad")
        for tensor in self.tensors.saved_by(node):
            self.graph.edge(tensor, here, "saved")

    def _references(self) -> None:
        """AccumulateGrad.variable; tensor.grad_fn is the dashed line of the twins."""
        for place in self.nodes.values():
            if place.kind == "accumulate" and place.twin is not None:
                self.graph.edge(place, self.graph.nodes[place.twin], "ref")


def _known(gradient: Node) -> bool:
    return not any(NOT_YET in line for line in gradient.lines)
