"""The memory of a step: what updates change lies in one block, so that one call can change all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..static.program.program import Program
from ..static.run.executor import Executor
from ..static.run.feeds import not_set
from .passes.flat_parameters import ALIGN, in_slab, slab_name, state_slabs
from .runtime import aligned_zeros

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


def start_memory(program: Program, executor: Executor | None) -> Memory:
    """Lay out the persistable variables: what is updated alike side by side, what is only read elsewhere."""
    start, slabs = start_values(program, executor), state_slabs(program)
    in_slabs = {name for names in slabs for name in names}
    written = {n for block in program.blocks for op in block.ops for n in op.output_names}
    written -= in_slabs
    alone = [[name] for name in start if name in written]
    size, places = 0, {}
    for names in slabs + alone:
        places[slab_name(names)] = size
        dtype = start[names[0]].dtype
        size += in_slab(dtype, [start[n].shape for n in names])[0] * dtype.itemsize
        size += -size % ALIGN
    block = aligned_zeros(size, np.uint8)
    arrays = {STATE: block}
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
