"""Lowering: a program of primitives becomes a `Schedule`.

Names of the program are looked up as the executor would.  Each kernel is recorded once, and the
values of a step that a grad block reads are what a loop saves.
"""

from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ProgramError, wrong
from ..grad_names import EMPTY
from ..primitives.arguments import ByName, Listed
from ..static.program.block import Block
from ..static.program.operator import BRANCHES, Operator, outputs_of, rows, unwritten
from ..static.program.program import Program
from ..static.run.kernels import arguments, results, targets
from .memory import Memory, groups, padded, slab_name
from .program_passes import is_state
from .schedule import (
    Array,
    Branch,
    Call,
    Loop,
    Schedule,
    Unrecordable,
    Values,
    arrays_in,
    is_elementwise,
)
from .tracer import Recorder

#: bytes of an array that takes less time to copy than to be looked at anew in every run
SMALL = 1 << 13


@dataclass
class Names:
    """The names of a block and their Arrays; a grad block sees the values of its forward block as saved ones."""

    block: Block
    parent: "Names | None" = None
    forward: "Names | None" = None
    values: dict[str, Array] = field(default_factory=dict)
    #: a value of the forward step → its name here
    saved: dict[Array, Array] = field(default_factory=dict)

    def find(self, name: str) -> Array:
        if name in self.values:
            return self.values[name]
        if self.forward is not None and name in self.forward.values:
            return self.capture(self.forward.values[name])
        if self.parent is None:
            raise unwritten(name)
        return self.parent.find(name)

    def capture(self, value: Array) -> Array:
        if value.fixed:
            return value
        if value not in self.saved:
            here = self.saved[value] = copy(value)
            here.roots = (here, *value.roots)
        return self.saved[value]


