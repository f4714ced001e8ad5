"""verify: the rules every Program obeys, checked after every transformation.

One rule is one function ``(program) -> None``; `RULES` is the list.  All are linear in the size of
the program.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NoReturn

from ...errors import ProgramError, did_you_mean
from ...grad_names import EMPTY
from .block import Block, out_of_order
from .operator import BLOCK_ATTRS, CONTROL, Operator, check_slots, op_info, outputs_of
from .program import Program
from .variable import check_name


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


_GIVEN = {"carried", "steps", "next_grad", "step_out_grad", "true_seeds", "false_seeds"}


#: a block, the number of an operator in it, the operator
Place = tuple[Block, int, Operator]


def fail(block: Block, k: int, op: Operator, what: str) -> NoReturn:
    """Say what is wrong with an operator, and where it stands."""
    raise ProgramError(f"block {block.idx}, #{k} {op.type}: {what}")


def _places(program: Program) -> Iterator[Place]:
    """All operators, with their places."""
    return ((block, k, op) for block in program.blocks for k, op in enumerate(block.ops))


def _control(program: Program) -> list[Place]:
    """The operators that hold blocks."""
    return [place for place in _places(program) if place[2].type in CONTROL]


def blocks_have_one_holder(program: Program) -> None:
    """Every block but the root is held by one operator, which stands in its parent (for a condition: holds that)."""
    held = set[int]()
    for place in _control(program):
        block, _, op = place
        needs = set(BLOCK_ATTRS).intersection(CONTROL[op.type].attrs)
        if needs != op.sub_blocks.keys():
            fail(*place, f"it holds {sorted(op.sub_blocks)}, not {sorted(needs)}")
        for attr, index in op.sub_blocks.items():
            what = f"{attr} = block {index}"
            if type(index) is not int or not 0 < index < len(program.blocks) or index in held:
                fail(*place, f"{what}, which is not there or belongs to another operator")
            parent = op.attrs["sub_block"] if attr == "cond_block" else block.idx
            if program.blocks[index].parent != parent:
                fail(*place, f"{what} lies elsewhere")
            held.add(index)
    for index in range(1, len(program.blocks)):
        if index not in held:
            raise ProgramError(f"no operator holds block {index}")


def control_flow_fits(program: Program) -> None:
    """The names control flow hands in and out exist in its blocks, one for each value; what it takes out is made."""
    for place in _control(program):
        op = place[2]
        info = CONTROL[op.type]
        for slot in ("scopes", "pred"):
            if slot in (*info.inputs, *info.outputs) and len(_slot(op, slot)) != 1:
                fail(*place, f"{slot!r} is one value")
        for slot, *others in info.rows:
            for name in sorted(others, key=info.attrs.__contains__):  # slots before attrs
                names: Any = op.attrs.get(name) if name in info.attrs else _slot(op, name)
                good = isinstance(names, list) and all(isinstance(n, str) for n in names)
                if not good or len(names) != len(_slot(op, slot)):
                    fail(*place, f"{name!r} must be a list of names, as long as {slot!r}")
        if op.type == "while":
            inner = program.blocks[op.attrs["cond_block"]]
            cond = op.attrs.get("cond")
            if not isinstance(cond, str) or not inner.has_var(cond):
                fail(*place, f"the condition {cond!r} is no variable")
        for attr in (name for row in info.rows for name in row if name in info.attrs):
            inner = program.blocks[_home(op, attr)]
            written = given_names([place])[inner.idx].union(outputs_of(inner.ops))
            for name in op.attrs[attr]:
                if name != EMPTY and not (name in written and name in inner.vars):
                    fail(*place, f"{attr}: nothing in block {inner.idx} writes {name!r}")


def _home(op: Operator, attr: str) -> Any:
    """The block in which the names of an attr are."""
    return op.attrs["else_block" if attr.startswith("false_") else "sub_block"]


def _slot(op: Operator, slot: str) -> list[str]:
    return op.inputs.get(slot, op.outputs.get(slot, []))


def given_names(places: list[Place]) -> defaultdict[int, set[str]]:
    """The names that these operators write into their blocks before they run."""
    given = defaultdict[int, set[str]](set)
    for _, _, op in places:
        for attr in op.attrs.keys() & _GIVEN:
            given[_home(op, attr)].update(op.attrs[attr])
    return given


def mark_given(program: Program) -> Program:
    """Let those who build on in a block read what control flow writes into it."""
    for index, names in given_names(_control(program)).items():
        program.blocks[index].written |= names
    return program


def root_comes_first(program: Program) -> None:
    """Block 0 is the root; every other block lies in one before it, and so does what it is the grad block of."""
    root = program.blocks[0] if program.blocks else None
    if root is None or (root.parent, root.forward_block) != (-1, -1):
        raise ProgramError("block 0 must be the root: it lies in no block and is no grad block")
    for k, block in enumerate(program.blocks):
        if block.idx != k or block.program is not program:
            raise ProgramError(f"block {k} calls itself {block.idx}")
        if k and not (0 <= block.parent < k and -1 <= block.forward_block < k):
            raise out_of_order(k, block.parent, block.forward_block)


def names_are_plain(program: Program) -> None:
    """Variables are known under their own names, and persistable ones and data live in the root block."""
    for block in program.blocks:
        for name, var in block.vars.items():
            if var.name != name or var.block is not block:
                raise ProgramError(f"block {block.idx} knows {var!r} as {name!r}")
            check_name(name)
            if min(var.shape, default=0) < -1:
                raise ProgramError(f"{var!r}: a size is -1 (any) or at least 0")
            if var.persistable and var.trainable and var.dtype.kind != "f":
                raise ProgramError(f"{var!r}: a parameter holds floating-point numbers")
            if block.idx and (var.persistable or var.is_data):
                raise ProgramError(
                    f"{name!r} is data or outlives a run, so it must be declared in block 0, not in {block.idx}"
                )


def operators_fit(program: Program) -> None:
    """Types, slots and attrs are those of the registry, roles those of the documents; every name is a variable.

    Blocks inside control flow do not write variables of blocks around them, but for what outlives a
    run.
    """
    for place in _places(program):
        block, k, op = place
        try:
            info = op_info(op.type)
            check_slots(info, op)
        except ProgramError as error:
            raise ProgramError(f"block {block.idx}, #{k}: {error}") from None
        if not op.outputs:
            fail(*place, "it writes nothing")
        for slot in info.lists.intersection(op.outputs) if info.is_grad else ():
            inputs = op.inputs.get(slot.removesuffix("_grad"))
            if inputs is not None and len(inputs) != len(op.outputs[slot]):
                fail(*place, f"{slot!r} is not as long as its input")
        own, written = block.vars, op.output_names
        for name in (*op.input_names, *written):
            if name not in own and name != EMPTY:
                var = block.find_var(name)
                if var is None:
                    fail(*place, f"no variable {name!r}{did_you_mean(name, block.visible_names())}")
                if name in written and not var.persistable:
                    fail(*place, f"it writes {name!r} of a block around it")


def written_before_read(program: Program) -> None:
    """No name is read before its block, or one around it, has written it: followed in the order of a run."""
    ready = given_names(_control(program))  # block → what is there
    for block in program.blocks:
        ready[block.idx].update(v.name for v in block.vars.values() if v.is_data or v.persistable)

    def known(block: Block | None, name: str) -> bool:
        while block is not None and name not in ready[block.idx]:
            if name in block.vars:  # which hides one of a block around it
                return False
            if name in ready.get(block.forward_block, ()):
                return True
            block = block.parent_block
        return block is not None

    def follow(block: Block) -> None:
        here = ready[block.idx]
        for k, op in enumerate(block.ops):
            for name in op.input_names:
                if name not in here and name != EMPTY and not known(block, name):
                    fail(block, k, op, f"it reads {name!r} before anything wrote it")
            if op.type in CONTROL:
                for attr in sorted(op.sub_blocks):  # the condition before its loop's body
                    follow(program.blocks[op.attrs[attr]])
            if op.type == "while":
                cond = op.attrs["cond"]
                if not known(program.blocks[op.attrs["cond_block"]], cond):
                    fail(block, k, op, f"nothing writes its condition {cond!r}")
            here.update(op.output_names)

    follow(program.blocks[0])


def start_values_fit(program: Program) -> None:
    """Start values belong to persistable variables and have their shape and dtype."""
    root = program.blocks[0].vars
    for name, value in program.initial.items():
        var = root.get(name)
        if var is None or not var.persistable:
            raise ProgramError(f"{name!r} has a start value but is no variable that outlives a run")
        if tuple(value.shape) != var.shape or value.dtype != var.dtype:
            raise ProgramError(f"the start value of {var!r} is {value.dtype}{list(value.shape)}")


RULES = (
    root_comes_first, names_are_plain, operators_fit, blocks_have_one_holder,
    control_flow_fits, written_before_read, start_values_fit,
)  # fmt: skip
