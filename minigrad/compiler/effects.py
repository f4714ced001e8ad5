"""What items of a schedule make, change and hand on: what every pass asks before it moves or rewrites a call."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .schedule import Array, Branch, Call, Loop, arrays_in


def is_elementwise(call: Call) -> bool:
    """Whether each element of the result depends on the same element of the operands only."""
    function = call.function
    return call.kind == "compute" and isinstance(function, np.ufunc) and function.signature is None


def bodies(item: Any) -> tuple[list[Any], ...]:
    """The lists of items inside an item."""
    if isinstance(item, Loop):
        return item.test, item.body
    return item.bodies if isinstance(item, Branch) else ()


def leaving(item: Any) -> list[Array]:
    """What a loop or branch hands on from its bodies."""
    if isinstance(item, Loop):
        return item.handed_on() + arrays_in(item.saved)
    return arrays_in([item.results, list(item.saved)]) if isinstance(item, Branch) else []


def written(items: list[Any]) -> list[Array]:
    """Arrays that calls change after they were made."""
    out: list[Array] = []
    for item in items:
        if isinstance(item, Call):
            if item.into is not None:
                out.append(item.into)
            if item.kind in ("write", "store"):
                out.append(item.args[0])
        else:
            for inner in bodies(item):
                out += written(inner)
    return out


def changed_memory(items: list[Any]) -> set[int]:
    """The ids of the Arrays whose memory calls change after it was made."""
    return {id(r) for a in written(items) for r in a.roots}


def makers_of(items: list[Any]) -> dict[int, Call]:
    """id of an Array → the call that makes it."""
    return {id(a): c for c in items if isinstance(c, Call) for a in arrays_in([c.out])}


def part_of(whole: Array, index: Any, name: str = "") -> Call:
    """The call that looks at a part of memory of its own: ``whole[index]``."""
    part = Array(whole.recorder, whole.like[index], name, (whole,))
    return Call("view", "[]", operator.getitem, (whole, index), {}, part)
