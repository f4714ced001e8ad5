"""The memory of a step: what updates change lies in one block, so that one call can change all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from ..static.program.operator import Operator
from ..static.program.program import Program
from ..static.run.executor import Executor, not_set
from ..static.run.limits import endless
from .schedule import Array, Call, Schedule, arrays_in, changed_memory, is_elementwise

#: the name of the block; no variable can have it
STATE = "all state"


@dataclass(slots=True)
class Memory:
    """Where the persistable variables of a program live.

    Attributes: ``parameters``, name → array; ``arrays``, the same with the slabs and the block they lie in;
    ``slabs``, the names in each slab; ``places``, name of an array in the block → the byte where it begins.
    """

    parameters: dict[str, np.ndarray[Any, Any]]
    arrays: dict[str, np.ndarray[Any, Any]]
    slabs: list[list[str]]
    places: dict[str, int]

    def in_order(self) -> dict[str, int]:
        """All parameters as they lie in memory, and the byte where each begins."""
        first = self.arrays[STATE].ctypes.data
        begins = {name: a.ctypes.data - first for name, a in self.parameters.items()}
        return dict(sorted(begins.items(), key=lambda item: item[1]))


def start_memory(program: Program, executor: Executor | None) -> Memory:
    """Lay out the persistable variables: what is updated alike side by side, what is only read behind all of it."""
    start, slabs = start_values(program, executor), state_slabs(program)
    in_slabs = {name for names in slabs for name in names}
    written = {n for block in program.blocks for op in block.ops for n in op.output_names}
    alone = [[name] for name in start if name not in in_slabs]
    alone.sort(key=lambda names: names[0] not in written)
    size, state, places = 0, 0, {}
    for names in slabs + alone:
        places[slab_name(names)] = size
        dtype = start[names[0]].dtype
        size += in_slab(dtype, [start[n].shape for n in names])[0] * dtype.itemsize
        size += -size % ALIGN
        state = size if names[0] in written else state
    block = aligned_zeros(size, np.uint8)
    arrays = {STATE: block[:state]}
    for names in slabs + alone:
        first, dtype = places[slab_name(names)], start[names[0]].dtype
        length, parts = in_slab(dtype, [start[n].shape for n in names])
        whole = block[first : first + length * dtype.itemsize].view(dtype)
        arrays[slab_name(names)] = whole
        for name, (begin, end) in zip(names, parts, strict=True):
            part = whole[begin:end].reshape(start[name].shape)
            part[...] = start[name]
            start[name] = part
            places[name] = first + begin * dtype.itemsize
    places = {name: begin for name, begin in places.items() if begin < state}
    return Memory(start, {**arrays, **start}, slabs, places)


def start_values(program: Program, executor: Executor | None) -> dict[str, Any]:
    """Copies of the values that the persistable variables have now."""
    values = {} if executor is None else executor.scope.values
    start = {}
    for name, var in program.global_block().vars.items():
        if var.persistable:
            value = values.get(name, program.initial.get(name))
            if value is None:
                raise not_set(name)
            start[name] = np.array(value, var.dtype, order="C")
    return start


def aligned_zeros(shape: Any, dtype: Any) -> Any:
    """Zeros that start at a multiple of 64 bytes, as vector instructions like it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + ALIGN, np.uint8)
    begin = -raw.ctypes.data % ALIGN
    return raw[begin : begin + size].view(dtype).reshape(shape)


@cache
def refusal(kernel: Any) -> Any:
    """A function that raises what a kernel raises on arguments it refuses."""

    def refuse(*args: Any, **attrs: Any) -> None:
        kernel(*args, **attrs)
        # never reached: the source calls this only where the kernel took the branch that raises
        raise AssertionError(f"{kernel.__name__} accepts what its source was compiled to refuse")

    return refuse


def too_many_steps(limit: int) -> None:
    """What a loop without end comes to."""
    advice = "a condition that becomes false, or static.Executor().run(…, step_limit=…)"
    raise RuntimeError(f"{endless(limit)}; repair: {advice}")


#: every array in a slab starts at a multiple of so many bytes
ALIGN = 64


def state_slabs(program: Program) -> list[list[str]]:
    """The names of persistable variables that updates of one kind treat alike, slot by slot."""
    root, slabs = program.global_block(), []
    placed: set[str] = set()
    for group in groups(root.ops):
        for slot in group[0].outputs if len(group) > 1 else ():
            names = [n for op in group for n in op.outputs[slot]]
            held = [root.var(n) for n in names]
            fits = len(set(names)) == len(group) and len({v.dtype for v in held}) == 1
            # clipping makes values on the way
            if fits and all(v.persistable for v in held) and placed.isdisjoint(names):
                slabs.append(names)
                placed.update(names)
    return slabs


def groups(ops: list[Operator]) -> Iterator[list[Operator]]:
    """The operators in order; neighbouring updates that do the same to other variables in one list."""

    def kind(op: Operator) -> Any:
        slots = op.inputs.keys(), op.outputs.keys()
        return (op.type, op.attrs, *slots) if op.role == "optimize" else op

    for _, group in groupby(ops, kind):
        yield [*group]


def slab_name(names: list[str]) -> str:
    """What a slab is called; no variable's name has a space."""
    return " ".join(names)


def in_slab_of(name: str) -> list[str]:
    """The variables in a slab of this name, which may be that of a single one."""
    return name.split(" ")


