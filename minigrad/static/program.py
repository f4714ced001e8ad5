"""Program, Block, Operator, Variable: a computation written down before it runs.

Vocabulary
    Program    a list of blocks; block 0 is the root
    Block      operators in order, variables by name, the index of its parent (-1 for the root)
    Operator   type, inputs {slot: [names]}, outputs {slot: [names]}, attrs; the slots are the parameter
               names of the primitive, a number given for an input is kept as an attr of that name
    Variable   name, shape (-1 = any size), dtype; ``persistable`` ones outlive a run
    role       what an operator is there for: "forward", "loss", "backward" or "optimize"

Names are strings because forward and backward part are text that runs later, in scopes: there is no object to hold on to.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..errors import ProgramError, code_line, describe, did_you_mean, user_frame, user_line
from ..registry import Primitive
from ..values import Operators, ufunc_on_values
from .infer import infer_outputs
from .op_info import bind_slots, op_info

EMPTY = "@EMPTY@"               #: stands where a list of gradients has none
_NOTHING: dict[str, Any] = {}


class ShapeOf:
    """The shape of a Variable, known when the program runs: an attr given as ShapeOf becomes a slot ``<attr>_like``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"shape of {self.name}"


class Variable(Operators):
    """A name in a Block: what will have a value when the program runs.

    Attributes: ``block``, ``name``, ``shape`` (-1 = any size), ``dtype``, ``persistable``, ``trainable`` (a parameter),
    ``is_data`` (fed), ``stop_gradient``.  Operators and functions of minigrad apply to it and append Operators.
    """

    __slots__ = ("block", "name", "shape", "dtype", "persistable", "trainable", "is_data", "_stop", "_derived_stop")

    def __init__(
        self, block: Block, name: str, shape: Iterable[int], dtype: Any, persistable: bool = False, trainable: bool = False,
        is_data: bool = False, stop_gradient: bool | None = None, derived_stop: bool = False,
    ) -> None:
        self.block, self.name, self.shape = block, name, tuple(shape)
        self.dtype = dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)
        self.persistable, self.trainable, self.is_data = persistable, trainable, is_data
        self._stop, self._derived_stop = stop_gradient, derived_stop

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient flows to this Variable: as set, else as follows from what it is made of."""
        return self._derived_stop if self._stop is None else self._stop

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self._stop = bool(value)

    @property
    def cuts(self) -> bool:
        """Whether the user said that gradients end here."""
        return self._stop is True

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def program(self) -> Program:
        """The Program this Variable belongs to."""
        return self.block.program

    def apply_primitive(self, primitive: Primitive, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Append an Operator of this primitive; its outputs are new Variables."""
        return self.block.program.current_block().append_primitive(primitive, args, attrs)

    def __bool__(self) -> bool:
        raise ProgramError(
            f"the value of Variable {self.name!r} is not known while the program is being built, so Python's if, while, and, or "
            f"cannot decide on it.\n  at {user_line()}\n  repair: static.cond(pred, true_fn, false_fn) or static.while_loop(cond, body, loop_vars)"
        )

    def _no_value(self, *args: Any) -> Any:
        raise ProgramError(
            f"Variable {self.name!r} has no value while the program is being built.\n  at {user_line()}\n"
            f"  repair: fetch it: static.Executor().run(program, feed={{…}}, fetch_list=[{self.name!r}])"
        )

    __float__ = __int__ = __index__ = item = numpy = __array__ = _no_value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return ufunc_on_values(ufunc, method, inputs, kwargs, Variable)

    def __len__(self) -> int:
        if not self.shape or self.shape[0] < 0:
            raise ProgramError(f"the length of Variable {self.name!r} {list(self.shape)} is not known while the program is being built")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __repr__(self) -> str:
        return f"Variable({self.name}: {self.dtype}{list(self.shape)})"


class Operator:
    """One operation of a Block: type, slots of names, attrs, role."""

    __slots__ = ("type", "inputs", "outputs", "attrs", "role", "forward_op", "code", "lasti", "reads")

    def __init__(
        self, type: str, inputs: dict[str, list[str]], outputs: dict[str, list[str]], attrs: dict[str, Any] | None = None,
        role: str = "forward", forward_op: Operator | None = None,
    ) -> None:
        self.type, self.inputs, self.outputs = type, inputs, outputs
        self.attrs: dict[str, Any] = {} if attrs is None else attrs
        self.role, self.forward_op = role, forward_op
        self.code: Any = None if forward_op is None else forward_op.code
        self.lasti = 0 if forward_op is None else forward_op.lasti
        self.reads: tuple[str, ...] | None = None

    @property
    def input_names(self) -> list[str]:
        """All names it reads, in slot order."""
        return [n for names in self.inputs.values() for n in names]

    @property
    def output_names(self) -> list[str]:
        """All names it writes, in slot order."""
        return [n for names in self.outputs.values() for n in names]

    @property
    def source_line(self) -> str:
        """The user's line that created it; a grad op has its forward op's."""
        return "" if self.code is None else code_line(self.code, self.lasti)

    @property
    def sub_blocks(self) -> dict[str, int]:
        """The blocks it holds: attr → block index."""
        return {k: v for k, v in self.attrs.items() if k in ("sub_block", "else_block", "cond_block")}

    def __repr__(self) -> str:
        from .printer import format_op

        return format_op(self)


