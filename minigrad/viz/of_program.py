"""Programs as pictures: every block, forward ops and the grad ops that belong to them, side by side.

A program is anything with ``blocks``; a block has ``ops``, ``vars``, ``idx`` and ``parent``; an operator has ``type``,
``inputs``, ``outputs``, ``attrs``, ``role``.  The course's own small classes and `minigrad.static` both do.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from minigrad.viz.format import NOT_YET, explain_value, format_shape, format_value
from minigrad.viz.graph import Graph, Node, Region
from minigrad.viz.wiring import (
    EMPTY,
    LOOPS,
    Placed,
    Wiring,
    add_word,
    base,
    is_gradient,
    link_rest,
    op_kind,
    op_words,
    pairs,
    saved_lines,
    twins,
)


def is_program(x: Any) -> bool:
    """Whether x has blocks of operators."""
    blocks = getattr(x, "blocks", None)
    return isinstance(blocks, list | tuple) and bool(blocks) and all(hasattr(b, "ops") for b in blocks)


def of_program(program: Any, values: Mapping[str, Any] | None = None, detail: str = "auto") -> Graph:
    """The picture of a program: one region per block and side.

    ``values`` maps names to arrays (the scope after a run); ``detail="pruned"`` also shows the grad ops that were
    dropped, with the reason, from the records in ``program.pruned``.
    """
    drawing = ProgramDrawing(program, values or {})
    drawing.blocks()
    if detail == "pruned":
        drawing.ghosts(getattr(program, "pruned", ()))
    drawing.mirror()
    drawing.words()
    return drawing.graph


@dataclass
class Sheet:
    """One block on paper: its names, its regions, and the operator that holds it."""

    block: Any
    wiring: Wiring
    owner: Placed | None = None
    regions: dict[str, Region] = field(default_factory=dict)    # "forward" | "backward" | "optimize"

    @property
    def backward(self) -> bool:
        return self.owner is not None and self.owner.backward


class ProgramDrawing:
    """Builds the graph of one program, block by block, from block 0 down."""

    def __init__(self, program: Any, values: Mapping[str, Any]) -> None:
        self.program, self.values = program, values
        self.graph = Graph(direction="TB")
        self.sheets: dict[int, Sheet] = {}
        self.loss, self.written = loss_names(program), written_names(program)

    # -- blocks

    def blocks(self) -> None:
        """Draw block 0, then the blocks its operators hold, and so on; never by recursion."""
        waiting: list[tuple[Any, Placed | None]] = [(self.program.blocks[0], None)]
        for block, owner in waiting:                     # grows while it is walked
            sheet = self.sheet(block, owner)
            for number, op in enumerate(block.ops):
                placed = self.place(sheet, op, number)
                for held in held_blocks(op, self.program):
                    placed.node.bold = True
                    waiting.append((held, placed))
            if owner is not None:
                self.join(owner, sheet)
        for sheet in self.sheets.values():
            sheet.wiring.finish({r.id: (r.id,) for r in sheet.regions.values()} | {None: ()})

    def sheet(self, block: Any, owner: Placed | None) -> Sheet:
        look = Looks(self, block, owner)
        made = Sheet(block, Wiring(self.graph, look), owner)
        self.sheets[block.idx] = made
        return made

    def place(self, sheet: Sheet, op: Any, number: int) -> Placed:
        """One operator in its block; its role decides the side."""
        role = getattr(op, "role", "forward")
        part = "backward" if sheet.backward or role == "backward" else "optimize" if role == "optimize" else "forward"
        region = self.region(sheet, part)
        if part == "optimize":
            return sheet.wiring.add(op, number, region.id, side="backward", kind="op")
        return sheet.wiring.add(op, number, region.id, backward=part == "backward")

    def region(self, sheet: Sheet, part: str) -> Region:
        """The frame of one side of a block, made when its first operator comes."""
        if part not in sheet.regions:
            side = "forward" if part == "forward" else "backward"
            sheet.regions[part] = self.graph.region(
                region_label(sheet, part), side=side, strong=sheet.owner is not None)
        return sheet.regions[part]

    def join(self, owner: Placed, sheet: Sheet) -> None:
        """The line from an operator to the block it holds, and the values that go round in it."""
        nodes = [n for p in sheet.wiring.placed for n in (*p.ins.values(), p.node)]
        if nodes:
            self.graph.edge(owner.node, nodes[0], "sub_block")
        if any(word in owner.op.type for word in LOOPS):
            carry(self.graph, sheet)

    # -- both sides

    def ghosts(self, records: Any) -> None:
        """The grad ops that were dropped, each with its reason."""
        sheet = self.sheets[self.program.blocks[0].idx]
        region = self.region(sheet, "backward")
        for record in records:
            kind, reason = record[0], record[1]
            node = self.graph.node("pruned", kind, lines=(f"pruned: {reason}",), side="backward", region=region.id,
                                   tooltip=f"{kind} was dropped: {reason}")
            self.ghost_twin(node, sheet, record[2] if len(record) > 2 else None)

    def ghost_twin(self, node: Node, sheet: Sheet, forward_op: Any) -> None:
        """The operator whose grad op was dropped: the one named, else the last without a grad op."""
        taken = {id(getattr(p.op, "forward_op", None)) for p in sheet.wiring.placed}
        wanted = node.name.removesuffix("_grad")
        for p in reversed(sheet.wiring.placed):
            fits = p.op is forward_op if forward_op is not None else p.op.type == wanted and id(p.op) not in taken
            if fits and not p.backward and p.node.twin is None:
                self.graph.link(p.node, node)
                return

    def mirror(self) -> None:
        """Link each grad op and each gradient with its twin, then draw what is saved."""
        every = [p for s in self.sheets.values() for p in s.wiring.placed]
        forward = [p for p in every if p.node.side == "forward"]
        backward = [p for p in every if p.backward]
        found = twins(self.graph, forward, backward)
        for sheet in self.sheets.values():
            partner = self.partner(sheet, found)
            if partner is not None:
                link_rest(self.graph, partner.wiring, sheet.wiring)
            if partner is not None and partner is not sheet and any(w in sheet.owner.op.type for w in LOOPS):
                add_over_steps(self.graph, partner, sheet)
        saved_lines(self.graph, backward, found)

    def partner(self, sheet: Sheet, found: dict[str, Placed]) -> Sheet | None:
        """The sheet that holds the forward side of this one."""
        if not sheet.backward:
            return sheet
        owner = found.get(sheet.owner.node.id)
        held = held_blocks(owner.op, self.program) if owner else []
        own = held_blocks(sheet.owner.op, self.program)
        at = next((i for i, b in enumerate(own) if b is sheet.block), 0)
        return self.sheets.get(held[min(at, len(held) - 1)].idx) if held else None

    def words(self) -> None:
        """Title and the order of events, for readers who do not see the picture."""
        placed = [p for s in self.sheets.values() for p in s.wiring.placed]
        count = sum(p.backward for p in placed)
        self.graph.title = f"Program: {len(placed) - count} ops, {count} grad ops, {len(self.sheets)} block" + (
            "s" if len(self.sheets) > 1 else "")
        for sheet in self.sheets.values():
            inside = f"block {sheet.block.idx} " if len(self.sheets) > 1 else ""
            self.graph.steps += [f"{inside}#{p.node.number} {op_words(p.op)}" for p in sheet.wiring.placed]


# ---- how a variable looks --------------------------------------------------------------------------------------

class Looks:
    """Kind, lines and tooltip of the names of one block."""

    def __init__(self, drawing: ProgramDrawing, block: Any, owner: Placed | None) -> None:
        self.drawing, self.block, self.owner = drawing, block, owner

    def __call__(self, name: str, side: str, written: bool) -> tuple[str, str, str, str]:
        home, var = find_var(self.drawing.program, self.block, name)
        tooltip = f"{name} | {shape_words(var)} | block {home.idx}" if var is not None else name
        if name == EMPTY:
            return "data", "", "no gradient", "no gradient is wanted here"
        kind, word = self.gradient(name, written) if is_gradient(name) else self.value(name, home, var, written)
        if name in self.drawing.values:
            tooltip += f" | {explain_value(self.drawing.values[name])}"
        value = value_text(self.drawing.values, name)
        if kind == "scopes":
            return kind, "", word, tooltip
        return kind, value, word if value else " ".join(filter(None, (shape_text(var), word))), tooltip

    def value(self, name: str, home: Any, var: Any, written: bool) -> tuple[str, str]:
        """A name of the forward side."""
        if is_scopes(name, var):
            return "scopes", "values of each iteration"
        if not written and home is not self.block:
            return "data", f"block {home.idx}"
        if name in self.drawing.loss and home is self.drawing.program.blocks[0]:
            return "output", ""
        stopped = bool(getattr(var, "stop_gradient", False))
        if getattr(var, "persistable", False) and not stopped:
            return "leaf", "updated" if written else "parameter"
        if stopped:
            counts = any(word in dtype_text(var) for word in ("int", "bool"))
            return "data", "" if counts else "no grad" if written else "data"
        return ("value", "") if written else ("leaf", "")

    def gradient(self, name: str, written: bool) -> tuple[str, str]:
        """A name of the backward side."""
        if "@RENAME@" in name:
            return "renamed", ""
        if "@ZERO" in name:
            return "zero", "zeros"
        home, var = find_var(self.drawing.program, self.drawing.program.blocks[0], base(name))
        leaf = base(name) not in self.drawing.written and not is_gradient(base(name))
        return ("leaf_gradient" if leaf else "gradient"), ""


def find_var(program: Any, block: Any, name: str) -> tuple[Any, Any]:
    """(block, variable) of a name, looked up through the parents; (the block itself, None) where nobody declares it."""
    at = block
    while True:
        if name in at.vars:
            return at, at.vars[name]
        if at.parent is None or isinstance(at.parent, int) and at.parent < 0:
            return block, None
        at = program.blocks[at.parent] if isinstance(at.parent, int) else at.parent


def shape_text(var: Any) -> str:
    """``[2, 2]``, and the dtype where it is not a float's."""
    shape = getattr(var, "shape", None)
    if shape is None:
        return ""
    dtype = dtype_text(var)
    if not shape and dtype and "float" not in dtype:
        return dtype
    return format_shape(shape) + ("" if not dtype or "float" in dtype else f" {dtype}")


