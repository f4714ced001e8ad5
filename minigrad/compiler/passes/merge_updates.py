"""Updates of many parameters as one.

An optimizer does the same few elementwise calls for every parameter.  Where the calls differ in their arrays only, they
are made once, on the slabs:  ``np.multiply(rate, gradients); np.subtract(parameters, gradients)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..memory import alike, in_slab, slab_name
from ..schedule import Array, Call, Schedule, is_elementwise, makers_of, part_of, substitute


def merge_updates(schedule: Schedule, slabs: list[list[str]]) -> None:
    """Let updates that lie in slabs run on the slabs."""
    known = {tuple(names): names for names in slabs}
    held = {name for names in slabs for name in names}
    for run in _runs(_sequences(schedule.items), held):
        _Merging(schedule, run, known).run()


def _sequences(items: list[Any]) -> list[list[Any]]:
    """The items, operator by operator."""
    out: list[list[Any]] = []
    for item in items:
        if out and out[-1][0].op is item.op:
            out[-1].append(item)
        else:
            out.append([item])
    return out


def _runs(sequences: list[list[Any]], held: set[str]) -> list[list[list[Call]]]:
    """Neighbouring updates of what is ``held`` in slabs that make the same calls."""
    runs: list[list[list[Call]]] = []
    for calls in sequences:
        op = calls[0].op
        if (
            op is None
            or op.role != "optimize"
            or op.output_names[0] not in held  # clipping, say: its results are read one by one
            or not all(isinstance(c, Call) and is_elementwise(c) for c in calls)
        ):
            runs.append([])
        elif runs and runs[-1] and alike(runs[-1][0][0].op, op) and _same_calls(runs[-1][0], calls):
            runs[-1].append(calls)
        else:
            runs.append([calls])
    return [r for r in runs if len(r) > 1]


def _same_calls(a: list[Call], b: list[Call]) -> bool:
    return len(a) == len(b) and all(
        x.path == y.path
        and len(x.args) == len(y.args)
        and not x.kwargs
        and not y.kwargs
        and (x.into is None) == (y.into is None)
        for x, y in zip(a, b, strict=True)
    )


def _is_store(item: Any) -> bool:
    return isinstance(item, Call) and item.kind == "store"


class _Mismatch(Exception):
    """These updates do not fit together."""


class _Merging:
    """One run of updates that becomes one update."""

    def __init__(
        self, schedule: Schedule, run: list[list[Call]], slabs: dict[tuple[str, ...], list[str]]
    ) -> None:
        self.schedule, self.updates, self.slabs = schedule, run, slabs
        self.recorder = run[0][0].out.recorder
        self.shapes = [calls[-1].out.shape for calls in run]
        self.dtype = run[0][-1].out.dtype
        self.length, self.places = in_slab(self.dtype, self.shapes)
        self.merged: dict[tuple[int, ...], Any] = {}
        self.before: list[Call] = []
        self.gradients: list[tuple[list[Array], list[Array]]] = []
        self.gone: set[int] = set()  # ids of calls that another one does as well
        self.moved: dict[int, Array] = {}  # id of a gradient → its place in the slab

    def run(self) -> None:
        columns = list(zip(*self.updates, strict=True))
        try:
            stores = self.stores(columns)
            calls = [self.one(column) for column in columns]
            for column, copies in stores:
                self.store(column, copies)
        except _Mismatch:
            return
        items = self.schedule.items
        first = next(k for k, item in enumerate(items) if item is self.updates[0][0])
        count = sum(map(len, self.updates))
        items[first : first + count] = calls
        makers = makers_of(items)
        for arrays, members in self.gradients:
            for array, member in zip(arrays, members, strict=True):
                self.move(makers.get(id(array)), array, member, first)
        items[:] = [*self.before, *[i for i in items if id(i) not in self.gone]]
        for item in items:
            substitute(item, self.moved)
        self.schedule.fetched = [self.moved.get(id(a), a) for a in self.schedule.fetched]

    def stores(self, columns: list[tuple[Call, ...]]) -> list[tuple[tuple[Call, ...], list[Call]]]:
        """What is remembered: a column of values, and the copy of each into its state.

        Anything else that reads a value of one update keeps the updates apart.
        """
        place = {id(c.out): (k, i) for k, col in enumerate(columns) for i, c in enumerate(col)}
        own = {id(c) for column in columns for c in column}
        copies_of: dict[int, dict[int, Call]] = {}
        if any(id(r) in place for a in self.schedule.fetched for r in a.roots):
            raise _Mismatch
        for item in self.schedule.items:
            used = [place[id(r)] for a in item.reads() for r in a.roots if id(r) in place]
            if id(item) in own or not used:
                continue
            k, i = used[0]
            if len(used) > 1 or not _is_store(item) or i in copies_of.get(k, {}):
                raise _Mismatch
            copies_of.setdefault(k, {})[i] = item
        if any(len(copies) < len(self.updates) for copies in copies_of.values()):
            raise _Mismatch
        return [(columns[k], [f[i] for i in range(len(f))]) for k, f in copies_of.items()]

    def store(self, column: tuple[Call, ...], copies: list[Call]) -> None:
        """Let the last copy be one of the whole slab."""
        state = self.state(tuple(c.args[0] for c in copies))
        last = max(copies, key=self.schedule.items.index)
        last.args = state, self.merged[tuple(id(c.out) for c in column)]
        self.gone |= {id(c) for c in copies if c is not last}

    def one(self, column: tuple[Call, ...]) -> Call:
        """The call on slabs that stands for one call of every update."""
        first = column[0]
        args = tuple(
            self.argument(values) for values in zip(*[c.args for c in column], strict=True)
        )
        out = self.slab()
        self.merged[tuple(id(c.out) for c in column)] = out
        into = None if first.into is None else self.argument(tuple(c.into for c in column))
        if first.into is not None:
            self.merged[tuple(id(c.out) for c in column)] = into
        return Call(
            "compute", first.path, first.function, args, {}, out, first.op, into, first.ignores
        )

    def slab(self, name: str = "") -> Array:
        return Array(self.recorder, np.empty(self.length, self.dtype), name)

    def argument(self, values: tuple[Any, ...]) -> Any:
        """One argument in all updates: the same in each, or one array of each slab."""
        first = values[0]
        if not isinstance(first, Array):
            if all(type(v) is type(first) and v == first for v in values):
                return first
            raise _Mismatch
        key = tuple(id(v) for v in values)
        if key in self.merged:
            return self.merged[key]
        if all(v is first for v in values) and first.shape == ():
            return first
        if any(
            not isinstance(v, Array) or v.shape != s or v.dtype != self.dtype
            for v, s in zip(values, self.shapes, strict=True)
        ):
            raise _Mismatch
        merged = self.state(values) if first.fixed else self.gradient(list(values))
        self.merged[key] = merged
        return merged

    def state(self, values: tuple[Array, ...]) -> Array:
        names = tuple(v.name for v in values)
        if names not in self.slabs or not all(v.fixed for v in values):
            raise _Mismatch
        key = slab_name(list(names))
        if key not in self.schedule.state:
            op: Any = self.updates[0][0].op
            slot = next((s for s, held in op.outputs.items() if names[0] in held), "param_out")
            slab = self.slab(f"all_{op.type if slot == 'param_out' else slot.removesuffix('_out')}")
            slab.fixed = True
            self.schedule.state[key] = slab
        return self.schedule.state[key]

    def gradient(self, values: list[Array]) -> Array:
        """A slab for values made on the way."""
        if len({id(v) for v in values}) < len(values) or any(v.fixed for v in values):
            raise _Mismatch
        whole = self.slab("gradients")
        self.before.append(
            Call("slab", "np.zeros", np.zeros, (whole.shape, whole.dtype), {}, whole)
        )
        members = []
        for value, (start, stop) in zip(values, self.places, strict=True):
            view = part_of(whole, slice(start, stop), value.name)
            self.before.append(view)
            flat = view.out
            if len(value.shape) != 1:
                shaped = Array(self.recorder, flat.like.reshape(value.shape), value.name, (whole,))
                self.before.append(
                    Call("view", "np.reshape", np.reshape, (flat, value.shape), {}, shaped)
                )
                flat = shaped
            members.append(flat)
        self.gradients.append((values, members))
        return whole

    def readers(self) -> list[Array]:
        return [a for item in self.schedule.items for a in item.reads()] + self.schedule.fetched

    def move(self, maker: Call | None, array: Array, member: Array, first: int) -> None:
        """Let a gradient be made in its slab; copy it there if it is made by other means."""
        others = any(a is not array and a.shares(array) for a in self.readers())
        if (
            maker is not None
            and maker.kind == "compute"
            and maker.into is None
            and array.is_root
            and not others
        ):
            maker.into = member
            array.roots = member.roots
            self.schedule.same[id(array)] = self.moved[id(array)] = member
        else:
            op, args = maker.op if maker else None, (array,)
            copy = Call("compute", "np.positive", np.positive, args, {}, member, op, member)
            self.schedule.items.insert(first, copy)