class Block:
    """Operators in order and the variables they use."""

    def __init__(self, program: Program, idx: int, parent: int = -1, forward_block: int = -1) -> None:
        self.program, self.idx, self.parent, self.forward_block = program, idx, parent, forward_block
        self.ops: list[Operator] = []
        self.vars: dict[str, Variable] = {}
        self.written: set[str] = set()

    @property
    def parent_block(self) -> Block | None:
        """The block look-ups climb to; None for the root."""
        return self.program.blocks[self.parent] if self.parent >= 0 else None

    def lookup(self) -> Iterator[Block]:
        """The blocks in which a name is looked for: this one, its forward block, then the parents."""
        block: Block | None = self
        while block is not None:
            yield block
            if block.forward_block >= 0:
                yield self.program.blocks[block.forward_block]
            block = block.parent_block

    def find_var(self, name: str) -> Variable | None:
        """The variable of this name here or in a parent; None if there is none."""
        found = self.vars.get(name)
        if found is not None:
            return found
        for block in self.lookup():
            if name in block.vars:
                return block.vars[name]
        return None

    def var(self, name: str) -> Variable:
        """The variable of this name here or in a parent.  Errors: `ProgramError` with the nearest name."""
        found = self.find_var(name)
        if found is None:
            raise ProgramError(f"block {self.idx} has no variable {name!r}{did_you_mean(name, self.visible_names())}")
        return found

    def has_var(self, name: str) -> bool:
        """Whether the name is known here or in a parent."""
        return self.find_var(name) is not None

    def visible_names(self) -> list[str]:
        """Every variable that can be named here, nearest block first."""
        return [n for b in self.lookup() for n in b.vars]

    def create_var(self, name: str | None = None, shape: Iterable[int] = (), dtype: Any = float, **flags: Any) -> Variable:
        """Declare a variable.  Errors: `ProgramError` if the name is taken in this block or holds odd characters."""
        name = self.program.unique_name("var") if name is None else name
        check_name(name)
        if name in self.vars:
            raise ProgramError(f"block {self.idx} has a variable {name!r} already: {self.vars[name]!r}")
        made = self.vars[name] = Variable(self, name, shape, dtype, **flags)
        self.program.changed()
        return made

    def append_op(
        self, type: str, inputs: dict[str, Any] | None = None, outputs: dict[str, Any] | None = None,
        attrs: dict[str, Any] | None = None, role: str | None = None,
    ) -> Operator:
        """Append an operator by slots; variables that its outputs name and that do not exist yet are created.

        Names may be given as Variables.  Errors: `ProgramError` for an unknown type, slot, attr or input name, for an
        input that nothing has written, and for shapes the op does not accept.
        """
        named = {s: _names(v) for s, v in (inputs or _NOTHING).items()}
        outs = {s: _names(v) for s, v in (outputs or _NOTHING).items()}
        info = op_info(type)
        op = Operator(type, named, outs, bind_slots(info, named, outs, dict(attrs or _NOTHING)))
        op.role = role or self.program.role
        for name in op.input_names:
            self._check_readable(name, type)
        for name in op.output_names:
            if name != EMPTY:
                check_name(name)
        return self._append(op, user=True)

    def _check_readable(self, name: str, type: str) -> None:
        if name == EMPTY:
            return
        var = self.var(name)
        if not (var.persistable or var.is_data or name in var.block.written):
            raise ProgramError(
                f"{type} reads {name!r}, but no operator has written it and it is neither data nor a parameter.\n  at {user_line()}\n"
                f"  repair: append the op that computes {name!r} first, or declare it with static.data or static.parameter"
            )

    def append_primitive(self, primitive: Primitive, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Append an operator from a call like ``mg.mul(x, 2.0)``; returns its output Variables."""
        args, attrs = primitive.bind(args, attrs)
        inputs: dict[str, list[str]] = {}
        kept: dict[str, Any] = {}
        for slot, arg in zip(primitive.slot_names(len(args)), args, strict=True):
            if arg is None:
                continue
            if isinstance(arg, bool | int | float) and slot != primitive.list_input:
                kept[slot] = arg
            else:
                inputs.setdefault(slot, []).append(self.program.as_variable(arg, self).name)
        for name, value in attrs.items():
            if isinstance(value, ShapeOf):
                inputs[f"{name}_like"] = [value.name]
            elif not _is_default(value, primitive.attrs[name]):
                kept[name] = value
        op = Operator(primitive.type, inputs, {}, kept)
        op.role = self.program.role
        self._append(op, user=True)
        made = [self.vars[n] for n in op.output_names]
        return made if primitive.list_output or len(primitive.outputs) > 1 else made[0]

    def _append(self, op: Operator, user: bool = False) -> Operator:
        """Append a checked operator: infer and declare its outputs, remember the user's line."""
        if user:
            frame = user_frame(2)
            if frame is not None:
                op.code, op.lasti = frame.f_code, frame.f_lasti
        infer_outputs(self, op)
        self.ops.append(op)
        for names in op.outputs.values():
            self.written.update(names)
        self.program.changed()
        return op

    def __repr__(self) -> str:
        return f"<block {self.idx}, parent {self.parent}: {len(self.ops)} ops, {len(self.vars)} variables>"


class Program:
    """A list of blocks; a program that trains holds forward, backward and update operators.

    >>> from minigrad import static
    >>> import minigrad as mg
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [-1, 2]); w = static.parameter("w", [[1.0], [2.0]])
    ...     loss = mg.matmul(x, w).sum()
    ...     pairs = static.append_backward(loss)
    >>> [op.type for op in prog.global_block().ops]
    ['matmul', 'reduce_sum', 'fill_constant', 'reduce_sum_grad', 'matmul_grad']
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.initial: dict[str, np.ndarray[Any, Any]] = {}      # start values of persistable variables
        self.history: list[str] = []                            # which transformations made this program
        self.pruned: list[tuple[str, str]] = []                 # (grad op type, why it was not made)
        self.version = 0                                        # changes whenever the program does
        self.role = "forward"
        self.inputs: list[str] = []                             # what `trace` fed and returned
        self.outputs: list[str] = []
        self.lifts_tensors = False                              # `trace` turns Tensors it meets into parameters
        self.lifted: dict[int, tuple[Any, str]] = {}
        self._counts: dict[str, int] = {}
        self._current: list[int] = [0]
        self.create_block(-1)

    def create_block(self, parent: int | None = None, forward_block: int = -1) -> Block:
        """Add a block; its parent is the current one by default."""
        made = Block(self, len(self.blocks), self._current[-1] if parent is None else parent, forward_block)
        self.blocks.append(made)
        self.changed()
        return made

    @contextmanager
    def block_guard(self, block: Block) -> Iterator[Block]:
        """New operators go into this block."""
        self._current.append(block.idx)
        try:
            yield block
        finally:
            self._current.pop()

    @contextmanager
    def role_guard(self, role: str) -> Iterator[None]:
        """New operators get this role."""
        before, self.role = self.role, role
        try:
            yield
        finally:
            self.role = before

    def current_block(self) -> Block:
        """The block new operators go into."""
        return self.blocks[self._current[-1]]

    def global_block(self) -> Block:
        """Block 0, the root."""
        return self.blocks[0]

    def block(self, index: int) -> Block:
        """A block by index."""
        return self.blocks[index]

    def changed(self) -> None:
        """Note that plans made for this program are out of date."""
        self.version += 1

    def unique_name(self, prefix: str) -> str:
        """A name nobody has yet: ``mul_0``, ``mul_1``."""
        while True:
            k = self._counts.get(prefix, 0)
            self._counts[prefix] = k + 1
            name = f"{prefix}_{k}"
            if not any(name in b.vars for b in self.blocks):
                return name

    def all_variables(self) -> Iterator[Variable]:
        """Every variable of every block."""
        return (v for b in self.blocks for v in b.vars.values())

    def parameters(self) -> list[Variable]:
        """The trainable variables, in the order of creation."""
        return [v for v in self.blocks[0].vars.values() if v.trainable]

    def as_variable(self, value: Any, block: Block) -> Variable:
        """A Variable for an argument: itself, or a constant for an array."""
        if isinstance(value, Variable):
            if value.block.program is not self:
                raise ProgramError(
                    f"Variable {value.name!r} belongs to another program.\n  at {user_line()}\n"
                    f"  repair: build both in one program_guard, or feed the fetched value"
                )
            return value
        if isinstance(value, Operators):
            return self._lift(value)
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise ProgramError(f"a program computes with numbers, not with {describe(value)}\n  at {user_line()}")
        return self.constant(array)

    def _lift(self, tensor: Any) -> Variable:
        if not self.lifts_tensors:
            raise ProgramError(
                f"a Tensor ({describe(tensor)}) cannot be mixed with Variables: it has a value now, they get theirs when the program runs.\n"
                f"  at {user_line()}\n  repair: static.parameter(name, tensor) or static.data(name, shape), or mg.trace(f) for a whole function"
            )
        known = self.lifted.get(id(tensor))
        if known is not None:
            return self.blocks[0].vars[known[1]]
        if tensor.requires_grad:
            name = tensor.name if tensor.name and tensor.name not in self.blocks[0].vars else self.unique_name("param")
            made = self.add_persistable(name, tensor.detach().numpy(), trainable=True)
        else:
            made = self.constant(tensor.numpy())
        self.lifted[id(tensor)] = (tensor, made.name)
        return made

    def constant(self, array: np.ndarray[Any, Any]) -> Variable:
        """A persistable variable that never changes and has no gradient."""
        return self.add_persistable(self.unique_name("const"), array, trainable=False)

    def add_persistable(self, name: str, value: Any, trainable: bool) -> Variable:
        """A persistable variable in the root block with its start value."""
        array = np.array(getattr(value, "_data", value))
        made = self.blocks[0].create_var(name, array.shape, array.dtype, persistable=True, trainable=trainable,
                                         derived_stop=not trainable)
        self.initial[name] = array
        return made

    def clone(self, for_test: bool = False) -> Program:
        """A copy; ``for_test`` keeps the forward operators only, and dropout passes its input on."""
        from .transform import clone

        return clone(self, for_test)

    def prune(self, targets: Any) -> Program:
        """A copy with only the operators that the targets need."""
        from .transform import prune

        return prune(self, targets)

    def to_json(self) -> str:
        """The program as JSON, byte-identical for equal programs; `from_json` reads it back."""
        from .serialize import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Program:
        """A program from its JSON.  Errors: `ProgramFormatError`, and nothing else, for whatever is not one."""
        from .serialize import from_json

        return from_json(text)

    def __str__(self) -> str:
        from .printer import format_program

        return format_program(self)

    def __repr__(self) -> str:
        return f"<Program: {len(self.blocks)} blocks, {sum(len(b.ops) for b in self.blocks)} ops>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        from ..viz import draw

        return draw(self)._repr_mimebundle_(**kwargs)


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and isinstance(value, int | float | str | tuple) and value == default)


def _names(value: Any) -> list[str]:
    items = value if isinstance(value, list | tuple) else [value]
    return [v.name if isinstance(v, Variable) else str(v) for v in items]


def check_name(name: Any) -> None:
    """A variable's name is a short text without white space, commas, or brackets.  Errors: `ProgramError`."""
    if not isinstance(name, str) or not name or len(name) > 200 or any(c.isspace() or c in "(){}[],=:\"'#;<>\\" or not c.isprintable() for c in name):
        raise ProgramError(f"{name!r} cannot be the name of a variable: use letters, digits, and _ . @ / -")


_default: ContextVar[Program | None] = ContextVar("minigrad_program", default=None)


def default_program() -> Program:
    """The program of the innermost `program_guard`."""
    program = _default.get()
    if program is None:
        raise ProgramError(f"there is no program to build in.\n  at {user_line()}\n  repair: with static.program_guard(static.Program()): …")
    return program


@contextmanager
def program_guard(program: Program) -> Iterator[Program]:
    """Build in this program: ``with static.program_guard(prog): ...``."""
    if not isinstance(program, Program):
        raise ProgramError(f"program_guard takes a Program, not {describe(program)}")
    token = _default.set(program)
    try:
        yield program
    finally:
        _default.reset(token)


def data(name: str, shape: Iterable[int], dtype: Any = np.float64) -> Variable:
    """A variable that is fed: ``static.data("x", [-1, 3])``; -1 is any size."""
    shape = tuple(int(n) for n in shape)
    if any(n < -1 for n in shape):
        raise ProgramError(f"data {name!r}: a size is -1 (any) or at least 0, not {min(shape)}")
    program = default_program()
    return program.global_block().create_var(name, shape, dtype, is_data=True, derived_stop=True)


def parameter(name: str, init: Any, trainable: bool = True) -> Variable:
    """A persistable variable that training changes; ``init`` is its start value (array or Tensor)."""
    array = np.array(getattr(init, "_data", init))
    if array.dtype.kind in "iu":
        array = array.astype(float)
    if array.dtype.kind != "f":
        raise ProgramError(f"parameter {name!r} needs real numbers, not {describe(array)}")
    return default_program().add_persistable(name, array, trainable)
