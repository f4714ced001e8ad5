"""Calls whose result nobody reads go (dead code)."""

from ..schedule import Array, Call, Schedule, arrays_in


def drop_unneeded(schedule: Schedule) -> None:
    """Drop calls whose result nobody reads, from the last to the first."""
    needed = {r for a in schedule.fetched for r in (a, *a.roots)}
    items = []
    for item in reversed(schedule.items):
        if not isinstance(item, Call) or item.kind == "check" or _is_needed(item, needed):
            needed.update(x for a in item.touches() for x in (a, *a.roots))
            items.append(item)
    schedule.items[:] = items[::-1]


def _is_needed(call: Call, needed: set[Array]) -> bool:
    changed = call.changed
    if changed is None:
        return not needed.isdisjoint(arrays_in([call.out]))
    return changed.fixed or not needed.isdisjoint(changed.roots)
