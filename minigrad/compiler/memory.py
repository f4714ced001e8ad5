"""The memory of a step: what updates change lies in one block, so that one call can change all of it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby
from typing import Any

import numpy as np

from ..primitives.arguments import ByName
from ..static.program.operator import Operator, outputs_of
from ..static.program.program import Program
from ..static.run.executor import Executor, not_set
from ..static.run.limits import endless
from .schedule import Array, Call, Schedule, arrays_in

#: the name of the block; no variable can have it
STATE = "all state"


@dataclass(slots=True)
class Memory:
    """Where the persistable variables of a program live.

    Attributes: ``parameters``, name → array; ``arrays``, the same with the slabs and the block they lie in;
    ``slabs``, the names in each slab.
    """

    parameters: dict[str, np.ndarray[Any, Any]]
    arrays: dict[str, np.ndarray[Any, Any]]
    slabs: list[list[str]]


def start_memory(program: Program, executor: Executor | None) -> Memory:
    """Lay out the persistable variables: what is updated alike side by side, what is only read behind all of it."""
    start = start_values(program, executor)
    slabs = state_slabs(program)
    # what control flow gives a parameter's name is a value of the run
    ops = [op for block in program.blocks for op in block.ops if not op.sub_blocks]
    written = set(outputs_of(ops))
    alone = sorted(start, key=lambda name: name not in written)
    places = {}
    size = state = 0
    for name in dict.fromkeys(chain(*slabs, alone)):
        places[name] = size
        size += padded(start[name])
        if name in written:
            state = size
    block = aligned_zeros(size, np.uint8)
    arrays = {STATE: block[:state]}
    for names in slabs:
        begin = places[names[0]]
        end = places[names[-1]] + padded(start[names[-1]])
        arrays[slab_name(names)] = block[begin:end].view(start[names[0]].dtype)
    for name, value in start.items():
        # not a slice: an empty one begins where the block does, but C counts on every place
        start[name] = np.ndarray(value.shape, value.dtype, block, places[name])
        start[name][...] = value
    return Memory(start, arrays | start, slabs)


def start_values(program: Program, executor: Executor | None) -> ByName:
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


def aligned_zeros(shape, dtype) -> Any:
    """Zeros that start at a multiple of 64 bytes, as vector instructions like it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + ALIGN, np.uint8)
    begin = -raw.ctypes.data % ALIGN
    return raw[begin : begin + size].view(dtype).reshape(shape)


@cache
def refusal(kernel) -> Any:
    """A function that raises what a kernel raises on arguments it refuses."""

    def refuse(*args, **attrs) -> None:
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
    root = program.global_block()
    slabs = []
    placed: set[str] = set()
    for group in groups(root.ops):
        for slot in group[0].outputs if len(group) > 1 else ():
            names = [n for op in group for n in op.outputs[slot]]
            held = [root.var(n) for n in names]
            apart = len({*names} - placed) == len(group)
            # clipping makes values on the way
            lasting = all(v.persistable for v in held)
            if apart and lasting and len({v.dtype for v in held}) == 1:
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


def padded(array) -> int:
    """The bytes that an array takes where every one begins at a multiple of `ALIGN`.

    >>> padded(np.zeros((2, 3))), padded(np.zeros(9)), padded(np.zeros(0))
    (64, 128, 64)
    """
    return max(-(-int(array.nbytes) // ALIGN), 1) * ALIGN


# -- Buffers: which calls write into memory that is there already, and which share it ------


@dataclass(slots=True, eq=False)
class Buffer:
    """Memory that several values use one after the other."""

    name: str
    like: np.ndarray[Any, Any]
    start: int = 0  # what it is filled with before the first run
    holds: list[Array] = field(default_factory=list)


def plan(schedule: Schedule) -> list[Buffer]:
    """Where the values of the root live; values inside loops are made anew in every step.

    Liveness: a value's memory is free after the last call that reads it; the next value of its
    shape and dtype takes it.
    """
    buffers: list[Buffer] = []
    live: dict[Array, Buffer] = {}
    free: dict[Any, list[Buffer]] = defaultdict(list)
    read = [[r for a in item.touches() for r in a.roots] for item in schedule.items]
    last = {root: k for k, roots in enumerate(read) for root in roots}
    last |= {r: len(read) for a in schedule.fetched for r in a.roots}
    for k, item in enumerate(schedule.items):
        out = item.out
        if item.kind == "slab":
            buffers.append(Buffer(out.name, out.like, int(item.function is np.ones), [out]))
        elif wants_buffer(item):
            waiting = free[out.shape, out.dtype]
            if not waiting:
                waiting.append(Buffer(f"b{len(buffers) + 1}", out.like))
                buffers += waiting
            live[out] = waiting.pop()
            live[out].holds.append(out)
        for root in dict.fromkeys([*read[k], *arrays_in(out)]):
            if root in live and last.get(root, k) == k:
                free[root.shape, root.dtype].append(live.pop(root))
    return buffers


def wants_buffer(call: Call) -> bool:
    """Whether a call makes a value that memory can be kept for."""
    out = call.out
    numbers = call.kind == "fill" or (call.kind == "compute" and out.dtype.kind in "fiub")
    return bool(numbers and call.into is None and out.is_root and out.like.flags.c_contiguous)
