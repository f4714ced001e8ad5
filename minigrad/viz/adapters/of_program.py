"""Programs as pictures: every block, forward ops and their grad ops side by side.

A program is anything with ``blocks``; a block has ``ops``, ``vars``, ``idx`` and ``parent``; an
operator has ``type``, ``inputs``, ``outputs``, ``attrs``, ``role``.  The course's own small
classes and `minigrad.static` both do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...grad_names import EMPTY, GRAD, base, is_gradient
from ..graph.format import format_shape
from ..graph.graph import Graph, Node, Region
from .follow import follow_names
from .inside import add_word, show_value
from .wiring import (
    Placed,
    Sheet,
    drawn,
    dropped_op,
    flat,
    gradient_look,
    is_scopes,
    loops,
    makes_gradients,
    op_kind,
)


def is_program(x: Any) -> bool:
    """Whether x has blocks of operators."""
    blocks = getattr(x, "blocks", None)
    if not isinstance(blocks, list | tuple) or not blocks:
        return False
    return all(hasattr(block, "ops") for block in blocks)


def of_program(
    program: Any, values: Mapping[str, Any] | None = None, detail: str = "auto", record: Any = None
) -> Graph:
    """The picture of a program: one region per block and side.

    ``values`` maps names to arrays (the scope after a run).  ``record`` is what that run did, step
    by step: every version of a name then has its value, and a block that did not run is grey.
    ``detail="pruned"`` also shows the grad ops that were dropped, from the records in
    ``program.pruned``: (type, reason, forward op).
    """
    facts = Facts(program, values or {}, record)
    first = BlockSheet(facts, Graph(), program.blocks[0])
    sheets = drawn("Program", first, _dropped(first) if detail == "pruned" else ())
    follow_names(first.graph, values or {})
    for sheet in sheets if record is not None else ():
        _not_run(facts, sheet)
    return first.graph


class BlockSheet(Sheet):
    """One block: a frame for each side."""

    kind = "block"

    def __init__(
        self, facts: Facts, graph: Graph, block: Any, owner: Placed | None = None, attr: str = ""
    ) -> None:
        super().__init__(graph, owner, attr)
        self.facts, self.block = facts, block
        self.loop = owner is not None and loops(owner.op)
        self.regions: dict[str, Region] = {}  # forward, backward, optimize

    def draw(self) -> None:
        """Each operator on the side that its role says, with the values that it wrote."""
        for number, op in enumerate(self.block.ops):
            role = getattr(op, "role", "forward")
            backward = self.backward or role == "backward" or makes_gradients(op)
            part = "backward" if backward else "optimize" if role == "optimize" else "forward"
            placed = self.add(op, number, self.region(part), part)
            placed.node.data["place"] = (self.block.idx, number)
            for name, value in self.facts.written_by.get((self.block.idx, number), {}).items():
                if name in placed.outs:
                    show_value(placed.outs[name], value)

    def inside(self, placed: Placed) -> Iterator[Sheet]:
        for attr, block in held_blocks(placed.op, self.facts.program):
            yield BlockSheet(self.facts, self.graph, block, placed, attr)

    def region(self, part: str) -> str:
        """The frame of one side of the block, made when its first operator comes."""
        if part not in self.regions:
            side = "forward" if part == "forward" else "backward"
            self.regions[part] = self.frame(self.label(part), side=side)
        return self.regions[part].id

    def label(self, part: str) -> str:
        """What stands on the frame of one side."""
        block, owner = self.block, self.owner
        if owner is None:
            made_by = "grad ops appended by append_backward"
            words = {"forward": "forward ops", "backward": made_by, "optimize": "optimizer ops"}
            return f"block {block.idx}: {words[part]}"
        parent = getattr(block.parent, "idx", block.parent)
        forward = getattr(block, "forward_block", -1)
        link = f"{self.attr} of" if forward in (-1, None) else f"forward block {forward}, in"
        holder = f"#{owner.node.number} {owner.op.type}"
        what = "loop body" if self.loop else "branch"
        if self.backward:
            what = "one step backwards" if self.loop else "branch backwards"
        what = "condition" if self.attr == "cond_block" else what
        return f"block {block.idx} (parent {parent}, {link} {holder}): {what}"

    def join(self) -> None:
        """Values that go round: the last version of this step is the first of the next."""
        super().join()
        if self.owner is not None and self.regions:
            label = next(iter(self.regions.values())).label
            self.owner.node.data.setdefault("holds", {})[self.block.idx] = label
        for name, nodes in self.versions.items() if self.loop else ():
            first, last = nodes[0], nodes[-1]
            from_outside = first.id not in self.writer
            if first is not last and from_outside:
                self.went_round(last, first)
            elif not self.backward and not from_outside and name not in self.block.vars:
                add_word(last, "next")  # the condition, above all: the loop itself reads it

    def shared(self, name: str) -> bool:
        return name not in self.facts.carried.get(self.block.idx, ())

    def handed_over(self) -> list[tuple[str, str]]:
        """Attrs of the loop say it as ``carry`` {start: end}, or as the lists ``carried`` and ``next``."""
        op = self.owner.op if self.owner is not None else None
        attrs = getattr(op, "attrs", None) or {}
        following = attrs.get("carry", {})
        if op is None or not self.backward:
            lists = zip(attrs.get("next", ()), attrs.get("carried", ()), strict=False)
            return [*((end, start) for start, end in following.items()), *lists]
        seeds = zip(following, op.inputs.get("out_grad", ()), strict=False)
        lists = zip(attrs.get("carried_grad", ()), attrs.get("next_grad", ()), strict=False)
        return [*((start + GRAD, end) for start, end in seeds), *lists]

    def look(self, name: str, written: bool) -> tuple[str, tuple[Any, ...], str, str]:
        if name == EMPTY:
            return "data", (), "no gradient", "no gradient is wanted here"
        home, var = find_var(self.facts.program, self.block, name)
        look = self.gradient(name) if is_gradient(name) else self.value(name, home, var, written)
        kind, word = look
        plain = kind == "scopes" or not self.facts.values
        held = () if plain else (self.facts.found_by(self.block, written).get(name),)
        shape = "" if held or kind == "scopes" else shape_text(var)
        words = [name] if var is None else [name, shape_words(var), f"block {home.idx}"]
        return kind, held, f"{shape} {word}".strip(), " | ".join(words)

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
            counts = any(word in dtype_text(var) for word in ("int", "bool"))
            return "data", "" if counts else "no grad" if written else "data"
        return ("value", "") if written else ("leaf", "")

    def gradient(self, name: str) -> tuple[str, str]:
        """(kind, word) of a name of the backward side."""
        home = base(name)
        return gradient_look(
            name, home in self.facts.written or home in self.facts.handed_on or is_gradient(home)
        )


def _dropped(first: BlockSheet) -> Iterator[tuple[Any, Node]]:
    """The grad ops that were dropped, each with its reason."""
    for kind, reason, forward_op in getattr(first.facts.program, "pruned", ()):
        region = first.region("backward")
        yield forward_op, dropped_op(first.graph, kind, f"pruned: {reason}", "backward", region)


def _not_run(facts: Facts, sheet: Any) -> None:
    """Blocks that the run did not enter, and operators that it did not reach, are grey."""
    entered = sheet.block.idx in facts.entered
    for region in sheet.regions.values() if not entered else ():
        region.label += ": did not run"
    for placed in sheet.placed:
        if placed.node.data["place"] not in facts.written_by:
            for node in (placed.node, *placed.outs.values()):
                node.state = "pending"
    for node in (n for nodes in sheet.versions.values() for n in nodes):
        if not entered and node.id not in sheet.writer:
            node.state = "pending"


def held_blocks(op: Any, program: Any) -> list[tuple[str, Any]]:
    """(attr, block) for the blocks an operator holds: attrs called ``…block``, index or block."""
    attrs = getattr(op, "attrs", None) or {}
    held = [(k, v) for k, v in attrs.items() if k.endswith("block") and v is not None]
    return [(k, program.blocks[b] if isinstance(b, int) else b) for k, b in held]


# ---- How the variables of a program look: which kind of node, the value or the shape, a few words ----


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

    def found_by(self, block: Any, written: bool) -> Mapping[str, Any]:
        """The values of names when a block was entered last; else those at the end of the run."""
        if self.record is None:
            return self.values
        return {} if written else self.entered.get(block.idx, {})


def scope_words(program: Any) -> dict[tuple[int, str], str]:
    """What the step scopes that an operator writes hold, by block and name."""
    words: dict[tuple[int, str], str] = {}
    for block in program.blocks:
        for op in block.ops:
            what = "values of each step" if loops(op) else "values of the branch"
            words |= {(block.idx, name): what for name in flat(op.outputs) if is_scopes(name)}
    return words


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
    return _dtype_name(getattr(var, "dtype", None))


@functools.cache  # NumPy makes the name anew each time
def _dtype_name(dtype: Any) -> str:
    return getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype or "")


def shape_words(var: Any) -> str:
    """Shape and dtype for the tooltip."""
    shape = getattr(var, "shape", None)
    known = "shape unknown" if shape is None else format_shape(shape)
    return f"{known} {dtype_text(var)}".rstrip()


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
