"""The forward side of linked nodes: variables, and the functions that made them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .format import NOT_YET, explain_value, format_value
from .formula import forward_formula
from .graph import Graph, Node
from .links import Call, variable_like
from .names import Names


class Values:
    """Draws variables and calls in the order in which they ran; remembers the node of each."""

    def __init__(self, names: Names, values: bool, roots: list[Any] | None = None) -> None:
        self.graph = Graph(direction="LR")
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
                lines=self.shown(variable),
                tooltip=explain_value(variable),
            )
        return self.value_nodes[key]

    def shown(self, value: Any) -> tuple[str, ...]:
        """The line with a value, if values are wanted."""
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
