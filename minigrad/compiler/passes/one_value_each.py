"""Every value has an Array of its own: what is computed in place is named anew, and later passes may move it."""

from __future__ import annotations

from typing import Any

from ..schedule import Array, Call, Schedule, arrays_in, bodies, current, is_elementwise, substitute


def one_value_each(schedule: Schedule) -> None:
    """``np.exp(e, e)`` becomes ``f = np.exp(e)`` where no view looks at ``e``; `memory.Plan` undoes it."""
    same: dict[int, Array] = {}
    _rename(schedule.items, same)
    schedule.fetched = [current(a, same) for a in schedule.fetched]


def _rename(items: list[Any], same: dict[int, Array]) -> None:
    results = [a for item in items for a in arrays_in([getattr(item, "out", None)])]
    ids = set(map(id, results))
    viewed = {id(r) for a in results for r in a.roots if r is not a}
    for item in items:
        substitute(item, same)
        for body in bodies(item):
            _rename(body, same)
            substitute(item, same, deep=False)  # what the body hands on
        old = item.into if isinstance(item, Call) else None
        if old is None or not is_elementwise(item) or not old.is_root or id(old) in viewed:
            continue
        plain = all(a.like is not None and a.like.flags.c_contiguous for a in [old, *item.reads()])
        if plain and old.ndim and old.dtype.kind in "fiu" and id(old) in ids:
            item.out, item.into = Array(old.recorder, old.like, old.name), None
            same[id(old)] = item.out
            ids.add(id(item.out))
