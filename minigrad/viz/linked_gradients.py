"""The backward side of linked nodes: the gradients, where they meet, and the calls of backward."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from .format import NOT_YET, explain_value, format_value, same_value, unwrap
from .formula import Formula, backward_formula, input_names
from .graph import Node
from .linked_values import Values, names_of
from .links import Back, Call, named_gradients


class Gradients:
    """Draws the calls of backward in their order, each below the call that it belongs to."""

    def __init__(self, forward: Values) -> None:
        self.forward, self.graph = forward, forward.graph
        self.gradients: dict[int, Node] = {}  # by id of the variable
        self.meets: dict[int, Node] = {}

    def draw(self, backs: list[Back]) -> None:
        """First the gradients, then what gives and takes them."""
        self._gradients(backs, self._parts(backs))
        for back in backs:
            self._backward(back)

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
            value = self.forward.value_nodes[key]
            grad = getattr(variable, "grad", None)
            grad = gy if grad is None and seed else grad
            kind = "leaf_gradient" if value.kind in ("leaf", "data") else "gradient"
            shown = self.forward.shown(grad)
            lines = (f"{shown[0]} (seed)",) if seed and shown and shown[0] != NOT_YET else shown
            node = self.graph.node(
                "seed" if seed else kind,
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
        shown = [format_value(a) for a in arriving] if known and self.forward.values else []
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
        twin = self.forward.op_nodes.get(id(call))
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
        self.forward.say(f"{op.name}: {names_of(sources)} to {names_of(targets)}", targets)

    def _formula_lines(self, back: Back, formula: Formula | None) -> tuple[str, ...]:
        """The formula, and the numbers put in; without a formula what came out."""
        offered = _offered_formula(back.call.function)
        if offered or formula is None:
            return tuple(filter(None, (offered, *self._results(back.gxs))))
        lines = formula.lines()
        if not self.forward.values:
            return lines
        if len(lines) > 1:
            return _with_results(lines, back.gxs)
        function = back.call.function
        kept = {
            f"self.{n}": v
            for n, v in getattr(function, "__dict__", {}).items()
            if isinstance(v, int | float)
        }
        known = back.call.values | kept | named_gradients(function, back.gys)
        return tuple(filter(None, (*lines, formula.numbers(known))))

    def _results(self, gxs: tuple[Any, ...] | None) -> tuple[str, ...]:
        if gxs is None or not self.forward.values:
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
            self.graph.edge(self.forward.value_nodes[key], op, "saved")


def _offered_formula(function: Any) -> str:
    """The formula that a class states: ``formula``, or the docstring of ``backward``."""
    stated = getattr(type(function), "formula", None)
    if isinstance(stated, str):
        return stated
    doc = getattr(getattr(type(function), "backward", None), "__doc__", None) or ""
    words = doc.strip().split("\n")[0]
    return words if words.startswith("g") and " = " in words else ""


def _with_results(lines: tuple[str, ...], gxs: tuple[Any, ...] | None) -> tuple[str, ...]:
    if gxs is None or len(gxs) != len(lines):
        return lines
    return tuple(
        line if line.endswith(f"= {format_value(g)}") else f"{line} = {format_value(g)}"
        for line, g in zip(lines, gxs, strict=True)
    )


def _sum_of(parts: list[str]) -> str:
    if len(parts) > 4:
        return f"{len(parts)} parts"
    return " + ".join(f"({p})" if p.startswith("-") else p for p in parts)


def _total(parts: list[Any]) -> Any:
    try:
        return sum(parts[1:], parts[0])
    except (TypeError, ValueError):
        return None
