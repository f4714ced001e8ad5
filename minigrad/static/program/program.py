"""Program, Block, Operator, Variable: a computation written down before it runs.

Vocabulary
    Program    a list of blocks; block 0 is the root
    Block      operators in order, variables by name, the index of its parent (-1 for the root)
    Operator   type, inputs {slot: [names]}, outputs {slot: [names]}, attrs; the slots are the parameter
               names of the primitive, a number given for an input is kept as an attr of that name
    Variable   name, shape (-1 = any size), dtype; ``persistable`` ones outlive a run
    role       what an operator is there for: "forward", "loss", "backward" or "optimize"

Names are strings because forward and backward part are text that runs later, in scopes: there is no
object to hold on to.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...errors import describe, unmasked, wrong
from ...errors.other_libraries import TABLES, knows_others
from ...grad_names import CONSTANT, whole
from ...ops.shape import Array
from ...primitives.values import Operators
from ..text.literals import LIMIT
from .block import Block
from .operator import Operator
from .variable import Variable


class Pruned(NamedTuple):
    """A grad op that was not made, why, and the operator whose it would have been."""

    grad_op: str
    reason: str
    op: Operator


@dataclass
class BackwardCall:
    """What one call of append_backward was asked, kept for `mg.why`; copies of a program keep it, too."""

    block: int
    targets: list[str]
    no_grad: set[str]
    gradients: dict[str, str]  # variable → gradient

    def begin(self, block: Block) -> int:
        """Where its operators begin in its block: behind those that were there when it was called."""
        gradients = set(self.gradients.values())
        for k, op in enumerate(block.ops):
            made_here = op.role in ("loss", "backward")
            if made_here and not gradients.isdisjoint(map(whole, op.output_names)):
                return k
        return len(block.ops)


@knows_others("a Program", TABLES["Program"])
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
        self.initial: dict[str, Array] = {}  # start values of persistable variables
        self.history: list[str] = []  # which transformations made this program
        self.pruned: list[Pruned] = []  # grad ops that were not made
        self.backward_calls: list[BackwardCall] = []  # what `why` asks
        self.error_clips: dict[str, tuple[float, float]] = {}  # variable → limits of its gradient
        self.version = 0  # changes whenever the program does
        self.role = "forward"
        self.inputs: list[str] = []  # what `trace` fed and returned
        self.outputs: list[str] = []
        self.lifts_tensors = False  # `trace` turns Tensors it meets into parameters
        self.derive: Callable[[Any], None] | None = None  # … and the ops behind them into operators
        self.lifted: dict[int, tuple[Any, str]] = {}
        self._counts: dict[str, int] = {}
        self._current: list[int] = [0]
        self.create_block(-1)

    def create_block(self, parent: int | None = None, forward_block: int = -1) -> Block:
        """Add a block; its parent is the current one by default.

        Errors: `ProgramError` for blocks that nest too deep.
        """
        parent = self._current[-1] if parent is None else parent
        block = Block(self, len(self.blocks), parent, forward_block)
        self.blocks.append(block)
        self.changed()
        return block

    @contextmanager
    def block_guard(self, block: Block) -> Iterator[Block]:
        """New operators go into this block."""
        self._current.append(block.idx)
        try:
            yield block
        finally:
            self._current.pop()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: if building fails inside, blocks, operators, variables and names are as before."""
        before = self.state()
        try:
            yield
        except BaseException:
            self.restore(before)
            raise

    def state(self) -> Any:
        """What `restore` needs: the lengths of what can grow, of the blocks those that are being built."""
        built = map(self.blocks.__getitem__, self._current)  # the first is the root
        grown = len(self.blocks), len(self.pruned), len(self.backward_calls)
        return [(b, len(b.ops), len(b.vars)) for b in built], grown, self._counts.copy()

    def restore(self, state: Any) -> None:
        """Drop what was built since; start values, and Tensors that were lifted, of variables that are gone, too."""
        built, (blocks, pruned, calls), self._counts = state
        del self.blocks[blocks:]
        del self.pruned[pruned:]
        del self.backward_calls[calls:]
        for block, *lengths in built:
            block.truncate(*lengths)
        known = self.blocks[0].vars
        self.initial = {n: v for n, v in self.initial.items() if n in known}
        self.lifted = {k: v for k, v in self.lifted.items() if v[1] in known}
        self.changed()

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
            for block in self.blocks:
                if name in block.vars:
                    break
            else:
                return name

    def all_variables(self) -> Iterator[Variable]:
        """Every variable of every block."""
        return (v for b in self.blocks for v in b.vars.values())

    def _marked(self) -> set[str]:
        """The names of the variables at which the user said that gradients end."""
        return {v.name for v in self.all_variables() if v._stop is True}

    def parameters(self) -> list[Variable]:
        """The trainable variables, in the order of creation."""
        return [v for v in self.blocks[0].vars.values() if v.trainable]

    def as_variable(self, value: Any, block: Block) -> Variable:
        """A Variable for an argument: itself, or a constant for an array."""
        if isinstance(value, Variable):
            if value.block.program is not self:
                what = f"Variable {value.name!r} belongs to another program"
                raise wrong(what, "build both in one program_guard, or feed the fetched value")
            if value.block is not block and block.find_var(value.name) is not value:
                what = f"Variable {value.name!r} lives inside block {value.block.idx} and has no value outside of it"
                raise wrong(what, "return it from the branch or the body")
            return value
        if isinstance(value, Operators):
            return lift(self, value)
        array = np.asarray(unmasked(value))
        if array.dtype.kind not in "fiub":
            what = f"a program computes with numbers, not with {describe(value)}"
            raise wrong(what, "a Variable, a number or an array of numbers")
        return self.constant(array)

    def constant(self, array: Array) -> Variable:
        """A persistable variable that never changes and has no gradient."""
        return self.add_persistable(self.unique_name(CONSTANT), array, trainable=False)

    def add_persistable(self, name: str, value: Any, trainable: bool) -> Variable:
        """A persistable variable in the root block with its start value."""
        array = np.array(getattr(value, "_data", value), order="C")
        flags = {"persistable": True, "trainable": trainable, "derived_stop": not trainable}
        var = self.blocks[0].create_var(name, array.shape, array.dtype, **flags)
        self.initial[name] = array
        return var

    def clone(self, for_test: bool = False) -> "Program":
        """A copy; ``for_test`` keeps the forward operators only, and dropout passes its input on.

        Errors: `ProgramError` ``for_test``, if the program moves running statistics that its
        forward part does not use.
        """
        from .transform import clone

        return clone(self, for_test)

    def prune(self, targets: Any) -> "Program":
        """A copy with only the operators that the targets need."""
        from .transform import prune

        return prune(self, targets)

    def to_json(self) -> str:
        """The program as JSON, byte-identical for equal programs; `from_json` reads it back."""
        from ..text.json import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str, limit: int = LIMIT) -> "Program":
        """A program from its JSON, which takes at most ``limit`` bytes of memory.

        Errors: `ProgramFormatError`, and nothing else, for whatever is not one.
        """
        from ..text.json import from_json

        return from_json(text, limit)

    def __str__(self) -> str:
        from ..text.syntax import format_program

        return format_program(self)

    def __repr__(self) -> str:
        return f"<Program: {len(self.blocks)} blocks, {sum(len(b.ops) for b in self.blocks)} ops>"

    def _repr_mimebundle_(self, **kwargs) -> Any:
        from ...viz import draw

        return draw(self)._repr_mimebundle_(**kwargs)


