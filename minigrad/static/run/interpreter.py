"""How a program runs: where its values are, what happened, and how every kind of operator is carried out.

A Scope maps names to values and has a parent.  A loop makes one Scope per step and keeps them,
since its grad block reads the values of each step; that block runs in a Scope of its own inside the
step's.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ...errors import MinigradError, ProgramError, describe, told, wrong
from ...grad_names import EMPTY, GRAD
from ...primitives.arguments import ByName, Function, Listed
from ...primitives.dispatch import check_finite
from ..program.operator import BRANCHES, Operator, rows, unwritten
from ..program.program import Program
from .kernels import refused, run_op
from .limits import HELD, check_room, endless


class Scope:
    """Names and their values; what is not here is looked for in the parent.

    >>> outer = Scope()
    >>> outer.values["w"] = 1.0
    >>> Scope(outer)["w"], "b" in outer
    (1.0, False)
    """

    __slots__ = ("block", "parent", "record", "values")

    def __init__(self, parent: "Scope | None" = None, block: int = 0) -> None:
        self.values: ByName = {}
        self.parent, self.block = parent, block
        self.record: Record | None = None  # of the last run that was given this scope

    def find(self, name: str) -> Any:
        """The value of a name, None if it has none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        return None

    def __getitem__(self, name: str) -> Any:
        value = self.find(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def __repr__(self) -> str:
        return f"<scope of block {self.block}: {', '.join(self.values)}>"


def value_of(scope: Scope, name: str) -> Any:
    """The value of a name.  Errors: `ProgramError` if nothing has written it."""
    value = scope.find(name)
    if value is None:
        raise unwritten(name)
    return value


class Step(NamedTuple):
    """One thing a run did: ``kind`` is "enter", "op" or "leave".

    ``number`` is the place of an operator in its block, ``turn`` counts the turns of a loop from 0.
    ``values`` are those an operator wrote, or those a block found when it was entered.
    """

    kind: str
    block: int
    number: int | None
    turn: int | None
    values: ByName


@dataclass(eq=False)
class Record:
    """The steps of one run of ``program``.

    >>> from minigrad import static
    >>> program, scope = static.Program(), static.Scope()
    >>> with static.program_guard(program):
    ...     n = static.while_loop(lambda n: n < 2, lambda n: n + 1, [0])
    >>> _ = static.Executor().run(program, scope=scope)
    >>> print(*(s.kind for s in scope.record.steps if s.block == 2))  # the condition, three times
    enter op leave enter op leave enter op leave
    """

    program: Program
    steps: list[Step] = field(default_factory=list)

    def note(
        self,
        kind: str,
        scope: Scope,
        turn: int | None,
        names: Iterable[str],
        number: int | None = None,
    ) -> None:
        """One step more, in the block of a scope, with the values that some names have."""
        values = {n: value for n in names if (value := scope.find(n)) is not None}
        self.steps.append(Step(kind, scope.block, number, turn, values))


def outer_reads(ops: Iterable[Operator]) -> list[str]:
    """The names that operators read before they write them."""
    written, read = {EMPTY}, dict[str, None]()
    for op in ops:
        for name in op.input_names:
            if name not in written:
                read[name] = None
        written.update(op.output_names)
    return list(read)


# -- How cond, while and recurrent run, and their grad ops ---------------------------------
#
# Every step of a loop has a Scope of its own; they are kept in the variable of the slot ``scopes``, where the grad op
# finds them.  A grad block runs in a Scope inside the one of the step it belongs to, from the last step to the first.


@dataclass
class Run:
    """One run of a program: how every kind of operator is carried out."""

    program: Program
    updates: Scope
    step_limit: int
    check_finite: bool
    keep: bool  # the scopes of grad blocks, for looking at
    memory_limit: int
    record: Record | None  # what happens is noted there, for looking at

    def __post_init__(self) -> None:
        self.room = self.memory_limit  # bytes for more values

    def block(self, scope: Scope, turn: int | None = None) -> None:
        """Run the operators of a scope's block in it; the names it starts with take room, too.

        ``turn`` counts those of a loop.
        """
        block = self.program.blocks[scope.block]
        self._take(HELD * (1 + len(scope.values)), f"what block {block.idx} starts with")
        record = self.record
        if record is not None:
            record.note("enter", scope, turn, outer_reads(block.ops))
        for k, op in enumerate(block.ops):
            try:
                HANDLERS.get(op.type, Run.simple)(self, op, scope)
            except MinigradError:
                raise
            except Exception as error:
                values = {s: [*map(scope.find, names)] for s, names in op.inputs.items()}
                raise refused(op, values, error, f"#{k} ", op.source_line) from error
            if record is not None:
                record.note("op", scope, turn, op.output_names, k)
            if self.check_finite:
                self._finite(k, op, scope)
        if record is not None:
            record.note("leave", scope, turn, ())

    def simple(self, op: Operator, scope: Scope) -> None:
        """Run a primitive or its grad op."""
        slots = {
            s: [value_of(scope, n) for n in names if n != EMPTY] for s, names in op.inputs.items()
        }
        arrays = {s: [*map(np.asarray, values)] for s, values in slots.items()}
        check_room(op, arrays, self.room)
        for name, value in run_op(op, slots):
            if name != EMPTY:
                self.write(scope, name, value)

    def write(self, scope: Scope, name: str, value) -> None:
        """Set a name: persistable ones in the transaction, others in the scope of the run."""
        var = self.program.blocks[scope.block].find_var(name)
        target = self.updates if var is not None and var.persistable else scope
        array = target.values[name] = np.asarray(value)
        self._take(array.nbytes + HELD, name, array)

    def _take(self, size: int, last: str, array=None) -> None:
        """Take room.  Errors: `ProgramError` when it is used up."""
        self.room -= size
        if self.room < 0:
            last = last if array is None else f"{last!r}, {describe(array)},"
            what = f"the values of this run are more than {self.memory_limit} bytes (memory_limit)"
            advice = "smaller shapes, or Executor.run(…, memory_limit=…)"
            raise wrong(f"{what}; {last} is one too many", advice)

    def _finite(self, k: int, op: Operator, scope: Scope) -> None:
        args = {n: scope.find(n) for n in op.input_names if n != EMPTY}
        for name in op.output_names:
            value = scope.find(name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                check_finite(f"#{k} {op.type}", value, args, op.source_line, f" in {name!r}")


def run_cond(run: Run, op: Operator, scope: Scope) -> None:
    """Run the branch that ``pred`` chooses, or the grad block of the one that was taken."""
    prefix = "true" if np.all(value_of(scope, op.inputs["pred"][0])) else "false"
    block = op.attrs[BRANCHES[prefix]]
    if op.type == "cond":
        made, local_names, inner = op.outputs["out"], f"{prefix}_out", Scope(scope, block)
        scope.values[op.outputs["scopes"][0]] = inner
    else:
        made, local_names = op.outputs["params_grad"], f"{prefix}_params"
        inner = _grad_scope(run, value_of(scope, op.inputs["scopes"][0]), block)
    for local, seed in rows(op, f"{prefix}_seeds", "out_grad"):
        inner.values[local] = value_of(scope, seed)
    run.block(inner)
    _set(scope, made, _values(inner, op.attrs[local_names]))


def in_order(value) -> Any:
    """What goes from block to block, in C order: the same bits follow, whichever branch or step it comes from."""
    return np.asarray(value, order="C")


def run_loop(run: Run, op: Operator, scope: Scope) -> None:
    """Run the body of a ``while`` as long as its condition holds, of a ``recurrent`` once per element of its sequences.

    The outputs of a ``recurrent`` are stacked.
    """
    seqs = [value_of(scope, n) for n in op.inputs.get("seq", ())]
    turns: Iterable[int] = count()
    if op.type == "recurrent":
        if len({len(s) for s in seqs}) != 1:
            what = f"the sequences of a recurrent op have different lengths: {[*map(len, seqs)]}"
            raise ProgramError(told(what, "cut or fill them up to one length", op.source_line))
        turns = range(len(seqs[0]))
    values = _values(scope, op.inputs["x"])
    scopes: list[Scope] = []
    for t in turns:
        step = Scope(scope, op.attrs["sub_block"])
        _set(step, op.attrs["carried"], values)
        _set(step, op.attrs.get("steps", ()), [s[t] for s in seqs])
        if op.type == "while" and not _goes_on(run, op, step, t):
            break
        run.block(step, t)
        values = _values(step, op.attrs["next"])
        scopes.append(step)
    for local, name in rows(op, "step_out", "stacked"):
        if scopes:
            scope.values[name] = np.stack([s.values[local] for s in scopes])
        else:
            var = run.program.blocks[op.attrs["sub_block"]].vars[local]
            scope.values[name] = np.zeros([0, *(max(n, 0) for n in var.shape)], var.dtype)
    _set(scope, [*op.outputs["out"], *op.outputs["scopes"]], [*values, scopes])


def _goes_on(run: Run, op: Operator, step: Scope, t: int) -> bool:
    """Whether the condition of a loop holds, which sees the carried values of the step."""
    test = Scope(step, op.attrs["cond_block"])
    run.block(test, t)
    holds = bool(np.all(value_of(test, op.attrs["cond"])))
    if holds and t >= run.step_limit:
        advice = "a condition that becomes false, or Executor.run(…, step_limit=…)"
        raise ProgramError(told(f"{endless(run.step_limit)} (step_limit)", advice, op.source_line))
    return holds


def run_loop_grad(run: Run, op: Operator, scope: Scope) -> None:
    """Run the grad block once per step, last step first: carried gradients are handed on, parameters' are added up."""
    scopes = value_of(scope, op.inputs["scopes"][0])
    grads = _values(scope, op.inputs["out_grad"])
    inner_scopes: list[Scope] = []
    for t in range(len(scopes) - 1, -1, -1):
        inner = _grad_scope(run, scopes[t], op.attrs["sub_block"])
        _set(inner, op.attrs["next_grad"], grads)
        for local, name in rows(op, "step_out_grad", "stacked_grad"):
            inner.values[local] = value_of(scope, name)[t]
        run.block(inner, t)
        grads = _values(inner, op.attrs["carried_grad"])
        inner_scopes.append(inner)
    _set(scope, op.outputs["x_grad"], grads)
    for slot, attr in (("params", "params_local"), ("seq", "steps_grad")):
        for name, local, value in rows(op, f"{slot}_grad", attr, slot):
            parts = [value_of(inner, local) for inner in inner_scopes]
            if not parts:
                scope.values[name] = np.zeros_like(value_of(scope, value))
            elif slot == "seq":  # its elements', last one first
                scope.values[name] = np.stack(parts[::-1])
            else:
                scope.values[name] = functools.reduce(np.add, map(in_order, parts))


def _values(scope: Scope, names: list[str]) -> Listed:
    """What goes from block to block, None for no name: in C order, so that the same bits follow from every branch."""
    return [None if n == EMPTY else in_order(value_of(scope, n)) for n in names]


def _set(scope: Scope, names, values: Listed) -> None:
    for name, value in zip(names, values, strict=True):
        if name != EMPTY:
            scope.values[name] = value


def _grad_scope(run: Run, forward: Scope, block: int) -> Scope:
    """A scope for a grad block, inside the one its forward block ran in."""
    scope = Scope(forward, block)
    if run.keep:
        forward.values[f"{GRAD}@SCOPE_{block}"] = scope
    return scope


#: how control flow is carried out
HANDLERS: dict[str, Function] = {
    "cond": run_cond, "cond_grad": run_cond, "while": run_loop, "while_grad": run_loop_grad,
    "recurrent": run_loop, "recurrent_grad": run_loop_grad,
}  # fmt: skip
