"""Tidying a schedule: copies nobody needs and calls nobody reads go; updates are written into the parameters."""

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
    leaving,
    makers_of,
    replace_arrays,
    substitute_all,
)


def tidy(schedule: Schedule) -> None:
    """Drop what is not needed; write updates into the parameters."""
    _drop_copies(schedule)
    _drop_copies_inside(schedule)
    drop_unread(schedule)
    _updates_last(schedule)
    _store_directly(schedule)


def _drop_copies(schedule: Schedule) -> None:
    """A copy stands for its source, if neither of them is changed later on; so does its product with one."""
    changed = changed_memory(schedule.items)
    same: dict[int, Array] = {}
    ones: set[int] = set()
    items = []
    for item in schedule.items:
        if isinstance(item, Call):
            item.args, item.kwargs = replace_arrays(
                (item.args, item.kwargs), lambda array: current(array, same)
            )
            if (
                item.kind == "fill"
                and item.args[1] == 1
                and changed.isdisjoint(map(id, item.out.roots))
            ):
                ones.add(id(item.out))  # not a border of ones around something
            source = _copied(item, ones)
            if (
                source is not None
                and not _used_inside(schedule.items, item.out)
                and not any(id(r) in changed for r in (*source.roots, *item.out.roots))
            ):
                same[id(item.out)] = source
                continue
        items.append(item)
    schedule.items[:] = items
    schedule.fetched = [current(a, same) for a in schedule.fetched]


def _copied(call: Call, ones: set[int]) -> Array | None:
    """What a call only copies: ``np.positive(x)``, or ``np.multiply(x, ones)``."""
    if call.into is not None:
        return None
    sources = list(call.args) if call.function is np.positive else []
    if call.function is np.multiply and not ones.isdisjoint(map(id, call.args)):
        sources = [a for a in call.args if isinstance(a, Array) and id(a) not in ones]
    like = [a for a in sources if (a.shape, a.dtype) == (call.out.shape, call.out.dtype)]
    return like[0] if like else None


def _drop_copies_inside(schedule: Schedule) -> None:
    """In a step of a loop a copy stands for its source, if neither is changed and the step keeps what it hands on."""
    changed = changed_memory(schedule.items)
    same: dict[int, Array] = {}
    for item in schedule.items:
        for body in bodies(item):
            _drop_copies_of(item, body, changed, same)
    substitute_all(schedule, same)


def _drop_copies_of(
    holder: Any, body: list[Any], changed: set[int], same: dict[int, Array]
) -> None:
    leaves = {id(r) for a in leaving(holder) for r in a.roots}
    made_here = makers_of(body).keys()
    for call in list(body):
        for inner in bodies(call):
            _drop_copies_of(call, inner, changed, same)
        if not isinstance(call, Call) or call.function is not np.positive or call.into is not None:
            continue
        (source,) = call.args
        stays = id(source) in made_here or id(call.out) not in leaves
        if stays and not any(id(r) in changed for r in (*source.roots, *call.out.roots)):
            same[id(call.out)] = source
            body.remove(call)


def _used_inside(items: list[Any], array: Array) -> bool:
    return any(
        a.shares(array) for item in items if not isinstance(item, Call) for a in item.reads()
    ) or any(isinstance(i, Call) and i.kind == "view" and i.args[0] is array for i in items)


def drop_unread(schedule: Schedule) -> None:
    """Calls whose result nobody reads, from the last to the first."""
    needed = {id(r) for a in schedule.fetched for r in (a, *a.roots)}
    items = []
    for item in reversed(schedule.items):
        if isinstance(item, Call) and not _is_needed(item, needed):
            continue
        needed.update(id(x) for a in item.touches() for x in (a, *a.roots))
        items.append(item)
    schedule.items[:] = items[::-1]


def _is_needed(call: Call, needed: set[int]) -> bool:
    if call.kind in ("store", "check"):
        return True
    if call.changed is not None:
        return call.changed.fixed or any(id(r) in needed for r in call.changed.roots)
    return any(id(a) in needed for a in arrays_in([call.out]))


def _updates_last(schedule: Schedule) -> None:
    """What only updates need comes last, in its order: then everything that may fail is done."""
    early, late = [], []
    needed = {id(r) for a in schedule.fetched for r in (a, *a.roots)}
    changed = changed_memory([i for i in schedule.items if not _is_store(i)])
    for item in reversed(schedule.items):
        if _is_store(item) or _may_wait(item, needed, changed):
            late.append(item)
        else:
            needed.update(id(x) for a in item.touches() for x in (a, *a.roots))
            early.append(item)
    schedule.items[:] = early[::-1] + late[::-1]


def _is_store(item: Any) -> bool:
    return isinstance(item, Call) and item.kind == "store" and item.args[0].fixed


def _may_wait(item: Any, needed: set[int], changed: set[int]) -> bool:
    if not isinstance(item, Call) or item.op is None or item.op.role != "optimize":
        return False
    arrays = arrays_in([item.out])
    memory = {id(r) for a in [*arrays, *item.touches()] for r in a.roots}
    return (
        item.kind in ("compute", "view")
        and memory.isdisjoint(changed)
        and needed.isdisjoint(map(id, arrays))
    )


def _store_directly(schedule: Schedule) -> None:
    """``w2 = w - step; copy w2 to w`` becomes ``w = w - step`` in place, where nobody reads either in between."""
    reads: dict[int, int] = {}
    for item in schedule.items:
        for a in item.reads():
            reads[id(a)] = reads.get(id(a), 0) + 1
    makers = {
        id(i.out): k
        for k, i in enumerate(schedule.items)
        if isinstance(i, Call) and isinstance(i.out, Array)
    }
    fetched = {id(r) for a in schedule.fetched for r in (a, *a.roots)}
    dropped = set()
    for k, item in enumerate(schedule.items):
        if not (isinstance(item, Call) and item.kind == "store"):
            continue
        state, value = item.args
        m = makers.get(id(value))
        if m is None or reads.get(id(value)) != 1 or id(value) in fetched:
            continue
        maker = schedule.items[m]
        between = schedule.items[m + 1 : k]
        own = all(a is state or not a.shares(state) for a in maker.reads())
        if (
            is_elementwise(maker)
            and maker.into is None
            and own
            and not any(a.shares(state) for i in between for a in i.reads())
        ) and (state.shape, state.dtype) == (value.shape, value.dtype):
            maker.into = state
            dropped.add(k)
    schedule.items[:] = [i for k, i in enumerate(schedule.items) if k not in dropped]
