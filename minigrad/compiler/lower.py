"""Lowering: a program of primitives becomes a `Schedule` of NumPy calls.

Names of the program are looked up as the executor would; each kernel is recorded once.  The values of a step that a
grad block reads are found here, too: they are what a loop saves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import ProgramError
from ..primitives.registry import Primitive
from ..static.passes.names import is_state
from ..static.program.op_info import find_info
from ..static.program.program import EMPTY, Block, Operator, Program
from ..static.run.kernels import arguments, results, targets
from .control import ControlFlow
from .names import Names, ShapeWhenRun
from .schedule import Array, Call, Schedule, Unrecordable, arrays_in
from .tracer import Recorder


class Lowering(ControlFlow):
    """One program on its way to a schedule."""

    def __init__(self, program: Program, fetch: list[str]) -> None:
        self.program, self.recorder = program, Recorder()
        self.schedule = Schedule([], {}, {}, [])
        self.origin: dict[Array, Array] = {}
        self.inner: dict[int, Any] = {}  # id of a frames Array → names of the forward step(s)
        self.watched = {n for n in fetch if n not in program.global_block().vars}
        self.gathered: dict[str, Array] = {}
        root = Names(program.global_block())
        for var in program.global_block().vars.values():
            if var.is_data or var.persistable:
                like = np.empty(var.shape, var.dtype) if -1 not in var.shape else None
                made = Array(self.recorder, like, var.name, fixed=True)  # type: ignore[arg-type]
                root.values[var.name] = made
                (self.schedule.feeds if var.is_data else self.schedule.state)[var.name] = made
        self.stored: dict[str, tuple[Array, Any]] = {}  # state → what it holds at the end
        self.inside: dict[str, Array] = {}  # state that loops and branches write → a copy for them
        for name in sorted(_state_written_inside(program)):
            working = root.values[name] = self.recorder.copy(self.schedule.state[name])
            working.name, self.inside[name] = name, working
            self.stored[name] = working, None
        self.block(program.global_block(), root)
        self.schedule.fetched = [self.fetched(n, root) for n in fetch]
        self.store_all()
        self.schedule.items = self.recorder.calls

    def block(self, block: Block, names: Names) -> None:
        """Lower the operators of a block."""
        for op in block.ops:
            self.recorder.op = op
            handler = self.handler(op.type)
            if handler is not None:
                handler(op, names)
            else:
                self.simple(op, names)

    @contextmanager
    def into(self, items: list[Any]) -> Iterator[None]:
        """Calls recorded meanwhile go into this list."""
        before, self.recorder.calls = self.recorder.calls, items
        try:
            yield
        finally:
            self.recorder.calls = before

    # -- primitives ------------------------------------------------------------------------

    def simple(self, op: Operator, names: Names) -> None:
        """Record the kernel of a primitive, or call it by name."""
        info = find_info(op.type)
        if info is None or info.forward is None or info.is_grad:
            raise ProgramError(
                f"{op.type} cannot be compiled yet.\n  at {op.source_line}\n  repair: run it with static.Executor()"
            )
        p = info.forward
        slots = {s: [names.find(n, self) for n in ns] for s, ns in op.inputs.items()}
        args, attrs = arguments(p, slots, op.attrs, ShapeWhenRun)
        try:
            values = results(p, self.recorder.kernel(p, args, attrs))
        except Unrecordable:
            values = self.opaque(p, op, names, args, attrs)
        for name, value in zip(targets(p, op), values, strict=True):
            if name != EMPTY:
                self.write(names, name, value)

    def opaque(
        self, p: Primitive, op: Operator, names: Names, args: tuple[Any, ...], attrs: dict[str, Any]
    ) -> list[Array]:
        """What a call of the kernel itself gives."""
        inputs = arrays_in(args)
        shared = inputs[0].roots if p.view and inputs else ()
        made = []
        for name in targets(p, op):
            array = Array(self.recorder, self.like(names, name), name)
            array.roots = (array, *shared)
            made.append(array)
        out = made if p.list_output or len(p.outputs) > 1 else made[0]
        self.recorder.calls.append(Call("opaque", p.type, p.kernel, args, attrs, out, op))
        return [self.in_order(a, known=a.like is not None and a.ndim < 2) for a in made]

    def like(self, names: Names, name: str) -> Any:
        """An array of the inferred shape and dtype; None where a size is open."""
        var = names.block.find_var(name)
        return None if var is None or -1 in var.shape else np.empty(var.shape, var.dtype)

    def write(self, names: Names, name: str, value: Any) -> None:
        """Give a name its value; parameters get it stored."""
        if not isinstance(value, Array):
            value = self.constant(np.asarray(value))
        var = names.block.find_var(name)
        if var is None or not var.persistable:
            value.name = value.name or name
            names.values[name] = value
            return
        if name in self.inside:
            self.keep_old_values(names, self.inside[name])
            self.recorder.setitem(self.inside[name], Ellipsis, value)
        else:  # stored when everything else has succeeded; until then the new value has the name
            names.values[name] = value
            self.stored[name] = value, self.recorder.op

    def store_all(self) -> None:
        """At the end the parameters change: an error on the way leaves them as they were."""
        values = [self.as_it_is(value) for value, _ in self.stored.values()]
        for (name, (_, op)), value in zip(self.stored.items(), values, strict=True):
            args = self.schedule.state[name], value
            self.recorder.calls.append(Call("store", "np.copyto", np.copyto, args, {}, None, op))

    def fetched(self, name: str, root: Names) -> Array:
        """The value of a fetched name; from inside loops the list of its values."""
        if name not in self.watched:
            return self.as_it_is(root.find(name, self))
        if name not in self.gathered:
            raise ProgramError(
                f"{name!r} is computed in a branch: compiled programs fetch from the root and from loops\n"
                f"  repair: let cond return it, or run the program with static.Executor()"
            )
        return self.gathered[name]

    def as_it_is(self, value: Array) -> Array:
        """The value; a copy, if it looks at a parameter that will change."""
        changing = [self.schedule.state[n] for n in self.stored]
        return self.recorder.copy(value) if any(value.shares(s) for s in changing) else value

    def constant(self, value: np.ndarray[Any, Any]) -> Array:
        """A value known now."""
        out = Array(self.recorder, np.empty(value.shape, value.dtype))
        self.recorder.calls.append(
            Call("fresh", "np.array", np.array, (value,), {}, out, self.recorder.op)
        )
        return out

    def keep_old_values(self, names: Names | None, state: Array) -> None:
        """Names that stand for a parameter's memory keep what it holds now."""
        while names is not None:
            for name, value in names.values.items():
                if value.shares(state) and not (value is state and name == state.name):
                    names.values[name] = self.recorder.copy(value)
            names = names.parent


def _state_written_inside(program: Program) -> set[str]:
    """Parameters that loops and branches write."""
    return {
        n for b in program.blocks[1:] for op in b.ops for n in op.output_names if is_state(b, n)
    }


def lower(program: Program, fetch: list[str]) -> Schedule:
    """The schedule of a program of primitives; ``fetch`` names the variables it returns."""
    return Lowering(program, fetch).schedule
