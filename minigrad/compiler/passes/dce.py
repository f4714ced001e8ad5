"""Calls whose result nobody reads go (dead code), and copies nobody needs (copy propagation)."""

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
    leaving,
    makers_of,
    substitute_all,
)


def drop_unneeded(schedule: Schedule) -> None:
    """Drop copies, whose source stands for them if neither is changed later on, and then what nobody reads."""
    same: dict[Array, Array] = {}
    _drop_copies(schedule.items, None, changed_memory(schedule.items), same)
    substitute_all(schedule, same)
    _drop_unread(schedule)


def _drop_copies(
    items: list[Any], holder: Any, changed: set[Array], same: dict[Array, Array]
) -> None:
    """Those in a body; a step of a loop keeps what it hands on: ``holder`` is the loop or branch."""
    leaves = {r for a in leaving(holder) for r in a.roots}
    makers = makers_of(items)
    viewed = {c.args[0] for c in makers.values() if c.kind == "view"}
    copies = set()
    for item in items:
        for body in bodies(item):
            _drop_copies(body, item, changed, same)
        source = _copied(item, same) if isinstance(item, Call) else None
        if source is None or not changed.isdisjoint((*source.roots, *item.out.roots)):
            continue
        stays = item.out in leaves and source not in makers
        if holder is None:  # views of memory that stays are made once, of what is fed in every run
            stays = item.out in viewed
        if not stays:
            same[item.out] = source
            copies.add(item)
    items[:] = [item for item in items if item not in copies]


def _copied(call: Call, same: dict[Array, Array]) -> Array | None:
    """The Array that a call only copies: ``np.positive(x)``."""
    if call.function is not np.positive or call.into is not None:
        return None
    source = current(call.args[0], same)
    return source if (source.shape, source.dtype) == (call.out.shape, call.out.dtype) else None


def _drop_unread(schedule: Schedule) -> None:
    """Calls whose result nobody reads, from the last to the first."""
    needed = {r for a in schedule.fetched for r in (a, *a.roots)}
    items = []
    for item in reversed(schedule.items):
        if isinstance(item, Call) and not _is_needed(item, needed):
            continue
        needed.update(x for a in item.touches() for x in (a, *a.roots))
        items.append(item)
    schedule.items[:] = items[::-1]


def _is_needed(call: Call, needed: set[Array]) -> bool:
    if call.kind in ("store", "check"):
        return True
    if call.changed is not None:
        return call.changed.fixed or not needed.isdisjoint(call.changed.roots)
    return not needed.isdisjoint(arrays_in([call.out]))
