"""Values that are joined are made where they belong: no copy is needed to bring them together.

``np.concatenate((a * b, c * d))`` becomes two products, each of which writes its part of the result.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..effects import is_elementwise, makers_of, part_of
from ..schedule import Call, Schedule
from .stack_alike import ARITHMETIC


def join_in_place(schedule: Schedule, exact: bool) -> None:
    """Rewrite such joins of the root; with ``exact`` only where it cannot change a bit.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = mg.trace(lambda x: mg.concat([x * 2.0, x + 1.0], axis=1), mg.ones([2, 3]))
    >>> "concatenate" in static.compile(prog, fetch=prog.outputs).source
    False
    """
    uses = Counter(id(a) for item in schedule.items for a in item.touches())
    uses.update(id(a) for a in schedule.fetched)
    makers = makers_of(schedule.items)
    for join in [c for c in schedule.items if isinstance(c, Call) and c.function is np.concatenate]:
        parts = join.args[0]
        calls = [makers.get(id(p)) for p in parts]
        own = all(uses[id(p)] == 1 and p.is_root for p in parts)
        if (
            own
            and join.into is None
            and all(c and _may_write_elsewhere(c, join, exact) for c in calls)
        ):
            _rewrite(schedule, join, [c for c in calls if c])


def _may_write_elsewhere(call: Call, join: Call, exact: bool) -> bool:
    plain = is_elementwise(call) and call.into is None and not call.kwargs
    return plain and call.out.dtype == join.out.dtype and (call.function in ARITHMETIC or not exact)


def _rewrite(schedule: Schedule, join: Call, calls: list[Call]) -> None:
    whole, axis = join.out, (join.kwargs.get("axis") or 0) % join.out.ndim
    shape = whole.shape, None, whole.dtype
    made = [Call("fill", "np.full", np.full, shape, {}, whole, calls[0].op)]
    start = 0
    for call in calls:
        stop = start + call.out.shape[axis]
        index = (*[slice(None)] * axis, slice(start, stop))
        view = part_of(whole, index, call.out.name)
        made.append(view)
        call.out, call.into, start = view.out, view.out, stop
    first = min(schedule.items.index(c) for c in calls)
    schedule.items.remove(join)
    schedule.items[first:first] = made
