"""Programs as pictures: every block, forward ops and their grad ops side by side.

A program is anything with ``blocks``; a block has ``ops``, ``vars``, ``idx`` and ``parent``; an
operator has ``type``, ``inputs``, ``outputs``, ``attrs``, ``role``.  The course's own small
classes and `minigrad.static` both do.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ...grad_names import EMPTY, GRAD, base, is_gradient
from ..graph.format import format_shape
from ..graph.graph import Graph
from .formula import Values
from .wiring import (
    Look,
    Placed,
    Sheet,
    add_word,
    drawn,
    dropped_op,
    flat,
    gradient_look,
    is_scopes,
    loops,
    makes_gradients,
    op_kind,
)


def is_program(x) -> bool:
    """Whether x has blocks of operators."""
    blocks = getattr(x, "blocks", None)
    if not isinstance(blocks, list | tuple) or not blocks:
        return False
    return all(hasattr(block, "ops") for block in blocks)


def of_program(program, values: Values | None = None, detail: str = "auto", record=None) -> Graph:
    """The picture of a program: one region per block and side.

    ``values`` maps names to arrays (the scope after a run).  ``record`` is what that run did, step
    by step: every version of a name then has its value, and a block that did not run is grey.
    ``detail="pruned"`` also shows the grad ops that were dropped, from the records in
    ``program.pruned``: (type, reason, forward op).
    """
    first = BlockSheet(Graph(), Facts(program, values or {}, record), program.blocks[0])
    if detail == "pruned":
        first.pruned = getattr(program, "pruned", ())
    return drawn(first)


#: what stands on the frames of the first block
_PARTS = {
    "forward": "forward ops",
    "backward": "grad ops appended by append_backward",
    "optimize": "optimizer ops",
}


class BlockSheet(Sheet):
    """One block: a frame for each side."""

    kinds = ("Program", "blocks")
    pruned: Iterable[tuple[str, str, Any]] = ()  # of the first block, where they are asked for

    def __init__(
        self, graph: Graph, facts: "Facts", block, owner: Placed | None = None, attr: str = ""
    ) -> None:
        super().__init__(graph, owner, attr)
        self.facts, self.block, self.values = facts, block, facts.values
        self.loop = owner is not None and loops(owner.op)
        self.regions: dict[str, str] = {}  # forward, backward, optimize

    def draw(self) -> None:
        """Each operator on the side that its role says."""
        for number, op in enumerate(self.block.ops):
            part = role_of(op)
            if self.backward or makes_gradients(op):
                part = "backward"
            elif part not in _PARTS:  # as "loss"
                part = "forward"
            placed = self.add(op, number, self.region(part), part)
            placed.node.data["place"] = (self.block.idx, number)

    def inside(self, placed: Placed) -> Iterator[Sheet]:
        for attr, block in held_blocks(placed.op, self.facts.program):
            yield BlockSheet(self.graph, self.facts, block, placed, attr)

    def region(self, part: str) -> str:
        """The frame of one side of the block, made when its first operator comes."""
        if part not in self.regions:
            side = "forward" if part == "forward" else "backward"
            self.regions[part] = self.frame(self.label(part), side)
        return self.regions[part]

    def label(self, part: str) -> str:
        """What stands on the frame of one side."""
        block, owner = self.block, self.owner
        if owner is None:
            return f"block {block.idx}: {_PARTS[part]}"
        forward = getattr(block, "forward_block", -1)
        link = f"{self.attr} of" if forward == -1 else f"forward block {forward}, in"
        holder = f"#{owner.node.number} {owner.op.type}"
        if self.attr == "cond_block":
            what = "condition"
        elif self.backward:
            what = "one step backwards" if self.loop else "branch backwards"
        else:
            what = "loop body" if self.loop else "branch"
        return f"block {block.idx} (parent {block.parent}, {link} {holder}): {what}"

    def join(self) -> None:
        """Values that go round: the last version of this step is the first of the next."""
        super().join()
        if self.loop:
            for name, nodes in self.versions.items():
                first, last = nodes[0], nodes[-1]
                if first.id not in self.writer:
                    if first is not last:  # it comes from outside
                        self.went_round(last, first)
                elif not self.backward and name not in self.block.vars:
                    add_word(last, "next")  # the condition, above all: the loop itself reads it
        if self.facts.record is not None:
            self.ran()
        for kind, reason, op in self.pruned:
            node = dropped_op(self.graph, kind, f"pruned: {reason}", self.region("backward"))
            self.dropped.append((op, node))

    def ran(self) -> None:
        """What a run noted of each operator: later ones do not overwrite that.  A block that it did not
        enter, and operators that it did not reach, are grey.
        """
        grey = []
        for placed in self.placed:
            noted = self.facts.written_by.get(placed.node.data["place"])
            if noted is None:
                grey += [placed.node, *placed.outs.values()]
                continue
            for node in placed.outs.values():
                if node.name in noted and node.kind != "scopes":
                    self.held[node.id] = (noted[node.name],)
        if self.block.idx not in self.facts.entered:
            grey += [node for nodes in self.versions.values() for node in nodes]
            for region in self.regions.values():
                self.graph.regions[region].label += ": did not run"
        for node in grey:
            node.state = "pending"

    def shared(self, name: str) -> bool:
        return name not in self.facts.carried[self.block.idx]

    def handed_over(self) -> list[tuple[str, str]]:
        """Attrs of the loop say it as ``carry`` {start: end}, or as the lists ``carried`` and ``next``."""
        assert self.owner is not None  # it holds a loop's body
        op, attrs = self.owner.op, self.owner.op.attrs
        carry = attrs.get("carry", {})
        ends = [*attrs.get("next", ()), *carry.values()]
        starts = [*attrs.get("carried", ()), *carry]
        if self.backward:
            ends = [*attrs.get("carried_grad", ()), *(start + GRAD for start in carry)]
            starts = attrs.get("next_grad", op.inputs.get("out_grad", ()))
        return [*zip(ends, starts, strict=False)]

    def look(self, name: str, written: bool) -> Look:
        if name == EMPTY:
            return "data", (), "no gradient", "no gradient is wanted here"
        home, var = find_var(self.facts.program, self.block, name)
        if is_gradient(name):
            of = base(name)
            kind, word = gradient_look(name, of in self.facts.written or is_gradient(of))
        else:
            kind, word = self.value(name, home, var, written)
        short, full = shape_texts(var)
        tooltip = name if var is None else f"{name} | {full} | block {home.idx}"
        if kind == "scopes":
            return kind, (), word, tooltip
        if not self.values:
            return kind, (), f"{short} {word}".strip(), tooltip
        known = self.values
        if self.facts.record is not None:
            known = {} if written else self.facts.entered.get(self.block.idx, {})
        return kind, (known.get(name),), word, tooltip

    def value(self, name: str, home, var, written: bool) -> tuple[str, str]:
        """(kind, word) of a name of the forward side."""
        stopped = getattr(var, "stop_gradient", False)
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
            dtype = dtype_text(var)
            if "int" in dtype or "bool" in dtype:  # it counts, or says yes or no
                return "data", ""
            return "data", "no grad" if written else "data"
        return ("value" if written else "leaf"), ""


# ---- What is known of a program before anything is drawn -----------------------------------------


class Facts:
    """What the operators of a program say, and the values that are known of a run: ``record`` is what that
    did, step by step.
    """

    def __init__(self, program, values: Values, record) -> None:
        self.program, self.values, self.record = program, values, record
        steps = record.steps if record is not None else ()
        #: what a block found last, and what an operator wrote last, by block and number
        self.entered = {s.block: s.values for s in steps if s.kind == "enter"}
        self.written_by = {(s.block, s.number): s.values for s in steps if s.kind == "op"}
        #: what some operator computes or hands to its block; no updates of parameters
        self.written: set[str] = set()
        self.carried: dict[int, set[str]] = defaultdict(set)  # block → what its operator puts in
        self.scopes: dict[tuple[int, str], str] = {}  # what step scopes hold, by block and name
        for block in program.blocks:
            for op in block.ops:
                names = flat(op.outputs)
                if role_of(op) != "optimize":
                    self.written.update(names)
                held = "values of each step" if loops(op) else "values of the branch"
                self.scopes |= {(block.idx, name): held for name in names if is_scopes(name)}
                for _, inner in held_blocks(op, program):
                    for attr in ("carry", "carried", "steps"):
                        self.carried[inner.idx].update(op.attrs.get(attr, ()))
                    self.written |= self.carried[inner.idx]
        #: what the backward pass starts from: what a seed is the gradient of, ops with role "loss"
        self.loss: set[str] = set()
        for op in program.blocks[0].ops:
            if role_of(op) == "loss" or (makes_gradients(op) and op_kind(op, True) == "seed"):
                self.loss.update(map(base, flat(op.outputs)))


def role_of(op) -> str:
    """ "forward", "backward", "loss" or "optimize"."""
    return str(getattr(op, "role", "forward"))


def held_blocks(op, program) -> list[tuple[str, Any]]:
    """(attr, block) for the blocks an operator holds: the indices in attrs called ``…block``."""
    return [(attr, program.blocks[k]) for attr, k in op.attrs.items() if attr.endswith("block")]


# ---- one variable ------------------------------------------------------------------------------


def find_var(program, block, name: str) -> tuple[Any, Any]:
    """(block, variable) of a name, looked up through the parents; (block, None) if undeclared."""
    home = block
    while name not in home.vars:
        if home.parent < 0:
            return block, None
        home = program.blocks[home.parent]
    return home, home.vars[name]


def shape_texts(var) -> tuple[str, str]:
    """``[2,2]``, with a dtype that is no float's; and for the tooltip with any dtype."""
    shape, dtype = getattr(var, "shape", None), dtype_text(var)
    if shape is None:
        return "", f"shape unknown {dtype}".rstrip()
    text = format_shape(shape)
    full = f"{text} {dtype}".rstrip()
    if not dtype or "float" in dtype:
        return text, full
    return (full if shape else dtype), full


def dtype_text(var) -> str:
    """``int64``, whether the dtype is text, a NumPy dtype or its class."""
    dtype = getattr(var, "dtype", None)
    return getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype or "")
