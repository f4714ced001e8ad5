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
from ..registry import Primitive
from .infer import like_value
from .op_info import find_info
from .program import EMPTY, Block, Operator, Program
from .record import Recorder
from .schedule import Array, Branch, Call, Loop, Schedule, Unrecordable, arrays_in


class _Names:
    """The names of a block and their Arrays; a grad block sees the values of its forward block as saved ones."""

    def __init__(self, block: Block, parent: _Names | None = None, forward: _Names | None = None) -> None:
        self.block, self.parent, self.forward = block, parent, forward
        self.values: dict[str, Array] = {}
        self.saved: dict[Array, Array] = {}     # a value of the forward step → its name here

    def find(self, name: str, low: Lowering) -> Array:
        names: _Names | None = self
        while names is not None:
            if name in names.values:
                return names.values[name]
            if names.forward is not None and name in names.forward.values:
                return names.capture(names.forward.values[name], low)
            names = names.parent
        raise ProgramError(f"{name!r} is read before anything wrote it")

    def capture(self, value: Array, low: Lowering) -> Array:
        if value.fixed:
            return value
        if value not in self.saved:
            made = self.saved[value] = Array(low.recorder, value.like, value.name)
            if id(value) in low.schedule.loops:
                low.schedule.loops[id(made)] = low.schedule.loops[id(value)]
                low.origin[made] = low.origin.get(value, value)
        return self.saved[value]