def dtype_text(var: Any) -> str:
    """``int64``, whether the dtype is text, a NumPy dtype or its class."""
    dtype = getattr(var, "dtype", None) or ""
    return getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)


def shape_words(var: Any) -> str:
    shape = getattr(var, "shape", None)
    return f"{'shape unknown' if shape is None else format_shape(shape)} {dtype_text(var)}".rstrip()


def value_text(values: Mapping[str, Any], name: str) -> str:
    """The value of a name, an em dash if the others have one and this one does not, nothing if none has."""
    if not values:
        return ""
    return format_value(values[name]) if name in values else NOT_YET


def is_scopes(name: str, var: Any) -> bool:
    """Whether a variable holds the step scopes of a loop."""
    said = str(getattr(var, "type", "") or getattr(var, "kind", "") or name)
    return "stepscopes" in said.lower().replace("_", "").replace(" ", "")


# ---- what is where ---------------------------------------------------------------------------------------------

def held_blocks(op: Any, program: Any) -> list[Any]:
    """The blocks an operator holds: attributes called ``…block``, by index or as the block itself."""
    held = [v for k, v in getattr(op, "attrs", {}).items() if k.endswith("block")]
    return [program.blocks[b] if isinstance(b, int) else b for b in held]


def loss_names(program: Any) -> set[str]:
    """What the backward pass starts from: outputs of ops with the role "loss", and what a seed is the gradient of."""
    names: set[str] = set()
    for op in program.blocks[0].ops:
        outs = [name for _, _, name in pairs(op.outputs)]
        if getattr(op, "role", "") == "loss":
            names.update(outs)
        elif op_kind(op, getattr(op, "role", "") == "backward") == "seed":
            names.update(map(base, outs))
    return {n for n in names if not is_gradient(n)}


