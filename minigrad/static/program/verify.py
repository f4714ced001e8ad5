"""verify: the rules every Program obeys, checked after every transformation.

One rule is one function ``(program) -> None``; `RULES` is the list.  All are linear in the size of the program.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import ProgramError, did_you_mean
from .op_info import CONTROL, ROLES, bind_slots, list_slots, op_info
from .operator import EMPTY
from .program import Block, Program, check_name
from .verify_control import (
    blocks_change_their_own,
    blocks_have_one_holder,
    control_flow_fits,
    fail,
    given_names,
    held_at,
    results_are_made,
)


def verify(program: Program) -> Program:
    """Check a program; returns it.  Errors: `ProgramError` that names the block, the operator and what is wrong.

    >>> from minigrad import static
    >>> prog = static.parse("block 0:\\n  data x: float64[2]\\n  y = exp(x)")
    >>> prog.global_block().ops[0].inputs["x"] = ["z"]
    >>> static.verify(prog)
    Traceback (most recent call last):
        ...
    minigrad.errors.ProgramError: block 0, #0 exp: no variable 'z'. Known: 'x', 'y'
    """
    for rule in RULES:
        rule(program)
    return program


def root_comes_first(program: Program) -> None:
    """Block 0 is the root; every other block lies in one before it, and so does what it is the grad block of."""
    if (
        not program.blocks
        or program.blocks[0].parent != -1
        or program.blocks[0].forward_block != -1
    ):
        raise ProgramError("block 0 must be the root: it lies in no block and is no grad block")
    for k, block in enumerate(program.blocks):
        if block.idx != k or block.program is not program:
            raise ProgramError(f"block {k} calls itself {block.idx}")
        if k and not (0 <= block.parent < k and -1 <= block.forward_block < k):
            raise ProgramError(
                f"block {k} lies in block {block.parent}, grad of {block.forward_block}: both must come before it"
            )


def names_are_plain(program: Program) -> None:
    """Variables are known under their own names, and persistable ones and data live in the root block."""
    for block in program.blocks:
        for name, var in block.vars.items():
            if var.name != name or var.block is not block:
                raise ProgramError(f"block {block.idx} knows {var!r} as {name!r}")
            check_name(name)
            if any(n < -1 for n in var.shape):
                raise ProgramError(f"{var!r}: a size is -1 (any) or at least 0")
            if var.persistable and var.trainable and var.dtype.kind != "f":
                raise ProgramError(f"{var!r}: a parameter holds floating-point numbers")
            if block.idx and (var.persistable or var.is_data):
                raise ProgramError(
                    f"{name!r} is data or outlives a run, so it must be declared in block 0, not in {block.idx}"
                )


def types_are_registered(program: Program) -> None:
    """Types, slots and attrs are those of the registry, roles those of the documents."""
    for block in program.blocks:
        for k, op in enumerate(block.ops):
            try:
                bind_slots(op_info(op.type), op.inputs, op.outputs, op.attrs)
            except ProgramError as error:
                raise ProgramError(f"block {block.idx}, #{k}: {error}") from None
            if op.role not in ROLES:
                fail(block, k, op, f"{op.role!r} is no role{did_you_mean(str(op.role), ROLES)}")
            if not op.outputs:
                fail(block, k, op, "it writes nothing")


def slots_hold_values(program: Program) -> None:
    """A slot of one value holds one name; a list has as many outputs as inputs say."""
    lists: dict[str, set[str]] = {}
    for block in program.blocks:
        for k, op in enumerate(block.ops):
            if op.type not in lists:
                info = op_info(op.type)
                lists[op.type] = {ANY} if info.forward is None else list_slots(info)
            long = lists[op.type]
            for slots in (op.inputs, op.outputs):
                for slot, names in slots.items():
                    if len(names) != 1 and slot not in long and ANY not in long:
                        fail(block, k, op, f"the slot {slot!r} is one value, not {len(names)}")
            if long and op.type.endswith("_grad") and op.type not in CONTROL:
                for slot, names in op.outputs.items():
                    given = op.inputs.get(slot.removesuffix("_grad"))
                    if given is not None and len(given) != len(names):
                        fail(block, k, op, f"{slot!r} is not as long as its input")


ANY = "*"  #: stands for all slots


def names_are_declared(program: Program) -> None:
    """Every name an operator uses is a variable of its block or of one it can see."""
    for block in program.blocks:
        own, find = block.vars, block.find_var
        for k, op in enumerate(block.ops):
            for slots in (op.inputs, op.outputs):
                for names in slots.values():
                    for name in names:
                        if name not in own and name != EMPTY and find(name) is None:
                            known = did_you_mean(name, block.visible_names())
                            fail(block, k, op, f"no variable {name!r}{known}")


def written_before_read(program: Program) -> None:
    """No name is read before its block, or one around it, has written it."""
    given, held = given_names(program), held_at(program)
    # block → name → the first operator that writes it, -1 for what is there
    ready: dict[int, dict[str, int]] = {}
    for block in program.blocks:  # parents and forward blocks come first
        there = {v.name for v in block.vars.values() if v.is_data or v.persistable}
        here = ready[block.idx] = dict.fromkeys(there | given.get(block.idx, set()), -1)
        for k, op in enumerate(block.ops):
            for names in op.inputs.values():
                for name in names:
                    if (
                        name not in here
                        and name != EMPTY
                        and not _outside(block, name, ready, held)
                    ):
                        fail(block, k, op, f"it reads {name!r} before anything wrote it")
            for names in op.outputs.values():
                for name in names:
                    here.setdefault(name, k)
    for block in program.blocks:
        for k, op in enumerate(block.ops):
            if op.type == "while":
                inner, cond = program.blocks[op.attrs["cond_block"]], op.attrs["cond"]
                if cond not in ready[inner.idx] and not _outside(inner, cond, ready, held):
                    fail(block, k, op, f"nothing writes its condition {cond!r}")


def _outside(
    block: Block | None, name: str, ready: dict[int, dict[str, int]], held: dict[int, int]
) -> bool:
    """Whether the forward block, or one around this one before it runs this one, has written the name."""
    while block is not None and name not in block.vars:
        if name in ready.get(block.forward_block, ()):
            return True
        inner, block = block, block.parent_block
        if block is not None and ready[block.idx].get(name, len(block.ops)) < held[inner.idx]:
            return True
    return False


def start_values_fit(program: Program) -> None:
    """Start values belong to persistable variables and have their shape and dtype."""
    root = program.blocks[0].vars
    for name, value in program.initial.items():
        var = root.get(name)
        if var is None or not var.persistable:
            raise ProgramError(f"{name!r} has a start value but is no variable that outlives a run")
        if tuple(value.shape) != var.shape or value.dtype != var.dtype:
            raise ProgramError(f"the start value of {var!r} is {value.dtype}{list(value.shape)}")


RULES: tuple[Callable[[Program], None], ...] = (
    root_comes_first, names_are_plain, types_are_registered, slots_hold_values, names_are_declared,
    blocks_have_one_holder,
    control_flow_fits, written_before_read, results_are_made, blocks_change_their_own, start_values_fit,
)  # fmt: skip