class Lowering:
    """One program on its way to a schedule."""

    def __init__(self, program: Program, fetch: list[str]) -> None:
        self.program, self.recorder = program, Recorder()
        self.schedule = Schedule([], {}, {}, [])
        self.origin: dict[Array, Array] = {}
        self.inner: dict[int, Any] = {}         # id of a frames Array → names of the forward step(s)
        root = _Names(program.global_block())
        for var in program.global_block().vars.values():
            if var.is_data or var.persistable:
                like = np.empty(var.shape, var.dtype) if -1 not in var.shape else None
                made = Array(self.recorder, like, var.name, fixed=True)  # type: ignore[arg-type]
                root.values[var.name] = made
                (self.schedule.feeds if var.is_data else self.schedule.state)[var.name] = made
        self.block(program.global_block(), root)
        self.schedule.items = self.recorder.calls
        self.schedule.fetched = [root.find(n, self) for n in fetch]

    def block(self, block: Block, names: _Names) -> None:
        """Lower the operators of a block."""
        for op in block.ops:
            self.recorder.op = op
            handler = _CONTROL.get(op.type)
            if handler is not None:
                handler(self, op, names)
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

    def simple(self, op: Operator, names: _Names) -> None:
        """Record the kernel of a primitive, or call it by name."""
        info = find_info(op.type)
        assert info is not None and info.forward is not None and not info.is_grad
        p = info.forward
        slots = {s: [names.find(n, self) for n in ns] for s, ns in op.inputs.items()}
        args, attrs = _arguments(p, slots, op.attrs)
        try:
            out = self.recorder.kernel(p, args, attrs)
        except Unrecordable:
            out = self.opaque(p, op, names, args, attrs)
        several = p.list_output or len(p.outputs) > 1
        values = list(out) if several else [out]
        targets = [n for s in p.outputs for n in op.outputs.get(s, [EMPTY])]
        for name, value in zip(targets, values, strict=True):
            if name != EMPTY:
                self.write(names, name, value)

    def opaque(self, p: Primitive, op: Operator, names: _Names, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """A call of the kernel itself."""
        inputs = arrays_in(args)
        shared = inputs[0].roots if p.view and inputs else ()
        made = []
        for slot in p.outputs:
            for name in op.outputs.get(slot, [EMPTY]):
                array = Array(self.recorder, self.like(names, name), name)
                array.roots = (array, *shared)
                made.append(array)
        several = p.list_output or len(p.outputs) > 1
        out = made if several else made[0]
        self.recorder.calls.append(Call("opaque", p.type, p.kernel, args, attrs, out, op))
        return out

    def like(self, names: _Names, name: str) -> Any:
        """An array of the inferred shape and dtype; None where a size is open."""
        var = names.block.find_var(name)
        return None if var is None or -1 in var.shape else np.empty(var.shape, var.dtype)

    def write(self, names: _Names, name: str, value: Any) -> None:
        """Give a name its value; parameters get it stored."""
        if not isinstance(value, Array):
            value = self.constant(np.asarray(value))
        var = names.block.find_var(name)
        if var is None or not var.persistable:
            value.name = value.name or name
            names.values[name] = value
            return
        state = self.schedule.state[name]
        self.keep_old_values(names, state)
        self.recorder.calls.append(Call("store", "np.copyto", np.copyto, (state, value), {}, None, self.recorder.op))

    def constant(self, value: np.ndarray[Any, Any]) -> Array:
        """A value known now."""
        out = Array(self.recorder, np.empty(value.shape, value.dtype))
        self.recorder.calls.append(Call("fresh", "np.array", np.array, (value,), {}, out, self.recorder.op))
        return out

    def keep_old_values(self, names: _Names | None, state: Array) -> None:
        """Names that stand for a parameter's memory keep what it holds now."""
        while names is not None:
            for name, value in names.values.items():
                if value.shares(state) and not (value is state and name == state.name):
                    names.values[name] = self.recorder.copy(value)
            names = names.parent

    # -- control flow ----------------------------------------------------------------------

    def begin(self, body: Block, local: str, source: Array | None, like: Any = None) -> Array:
        """The Array of a name that a block is given."""
        like = source.like if source is not None else like
        made = Array(self.recorder, like, local)
        if source is not None:
            made.roots = (made, *source.roots)
        return made

    def frames(self, names: _Names, op: Operator, item: Any, inner: Any) -> None:
        """The value of the ``scopes`` output: what the steps save."""
        made = item.frames = Array(self.recorder, None, "frames")  # type: ignore[arg-type]
        names.values[op.outputs["scopes"][0]] = made
        self.schedule.loops[id(made)] = item
        self.inner[id(made)] = inner
        self.origin[made] = made

    def outputs(self, names: _Names, op: Operator, slot: str, sources: list[tuple[Array, ...]]) -> list[Array]:
        """The Arrays that a control operator makes; they may share memory with their sources."""
        made = []
        for name, shared in zip(op.outputs[slot], sources, strict=True):
            array = Array(self.recorder, self.like(names, name), name)
            array.roots = (array, *[r for s in shared for r in s.roots])
            names.values[name] = array
            made.append(array)
        return made

    def loop(self, op: Operator, names: _Names) -> None:
        """``while`` and ``recurrent``."""
        item = Loop(op, [])
        body = self.program.blocks[op.attrs["sub_block"]]
        inner = _Names(body, names)
        starts = [names.find(n, self) for n in op.inputs["x"]]
        begins = [self.begin(body, n, s) for n, s in zip(op.attrs["carried"], starts, strict=True)]
        inner.values.update(zip(op.attrs["carried"], begins, strict=True))
        for local, name in zip(op.attrs.get("steps", ()), op.inputs.get("seq", ()), strict=True):
            seq = names.find(name, self)
            inner.values[local] = self.begin(body, local, None, None if seq.like is None else np.empty(seq.shape[1:], seq.dtype))
            inner.values[local].roots = (inner.values[local], *seq.roots)
            item.slices.append((seq, inner.values[local]))
        if op.type == "while":
            cond = self.program.blocks[op.attrs["cond_block"]]
            test = _Names(cond, inner)
            with self.into(item.test):
                self.block(cond, test)
            item.go_on = test.find(op.attrs["cond"], self)
        with self.into(item.body):
            self.block(body, inner)
        self.recorder.op = op
        nexts = [inner.values[n] for n in op.attrs["next"]]
        finals = self.outputs(names, op, "out", list(zip(starts, nexts, strict=True)))
        item.carried = list(zip(starts, begins, nexts, finals, strict=True))
        if op.type == "recurrent":
            kept = [inner.values[n] for n in op.attrs["step_out"]]
            item.stacked = list(zip(kept, self.outputs(names, op, "stacked", [()] * len(kept)), strict=True))
        self.frames(names, op, item, inner)
        self.recorder.calls.append(item)

    def loop_grad(self, op: Operator, names: _Names) -> None:
        """``while_grad`` and ``recurrent_grad``."""
        frames = names.find(op.inputs["scopes"][0], self)
        block = self.program.blocks[op.attrs["sub_block"]]
        inner = _Names(block, names, self.inner[id(self.origin[frames])])
        item = Loop(op, [], frames=frames)
        starts, begins = [], []
        for local, name in zip(op.attrs["next_grad"], op.inputs["out_grad"], strict=True):
            if local != EMPTY:
                starts.append(names.find(name, self))
                begins.append(self.begin(block, local, starts[-1]))
                inner.values[local] = begins[-1]
        for local, name in zip(op.attrs.get("step_out_grad", ()), op.inputs.get("stacked_grad", ()), strict=True):
            if local != EMPTY:
                seq = names.find(name, self)
                inner.values[local] = self.begin(block, local, None, None if seq.like is None else np.empty(seq.shape[1:], seq.dtype))
                inner.values[local].roots = (inner.values[local], *seq.roots)
                item.slices.append((seq, inner.values[local]))
        with self.into(item.body):
            self.block(block, inner)
        self.recorder.op = op
        nexts = [inner.find(n, self) for n in op.attrs["carried_grad"] if n != EMPTY]
        chosen = [k for k, n in enumerate(op.attrs["carried_grad"]) if n != EMPTY]
        for k, start, begin, next_ in zip(chosen, starts, begins, nexts, strict=True):
            name = op.outputs["x_grad"][k]
            final = Array(self.recorder, start.like, name if name != EMPTY else op.attrs["carried_grad"][k])
            final.roots = (final, *start.roots, *next_.roots)
            item.carried.append((start, begin, next_, final))
            if name != EMPTY:
                names.values[name] = final
        for local, name, like in zip(op.attrs["params_local"], op.outputs["params_grad"], op.inputs["params"], strict=True):
            if name != EMPTY:
                total = names.values[name] = Array(self.recorder, self.like(names, name), name)
                value = inner.find(local, self)
                total.roots = (total, *value.roots)
                item.totals.append((value, total, names.find(like, self)))
        for local, name in zip(op.attrs.get("steps_grad", ()), op.outputs.get("seq_grad", ()), strict=True):
            if name != EMPTY:
                made = names.values[name] = Array(self.recorder, self.like(names, name), name)
                item.stacked.append((inner.find(local, self), made))
        self.save(inner, self.schedule.loops[id(frames)].saved, item.saved)
        self.recorder.calls.append(item)

    def save(self, inner: _Names, forward: Any, backward: list[Any]) -> None:
        """Let the forward step save what was captured; the two lists stay in step."""
        for value in inner.saved:
            if not any(value is v for v in forward):
                forward.append(value)
        backward += [(value, made) for value, made in inner.saved.items()]

    def cond(self, op: Operator, names: _Names) -> None:
        """``cond``: two bodies."""
        item = Branch(op, names.find(op.inputs["pred"][0], self), ([], []), [])
        inners = []
        for k, attr in enumerate(("sub_block", "else_block")):
            block = self.program.blocks[op.attrs[attr]]
            inners.append(_Names(block, names))
            with self.into(item.bodies[k]):
                self.block(block, inners[k])
        self.recorder.op = op
        values = [
            tuple(inner.find(n, self) for inner, n in zip(inners, pair, strict=True))
            for pair in zip(op.attrs["true_out"], op.attrs["false_out"], strict=True)
        ]
        outs = self.outputs(names, op, "out", values)
        item.results = [(a, b, out) for (a, b), out in zip(values, outs, strict=True)]
        self.frames(names, op, item, inners)
        self.recorder.calls.append(item)

    def cond_grad(self, op: Operator, names: _Names) -> None:
        """``cond_grad``: two bodies that read what the forward bodies saved."""
        frames = names.find(op.inputs["scopes"][0], self)
        forwards = self.inner[id(self.origin[frames])]
        item = Branch(op, names.find(op.inputs["pred"][0], self), ([], []), [], frames=frames, backward=True)
        inners = []
        for k, (attr, prefix) in enumerate((("sub_block", "true"), ("else_block", "false"))):
            block = self.program.blocks[op.attrs[attr]]
            inner = _Names(block, names, forwards[k])
            for local, name in zip(op.attrs[f"{prefix}_seeds"], op.inputs["out_grad"], strict=True):
                if local != EMPTY:
                    inner.values[local] = names.find(name, self)
            with self.into(item.bodies[k]):
                self.block(block, inner)
            inners.append(inner)
        self.recorder.op = op
        for k, name in enumerate(op.outputs["params_grad"]):
            if name != EMPTY:
                pair = [inner.find(op.attrs[f"{p}_params"][k], self) for inner, p in zip(inners, ("true", "false"), strict=True)]
                made = names.values[name] = Array(self.recorder, self.like(names, name), name)
                made.roots = (made, *pair[0].roots, *pair[1].roots)
                item.results.append((pair[0], pair[1], made))
        for k in (0, 1):
            self.save(inners[k], self.schedule.loops[id(frames)].saved[k], item.saved[k])
        self.recorder.calls.append(item)


def _arguments(p: Primitive, slots: dict[str, list[Array]], attrs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a kernel: values, numbers that stand in attrs, shapes of ``<attr>_like`` slots."""
    args: list[Any] = []
    for name in p.inputs:
        given = slots.get(name)
        if name == p.list_input:
            args += given or []
        else:
            args.append(given[0] if given else attrs.get(name))
    kept = {a: attrs[a] for a in p.attrs if a in attrs}
    kept |= {s[:-5]: like_value(s[:-5], [_ShapeWhenRun(a) for a in arrays]) for s, arrays in slots.items() if s.endswith("_like")}
    return tuple(args), kept


class _ShapeWhenRun:
    """The shape of an Array whose size is open."""

    def __init__(self, array: Array) -> None:
        self.array = array


_CONTROL = {
    "while": Lowering.loop, "recurrent": Lowering.loop, "while_grad": Lowering.loop_grad, "recurrent_grad": Lowering.loop_grad,
    "cond": Lowering.cond, "cond_grad": Lowering.cond_grad,
}  # fmt: skip


def lower(program: Program, fetch: list[str]) -> Schedule:
    """The schedule of a program of primitives; ``fetch`` names the variables it returns."""
    return Lowering(program, fetch).schedule
