"""Decisions a kernel makes on values: a recording goes one way, and the other way must be an error.

``if target.max() >= classes: raise IndexError`` is such a *check*: the source tests the condition and calls the kernel
itself where it fails, which then raises its error.  Any other decision on values cannot be recorded.
"""

from __future__ import annotations

from typing import Any

from .retarget import Twins
from .schedule import Array, Call, Unrecordable

#: a kernel with more decisions than this is called by its name
CHECKS = 8


class Decisions:
    """The part of the recorder that is about decisions."""

    calls: list[Any]
    op: Any
    ignores: tuple[str, ...]
    twins: Twins
    running: tuple[Any, Any, Any]  # the kernel at work: primitive, arguments, attrs
    way: list[bool]  # what it is told, decision by decision
    taken: list[bool]

    def decide(self, array: Array) -> bool:
        """What a kernel is told when it asks whether an Array is true."""
        primitive, args, attrs = self.running
        k = len(self.taken)
        answer = self.way[k] if k < len(self.way) else True
        self.taken.append(answer)
        if len(self.taken) > CHECKS or array.size != 1:
            raise Unrecordable("a decision on values")
        self.calls.append(
            Call(
                "check",
                primitive.type,
                primitive.kernel,
                (array, answer, args, attrs),
                {},
                None,
                self.op,
            )
        )
        return answer

    def attempt(self, way: list[bool], start: int) -> bool:
        """Whether the kernel comes to its end if its decisions go this way; records nothing."""
        primitive, args, attrs = self.running
        self.way, self.taken = way, []
        try:
            self.twins.of(primitive.kernel)(*args, **attrs)
            return True
        except (ValueError, IndexError):
            return False
        finally:
            del self.calls[start:]
            self.ignores = ()

    def first_way(self, start: int) -> list[bool]:
        """The decisions with which the kernel comes to its end."""
        way: list[bool] = []
        while not self.attempt(way, start):
            way = self.taken
            while way and way[-1] is False:
                way = way[:-1]
            if not way:
                raise Unrecordable("an error on every way")
            way = [*way[:-1], False]
        return self.taken

    def check_decisions(self, way: list[bool], start: int) -> None:
        """Every decision must be a check: the other way is an error."""
        for k in range(len(way)):
            if self.attempt([*way[:k], not way[k]], start):
                raise Unrecordable("a decision on values")
        self.taken = way