_default: ContextVar[Program | None] = ContextVar("minigrad_program", default=None)


def default_program() -> Program:
    """The program of the innermost `program_guard`."""
    program = _default.get()
    if program is None:
        what = "there is no program to build in"
        raise wrong(what, "with static.program_guard(static.Program()): …")
    return program


@contextmanager
def program_guard(program: Program) -> Iterator[Program]:
    """Build in this program: ``with static.program_guard(prog): ...``.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [3])
    >>> x.program is prog
    True
    """
    if not isinstance(program, Program):
        what = f"program_guard takes a Program, not {describe(program)}"
        raise wrong(what, "static.program_guard(static.Program())")
    token = _default.set(program)
    try:
        yield program
    finally:
        _default.reset(token)


def data(name: str, shape: Iterable[int | None], dtype: Any = np.float64) -> Variable:
    """A variable that is fed; a size of -1 (or None) is any size.  Errors: `ProgramError`.

    >>> from minigrad import static
    >>> with static.program_guard(static.Program()):
    ...     static.data("x", [-1, 3])
    Variable(x: float64[-1, 3])
    """
    sizes = tuple(-1 if n is None else n for n in shape)
    for n in sizes:
        if not isinstance(n, int | np.integer) or n < -1:
            what = f"data {name!r}: a size is -1 (any) or at least 0, not {n!r}"
            raise wrong(what, f"static.data({name!r}, [-1, 3])")
    known = np.dtype(dtype)
    if known.kind not in "fiub":
        raise wrong(
            f"data {name!r}: a program computes with numbers and truth values, not with {dtype!r}",
            "dtype='float64', 'float32', 'int64' or 'bool'",
        )
    block = default_program().global_block()
    return block.create_var(name, map(int, sizes), known, is_data=True, derived_stop=True)


