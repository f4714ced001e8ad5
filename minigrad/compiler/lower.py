"""Lowering: a program of primitives becomes a `Schedule`.

Names of the program are looked up as the executor would.  Each kernel is recorded once, and the values of a step that
a grad block reads are what a loop saves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ProgramError
from ..grad_names import EMPTY
from ..primitives.registry import Primitive
from ..static.program.block import Block
from ..static.program.operator import Operator, find_info, unwritten
from ..static.program.program import Program
from ..static.run.kernels import arguments, results, targets
from .program_passes import is_state
from .schedule import Array, Branch, Call, Loop, Schedule, ShapeWhenRun, Unrecordable, arrays_in
from .tracer import Recorder


class Names:
    """The names of a block and their Arrays; a grad block sees the values of its forward block as saved ones."""

    def __init__(
        self, block: Block, parent: Names | None = None, forward: Names | None = None
    ) -> None:
        self.block, self.parent, self.forward = block, parent, forward
        self.values: dict[str, Array] = {}
        self.saved: dict[Array, Array] = {}  # a value of the forward step → its name here

    def find(self, name: str, low: Any) -> Array:
        names: Names | None = self
        while names is not None:
            if name in names.values:
                return names.values[name]
            if names.forward is not None and name in names.forward.values:
                return names.capture(names.forward.values[name], low)
            names = names.parent
        raise unwritten(name)

    def capture(self, value: Array, low: Any) -> Array:
        if value.fixed:
            return value
        if value not in self.saved:
            saved = self.saved[value] = Array(low.recorder, value.like, value.name)
            saved.roots = (saved, *value.roots)
            if id(value) in low.schedule.loops:
                low.schedule.loops[id(saved)] = low.schedule.loops[id(value)]
                low.origin[saved] = low.origin.get(value, value)
        return self.saved[value]


class Lowering:
    """One program on its way to a schedule."""

    def __init__(
        self, program: Program, fetch: list[str], recorder: Recorder | None = None
    ) -> None:
        self.program, self.recorder = program, recorder or Recorder()
        self.schedule = Schedule([], {}, {}, [])
        self.origin: dict[Array, Array] = {}
        self.inner: dict[int, Any] = {}  # id of a frames Array → names of the forward step(s)
        self.watched = [n for n in dict.fromkeys(fetch) if n not in program.global_block().vars]
        self.gathered: dict[str, Array] = {}
        root = Names(program.global_block())
        for var in program.global_block().vars.values():
            if var.is_data or var.persistable:
                like = np.empty(var.shape, var.dtype) if -1 not in var.shape else None
                array = Array(self.recorder, like, var.name, fixed=True)  # type: ignore[arg-type]
                root.values[var.name] = array
                (self.schedule.feeds if var.is_data else self.schedule.state)[var.name] = array
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
            HANDLERS.get(op.type, Lowering.simple)(self, op, names)

    # -- primitives ------------------------------------------------------------------------

    def simple(self, op: Operator, names: Names) -> None:
        """Record the kernel of a primitive, or call it as it is."""
        info = find_info(op.type)
        if info is None or info.forward is None or info.is_grad:
            raise ProgramError(
                f"{op.type} cannot be compiled yet.\n  at {op.source_line}\n  repair: run it with static.Executor()"
            )
        p = info.forward
        slots = {s: [names.find(n, self) for n in ns] for s, ns in op.inputs.items()}
        args, attrs = arguments(p, slots, op.attrs, shape_of)
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
        arrays = []
        for name in targets(p, op):
            array = Array(self.recorder, self.like(names, name), name)
            array.roots = (array, *shared)
            arrays.append(array)
        out = arrays if p.several else arrays[0]
        self.recorder.calls.append(Call("opaque", p.type, p.kernel, args, attrs, out, op))
        return [self.in_order(a, known=a.like is not None and a.ndim < 2) for a in arrays]

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
        self.schedule.stored = {name: value for name, (value, _) in self.stored.items()}
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

    # -- loops and branches -----------------------------------------------------------------

    def begin(self, local: str, source: Array | None) -> Array:
        """The Array of a name that a block is given, which may share memory with its source."""
        array = Array(self.recorder, source.like if source is not None else None, local)  # type: ignore[arg-type]
        if source is not None:
            array.roots = (array, *source.roots)
        return array

    def slice(self, item: Loop, seq: Array, local: str) -> Array:
        """The Array of what a step reads of a sequence."""
        like: Any = seq.like
        if like is not None:
            like = like[0] if len(like) else np.empty(like.shape[1:], like.dtype)
        part = Array(self.recorder, like, local)
        part.roots = (part, *seq.roots)
        item.slices.append((seq, part))
        return part

    def frames(self, names: Names, op: Operator, item: Any, inner: Any) -> None:
        """The value of the ``scopes`` output: what the steps save."""
        frames = item.frames = Array(self.recorder, None, "frames")  # type: ignore[arg-type]
        names.values[op.outputs["scopes"][0]] = frames
        self.schedule.loops[id(frames)] = item
        self.inner[id(frames)] = inner
        self.origin[frames] = frames

    def outputs(
        self, names: Names, op: Operator, slot: str, sources: list[tuple[Array, ...]]
    ) -> list[Array]:
        """The Arrays that a control operator makes; they may share memory with their sources."""
        pairs = zip(op.outputs[slot], sources, strict=True)
        return [self.result(names, name, shared) for name, shared in pairs]

    def result(self, names: Names, name: str, shared: tuple[Array, ...] = ()) -> Array:
        """The Array that a control operator makes for a name; it may share memory with these."""
        result = names.values[name] = Array(self.recorder, self.like(names, name), name)
        result.roots = (result, *[r for s in shared for r in s.roots])
        return result

    def loop(self, op: Operator, names: Names) -> None:
        """``while`` and ``recurrent``."""
        item = Loop(op, [])
        body = self.program.blocks[op.attrs["sub_block"]]
        inner = Names(body, names)
        starts = [self.in_order(names.find(n, self)) for n in op.inputs["x"]]
        begins = [self.begin(n, s) for n, s in zip(op.attrs["carried"], starts, strict=True)]
        inner.values.update(zip(op.attrs["carried"], begins, strict=True))
        for local, name in zip(op.attrs.get("steps", ()), op.inputs.get("seq", ()), strict=True):
            seq = names.find(name, self)
            inner.values[local] = self.slice(item, seq, local)
        if op.type == "while":
            cond = self.program.blocks[op.attrs["cond_block"]]
            test = Names(cond, inner)
            with self.recorder.into(item.test):
                self.block(cond, test)
            item.go_on = test.find(op.attrs["cond"], self)
        self.body(item, body, inner)
        with self.recorder.into(item.body):
            nexts = [self.in_order(inner.values[n]) for n in op.attrs["next"]]
        finals = self.outputs(names, op, "out", list(zip(starts, nexts, strict=True)))
        item.carried = list(zip(starts, begins, nexts, finals, strict=True))
        if op.type == "recurrent":
            values = [inner.values[n] for n in op.attrs["step_out"]]
            outs = self.outputs(names, op, "stacked", [()] * len(values))
            item.stacked = list(zip(values, outs, strict=True))
            self.lay_out_stacks(item)
        self.frames(names, op, item, inner)
        self.recorder.calls.append(item)

    def loop_grad(self, op: Operator, names: Names) -> None:
        """``while_grad`` and ``recurrent_grad``."""
        frames = names.find(op.inputs["scopes"][0], self)
        block = self.program.blocks[op.attrs["sub_block"]]
        inner = Names(block, names, self.inner[id(self.origin[frames])])
        item = Loop(op, [], frames=frames)
        handed_in = []  # the gradients that are handed on: outside, and at the beginning of a step
        for local, name in zip(op.attrs["next_grad"], op.inputs["out_grad"], strict=True):
            if local != EMPTY:
                start = self.in_order(names.find(name, self))
                inner.values[local] = self.begin(local, start)
                handed_in.append((start, inner.values[local]))
        for local, name in zip(
            op.attrs.get("step_out_grad", ()), op.inputs.get("stacked_grad", ()), strict=True
        ):
            if local != EMPTY:
                seq = names.find(name, self)
                inner.values[local] = self.slice(item, seq, local)
        self.body(item, block, inner)
        self.hand_back(item, names, inner, handed_in)
        for local, name, like in zip(
            op.attrs["params_local"], op.outputs["params_grad"], op.inputs["params"], strict=True
        ):
            if name != EMPTY:
                with self.recorder.into(item.body):
                    value = self.in_order(inner.find(local, self))
                total = self.result(names, name, (value,))
                item.totals.append((value, total, names.find(like, self)))
        for local, name in zip(
            op.attrs.get("steps_grad", ()), op.outputs.get("seq_grad", ()), strict=True
        ):
            if name != EMPTY:
                item.stacked.append((inner.find(local, self), self.result(names, name)))
        self.lay_out_stacks(item)
        forward: Any = self.schedule.loops[id(frames)]
        self.save(inner, forward.frames, forward.saved, item.saved)
        self.recorder.calls.append(item)

    def hand_back(
        self, item: Loop, names: Names, inner: Names, handed_in: list[tuple[Array, Array]]
    ) -> None:
        """The gradients a step hands to the one before it, and what the first step leaves."""
        pairs = zip(item.op.attrs["carried_grad"], item.op.outputs["x_grad"], strict=True)
        carried = [(local, name) for local, name in pairs if local != EMPTY]
        for (local, name), (start, begin) in zip(carried, handed_in, strict=True):
            with self.recorder.into(item.body):
                next_ = self.in_order(inner.find(local, self))
            final = Array(self.recorder, start.like, name if name != EMPTY else local)
            final.roots = (final, *start.roots, *next_.roots)
            item.carried.append((start, begin, next_, final))
            if name != EMPTY:
                names.values[name] = final

    def body(self, item: Loop, block: Block, inner: Names) -> None:
        """Lower the body of a loop; what is fetched from inside becomes a list with one entry per step."""
        outside, self.gathered = self.gathered, {}
        with self.recorder.into(item.body):
            self.block(block, inner)
        inside, self.gathered = self.gathered, outside
        for name in self.watched:
            value = inner.values.get(name, inside.get(name))
            if value is not None:
                every = self.gathered[name] = Array(self.recorder, None, name)  # type: ignore[arg-type]
                self.schedule.lists.add(id(every))
                item.gathered.append((value, every))

    def save(self, inner: Names, frames: Any, forward: Any, backward: list[Any]) -> None:
        """Let the forward step save what was captured: its list keeps that memory, too."""
        for value in inner.saved:
            if not any(value is v for v in forward):
                forward.append(value)
                frames.roots = (*frames.roots, *value.roots)
        backward += [(value, here) for value, here in inner.saved.items()]

    def cond(self, op: Operator, names: Names) -> None:
        """``cond``: two bodies."""
        item = Branch(op, names.find(op.inputs["pred"][0], self), ([], []), [])
        inners = []
        for k, attr in enumerate(("sub_block", "else_block")):
            block = self.program.blocks[op.attrs[attr]]
            inners.append(Names(block, names))
            with self.recorder.into(item.bodies[k]):
                self.block(block, inners[k])
        values = [
            self.leaving(item, inners, pair)
            for pair in zip(op.attrs["true_out"], op.attrs["false_out"], strict=True)
        ]
        outs = self.outputs(names, op, "out", values)
        item.results = [(a, b, out) for (a, b), out in zip(values, outs, strict=True)]
        self.frames(names, op, item, inners)
        self.recorder.calls.append(item)

    def leaving(self, item: Branch, inners: list[Names], pair: tuple[str, str]) -> Any:
        """A result of both branches."""
        values = []
        for body, inner, name in zip(item.bodies, inners, pair, strict=True):
            with self.recorder.into(body):
                values.append(self.in_order(inner.find(name, self)))
        return tuple(values)

    def in_order(self, value: Array, known: bool = True) -> Array:
        """A value in C order, as what goes from block to block is; ``known`` says that ``like`` tells its order."""
        if known and value.like is not None and value.like.flags.c_contiguous:
            return value
        like = value.like if value.like is None else np.empty(value.shape, value.dtype)
        ordered = Array(self.recorder, like, value.name)
        ordered.roots = (ordered, *value.roots)
        call = Call("fresh", "np.asarray", np.asarray, (value,), {"order": "C"}, ordered)
        call.op = self.recorder.op
        self.recorder.calls.append(call)
        return ordered

    def lay_out_stacks(self, item: Loop) -> None:
        """Stacks lie in memory as the values of the steps do."""
        for value, stack in item.stacked:
            if value.like is not None and stack.like is not None and len(stack.like):
                stack.like = np.stack([value.like] * len(stack.like))

    def cond_grad(self, op: Operator, names: Names) -> None:
        """``cond_grad``: two bodies that read what the forward bodies saved."""
        frames = names.find(op.inputs["scopes"][0], self)
        forwards = self.inner[id(self.origin[frames])]
        item = Branch(
            op, names.find(op.inputs["pred"][0], self), ([], []), [], frames=frames, backward=True
        )
        inners = []
        for k, (attr, prefix) in enumerate((("sub_block", "true"), ("else_block", "false"))):
            block = self.program.blocks[op.attrs[attr]]
            inner = Names(block, names, forwards[k])
            for local, name in zip(op.attrs[f"{prefix}_seeds"], op.inputs["out_grad"], strict=True):
                if local != EMPTY:
                    inner.values[local] = names.find(name, self)
            with self.recorder.into(item.bodies[k]):
                self.block(block, inner)
            inners.append(inner)
        for k, name in enumerate(op.outputs["params_grad"]):
            if name != EMPTY:
                yes, no = (op.attrs[f"{p}_params"][k] for p in ("true", "false"))
                pair = self.leaving(item, inners, (yes, no))
                item.results.append((*pair, self.result(names, name, pair)))
        branch: Any = self.schedule.loops[id(frames)]
        for k in (0, 1):
            self.save(inners[k], branch.frames, branch.saved[k], item.saved[k])
        self.recorder.calls.append(item)


#: what lowers control flow
HANDLERS: dict[str, Any] = {
    "while": Lowering.loop, "while_grad": Lowering.loop_grad, "cond": Lowering.cond,
    "recurrent": Lowering.loop, "recurrent_grad": Lowering.loop_grad, "cond_grad": Lowering.cond_grad,
}  # fmt: skip


def _state_written_inside(program: Program) -> set[str]:
    """Parameters that loops and branches write."""
    return {
        n for b in program.blocks[1:] for op in b.ops for n in op.output_names if is_state(b, n)
    }


def shape_of(array: Array) -> Any:
    """The shape of a value; one that is open until the program runs is asked for then."""
    return ShapeWhenRun(array) if array.like is None else array.shape


def lower(program: Program, fetch: list[str]) -> Schedule:
    """The schedule of a program of primitives; ``fetch`` names the variables it returns."""
    return Lowering(program, fetch).schedule
