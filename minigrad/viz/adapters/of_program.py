"""Programs as pictures: every block, forward ops and their grad ops side by side.

A program is anything with ``blocks``; a block has ``ops``, ``vars``, ``idx`` and ``parent``; an
operator has ``type``, ``inputs``, ``outputs``, ``attrs``, ``role``.  The course's own small
classes and `minigrad.static` both do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...grad_names import EMPTY, GRAD, base, is_gradient
from ..graph.format import explain_value, format_shape, format_value
from ..graph.graph import Graph, Node, Region
from .follow import follow_names
from .inside import add_word, show_value
from .wiring import (
    Placed,
    Wiring,
    flat,
    gradient_look,
    is_scopes,
    link_rest,
    loops,
    makes_gradients,
    op_kind,
    saved_lines,
    told,
    twins,
)


def is_program(x: Any) -> bool:
    """Whether x has blocks of operators."""
    blocks = getattr(x, "blocks", None)
    if not isinstance(blocks, list | tuple) or not blocks:
        return False
    return all(hasattr(block, "ops") for block in blocks)


def of_program(
    program: Any,
    values: Mapping[str, Any] | None = None,
    detail: str = "auto",
    record: Any = None,
) -> Graph:
    """The picture of a program: one region per block and side.

    ``values`` maps names to arrays (the scope after a run).  ``record`` is what that run did, step
    by step: every version of a name then has its value, and a block that did not run is grey.
    ``detail="pruned"`` also shows the grad ops that were dropped, from the records in
    ``program.pruned``: (type, reason, forward op).
    """
    drawing = ProgramDrawing(Facts(program, values or {}, record))
    drawing.blocks()
    if detail == "pruned":
        drawing.ghosts(getattr(program, "pruned", ()))
    drawing.mirror()
    follow_names(drawing.graph, values or {})
    drawing.not_run()
    told(drawing.graph, "Program", {idx: s.wiring for idx, s in drawing.sheets.items()})
    return drawing.graph


@dataclass
class Sheet:
    """One block on paper: its names, its regions, and the operator that holds it."""

    block: Any
    wiring: Wiring
    owner: Placed | None = None
    attr: str = ""  # the attr of the owner that names the block
    regions: dict[str, Region] = field(default_factory=dict)  # forward, backward, optimize

    @property
    def backward(self) -> bool:
        return self.owner is not None and self.owner.backward

    @property
    def loop(self) -> bool:
        return self.owner is not None and loops(self.owner.op)


class ProgramDrawing:
    """Builds the graph of one program, block by block, from block 0 down."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.program = facts, facts.program
        self.graph = Graph()
        self.sheets: dict[int, Sheet] = {}

    # -- blocks

    def blocks(self) -> None:
        """Draw block 0, then the blocks its operators hold, and so on; never by recursion."""
        waiting: list[tuple[Any, Placed | None, str]] = [(self.program.blocks[0], None, "")]
        for block, owner, attr in waiting:  # grows while it is walked
            wiring = Wiring(self.graph, Looks(self.facts, block))
            sheet = self.sheets[block.idx] = Sheet(block, wiring, owner, attr)
            for number, op in enumerate(block.ops):
                placed = self.place(sheet, op, number)
                for name, held in held_blocks(op, self.program):
                    placed.node.bold = True
                    waiting.append((held, placed, name))
        for sheet in self.sheets.values():
            sheet.wiring.finish({r.id: (r.id,) for r in sheet.regions.values()} | {None: ()})
            self.join(sheet)

    def place(self, sheet: Sheet, op: Any, number: int) -> Placed:
        """One operator in its block, on the side that its role says, with the values that it wrote."""
        role = getattr(op, "role", "forward")
        backward = sheet.backward or role == "backward" or makes_gradients(op)
        part = "backward" if backward else "optimize" if role == "optimize" else "forward"
        placed = sheet.wiring.add(
            op,
            number,
            self.region(sheet, part),
            backward=backward,
            update=part == "optimize",
        )
        placed.node.data["place"] = (sheet.block.idx, number)
        for name, value in self.facts.written_by.get((sheet.block.idx, number), {}).items():
            if name in placed.outs:
                show_value(placed.outs[name], value)
        return placed

    def region(self, sheet: Sheet, part: str) -> str:
        """The frame of one side of a block, made when its first operator comes."""
        if part not in sheet.regions:
            side = "forward" if part == "forward" else "backward"
            sheet.regions[part] = self.graph.region(
                region_label(sheet, part), side=side, strong=sheet.owner is not None
            )
        return sheet.regions[part].id

    def join(self, sheet: Sheet) -> None:
        """The line from an operator to the block it holds, and the values that go round in it."""
        nodes = [n for p in sheet.wiring.placed for n in (*p.ins.values(), p.node)]
        if sheet.owner is not None and nodes:
            self.graph.edge(sheet.owner.node, nodes[0], "sub_block")
        if sheet.owner is not None and sheet.regions:
            label = next(iter(sheet.regions.values())).label
            sheet.owner.node.data.setdefault("holds", {})[sheet.block.idx] = label
        if sheet.loop:
            carry(self.graph, sheet)

    # -- both sides

    def ghosts(self, records: Iterable[Any]) -> None:
        """The grad ops that were dropped, each with its reason."""
        sheet = self.sheets[self.program.blocks[0].idx]
        for kind, reason, forward_op in records:
            node = self.graph.node(
                "pruned",
                kind,
                lines=(f"pruned: {reason}",),
                side="backward",
                region=self.region(sheet, "backward"),
                tooltip=f"{kind} was dropped: {reason}",
            )
            self.ghost_twin(node, forward_op)

    def ghost_twin(self, node: Node, forward_op: Any) -> None:
        """Link the node of a grad op that was dropped with the operator whose it would have been."""
        for p in (p for s in self.sheets.values() for p in s.wiring.placed):
            if p.op is forward_op and p.node.side == "forward" and p.node.twin is None:
                self.graph.link(p.node, node)

    def mirror(self) -> None:
        """Link each grad op and each gradient with its twin, then draw what is saved."""
        every = [p for s in self.sheets.values() for p in s.wiring.placed]
        backward = [p for p in every if p.backward]
        forward = [p for p in every if p.node.side == "forward"]
        found = twins(self.graph, forward, backward)
        for sheet in self.sheets.values():
            partner = self.partner(sheet, found)
            if partner is not None:
                link_rest(self.graph, partner.wiring, sheet.wiring)
                if sheet.loop and sheet.backward:
                    add_over_steps(self.graph, partner, sheet)
        saved_lines(self.graph, backward, found)

    def partner(self, sheet: Sheet, found: dict[str, Placed]) -> Sheet | None:
        """The sheet that holds the forward side of this one."""
        if sheet.owner is None or not sheet.backward:
            return sheet
        owner = found.get(sheet.owner.node.id)
        held = dict(held_blocks(owner.op, self.program)) if owner else {}
        block = held.get(sheet.attr)
        return self.sheets.get(block.idx) if block is not None else None

    def not_run(self) -> None:
        """Blocks that the run did not enter, and operators that it did not reach, are grey."""
        if self.facts.record is None:
            return
        for sheet in self.sheets.values():
            entered = sheet.block.idx in self.facts.entered
            for region in sheet.regions.values() if not entered else ():
                region.label += ": did not run"
            for placed in sheet.wiring.placed:
                if placed.node.data["place"] not in self.facts.written_by:
                    for node in (placed.node, *placed.outs.values()):
                        node.state = "pending"
            for node in (n for nodes in sheet.wiring.versions.values() for n in nodes):
                if not entered and node.id not in sheet.wiring.writer:
                    node.state = "pending"


