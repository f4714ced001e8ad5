"""Pictures of grad_fn graphs: the tensors that can still be reached above, the backward graph
below.

Solid arrows of the backward graph are ``next_functions``, ``[i]`` is the slot, and AccumulateGrad
points at its ``variable``. Only what the objects hold is shown: no gradient has a number before
backward, and afterwards only those that were kept.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..fold.fold import FULL
from ..graph.format import explain_value, shorten, unwrap
from ..graph.graph import Graph, Node, in_order
from . import torch_facts
from .follow import follow
from .formula import (
    backward_formula,
    call_formula,
    literal,
    number_text,
    rule_formula,
)
from .inside import Slot, accumulated, meeting, operation, saved, total, value
from .names import Names, operands

_BETWEEN = "call retain_grad() before backward to keep the gradient of a tensor in between"

_NO_PATHS = "they are known after backward from here, without hooks, and while they are few"


def of_grad_fn(roots: Iterable[Any], names: Names, values: bool | str = True) -> Graph:
    """The graph behind tensors, or behind nodes of the backward graph.

    The gradient of a tensor in between is a node of its own where somebody kept it
    (``retain_grad``); with ``values="grad"`` every one is.
    """
    return Drawing(roots, names, values).graph


def of_explanation(told: Any, names: Names) -> Graph:
    """The graph behind an explanation of `why`, everything off its paths in grey."""
    graph = of_grad_fn([told.start], names)
    leaves = [n for n in graph.nodes.values() if n.data.get("leaf") is told.leaf]
    known = [n.data["paths"] for n in leaves if "paths" in n.data]
    if not known:
        graph.notes.append(f"the paths to {told.name} are not drawn: {_NO_PATHS}")
        return graph
    on = {n for path in known[0]["paths"] for n in path["nodes"]}
    for node in graph.nodes.values():
        node.state = node.state if node.id in on else "pending"
    graph.title = known[0]["sum"]
    graph.notes += [f"{p['gave']} by {' → '.join(p['steps'])}" for p in known[0]["paths"]]
    return graph


def _start(root: Any) -> Root:
    """(tensor, node, output) of where backward begins; no node for a tensor without a graph."""
    if hasattr(root, "next_functions"):
        return None, root, 0
    return root, root.grad_fn, output_number(root)


_GONE = "not known any more: nobody holds it, and no gradient rule keeps it"
Key = tuple[Any, int]  # a tensor that was computed: (its grad_fn, which output)
Root = tuple[Any, Any, int]  # (tensor or None, node, output)


class Drawing:
    """Builds the graph: forward in the order in which it ran, backward in the order of the walk."""

    def __init__(self, things: Iterable[Any], names: Names, values: bool | str) -> None:
        starts = [_start(thing) for thing in things]
        self.roots = [s for s in starts if s[1] is not None]
        self.walk = Walk(node for _, node, _ in self.roots)
        self.names, self.every_gradient = names, values == "grad"
        self.graph = Graph()
        self.graph.region("forward: tensors")
        self.graph.region("backward: grad_fn, [i] in next_functions", side="backward")
        # forward
        self.known: dict[Key, Any] = {}  # the tensors that somebody still holds
        # outputs of a node that somebody reads or holds
        self.read: dict[Any, set[int]] = defaultdict(set)
        self.drawn: dict[Any, Node] = {}
        self.ops: dict[Any, Node] = {}
        self.inputs: dict[Any, dict[str, Node]] = {}  # of an operation, by slot
        self.remembered: dict[Any, Mapping[str, Any]] = {}  # saved values of nodes that let go
        self.arrays: dict[str, Any] = {}  # of drawn tensors, by id of the node
        self.values_of: dict[Key, Any] = {}  # what operations gave, as far as it is known
        small = len(self.walk.order) <= FULL
        self.operands = {n: operands(n, names) for n in self.walk.order if small}
        # backward
        self.nodes: dict[Any, Node] = {}  # the backward nodes
        self.given: dict[Key, Any] = {}  # (node, slot) -> what it gave
        self.slots: dict[Any, dict[int, Slot]] = {}
        self.gradients: dict[Key, tuple[Node, Any]] = {}  # seeds, and of tensors in between
        self.arrives: dict[Key, Node] = {}  # the node of one in between, or the sum before it
        self.seeds: dict[Any, Any] = {}
        self.pull: Callable[..., Any] | None = None
        self._draw([tensor for tensor, node, _ in starts if node is None])

    def _draw(self, loose: list[Any]) -> None:
        order = self.walk.order
        if len(order) <= FULL:
            self._look_back()
        for tensor in loose:
            self.leaf(tensor)
        self._find()
        for node in reversed(order):
            if not accumulates(node):
                self._operation(node)
        for _, node, number in self.roots:
            self._seed(node, number, self.seeds.get(node))
        for node in order:
            self._gradients_of(node)
            self.nodes[node] = self._accumulator(node) if accumulates(node) else self._grad_op(node)
        for node in order:
            self._edges(node)
        for place in self.nodes.values():  # AccumulateGrad.variable
            if place.kind == "accumulate" and place.twin is not None:
                self.graph.edge(place, self.graph.nodes[place.twin], "ref")
        self._words(bool(loose))
        follow(self.graph)

    def _words(self, loose: bool) -> None:
        outputs = [n.name for n in self.graph.nodes.values() if n.kind == "output"]
        self.graph.title = ", ".join(outputs)
        if loose and not self.walk.order:
            self.graph.notes.append(
                "no grad_fn: nothing was computed from something that requires a gradient"
            )
            del self.graph.regions["r1"]

    def _look_back(self) -> None:
        """What is still known of the forward pass and of the last backward."""
        for _, node, _ in self.roots:
            tell = getattr(node, "remembered", None)
            known = tell(self.numbers()) if callable(tell) else {}
            self.seeds[node] = known.get("seed")
            self.given |= known.get("gradients", {})
            self.values_of |= known.get("values", {})
            self.pull = known.get("pull")
            self.remembered |= known.get("saved", {})

    # -- the forward side: the tensors that can still be reached, and the operations

    def numbers(self) -> dict[tuple[Any, str], Any]:
        """The numbers that stand where an operation was written: (node, slot) → number."""
        found = {}
        for node, written in self.operands.items():
            for slot, text in written.items():
                number = literal(text)
                if number is not None:
                    found[node, slot] = number
        return found

    def _find(self) -> None:
        """Tensors of this graph that are held by the roots, by saved values, or by variables of the
        caller.
        """
        order = self.walk.order
        in_graph = set(map(id, order))
        saved = [v for n in order for v in (self.walk.saved(n) or {}).values()]
        for thing in [*(t for t, _, _ in self.roots), *saved, *self.names.things]:
            plain = isinstance(thing, (np.ndarray, type))
            grad_fn = None if plain else getattr(thing, "grad_fn", None)
            if grad_fn is not None and id(grad_fn) in in_graph:
                self.known.setdefault((grad_fn, output_number(thing)), thing)
        edges = [edge for reader in order for edge in self.walk.next(reader)]
        for node, number in [*edges, *self.known, *((n, k) for _, n, k in self.roots)]:
            if node is not None:
                self.read[node].add(number)

    def _operation(self, node: Any) -> None:
        """One forward operation: its inputs, a box, its outputs."""
        edges = self.walk.next(node)
        slots = slots_of(node, len(edges))
        inputs = {s: self._input(node, s, *edge) for s, edge in zip(slots, edges, strict=False)}
        primitive = getattr(node, "primitive", None)
        inputs |= {s: self._constant(node, s) for s in _unslotted(primitive) if s not in inputs}
        drawn = self.inputs[node] = {s: n for s, n in inputs.items() if n is not None}
        about = {"region": "r0", "lines": first_line(node)}
        op = self.graph.node("op", forward_name(node), **about)
        self.ops[node] = op
        for place in drawn.values():
            self.graph.edge(place, op)
        results = [self.result(node, k) for k in sorted(self.read[node])]
        for result in results:
            self.graph.edge(op, result)
        if len(results) == 1:
            values = {slot: self.arrays.get(place.id) for slot, place in drawn.items()}
            for slot, place in drawn.items():
                number = literal(place.name)
                values |= {} if number is None else {slot: number}
            names = {slot: place.name for slot, place in drawn.items()}
            call, came = call_formula(forward_name(node), drawn), self.arrays.get(results[0].id)
            op.data["slots"] = (Slot(call, names, values, came, name=results[0].name),)

    def _input(self, node: Any, slot: str, target: Any, number: int) -> Node | None:
        if target is None:
            return self._constant(node, slot)
        if accumulates(target):
            return self.leaf(target.variable)
        return self.result(target, number)

    def result(self, node: Any, number: int) -> Node:
        """The tensor that is one output of a node."""
        key = ("tensor", node, number)
        if key not in self.drawn:
            holder = self.known.get((node, number))
            tensor = self.values_of.get((node, number)) if holder is None else holder
            root = any(n is node and k == number for _, n, k in self.roots)
            name = self.names(key if holder is None else holder)
            self.drawn[key] = self._tensor("output" if root else "value", name, tensor)
        return self.drawn[key]

    def place(self, tensor: Any) -> Node:
        """A tensor, wherever it comes from."""
        made_by = tensor.grad_fn
        return self.leaf(tensor) if made_by is None else self.result(made_by, output_number(tensor))

    def leaf(self, tensor: Any) -> Node:
        """A tensor that nothing in the graph made."""
        key = ("leaf", id(tensor))
        if key not in self.drawn:
            kind = "leaf" if getattr(tensor, "requires_grad", True) else "data"
            self.drawn[key] = self._tensor(kind, self.names(tensor), tensor)
        return self.drawn[key]

    def _constant(self, node: Any, slot: str) -> Node | None:
        """An input that needs no gradient, by its name, its number, or as it was written; None where
        nothing was given for it.
        """
        saved = self.saved(node)
        value, text = saved.get(slot), self.operands.get(node, {}).get(slot, "")
        name = self.names.known(value) if value is not None else ""
        single = literal(text) is not None
        name = name or ("" if single else shorten(text))
        alone = text if value is None and single else number_text(value)
        optional = getattr(getattr(node, "primitive", None), "optional", ())
        absent = slot in optional or slot not in slots_of(node, len(self.walk.next(node)))
        absent = absent or torch_facts.is_absent(node, slot)
        if value is None and not text and absent:
            return None
        if alone and not name:  # a number is called by its value
            return self._tensor("data", alone, None, explain_value(alone))
        key = ("data", id(value))
        if value is None or key not in self.drawn:
            called = name or f"{slot} of {forward_name(node)}"
            self.drawn[key] = self._tensor("data", called, value)
        return self.drawn[key]

    def saved(self, node: Any) -> Mapping[str, Any]:
        """What a node keeps, or kept when backward ran."""
        return self.walk.saved(node) or self.remembered.get(node, {})

    def _tensor(self, kind: str, name: str, tensor: Any, tooltip: str = "") -> Node:
        """A tensor with its value; without one if it is gone: it was computed, so no dash."""
        gone = {"tooltip": tooltip or _GONE, "data": {"live": ()}}
        inside = gone if tensor is None else value(tensor)
        made = self.graph.node(kind, name, region="r0", **inside)
        self.arrays[made.id] = unwrap(tensor)
        return made

    def called(self, node: Any) -> tuple[dict[str, str], dict[str, Any]]:
        """The names, and the values, that stand for the names in the formulas of a node."""
        names = {slot: place.name for slot, place in self.inputs[node].items()}
        result = self.drawn.get(("tensor", node, 0))
        names |= {"out": result.name} if result else {}
        known = hasattr(node, "primitive") or is_torchs(node)
        return (names if known else {}), dict(self.saved(node))

    def saved_by(self, node: Any) -> list[Node]:
        """The drawn tensors that a node keeps for its formula."""
        saved = (self.walk.saved(node) or {}).items()
        found = [self._place_of(node, name, value) for name, value in saved]
        return list({n.id: n for n in found if n is not None}.values())

    def _place_of(self, node: Any, name: str, value: Any) -> Node | None:
        """The drawn tensor that a saved value is: by identity, else by the name of its slot."""
        made_by = None if isinstance(value, np.ndarray) else getattr(value, "grad_fn", None)
        leaf = ("leaf", id(value))
        key = leaf if made_by is None else ("tensor", made_by, output_number(value))
        if key in self.drawn:
            return self.drawn[key]
        if name in self.inputs.get(node, {}):
            return self.inputs[node][name]
        result = self.drawn.get(("tensor", node, 0))
        return result if name in ("out", "y", "result") else None

    # -- the backward side

    def _seed(self, node: Any, number: int, seed: Any) -> None:
        """The gradient that backward starts with."""
        inside = value(seed, seed=True) if seed is not None else {"lines": ("seed",)}
        inside |= {"tooltip": "the gradient that backward starts with"}
        made = self._gradient("seed", self.result(node, number), **inside)
        self.gradients[node, number] = made, seed

    def _gradient(self, kind: str, tensor: Node, **inside: Any) -> Node:
        made = self._node(kind, f"{tensor.name}.grad", **inside)
        self.graph.link(tensor, made)
        return made

    def _gradients_of(self, node: Any) -> None:
        """The gradients of the tensors that a node made: those that are kept, or every one; and the
        sum where several parts of one arrive.
        """
        for number in () if accumulates(node) else sorted(self.read[node]):
            key = (node, number)
            kept = torch_facts.kept_grad(self.known.get(key))
            wanted = self.every_gradient or kept is not None
            if not wanted or key in self.gradients:
                continue
            parts = self._parts(node, number)
            if getattr(getattr(node, "hooks", None), "change", False):
                parts = [None] * len(parts)
            grad = total(parts) if kept is None else kept
            inside = value(grad) | ({"tooltip": _BETWEEN} if grad is None else {})
            tensor = self.result(node, number)
            made = self._gradient("gradient", tensor, **inside)
            self.gradients[key], self.arrives[key] = (made, grad), made
            if len(parts) > 1:
                plus = self._node("accumulate", **meeting(parts, grad))
                self.arrives[key] = plus
                self.graph.edge(plus, made, "accumulate", carries=grad)

    def _parts(self, node: Any, number: int) -> list[Any]:
        """What each reader of a tensor gave in the last backward, or the seed; None where it is
        forgotten.
        """
        seed = self.seeds.get(node)
        gave = [self.given.get(reader) for reader in self.walk.readers[node, number]]
        return [seed] * (seed is not None) + gave

    def _node(self, kind: str, name: str = "", **fields: Any) -> Node:
        return self.graph.node(kind, name, side="backward", region="r1", **fields)

    def _accumulator(self, node: Any) -> Node:
        leaf = self.leaf(node.variable)
        grad = getattr(node.variable, "grad", None)
        name = f"{leaf.name}.grad"
        inside = accumulated(name, grad, self._parts(node, 0))
        made = self._node("accumulate", title_of(node), **inside)
        self.graph.link(leaf, made)
        leaf.data["leaf"] = made.data["leaf"] = node.variable
        return made

    def _grad_op(self, node: Any) -> Node:
        slots = self.slots[node] = self._slots_of(node)
        made = self._node(
            "grad_op",
            title_of(node),
            tooltip=saved(self.walk.saved(node)),
            **operation(slots.values(), ports=len(self.walk.next(node)) > 1),
        )
        self.graph.link(self.ops[node], made)
        return made

    def _slots_of(self, node: Any) -> dict[int, Slot]:
        """What each slot that somebody wants computes, in the names of the tensors, and what it
        gave: with its number in front where a node has several.
        """
        edges = self.walk.next(node)
        names, values = self.called(node)
        arrived = total(self._parts(node, 0))
        values |= {} if arrived is None else {"g": arrived}
        slots = {}
        for i, expression in enumerate(slot_formulas(node, len(edges))):
            if edges[i][0] is not None:
                others = [n for s, n in names.items() if s[-1] == "]" and f"[{i}]" not in s]
                listed = {"k": str(i), "others": ", ".join(others)}
                mark = f"[{i}] " if len(edges) > 1 else ""
                came = self.given.get((node, i))
                slots[i] = Slot(expression, {**listed, **names}, values, came, mark)
        return slots

    def _edges(self, node: Any) -> None:
        """One line per entry of ``next_functions``, through the gradient where that is drawn, and a
        dotted one per saved value that can be reached.
        """
        here = self.nodes[node]
        slots = self.slots.get(node, {})
        for i, (target, number) in enumerate(self.walk.next(node)):
            if target is not None:
                many = len(self.read[target]) > 1
                there = self.arrives.get((target, number)) or self.nodes[target]
                sums = there.kind == "accumulate" and not accumulates(target)
                self.graph.edge(
                    here,
                    there,
                    "accumulate" if sums else "grad",
                    tail_port=slots[i].text if here.ports else None,
                    carries=self.given.get((node, i)),
                    slot=f"[{i}]",
                    rule=slots[i].rule if i in slots else "",
                    pull=functools.partial(self.pull, node, i) if self.pull is not None else None,
                    label=f"output {number}" if many else "",
                )
        for number in sorted(self.read[node]):
            if (node, number) in self.gradients:
                gradient, grad = self.gradients[node, number]
                self.graph.edge(gradient, here, "grad", carries=grad)
        for tensor in self.saved_by(node):
            self.graph.edge(tensor, here, "saved")


# ---- What the nodes of a grad_fn graph tell about themselves, and the order of the walk ----


class Walk:
    """The nodes that backward reaches, in the order in which it runs, and what they say, asked
    once: ``order``, `next`, `saved`.
    """

    def __init__(self, starts: Iterable[Any]) -> None:
        #: the ``next_functions`` of a node, and what it keeps for its formula, by name; None when it was freed
        self.next = functools.cache(operator.attrgetter("next_functions"))
        self.saved = functools.cache(saved_values)
        #: (node, output) → who reads it: (node, slot)
        self.readers: dict[tuple[Any, int], list[tuple[Any, int]]] = defaultdict(list)
        self.order = self._sorted(list(dict.fromkeys(starts)))
        for reader in self.order:
            for slot, (target, number) in enumerate(self.next(reader)):
                self.readers[target, number].append((reader, slot))

    def _sorted(self, starts: list[Any]) -> list[Any]:
        """A node after all that feed it: newest first where nodes know their sequence number; an
        AccumulateGrad where its last feeder stands.
        """

        def fed(node: Any) -> list[Any]:
            return [target for target, _ in reversed(self.next(node)) if target is not None]

        every = sorted(in_order(starts, fed), key=_age)
        return in_order(every, fed)[::-1]


def _age(node: Any) -> float:
    """Newer nodes run first; an AccumulateGrad has no age of its own."""
    if accumulates(node):
        return float("inf")
    seq = getattr(node, "seq", None)
    seq = getattr(node, "_sequence_nr", float)() if seq is None else seq  # PyTorch's
    return float(seq) if isinstance(seq, (int, float)) else 0.0


def is_torchs(node: Any) -> bool:
    """Whether a node is PyTorch's."""
    return hasattr(type(node), "_sequence_nr")