def parameter(name: str, init: Any, trainable: bool = True) -> Variable:
    """A persistable variable that training changes; ``init`` is its start value (array or Tensor).

    Errors: `ProgramError` for anything but real numbers, and for a name that is taken.

    >>> from minigrad import static
    >>> with static.program_guard(static.Program()):
    ...     static.parameter("w", [[1.0, 2.0]])
    Variable(w: float64[1, 2])
    """
    array = np.array(getattr(unmasked(init), "_data", init))
    if array.dtype.kind in "iu":
        array = array.astype(float)
    if array.dtype.kind != "f":
        what = f"parameter {name!r} needs real numbers, not {describe(array)}"
        raise wrong(what, "an array, a Tensor or lists of numbers")
    return default_program().add_persistable(name, array, trainable)


def error_clip(variable: Variable, min: float, max: float) -> None:
    """Keep the gradient of a Variable between two numbers, from the moment it is produced.

    To be called before append_backward, which puts a ``clip`` in place right behind the operator
    that completes the gradient.  Errors: `ProgramError` unless ``min <= max``.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", 3.0); h = w * w
    ...     static.error_clip(h, -0.5, 0.5)
    ...     pairs = static.append_backward(h * 10.0)
    >>> static.Executor().run(prog, fetch_list=["w@GRAD"])
    [array(3.)]
    """
    if not min <= max:
        what = f"error_clip needs min <= max, not {min} and {max}"
        raise wrong(what, f"static.error_clip({variable.name}, -1.0, 1.0)")
    variable.program.error_clips[variable.name] = (float(min), float(max))


def lift(program: Program, tensor) -> Variable:
    """The parameter or constant that a Tensor stands for.  Errors: `ProgramError` where nothing is traced."""
    if not program.lifts_tensors:
        raise wrong(
            f"a Tensor ({describe(tensor)}) cannot be mixed with Variables: it has a value now, "
            "they get theirs when the program runs",
            "a constant is an array of NumPy: tensor.data, np.ones(shape); what is trained is "
            "static.parameter(name, tensor), what is fed static.data(name, shape)",
        )
    if program.derive is not None:
        program.derive(tensor)
    known = program.lifted.get(id(tensor))
    if known is not None:
        return program.blocks[0].vars[known[1]]
    if not tensor.is_leaf:
        raise wrong(
            f"a Tensor ({describe(tensor)}, grad_fn=<{tensor.grad_fn.name()}>) was computed outside of "
            "the traced function, or changed in place: the program does not know what it came from",
            "compute it inside the function, or pass x.detach() for a constant",
        )
    if tensor.requires_grad:
        free = tensor.name and tensor.name not in program.blocks[0].vars
        name = tensor.name if free else program.unique_name("param")
        var = program.add_persistable(name, tensor.detach().numpy(), trainable=True)
    else:
        var = program.constant(tensor.numpy())
    program.lifted[id(tensor)] = (tensor, var.name)
    return var
