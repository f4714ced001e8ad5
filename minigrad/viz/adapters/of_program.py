"""Programs as pictures: every block, forward ops and their grad ops side by side.

A program is anything with ``blocks``; a block has ``ops``, ``vars``, ``idx`` and ``parent``; an
operator has ``type``, ``inputs``, ``outputs``, ``attrs``, ``role``.  The course's own small
classes and `minigrad.static` both do.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...grad_names import EMPTY, GRAD, base, is_gradient
from ..graph.format import format_shape
from ..graph.graph import Graph, Node, Region
from .follow import follow_names
from .formula import Values
from .inside import add_word, show_value
from .wiring import (
    Look,
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
    blocks: Any = getattr(x, "blocks", None)
    listed = isinstance(blocks, list | tuple) and len(blocks) > 0
    return listed and all(hasattr(block, "ops") for block in blocks)


def of_program(
    program: Any, values: Values | None = None, detail: str = "auto", record: Any = None
) -> Graph:
    """The picture of a program: one region per block and side.

    ``values`` maps names to arrays (the scope after a run).  ``record`` is what that run did, step
    by step: every version of a name then has its value, and a block that did not run is grey.
    ``detail="pruned"`` also shows the grad ops that were dropped, from the records in
    ``program.pruned``: (type, reason, forward op).
    """
    facts = Facts(Graph(), program, values or {}, record)
    first = BlockSheet(facts, program.blocks[0])
    sheets = drawn("Program", first, _dropped(first) if detail == "pruned" else ())
    follow_names(facts.graph, facts.values)
    for sheet in sheets if record is not None else ():
        _not_run(facts, sheet)
    return facts.graph


class BlockSheet(Sheet):
    """One block: a frame for each side."""

    kind = "block"

    def __init__(
        self, facts: "Facts", block: Any, owner: Placed | None = None, attr: str = ""
    ) -> None:
        super().__init__(facts.graph, owner, attr)
        self.facts, self.block = facts, block
        self.loop = owner is not None and loops(owner.op)
        self.regions: dict[str, Region] = {}  # forward, backward, optimize

    def draw(self) -> None:
        """Each operator on the side that its role says, with the values that it wrote."""
        for number, op in enumerate(self.block.ops):
            role = role_of(op)
            backward = self.backward or role == "backward" or makes_gradients(op)
            part = "backward" if backward else "optimize" if role == "optimize" else "forward"
            placed = self.add(op, number, self.region(part), part)
            placed.node.data["place"] = (self.block.idx, number)
            for name, value in self.facts.written_by.get((self.block.idx, number), {}).items():
                if name in placed.outs:
                    show_value(placed.outs[name], value)

    def inside(self, placed: Placed) -> Iterator[Sheet]:
        for attr, block in held_blocks(placed.op, self.facts.program):
            yield BlockSheet(self.facts, block, placed, attr)

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
        forward = getattr(block, "forward_block", -1)
        link = f"{self.attr} of" if forward == -1 else f"forward block {forward}, in"
        holder = f"#{owner.node.number} {owner.op.type}"
        what = "loop body" if self.loop else "branch"
        if self.backward:
            what = "one step backwards" if self.loop else "branch backwards"
        what = "condition" if self.attr == "cond_block" else what
        return f"block {block.idx} (parent {block.parent}, {link} {holder}): {what}"

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
        return name not in self.facts.carried[self.block.idx]

    def handed_over(self) -> list[tuple[str, str]]:
        """Attrs of the loop say it as ``carry`` {start: end}, or as the lists ``carried`` and ``next``."""
        assert self.owner is not None  # it holds a loop's body
        op, attrs = self.owner.op, self.owner.op.attrs
        following = attrs.get("carry", {})
        if self.backward:
            seeds = zip(following, op.inputs.get("out_grad", ()), strict=False)
            pairs = [(start + GRAD, end) for start, end in seeds]
            ends, starts = attrs.get("carried_grad", ()), attrs.get("next_grad", ())
        else:
            pairs = [(end, start) for start, end in following.items()]
            ends, starts = attrs.get("next", ()), attrs.get("carried", ())
        return [*pairs, *zip(ends, starts, strict=False)]

    def look(self, name: str, written: bool) -> Look:
        if name == EMPTY:
            return "data", (), "no gradient", "no gradient is wanted here"
        home, var = find_var(self.facts.program, self.block, name)
        if is_gradient(name):
            kind, word = self.gradient(name)
        else:
            kind, word = self.value(name, home, var, written)
        plain = kind == "scopes" or not self.facts.values
        held = () if plain else (self.facts.found_by(self.block, written).get(name),)
        short, full = shape_texts(var)
        word = word if held or kind == "scopes" else f"{short} {word}".strip()
        words = [name] if var is None else [name, full, f"block {home.idx}"]
        return kind, held, word, " | ".join(words)

    def value(self, name: str, home: Any, var: Any, written: bool) -> tuple[str, str]:
        """(kind, word) of a name of the forward side."""
        stopped = bool(getattr(var, "stop_gradient", False))
        if is_scopes(name):
            return "scopes", self.facts.scopes.get((home.idx, name), "")
        if not written and not self.shared(name):
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
        handed_on = any(home in names for names in self.facts.carried.values())
        return gradient_look(name, home in self.facts.written or handed_on or is_gradient(home))


def _dropped(first: BlockSheet) -> Iterator[tuple[Any, Node]]:
    """The grad ops that were dropped, each with its reason."""
    for kind, reason, forward_op in getattr(first.facts.program, "pruned", ()):
        region = first.region("backward")
        yield forward_op, dropped_op(first.graph, kind, f"pruned: {reason}", "backward", region)


def _not_run(facts: "Facts", sheet: Any) -> None:
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


# ---- What is known of a program before anything is drawn -----------------------------------------


@dataclass
class Facts:
    """What the operators of a program say, and the values that are known of a run."""

    graph: Graph
    program: Any
    values: Values
    record: Any  # what a run of this program did, step by step

    def __post_init__(self) -> None:
        self.written_by: dict[tuple[int, int], Values] = {}  # (block, operator) last
        self.entered: dict[int, Values] = {}  # what a block found, last
        for step in self.record.steps if self.record is not None else ():
            if step.kind == "enter":
                self.entered[step.block] = step.values
            elif step.kind == "op":
                self.written_by[step.block, step.number] = step.values
        self.written: set[str] = set()  # what some operator computes; no updates of parameters
        self.carried: dict[int, set[str]] = defaultdict(set)  # block → what its operator puts in
        self.scopes: dict[tuple[int, str], str] = {}  # what step scopes hold, by block and name
        for block in self.program.blocks:
            for op in block.ops:
                self._note(op, block.idx)
        #: what the backward pass starts from: what a seed is the gradient of, ops with role "loss"
        self.loss = {
            base(name)
            for op in self.program.blocks[0].ops
            if role_of(op) == "loss" or (makes_gradients(op) and op_kind(op, True) == "seed")
            for name in flat(op.outputs)
        }

    def _note(self, op: Any, block: int) -> None:
        names = flat(op.outputs)
        if role_of(op) != "optimize":
            self.written.update(names)
        held = "values of each step" if loops(op) else "values of the branch"
        self.scopes |= {(block, name): held for name in names if is_scopes(name)}
        for _, inner in held_blocks(op, self.program):
            for attr in ("carry", "carried", "steps"):
                self.carried[inner.idx].update(op.attrs.get(attr, ()))

    def found_by(self, block: Any, written: bool) -> Values:
        """The values of names when a block was entered last; else those at the end of the run."""
        if self.record is None:
            return self.values
        return {} if written else self.entered.get(block.idx, {})


def role_of(op: Any) -> str:
    """ "forward", "backward", "loss" or "optimize"."""
    return str(getattr(op, "role", "forward"))


def held_blocks(op: Any, program: Any) -> list[tuple[str, Any]]:
    """(attr, block) for the blocks an operator holds: the indices in attrs called ``…block``."""
    return [(attr, program.blocks[k]) for attr, k in op.attrs.items() if attr.endswith("block")]


# ---- one variable ------------------------------------------------------------------------------


def find_var(program: Any, block: Any, name: str) -> tuple[Any, Any]:
    """(block, variable) of a name, looked up through the parents; (block, None) if undeclared."""
    home = block
    while name not in home.vars:
        if home.parent < 0:
            return block, None
        home = program.blocks[home.parent]
    return home, home.vars[name]


def shape_texts(var: Any) -> tuple[str, str]:
    """``[2,2]``, with a dtype that is no float's; and for the tooltip with any dtype."""
    shape, dtype = getattr(var, "shape", None), dtype_text(var)
    if shape is None:
        return "", f"shape unknown {dtype}".rstrip()
    text, special = format_shape(shape), "" if "float" in dtype else dtype
    short = special if special and not shape else f"{text} {special}"
    return short.rstrip(), f"{text} {dtype}".rstrip()


def dtype_text(var: Any) -> str:
    """``int64``, whether the dtype is text, a NumPy dtype or its class."""
    dtype = getattr(var, "dtype", None)
    return getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype or "")
