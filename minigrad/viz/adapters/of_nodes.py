"""Pictures of linked nodes: variables, the functions that made them, and the gradients that came
back.

Two sources, one drawing. `of_run` reads what `watch` saw; `of_links` follows ``creator`` links.
Both give calls: a function with its inputs and outputs, forward, and with its gradients, backward.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..graph.format import explain_value, unwrap
from ..graph.graph import Graph, Node, in_order
from .follow import follow
from .formula import (
    LONGEST,
    backward_formula,
    forward_formula,
    input_names,
    numbered,
    own_numbers,
    parameters,
)
from .inside import Fields, Slot, meeting, operation, value
from .names import Names
from .watching import watch


def of_run(run: watch, names: Names) -> Graph:
    """What really ran while `watch` was on."""
    names.also(run.names)
    calls, backs, latest = [], [], {}
    for event, snapshot in zip(run.events, run.snapshots, strict=True):
        if event.kind == "forward":
            call = Call(event.function, event.inputs, event.outputs)
            call.values = named_values(call, snapshot.inputs, snapshot.outputs)
            latest[id(event.function)] = call
            calls.append(call)
        else:
            made = latest.get(id(event.function)) or linked_call(event.function)
            backs.append(Back(made, snapshot.inputs, snapshot.outputs))
    read = {id(v) for call in calls for v in call.inputs}
    ends = {id(v) for call in calls for v in call.outputs} - read
    drawing = Drawing(names, ends)
    drawing.forward(calls)
    drawing.backward(backs)
    if not backs:
        drawing.graph.notes.append("backward: nothing to walk yet")
    return drawing.finished()


def of_links(roots: Iterable[Any], names: Names) -> Graph:
    """The graph behind one or several variables: forward by ``creator`` links, backward mirrored.

    A gradient that is not computed yet is an em dash.
    """
    roots = list(roots)
    calls = calls_behind(roots)
    drawing = Drawing(names, set(map(id, roots)))
    for root in roots:
        if getattr(root, "creator", None) is None:
            drawing.value(root)
    drawing.forward(calls)
    drawing.backward([back_of(call) for call in reversed(calls)])
    return drawing.finished()


# ---- Calls of functions, and how to find them by the links that linked nodes keep ----


@dataclass(slots=True)
class Call:
    """One function applied once: its variables, and their arrays at that time."""

    function: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    values: dict[str, Any] = field(default_factory=dict)
    weak: bool = False  # the function refers to its outputs weakly


@dataclass(slots=True)
class Back:
    """One call of ``backward``: the gradients that went in and, where known, came out."""

    call: Call
    gys: tuple[Any, ...]
    gxs: tuple[Any, ...]  # None for what is not known


def variable_like(thing: Any) -> bool:
    """Does it hold data and a gradient?"""
    return hasattr(thing, "data") and hasattr(thing, "grad")


def function_like(thing: Any) -> bool:
    """Is it a function object of linked nodes?"""
    return callable(getattr(thing, "backward", None)) and callable(getattr(thing, "forward", None))


def outputs_of(thing: Any) -> list[Any]:
    """A variable itself, or what a function made."""
    return [thing] if variable_like(thing) else list(linked_call(thing).outputs)


def calls_behind(roots: list[Any]) -> list[Call]:
    """Every function behind the roots, producers first; a cycle is entered once."""
    calls: dict[Any, Call] = {}

    def creators(variables: Iterable[Any]) -> list[Any]:
        return [f for v in variables if (f := getattr(v, "creator", None)) is not None]

    def before(function: Any) -> list[Any]:
        calls[function] = linked_call(function)
        return creators(calls[function].inputs)

    return [calls[function] for function in in_order(creators(roots), before)]


def linked_call(function: Any) -> Call:
    """The call that a function object remembers: the last one."""
    inputs = _all(getattr(function, "inputs", None), getattr(function, "input", None))
    held = _all(getattr(function, "outputs", None), getattr(function, "output", None))
    outputs = tuple(v for v in (_strong(o) for o in held) if v is not None)
    call = Call(function, inputs, outputs, weak=any(isinstance(o, weakref.ref) for o in held))
    call.values = named_values(call, tuple(map(unwrap, inputs)), tuple(map(unwrap, outputs)))
    return call


def _all(several: Any, one: Any) -> tuple[Any, ...]:
    if several is not None:
        return tuple(several) if isinstance(several, (tuple, list)) else (several,)
    return () if one is None else (one,)


def _strong(reference: Any) -> Any:
    return reference() if isinstance(reference, weakref.ref) else reference


def back_of(call: Call) -> Back:
    """What the walk computes, or will: from the gradients the variables hold."""
    gys = tuple(unwrap(getattr(v, "grad", None)) for v in call.outputs)
    formula = backward_formula(call.function)
    known = call.values | named_gradients(call.function, gys)
    ready = bool(gys) and all(g is not None for g in gys)
    gxs = formula.compute(known) if formula and ready else None
    return Back(call, gys, gxs or (None,) * len(call.inputs))


def named_values(call: Call, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> dict[str, Any]:
    """The arrays of a call under the names that formulas use."""
    values = dict(zip(input_names(call.function), inputs, strict=False))
    return values | ({"y": outputs[0]} if len(outputs) == 1 else {})


def named_gradients(function: Any, gys: tuple[Any, ...]) -> dict[str, Any]:
    """The gradients that go in, under the parameter names of ``backward``."""
    return dict(zip(parameters(type(function).backward)[1:], gys, strict=False))


# ---- The drawing: variables and functions, and beside them the gradients and the calls of backward ----


class Drawing:
    """Draws calls in the order in which they ran; remembers the nodes of each variable."""

    def __init__(self, names: Names, ends: set[int]) -> None:
        self.names, self.ends = names, ends
        self.graph = Graph()
        self.graph.region("forward: variables and functions")
        self.variables: dict[int, Any] = {}  # keeps every variable alive while its id is a key
        self.nodes: dict[int, Node] = {}  # by id of the variable
        self.ops: dict[int, Node] = {}  # by id of the call
        self.gradients: dict[int, Node] = {}  # by id of the variable
        self.arrives: dict[int, Node] = {}  # the same, or the place where several meet

    def finished(self) -> Graph:
        """The picture, with its title."""
        outputs = [n.name for n in self.graph.nodes.values() if n.kind == "output"]
        self.graph.title = ", ".join(outputs[:3])
        return self.graph

    def node(self, kind: str, name: str = "", side: str = "forward", **fields: Any) -> Node:
        region = "r0" if side == "forward" else "r1"
        return self.graph.node(kind, name, side=side, region=region, **fields)

    def value(self, variable: Any, made: bool = False) -> Node:
        """The node of a variable; what nobody made is a leaf, unless no gradient is wanted for it."""
        key = id(variable)
        if key not in self.nodes:
            self.variables[key] = variable
            fixed = getattr(variable, "requires_grad", True) is False
            kind = "leaf" if variable_like(variable) and not fixed else "data"
            if made:
                kind = "output" if key in self.ends else "value"
            inside = value(variable)
            name = self.names(variable)
            self.nodes[key] = self.node(kind, name, **inside)
        return self.nodes[key]

    def forward(self, calls: list[Call]) -> None:
        """Functions with what they read and make."""
        for call in calls:
            inputs = [
                self.value(v, made=getattr(v, "creator", None) is not None) for v in call.inputs
            ]
            formula = forward_formula(call.function)
            name, called = type(call.function).__name__, self.names.known(call.function)
            op = self.node(
                "op",
                name,
                lines=formula.lines() if formula else (),
                tooltip=f"the function object {called}" if called not in ("", name) else "",
            )
            self.ops[id(call)] = op
            for node in inputs:
                self.graph.edge(node, op)
            for variable in call.outputs:
                made = self.value(variable, made=True)
                self.graph.edge(op, made, "weak" if call.weak else "flow")

    # -- backward

    def backward(self, backs: list[Back]) -> None:
        """First the gradients, then the calls of backward, each beside the call that it belongs to."""
        if not backs:
            return
        self.graph.region("backward: gradients", side="backward")
        arriving: dict[int, list[Any]] = defaultdict(list)
        for back in backs:
            for variable, gx in zip(back.call.inputs, back.gxs, strict=False):
                self.variables[id(variable)] = variable
                arriving[id(variable)].append(gx)
        for back in backs:
            for variable, gy in zip(back.call.outputs, back.gys, strict=False):
                self.gradient(variable, arriving[id(variable)], gy)
        for key, parts in arriving.items():
            self.gradient(self.variables[key], parts)
        for back in backs:
            self.call_of_backward(back)
        follow(self.graph)

    def gradient(self, variable: Any, parts: list[Any], gy: Any = None) -> None:
        """The gradient of a variable, after the place where its parts meet; the seed has no parts."""
        key, grad = id(variable), getattr(variable, "grad", None)
        if key in self.gradients:
            return
        twin = self.value(variable)
        kind = "leaf_gradient" if twin.kind in ("leaf", "data") else "gradient"
        grad = gy if grad is None and not parts else grad
        inside = value(grad, seed=not parts)
        made = self.node(kind if parts else "seed", f"{twin.name}.grad", "backward", **inside)
        self.graph.link(twin, made)
        self.gradients[key] = self.arrives[key] = made
        if len(parts) > 1:
            plus = self.arrives[key] = self.node(
                "accumulate", side="backward", **meeting(parts, grad)
            )
            self.graph.edge(plus, made, "accumulate", carries=unwrap(grad))

    def call_of_backward(self, back: Back) -> None:
        """One call, with lines from the gradients that it takes and to those that it gives."""
        call, twin = back.call, self.ops.get(id(back.call))
        slots = slots_of(back)
        inside = said(slots)
        inside["lines"] += ("called again",) if twin is not None and twin.twin is not None else ()
        given = [f"gradient out: {explain_value(g)}" for g in back.gxs if g is not None]
        name = f"{type(call.function).__name__}.backward"
        op = self.node("grad_op", name, "backward", tooltip="\n".join(given), **inside)
        if twin is not None:
            op.twin, twin.twin = twin.id, twin.twin or op.id
        sources = [self.gradients[id(v)] for v in call.outputs if id(v) in self.gradients]
        for source, gy in zip(sources, back.gys, strict=False):
            self.graph.edge(source, op, "grad", carries=unwrap(gy))
        several = len(back.gxs) > 1
        for k, (variable, gx) in enumerate(zip(call.inputs, back.gxs, strict=False)):
            there = self.arrives[id(variable)]
            slot = slots[k] if len(slots) == len(back.gxs) else Slot(None, {})
            self.graph.edge(
                op,
                there,
                "accumulate" if there.kind == "accumulate" else "grad",
                carries=unwrap(gx),
                slot=f"[{k}]" if several else "",
                rule=slot.rule,
                pull=partial(_again, slot, call.function) if len(back.gys) == 1 else None,
            )
        for variable in read_by(call):
            self.graph.edge(self.nodes[id(variable)], op, "saved")


# ---- What a call of backward says ----


def slots_of(back: Back) -> list[Slot]:
    """What a call gives: formulas with the numbers put in, where its code is a formula."""
    function, formula = back.call.function, backward_formula(back.call.function)
    if formula is None:
        names = numbered("gx", len(back.gxs))
        given = zip(names, back.gxs, strict=True)
        return [Slot(None, {}, result=gx, name=name) for name, gx in given]
    values = back.call.values | own_numbers(function) | named_gradients(function, back.gys)
    count = len(formula.results)
    results = back.gxs if len(back.gxs) == count else [None] * count
    return [
        Slot(expression, {}, values, gx, name=name)
        for name, expression, gx in zip(formula.names, formula.results, results, strict=True)
    ]


def said(slots: list[Slot]) -> Fields:
    """The fields of a call of backward."""
    inside = operation(s for s in slots if s.formula is not None or s.result is not None)
    if len(slots) == 1 and slots[0].formula is not None:
        # the gradient stands beside it, the numbers here
        numbers = f"= {slots[0].numbers()}"
        numbers = numbers if 2 < len(numbers) <= LONGEST else ""
        formula = replace(slots[0], result=None).text
        inside["lines"] = tuple(filter(None, (formula, numbers)))
        inside["data"]["live"] = ((numbers, ""),)
    return inside


def read_by(call: Call) -> list[Any]:
    """The variables that the formula of the gradient reads."""
    formula = backward_formula(call.function)
    named = dict(zip(input_names(call.function), call.inputs, strict=False))
    named |= {"y": call.outputs[0]} if len(call.outputs) == 1 else {}
    reads = formula.reads() if formula is not None else ()
    return [*{id(v): v for name, v in named.items() if name in reads}.values()]


def _again(slot: Slot, function: Any, gy: Any) -> Any:
    """What a call would give of another gradient."""
    return slot.made_of(named_gradients(function, (gy,)))
