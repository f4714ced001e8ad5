"""A sum of arrays that are zero but for one piece each is put together from the pieces.

The gradient of ``x[0:2]`` is zeros with a piece at ``0:2``; where a network reads all parts of x, the sum of these
is x's gradient.  Made of n parts it would take n arrays of zeros and n additions of all elements; pieces that do not
overlap are written side by side instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..effects import bodies, is_elementwise, makers_of, written
from ..schedule import Array, Call, Schedule


def from_pieces(schedule: Schedule, exact: bool = True) -> None:
    """Rewrite such sums in the root and in bodies; ``exact`` keeps the sign of zeros as additions give it.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [4])
    ...     (g,) = static.gradients((mg.exp(x[:2]) * mg.sin(x[2:])).sum(), [x])
    >>> "fill(0" in static.compile(prog, fetch=g).source    # both pieces are written into one array
    False
    """
    uses = Counter(id(a) for item in schedule.items for a in item.touches())
    uses.update(id(a) for a in schedule.fetched)
    _in_items(schedule.items, uses, exact)


def _in_items(items: list[Any], uses: Counter[int], exact: bool) -> None:
    for item in items:
        for body in bodies(item):
            _in_items(body, uses, exact)
    block = _Block(items, uses)
    for call in block.sums if len(block.pieces) > 1 else ():
        if any(i is call for i in items):
            block.rewrite(call, exact)


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


@dataclass
class Piece:
    """An array of zeros with one piece: the calls that make it, and how the piece lies in it."""

    fill: Call
    view: Call
    copy: Call


class _Block:
    """One list of items."""

    def __init__(self, items: list[Any], uses: Counter[int]) -> None:
        self.items, self.uses = items, uses
        self.makers = makers_of(items)
        self.pieces: dict[int, Piece] = {}
        views: dict[int, Call] = {}
        for call in items:
            if isinstance(call, Call) and call.kind == "view" and isinstance(call.out, Array):
                views[id(call.out)] = call
            if isinstance(call, Call) and call.function is np.copyto and id(call.args[0]) in views:
                view = views[id(call.args[0])]
                fill = self.makers.get(id(view.args[0]))
                value = call.args[1]
                fits = isinstance(value, Array) and (value.shape, value.dtype) == _kind(view.out)
                if fits and fill is not None and fill.kind == "fill" and fill.args[1] == 0:
                    self.pieces[id(fill.out)] = Piece(fill, view, call)
        sums = [c for c in items if is_sum(c)]
        inner = {id(a) for c in sums for a in c.reads() if uses[id(a)] == 1}
        self.sums = [c for c in sums if id(c.out) not in inner]  # those that no larger sum takes in

    def terms(self, call: Call) -> tuple[list[Array], list[Call]]:
        """What is added up, and the calls that do it."""
        terms, calls, todo = [], [call], call.reads()[::-1]
        while todo:
            one = todo.pop()
            maker = self.makers.get(id(one))
            if maker is not None and is_sum(maker) and self.uses[id(one)] == 1:
                calls.append(maker)
                todo += maker.reads()[::-1]
            else:
                terms.append(one)
        return terms, calls

    def piece(self, array: Array) -> Piece | None:
        """The piece an array consists of, if nothing else reads the array."""
        found = self.pieces.get(id(array))
        return found if found is not None and self.uses[id(array)] == 2 else None  # view, sum

    def rewrite(self, call: Call, exact: bool) -> None:
        terms, sums = self.terms(call)
        pieces = [p for t in terms if (p := self.piece(t))]
        others = [t for t in terms if not self.piece(t)]
        if len(pieces) < 2 or len(others) > 1:
            return
        covered = np.zeros(call.out.shape, np.int8)
        for p in pieces:
            p.view.function(covered, *p.view.args[1:], **p.view.kwargs)[...] += 1
        if covered.max(initial=0) > 1:
            return
        made = self.start(call, others, bool(covered.all()))
        for p in pieces:
            made += self.place(p, call.out, exact, bool(others))
        gone = [*sums, *[c for p in pieces for c in (p.fill, p.view, p.copy)]]
        at = self.items.index(call)
        self.items[at : at + 1] = made
        self.items[:] = [i for i in self.items if not any(i is g for g in gone)]

    def start(self, call: Call, others: list[Array], full: bool) -> list[Call]:
        """What the pieces are put into."""
        out, op = call.out, call.op
        if others:
            return [Call("compute", "np.add", np.add, (others[0], 0.0), {}, out, op)]
        args = out.shape, None if full else 0, out.dtype
        return [Call("fill", "np.full", np.full, args, {}, out, op)]

    def place(self, p: Piece, out: Array, exact: bool, more: bool) -> list[Call]:
        """The calls that put a piece into its place."""
        view = p.view
        made = view.out
        view.args, made.roots = (out, *view.args[1:]), (out,)
        value = p.copy.args[1]
        turned = Call(view.kind, view.path, view.function, view.args, view.kwargs, made, p.copy.op)
        other = made if more else 0.0
        maker = self.makers.get(id(value))
        if not exact and not more and maker is not None and self.may_write(maker, value):
            self.items[:] = [i for i in self.items if i is not maker]
            maker.out = maker.into = made
            return [turned, maker]
        add = Call("compute", "np.add", np.add, (value, other), {}, made, p.copy.op, made)
        return [turned, add]

    def may_write(self, maker: Call, value: Array) -> bool:
        """Whether the call that makes a piece can write it where it belongs."""
        return (
            is_elementwise(maker)
            and maker.into is None
            and value.is_root
            and self.uses[id(value)] == 1
            and not self.shared(value)
            and not any(a.shares(b) for a in written(self.items) for b in maker.reads())
        )

    def shared(self, value: Array) -> bool:
        return any(a is not value and a.shares(value) for c in self.items for a in c.touches())


def _kind(array: Array) -> Any:
    return array.shape, array.dtype