# ---- blocks that operators hold ----------------------------------------------------------------


def held_blocks(op: Any, program: Any) -> list[tuple[str, Any]]:
    """(attr, block) for the blocks an operator holds: attrs called ``…block``, index or block."""
    attrs = getattr(op, "attrs", None) or {}
    held = [(k, v) for k, v in attrs.items() if k.endswith("block") and v is not None]
    return [(k, program.blocks[b] if isinstance(b, int) else b) for k, b in held]


def region_label(sheet: Sheet, part: str) -> str:
    """What stands on the frame of one side of a block."""
    block, owner = sheet.block, sheet.owner
    if owner is None:
        made_by = "grad ops appended by append_backward"
        words = {"forward": "forward ops", "backward": made_by, "optimize": "optimizer ops"}
        return f"block {block.idx}: {words[part]}"
    parent = getattr(block.parent, "idx", block.parent)
    forward = getattr(block, "forward_block", -1)
    link = f"{sheet.attr} of" if forward in (-1, None) else f"forward block {forward}, in"
    holder = f"#{owner.node.number} {owner.op.type}"
    return f"block {block.idx} (parent {parent}, {link} {holder}): {what_it_is(sheet)}"


def what_it_is(sheet: Sheet) -> str:
    """What a block does for the operator that holds it."""
    if sheet.attr == "cond_block":
        return "condition"
    if sheet.loop:
        return "one step backwards" if sheet.backward else "loop body"
    return "branch backwards" if sheet.backward else "branch"


