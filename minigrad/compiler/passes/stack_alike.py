"""Calls that differ in their arrays only, and need nothing of each other, are one call on a stack of these arrays.

A network that runs over fifty steps has fifty slopes ``1 - tanh(h)²``, each of a small array, where a call costs more
than its numbers do.  When backward begins all of them can be made.  The values they need are put side by side
(`stacks`), and one call goes over the whole.  Elementwise arithmetic has the same bits in any company; functions such
as ``tanh`` may not (how many numbers are left behind the last full vector decides), so with ``exact`` they stay apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..schedule import Array, Call, Schedule, arrays_in, is_elementwise, written
from .stacks import Stacks

#: so many calls are made one
ENOUGH = 3
#: arrays of more elements are worth a call each: side by side they would leave the cache between two calls
SMALL = 16_384
#: each element is rounded once, as IEEE 754 says, whatever stands beside it
ARITHMETIC = {
    np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive, np.sqrt, np.square, np.maximum, np.minimum,
    np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal, np.absolute,
}  # fmt: skip


def stack_alike(schedule: Schedule, exact: bool) -> None:
    """Merge such calls of the root, as long as there are any.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     h, w = static.data("h", [2, 2]), static.parameter("w", [[0.1, 0.2], [0.3, 0.4]])
    ...     for _ in range(4):
    ...         h = mg.tanh(h @ w)
    ...     _ = static.append_backward(h.sum())
    >>> static.compile(prog, fetch="w@GRAD").source.count("np.subtract(cv1")
    1
    """
    failed: set[int] = set()
    alive: list[Call] = []  # ids stay unique while their objects live
    while (group := _largest(schedule, exact, failed, alive)) is not None:
        _merge(schedule, group)


def _largest(schedule: Schedule, exact: bool, failed: set[int], kept: list[Call]) -> Any:
    """The most calls that can be one; groups whose operands cannot be brought together have failed."""
    groups = _Groups(schedule, exact)
    for group in sorted(groups.all(), key=len, reverse=True):
        first = group[0]
        if id(first) not in failed:
            columns = _columns(groups.stacks, group).values()
            if all(groups.stacks.consecutive(c) or groups.stacks.stackable(c) for c in columns):
                return group
            failed.add(id(first))
            kept.append(first)
    return None


class _Groups:
    """Calls of one kind, whose operands are there before the first of them runs."""

    def __init__(self, schedule: Schedule, exact: bool) -> None:
        self.schedule, self.exact, self.stacks = schedule, exact, Stacks(schedule)
        self.makers = self.stacks.makers
        self.place = {id(item): k for k, item in enumerate(schedule.items)}
        self.targets: dict[int, list[Array]] = {}  # id of a root → what is written into it
        self.final: dict[int, bool] = {}  # id of a root → whether it is, see below
        for target in written(schedule.items):
            for root in target.roots:
                self.targets.setdefault(id(root), []).append(target)

    def all(self) -> list[list[Call]]:
        waiting: dict[Any, list[Call]] = {}
        done: list[list[Call]] = []
        for call in self.schedule.items:
            key = self.kind(call)
            if key is None:
                continue
            group = waiting.setdefault(key, [])
            if group and not self.ready(call, self.place[id(group[0])]):
                done.append(group)
                group = waiting[key] = []
            group.append(call)
        return [g for g in [*done, *waiting.values()] if len(g) >= ENOUGH]

    def kind(self, call: Any) -> Any:
        """What calls must have in common; None for those that stay alone."""
        if not isinstance(call, Call) or not is_elementwise(call) or call.into is not None:
            return None
        out = call.out
        plain = out.is_root and 0 < out.size <= SMALL and out.ndim and not call.kwargs
        if not plain or (self.exact and call.function not in ARITHMETIC):
            return None
        args = [self.argument(call, k) for k in range(len(call.args))]
        varying = any(a and a[0] == "each" for a in args)
        return (call.path, call.ignores, out.shape, *args) if varying and all(args) else None

    def argument(self, call: Call, k: int) -> Any:
        value = call.args[k]
        if not isinstance(value, Array):
            if isinstance(value, np.ndarray) and value.ndim:
                return ("one", id(value))
            return ("number", type(value), repr(value))
        if any(value is a for a in call.args[:k]):
            return ("as", next(j for j, a in enumerate(call.args) if a is value))
        if not self.is_final(value):
            return None
        if value.ndim < call.out.ndim:
            return ("one", id(value))
        if value.shape != call.out.shape:
            return None
        at, maker = self.stacks.at(value), self.makers.get(id(value))
        return ("each", value.dtype, id(at[0]) if at else maker.path if maker else "")

    def is_final(self, array: Array) -> bool:
        """Whether its memory is written once: as a whole, or as a stack, member by member; parameters change last."""
        for root in array.roots:
            if root.fixed:
                self.final[id(root)] = True
            elif id(root) not in self.final:
                places = [self.stacks.at(t) for t in self.targets.get(id(root), [])]
                members = {at[1] for at in places if at and at[0] is root}
                self.final[id(root)] = len(members) == len(places)
        return array.like is not None and all(self.final[id(r)] for r in array.roots)

    def ready(self, call: Call, place: int) -> bool:
        """Whether all operands are there before this place."""
        return all(self.made(a) < place for a in arrays_in(call.args))

    def made(self, array: Array) -> int:
        maker = self.makers.get(id(array))
        if maker is None:
            return -1 if array.fixed else len(self.place)
        if maker.kind == "view":
            return max(self.made(a) for a in maker.reads())
        return self.place[id(maker)]


def _columns(stacks: Stacks, group: list[Call]) -> dict[int, list[Array]]:
    """The operands that differ, argument by argument; in the order in which they lie in memory, if they do."""
    first = group[0]
    varying = [
        k for k, a in enumerate(first.args) if isinstance(a, Array) and a.ndim == first.out.ndim
    ]
    for k in varying:
        places = [stacks.at(c.args[k]) for c in group]
        if all(places):
            ranks = {id(c): p[1] for c, p in zip(group, places, strict=True) if p}
            group.sort(key=lambda c: ranks[id(c)])
            break
    return {k: [c.args[k] for c in group] for k in varying}


def _merge(schedule: Schedule, group: list[Call]) -> None:
    """Put one call in the place of a group."""
    stacks, first = Stacks(schedule), min(map(schedule.items.index, group))
    columns = _columns(stacks, group)
    calls: list[Any] = []
    with group[0].out.recorder.into(calls, group[0].op):
        wholes = {k: stacks.whole(c) for k, c in columns.items()}
        args = [wholes.get(k, a) for k, a in enumerate(group[0].args)]
        every: Any = group[0].function(*args)
        calls[-1].ignores = group[0].ignores
        every.name = f"every_{group[0].out.name or 'value'}"
        for k, call in enumerate(group):
            member = every[k]
            member.name = call.out.name
            stacks.moved[id(call.out)] = member
    gone = set(map(id, group))
    schedule.items[first:first] = calls
    schedule.items[:] = [i for i in schedule.items if id(i) not in gone]
    stacks.done()
