"""Pictures of linked nodes: variables, the functions that made them, and the gradients that came
back.

Two sources, one drawing. `of_run` reads what `watch` saw; `of_links` follows ``creator`` links.
Both give calls: a function with its inputs and outputs, forward, and with its gradients, backward.
"""

import weakref
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..graph.format import explain_value, unwrap
from ..graph.graph import Graph, Node, in_order
from .follow import follow
from .formula import (
    LONGEST,
    backward_formulas,
    computed,
    formula_lines,
    forward_formulas,
    input_names,
    names_in,
    numbered,
    own_numbers,
    parameters,
)
from .inside import BACKWARD, Place, Slot, operation, value
from .names import Names
from .watching import watch

Arrays = tuple[Any, ...]


def of_run(run: watch, names: Names) -> Graph:
    """What really ran while `watch` was on."""
    names.also(run.names)
    calls = []
    backs = []
    latest = {}
    for event, snapshot in zip(run.events, run.snapshots, strict=True):
        function = event.function
        if event.kind == "forward":
            values = named(function, snapshot.inputs, snapshot.outputs)
            call = latest[id(function)] = Call(function, event.inputs, event.outputs, values)
            calls.append(call)
        else:
            call = latest.get(id(function)) or linked_call(function)
            backs.append(Back(call, snapshot.inputs, snapshot.outputs))
    read = {id(v) for call in calls for v in call.inputs}
    ends = [v for call in calls for v in call.outputs if id(v) not in read]
    graph = Drawing(names, ends).drawn(calls, backs)
    if not backs:
        graph.notes.append("backward: nothing to walk yet")
    return graph


def of_links(roots: list[Any], names: Names) -> Graph:
    """The graph behind one or several variables: forward by ``creator`` links, backward mirrored.

    A gradient that is not computed yet is an em dash.
    """
    calls = calls_behind(roots)
    drawing = Drawing(names, roots)
    for root in roots:
        if not is_made(root):
            drawing.value(root)
    backs = []
    for call in reversed(calls):
        gys = tuple(unwrap(getattr(v, "grad", None)) for v in call.outputs)
        backs.append(Back(call, gys))
    return drawing.drawn(calls, backs)


# ---- Calls of functions, and how to find them by the links that linked nodes keep ----


@dataclass
class Call:
    """One function applied once: its variables, and their arrays at that time by name."""

    function: Any
    inputs: Arrays
    outputs: Arrays
    values: dict[str, Any]
    weak: bool = False  # the function refers to its outputs weakly
    op: Node | None = None  # as drawn


class Back:
    """One call of ``backward``: the gradients that went in and what came out, each by its formula where the
    code is one; where nobody watched it, what it computes, or will.
    """

    def __init__(self, call: Call, gys: Arrays, gxs: Arrays | None = None) -> None:
        self.call, self.gys = call, gys
        formulas = backward_formulas(call.function)
        names = parameters(type(call.function).backward)[1:]
        values = call.values | own_numbers(call.function) | dict(zip(names, gys, strict=False))
        self.reads = {name for formula in formulas for name in names_in(formula)}
        if gxs is None:
            gxs = tuple(computed(formula, values) for formula in formulas)
            if not gys or not gxs or any(g is None for g in (*gys, *gxs)):
                gxs = (None,) * len(call.inputs)
        known = formulas if len(formulas) == len(gxs) else (None,) * len(gxs)
        gradient = "".join(names[:1])
        self.slots = [
            Slot(formula, {}, values, gx, name=name, gradient=gradient)
            for formula, gx, name in zip(known, gxs, numbered("gx", len(gxs)), strict=True)
        ]
        self.took = [*zip(call.outputs, gys, strict=False)]  # variables, each with its gradient
        self.gave = [*zip(call.inputs, self.slots, strict=False)]


def variable_like(thing) -> bool:
    """Does it hold data and a gradient?"""
    return hasattr(thing, "data") and hasattr(thing, "grad")


def function_like(thing) -> bool:
    """Is it a function object of linked nodes?"""
    return callable(getattr(thing, "backward", None)) and callable(getattr(thing, "forward", None))


def is_made(variable) -> bool:
    """Did a function make it?"""
    return getattr(variable, "creator", None) is not None


def outputs_of(thing) -> list[Any]:
    """A variable itself, or what a function made."""
    return [thing] if variable_like(thing) else list(linked_call(thing).outputs)


def calls_behind(roots: list[Any]) -> list[Call]:
    """Every function behind the roots, producers first; a cycle is entered once."""
    calls = {}

    def before(function) -> list[Any]:
        calls[function] = linked_call(function)
        return [v.creator for v in calls[function].inputs if is_made(v)]

    ends = [root.creator for root in roots if is_made(root)]
    return [calls[function] for function in in_order(ends, before)]


def linked_call(function) -> Call:
    """The call that a function object remembers: the last one."""
    inputs, held = _linked(function, "input"), _linked(function, "output")
    alive = (each() if isinstance(each, weakref.ref) else each for each in held)
    outputs = tuple(variable for variable in alive if variable is not None)
    values = named(function, tuple(map(unwrap, inputs)), tuple(map(unwrap, outputs)))
    return Call(function, inputs, outputs, values, weak=weakref.ref in map(type, held))


