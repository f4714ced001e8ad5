"""The rules of `verify` about operators that hold blocks: who holds them, what goes in and what comes out."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import ProgramError
from .op_info import CONTROL
from .operator import BLOCK_ATTRS, EMPTY
from .program import Block, Operator, Program

#: control flow: attr → the slot it is as long as; the names belong to the block in the second table
_LISTS = {
    "while": {"carried": "x", "next": "x"},
    "cond": {"true_out": "out", "false_out": "out"},
    "recurrent": {"carried": "x", "next": "x", "steps": "seq", "step_out": "stacked"},
    "while_grad": {"next_grad": "x", "carried_grad": "x", "params_local": "params"},
    "recurrent_grad": {
        "next_grad": "x", "carried_grad": "x", "params_local": "params",
        "step_out_grad": "stacked_grad", "steps_grad": "seq",
    },
    "cond_grad": {
        "true_seeds": "out_grad", "false_seeds": "out_grad", "true_params": "params", "false_params": "params",
    },
}  # fmt: skip
_IN_ELSE = ("false_out", "false_seeds", "false_params")
_GIVEN = ("carried", "steps", "next_grad", "step_out_grad", "true_seeds", "false_seeds")
_PAIRS = {          # slots that are equally long
    "while": (("x", "out"),), "recurrent": (("x", "out"),), "cond": (),
    "while_grad": (("x", "out_grad"), ("x", "x_grad"), ("params", "params_grad")),
    "recurrent_grad": (("x", "out_grad"), ("x", "x_grad"), ("params", "params_grad"), ("seq", "seq_grad")),
    "cond_grad": (("params", "params_grad"),),
}  # fmt: skip


#: a block, the number of an operator in it, the operator
Place = tuple[Block, int, Operator]


def fail(block: Block, k: int, op: Operator, what: str) -> NoReturn:
    """Say what is wrong with an operator, and where it stands."""
    raise ProgramError(f"block {block.idx}, #{k} {op.type}: {what}")


def _require(held: object, place: Place, what: str) -> None:
    if not held:
        fail(*place, what)


def _control(program: Program) -> list[Place]:
    """The operators that hold blocks."""
    return [(b, k, op) for b in program.blocks for k, op in enumerate(b.ops) if op.type in CONTROL]


def blocks_have_one_holder(program: Program) -> None:
    """Every block but the root is held by one operator, which stands in its parent (for a condition: holds that)."""
    holder: dict[int, Operator] = {}
    for place in _control(program):
        block, _, op = place
        needs = {a for a in BLOCK_ATTRS if a in CONTROL[op.type].attrs}
        what = f"it holds {sorted(op.sub_blocks)}, not {sorted(needs)}"
        _require(needs == set(op.sub_blocks), place, what)
        for attr, index in op.sub_blocks.items():
            what = f"{attr} = block {index}, which is not there or belongs to another operator"
            good = type(index) is int and 0 < index < len(program.blocks) and index not in holder
            _require(good, place, what)
            parent = op.attrs["sub_block"] if attr == "cond_block" else block.idx
            lies_there = program.blocks[index].parent == parent
            _require(lies_there, place, f"{attr} = block {index} lies elsewhere")
            holder[index] = op
    for block in program.blocks[1:]:
        if block.idx not in holder:
            raise ProgramError(f"no operator holds block {block.idx}")


def control_flow_fits(program: Program) -> None:
    """The names control flow hands in and out exist in its blocks, one for each value."""
    for place in _control(program):
        op = place[2]
        if op.type not in _LISTS:
            continue
        scopes = op.outputs.get("scopes", op.inputs.get("scopes", ()))
        _require(len(scopes) == 1, place, "it needs one place for its scopes")
        if op.type.startswith("cond"):
            _require(len(op.inputs.get("pred", ())) == 1, place, "it decides on one value")
        for a, b in _PAIRS[op.type]:
            same = len(_slot(op, a)) == len(_slot(op, b))
            _require(same, place, f"{a!r} and {b!r} are not equally long")
        _names_fit(program, place)
        if op.type == "while":
            inner, cond = program.blocks[op.attrs["cond_block"]], op.attrs.get("cond")
            good = isinstance(cond, str) and inner.has_var(cond)
            _require(good, place, f"the condition {cond!r} is no variable")


def _names_fit(program: Program, place: Place) -> None:
    """Lists of names in attrs are as long as their slots, and their block has these names."""
    op = place[2]
    for attr, slot in _LISTS[op.type].items():
        names: Any = op.attrs.get(attr)
        good = (
            isinstance(names, list)
            and len(names) == len(_slot(op, slot))
            and all(isinstance(n, str) for n in names)
        )
        _require(good, place, f"{attr!r} must be a list of names, as long as {slot!r}")
        inner = program.blocks[_home(op, attr)]
        for name in names:
            there = name == EMPTY or name in inner.vars
            _require(there, place, f"{attr}: block {inner.idx} has no {name!r}")


def _home(op: Operator, attr: str) -> int:
    """The block in which the names of an attr are."""
    index: int = op.attrs["else_block" if attr in _IN_ELSE else "sub_block"]
    return index


def _slot(op: Operator, slot: str) -> list[str]:
    return op.inputs.get(slot, op.outputs.get(slot, []))


def given_names(program: Program) -> dict[int, set[str]]:
    """The names control flow writes into its blocks before they run."""
    given: dict[int, set[str]] = {}
    for _, _, op in _control(program):
        for attr in _GIVEN:
            if attr in op.attrs:
                given.setdefault(_home(op, attr), set()).update(op.attrs[attr])
    return given


def mark_given(program: Program) -> Program:
    """Let those who build on in a block read what control flow writes into it."""
    for index, names in given_names(program).items():
        program.blocks[index].written |= names
    return program


def held_at(program: Program) -> dict[int, int]:
    """For every block the operator of its parent that runs it; a condition is tested before its loop's body runs."""
    return {
        index: 0 if attr == "cond_block" else k
        for _, k, op in _control(program)
        for attr, index in op.sub_blocks.items()
    }


def results_are_made(program: Program) -> None:
    """What control flow takes out of a block was written there."""
    made = {b.idx: {n for op in b.ops for n in op.output_names} for b in program.blocks[1:]}
    given = given_names(program)
    for place in _control(program):
        op = place[2]
        for attr in _LISTS.get(op.type, ()):
            index = _home(op, attr)
            for name in op.attrs[attr]:
                known = name == EMPTY or name in made[index] or name in given.get(index, ())
                _require(known, place, f"{attr}: nothing in block {index} writes {name!r}")


def blocks_change_their_own(program: Program) -> None:
    """Blocks inside control flow do not write variables of blocks around them, but for what outlives a run."""
    for block in program.blocks[1:]:
        for k, op in enumerate(block.ops):
            for name in op.output_names:
                var = block.find_var(name)
                fine = var is None or var.block is block or var.persistable
                _require(fine, (block, k, op), f"it writes {name!r} of a block around it")