def accumulates(node: Any) -> bool:
    """Is it the end of a path: the AccumulateGrad of a leaf?"""
    return hasattr(node, "variable") and not node.next_functions


def title_of(node: Any) -> str:
    """The name of a node of the backward graph: ``MulBackward0``."""
    name = getattr(node, "name", None)
    name = name().rpartition("::")[2] if callable(name) else name  # PyTorch's has a namespace
    return name if isinstance(name, str) and name else type(node).__name__


def forward_name(node: Any) -> str:
    """The operation that a node belongs to: ``add`` for ``AddBackward0``."""
    stem = re.sub(r"Backward\d*$", "", title_of(node)) or title_of(node)
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=\dD)(?=[A-Z])", "_", stem).lower()


def saved_values(node: Any) -> Mapping[str, Any] | None:
    """What a node keeps for its formula, by name; None when it was freed."""
    try:
        saved = torch_facts.saved_values(node) if is_torchs(node) else getattr(node, "saved", {})
    except Exception:  # freed: reading it is an error that says so
        return None
    return saved if isinstance(saved, Mapping) else {} if saved is not None else None


def slots_of(node: Any, count: int) -> tuple[str, ...]:
    """The names of the inputs that have a slot in ``next_functions``; those of a list are numbered."""
    primitive = getattr(node, "primitive", None)
    if is_torchs(node):
        return torch_facts.inputs_of(node, count)
    named = getattr(primitive, "differentiable", None)
    if named is None:
        words = re.match(r"\s*\w+ = (.*)", getattr(type(node), "__doc__", None) or "")
        found = re.findall(r"\b[a-z]\w*\b(?!\()", words.group(1)) if words else ()
        named = tuple(dict.fromkeys(found))[:count]
        return (*named, *(f"input {k}" for k in range(len(named), count)))
    if getattr(primitive, "list_input", None) not in named:
        return tuple(named)
    *first, listed = named
    return (*first, *(f"{listed}[{k}]" for k in range(count - len(first))))


