"""verify: the rules every Program obeys, checked after every transformation.

One rule is one function ``(program) -> None``; `RULES` is the list.  All are linear in the size of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..errors import ProgramError, did_you_mean
from .op_info import CONTROL, bind_slots, find_info, op_info
from .operator import BLOCK_ATTRS, EMPTY
from .program import Block, Operator, Program, check_name

ROLES = ("forward", "loss", "backward", "optimize")

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


def _operators(program: Program) -> Iterator[tuple[Block, int, Operator]]:
    return ((block, k, op) for block in program.blocks for k, op in enumerate(block.ops))


def _require(held: object, block: Block, k: int, op: Operator, what: str) -> None:
    if not held:
        raise ProgramError(f"block {block.idx}, #{k} {op.type}: {what}")


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
            if block.idx and (var.persistable or var.is_data):
                raise ProgramError(
                    f"{name!r} is data or outlives a run, so it must be declared in block 0, not in {block.idx}"
                )


def types_are_registered(program: Program) -> None:
    """Types, slots and attrs are those of the registry, roles those of the documents."""
    for block, k, op in _operators(program):
        try:
            info = op_info(op.type) if find_info(op.type) is None else find_info(op.type)
            assert info is not None
            bind_slots(info, op.inputs, op.outputs, op.attrs)
        except ProgramError as error:
            raise ProgramError(f"block {block.idx}, #{k}: {error}") from None
        if op.role not in ROLES:
            known = did_you_mean(str(op.role), ROLES)
            _require(False, block, k, op, f"{op.role!r} is no role{known}")
        _require(op.outputs, block, k, op, "it writes nothing")


def slots_hold_values(program: Program) -> None:
    """A slot of one value holds one name; a list has as many outputs as inputs say."""
    for block, k, op in _operators(program):
        info = find_info(op.type)
        if info is None or info.forward is None:
            continue
        p = info.forward
        lists = {p.list_input, f"{p.list_input}_grad", "shapes_like"}
        if p.list_output:
            lists |= {*p.outputs, *(f"{o}_grad" for o in p.outputs)}
        for slot, names in (*op.inputs.items(), *op.outputs.items()):
            _require(
                len(names) == 1 or slot in lists,
                block,
                k,
                op,
                f"the slot {slot!r} is one value, not {len(names)}",
            )
        if info.is_grad:
            for slot, names in op.outputs.items():
                given = op.inputs.get(slot.removesuffix("_grad"))
                _require(
                    given is None or len(given) == len(names),
                    block,
                    k,
                    op,
                    f"{slot!r} is not as long as its input",
                )


def names_are_declared(program: Program) -> None:
    """Every name an operator uses is a variable of its block or of one it can see."""
    for block, k, op in _operators(program):
        for name in (*op.input_names, *op.output_names):
            if name != EMPTY and block.find_var(name) is None:
                known = did_you_mean(name, block.visible_names())
                _require(False, block, k, op, f"no variable {name!r}{known}")


def blocks_have_one_holder(program: Program) -> None:
    """Every block but the root is held by one operator, which stands in its parent (for a condition: holds that)."""
    holder: dict[int, Operator] = {}
    for block, k, op in _operators(program):
        needs = {a for a in BLOCK_ATTRS if op.type in CONTROL and a in CONTROL[op.type].attrs}
        _require(
            needs == set(op.sub_blocks),
            block,
            k,
            op,
            f"it holds {sorted(op.sub_blocks)}, not {sorted(needs)}",
        )
        for attr, index in op.sub_blocks.items():
            good = type(index) is int and 0 < index < len(program.blocks) and index not in holder
            _require(
                good,
                block,
                k,
                op,
                f"{attr} = block {index}, which is not there or belongs to another operator",
            )
            parent = op.attrs["sub_block"] if attr == "cond_block" else block.idx
            _require(
                program.blocks[index].parent == parent,
                block,
                k,
                op,
                f"{attr} = block {index} lies elsewhere",
            )
            holder[index] = op
    for block in program.blocks[1:]:
        if block.idx not in holder:
            raise ProgramError(f"no operator holds block {block.idx}")


def control_flow_fits(program: Program) -> None:
    """The names control flow hands in and out exist in its blocks, one for each value."""
    for block, k, op in _operators(program):
        if op.type not in _LISTS:
            continue
        _require(
            len(op.outputs.get("scopes", op.inputs.get("scopes", ()))) == 1,
            block,
            k,
            op,
            "it needs one place for its scopes",
        )
        if op.type.startswith("cond"):
            _require(len(op.inputs.get("pred", ())) == 1, block, k, op, "it decides on one value")
        for a, b in _PAIRS[op.type]:
            same = len(_slot(op, a)) == len(_slot(op, b))
            _require(same, block, k, op, f"{a!r} and {b!r} are not equally long")
        for attr, slot in _LISTS[op.type].items():
            names = op.attrs.get(attr)
            good = (
                isinstance(names, list)
                and len(names) == len(_slot(op, slot))
                and all(isinstance(n, str) for n in names)
            )
            _require(good, block, k, op, f"{attr!r} must be a list of names, as long as {slot!r}")
            inner = program.blocks[op.attrs["else_block" if attr in _IN_ELSE else "sub_block"]]
            for name in names or ():
                _require(
                    name == EMPTY or name in inner.vars,
                    block,
                    k,
                    op,
                    f"{attr}: block {inner.idx} has no {name!r}",
                )
        if op.type == "while":
            inner = program.blocks[op.attrs["cond_block"]]
            cond = op.attrs.get("cond")
            _require(
                isinstance(cond, str) and inner.has_var(cond),
                block,
                k,
                op,
                f"the condition {cond!r} is no variable",
            )


def _slot(op: Operator, slot: str) -> list[str]:
    return op.inputs.get(slot, op.outputs.get(slot, []))


def written_before_read(program: Program) -> None:
    """No name is read before its block, or one around it, has written it."""
    given = _given(program)
    ready: dict[int, set[str]] = {}
    for block in program.blocks:  # parents and forward blocks come first
        here = {v.name for v in block.vars.values() if v.is_data or v.persistable} | given.get(
            block.idx, set()
        )
        ready[block.idx] = here
        for k, op in enumerate(block.ops):
            for name in op.input_names:
                if name == EMPTY or name in here:
                    continue
                outside = name not in block.vars and any(
                    name in ready.get(b.idx, ()) for b in block.lookup()
                )
                _require(outside, block, k, op, f"it reads {name!r} before anything wrote it")
            here.update(op.output_names)


def _given(program: Program) -> dict[int, set[str]]:
    """The names control flow writes into its blocks before they run."""
    given: dict[int, set[str]] = {}
    for _, _, op in _operators(program):
        for attr in _GIVEN:
            if attr in op.attrs and op.type in _LISTS:
                index = op.attrs["else_block" if attr in _IN_ELSE else "sub_block"]
                given.setdefault(index, set()).update(op.attrs[attr])
    return given


def results_are_made(program: Program) -> None:
    """What control flow takes out of a block was written there."""
    made = {b.idx: {n for op in b.ops for n in op.output_names} for b in program.blocks}
    given = _given(program)
    for block, k, op in _operators(program):
        for attr in _LISTS.get(op.type, ()):
            if attr in _GIVEN:
                continue
            index = op.attrs["else_block" if attr in _IN_ELSE else "sub_block"]
            for name in op.attrs[attr]:
                known = name == EMPTY or name in made[index] or name in given.get(index, ())
                _require(known, block, k, op, f"{attr}: nothing in block {index} writes {name!r}")


def parameters_change_by_updates_only(program: Program) -> None:
    """Blocks inside control flow do not write variables of blocks around them, but for what outlives a run."""
    for block, k, op in _operators(program):
        if block.idx and block.forward_block < 0:
            for name in op.output_names:
                var = block.find_var(name)
                fine = var is None or var.block is block or var.persistable
                _require(fine, block, k, op, f"it writes {name!r} of a block around it")


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
    control_flow_fits, written_before_read, results_are_made, parameters_change_by_updates_only, start_values_fit,
)  # fmt: skip