def written_names(program: Any) -> set[str]:
    """Every name some op computes; updates of parameters do not count."""
    return {name for b in program.blocks for op in b.ops if getattr(op, "role", "") != "optimize"
            for _, _, name in pairs(op.outputs)}


def region_label(sheet: Sheet, part: str) -> str:
    """What stands on the frame of one side of a block."""
    idx = sheet.block.idx
    if sheet.owner is None:
        return {"forward": f"block {idx}: forward ops", "optimize": f"block {idx}: optimizer ops",
                "backward": f"block {idx}: grad ops appended by append_backward"}[part]
    owner = sheet.owner
    if any(word in owner.op.type for word in LOOPS):
        what = "one step backwards" if owner.backward else "loop body"
    else:
        what = "branch backwards" if owner.backward else "branch"
    return f"block {idx} (parent {parent_index(sheet.block)}, sub_block of #{owner.node.number} {owner.op.type}): {what}"


def parent_index(block: Any) -> Any:
    return getattr(block.parent, "idx", block.parent)


def add_over_steps(graph: Graph, forward: Sheet, backward: Sheet) -> None:
    """Gradients of what every iteration reads and none writes (parameters) are added up over the iterations."""
    made = {n.id for nodes in forward.wiring.versions.values() for n in nodes[:1] if n.id in forward.wiring.writer}
    for name, nodes in backward.wiring.versions.items():
        read = forward.wiring.versions.get(base(name), [])
        if is_gradient(name) and len(nodes) == 1 and len(read) == 1 and read[0].id not in made:
            last = nodes[-1]
            last.kind = "renamed"
            add_word(last, "+= over steps")
            for edge in graph.edges:
                if edge.head == last.id and edge.kind == "grad":
                    edge.kind = "accumulate"


def carry(graph: Graph, sheet: Sheet) -> None:
    """Names that an iteration reads before it writes them: their last version is the first one of the next iteration."""
    word = "previous iteration" if sheet.backward else "next iteration"
    for name, nodes in sheet.wiring.versions.items():
        first, last = nodes[0], nodes[-1]
        if first is last and not sheet.backward and first.id in sheet.wiring.writer and name not in sheet.block.vars:
            add_word(last, "next")                          # the condition, above all: the loop reads it
        if first is not last and first.id not in sheet.wiring.writer:
            add_word(last, "before the step" if sheet.backward else "next")
            if sheet.backward:
                add_word(first, "after the step")
            graph.edge(last, first, "loop", label=word)
