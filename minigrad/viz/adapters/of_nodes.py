"""Pictures of linked nodes: variables, the functions that made them, and the gradients that came
back.

Two sources, one drawing. `of_run` reads what `watch` saw; `of_links` follows ``creator`` links.
Both give calls: a function with its inputs and outputs, forward, and with its gradients, backward.
"""

from __future__ import annotations

import inspect
import weakref
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..graph.format import NOT_YET, explain_value, format_value, same_value, unwrap
from ..graph.graph import Graph, Node
from .follow import follow
from .formula import (
    LONGEST,
    Formula,
    backward_formula,
    forward_formula,
    input_names,
    numbered,
    own_numbers,
)
from .inside import Fields, Slot, operation, summands, total, value
from .names import Names
from .watching import watch


def of_run(run: watch, names: Names, values: bool = True) -> Graph:
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
    graph = _drawn(Values(names, values), calls, backs)
    if not backs:
        graph.notes.append("backward: nothing to walk yet")
    return graph


def of_links(roots: Iterable[Any], names: Names, values: bool = True) -> Graph:
    """The graph behind one or several variables: forward by ``creator`` links, backward mirrored.

    A gradient that is not computed yet is an em dash.
    """
    roots = list(roots)
    calls = calls_behind(roots)
    grads = {id(v): getattr(v, "grad", None) for c in calls for v in (*c.inputs, *c.outputs)}
    backs = [back_of(call, grads) for call in reversed(calls)]
    return _drawn(Values(names, values, roots), calls, backs)


def _drawn(forward: Values, calls: list[Call], backs: list[Back]) -> Graph:
    """Forward in the order of calls, backward in the order of theirs."""
    forward.draw(calls)
    Gradients(forward).draw(backs)
    graph = forward.graph
    graph.title = ", ".join([n.name for n in graph.nodes.values() if n.kind == "output"][:3])
    return graph


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
    gxs: tuple[Any, ...] | None


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
    done: dict[int, Call] = {}
    order: list[Call] = []
    pending: list[tuple[Any, bool]] = [
        (getattr(v, "creator", None), False) for v in reversed(roots)
    ]
    while pending:
        function, ready = pending.pop()
        if function is None:
            continue
        if ready:
            order.append(done[id(function)])
        elif id(function) not in done:
            call = done[id(function)] = linked_call(function)
            pending.append((function, True))
            pending += [(getattr(v, "creator", None), False) for v in reversed(call.inputs)]
    return order


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


def back_of(call: Call, grads: Mapping[int, Any]) -> Back:
    """What the walk computes, or will: from the gradients the variables hold."""
    gys = tuple(unwrap(grads[id(v)]) for v in call.outputs)
    formula = backward_formula(call.function)
    known = call.values | named_gradients(call.function, gys)
    ready = bool(gys) and all(g is not None for g in gys)
    return Back(call, gys, formula.compute(known) if formula and ready else None)


