"""Lowering control flow: loops and branches around the calls of their blocks, and what backward needs of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..static.program.program import EMPTY, Block, Operator, Program
from .names import Names
from .schedule import Array, Branch, Call, Loop, Schedule
from .tracer import Recorder


class ControlFlow:
    """The part of `Lowering` that is about loops and branches."""

    program: Program
    recorder: Recorder
    schedule: Schedule
    origin: dict[Array, Array]  # a saved list of frames → the list itself
    like: Any
    into: Any
    block: Any
    watched: set[str]  # names inside loops that are fetched
    gathered: dict[str, Array]  # … → the list of their values
    inner: dict[int, Any]  # id of a list of frames → names of the forward step(s)

    def begin(self, local: str, source: Array | None) -> Array:
        """The Array of a name that a block is given, which may share memory with its source."""
        made = Array(self.recorder, source.like if source is not None else None, local)  # type: ignore[arg-type]
        if source is not None:
            made.roots = (made, *source.roots)
        return made

    def slice(self, item: Loop, seq: Array, local: str) -> Array:
        """The Array of what a step reads of a sequence."""
        like: Any = seq.like
        if like is not None:
            like = like[0] if len(like) else np.empty(like.shape[1:], like.dtype)
        made = Array(self.recorder, like, local)
        made.roots = (made, *seq.roots)
        item.slices.append((seq, made))
        return made

    def frames(self, names: Names, op: Operator, item: Any, inner: Any) -> None:
        """The value of the ``scopes`` output: what the steps save."""
        made = item.frames = Array(self.recorder, None, "frames")  # type: ignore[arg-type]
        names.values[op.outputs["scopes"][0]] = made
        self.schedule.loops[id(made)] = item
        self.inner[id(made)] = inner
        self.origin[made] = made

    def outputs(
        self, names: Names, op: Operator, slot: str, sources: list[tuple[Array, ...]]
    ) -> list[Array]:
        """The Arrays that a control operator makes; they may share memory with their sources."""
        pairs = zip(op.outputs[slot], sources, strict=True)
        return [self.result(names, name, shared) for name, shared in pairs]

    def result(self, names: Names, name: str, shared: tuple[Array, ...] = ()) -> Array:
        """The Array that a control operator makes for a name; it may share memory with these."""
        made = names.values[name] = Array(self.recorder, self.like(names, name), name)
        made.roots = (made, *[r for s in shared for r in s.roots])
        return made

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
            with self.into(item.test):
                self.block(cond, test)
            item.go_on = test.find(op.attrs["cond"], self)
        self.body(item, body, inner)
        self.recorder.op = op
        with self.into(item.body):
            nexts = [self.in_order(inner.values[n]) for n in op.attrs["next"]]
        finals = self.outputs(names, op, "out", list(zip(starts, nexts, strict=True)))
        item.carried = list(zip(starts, begins, nexts, finals, strict=True))
        if op.type == "recurrent":
            kept = [inner.values[n] for n in op.attrs["step_out"]]
            outs = self.outputs(names, op, "stacked", [()] * len(kept))
            item.stacked = list(zip(kept, outs, strict=True))
            self.lay_out_stacks(item)
        self.frames(names, op, item, inner)
        self.recorder.calls.append(item)

    def loop_grad(self, op: Operator, names: Names) -> None:
        """``while_grad`` and ``recurrent_grad``."""
        frames = names.find(op.inputs["scopes"][0], self)
        block = self.program.blocks[op.attrs["sub_block"]]
        inner = Names(block, names, self.inner[id(self.origin[frames])])
        item = Loop(op, [], frames=frames)
        given = []  # the gradients that are handed on: outside, and at the beginning of a step
        for local, name in zip(op.attrs["next_grad"], op.inputs["out_grad"], strict=True):
            if local != EMPTY:
                start = self.in_order(names.find(name, self))
                inner.values[local] = self.begin(local, start)
                given.append((start, inner.values[local]))
        for local, name in zip(
            op.attrs.get("step_out_grad", ()), op.inputs.get("stacked_grad", ()), strict=True
        ):
            if local != EMPTY:
                seq = names.find(name, self)
                inner.values[local] = self.slice(item, seq, local)
        self.body(item, block, inner)
        self.recorder.op = op
        self.hand_back(item, names, inner, given)
        for local, name, like in zip(
            op.attrs["params_local"], op.outputs["params_grad"], op.inputs["params"], strict=True
        ):
            if name != EMPTY:
                with self.into(item.body):
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
        self, item: Loop, names: Names, inner: Names, given: list[tuple[Array, Array]]
    ) -> None:
        """The gradients a step hands to the one before it, and what the first step leaves."""
        pairs = zip(item.op.attrs["carried_grad"], item.op.outputs["x_grad"], strict=True)
        carried = [(local, name) for local, name in pairs if local != EMPTY]
        for (local, name), (start, begin) in zip(carried, given, strict=True):
            with self.into(item.body):
                next_ = self.in_order(inner.find(local, self))
            final = Array(self.recorder, start.like, name if name != EMPTY else local)
            final.roots = (final, *start.roots, *next_.roots)
            item.carried.append((start, begin, next_, final))
            if name != EMPTY:
                names.values[name] = final

    def body(self, item: Loop, block: Block, inner: Names) -> None:
        """Lower the body of a loop; what is fetched from inside becomes a list with one entry per step."""
        outside, self.gathered = self.gathered, {}
        with self.into(item.body):
            self.block(block, inner)
        inside, self.gathered = self.gathered, outside
        for name in self.watched:
            value = inner.values.get(name, inside.get(name))
            if value is not None:
                made = self.gathered[name] = Array(self.recorder, None, name)  # type: ignore[arg-type]
                self.schedule.lists.add(id(made))
                item.gathered.append((value, made))

    def save(self, inner: Names, frames: Any, forward: Any, backward: list[Any]) -> None:
        """Let the forward step save what was captured: its list keeps that memory, too."""
        for value in inner.saved:
            if not any(value is v for v in forward):
                forward.append(value)
                frames.roots = (*frames.roots, *value.roots)
        backward += [(value, made) for value, made in inner.saved.items()]

    def cond(self, op: Operator, names: Names) -> None:
        """``cond``: two bodies."""
        item = Branch(op, names.find(op.inputs["pred"][0], self), ([], []), [])
        inners = []
        for k, attr in enumerate(("sub_block", "else_block")):
            block = self.program.blocks[op.attrs[attr]]
            inners.append(Names(block, names))
            with self.into(item.bodies[k]):
                self.block(block, inners[k])
        self.recorder.op = op
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
            with self.into(body):
                values.append(self.in_order(inner.find(name, self)))
        return tuple(values)

    def in_order(self, value: Array, known: bool = True) -> Array:
        """A value in C order, as what goes from block to block is; ``known`` says that ``like`` tells its order."""
        if known and value.like is not None and value.like.flags.c_contiguous:
            return value
        like = value.like if value.like is None else np.empty(value.shape, value.dtype)
        made = Array(self.recorder, like, value.name)
        made.roots = (made, *value.roots)
        call = Call("fresh", "np.asarray", np.asarray, (value,), {"order": "C"}, made)
        call.op = self.recorder.op
        self.recorder.calls.append(call)
        return made

    def lay_out_stacks(self, item: Loop) -> None:
        """Stacks lie in memory as the values of the steps do."""
        for value, made in item.stacked:
            if value.like is not None and made.like is not None and len(made.like):
                made.like = np.stack([value.like] * len(made.like))

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
            with self.into(item.bodies[k]):
                self.block(block, inner)
            inners.append(inner)
        self.recorder.op = op
        for k, name in enumerate(op.outputs["params_grad"]):
            if name != EMPTY:
                yes, no = (op.attrs[f"{p}_params"][k] for p in ("true", "false"))
                pair = self.leaving(item, inners, (yes, no))
                item.results.append((*pair, self.result(names, name, pair)))
        branch: Any = self.schedule.loops[id(frames)]
        for k in (0, 1):
            self.save(inners[k], branch.frames, branch.saved[k], item.saved[k])
        self.recorder.calls.append(item)

    def handler(self, op_type: str) -> Any:
        """What lowers an operator of this type; None for one that is no control flow."""
        return {
            "while": self.loop,
            "recurrent": self.loop,
            "while_grad": self.loop_grad,
            "recurrent_grad": self.loop_grad,
            "cond": self.cond,
            "cond_grad": self.cond_grad,
        }.get(op_type)
