"""Pictures of linked nodes: variables, the functions that made them, and the gradients that came
back.

Two sources, one drawing. `of_run` reads what `watch` saw; `of_links` follows ``creator`` links.
Both give calls: a function with its inputs and outputs, forward, and with its gradients, backward.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from minigrad.viz.format import NOT_YET, explain_value, format_value, same_value, unwrap
from minigrad.viz.formula import Formula, backward_formula, forward_formula, input_names
from minigrad.viz.graph import Graph, Node
from minigrad.viz.links import (
    Back,
    Call,
    back_of,
    calls_behind,
    linked_call,
    named_gradients,
    named_values,
    variable_like,
)
from minigrad.viz.names import Names
from minigrad.viz.summary import MOST, summary
from minigrad.viz.watching import watch


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
    graph = _Builder(names, values).build(calls, backs)
    if not backs:
        graph.notes.append("backward: nothing to walk yet")
    return graph


def of_links(roots: Iterable[Any], names: Names, values: bool = True) -> Graph:
    """The graph behind one or several variables: forward by ``creator`` links, backward mirrored.

    A gradient that is not computed yet is an em dash.
    """
    roots = list(roots)
    calls = calls_behind(roots)
    if len(calls) > MOST:
        kinds = [type(call.function).__name__ for call in calls]
        made = {id(v) for call in calls for v in call.outputs}
        leaves = {id(v): v for call in calls for v in call.inputs if id(v) not in made}
        backward = [f"{kind}.backward" for kind in kinds]
        return summary(kinds, backward, [names(v) for v in leaves.values()], [names(roots[0])])
    grads = {id(v): getattr(v, "grad", None) for c in calls for v in (*c.inputs, *c.outputs)}
    backs = [back_of(call, grads) for call in reversed(calls)]
    return _Builder(names, values, roots).build(calls, backs)


class _Builder:
    """Turns calls into nodes and lines: forward in the order of calls, backward in the order of
    theirs.
    """

    def __init__(self, names: Names, values: bool, roots: list[Any] | None = None) -> None:
        self.graph = Graph(direction="LR")
        self.names, self.values = names, values
        self.roots = roots
        self.variables: dict[int, Any] = {}  # keeps every variable alive while its id is a key
        self.value_nodes: dict[int, Node] = {}
        self.op_nodes: dict[int, Node] = {}  # by id of the call
        self.functions: dict[int, Node] = {}  # by id of the function object
        self.gradients: dict[int, Node] = {}
        self.meets: dict[int, Node] = {}

    def build(self, calls: list[Call], backs: list[Back]) -> Graph:
        outer = self._outer(calls)
        for root in self.roots or ():
            if getattr(root, "creator", None) is None:
                self._value(root, outer)
        for call in calls:
            self._forward(call, outer)
        self._creator_links()
        parts = self._parts(backs)
        self._gradients(backs, parts)
        for back in backs:
            self._backward(back)
        self.graph.title = self._title()
        return self.graph

    def _outer(self, calls: list[Call]) -> set[int]:
        """Variables that are results: the roots, or what no function reads."""
        if self.roots is not None:
            return {id(v) for v in self.roots}
        read = {id(v) for c in calls for v in c.inputs}
        return {id(v) for c in calls for v in c.outputs} - read

    def _title(self) -> str:
        ends = [n.name for n in self.graph.nodes.values() if n.kind == "output"]
        return ", ".join(ends[:3])

    # forward

    def _value(self, variable: Any, outer: set[int], made: bool = False) -> Node:
        key = id(variable)
        if key not in self.value_nodes:
            self.variables[key] = variable
            kind = (
                "output"
                if key in outer and made
                else "value"
                if made
                else "leaf"
                if variable_like(variable)
                else "data"
            )
            if kind == "leaf" and getattr(variable, "requires_grad", True) is False:
                kind = "data"
            self.value_nodes[key] = self.graph.node(
                kind,
                self.names(variable),
                lines=self._shown(variable),
                tooltip=explain_value(variable),
            )
        return self.value_nodes[key]

    def _shown(self, value: Any) -> tuple[str, ...]:
        return (format_value(value),) if self.values else ()

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
            lines=formula.lines() if formula else (),
            tooltip=f"the function object {called}" if called and called != kind else "",
        )
        self.op_nodes[id(call)] = self.functions[id(call.function)] = op
        for node in inputs:
            self.graph.edge(node, op)
        outputs = [self._value(v, outer, made=True) for v in call.outputs]
        for node in outputs:
            self.graph.edge(op, node, "weak" if call.weak else "flow")
        self._say(f"{kind}: {_names_of(inputs)} to {_names_of(outputs)}", outputs)

    def _creator_links(self) -> None:
        """Draw a creator that does not know its output: one function object used twice, or an
        output that is gone.
        """
        joined = {(e.tail, e.head) for e in self.graph.edges}
        for key, node in self.value_nodes.items() if self.roots is not None else ():
            op = self.functions.get(id(getattr(self.variables[key], "creator", None)))
            if op is not None and (op.id, node.id) not in joined:
                self.graph.edge(op, node, "ref", label="creator")

    # backward

    def _parts(self, backs: list[Back]) -> dict[int, list[Any]]:
        """What arrives at each variable, in order; None where a part is not known."""
        parts: dict[int, list[Any]] = defaultdict(list)
        for back in backs:
            gxs = back.gxs if back.gxs is not None else (None,) * len(back.call.inputs)
            for variable, gx in zip(back.call.inputs, gxs, strict=False):
                self._keep(variable)
                parts[id(variable)].append(gx)
        return parts

    def _keep(self, variable: Any) -> None:
        self.variables.setdefault(id(variable), variable)
        if id(variable) not in self.value_nodes:
            self._value(variable, set())

    def _gradients(self, backs: list[Back], parts: Mapping[int, list[Any]]) -> None:
        """A node for every gradient, and one more where several gradients meet."""
        for back in backs:
            for variable, gy in zip(back.call.outputs, back.gys, strict=False):
                self._keep(variable)
                self._gradient(variable, gy, seed=id(variable) not in parts)
        for key, arriving in parts.items():
            variable = self.variables[key]
            node = self._gradient(variable, None)
            if len(arriving) > 1:
                self.meets[key] = self._meeting(variable, node, arriving)

    def _gradient(self, variable: Any, gy: Any, seed: bool = False) -> Node:
        key = id(variable)
        if key not in self.gradients:
            value = self.value_nodes[key]
            grad = getattr(variable, "grad", None)
            grad = gy if grad is None and seed else grad
            kind = (
                "seed"
                if seed
                else "leaf_gradient"
                if value.kind in ("leaf", "data")
                else "gradient"
            )
            shown = self._shown(grad)
            lines = (f"{shown[0]} (seed)",) if seed and shown and shown[0] != NOT_YET else shown
            node = self.graph.node(
                kind,
                f"{value.name}.grad",
                lines=lines,
                side="backward",
                tooltip=explain_value(grad),
            )
            self.graph.link(value, node)
            self.gradients[key] = node
        return self.gradients[key]

    def _meeting(self, variable: Any, gradient: Node, arriving: list[Any]) -> Node:
        """The place where gradients meet: added up, or, in an engine that assigns, one of them
        lost.
        """
        grad = unwrap(getattr(variable, "grad", None))
        known = all(a is not None for a in arriving)
        shown = [format_value(a) for a in arriving] if known and self.values else []
        lost = (
            known
            and grad is not None
            and same_value(grad, arriving[-1])
            and not same_value(grad, _total(arriving))
        )
        lines = (
            (f"{', then '.join(shown)}", "the earlier one is lost") if lost else (_sum_of(shown),)
        )
        node = self.graph.node(
            "accumulate",
            "=" if lost else "+=",
            lines=tuple(filter(None, lines)),
            side="backward",
            tooltip=f"{len(arriving)} gradients meet",
        )
        self.graph.edge(node, gradient, "accumulate")
        return node

    def _backward(self, back: Back) -> None:
        call = back.call
        twin = self.op_nodes.get(id(call))
        formula = backward_formula(call.function)
        again = twin is not None and twin.twin is not None
        lines = self._formula_lines(back, formula) + (("called again",) if again else ())
        op = self.graph.node(
            "grad_op",
            f"{type(call.function).__name__}.backward",
            lines=lines,
            side="backward",
            tooltip="\n".join(
                f"gradient out: {explain_value(g)}" for g in back.gxs or () if g is not None
            ),
        )
        if twin is not None:
            op.twin = twin.id
            twin.twin = twin.twin or op.id
        for variable, _ in zip(call.outputs, back.gys, strict=False):
            self.graph.edge(self.gradients[id(variable)], op, "grad")
        gxs = back.gxs if back.gxs is not None else (None,) * len(call.inputs)
        for variable, _ in zip(call.inputs, gxs, strict=False):
            meeting = self.meets.get(id(variable))
            self.graph.edge(
                op, meeting or self.gradients[id(variable)], "accumulate" if meeting else "grad"
            )
        self._saved(call, formula, op)
        targets = [self.gradients[id(v)] for v in call.inputs if id(v) in self.gradients]
        sources = [self.gradients[id(v)] for v in call.outputs if id(v) in self.gradients]
        self._say(f"{op.name}: {_names_of(sources)} to {_names_of(targets)}", targets)

    def _formula_lines(self, back: Back, formula: Formula | None) -> tuple[str, ...]:
        """The formula, and the numbers put in; without a formula what came out."""
        offered = _offered_formula(back.call.function)
        if offered or formula is None:
            return tuple(filter(None, (offered, *self._results(back.gxs))))
        lines = formula.lines()
        if not self.values:
            return lines
        if len(lines) > 1:
            return _with_results(lines, back.gxs)
        known = back.call.values | named_gradients(back.call.function, back.gys)
        return tuple(filter(None, (*lines, formula.numbers(known))))

    def _results(self, gxs: tuple[Any, ...] | None) -> tuple[str, ...]:
        if gxs is None or not self.values:
            return ()
        names = ["gx"] if len(gxs) == 1 else [f"gx{i}" for i in range(len(gxs))]
        return tuple(f"{n} = {format_value(g)}" for n, g in zip(names, gxs, strict=True))

    def _saved(self, call: Call, formula: Formula | None, op: Node) -> None:
        """A dotted line from every forward value that the formula of the gradient reads."""
        reads = set(formula.reads()) if formula else set()
        named = dict(zip(input_names(call.function), call.inputs, strict=False))
        named |= {"y": call.outputs[0]} if len(call.outputs) == 1 else {}
        tails = {id(v): v for name, v in named.items() if name in reads}
        for key in tails:
            self.graph.edge(self.value_nodes[key], op, "saved")

    def _say(self, step: str, results: list[Node]) -> None:
        values = [n.lines[0] for n in results if n.lines and n.lines[0] != NOT_YET]
        self.graph.steps.append(f"{step} = {', '.join(values)}" if values else step)


def _offered_formula(function: Any) -> str:
    """The formula that a class states: ``formula``, or the docstring of ``backward``."""
    stated = getattr(type(function), "formula", None)
    if isinstance(stated, str):
        return stated
    words = (
        (getattr(getattr(type(function), "backward", None), "__doc__", None) or "")
        .strip()
        .split("\n")[0]
    )
    return words if words.startswith("g") and " = " in words else ""


def _with_results(lines: tuple[str, ...], gxs: tuple[Any, ...] | None) -> tuple[str, ...]:
    if gxs is None or len(gxs) != len(lines):
        return lines
    return tuple(
        line if line.endswith(f"= {format_value(g)}") else f"{line} = {format_value(g)}"
        for line, g in zip(lines, gxs, strict=True)
    )


def _sum_of(parts: list[str]) -> str:
    return (
        " + ".join(f"({p})" if p.startswith("-") else p for p in parts)
        if 0 < len(parts) <= 4
        else f"{len(parts)} parts"
        if parts
        else ""
    )


def _total(parts: list[Any]) -> Any:
    try:
        return sum(parts[1:], parts[0])
    except (TypeError, ValueError):
        return None


def _names_of(nodes: Iterable[Node]) -> str:
    return ", ".join(n.name for n in nodes) or "nothing"
