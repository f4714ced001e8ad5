"""Steps written one after the other: sums and products over all of them, made at once.

    inputs_of_all_steps   ``x[0] @ w``, ``x[1] @ w``, … are one product of all rows of x
    sums_of_products      ``x0.T @ g0 + x1.T @ g1 + …``, the gradient of a weight that every step uses, is one product

What `rolled` does for loops, for a network that was unrolled: with other last bits, hence for ``exact=False``.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..effects import makers_of
from ..schedule import Array, Call, Schedule, substitute_all
from ..stacks import Stacks, recorded
from .loop_products import factors

#: so many products are made one
ENOUGH = 3


def unrolled_at_once(schedule: Schedule) -> None:
    """Apply both to the root.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x, w, h = static.data("x", [4, 5, 2]), static.data("w", [2, 2]), static.data("h", [5, 2])
    ...     for k in range(4):
    ...         h = mg.tanh(x[k] @ w) * h
    >>> [static.compile(prog, fetch=h, exact=exact).source.count("np.dot") for exact in (True, False)]
    [4, 1]
    """
    inputs_of_all_steps(schedule)
    sums_of_products(schedule)


def inputs_of_all_steps(schedule: Schedule) -> None:
    """One product in front of all."""
    stacks, groups = Stacks(schedule), {}  # type: ignore[var-annotated]
    for k, call in enumerate(schedule.items):
        if isinstance(call, Call) and call.function is np.matmul and call.into is None:
            x, w = call.args
            at = stacks.at(x) if isinstance(x, Array) and isinstance(w, Array) else None
            if at is not None and x.ndim == w.ndim == 2 and not (at[0].shares(w)):
                groups.setdefault((id(at[0]), id(w)), []).append((at[1], k, call))
    same: dict[int, Array] = {}
    fronts: dict[int, list[Any]] = {}
    for group in groups.values():
        first = min(k for _, k, _ in group)
        front: list[Any] = []
        if len(group) < ENOUGH or not _is_early(group[0][2], schedule.items[:first]):
            continue
        group.sort()
        x, w = group[0][2].args
        whole = stacks.at(x)[0]  # type: ignore[index]
        with recorded(x.recorder, front, group[0][2].op):
            low, high = group[0][0], group[-1][0] + 1
            some = whole if high - low == len(whole) else whole[low:high]
            flat: Any = np.matmul(np.reshape(some, (-1, x.shape[-1])), w)
            product = np.reshape(flat, (high - low, x.shape[0], w.shape[-1]))
            for place, _, call in group:
                same[id(call.out)] = product[place - low]
        fronts.setdefault(first, []).extend(front)
    gone = {id(c) for g in groups.values() for *_, c in g if id(c.out) in same}
    _rebuild(schedule, fronts, gone, same)


def _is_early(call: Call, before: list[Any]) -> bool:
    """Whether a call's weight is there already."""
    made = makers_of(before)
    return all(r.fixed or id(r) in made for r in call.args[1].roots)


def sums_of_products(schedule: Schedule) -> None:
    """One product behind all."""
    sums = _Sums(schedule)
    for k, terms in sorted(sums.found.items(), key=lambda found: -len(found[1])):
        sums.replace(k, terms)
    sums.stacks.done()
    _rebuild(schedule, {}, sums.gone, sums.same)


class _Sums:
    """Chains of additions, and what they come to."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.stacks = schedule, Stacks(schedule)
        self.makers = self.stacks.makers
        self.uses = Counter(id(a) for item in schedule.items for a in item.touches())
        self.uses.update(id(a) for a in schedule.fetched)
        self.gone: set[int] = set()
        self.same: dict[int, Array] = {}
        inner = {
            id(a)
            for c in schedule.items
            if is_sum(c)
            for a in c.reads()
            if is_sum(self.makers.get(id(a))) and self.uses[id(a)] == 1
        }
        self.found = {
            id(c): self.terms(c.out) for c in schedule.items if is_sum(c) and id(c.out) not in inner
        }

    def terms(self, array: Array) -> list[Array]:
        """What is added up, from the last to the first; the sum's own Array comes apart in any case."""
        out, todo = [], self.makers[id(array)].reads()
        while todo:
            one = todo.pop()
            maker = self.makers.get(id(one))
            if maker is not None and is_sum(maker) and self.uses[id(one)] == 1:
                todo += maker.reads()
            else:
                out.append(one)
        return out

    def replace(self, key: int, terms: list[Array]) -> None:
        end = next(c for c in self.schedule.items if id(c) == key)
        calls = [(t, self.makers.get(id(t))) for t in terms]
        pairs = {
            id(t): f
            for t, c in calls
            if c and self.uses[id(t)] == 1 and (f := factors(c, self.makers))
        }
        if len(pairs) < ENOUGH or len({(x is None, g.shape) for x, g in pairs.values()}) > 1:
            return
        rows = self.stacks.order(list(pairs.values()))
        made: list[Any] = []
        with recorded(end.out.recorder, made, end.op):
            g = self.stacks.rows([g for _, g in rows])
            xs = [x for x, _ in rows if x is not None]
            x = self.stacks.rows(xs) if xs else None
            if g is None or (xs and x is None):
                return
            total: Any = np.add.reduce(g, axis=0) if x is None else np.matmul(np.transpose(x), g)
            for t in terms:
                if id(t) not in pairs:
                    total = np.add(total, t)
        self.same[id(end.out)] = total
        at = self.schedule.items.index(end)
        self.schedule.items[at:at] = made
        self.gone.add(id(end))
        self.gone.update(id(c) for t, c in calls if id(t) in pairs)


def is_sum(call: Any) -> bool:
    """Whether a call adds arrays of one shape and dtype, or hands one on."""
    return (
        isinstance(call, Call)
        and call.into is None
        and call.function in (np.add, np.positive)
        and call.out.dtype.kind == "f"
        and all(
            isinstance(a, Array) and (a.shape, a.dtype) == (call.out.shape, call.out.dtype)
            for a in call.args
        )
    )


def _rebuild(
    schedule: Schedule, fronts: dict[int, list[Any]], gone: set[int], same: dict[int, Array]
) -> None:
    items: list[Any] = []
    for k, item in enumerate(schedule.items):
        items += fronts.get(k, [])
        if id(item) not in gone:
            items.append(item)
    schedule.items[:] = items
    substitute_all(schedule, same)
