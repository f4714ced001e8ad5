"""Buffers: which calls write into memory that is there already, and which share it.

plan_buffers     liveness: a value's memory is free after the last call that reads it; the next value of its shape
                 and dtype takes it, an elementwise call in place
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .schedule import (
    Array,
    Call,
    Schedule,
    arrays_in,
    changed_memory,
    is_elementwise,
)


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