def _linked(function, word: str) -> Arrays:
    """The variables under an attribute, ``inputs`` or ``input``."""
    several, one = getattr(function, f"{word}s", None), getattr(function, word, None)
    if isinstance(several, (tuple, list)):
        return tuple(several)
    held = one if several is None else several
    return () if held is None else (held,)


def named(function, inputs: Arrays, outputs: Arrays) -> dict[str, Any]:
    """What goes in and comes out of a call under the names that formulas use."""
    values = dict(zip(input_names(function), inputs, strict=False))
    if len(outputs) == 1:
        values["y"] = outputs[0]
    return values


# ---- The drawing: variables and functions, and beside them the gradients and the calls of backward ----


class Drawing:
    """Draws calls in the order in which they ran; remembers the nodes of each variable."""

    def __init__(self, names: Names, ends: Iterable[Any]) -> None:
        self.names, self.ends = names, {*map(id, ends)}
        self.graph = Graph()
        self.graph.region("forward: variables and functions")
        self.places: dict[int, Place] = {}  # by id of the variable, which it keeps alive
        self.arriving: dict[int, list[Any]] = defaultdict(list)  # the parts of its gradient

    def drawn(self, calls: list[Call], backs: list[Back]) -> Graph:
        """The picture: functions with what they read and make; then the gradients and the calls of
        backward, each beside the call that it belongs to.
        """
        for call in calls:
            self.forward(call)
        if backs:
            self.graph.region("backward: gradients", side="backward")
            gave = [each for back in backs for each in back.gave]
            for variable, slot in gave:
                self.arriving[id(variable)].append(slot.result)
            for back in backs:  # the gradients that go in, then those that only come out
                for variable, gy in back.took:
                    self.gradient(variable, gy)
            for variable, _ in gave:
                self.gradient(variable)
            for back in backs:
                self.backward(back)
            follow(self.graph)
        outputs = [node.name for node in self.graph if node.kind == "output"]
        self.graph.title = ", ".join(outputs[:3])
        return self.graph

    def value(self, variable, made: bool = False) -> Place:
        """The place of a variable; what nobody made is a leaf, unless no gradient is wanted for it."""
        key = id(variable)
        if key not in self.places:
            wanted = variable_like(variable) and getattr(variable, "requires_grad", True)
            kind = "leaf" if wanted else "data"
            if made:
                kind = "output" if key in self.ends else "value"
            node = self.graph.node(kind, self.names(variable), region="r0", **value(variable))
            self.places[key] = Place(node, variable)
        return self.places[key]

    def forward(self, call: Call) -> None:
        """A function with what it reads and makes."""
        inputs = [self.value(v, is_made(v)).node for v in call.inputs]
        name, called = type(call.function).__name__, self.names.known(call.function)
        tooltip = f"the function object {called}" if called not in ("", name) else ""
        lines = formula_lines("y", forward_formulas(call.function))
        call.op = op = self.graph.node("op", name, region="r0", lines=lines, tooltip=tooltip)
        for node in inputs:
            self.graph.edge(node, op)
        for variable in call.outputs:
            node = self.value(variable, made=True).node
            self.graph.edge(op, node, "weak" if call.weak else "flow")

    # -- backward

    def gradient(self, variable, gy=None) -> None:
        """The gradient of a variable, after the place where its parts meet; the seed has no parts."""
        place, grad = self.value(variable), getattr(variable, "grad", None)
        if place.gradient:
            return
        parts = self.arriving[id(variable)]
        kind = "leaf_gradient" if place.node.kind in ("leaf", "data") else "gradient"
        if not parts:
            kind, grad = "seed", gy if grad is None else grad
        place.add_gradient(self.graph, kind, value(grad, seed=not parts), parts, grad)

    def backward(self, back: Back) -> None:
        """One call, with lines from the gradients that it takes and to those that it gives."""
        call, twin = back.call, back.call.op
        inside = operation(s for s in back.slots if s.formula or s.result is not None)
        name = f"{type(call.function).__name__}.backward"
        op = self.graph.node("grad_op", name, **BACKWARD, **inside)
        if len(back.slots) == 1 and back.slots[0].formula:
            # the gradient stands beside it, the numbers here
            (slot,) = back.slots
            numbers = f"= {slot.numbers()}"
            if not 2 < len(numbers) <= LONGEST:
                numbers = ""
            op.lines = tuple(filter(None, (slot.said(), numbers)))
            op.data["live"] = ((numbers, ""),)
        results = [slot.result for slot in back.slots if slot.result is not None]
        op.tooltip = "\n".join(f"gradient out: {explain_value(result)}" for result in results)
        if twin:
            op.twin = twin.id
            if twin.twin:
                op.lines += ("called again",)
            else:
                twin.twin = op.id
        for variable, gy in back.took:
            source = self.value(variable).gradient
            if source:
                self.graph.edge(source, op, "grad", carries=unwrap(gy))
        for k, (variable, slot) in enumerate(back.gave):
            there = self.value(variable).arrives or op
            self.graph.edge(
                op,
                there,
                "accumulate" if there.kind == "accumulate" else "grad",
                carries=unwrap(slot.result),
                slot=f"[{k}]" if len(back.slots) > 1 else "",
                rule=slot.rule,
                pull=slot.made_of if len(back.gys) == 1 else None,
            )
        variables = named(call.function, call.inputs, call.outputs)
        for key in dict.fromkeys(id(v) for name, v in variables.items() if name in back.reads):
            self.graph.edge(self.places[key].node, op, "saved")