def _unslotted(primitive: Any) -> tuple[str, ...]:
    """The inputs of a primitive that have no gradient."""
    slots = getattr(primitive, "inputs", ())
    return tuple(s for s in slots if s not in (*primitive.differentiable, primitive.list_input))


def slot_formulas(node: Any, count: int) -> tuple[ast.expr | None, ...]:
    """What each of ``count`` gradients is: as declared, or as the code of its rule says."""
    if is_torchs(node):
        return torch_facts.formulas_of(node, count)
    texts = getattr(type(node), "formula_texts", None)  # a node made from a table of derivatives
    if isinstance(texts, Mapping) and len(texts) == count:
        return tuple(ast.Name(str(text).replace(" * ", "·")) for text in texts.values())
    if getattr(node, "primitive", None) is not None:
        slots = [slot.partition("[")[0] for slot in slots_of(node, count)]
        return tuple(rule_formula(node.primitive, slot) for slot in slots)
    if hasattr(node, "function"):  # written by the user
        return (ast.Name(f"{node.function.__name__}.backward(g)"),) * count
    formula = backward_formula(node)
    known = formula is not None and len(formula.results) == count
    return formula.results if formula is not None and known else (None,) * count


def first_line(node: Any) -> tuple[str, ...]:
    """The formula of the operation, when the class states it in its docstring: ``z = x * y``."""
    words = (type(node).__dict__.get("__doc__") or "").strip().split("\n")[0]
    return (words.replace(" * ", "·"),) if re.fullmatch(r"\w+ = .{1,30}", words) else ()


def output_number(tensor: Any) -> int:
    """Which output of its grad_fn a tensor is."""
    number = getattr(tensor, "output_nr", 0)
    return number if isinstance(number, int) else 0
