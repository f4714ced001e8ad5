"""How the variables of a program look: which kind of node, the value or the shape, a few words."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .format import NOT_YET, explain_value, format_shape, format_value
from .spelling import (
    EMPTY,
    base,
    flat,
    is_gradient,
    is_scopes,
    makes_gradients,
    op_kind,
)
from .wiring import loops


@dataclass
class Facts:
    """What is known about a program before anything is drawn."""

    program: Any
    values: Mapping[str, Any] = field(default_factory=dict)
    record: Any = None  # what a run of this program did, step by step

    def __post_init__(self) -> None:
        self.written_by: dict[tuple[int, int], Mapping[str, Any]] = {}  # (block, operator) last
        self.entered: dict[int, Mapping[str, Any]] = {}  # what a block found, last
        for step in self.record.steps if self.record is not None else ():
            if step.kind == "enter":
                self.entered[step.block] = step.values
            elif step.kind == "op":
                self.written_by[step.block, step.number] = step.values
        self.loss = loss_names(self.program)
        self.written = written_names(self.program)
        self.carried = carried_names(self.program)
        self.handed_on = {name for names in self.carried.values() for name in names}
        self.scopes = scope_words(self.program)

    def outputs(self, block: int, number: int) -> Mapping[str, Any]:
        """What an operator wrote when it ran last; nothing where that is not known."""
        return self.written_by.get((block, number), {})

    def found_by(self, block: Any, written: bool) -> Mapping[str, Any]:
        """The values of names when a block was entered last; else those at the end of the run."""
        if self.record is None:
            return self.values
        return {} if written else self.entered.get(block.idx, {})


@dataclass
class Looks:
    """Kind, value, words and tooltip of the names of one block."""

    facts: Facts
    block: Any

    def __call__(self, name: str, written: bool) -> tuple[str, str, str, str]:
        if name == EMPTY:
            return "data", "", "no gradient", "no gradient is wanted here"
        home, var = find_var(self.facts.program, self.block, name)
        look = self.gradient(name) if is_gradient(name) else self.value(name, home, var, written)
        kind, word = look
        values = self.facts.found_by(self.block, written)
        value = "" if kind == "scopes" or not self.facts.values else value_text(values, name)
        shape = "" if value or kind == "scopes" else shape_text(var)
        return kind, value, f"{shape} {word}".strip(), self.tooltip(name, home, var, values)

    def tooltip(self, name: str, home: Any, var: Any, values: Mapping[str, Any]) -> str:
        """Whole name, shape, dtype, home block, value."""
        words = [name] if var is None else [name, shape_words(var), f"block {home.idx}"]
        return " | ".join([*words, *([explain_value(values[name])] if name in values else [])])

    def value(self, name: str, home: Any, var: Any, written: bool) -> tuple[str, str]:
        """(kind, word) of a name of the forward side."""
        stopped = bool(getattr(var, "stop_gradient", False))
        if is_scopes(name):
            return "scopes", self.facts.scopes.get((home.idx, name), "")
        if not written and name in self.facts.carried.get(self.block.idx, ()):
            return ("data" if stopped else "value"), "carried"
        if not written and home is not self.block:
            return "data", f"block {home.idx}"
        if name in self.facts.loss and home is self.facts.program.blocks[0]:
            return "output", ""
        if getattr(var, "persistable", False) and not stopped:
            return "leaf", "updated" if written else "parameter"
        if stopped:
            return "data", "" if counts(var) else "no grad" if written else "data"
        return ("value", "") if written else ("leaf", "")

    def gradient(self, name: str) -> tuple[str, str]:
        """(kind, word) of a name of the backward side."""
        if "@RENAME@" in name:
            return "renamed", ""
        if "@ZERO" in name:
            return "zero", "zeros"
        home = base(name)
        made = home in self.facts.written or home in self.facts.handed_on or is_gradient(home)
        return ("gradient" if made else "leaf_gradient"), ""


def scope_words(program: Any) -> dict[tuple[int, str], str]:
    """What the step scopes that an operator writes hold, by block and name."""
    ops = [(block.idx, op) for block in program.blocks for op in block.ops]
    words = {False: "values of the branch", True: "values of each iteration"}
    return {(b, n): words[loops(op)] for b, op in ops for n in flat(op.outputs) if is_scopes(n)}


def carried_names(program: Any) -> dict[int, set[str]]:
    """Names an operator puts into the blocks it holds: attrs ``carry``, ``carried``, ``steps``."""
    found: dict[int, set[str]] = {}
    for op in (op for block in program.blocks for op in block.ops):
        attrs = getattr(op, "attrs", None) or {}
        for key, held in attrs.items():
            if key.endswith("block") and held is not None:
                names = found.setdefault(getattr(held, "idx", held), set())
                names.update(*(attrs.get(word, ()) for word in ("carry", "carried", "steps")))
    return found


# ---- one variable ------------------------------------------------------------------------------


def find_var(program: Any, block: Any, name: str) -> tuple[Any, Any]:
    """(block, variable) of a name, looked up through the parents; (block, None) if undeclared."""
    at = block
    while True:
        if name in at.vars:
            return at, at.vars[name]
        if at.parent is None or (isinstance(at.parent, int) and at.parent < 0):
            return block, None
        at = program.blocks[at.parent] if isinstance(at.parent, int) else at.parent


def counts(var: Any) -> bool:
    """Whether a variable holds counters or truth values: nobody expects a gradient there."""
    return any(word in dtype_text(var) for word in ("int", "bool"))


def shape_text(var: Any) -> str:
    """``[2,2]``, and the dtype where it is not a float's."""
    shape = getattr(var, "shape", None)
    if shape is None:
        return ""
    dtype = dtype_text(var)
    special = dtype if dtype and "float" not in dtype else ""
    return special if special and not shape else f"{format_shape(shape)} {special}".strip()


def dtype_text(var: Any) -> str:
    """``int64``, whether the dtype is text, a NumPy dtype or its class."""
    dtype = getattr(var, "dtype", None)
    return _dtype_name(dtype) if isinstance(dtype, (np.dtype, type)) else str(dtype or "")


@functools.cache  # NumPy makes the name anew each time
def _dtype_name(dtype: Any) -> str:
    return getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)


def shape_words(var: Any) -> str:
    """Shape and dtype for the tooltip."""
    shape = getattr(var, "shape", None)
    known = "shape unknown" if shape is None else format_shape(shape)
    return f"{known} {dtype_text(var)}".rstrip()


def value_text(values: Mapping[str, Any], name: str) -> str:
    """The value of a name; an em dash if only others have one."""
    return format_value(values[name]) if name in values else NOT_YET


# ---- the whole program -------------------------------------------------------------------------


def loss_names(program: Any) -> set[str]:
    """What the backward pass starts from: what a seed is the gradient of, ops with role "loss"."""
    names: set[str] = set()
    for op in program.blocks[0].ops:
        seeds = makes_gradients(op) and op_kind(op, backward=True) == "seed"
        if seeds or getattr(op, "role", "forward") == "loss":
            names.update(map(base, flat(op.outputs)))
    return {n for n in names if not is_gradient(n)}


def written_names(program: Any) -> set[str]:
    """Every name some op computes; updates of parameters do not count."""
    return {
        name
        for block in program.blocks
        for op in block.ops
        if getattr(op, "role", "forward") != "optimize"
        for name in flat(op.outputs)
    }
