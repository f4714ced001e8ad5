"""Block: operators in order, and the variables they use."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ProgramError, did_you_mean, user_frame, wrong
from ...errors.other_libraries import TABLES, knows_others
from ...grad_names import EMPTY
from ...primitives.arguments import Args, Attrs, Slots
from ...primitives.registry import Primitive
from .infer import infer_outputs
from .operator import Operator, check_operator, check_slots, op_info, outputs_of, slots_of
from .variable import ShapeOf, Variable, check_known, check_name

if TYPE_CHECKING:
    from .program import Program


NESTING = 100  #: blocks in blocks


def out_of_order(idx: int, parent: int, forward_block: int) -> ProgramError:
    """What to raise for a block that stands before those it belongs to."""
    return ProgramError(
        f"block {idx} lies in block {parent}, grad of {forward_block}: both must come before it"
    )


@knows_others("a Block", TABLES["Block"])
class Block:
    """Operators in order and the variables they use.

    Errors: `ProgramError` for a block that lies in too many others.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     y = static.data("x", [3]) * 2.0
    >>> [op.type for op in prog.global_block().ops], sorted(prog.global_block().vars)
    (['mul'], ['mul_0', 'x'])
    """

    def __init__(self, program: "Program", idx: int, parent: int, forward_block: int) -> None:
        self.program, self.idx = program, idx
        self.parent, self.forward_block = parent, forward_block
        if max(parent, forward_block) >= idx:
            raise out_of_order(idx, parent, forward_block)
        self.depth: int = 0 if parent < 0 else program.blocks[parent].depth + 1
        if self.depth > NESTING:
            what = f"block {idx} lies in {self.depth} others, and {NESTING} is the limit"
            raise wrong(what, "a while loop instead of blocks in blocks")
        self.ops: list[Operator] = []
        self.vars: dict[str, Variable] = {}
        self.written: set[str] = set()

    @property
    def parent_block(self) -> "Block | None":
        """The block look-ups climb to; None for the root."""
        return self.program.blocks[self.parent] if self.parent >= 0 else None

    def lookup(self) -> "Iterator[Block]":
        """The blocks in which a name is looked for: this one, its forward block, then the parents."""
        block: Block | None = self
        while block is not None:
            yield block
            if block.forward_block >= 0:
                yield self.program.blocks[block.forward_block]
            block = block.parent_block

    def find_var(self, name: str) -> Variable | None:
        """The variable of this name here or in a parent; None if there is none."""
        var = self.vars.get(name)
        if var is not None:
            return var
        for block in self.lookup():
            if name in block.vars:
                return block.vars[name]
        return None

    def var(self, name: str) -> Variable:
        """The variable of this name here or in a parent.  Errors: `ProgramError` with the nearest name."""
        var = self.find_var(name)
        if var is None:
            known = self.visible_names()
            raise wrong(f"block {self.idx} has no variable {name!r}{did_you_mean(name, known)}")
        return var

    def has_var(self, name: str) -> bool:
        """Whether the name is known here or in a parent."""
        return self.find_var(name) is not None

    def visible_names(self) -> list[str]:
        """Every variable that can be named here, nearest block first."""
        return [n for b in self.lookup() for n in b.vars]

    def create_var(
        self, name: str | None = None, shape: Iterable[int] = (), dtype: Any = float, **flags: Any
    ) -> Variable:
        """Declare a variable.  Errors: `ProgramError` if the name is taken here or holds odd characters."""
        name = self.program.unique_name("var") if name is None else name
        check_name(name)
        if name in self.vars:
            raise wrong(f"block {self.idx} has a variable {name!r} already: {self.vars[name]!r}")
        var = self.vars[name] = Variable(self, name, shape, dtype, **flags)
        self.program.changed()
        return var

    def append_op(
        self,
        type: str,
        inputs: dict[str, Any] | None = None,
        outputs: dict[str, Any] | None = None,
        attrs: dict[str, Any] | None = None,
        role: str | None = None,
    ) -> Operator:
        """Append an operator by slots; variables that its outputs name and that do not exist yet are created.

        Names may be given as Variables.  Errors: `ProgramError` for an unknown type, slot, attr or
        input name, for an input that nothing has written, and for shapes the op does not accept;
        then the block is as before.
        """
        info = op_info(type)
        role = self.program.role if role is None else role
        op = Operator(type, slots_of(inputs), slots_of(outputs), dict(attrs or {}), role)
        check_slots(info, op)
        check_operator(info, op)
        for var in (self.var(name) for name in op.input_names if name != EMPTY):
            if not (var.persistable or var.is_data or var.name in var.block.written):
                raise wrong(
                    f"{type} reads {var.name!r}, but no operator has written it and it is neither "
                    "data nor a parameter",
                    f"append the op that computes {var.name!r} first, or use static.data or "
                    "static.parameter",
                )
        with self.program.transaction():
            return self._append(op)

    def append_primitive(self, primitive: Primitive, args: Args, attrs: Attrs) -> Any:
        """Append an operator from a call like ``mg.mul(x, 2.0)``; returns its output Variables."""
        args, attrs = primitive.bind(args, attrs)
        before = self.program.state()
        try:
            op = self._operator(primitive, args, attrs)
            self._append(op)
        except BaseException:  # constants it brought along go, too, and what was lifted
            self.program.restore(before)
            raise
        if primitive.several:
            return [self.vars[n] for n in op.output_names]
        return self.vars[op.outputs[primitive.outputs[0]][0]]

    def _operator(self, primitive: Primitive, args: Args, attrs: Attrs) -> Operator:
        inputs: Slots = {}
        numbers: Attrs = {}
        several = primitive.list_input
        for slot, arg in zip(primitive.slot_names(len(args)), args, strict=True):
            if arg.__class__ is Variable and arg.block is self:
                name = arg.name
            elif arg is None:
                continue
            elif isinstance(number := _number(arg, args), NUMBERS) and slot != several:
                numbers[slot] = number
                continue
            else:
                name = self.program.as_variable(number, self).name
            inputs.setdefault(slot, []).append(name)
        for name, given in attrs.items():
            value = _number(given, args)
            shapes = value if isinstance(value, tuple) else (value,)
            if name == "index":
                for part in shapes:
                    check_known(part.stop if isinstance(part, slice) else part)
            if shapes and isinstance(shapes[0], ShapeOf):
                inputs[f"{name}_like"] = [v.name for v in shapes]
            elif not _is_default(value, primitive.attrs[name]):
                numbers[name] = value
        return Operator(primitive.type, inputs, {}, numbers, self.program.role)

    def _append(self, op: Operator) -> Operator:
        """Append a checked operator: infer and declare its outputs, remember the user's line."""
        frame = user_frame(3)  # inside append_op or append_primitive
        if frame is not None:
            op.code, op.lasti = frame.f_code, frame.f_lasti
        infer_outputs(self, op)
        self.ops.append(op)
        self.written.update(*op.outputs.values())
        self.program.changed()
        return op

    def truncate(self, ops: int, variables: int) -> None:
        """Keep the first operators and variables: what was appended since is gone."""
        dropped = set(outputs_of(self.ops[ops:]))
        del self.ops[ops:]
        for name in list(self.vars)[variables:]:
            del self.vars[name]
        dropped.difference_update(outputs_of(self.ops))
        # the set itself: a backward part on its way into the block adds to it
        self.written.intersection_update(self.vars)
        self.written.difference_update(dropped)

    def __repr__(self) -> str:
        return f"<block {self.idx}, parent {self.parent}: {len(self.ops)} ops, {len(self.vars)} variables>"


def is_cut_off(block: Block, inputs: Slots) -> bool:
    """Whether no gradient flows to anything that control flow reads through these slots."""
    handed_in = [n for slot in ("x", "params", "seq") for n in inputs.get(slot, ())]
    return all(block.var(n).stop_gradient for n in handed_in)


#: numbers, and what attrs may be compared by: a union made in the call would cost as much as the rest of it
NUMBERS = (int, float)
COMPARED = (int, float, str, tuple)


def _number(value, args: Args) -> Any:
    """A number of NumPy as Python's; as an array if it makes what it meets wider, which that one never does."""
    check_known(value)
    if type(value) is not np.float64:
        return value
    sizes = (a.dtype.itemsize for a in args if isinstance(a, Variable) and a.dtype.kind == "f")
    return np.array(value) if min(sizes, default=8) < 8 else float(value)


def _is_default(value, default) -> bool:
    alike = type(value) is type(default) and isinstance(value, COMPARED)
    return value is default or (alike and value == default)