def named_values(call: Call, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> dict[str, Any]:
    """The arrays of a call under the names that formulas use."""
    values = dict(zip(input_names(call.function), inputs, strict=False))
    return values | ({"y": outputs[0]} if len(outputs) == 1 else {})


def named_gradients(function: Any, gys: tuple[Any, ...]) -> dict[str, Any]:
    """The gradients that go in, under the parameter names of ``backward``."""
    code = getattr(inspect.unwrap(type(function).backward), "__code__", None)
    if code is None:
        return {}
    return dict(zip(code.co_varnames[1 : code.co_argcount], gys, strict=False))


# ---- The forward side of linked nodes: variables, and the functions that made them ----


class Values:
    """Draws variables and calls in the order in which they ran; remembers the node of each."""

    def __init__(self, names: Names, values: bool, roots: list[Any] | None = None) -> None:
        self.graph = Graph()
        self.region = self.graph.region("forward: variables and functions").id
        self.names, self.values = names, values
        self.roots = roots
        self.variables: dict[int, Any] = {}  # keeps every variable alive while its id is a key
        self.value_nodes: dict[int, Node] = {}
        self.op_nodes: dict[int, Node] = {}  # by id of the call
        self.functions: dict[int, Node] = {}  # by id of the function object

    def draw(self, calls: list[Call]) -> None:
        """All calls, and roots that nobody made."""
        outer = self._outer(calls)
        for root in self.roots or ():
            if getattr(root, "creator", None) is None:
                self._value(root, outer)
        for call in calls:
            self._forward(call, outer)
        self._creator_links()

    def _outer(self, calls: list[Call]) -> set[int]:
        """Variables that are results: the roots, or what no function reads."""
        if self.roots is not None:
            return {id(v) for v in self.roots}
        read = {id(v) for c in calls for v in c.inputs}
        return {id(v) for c in calls for v in c.outputs} - read

    def _value(self, variable: Any, outer: set[int], made: bool = False) -> Node:
        key = id(variable)
        if key not in self.value_nodes:
            self.variables[key] = variable
            end = "output" if key in outer else "value"
            self.value_nodes[key] = self.graph.node(
                end if made else _start_kind(variable),
                self.names(variable),
                region=self.region,
                **value(variable, self.values),
            )
        return self.value_nodes[key]

    def _forward(self, call: Call, outer: set[int]) -> None:
        inputs = [
            self._value(v, outer, made=getattr(v, "creator", None) is not None) for v in call.inputs
        ]
        formula = forward_formula(call.function)
        kind = type(call.function).__name__
        called = self.names.known(call.function)
        op = self.graph.node(
            "op",
            kind,
            region=self.region,
            lines=formula.lines() if formula else (),
            tooltip=f"the function object {called}" if called and called != kind else "",
        )
        self.op_nodes[id(call)] = self.functions[id(call.function)] = op
        for node in inputs:
            self.graph.edge(node, op)
        outputs = [self._value(v, outer, made=True) for v in call.outputs]
        for node in outputs:
            self.graph.edge(op, node, "weak" if call.weak else "flow")
        self.say(f"{kind}: {names_of(inputs)} to {names_of(outputs)}", outputs)

    def _creator_links(self) -> None:
        """Draw a creator that does not know its output: one function object used twice, or an
        output that is gone.
        """
        joined = {(e.tail, e.head) for e in self.graph.edges}
        for key, node in self.value_nodes.items() if self.roots is not None else ():
            op = self.functions.get(id(getattr(self.variables[key], "creator", None)))
            if op is not None and (op.id, node.id) not in joined:
                self.graph.edge(op, node, "ref", label="creator")

    def keep(self, variable: Any) -> None:
        """Hold a variable that backward reached; draw it if forward did not."""
        self.variables.setdefault(id(variable), variable)
        if id(variable) not in self.value_nodes:
            self._value(variable, set())

    def say(self, step: str, results: list[Node]) -> None:
        """Add a step in words, with the values that came out."""
        values = [n.lines[0] for n in results if n.lines and n.lines[0] != NOT_YET]
        self.graph.steps.append(f"{step} = {', '.join(values)}" if values else step)


def _start_kind(variable: Any) -> str:
    """What nobody made: a leaf, unless no gradient is wanted for it."""
    fixed = getattr(variable, "requires_grad", True) is False
    return "leaf" if variable_like(variable) and not fixed else "data"


def names_of(nodes: Iterable[Node]) -> str:
    """Their names in one line."""
    return ", ".join(n.name for n in nodes) or "nothing"


# ---- The backward side of linked nodes: the gradients, where they meet, and the calls of backward ----


class Gradients:
    """Draws the calls of backward in their order, each below the call that it belongs to."""

    def __init__(self, forward: Values) -> None:
        self.forward, self.graph = forward, forward.graph
        self.gradients: dict[int, Node] = {}  # by id of the variable
        self.meets: dict[int, Node] = {}
        self.region = ""

    def draw(self, backs: list[Back]) -> None:
        """First the gradients, then what gives and takes them."""
        if not backs:
            return
        self.region = self.graph.region("backward: gradients", side="backward").id
        self._gradients(backs, self._parts(backs))
        for back in backs:
            self._backward(back)
        follow(self.graph)

    def _parts(self, backs: list[Back]) -> dict[int, list[Any]]:
        """What arrives at each variable, in order; None where a part is not known."""
        parts: dict[int, list[Any]] = defaultdict(list)
        for back in backs:
            gxs = back.gxs if back.gxs is not None else (None,) * len(back.call.inputs)
            for variable, gx in zip(back.call.inputs, gxs, strict=False):
                self.forward.keep(variable)
                parts[id(variable)].append(gx)
        return parts

    def _gradients(self, backs: list[Back], parts: Mapping[int, list[Any]]) -> None:
        """A node for every gradient, and one more where several gradients meet."""
        for back in backs:
            for variable, gy in zip(back.call.outputs, back.gys, strict=False):
                self.forward.keep(variable)
                self._gradient(variable, gy, seed=id(variable) not in parts)
        for key, arriving in parts.items():
            variable = self.forward.variables[key]
            node = self._gradient(variable, None)
            if len(arriving) > 1:
                self.meets[key] = self._meeting(variable, node, arriving)

    def _gradient(self, variable: Any, gy: Any, seed: bool = False) -> Node:
        key = id(variable)
        if key not in self.gradients:
            twin = self.forward.value_nodes[key]
            grad = getattr(variable, "grad", None)
            grad = gy if grad is None and seed else grad
            kind = "leaf_gradient" if twin.kind in ("leaf", "data") else "gradient"
            node = self.graph.node(
                "seed" if seed else kind,
                f"{twin.name}.grad",
                side="backward",
                region=self.region,
                **value(grad, self.forward.values, seed),
            )
            self.graph.link(twin, node)
            self.gradients[key] = node
        return self.gradients[key]

    def _meeting(self, variable: Any, gradient: Node, arriving: list[Any]) -> Node:
        """The place where gradients meet: added up, or, in an engine that assigns, one of them
        lost.
        """
        grad, wanted = unwrap(getattr(variable, "grad", None)), total(arriving)
        lost = (
            wanted is not None
            and grad is not None
            and same_value(grad, arriving[-1])
            and not same_value(grad, wanted)
        )
        words = ", then ".join(map(format_value, arriving)) if lost else summands(arriving)
        words = words if self.forward.values else ""
        node = self.graph.node(
            "accumulate",
            "=" if lost else "+=",
            lines=tuple(filter(None, (words, "the earlier one is lost" if lost else ""))),
            data={"live": ((words, ""),)},
            side="backward",
            region=self.region,
            tooltip=f"{len(arriving)} gradients meet",
        )
        self.graph.edge(node, gradient, "accumulate", carries=grad)
        return node

    def _backward(self, back: Back) -> None:
        call = back.call
        twin = self.forward.op_nodes.get(id(call))
        formula = backward_formula(call.function)
        again = twin is not None and twin.twin is not None
        inside = self._inside(back, formula)
        inside["lines"] += ("called again",) if again else ()
        op = self.graph.node(
            "grad_op",
            f"{type(call.function).__name__}.backward",
            **inside,
            side="backward",
            region=self.region,
            tooltip="\n".join(
                f"gradient out: {explain_value(g)}" for g in back.gxs or () if g is not None
            ),
        )
        if twin is not None:
            op.twin = twin.id
            twin.twin = twin.twin or op.id
        for variable, gy in zip(call.outputs, back.gys, strict=False):
            self.graph.edge(self.gradients[id(variable)], op, "grad", carries=unwrap(gy))
        gxs = back.gxs if back.gxs is not None else (None,) * len(call.inputs)
        rules = formula.lines() if formula is not None else ()
        for k, (variable, gx) in enumerate(zip(call.inputs, gxs, strict=False)):
            meeting = self.meets.get(id(variable))
            self.graph.edge(
                op,
                meeting or self.gradients[id(variable)],
                "accumulate" if meeting else "grad",
                carries=unwrap(gx),
                slot=f"[{k}]" if len(gxs) > 1 else "",
                rule=rules[k].partition(" = ")[2] if len(rules) == len(gxs) else "",
                pull=partial(self._again, back, formula, k),
            )
        self._saved(call, formula, op)
        targets = [self.gradients[id(v)] for v in call.inputs if id(v) in self.gradients]
        sources = [self.gradients[id(v)] for v in call.outputs if id(v) in self.gradients]
        self.forward.say(f"{op.name}: {names_of(sources)} to {names_of(targets)}", targets)

    def _again(self, back: Back, formula: Formula | None, k: int, gy: Any) -> Any:
        """What a call of backward would give of another gradient, where its formula is arithmetic."""
        if formula is None or len(back.gys) != 1:
            return None
        function = back.call.function
        known = back.call.values | own_numbers(function) | named_gradients(function, (gy,))
        given = formula.compute(known)
        return given[k] if given is not None and len(given) == len(formula.results) > k else None

    def _inside(self, back: Back, formula: Formula | None) -> Fields:
        """The formula, and the numbers put in; without a formula what came out."""
        function = back.call.function
        gxs = (back.gxs if self.forward.values else None) or ()
        stated = _stated_formula(function)
        if stated or formula is None:
            names = numbered("gx", len(gxs))
            inside = operation(
                Slot(None, {}, result=g, name=n) for n, g in zip(names, gxs, strict=True)
            )
            return inside | {"lines": (*filter(None, [stated]), *inside["lines"])}
        values = back.call.values | own_numbers(function) | named_gradients(function, back.gys)
        results = gxs if len(gxs) == len(formula.results) else [None] * len(formula.results)
        slots = [
            Slot(expression, {}, values, gx, name=name)
            for name, expression, gx in zip(formula.names, formula.results, results, strict=True)
        ]
        inside = operation(slots)
        if len(slots) == 1:  # the gradient stands beside it, the numbers here
            numbers = f"= {slots[0].numbers()}" if self.forward.values else ""
            numbers = numbers if 2 < len(numbers) <= LONGEST else ""
            inside["lines"] = tuple(filter(None, (*formula.lines(), numbers)))
            inside["data"]["live"] = ((numbers, ""),)
        return inside

    def _saved(self, call: Call, formula: Formula | None, op: Node) -> None:
        """A dotted line from every forward value that the formula of the gradient reads."""
        reads = set(formula.reads()) if formula else set()
        named = dict(zip(input_names(call.function), call.inputs, strict=False))
        named |= {"y": call.outputs[0]} if len(call.outputs) == 1 else {}
        tails = {id(v): v for name, v in named.items() if name in reads}
        for key in tails:
            self.graph.edge(self.forward.value_nodes[key], op, "saved")


def _stated_formula(function: Any) -> str:
    """The formula that a class states: ``formula``, or the docstring of ``backward``."""
    stated = getattr(type(function), "formula", None)
    if isinstance(stated, str):
        return stated
    doc = getattr(getattr(type(function), "backward", None), "__doc__", None) or ""
    words = doc.strip().split("\n")[0]
    return words if words.startswith("g") and " = " in words else ""
