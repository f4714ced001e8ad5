"""What a node says, in every picture: an adapter has the facts, and here they become lines, ports and words.

    graph.node("gradient", "x.grad", **value(grad))
    graph.node("grad_op", "MulBackward0", **operation(slots, ports=True))

What is known only after a run stands in ``data["live"]``, each line with what stands there before; the formulas of an
operation stand in ``data["slots"]``, for a player that puts in the numbers of each moment.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..graph.format import (
    LONGEST_NAME,
    NOT_YET,
    cells,
    explain_value,
    format_value,
    same_value,
    strip,
    unwrap,
)
from ..graph.graph import Graph, Node
from .formula import Values, computed, literal, put_in, written

Fields = dict[str, Any]
_NOTHING: Values = {}
BACKWARD: Fields = {"side": "backward", "region": "r1"}


class Slot(NamedTuple):
    """One result of an operation: its formula, what stands there for the names in it, and what came out.

    >>> double = ast.parse("g * y", mode="eval").body
    >>> slot = Slot(double, {"y": "d"}, {"g": 1.0, "y": 4.0}, result=4.0, mark="[0] ")
    >>> slot.text, slot.worked()
    ('[0] g·d = 4', '[0] g·d = 1·4 = 4')
    """

    formula: ast.expr | None
    names: Mapping[str, str]
    values: Values = _NOTHING  # of the names in the formula
    result: Any = None
    mark: str = ""  # before it all: "[0] "
    name: str = ""  # what the result is called at the node: "gx0"
    output: str = ""  # the variable of a program that the result is, as the names are some
    gradient: str = "g"  # what arrives, as the formula calls it
    arriving: str = ""  # and the variable that it is

    @property
    def rule(self) -> str:
        """``g·d``, in the names of the user."""
        return written(self.formula, self.names) if self.formula else ""

    @property
    def text(self) -> str:
        """``[0] g·d = 4``: what stands at the node."""
        return self.said(self._came())

    def said(self, *came: str) -> str:
        """The same with what ``came``: a dash before it ran."""
        text = " = ".join(filter(None, dict.fromkeys((self.name, self.rule, *came))))
        return f"{self.mark}{text}".strip()

    def numbers(self) -> str:
        """The formula with numbers put in: ``1·4``; empty where one is not known."""
        return put_in(self.formula, self.values) if self.formula else ""

    def worked(self, now: Values = _NOTHING) -> str:
        """``[0] g·d = 1·4 = 4``, with the values that the names have ``now`` in a run of a program."""
        slot = self._at(now)
        result = slot._came()
        numbers = slot.numbers() if result else ""
        if numbers.replace("−", "-") == result:
            return slot.said(result)
        return slot.said(numbers, result)

    def made_of(self, gradient, now: Values = _NOTHING) -> Any:
        """What comes of another gradient; None where the formula is no arithmetic."""
        values = {**self._at(now).values, self.gradient: gradient}
        return None if self.formula is None else computed(self.formula, values)

    def _at(self, now: Values) -> "Slot":
        """The same with the values of a moment, where the names are variables of a program."""
        if not self.output:
            return self
        variables = {self.gradient: self.arriving, **self.names}
        values = {name: now.get(v, literal(v)) for name, v in variables.items()}
        return self._replace(values=values, result=now.get(self.output), name=self.output)

    def _came(self) -> str:
        return "" if self.result is None else format_value(self.result)


def in_list(names: Mapping[str, str], k: str) -> dict[str, str]:
    """What stands in the formula of an input that is one of a list for its number and for the others."""
    others = [n for slot, n in names.items() if slot[-1] == "]" and not slot.endswith(f"[{k}]")]
    return {"k": k, "others": ", ".join(others)}


def operation(slots: Iterable[Slot], ports: bool = False) -> Fields:
    """The fields of an operation: what each slot computes and gave, one line or one port each."""
    slots = tuple(slots)
    live = tuple((slot.text, slot.said(NOT_YET)) for slot in slots if slot.result is not None)
    data = {"live": live, "slots": slots}
    texts = [slot.text for slot in slots]
    if ports:
        return {"data": data, "ports": tuple((text, "out") for text in texts)}
    return {"data": data, "lines": tuple(filter(None, texts))}


def value(x, seed: bool = False) -> Fields:
    """The fields of a value or of a gradient; a dash if it is None."""
    text = format_value(x)
    if seed and x is not None:
        text += " (seed)"
    return told([(text, NOT_YET), (strip(x), "")], explain_value(x), **arrays(x))


def told(live: Iterable[tuple[str, str]], tooltip: str, **data) -> Fields:
    """The fields of a node by its lines, each with what stands there before it ran."""
    live = tuple(both for both in live if both[0])
    lines = tuple(text for text, _ in live)
    return {"lines": lines, "data": {"live": live} | data, "tooltip": tooltip}


def arrays(*held) -> Fields:
    """What the details of a node show of arrays, element by element: its value, or its value and its gradient."""
    shown = zip(("value", "gradient"), map(cells, held), strict=False)
    return {"arrays": [(word, array) for word, array in shown if array is not None]}


def show_value(node: Node, held: tuple[Any, ...]) -> None:
    """Above the words of a version of a name its value, where one is ``held``."""
    texts = tuple(map(format_value, held))
    node.lines = (*texts, *node.lines)
    node.data = {"live": tuple((text, NOT_YET) for text in texts), **arrays(*held)}
    node.tooltip = " | ".join([node.tooltip, *(explain_value(x) for x in held if x is not None)])


def accumulated(name: str, grad, parts: Sequence[Any]) -> Fields:
    """The fields of what adds to the gradient of a leaf, with the summands that came."""
    words = summands(parts)
    live = [
        (f"{name} = {format_value(grad)}", f"{name} = {NOT_YET}"),
        (words and f"+= {words}", NOT_YET),
        (strip(grad), ""),
    ]
    about = f"adds to {name}: {explain_value(grad)}"
    return told(live, about, called=name, **arrays(grad))


def summands(parts: Sequence[Any]) -> str:
    """What a gradient that comes from several places adds up: ``8 + 4``; empty where one is not known.

    >>> summands([8.0, -4.0]), summands([8.0, None])
    ('8 + (-4)', '')
    """
    if len(parts) < 2 or any(part is None for part in parts):
        return ""
    texts = [f"({text})" if text[0] == "-" else text for text in map(format_value, parts)]
    words = " + ".join(texts)
    return words if len(words) <= LONGEST_NAME else f"{len(parts)} parts"


@dataclass(eq=False)
class Place:
    """A value in a picture, and its gradient beside it."""

    node: Node
    held: Any  # the value
    gradient: Node | None = None
    grad: Any = None
    arrives: Node | None = None  # the gradient, or the place before it where several parts meet

    def add_gradient(
        self, graph: Graph, kind: str, inside: Fields, parts: Sequence[Any], grad
    ) -> None:
        """Draw its gradient, and before it where several parts meet: they are added up, or, in an engine
        that assigns, one of them is lost.
        """
        self.gradient = graph.node(kind, f"{self.node.name}.grad", **BACKWARD, **inside)
        self.grad, self.arrives = grad, self.gradient if parts else None
        graph.link(self.node, self.gradient)
        if len(parts) < 2:
            return
        whole = total(parts)
        lost = whole is not None and same_value(grad, parts[-1]) and not same_value(grad, whole)
        words = ", then ".join(map(format_value, parts)) if lost else summands(parts)
        lines = (words, "the earlier one is lost") if lost else (words,)
        self.arrives = graph.node("accumulate", "=" if lost else "+=", **BACKWARD)
        self.arrives.lines = tuple(filter(None, lines))
        self.arrives.tooltip = f"{len(parts)} gradients meet"
        self.arrives.data["live"] = ((words, ""),)
        graph.edge(self.arrives, self.gradient, "accumulate", carries=unwrap(grad))


def total(parts: Sequence[Any]) -> Any:
    """The sum of what arrives; None where a part is not known, or they cannot be added."""
    if not parts or any(part is None for part in parts):
        return None
    try:
        return sum(parts[1:], parts[0])
    except (TypeError, ValueError):
        return None


def saved(values: Values | None) -> str:
    """What a node keeps for backward, one line per value, with its bytes; None was freed."""
    if values is None:
        return "saved values: freed"
    lines = [f"saved {n}: {explain_value(v)}, {_bytes(v)} bytes" for n, v in values.items()]
    return "\n".join(lines) or "saves nothing"


def _bytes(value) -> int:
    value = unwrap(value)
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes, value))
    return 0 if value is None else np.asarray(value).nbytes
