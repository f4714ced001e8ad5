"""Calls whose result nobody reads go (dead code)."""

from ..schedule import Call, Schedule, arrays_in


def drop_unneeded(schedule: Schedule) -> None:
    """Drop calls whose result nobody reads, from the last to the first."""
    read = [*schedule.fetched, *schedule.state.values()]
    items = []
    needed = {r for a in read for r in (a, *a.roots)}
    for item in reversed(schedule.items):
        if isinstance(item, Call) and item.kind != "check":
            made = arrays_in(item.out) if item.changed is None else item.changed.roots
            if needed.isdisjoint(made):
                continue
        needed.update(r for a in item.touches() for r in (a, *a.roots))
        items.append(item)
    schedule.items[:] = items[::-1]
