"""The names of a block and what they stand for, looked up as the executor would."""

from __future__ import annotations

from typing import Any

from ..static.program.naming import unwritten
from ..static.program.program import Block
from .schedule import Array


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
            made = self.saved[value] = Array(low.recorder, value.like, value.name)
            made.roots = (made, *value.roots)
            if id(value) in low.schedule.loops:
                low.schedule.loops[id(made)] = low.schedule.loops[id(value)]
                low.origin[made] = low.origin.get(value, value)
        return self.saved[value]


class ShapeWhenRun:
    """The shape of an Array whose size is open."""

    def __init__(self, array: Array) -> None:
        self.array = array
