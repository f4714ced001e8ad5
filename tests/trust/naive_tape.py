"""A naive engine: dictionaries, a tape, and no cleverness.  What minigrad's engine must agree with.

Every value has a number.  ``tape`` holds one `Entry` per operation in the order they were made; backward walks it
from the end.  Gradients are values of the same tape, so a gradient can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Refused(Exception):
    """What the engine must refuse, too."""


@dataclass(eq=False)
class Entry:
    """One operation on the tape: numbers of inputs and outputs, and what its gradient needs."""

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    reads: frozenset[int]  # the values its gradient reads, as numbers
    freed: bool = False


@dataclass(eq=False)
class Tape:
    """Values by number, and everything that is known about them."""

    values: dict[int, np.ndarray] = field(default_factory=dict)
    wanted: dict[int, bool] = field(default_factory=dict)  # number → requires_grad
    leaves: set[int] = field(default_factory=set)
    grads: dict[int, int | None] = field(default_factory=dict)  # number → number of its gradient
    retained: set[int] = field(default_factory=set)
    hooks: dict[int, list[float]] = field(default_factory=dict)  # number → factors
    changed: set[tuple[int, int]] = field(default_factory=set)  # (entry, value) stale since
    views: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)  # who shares memory
    tape: list[Entry] = field(default_factory=list)
    recording: bool = True

    def number(self, value: Any, wanted: bool = False, leaf: bool = True) -> int:
        made = len(self.values)
        self.values[made] = np.array(value, float)
        self.wanted[made] = wanted
        self.grads[made] = None
        if leaf:
            self.leaves.add(made)
        return made

    def apply(self, op: str, *inputs: int) -> Any:
        """Run an operation; one number, or a list of them."""
        results = FORWARD[op](*(self.values[i] for i in inputs))
        several = isinstance(results, list)
        wanted = self.recording and any(self.wanted[i] for i in inputs)
        outs = [self.number(r, wanted, not wanted) for r in (results if several else [results])]
        if wanted:
            reads = READS[op](self, inputs, outs)
            self.tape.append(Entry(op, inputs, tuple(outs), frozenset(reads)))
        if op == "spread":
            self.view(outs[0], inputs[0], FORWARD[op])
        return outs if several else outs[0]

    # -- backward --------------------------------------------------------------------------

    def walk(
        self,
        roots: list[int],
        targets: list[int] | None,
        retain: bool,
        create: bool,
        writes: bool = False,
    ) -> dict[int, int]:
        """The gradient of every value that is reached, as numbers."""
        entries = self._to_run(roots, targets)
        for e in entries:
            if e.freed and e.reads:
                raise Refused(f"{e.op} was freed")
            if not e.freed and any((id(e), r) in self.changed for r in e.reads):
                raise Refused(f"a value of {e.op} has changed")
        before, self.recording = self.recording, create
        try:
            found, kept = self._run(roots, targets, entries)
        finally:
            self.recording = before
        for number in kept:  # an input that is retained, too, gets its gradient once
            if not (writes and number in (targets or ())):
                self.accumulate(number, found[number], create)
        for e in entries:
            e.freed = e.freed or not retain
        return found

    def _to_run(self, roots: list[int], targets: list[int] | None) -> list[Entry]:
        reached, chosen = set(roots), []
        for e in reversed(self.tape):
            if reached & set(e.outputs):
                chosen.append(e)
                reached |= {i for i in e.inputs if self.wanted[i]}
        if targets is None:
            return chosen
        needed, on_the_way = self.with_siblings(targets), []
        for e in reversed(chosen):  # an operation runs if something behind it is asked for
            if needed & {i for i in e.inputs if self.wanted[i]}:
                needed |= set(e.outputs)
                on_the_way.append(e)
        return on_the_way[::-1]

    def with_siblings(self, numbers: list[int]) -> set[int]:
        """These values and all others that the same operations made."""
        return {*numbers, *(o for e in self.tape if {*numbers} & {*e.outputs} for o in e.outputs)}

    def _run(self, roots: list[int], targets: list[int] | None, entries: list[Entry]) -> Any:
        found: dict[int, int] = {}
        done: set[int] = set()
        kept: list[int] = []

        def add(number: int, g: int) -> None:
            found[number] = self.apply("add", found[number], g) if number in found else g

        def complete(number: int) -> None:
            if number in found and number not in done:
                done.add(number)
                for factor in self.hooks.get(number, ()):
                    found[number] = self.apply("mul", found[number], self.number(factor))
                if number in self.retained:
                    kept.append(number)

        for root in roots:
            add(root, self.number(np.ones_like(self.values[root])))
        for e in entries:
            for o in e.outputs:
                complete(o)
            given = [found.get(o) for o in e.outputs]
            if all(g is None for g in given):
                continue
            filled = [
                self.number(np.zeros_like(self.values[o])) if g is None else g
                for o, g in zip(e.outputs, given, strict=True)
            ]
            grads = BACKWARD[e.op](self, e, *filled)
            for i, g in zip(e.inputs, grads, strict=True):
                if self.wanted[i]:
                    add(i, self.fitted(g, i))
        for number in list(found) if targets is None else self.with_siblings(targets):
            complete(number)
        return found, kept

    def fitted(self, g: int, like: int) -> int:
        """A gradient in the shape of its value."""
        lead = self.values[g].ndim - self.values[like].ndim
        return self.apply("sum", g) if lead else g

    def backward(
        self, roots: list[int], retain: bool, create: bool, inputs: list[int] | None
    ) -> None:
        """Add the gradients to those of the leaves, or of the inputs."""
        found = self.walk(roots, inputs, retain, create, True)
        for number in dict.fromkeys(self.leaves if inputs is None else inputs):
            if number in found and self.wanted[number]:
                self.accumulate(number, found[number], create)

    def accumulate(self, number: int, g: int, create: bool) -> None:
        """Add to the gradient of a value."""
        old = self.grads[number]
        self.recording, before = create or self._has_graph(old), self.recording
        self.grads[number] = g if old is None else self.apply("add", old, g)
        self.recording = before

    def _has_graph(self, number: int | None) -> bool:
        return number is not None and self.wanted[number]

    def change(self, number: int, value: np.ndarray) -> None:
        """Write into a value: its views change with it, and whoever reads them in backward is stale."""
        self.changed |= {(id(e), number) for e in self.tape if number in e.reads}
        self.values[number] = value
        for view, function in self.views.get(number, ()):
            self.change(view, function(value))

    def view(self, number: int, of: int, function: Callable[[np.ndarray], Any]) -> None:
        """Remember that a value shares the memory of another."""
        self.views.setdefault(of, []).append((number, function))


# -- the operations ------------------------------------------------------------------------

FORWARD: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "neg": lambda x: -x,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sum": np.sum,
    "spread": lambda x: np.full(3, x),
    "stack": lambda *xs: np.stack(xs),
    "unbind": lambda x: [np.array(v) for v in x],
}


def _spread_like(t: Tape, g: int, like: int) -> int:
    return t.apply("spread", g) if t.values[like].ndim else g


BACKWARD: dict[str, Callable[..., Any]] = {
    "add": lambda t, e, g: (g, g),
    "sub": lambda t, e, g: (g, t.apply("neg", g)),
    "mul": lambda t, e, g: (t.apply("mul", g, e.inputs[1]), t.apply("mul", g, e.inputs[0])),
    "neg": lambda t, e, g: (t.apply("neg", g),),
    "sin": lambda t, e, g: (t.apply("mul", g, t.apply("cos", e.inputs[0])),),
    "cos": lambda t, e, g: (t.apply("neg", t.apply("mul", g, t.apply("sin", e.inputs[0]))),),
    "tanh": lambda t, e, g: (
        t.apply("sub", g, t.apply("mul", g, t.apply("mul", e.outputs[0], e.outputs[0]))),
    ),
    "sum": lambda t, e, g: (_spread_like(t, g, e.inputs[0]),),
    "spread": lambda t, e, g: (t.apply("sum", g),),
    "stack": lambda t, e, g: tuple(t.apply("unbind", g)),
    "unbind": lambda t, e, *gs: (t.apply("stack", *gs),),
}


def _product_reads(t: Tape, inputs: Any, outs: Any) -> set[int]:
    x, y = inputs
    return {n for n, other in ((y, x), (x, y)) if t.wanted[other]}


def _nothing(t: Tape, inputs: Any, outs: Any) -> set[int]:
    return set()


READS: dict[str, Callable[..., set[int]]] = dict.fromkeys(FORWARD, _nothing) | {
    "mul": _product_reads,
    "sin": lambda t, inputs, outs: set(inputs),
    "cos": lambda t, inputs, outs: set(inputs),
    "tanh": lambda t, inputs, outs: set(outs),
}
