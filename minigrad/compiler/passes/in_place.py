"""Values are made where they are stored: ``g = x.T @ h; copy g to place`` becomes one call that writes to the place."""

from collections import Counter

from ..schedule import (
    Array,
    Call,
    Schedule,
    arrays_in,
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
    reads = Counter(arrays_in((items, schedule.fetched)))
    moved: dict[Array, Array] = {}
    for store in [c for c in items if c.kind == "store"]:
        place, value = store.args
        maker = makers.get(value)
        if maker is None or not _fits(maker, value, place):
            continue
        if not place.fixed:
            maker.into = moved[value] = place
            items.remove(store)
        elif reads[value] == 1:
            calls = _only_for(maker, makers, reads)
            own = {*calls}
            end = items.index(store)
            begin = next(k for k, item in enumerate(items) if item in own)
            between = [item for item in items[begin:end] if item not in own]
            read = {r for c in calls for a in c.reads() for r in a.roots}
            if changed_memory(between).isdisjoint(read):
                maker.into = place
                items[begin : end + 1] = [*between, *calls]
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
    waiting = [call]
    while waiting:
        calls.append(waiting.pop())
        for a in calls[-1].reads():
            maker = makers.get(a)
            if maker is not None and maker.into is None and reads[a] == 1 and is_elementwise(maker):
                waiting.append(maker)
    return calls[::-1]