class Lowering:
    """A program of primitives on its way to a ``schedule``; ``fetch`` names what it returns.

    With the ``memory`` of its parameters, updates of those that lie side by side become one.
    """

    def __init__(
        self,
        program: Program,
        fetch: list[str],
        memory: Memory | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.program = program
        self.recorder = recorder or Recorder()
        memory = memory or Memory({}, {}, [])
        self.schedule = Schedule(memory)
        root = Names(program.global_block())
        if inside := [n for n in fetch if n not in root.block.vars]:
            what = f"{inside[0]!r} is computed in a loop or branch, and fetched from there"
            advice = "return it from there (static_rnn stacks values), or static.Executor().run"
            raise wrong(what, advice)
        self.prepared: Listed = []  # calls that are made once, before the first run
        for var in root.block.vars.values():
            if var.is_data or var.persistable:
                like = memory.parameters.get(var.name, self.like(root, var.name))
                array = Array(self.recorder, like, var.name, fixed=True)
                root.values[var.name] = array
                if var.persistable:
                    self.schedule.state[var.name] = array
                elif like is not None:  # else nobody reads it
                    self.schedule.feeds[var.name] = array
        self.stored: dict[str, tuple[Array, Any]] = {}  # state → what it holds at the end
        self.working: dict[str, Array] = {}  # state that loops and branches write → a copy for them
        for name in sorted(state_written_inside(program)):
            working = root.values[name] = self.recorder.copy(self.schedule.state[name])
            working.name = name
            self.working[name] = working
            self.stored[name] = working, None
        writes = Counter(n for block in program.blocks for n in outputs_of(block.ops))
        self.slabs = [names for names in memory.slabs if all(writes[n] == 1 for n in names)]
        self.block(root)
        self.schedule.fetched = [self.as_it_is(root.find(n)) for n in fetch]
        self.store_all()
        self.schedule.items = self.prepared + self.recorder.calls

    def block(self, names: Names) -> None:
        """Lower the operators of a block."""
        for group in groups(names.block.ops):
            self.recorder.op = group[0]
            if len(group) > 1 and self.together(group, names):
                continue
            for op in group:
                self.recorder.op = op
                kind = op.type.removesuffix("_grad")
                HANDLERS.get(kind, Lowering.simple)(self, op, names)

    # -- updates of parameters that lie side by side ------------------------------------------

    def together(self, updates: list[Operator], names: Names) -> bool:
        """Record updates of what lies in slabs as one update of the slabs; False if that is not the same.

        An optimizer makes the same few elementwise calls for every parameter:
        ``np.multiply(rate, gradients); np.subtract(parameters, gradients)`` makes them for all.
        """
        first = updates[0]
        state = self.schedule.state
        p = first.primitive
        written: list[list[str]] = []
        slabs: dict[str, Array] = {}
        for slot in first.outputs:
            listed = [n for op in updates for n in op.outputs[slot]]
            if listed not in self.slabs:
                return False
            written.append(listed)
            key = slab_name(listed)
            name = first.type if slot == "param_out" else slot.removesuffix("_out")
            memory = self.schedule.memory.arrays[key]
            slabs[key] = Array(self.recorder, memory, f"all_{name}", fixed=True)
        whole = next(iter(slabs.values()))
        like = [state[n] for n in written[0]]
        gradients = Array(self.recorder, np.zeros_like(whole.like), "gradients")
        slots = {}
        gathered: list[Array] = []
        for slot in first.inputs:
            listed = [n for op in updates for n in op.inputs[slot]]
            values = [names.find(n) for n in listed]
            alike = [(v.shape, v.dtype) for v in values] == [(v.shape, v.dtype) for v in like]
            value = slabs.get(slab_name(listed))
            if len(set(values)) == 1 and values[0].shape == ():
                value = values[0]
            elif not alike or (value is None and slot != "grad"):
                return False
            elif value is None:
                value = gradients
                gathered = values
            slots[slot] = [value]
        calls: Listed = []
        with self.recorder.into(calls):
            try:
                news = results(p, self.recorder.kernel(p, *arguments(p, slots, first.attrs)))
            except Unrecordable:
                return False
        if not all(is_elementwise(call) for call in calls):
            return False
        if gathered:
            with self.recorder.into(self.prepared):
                self.recorder.add("slab", np.zeros, (whole.shape, whole.dtype), gradients)
                places = self.parts(gradients, gathered)
            for value, place, parameter in zip(gathered, places, like, strict=True):
                place.name = value.name
                self.recorder.add("store", np.copyto, (place, value))
                self.schedule.gradients[parameter] = whole, place
        self.recorder.calls += calls
        state.update(slabs)
        for key, listed, new in zip(slabs, written, news, strict=True):
            names.values.update(zip(listed, self.parts(new, like), strict=True))
            self.stored[key] = new, first
        return True

    def parts(self, whole: Array, like: list[Array]) -> list[Array]:
        """The arrays that lie in a slab."""
        flat: Listed = []
        begin = 0
        for array in like:
            flat.append(whole[begin : begin + array.size])
            begin += padded(array.like) // whole.dtype.itemsize
        pairs = zip(flat, like, strict=True)
        return [part if a.ndim == 1 else part.reshape(a.shape) for part, a in pairs]

    # -- primitives ------------------------------------------------------------------------

    def copy(self, op: Operator, names: Names) -> None:
        """A copy, or a sum of one, that would lie in memory as its source does is another name for it.

        A small array that is fed is copied: views of the copy are made once.  So is what loops and
        branches change.
        """
        values = [names.find(n) for n in op.input_names]
        like = values[0].like if len(values) == 1 else None
        if (
            like is None
            or not like.flags.c_contiguous
            or (values[0].fixed and like.nbytes < SMALL)
            or any(map(values[0].shares, self.working.values()))
        ):
            self.simple(op, names)
        else:
            self.write(names, op.output_names[0], values[0])

    def simple(self, op: Operator, names: Names) -> None:
        """Record the kernel of a primitive, or call it as it is."""
        p = op.primitive
        if p is None:
            raise ProgramError(
                f"{op.type} cannot be compiled yet.\n  at {op.source_line}\n  repair: run it with static.Executor()"
            )
        slots = {s: [names.find(n) for n in ns] for s, ns in op.inputs.items()}
        args, attrs = arguments(p, slots, op.attrs, self.shape_of)
        try:
            values = results(p, self.recorder.kernel(p, args, attrs))
        except Unrecordable:
            near = arrays_in(args)[:1] if p.view else []
            made = [Array(self.recorder, self.like(names, n), n, near=near) for n in targets(p, op)]
            out = made if p.several else made[0]
            self.recorder.calls.append(Call("opaque", p.kernel, args, out, attrs, op, path=p.type))
            values = [self.in_order(a, known=a.like is not None and a.ndim < 2) for a in made]
        for name, value in zip(targets(p, op), values, strict=True):
            if name != EMPTY:
                self.write(names, name, value)

    def shape_of(self, array: Array) -> Any:
        """The shape of a value; one that is open until the program runs is asked for then."""
        if array.like is not None:
            return array.shape
        shape = Array(self.recorder, None, f"{array.name}_shape")
        return self.recorder.add("fresh", np.shape, (array,), shape)

    def like(self, names: Names, name: str) -> Any:
        """An array of the inferred shape and dtype; None where a size is open."""
        var = names.block.find_var(name)
        return None if var is None or -1 in var.shape else np.zeros(var.shape, var.dtype)

    def write(self, names: Names, name: str, value) -> None:
        """Give a name its value; parameters get it stored."""
        if not isinstance(value, Array):  # known now
            known = np.asarray(value)
            value = Array(self.recorder, np.zeros(known.shape, known.dtype))
            self.recorder.add("fresh", np.array, (known,), value)
        var = names.block.find_var(name)
        if var is None or not var.persistable:
            value.name = value.name or name
            names.values[name] = value
            return
        if name in self.working:
            self.keep_old_values(names, self.working[name])
            self.recorder.setitem(self.working[name], Ellipsis, value)
        else:  # stored when everything else has succeeded; until then the new value has the name
            names.values[name] = value
            self.stored[name] = value, self.recorder.op

    def store_all(self) -> None:
        """At the end the parameters change: an error on the way leaves them as they were."""
        values = [self.as_it_is(value) for value, _ in self.stored.values()]
        for (name, (_, op)), value in zip(self.stored.items(), values, strict=True):
            self.recorder.op = op
            self.recorder.add("store", np.copyto, (self.schedule.state[name], value))

    def as_it_is(self, value: Array) -> Array:
        """The value; a copy, if it looks at a parameter that will change."""
        changing = any(value.shares(self.schedule.state[n]) for n in self.stored)
        return self.recorder.copy(value) if changing else value

    def keep_old_values(self, names: Names | None, state: Array) -> None:
        """Names that stand for a parameter's memory keep what it holds now."""
        while names is not None:
            for name, value in names.values.items():
                if value.shares(state) and not (value is state and name == state.name):
                    names.values[name] = self.recorder.copy(value)
            names = names.parent

    # -- loops and branches -----------------------------------------------------------------

    def loop(self, op: Operator, names: Names) -> None:
        """``while`` and ``recurrent``, and their grad ops, which read what the forward body saved."""
        back = op.type.endswith("_grad")
        frames: Any = names.find(op.inputs["scopes"][0]) if back else None
        body = self.program.blocks[op.attrs["sub_block"]]
        inner = Names(body, names, frames.names if back else None)
        item = Loop(op, [], frames=frames)
        given, sliced, handed_on, stacked = (rows(op, *fields) for fields in LOOPS[back])
        totals = rows(op, "params_grad", "params_local", "params") if back else ()
        begins = []
        for local, name in given:
            start = self.in_order(names.find(name))
            begins.append((start, self.result(inner, local, [start], start.like)))
        for local, name in sliced:
            seq = names.find(name)
            like = seq.like
            if like is not None:
                like = like[0] if len(like) else np.zeros(like.shape[1:], like.dtype)
            part = inner.values[local] = Array(self.recorder, like, local, near=[seq])
            item.slices.append((seq, part))
        if op.type == "while":
            test = Names(self.program.blocks[op.attrs["cond_block"]], inner)
            self.inside(item.test, test)
            item.go_on = test.find(op.attrs["cond"])
        self.inside(item.body, inner)
        values = [self.leaving(item.body, inner, local) for local, _ in handed_on]
        # a step may hand on what it was given as another value: each may lie in any memory of these
        near = [*(start for start, _ in begins), *values]
        for (local, name), (start, begin), value in zip(handed_on, begins, values, strict=True):
            final = self.result(names, name, near, start.like if back else None)
            final.name = local if name == EMPTY else name
            item.carried.append((start, begin, value, final))
        for name, local, like in totals:
            value = self.leaving(item.body, inner, local)
            item.totals.append((value, self.result(names, name, (value,)), names.find(like)))
        for name, local in stacked:
            value = inner.find(local)
            stack = self.result(names, name)
            if value.like is not None and stack.like is not None and len(stack.like):
                stack.like = np.stack([value.like] * len(stack.like))  # they lie in memory alike
            item.stacked.append((value, stack))
        if back:
            self.save(inner, frames, frames.item.saved, item.saved)
        else:
            names.values[op.outputs["scopes"][0]] = Values(self.recorder, item, inner)
        self.recorder.calls.append(item)

    def cond(self, op: Operator, names: Names) -> None:
        """``cond``: two bodies; those of ``cond_grad`` read what the forward bodies saved."""
        back = op.type == "cond_grad"
        frames: Any = names.find(op.inputs["scopes"][0]) if back else None
        pred = names.find(op.inputs["pred"][0])
        item = Branch(op, pred, ([], []), [], frames=frames)
        inners = []
        for k, (prefix, attr) in enumerate(BRANCHES.items()):
            block = self.program.blocks[op.attrs[attr]]
            inner = Names(block, names, frames.names[k] if back else None)
            for local, name in rows(op, f"{prefix}_seeds", "out_grad"):
                inner.values[local] = names.find(name)
            self.inside(item.bodies[k], inner)
            inners.append(inner)
        out, of_branch = ("params_grad", "params") if back else ("out", "out")
        for name, *pair in rows(op, out, f"true_{of_branch}", f"false_{of_branch}"):
            sides = zip(item.bodies, inners, pair, strict=True)
            yes, no = (self.leaving(*side) for side in sides)
            item.results.append((yes, no, self.result(names, name, (yes, no))))
        if back:
            for k, inner in enumerate(inners):
                self.save(inner, frames, frames.item.saved[k], item.saved[k])
        else:
            names.values[op.outputs["scopes"][0]] = Values(self.recorder, item, inners)
        self.recorder.calls.append(item)

    def inside(self, calls: Listed, names: Names) -> None:
        """Lower a block that belongs to a loop or branch."""
        with self.recorder.into(calls):
            self.block(names)

    def result(self, names: Names, name: str, near: Iterable[Array] = (), like=None) -> Array:
        """The Array that control flow makes for a name; it may share memory with those that are ``near``."""
        like = self.like(names, name) if like is None else like
        names.values[name] = Array(self.recorder, like, name, near=near)
        return names.values[name]

    def save(self, inner: Names, frames: Values, forward, backward: Listed) -> None:
        """Let the forward step save what was captured: its list keeps that memory, too."""
        item = frames.item
        frames = item.frames = frames.filled
        if isinstance(item, Loop):
            frames.roots += tuple(r for *_, final in item.carried for r in final.roots[1:])
        for value in inner.saved:
            if not any(value is v for v in forward):
                forward.append(value)
                frames.roots = (*frames.roots, *value.roots)
        backward += inner.saved.items()

    def leaving(self, body: Listed, inner: Names, name: str) -> Array:
        """What goes out of a body."""
        with self.recorder.into(body):
            return self.in_order(inner.find(name))

    def in_order(self, value: Array, known: bool = True) -> Array:
        """A value in C order, as what goes from block to block is; ``known`` says that ``like`` tells its order."""
        if known and value.like is not None and value.like.flags.c_contiguous:
            return value
        like = None if value.like is None else np.zeros(value.shape, value.dtype)
        ordered = Array(self.recorder, like, value.name, near=[value])
        return self.recorder.add("fresh", np.asarray, (value,), ordered, {"order": "C"})  # type: ignore[no-any-return]


#: what lowers control flow with its grad ops, and copies
HANDLERS: ByName = {
    "while": Lowering.loop, "recurrent": Lowering.loop, "cond": Lowering.cond,
    "assign": Lowering.copy, "sum": Lowering.copy,
}  # fmt: skip
#: of a loop and of its grad op: what the first step is given, what each step takes a part of, what it
#: hands on, what it adds a part to
LOOPS = (
    (("carried", "x"), ("steps", "seq"), ("next", "out"), ("stacked", "step_out")),
    (
        ("next_grad", "out_grad"), ("step_out_grad", "stacked_grad"),
        ("carried_grad", "x_grad"), ("seq_grad", "steps_grad"),
    ),
)  # fmt: skip


def state_written_inside(program: Program) -> set[str]:
    """Parameters that loops and branches write."""
    return {
        n for b in program.blocks[1:] for op in b.ops for n in op.output_names if is_state(b, n)
    }
