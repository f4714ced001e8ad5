"""Tensors of a module as Variables of a Program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..eager.tensor import Tensor, tensor
from ..primitives.values import Operators


def as_value(x: Any) -> Any:
    """What a layer is called with: a Tensor or Variable as it is, anything else as a Tensor."""
    return x if isinstance(x, Operators) else tensor(x)


def program_of(values: Iterable[Any]) -> Any:
    """The Program that the first Variable among some values belongs to."""
    for value in values:
        if isinstance(value, list | tuple):
            found = program_of(value)
            if found is not None:
                return found
        elif isinstance(value, Operators) and not isinstance(value, Tensor):
            return value.block.program
    return None


def lift(program: Any, path: str, at: Tensor) -> Any:
    """The Variable of a Program that stands for a Tensor of a module; one per Tensor."""
    known = program.lifted.get(id(at))
    block = program.global_block()
    if known is not None:
        return block.vars[known[1]]
    name, k = at.name or path, 0
    while name in block.vars:
        name, k = f"{at.name or path}_{k + 1}", k + 1
    made = program.add_persistable(name, np.array(at._data), trainable=at.requires_grad)
    program.lifted[id(at)] = (at, name)
    return made
