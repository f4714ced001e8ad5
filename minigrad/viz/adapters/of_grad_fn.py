"""Pictures of grad_fn graphs: the tensors that can still be reached above, the backward graph
below.

Solid arrows of the backward graph are ``next_functions``, ``[i]`` is the slot, and AccumulateGrad
points at its ``variable``. Only what the objects hold is shown: no gradient has a number before
backward, and afterwards only those that were kept.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..fold import FULL
from ..graph.format import explain_value, format_number, shorten, unwrap
from ..graph.graph import Graph, Node, in_order
from . import torch_facts
from .follow import follow
from .formula import (
    backward_formulas,
    call_formula,
    literal,
    number_text,
    rule_formula,
)
from .inside import (
    BACKWARD,
    Place,
    Slot,
    accumulated,
    in_list,
    operation,
    saved,
    told,
    total,
    value,
)
from .names import Names, operands
from .torch_facts import title

_BETWEEN = "call retain_grad() before backward to keep the gradient of a tensor in between"
_GONE = "not known any more: nobody holds it, and no gradient rule keeps it"
_NO_GRAPH = "no grad_fn: nothing was computed from something that requires a gradient"
_NO_PATHS = "they are known after backward from here, without hooks, and while they are few"


def of_grad_fn(roots: list[Any], names: Names, values: bool | str = True) -> Graph:
    """The graph behind tensors, or behind nodes of the backward graph.

    The gradient of a tensor in between is a node of its own where somebody kept it
    (``retain_grad``); with ``values="grad"`` every one is.
    """
    return Drawing(roots, names, values).graph


def of_explanation(explained, names: Names) -> Graph:
    """The graph behind an explanation of `why`, everything off its paths in grey."""
    graph = of_grad_fn(explained.roots, names)
    leaves = (n.data for n in graph if n.data.get("leaf") is explained.leaf)
    known = next(leaves, {}).get("paths")
    if known is None:
        graph.notes.append(f"the paths to {explained.name} are not drawn: {_NO_PATHS}")
        return graph
    on = {node for path in known["paths"] for node in path["nodes"]}
    for node in graph:
        if node.id not in on:
            node.state = "pending"
    graph.title = known["sum"]
    graph.notes += [f"{p['gave']} by {' → '.join(p['steps'])}" for p in known["paths"]]
    return graph


class Step:
    """One node of the backward graph: what it says of itself, and what is drawn for it.

    Its outputs are those of the operation, by number; its slots are the entries of ``next_functions``.
    """

    op: Node  # the operation
    node: Node  # its backward

    def __init__(self, fn) -> None:
        self.fn = fn
        self.accumulates = accumulates(fn)
        self.primitive: Any = getattr(fn, "primitive", None)
        self.edges: list[tuple[Step | None, int]] = []  # slot by slot: which output of which step
        self.slot_names, self.formulas = inputs_and_formulas(fn, len(fn.next_functions))
        kept = saved_values(fn)
        self.says = saved(kept)
        #: what it keeps for its formula, by name; then what it kept when it ran
        self.keeps = self.saved = kept or {}
        self.written: Mapping[str, str] = {}  # what stands for an input on the user's line
        #: an output that somebody reads or holds → who reads it: (fn, slot)
        self.readers: dict[int, list[tuple[Any, int]]] = defaultdict(list)
        self.tensors: dict[int, Any] = {}  # the outputs that somebody still holds
        self.inputs: dict[str, Place] = {}
        self.results: dict[int, Place] = {}
        self.slots: dict[int, Slot] = {}


class Drawing:
    """Builds the graph: forward in the order in which it ran, backward in the order of the walk."""

    def __init__(self, things: list[Any], names: Names, values: bool | str) -> None:
        self.names, self.every_gradient = names, values == "grad"
        self.graph = Graph()
        self.graph.region("forward: tensors")
        self.graph.region("backward: grad_fn, [i] in next_functions", side="backward")
        starts = [(x if hasattr(x, "next_functions") else x.grad_fn, x) for x in things]
        made = [(fn, getattr(x, "output_nr", 0)) for fn, x in starts if fn is not None]
        self.steps = {fn: Step(fn) for fn in walk_order(fn for fn, _ in made)}
        self.roots = [(self.steps[fn], number) for fn, number in made]
        self.leaves: dict[int, Place] = {}  # by id of the tensor
        self._link(things)
        #: as far as that is known: ``values`` and ``seeds``, (fn, output) → what it gave, and what
        #: backward started with; ``gradients``, (fn, slot) → what that gave in backward; ``pull``
        self.known: dict[str, Any] = defaultdict(dict)
        if len(self.steps) <= FULL:
            self._look_back()
        for fn, tensor in starts:
            if fn is None:
                self.leaf(tensor)
        self._draw()
        self.graph.title = ", ".join(node.name for node in self.graph if node.kind == "output")
        if not self.steps:
            self.graph.notes.append(_NO_GRAPH)
            del self.graph.regions["r1"]
        follow(self.graph)

    def _link(self, things: list[Any]) -> None:
        """Who reads whom, and the tensors of this graph that are held by the roots, by saved values, or
        by variables of the caller.
        """
        for step in self.steps.values():
            for slot, (fn, number) in enumerate(step.fn.next_functions):
                target = self.steps.get(fn)
                step.edges.append((target, number))
                if target:
                    target.readers[number].append((step.fn, slot))
        for step, number in self.roots:
            step.readers.setdefault(number, [])
        saved = [v for step in self.steps.values() for v in step.keeps.values()]
        for thing in [*things, *saved, *self.names.variables.values()]:
            maker, number = self._maker(thing)
            if maker:
                maker.tensors.setdefault(number, thing)
                maker.readers.setdefault(number, [])

    def _maker(self, thing) -> tuple[Step | None, int]:
        """The step of this graph that made a tensor, and which of its outputs that is."""
        fn = getattr(thing, "grad_fn", None)
        node = hasattr(fn, "next_functions")  # anything else may not even be hashable
        return self.steps.get(fn) if node else None, getattr(thing, "output_nr", 0)

    def _look_back(self) -> None:
        """What is still known of the forward pass and of the last backward."""
        numbers = {}
        for fn, step in self.steps.items():
            step.written = operands(fn, self.names)
            for slot, text in step.written.items():
                number = literal(text)
                if number is not None:
                    numbers[fn, slot] = number
        roots = [step.fn for step, _ in self.roots if hasattr(step.fn, "remembered")]
        if roots:
            self.known |= roots[0].remembered(numbers, roots)
        for fn, kept in self.known["saved"].items():
            self.steps[fn].saved = self.steps[fn].keeps or kept

    def _draw(self) -> None:
        order = [*self.steps.values()]
        for step in reversed(order):
            if not step.accumulates:
                self._operation(step)
        for step, number in self.roots:
            self._seed(step, number)
        for step in order:
            if step.accumulates:
                self._accumulator(step)
            else:
                self._gradients_of(step)
                self._grad_op(step)
        for step in order:
            self._edges(step)
        for step in order:  # AccumulateGrad.variable
            if step.accumulates:
                self.graph.edge(step.node, self.leaf(step.fn.variable).node, "ref")

    # -- the forward side: the tensors that can still be reached, and the operations

    def _operation(self, step: Step) -> None:
        """One forward operation: its inputs, a box, its outputs."""
        edges = zip(step.slot_names, step.edges, strict=False)
        inputs = {slot: self._input(step, slot, *edge) for slot, edge in edges}
        primitive = step.primitive
        if primitive is not None:
            for slot in primitive.inputs:
                if slot not in (*primitive.differentiable, primitive.list_input):
                    inputs[slot] = self._constant(step, slot, optional=True)  # it has no gradient
        step.inputs = {slot: place for slot, place in inputs.items() if place}
        name = forward_name(step.fn)
        step.op = self.graph.node("op", name, region="r0", lines=first_line(step.fn))
        for place in step.inputs.values():
            self.graph.edge(place.node, step.op)
        results = [self.result(step, number) for number in sorted(step.readers)]
        for result in results:
            self.graph.edge(step.op, result.node)
        if len(results) == 1:
            (result,) = results
            names = {slot: place.node.name for slot, place in step.inputs.items()}
            values = {slot: place.held for slot, place in step.inputs.items()}
            call = call_formula(name, names)
            made = Slot(call, names, values, result.held, name=result.node.name)
            step.op.data["slots"] = (made,)

    def _input(self, step: Step, slot: str, source: Step | None, number: int) -> Place | None:
        if source is None:
            optional = slot in getattr(step.primitive, "optional", ())
            return self._constant(step, slot, optional or torch_facts.is_absent(step.fn, slot))
        if source.accumulates:
            return self.leaf(source.fn.variable)
        return self.result(source, number)

    def result(self, step: Step, number: int) -> Place:
        """The tensor that is one output of a step."""
        if number not in step.results:
            tensor = step.tensors.get(number, self.known["values"].get((step.fn, number)))
            kind = "output" if (step, number) in self.roots else "value"
            name = self.names(step.tensors.get(number, (step, number)))
            step.results[number] = self._tensor(kind, name, tensor)
        return step.results[number]

    def place(self, tensor) -> Place | None:
        """Where a tensor is drawn, wherever it comes from."""
        maker, number = self._maker(tensor)
        return self.leaves.get(id(tensor)) if maker is None else maker.results.get(number)

    def leaf(self, tensor, kind: str = "leaf", name: str = "") -> Place:
        """A tensor that nothing in the graph made."""
        if id(tensor) not in self.leaves:
            if not getattr(tensor, "requires_grad", True):
                kind = "data"
            self.leaves[id(tensor)] = self._tensor(kind, name or self.names(tensor), tensor)
        return self.leaves[id(tensor)]

    def _constant(self, step: Step, slot: str, optional: bool) -> Place | None:
        """An input that needs no gradient, by its name, its number, or as it was written; None where
        nothing was given for it.
        """
        value, text = step.saved.get(slot), step.written.get(slot, "")
        if value is None and not text and optional:
            return None
        name = number = ""
        if value is not None:
            name, number = self.names.known(value), number_text(value)
        if literal(text) is None:
            name = name or shorten(text)
        elif value is None:
            number = text
        if number and not name:  # a number is called by its value
            node = self.graph.node("data", number, region="r0", tooltip=explain_value(number))
            return Place(node, literal(number))
        name = name or f"{slot} of {forward_name(step.fn)}"
        if value is None:
            return self._tensor("data", name, None)
        return self.leaf(value, "data", name)

    def _tensor(self, kind: str, name: str, tensor) -> Place:
        """A tensor with its value; without one if it is gone: it was computed, so no dash."""
        inside = told((), _GONE) if tensor is None else value(tensor)
        return Place(self.graph.node(kind, name, region="r0", **inside), unwrap(tensor))

    # -- the backward side

    def _seed(self, step: Step, number: int) -> None:
        """The gradient that backward starts with."""
        seed = self.known["seeds"].get((step.fn, number))
        inside = {"lines": ("seed",)} if seed is None else value(seed, seed=True)
        inside |= {"tooltip": "the gradient that backward starts with"}
        self.result(step, number).add_gradient(self.graph, "seed", inside, (), seed)

    def _gradients_of(self, step: Step) -> None:
        """The gradients of the tensors that a step made: those that are kept, or every one; and the
        sum where several parts of one arrive.
        """
        for number, place in sorted(step.results.items()):
            kept = torch_facts.kept_grad(step.tensors.get(number))
            if place.gradient or (kept is None and not self.every_gradient):
                continue
            parts = self._parts(step, number)
            if getattr(getattr(step.fn, "hooks", None), "change", False):
                parts = [None] * len(parts)
            grad = total(parts) if kept is None else kept
            inside = value(grad)
            if grad is None:
                inside["tooltip"] = _BETWEEN
            place.add_gradient(self.graph, "gradient", inside, parts, grad)

    def _parts(self, step: Step, number: int) -> list[Any]:
        """What each reader of a tensor gave in the last backward, or the seed; None where it is
        forgotten.
        """
        gave = [self.known["gradients"].get(reader) for reader in step.readers.get(number, ())]
        seed = self.known["seeds"].get((step.fn, number))
        return gave if seed is None else [seed, *gave]

    def _accumulator(self, step: Step) -> None:
        variable = step.fn.variable
        leaf = self.leaf(variable).node
        grad = getattr(variable, "grad", None)
        inside = accumulated(f"{leaf.name}.grad", grad, self._parts(step, 0))
        step.node = self.graph.node("accumulate", title(step.fn), **BACKWARD, **inside)
        self.graph.link(leaf, step.node)
        leaf.data["leaf"] = step.node.data["leaf"] = variable

    def _grad_op(self, step: Step) -> None:
        """The backward of an operation: what each slot that somebody wants computes, in the names of the
        tensors, and what it gave; with its number in front where there are several.
        """
        names, torchs = {}, torch_facts.is_node(step.fn)
        numbers = torch_facts.numbers_of(step.fn) if torchs else {}
        if torchs or hasattr(step.fn, "primitive"):
            tensors = {**step.inputs, "out": step.results.get(0)}
            names = {n: place.node.name for n, place in tensors.items() if place}
        names |= {n: format_number(number) for n, number in numbers.items()}
        values = {**numbers, **step.saved, "g": total(self._parts(step, 0))}
        several = len(step.edges) > 1
        for i, expression in enumerate(step.formulas):
            if step.edges[i][0]:
                known = in_list(names, str(i)) | names
                came = self.known["gradients"].get((step.fn, i))
                mark = f"[{i}] " if several else ""
                step.slots[i] = Slot(expression, known, values, came, mark)
        inside = operation(step.slots.values(), ports=several) | {"tooltip": step.says}
        step.node = self.graph.node("grad_op", title(step.fn), **BACKWARD, **inside)
        self.graph.link(step.op, step.node)

    def _edges(self, step: Step) -> None:
        """One line per entry of ``next_functions``, through the gradient where that is drawn, and a
        dotted one per saved value that can be reached.
        """
        pull = self.known.get("pull")
        for i, (target, number) in enumerate(step.edges):
            if target:
                place, slot = target.results.get(number), step.slots[i]
                there = (place and place.arrives) or target.node
                sums = there.kind == "accumulate" and not target.accumulates
                self.graph.edge(
                    step.node,
                    there,
                    "accumulate" if sums else "grad",
                    tail_port=slot.text if step.node.ports else None,
                    carries=slot.result,
                    slot=f"[{i}]",
                    rule=slot.rule,
                    pull=pull and functools.partial(pull, step.fn, i),
                    label=f"output {number}" if len(target.readers) > 1 else "",
                )
        for _, result in sorted(step.results.items()):
            if result.gradient:
                self.graph.edge(result.gradient, step.node, "grad", carries=result.grad)
        # by identity, else by the name of its slot
        named = {**dict.fromkeys(("out", "y", "result"), step.results.get(0)), **step.inputs}
        kept = [self.place(tensor) or named.get(name) for name, tensor in step.keeps.items()]
        for each in filter(None, dict.fromkeys(kept)):
            self.graph.edge(each.node, step.node, "saved")


# ---- What the nodes of a grad_fn graph tell about themselves, and the order of the walk ----


def walk_order(starts: Iterable[Any]) -> list[Any]:
    """The nodes that backward reaches, in the order in which it runs: a node after all that feed it,
    newest first where nodes know their sequence number; an AccumulateGrad where its last feeder stands.
    """

    @functools.cache  # PyTorch's nodes make it anew each time
    def fed(node) -> list[Any]:
        return [target for target, _ in reversed(node.next_functions) if target is not None]

    every = sorted(in_order(dict.fromkeys(starts), fed), key=_age)
    return in_order(every, fed)[::-1]


def _age(node) -> float:
    """Newer nodes run first; an AccumulateGrad has no age of its own."""
    if accumulates(node):
        return float("inf")
    seq = getattr(node, "seq", None)
    if seq is None:
        seq = getattr(node, "_sequence_nr", float)()  # PyTorch's
    return float(seq)


def accumulates(node) -> bool:
    """Is it the end of a path: the AccumulateGrad of a leaf?"""
    return hasattr(node, "variable") and not node.next_functions


def forward_name(node) -> str:
    """The operation that a node belongs to: ``add`` for ``AddBackward0``."""
    stem = re.sub(r"Backward\d*$", "", title(node)) or title(node)
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=\dD)(?=[A-Z])", "_", stem).lower()


def saved_values(node) -> Mapping[str, Any] | None:
    """What a node keeps for its formula, by name; None when it was freed."""
    torchs = torch_facts.is_node(node)
    try:
        saved = torch_facts.saved_values(node) if torchs else getattr(node, "saved", {})
    except Exception:  # freed: reading it is an error that says so
        return None
    return saved if isinstance(saved, Mapping) or saved is None else {}


def inputs_and_formulas(node, count: int) -> tuple[list[str], Sequence[ast.expr | None]]:
    """The names of the ``count`` inputs that have a slot in ``next_functions``, those of a list numbered;
    and what the gradient of each is: as declared, or as the code of its rule says.
    """
    if torch_facts.is_node(node):
        return torch_facts.inputs_of(node, count), torch_facts.formulas_of(node, count)
    primitive = getattr(node, "primitive", None)
    if primitive is not None:
        slots = [*primitive.differentiable]
        if primitive.list_input in slots:
            listed = slots.pop()
            slots += [f"{listed}[{k}]" for k in range(count - len(slots))]
        return slots, [rule_formula(primitive, slot.partition("[")[0]) for slot in slots]
    words = re.match(r"\s*\w+ = (.*)", type(node).__doc__ or "")
    names = re.findall(r"\b[a-z]\w*\b(?!\()", words.group(1)) if words else ()
    slots = torch_facts.filled(dict.fromkeys(names), count)
    if hasattr(node, "function"):  # written by the user
        return slots, [ast.Name(f"{node.function.__name__}.backward(g)")] * count
    texts = getattr(type(node), "formula_texts", {})  # of a node made from a table of derivatives
    results = [ast.Name(t.replace(" * ", "·")) for t in texts.values()] or backward_formulas(node)
    return slots, results if len(results) == count else [None] * count


def first_line(node) -> tuple[str, ...]:
    """The formula of the operation, when the class states it in its docstring: ``z = x * y``."""
    words = (type(node).__dict__.get("__doc__") or "").strip().split("\n")[0]
    return (words.replace(" * ", "·"),) if re.fullmatch(r"\w+ = .{1,30}", words) else ()
