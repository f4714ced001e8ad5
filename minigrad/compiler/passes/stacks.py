"""Stacks: values of one shape that are made side by side in one array, so that one call can use them all."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..schedule import Array, Call, Schedule, makers_of, part_of, substitute_all

#: one in so many values may be copied into a stack
FEW = 4


class Stacks:
    """The stacks of one schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.makers = makers_of(schedule.items)
        self.views = {
            id(c.out): c
            for c in schedule.items
            if isinstance(c, Call) and c.kind == "view" and c.function is operator.getitem
        }
        self.place: dict[int, tuple[Array, int]] = {}  # id of an Array → its stack, its place there
        self.moved: dict[int, Array] = {}
        self.before: list[Call] = []

    def at(self, array: Array) -> tuple[Array, int] | None:
        """Where an Array lies among others of its shape: in a stack, or as ``x[k]`` in x."""
        if id(array) in self.place:
            return self.place[id(array)]
        view = self.views.get(id(array))
        if view is None:
            return None
        whole, index = view.args
        k = index[0] if isinstance(index, tuple) and len(index) == 1 else index
        plain = type(k) is int and whole.dtype == array.dtype and whole.shape[1:] == array.shape
        return (whole, k % whole.shape[0]) if plain and whole.like.flags.c_contiguous else None

    def order(self, rows: list[tuple[Array | None, Array]]) -> list[tuple[Array | None, Array]]:
        """Pairs in the order in which one column lies in memory already, if there is one."""
        for column in (1, 0):
            places = [p for r in rows if (a := r[column]) is not None and (p := self.at(a))]
            if len(places) == len(rows) and len({id(w) for w, _ in places}) == 1:
                ranks = [k for _, k in places]
                return [rows[i] for i in sorted(range(len(rows)), key=lambda i: ranks[i])]
        return rows

    def rows(self, arrays: list[Array]) -> Array | None:
        """All the rows of matrices, one below the other; None where they cannot be brought together."""
        if len({(a.shape, a.dtype, a.ndim) for a in arrays}) > 1 or arrays[0].ndim != 2:
            return None
        if self.consecutive(arrays) is None and not self.stackable(arrays, FEW):
            return None
        matrix: Any = np.reshape(self.whole(arrays), (-1, arrays[0].shape[-1]))
        return matrix  # type: ignore[no-any-return]

    def stackable(self, arrays: list[Array], few: int = 0) -> bool:
        """Whether they can be put side by side; ``few``: one in so many may be copied there."""
        copies = sum(not self.movable(a) for a in arrays)
        return len(set(map(id, arrays))) == len(arrays) and copies * (
            few or len(arrays) + 1
        ) <= len(arrays)

    def whole(self, arrays: list[Array]) -> Array:
        """One array of them all, where they lie side by side or can be put so."""
        whole, start = self.consecutive(arrays) or (self.stack(arrays), 0)
        part: Any = whole if len(arrays) == len(whole) else whole[start : start + len(arrays)]
        return part  # type: ignore[no-any-return]

    def consecutive(self, arrays: list[Array]) -> tuple[Array, int] | None:
        places = [p for a in arrays if (p := self.at(a))]
        if len(places) < len(arrays):
            return None
        (whole, start), count = places[0], len(arrays)
        along = [(id(whole), start + k) for k in range(count)]
        return (whole, start) if [(id(w), k) for w, k in places] == along else None

    def movable(self, array: Array) -> bool:
        """Whether the call that makes an Array can put it elsewhere."""
        maker = self.makers.get(id(array))
        return (
            maker is not None
            and maker.kind in ("compute", "fill")
            and maker.into is None
            and array.is_root
            and array.like.flags.c_contiguous
            and id(array) not in self.place
        )

    def stack(self, arrays: list[Array]) -> Array:
        """Let these be made side by side; what comes from elsewhere (a first state that is fed) is copied there."""
        first = arrays[0]
        like = np.empty((len(arrays), *first.shape), first.dtype)
        whole = Array(first.recorder, like, f"every_{first.name or 'value'}")
        args = (whole.shape, whole.dtype)
        self.before.append(Call("slab", "np.zeros", np.zeros, args, {}, whole))
        for k, array in enumerate(arrays):
            view = part_of(whole, k, array.name)
            self.before.append(view)
            member = view.out
            self.place[id(member)] = whole, k
            if not self.movable(array):
                place: Any = member
                np.copyto(place, array)
                continue
            maker = self.makers[id(array)]
            maker.out, maker.into = member, member
            self.moved[id(array)] = member
            self.place[id(array)] = whole, k
        return whole

    def done(self) -> None:
        """Let the schedule read the Arrays where they are now."""
        self.schedule.items[:0] = self.before
        substitute_all(self.schedule, self.moved)
