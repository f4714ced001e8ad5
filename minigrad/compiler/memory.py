"""The memory of a step: what updates change lies in one block, so that one call can change all of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..static.program.operator import Operator
from ..static.program.program import Program
from ..static.run.executor import Executor
from ..static.run.feeds import not_set
from ..static.run.limits import endless

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
    alike_slots: list[list[str]] = []
    for group in _groups(program.global_block().ops):
        for slot in group[0].outputs:
            names = [n for op in group for n in op.outputs.get(slot, ())]
            held = [program.global_block().var(n) for n in names]
            fits = len(names) == len(set(names)) == len(group) and len({v.dtype for v in held}) == 1
            if fits and all(v.persistable for v in held):  # clipping makes values on the way
                alike_slots.append(names)
    placed: set[str] = set()
    out = []
    for names in alike_slots:
        if placed.isdisjoint(names):
            out.append(names)
            placed.update(names)
    return out


def _groups(ops: list[Operator]) -> list[list[Operator]]:
    """Neighbouring update operators of one type with the same attrs."""
    groups: list[list[Operator]] = []
    for op in ops:
        if op.role != "optimize":
            groups.append([])
        elif groups and groups[-1] and alike(groups[-1][0], op):
            groups[-1].append(op)
        else:
            groups.append([op])
    return [g for g in groups if len(g) > 1]


def alike(a: Any, b: Any) -> bool:
    """Whether two update operators do the same to other variables."""
    same = a.type == b.type and a.attrs == b.attrs and a.inputs.keys() == b.inputs.keys()
    return bool(same)


def slab_name(names: list[str]) -> str:
    """What a slab is called; no variable's name has a space."""
    return " ".join(names)


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
