"""What is computed twice from the same values is computed once: calls, and arrays that are filled step by step.

`merge_duplicates` does this for operators.  Once they are calls, more turns out to be the same: the cross entropy and
its gradient share ``exp(x - max)``, a convolution and the gradient of its filters share the windows as columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..schedule import (
    Array,
    Call,
    Schedule,
    arrays_in,
    bodies,
    changed_memory,
    current,
    is_elementwise,
    substitute,
)

#: constants of more elements than this are equal only to themselves
LIMIT = 10_000


def merge_common_calls(schedule: Schedule) -> None:
    """Let equal calls of the root, on equal values, be one."""
    _Merging(schedule).run()


def one_value_each(schedule: Schedule) -> None:
    """``np.exp(e, e)`` becomes ``f = np.exp(e)`` where no view looks at ``e``; `plan_buffers` undoes it."""
    same: dict[int, Array] = {}
    _one_value_each(schedule.items, same)
    schedule.fetched = [current(a, same) for a in schedule.fetched]


def _one_value_each(items: list[Any], same: dict[int, Array]) -> None:
    results = [a for item in items for a in arrays_in([getattr(item, "out", None)])]
    ids = set(map(id, results))
    viewed = {id(r) for a in results for r in a.roots if r is not a}
    for item in items:
        substitute(item, same)
        for body in bodies(item):
            _one_value_each(body, same)
            substitute(item, same, deep=False)  # what the body hands on
        old = item.into if isinstance(item, Call) else None
        if old is None or not is_elementwise(item) or not old.is_root or id(old) in viewed:
            continue
        plain = all(a.like is not None and a.like.flags.c_contiguous for a in [old, *item.reads()])
        if plain and old.ndim and old.dtype.kind in "fiu" and id(old) in ids:
            item.out, item.into = Array(old.recorder, old.like, old.name), None
            same[id(old)] = item.out
            ids.add(id(item.out))


class _Merging:
    """One walk over the root's calls."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.items = schedule, schedule.items
        self.known: dict[Any, list[Array]] = {}  # what is computed → the Arrays that hold it
        self.same: dict[int, Array] = {}
        self.dropped: set[int] = set()
        self.open = changed_memory(self.items)  # not finished yet
        self.fillings = _fillings(self.items, self.open)

    def run(self) -> None:
        ends = {id(calls[-1]): root for root, calls in self.fillings.items()}
        for item in self.items:
            substitute(item, self.same)
            root = ends.get(id(item))
            if root is not None:
                calls = self.fillings[root]
                if self.is_finished(calls, root):
                    self.merge(calls)
                self.open.discard(root)
            elif isinstance(item, Call) and _is_pure(item) and self.is_finished([item]):
                self.merge([item])
        self.items[:] = [i for i in self.items if id(i) not in self.dropped]
        self.schedule.fetched = [current(a, self.same) for a in self.schedule.fetched]

    def is_finished(self, calls: list[Call], own: int | None = None) -> bool:
        """Whether nothing that these calls read or make changes later on."""
        arrays = [a for c in calls for a in [*c.touches(), *arrays_in([c.out])]]
        return not any(id(r) in self.open and id(r) != own for a in arrays for r in a.roots)

    def merge(self, calls: list[Call]) -> None:
        """Let what these calls make be what equal calls made before, or remember it."""
        own = [a for c in calls if c.kind != "write" and c.into is None for a in arrays_in([c.out])]
        number = {id(a): k for k, a in enumerate(own)}
        known = self.known.setdefault(tuple(_key(c, number) for c in calls), own)
        if known is own:
            return
        if known[0].shape != own[0].shape:
            _reshape(calls[0], known[0])
        elif all(a.like.strides == b.like.strides for a, b in zip(own, known, strict=True)):
            self.same.update(zip(map(id, own), known, strict=True))
            self.dropped.update(map(id, calls))


def _is_pure(call: Call) -> bool:
    return call.kind in ("compute", "fresh", "view", "fill") and call.into is None


def _fillings(items: list[Any], changed: set[int]) -> dict[int, list[Call]]:
    """id of an array that is filled step by step, and read only then → the calls that make, view and fill it."""
    fillings: dict[int, list[Call]] = {}
    read: set[int] = set()
    spoilt: set[int] = set()
    for item in items:
        target = item.changed if isinstance(item, Call) else None
        own = {id(r) for a in arrays_in([target, getattr(item, "out", None)]) for r in a.roots}
        if target is not None:
            spoilt |= own & read if len(own) == 1 else own
        if not isinstance(item, Call) or item.kind in ("store", "opaque", "slab"):
            spoilt |= changed_memory([item]) | own
        for root in own & changed:
            fillings.setdefault(root, []).append(item)
        read |= {id(r) for a in item.reads() for r in a.roots} - own
    for calls in fillings.values():
        while calls and calls[-1].kind == "view":
            calls.pop()
    return {
        r: calls
        for r, calls in fillings.items()
        if calls and r not in spoilt and _is_pure(calls[0])
    }


def _reshape(call: Call, known: Array) -> None:
    """A sum that keeps its axes looks at the same sum without them."""
    shape = call.out.shape
    call.kind, call.path, call.function = "view", "np.reshape", np.reshape
    call.args, call.kwargs = (known, shape), {}
    call.out.like, call.out.roots = known.like.reshape(shape), known.roots


def _key(call: Call, number: dict[int, int]) -> Any:
    """What two calls must share to be the same; ``number`` counts Arrays that belong to the calls themselves."""

    def key(value: Any) -> Any:
        if isinstance(value, Array):
            return ("own", number[id(value)]) if id(value) in number else ("array", id(value))
        if isinstance(value, np.ndarray):
            same = value.tobytes() if value.size <= LIMIT else id(value)
            return "constant", value.dtype.str, value.shape, same
        if isinstance(value, list | tuple):
            return type(value).__name__, tuple(map(key, value))
        if isinstance(value, dict):
            return tuple((k, key(v)) for k, v in sorted(value.items()))
        if isinstance(value, slice):
            return "slice", key((value.start, value.stop, value.step))
        return type(value).__name__, repr(value)

    kwargs = dict(call.kwargs)
    if call.path.endswith(".reduce"):
        kwargs.pop("keepdims", None)
    return call.kind, call.path, key(call.args), key(kwargs), key(call.into), call.ignores
