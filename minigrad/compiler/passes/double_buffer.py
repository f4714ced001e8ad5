"""All parameters change in one call, or none does.

A signal such as Ctrl-C is seen between two calls of NumPy, never within one.  Plain descent on a slab is one call
already.  Where a step would write several arrays (Adam: parameters and two moments), their next values are made in
memory of their own, laid out like the block in which the parameters live, and one copy of the whole block takes them
over.
"""

from __future__ import annotations

import numpy as np

from ..memory import STATE, Memory, slab_name
from ..schedule import Array, Call, Schedule, substitute_all


def double_buffer(schedule: Schedule, memory: Memory) -> None:
    """Let one call be the last one, and the only one that writes into a parameter.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", [1.0, 2.0])
    ...     _ = mg.optim.SGD(lr=0.1, momentum=0.9).minimize((w * w).sum())
    >>> [line.strip() for line in static.compile(prog).source.splitlines() if "state" in line][-1]
    'np.copyto(all_state, next_state)'
    """
    changes = [
        c
        for c in schedule.items
        if isinstance(c, Call) and c.changed is not None and c.changed.fixed
    ]
    if len(changes) > 1:
        _Commit(schedule, memory).run(changes)


class _Commit:
    """One schedule whose updates are made beside the parameters first."""

    def __init__(self, schedule: Schedule, memory: Memory) -> None:
        self.schedule, self.memory = schedule, memory
        self.recorder = next(iter(schedule.state.values())).recorder
        like = memory.arrays[STATE]
        self.block = Array(self.recorder, like, "all_state", fixed=True)
        self.beside = Array(self.recorder, like, "next_state")
        schedule.state[STATE] = self.block
        self.before: list[Call] = []
        self.nexts: dict[str, Array] = {}
        self.moved: dict[int, Array] = {}  # id of a new value → its place beside

    def run(self, changes: list[Call]) -> None:
        args = self.block.shape, self.block.dtype
        self.before.append(Call("slab", "np.zeros", np.zeros, args, {}, self.beside))
        makers = {id(i.out): i for i in self.schedule.items if isinstance(i, Call)}
        for call in changes:
            target = call.changed
            beside = self.next(next(n for n, a in self.schedule.state.items() if a is target))
            if call.kind != "store":
                call.into = beside
            elif self.may_move(makers.get(id(call.args[1])), call.args[1], beside):
                maker = makers[id(call.args[1])]
                maker.into, self.moved[id(maker.out)] = beside, beside
                self.schedule.items.remove(call)
            else:
                call.kind, call.args = "write", (beside, call.args[1])
        self.keep_others()
        self.schedule.items[:0] = self.before
        substitute_all(self.schedule, self.moved)
        both = self.block, self.beside
        self.schedule.items.append(Call("store", "np.copyto", np.copyto, both, {}, None))

    def may_move(self, maker: Call | None, value: Array, beside: Array) -> bool:
        """Whether the call that makes a new value can make it beside the parameters."""
        own = maker is not None and maker.kind == "compute" and maker.into is None
        fits = (value.shape, value.dtype) == (beside.shape, beside.dtype)
        return own and fits and value.is_root and value.like.flags.c_contiguous

    def next(self, name: str) -> Array:
        """Where the next value of a parameter, or of a slab, is made."""
        if name not in self.nexts:
            like = self.memory.arrays[name]
            place = Array(self.recorder, like, f"next_{self.schedule.state[name].name}")
            place.roots = (self.beside,)
            args = like.shape, like.dtype, self.beside, self.memory.places[name]
            self.before.append(Call("view", "np.ndarray", np.ndarray, args, {}, place))
            self.nexts[name] = place
        return self.nexts[name]

    def keep_others(self) -> None:
        """What this step does not change stays as it is."""
        held = {n for names in self.memory.slabs if slab_name(names) in self.nexts for n in names}
        for name in self.memory.parameters.keys() & self.memory.places.keys():
            if name not in held and name not in self.nexts:
                args = self.next(name), self.schedule.state[name]
                self.schedule.items.append(Call("write", "np.copyto", np.copyto, args, {}, None))