def in_slab(
    dtype: np.dtype[Any], shapes: list[tuple[int, ...]]
) -> tuple[int, list[tuple[int, int]]]:
    """The length of a slab and the place of each array in it.

    >>> in_slab(np.dtype("float64"), [(2, 3), (3,)])
    (16, [(0, 6), (8, 11)])
    """
    step = ALIGN // dtype.itemsize
    places, at = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        places.append((at, at + size))
        at += max(-(-size // step), 1) * step
    return at, places


# -- Buffers: which calls write into memory that is there already, and which share it ------
#
# plan_buffers     liveness: a value's memory is free after the last call that reads it; the next value of its shape
#                  and dtype takes it, an elementwise call in place


@dataclass(slots=True, eq=False)
class Buffer:
    """Memory that several values use one after the other."""

    name: str
    like: np.ndarray[Any, Any]
    holds: list[Array]
    start: int = 0  # what it is filled with before the first run


@dataclass(slots=True)
class Plan:
    """Where values live."""

    buffers: list[Buffer] = field(default_factory=list)
    placed: set[int] = field(default_factory=set)  # ids of Arrays that have a buffer
    constant: set[int] = field(default_factory=set)  # ids of filled Arrays that nobody changes
    read: set[int] = field(default_factory=set)  # ids of all Arrays that are read

    def is_read(self, array: Array) -> bool:
        """Whether some call reads the Array."""
        return id(array) in self.read


def plan_buffers(schedule: Schedule) -> Plan:
    """Decide where the values of the root live; values inside loops are made anew in every step."""
    plan = Plan()
    plan.read = {id(a) for item in schedule.items for a in item.reads()} | {
        id(a) for a in schedule.fetched
    }
    changed = changed_memory(schedule.items)
    for item in schedule.items:
        if (
            isinstance(item, Call)
            and item.kind == "fill"
            and id(item.out) not in changed
            and item.args[1] is not None
        ):
            plan.constant.add(id(item.out))
        elif isinstance(item, Call) and _follows_from(item, plan.constant, changed):
            plan.constant.update(id(a) for a in arrays_in([item.out]))
    _Planner(schedule, plan).run()
    return plan


def _follows_from(call: Call, constant: set[int], changed: set[int]) -> bool:
    """Whether a call's result is known before the first run."""
    if call.kind not in ("compute", "fresh", "view") or call.into is not None or not call.reads():
        return False
    outs = arrays_in([call.out])
    if any(id(r) in changed for a in outs for r in a.roots):
        return False
    return all(id(a) in constant for a in call.reads())


class _Planner:
    """One walk over the root's calls."""

    def __init__(self, schedule: Schedule, plan: Plan) -> None:
        self.schedule, self.plan = schedule, plan
        self.last = _last_reads(schedule)
        self.free: dict[Any, list[Buffer]] = {}
        self.live: dict[int, Buffer] = {}  # id of a root Array → its buffer
        self.ends: dict[int, list[Array]] = {}

    def run(self) -> None:
        for k, item in enumerate(self.schedule.items):
            if isinstance(item, Call) and item.kind == "slab":
                self.slab(item.out, int(item.function is np.ones))
            elif isinstance(item, Call) and self.wants_buffer(item):
                self.place(k, item)
            for array in self.ends.pop(k, []):
                buffer = self.live.pop(id(array), None)
                if buffer is not None:
                    self.free.setdefault(_kind(buffer.like), []).append(buffer)

    def wants_buffer(self, call: Call) -> bool:
        out = call.out
        if (
            not isinstance(out, Array)
            or id(out) in self.plan.constant
            or call.into is not None
            or not out.is_root
            or out.like is None
        ):
            return False
        if call.kind == "fill":
            return True
        return call.kind == "compute" and out.dtype.kind in "fiub"

    def place(self, k: int, call: Call) -> None:
        out: Array = call.out
        end = self.last.get(id(out), k)
        buffer = self.in_place(k, call)
        if buffer is None:
            waiting = self.free.get(_kind(out.like))
            buffer = waiting.pop() if waiting else self.new(out)
        buffer.holds.append(out)
        self.plan.placed.add(id(out))
        self.live[id(out)] = buffer
        self.ends.setdefault(end, []).append(out)

    def slab(self, whole: Array, start: int) -> None:
        """Memory of its own from the first run to the last."""
        buffer = Buffer(whole.name, whole.like, [whole], start)
        self.plan.buffers.append(buffer)
        self.plan.placed.add(id(whole))
        self.live[id(whole)] = buffer

    def in_place(self, k: int, call: Call) -> Buffer | None:
        """The buffer of an operand that nobody reads after this call."""
        if not is_elementwise(call):
            return None
        out: Array = call.out
        for array in call.args:
            if (
                isinstance(array, Array)
                and id(array) in self.live
                and self.last.get(id(array)) == k
            ):
                buffer = self.live[id(array)]
                if _kind(buffer.like) == _kind(out.like):
                    del self.live[id(array)]
                    return buffer
        return None

    def new(self, out: Array) -> Buffer:
        buffer = Buffer(f"b{len(self.plan.buffers) + 1}", out.like, [])
        self.plan.buffers.append(buffer)
        return buffer


def _kind(like: np.ndarray[Any, Any]) -> Any:
    return like.shape, like.dtype, like.strides


def _last_reads(schedule: Schedule) -> dict[int, int]:
    """id of a root Array → the place of the last item that reads its memory."""
    last: dict[int, int] = {}
    for k, item in enumerate(schedule.items):
        for array in item.reads():
            for root in array.roots:
                last[id(root)] = k
        if isinstance(item, Call) and item.into is not None:
            for root in item.into.roots:
                last[id(root)] = k
    for array in schedule.fetched:
        for root in array.roots:
            last[id(root)] = len(schedule.items)
    return last
