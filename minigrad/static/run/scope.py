"""Scope and Run: where the values of a running program are, and how each kind of operator is carried out.

A Scope maps names to values and has a parent.  A loop makes one Scope per step and keeps them, since its grad block
reads the values of each step; that block runs in a Scope of its own inside the step's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AnomalyError, MinigradError, ProgramError, describe, refusal
from ...errors.repair import repair
from ...primitives.registry import Primitive
from ..backward.grad_ops import run_grad_op
from ..program.naming import unwritten
from ..program.op_info import find_info
from ..program.program import EMPTY, Block, Operator, Program
from .kernels import run_kernel, targets
from .limits import HELD, LARGER, MEMORY, itemsize, refuse, result_size
from .record import Record


class Scope:
    """Names and their values; what is not here is looked for in the parent.

    >>> outer = Scope()
    >>> outer.values["w"] = 1.0
    >>> Scope(outer)["w"], "b" in outer
    (1.0, False)
    """

    __slots__ = ("block", "parent", "record", "values")

    def __init__(self, parent: Scope | None = None, block: int = 0) -> None:
        self.values: dict[str, Any] = {}
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


#: how control flow is carried out: type → (run, op, scope) → None; `run_control` fills it
HANDLERS: dict[str, Callable[[Run, Operator, Scope], None]] = {}


class Run:
    """One run of a program: how every kind of operator is carried out."""

    def __init__(
        self,
        program: Program,
        updates: Scope,
        step_limit: int,
        check_finite: bool,
        keep: bool = False,
        memory_limit: int = MEMORY,
        record: Record | None = None,
    ) -> None:
        self.program, self.updates = program, updates
        self.record = record  # what happens is noted there, for looking at
        self.step_limit, self.check_finite = step_limit, check_finite
        self.keep = keep  # the scopes of grad blocks, for looking at
        self.room = self.memory_limit = memory_limit  # bytes for more values, and in all

    def block(self, block: Block, scope: Scope, turn: int | None = None) -> None:
        """Run the operators of a block in a scope, whose names take room, too.

        ``turn`` counts those of a loop.
        """
        self.room -= HELD * (1 + len(scope.values))
        if self.room < 0:
            raise self._full(f"what block {block.idx} starts with")
        record = self.record
        if record is not None:
            record.enter(block, scope, turn)
        for k, op in enumerate(block.ops):
            try:
                handler = HANDLERS.get(op.type)
                if handler is not None:
                    handler(self, op, scope)
                else:
                    self.simple(block, op, scope)
            except MinigradError:
                raise
            except Exception as error:
                raise _explained(f"#{k} {op.type}", op, scope, error) from error
            if record is not None:
                record.ran(block, k, op, scope, turn)
            if self.check_finite:
                self._finite(k, op, scope)
        if record is not None:
            record.leave(block, turn)

    def simple(self, block: Block, op: Operator, scope: Scope) -> None:
        """Run a primitive or its grad op."""
        info = find_info(op.type)
        assert info is not None
        assert info.forward is not None
        slots = {
            s: [self.value(scope, n) for n in names if n != EMPTY] for s, names in op.inputs.items()
        }
        self._check_room(op, info.forward, slots)
        if info.is_grad:
            gradients = run_grad_op(info.forward, slots, op.attrs, op.outputs)
            for slot, values in gradients.items():
                self._write_all(block, scope, op.outputs[slot], values)
            return
        values = run_kernel(info.forward, slots, op.attrs)
        self._write_all(block, scope, targets(info.forward, op), values)

    def _write_all(self, block: Block, scope: Scope, names: list[str], values: list[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            if name != EMPTY:
                self.write(block, scope, name, value)

    def _check_room(self, op: Operator, p: Primitive, slots: dict[str, list[Any]]) -> None:
        if p.broadcasts or op.type in LARGER or p.infer is not None:
            shapes = {s: [np.shape(v) for v in values] for s, values in slots.items()}
            size = result_size(op.type, p, shapes, op.attrs)
            item = itemsize(np.asarray(v).dtype for values in slots.values() for v in values)
            if size * item > self.room:
                refuse(op.type, shapes, size, item, self.room, op.source_line)

    def value(self, scope: Scope, name: str) -> Any:
        """The value of a name.  Errors: `ProgramError` if nothing has written it."""
        found = scope.find(name)
        if found is None:
            raise unwritten(name)
        return found

    def write(self, block: Block, scope: Scope, name: str, value: Any) -> None:
        """Set a name: persistable ones in the transaction, others in the scope of the run."""
        var = block.find_var(name)
        target = self.updates if var is not None and var.persistable else scope
        array = np.asarray(value) if not isinstance(value, np.ndarray) else value
        target.values[name] = array
        self.room -= array.nbytes + HELD
        if self.room < 0:
            raise self._full(f"{name!r}, {describe(array)},")

    def _full(self, last: str) -> MinigradError:
        """What to raise when the room is used up."""
        return refusal(
            f"the values of this run are more than {self.memory_limit} bytes (memory_limit); "
            f"{last} is one too many",
            "smaller shapes, or Executor.run(…, memory_limit=…)",
            ProgramError,
        )

    def _finite(self, k: int, op: Operator, scope: Scope) -> None:
        for name in op.output_names:
            value = scope.find(name)
            if (
                isinstance(value, np.ndarray)
                and value.dtype.kind == "f"
                and not np.isfinite(value).all()
            ):
                inputs = ", ".join(
                    f"{n} = {describe(scope.find(n)) if np.ndim(scope.find(n)) else scope.find(n)}"
                    for n in op.input_names
                    if n != EMPTY
                )
                what = "nan" if np.isnan(value).any() else "inf"
                raise AnomalyError(
                    f"#{k} {op.type} made {what} in {name!r} from ({inputs})\n  at {op.source_line}\n"
                    f"  this is the first operator that did"
                )


def _explained(place: str, op: Operator, scope: Scope, error: Exception) -> ProgramError:
    """What a kernel refused, with what it was given, the line that made the operator, and the repair."""
    values = {slot: [scope.find(n) for n in names] for slot, names in op.inputs.items()}
    shown = {slot: [*map(describe, listed)] for slot, listed in values.items()}
    what, _, advice = (str(error) or type(error).__name__).partition("; repair: ")
    advice = advice or repair([v for listed in values.values() for v in listed], op.attrs, error)
    return ProgramError(
        f"{place}({shown}) failed: {what}\n  at {op.source_line}"
        + (f"\n  repair: {advice}" if advice else "")
    )
