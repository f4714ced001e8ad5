"""Sums and products over the steps of a loop, made at once: for speed, at the price of the last bits.

    products_at_once   a weight's gradient, added up step by step, is one product of all steps' values
    inputs_at_once     the product of every step's input with a weight is one product before the loop
    sums of rows       a row of ones times the matrix

One large product is faster than many small ones, and adds the same numbers in another order.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..schedule import (
    Array,
    Call,
    Loop,
    Schedule,
    arrays_in,
    bodies,
    is_elementwise,
    makers_of,
    substitute_all,
)
from .stacks import Stacks


def batch_loop_products(schedule: Schedule) -> None:
    """Apply both to every loop of the root."""
    items: list[Any] = []
    for item in schedule.items:
        if isinstance(item, Loop) and item.totals:
            products_at_once(item)
        elif isinstance(item, Loop) and item.go_on is None:
            items += inputs_at_once(item)
        items.append(item)
    schedule.items[:] = items
    for item in items:
        if isinstance(item, Call):
            _sum_by_product(item)


def _sum_by_product(call: Call) -> None:
    """A sum over rows is a row of ones times the matrix."""
    if (
        call.path == "np.add.reduce"
        and call.kwargs.get("axis", 0) == 0
        and not call.kwargs.get("keepdims")
    ):
        (rows,) = call.args
        if (
            rows.ndim == 2
            and rows.dtype.kind == "f"
            and rows.like.flags.c_contiguous
            and len(call.kwargs) <= 2
        ):
            call.path, call.function, call.kwargs = "np.dot", np.dot, {}
            call.args = (np.ones(len(rows), rows.dtype), rows)


def products_at_once(loop: Loop) -> None:
    """``total += x.T @ g`` in every step becomes one product of all x and all g, behind the loop."""
    makers = makers_of(loop.body)
    for value, total, like in list(loop.totals):
        call = makers.get(id(value))
        pair = None if call is None else factors(call, makers)
        if pair is not None and _readers(loop, value) == 1:
            loop.totals = [t for t in loop.totals if t[1] is not total]
            loop.products.append((*pair, total, like))
            loop.body = [c for c in loop.body if c is not call]
    read = {id(a) for a in loop.reads()}
    loop.body = [c for c in loop.body if not _is_unread_view(c, read)]


def _is_unread_view(item: Any, read: set[int]) -> bool:
    return (
        isinstance(item, Call)
        and item.kind == "view"
        and not any(id(a) in read for a in arrays_in([item.out]))
    )


def factors(call: Call, makers: dict[int, Call]) -> tuple[Array | None, Array] | None:
    """``(x, g)`` of ``x.T @ g``; ``(None, g)`` of a sum over the rows of g."""
    if call.function is np.matmul:
        turned, g = call.args
        view = makers.get(id(turned))
        if view is not None and view.function is np.transpose and g.ndim == turned.ndim == 2:
            return view.args[0], g
    is_sum = call.path == "np.add.reduce" and call.kwargs.get("axis", 0) == 0
    if is_sum and call.args[0].ndim == 2 and not call.kwargs.get("keepdims"):
        return None, call.args[0]
    return None


def _readers(loop: Loop, value: Array) -> int:
    return sum(a is value for a in loop.reads())


def inputs_at_once(loop: Loop) -> list[Call]:
    """The calls that come before the loop, which then cuts their result into steps."""
    cut = {id(local): seq for seq, local in loop.slices if seq.like is not None}
    own = {id(a) for a in _made(loop.body)} | {id(c[1]) for c in loop.carried}
    own |= {id(local) for _, local in loop.slices}
    before: list[Call] = []
    body: list[Any] = []
    for call in loop.body:
        sequence = _over_all_steps(call, cut, own, before) if isinstance(call, Call) else None
        if sequence is None:
            body.append(call)
            continue
        cut[id(call.out)] = sequence
        call.out.roots = (call.out, *sequence.roots)
        loop.slices.append((sequence, call.out))
    loop.body = body
    read = {id(a) for a in loop.reads_inside()}
    loop.slices = [s for k, s in enumerate(loop.slices) if k == 0 or id(s[1]) in read]
    return before


def _made(items: list[Any]) -> list[Array]:
    return [a for i in items if isinstance(i, Call) for a in arrays_in([i.out])] + [
        a for i in items if not isinstance(i, Call) for body in bodies(i) for a in _made(body)
    ]


def _over_all_steps(
    call: Call, cut: dict[int, Array], own: set[int], before: list[Call]
) -> Array | None:
    """The call on whole sequences; None if it needs something of the step."""
    arrays = arrays_in(call.args)
    if (
        not isinstance(call.out, Array)
        or not any(id(a) in cut for a in arrays)
        or any(id(a) in own and id(a) not in cut for a in arrays)
    ):
        return None
    recorder: Any = call.out.recorder
    first, sequences = call.args[0], [cut.get(id(a), a) for a in call.args]
    if call.function is np.matmul and call.into is None:
        if id(first) not in cut or id(call.args[1]) in cut or not all(a.ndim == 2 for a in arrays):
            return None
    elif not _is_plain(call) or not all(_runs_along(a, call.out, id(a) in cut) for a in arrays):
        return None
    with recorder.into(before, call.op):
        function: Any = _product if call.function is np.matmul else call.function
        return function(*sequences)  # type: ignore[no-any-return]


def _product(seq: Any, w: Any) -> Any:
    """All steps' rows times one matrix."""
    flat: Any = np.matmul(np.reshape(seq, (-1, seq.shape[-1])), w)
    return np.reshape(flat, (*seq.shape[:-1], w.shape[-1]))


def _is_plain(call: Call) -> bool:
    changed = call.into is not None or bool(call.kwargs) or bool(call.ignores)
    return is_elementwise(call) and not changed


def _runs_along(array: Array, out: Array, is_cut: bool) -> bool:
    """Whether an operand means the same with an axis for the steps in front."""
    return bool(array.shape == out.shape if is_cut else array.ndim < out.ndim)


# -- unrolled steps ----------------------------------------------------------------------

#: so many products are made one
ENOUGH = 3


def batch_unrolled_products(schedule: Schedule) -> None:
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
        with x.recorder.into(front, group[0][2].op):
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
    makers = makers_of(before)
    return all(r.fixed or id(r) in makers for r in call.args[1].roots)


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
        calls_at_once: list[Any] = []
        with end.out.recorder.into(calls_at_once, end.op):
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
        self.schedule.items[at:at] = calls_at_once
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
