"""What the nodes of a grad_fn graph tell about themselves, and the order of the walk."""

from __future__ import annotations

import functools
import heapq
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .format import explain_value, format_value, unwrap
from .formula import backward_formula
from .rules import rule_texts


class Walk:
    """The nodes that backward reaches, in the order in which it runs, and what they say, asked
    once: ``order``, `next`, `saved`.
    """

    def __init__(self, starts: Iterable[Any]) -> None:
        self._next: dict[int, tuple[tuple[Any, int], ...]] = {}
        self._saved: dict[int, Mapping[str, Any] | None] = {}
        self.order = self._sorted(list(starts))

    def next(self, node: Any) -> tuple[tuple[Any, int], ...]:
        """The ``next_functions`` of a node."""
        if id(node) not in self._next:
            self._next[id(node)] = node.next_functions
        return self._next[id(node)]

    def saved(self, node: Any) -> Mapping[str, Any] | None:
        """What a node keeps for its formula, by name; None when it was freed."""
        if id(node) not in self._saved:
            self._saved[id(node)] = saved_values(node)
        return self._saved[id(node)]

    def _sorted(self, starts: list[Any]) -> list[Any]:
        """A node after all that feed it: newest first where nodes know their sequence number; an
        AccumulateGrad where its last feeder stands.
        """
        found, waiting = self._reached(starts)
        places = itertools.count()
        ready = [(-_age(n), next(places), n) for n in dict.fromkeys(starts) if not waiting[id(n)]]
        heapq.heapify(ready)
        order = []
        while ready:
            *_, node = heapq.heappop(ready)
            order.append(node)
            for target, _ in self.next(node):
                if target is not None:
                    waiting[id(target)] -= 1
                    if not waiting[id(target)]:
                        heapq.heappush(ready, (-_age(target), next(places), target))
        return order if len(order) == len(found) else list(found.values())

    def _reached(self, starts: list[Any]) -> tuple[dict[int, Any], dict[int, int]]:
        found = {id(n): n for n in starts}
        waiting = dict.fromkeys(found, 0)
        pending = list(found.values())
        while pending:
            for target, _ in self.next(pending.pop()):
                if target is None:
                    continue
                waiting[id(target)] = waiting.get(id(target), 0) + 1
                if id(target) not in found:
                    found[id(target)] = target
                    pending.append(target)
        return found, waiting


def _age(node: Any) -> float:
    """Newer nodes run first; AccumulateGrad at once."""
    if accumulates(node):
        return float("inf")
    seq = getattr(node, "seq", 0.0)
    return float(seq) if isinstance(seq, (int, float)) else 0.0


def accumulates(node: Any) -> bool:
    """Is it the end of a path: the AccumulateGrad of a leaf?"""
    return hasattr(node, "variable") and not node.next_functions


def title_of(node: Any) -> str:
    """The name of a node of the backward graph: ``MulBackward0``."""
    name = getattr(node, "name", None)
    name = name() if callable(name) else name
    return name if isinstance(name, str) and name else type(node).__name__


def forward_name(node: Any) -> str:
    """The operation that a node belongs to: ``add`` for ``AddBackward0``."""
    stem = re.sub(r"Backward\d*$", "", title_of(node)) or title_of(node)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", stem).lower()


def saved_values(node: Any) -> Mapping[str, Any] | None:
    """What a node keeps for its formula, by name; None when it was freed."""
    try:
        saved = getattr(node, "saved", {})
    except Exception:  # freed: reading it is an error that says so
        return None
    return saved if isinstance(saved, Mapping) else {} if saved is not None else None


def slots_of(node: Any) -> tuple[str, ...]:
    """The names of the inputs that have a slot in ``next_functions``, where the node knows them."""
    return _slots_of(getattr(node, "primitive", None), getattr(type(node), "__doc__", None) or "")


@functools.cache  # there are as many as primitives
def _slots_of(primitive: Any, doc: str) -> tuple[str, ...]:
    named = getattr(primitive, "differentiable", None)
    if named is not None:
        return tuple(str(n) for n in named)
    words = re.match(r"\s*\w+ = (.*)", doc)
    return tuple(dict.fromkeys(re.findall(r"\b[a-z]\w*\b(?!\()", words.group(1)))) if words else ()


def formulas(node: Any, count: int, names: Mapping[str, str]) -> tuple[str, ...]:
    """The formula of each of ``count`` gradients, when ``backward`` is a plain one: ``grad·y``.

    ``names`` are put in for the inputs and outputs of a node that comes from a table of rules.
    """
    texts = getattr(type(node), "formula_texts", None)  # a node made from a table of derivatives
    if isinstance(texts, Mapping) and len(texts) == count:
        return tuple(str(text).replace(" * ", "·") for text in texts.values())
    if hasattr(node, "primitive"):
        known = rule_texts(node.primitive, names) if node.primitive is not None else ()
        return known if len(known) == count else ()
    formula = backward_formula(node)
    if formula is None or len(formula.results) != count:
        return ()
    return tuple(line.split(" = ", 1)[1] for line in formula.lines())


def slot_texts(
    node: Any, count: int, names: Mapping[str, str], given: Mapping[int, Any]
) -> tuple[str, ...]:
    """``[0] grad·y = 4``: the slots with what each computes, and what it gave, where known.

    The only slot of a node goes without its number.
    """
    slots = range(count)
    texts = formulas(node, count, names) or ("",) * count
    gave = {i: format_value(g) for i, g in given.items()}
    marks = [f"[{i}] " if len(slots) > 1 else "" for i in slots]
    return tuple(
        f"{marks[i]}{texts[i]}{f' = {gave[i]}' if i in gave else ''}".strip() for i in slots
    )


def saved_bytes(saved: Mapping[str, Any] | None) -> int:
    """How many bytes a node keeps for backward."""
    return sum(map(bytes_of, (saved or {}).values()))


def bytes_of(value: Any) -> int:
    """How many bytes a value has: an array, a Tensor, a number, or a list of them."""
    value = unwrap(value)
    if isinstance(value, (list, tuple)):
        return sum(map(bytes_of, value))
    return 0 if value is None else np.asarray(value).nbytes


def remembered(node: Any) -> tuple[Any, dict[tuple[int, int], Any], dict[int, Mapping[str, Any]]]:
    """Of the last backward, where the root knows it: the seed, (id of a node, slot) → what it gave,
    id of a node → the values that it had saved.
    """
    tell = getattr(node, "remembered", None)
    told = tell() if callable(tell) else {}
    given = {(id(n), slot): g for (n, slot), g in told.get("gradients", {}).items()}
    return told.get("seed"), given, {id(n): saved for n, saved in told.get("saved", {}).items()}


def about_saved(saved: Mapping[str, Any] | None) -> str:
    """What a node keeps, one line per value, with its bytes."""
    if saved is None:
        return "saved values: freed"
    if not saved:
        return "saves nothing"
    lines = [f"saved {name}: {explain_value(v)}, {bytes_of(v)} bytes" for name, v in saved.items()]
    return "\n".join(lines)


def first_line(node: Any) -> tuple[str, ...]:
    """The formula of the operation, when the class states it in its docstring: ``z = x * y``."""
    words = (type(node).__dict__.get("__doc__") or "").strip().split("\n")[0]
    return (words.replace(" * ", "·"),) if re.fullmatch(r"\w+ = .{1,30}", words) else ()


def output_number(tensor: Any) -> int:
    """Which output of its grad_fn a tensor is."""
    number = getattr(tensor, "output_nr", 0)
    return number if isinstance(number, int) else 0
