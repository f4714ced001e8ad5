"""Values are made where they are stored: ``g = x.T @ h; copy g to place`` becomes one call that writes to the place."""

from collections import Counter
from typing import Any

from ..schedule import (
    Array,
    Call,
    Schedule,
    changed_memory,
    is_elementwise,
    makers_of,
    substitute,
)


def make_in_place(schedule: Schedule) -> None:
    """Let calls write their results to where they are stored.

    A parameter changes when all else is done, so the call that makes its next value waits until
    then.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", [1.0, 2.0])
    ...     _ = mg.optim.SGD(lr=0.1).minimize((w * w).sum())
    >>> (line,) = [line for line in static.compile(prog).source.splitlines() if "subtract" in line]
    >>> line.strip().startswith("np.subtract(w, ") and line.endswith(", w)")
    True
    """
    items = schedule.items
    makers = makers_of(items)
    reads = Counter(a for item in items for a in item.reads())
    reads.update(schedule.fetched)
    moved: dict[Array, Array] = {}
    for store in [c for c in items if isinstance(c, Call) and c.kind == "store"]:
        place, value = store.args
        maker = makers.get(value)
        if maker is None or not _fits(maker, value, place):
            continue
        if not place.fixed:
            maker.into = moved[value] = place
            items.remove(store)
        elif reads[value] == 1:
            calls = _only_for(maker, makers, reads)
            if _may_wait(items, calls, store):
                maker.into = place
                items[:] = [item for item in items if item not in calls]
                k = items.index(store)
                items[k : k + 1] = calls
    for item in items:
        substitute(item, moved)
    schedule.fetched = [moved.get(a, a) for a in schedule.fetched]


def _fits(maker: Call, value: Array, place: Array) -> bool:
    """Whether a call can write its result to a place."""
    if maker.kind != "compute" or maker.into is not None or not value.is_root:
        return False
    alike = (value.shape, value.dtype) == (place.shape, place.dtype)
    apart = all(is_elementwise(maker) if a is place else not a.shares(place) for a in maker.reads())
    return alike and apart and value.like.flags.c_contiguous


def _only_for(call: Call, makers: dict[Array, Call], reads: Counter[Array]) -> list[Call]:
    """A call, behind the elementwise ones whose results nobody else reads."""
    calls = []
    for a in call.reads():
        maker = makers.get(a)
        if maker is not None and maker.into is None and reads[a] == 1 and is_elementwise(maker):
            calls += _only_for(maker, makers, reads)
    return [*calls, call]


def _may_wait(items: list[Any], calls: list[Call], store: Call) -> bool:
    """Whether calls give the same in the place of a later one."""
    first = min(map(items.index, calls))
    changed = changed_memory(items[first : items.index(store)])
    return changed.isdisjoint(r for c in calls for a in c.reads() for r in a.roots)