def carry(graph: Graph, sheet: Sheet) -> None:
    """Values that go round: the last version of this iteration is the first of the next."""
    versions = sheet.wiring.versions
    for name, nodes in versions.items():
        first, last = nodes[0], nodes[-1]
        from_outside = first.id not in sheet.wiring.writer
        if first is not last and from_outside:
            go_round(graph, sheet, last, first)
        elif not sheet.backward and not from_outside and name not in sheet.block.vars:
            add_word(last, "next")  # the condition, above all: the loop itself reads it
    for end, start in handed_over(sheet):
        if end in versions and start in versions and end != start:
            go_round(graph, sheet, versions[end][-1], versions[start][0])


def go_round(graph: Graph, sheet: Sheet, end: Node, start: Node) -> None:
    """One value that an iteration hands on."""
    add_word(end, "before the step" if sheet.backward else "next")
    if sheet.backward:
        add_word(start, "after the step")
    word = "previous step" if sheet.backward else "next step"
    graph.edge(end, start, "loop", label=word)


def handed_over(sheet: Sheet) -> list[tuple[str, str]]:
    """(name at the end, name at the start of the next iteration), where the loop says so.

    Its attrs say it as ``carry`` {start: end}, or as the lists ``carried`` and ``next``.
    """
    op = sheet.owner.op if sheet.owner is not None else None
    attrs = getattr(op, "attrs", None) or {}
    following = attrs.get("carry", {})
    if op is None or not sheet.backward:
        lists = zip(attrs.get("next", ()), attrs.get("carried", ()), strict=False)
        return [*((end, start) for start, end in following.items()), *lists]
    seeds = zip(following, op.inputs.get("out_grad", ()), strict=False)
    lists = zip(attrs.get("carried_grad", ()), attrs.get("next_grad", ()), strict=False)
    return [*((start + GRAD, end) for start, end in seeds), *lists]


def add_over_steps(graph: Graph, forward: Sheet, backward: Sheet) -> None:
    """Gradients of what every iteration reads and none writes are added up over the iterations."""
    added: set[str] = set()
    for name, nodes in backward.wiring.versions.items():
        read = forward.wiring.versions.get(base(name), [])
        only_read = len(read) == 1 and read[0].id not in forward.wiring.writer
        only_read = only_read and base(name) not in dict(handed_over(forward)).values()
        if is_gradient(name) and len(nodes) == 1 and only_read:
            nodes[0].kind = "renamed"
            add_word(nodes[0], "+= over steps")
            added.add(nodes[0].id)
    for edge in graph.edges if added else ():
        if edge.head in added and edge.kind == "grad":
            edge.kind = "accumulate"


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
        plain = kind == "scopes" or not self.facts.values
        value = "" if plain else format_value(values.get(name))
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
            counts = any(word in dtype_text(var) for word in ("int", "bool"))
            return "data", "" if counts else "no grad" if written else "data"
        return ("value", "") if written else ("leaf", "")

    def gradient(self, name: str) -> tuple[str, str]:
        """(kind, word) of a name of the backward side."""
        home = base(name)
        return gradient_look(
            name, home in self.facts.written or home in self.facts.handed_on or is_gradient(home)
        )


def scope_words(program: Any) -> dict[tuple[int, str], str]:
    """What the step scopes that an operator writes hold, by block and name."""
    ops = [(block.idx, op) for block in program.blocks for op in block.ops]
    words = {False: "values of the branch", True: "values of each step"}
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
