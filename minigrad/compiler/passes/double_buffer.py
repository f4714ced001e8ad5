"""All parameters change in one call, or none does.

A signal such as Ctrl-C is seen between two calls of NumPy, never within one.  Plain descent on a
slab is one call already.  Where a step would write several arrays (Adam: parameters and two
moments), their next values are made in memory of their own, laid out like the block in which the
parameters live, and one copy of the whole block takes them over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..memory import STATE, in_slab_of
from ..schedule import Array, Call, Schedule


def double_buffer(schedule: Schedule) -> None:
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
    stores = [c for c in schedule.items if isinstance(c, Call) and c.kind == "store"]
    stores = [c for c in stores if c.args[0].fixed]
    if len(stores) < 2:
        return
    memory, recorder, state = schedule.memory, stores[0].args[0].recorder, schedule.state
    block = Array(recorder, memory.arrays[STATE], "all_state", fixed=True)
    beside = Array(recorder, block.like, "next_state")
    args: tuple[Any, ...] = block.shape, block.dtype
    before = [Call("slab", np.zeros, args, beside)]

    def next_of(name: str) -> Array:
        """Where the next value of a parameter, or of a slab, is made."""
        like = memory.arrays[name]
        place = Array(recorder, like, f"next_{state[name].name}", (beside,))
        args = like.shape, like.dtype, beside, memory.places[name]
        before.append(Call("view", np.ndarray, args, place))
        return place

    names = {array: name for name, array in state.items()}
    changed = [names[store.args[0]] for store in stores]
    for name, store in zip(changed, stores, strict=True):
        store.args = next_of(name), store.args[1]
    held = {n for name in changed for n in in_slab_of(name)}
    for name in (memory.parameters.keys() & memory.places.keys()) - held:
        schedule.items.append(Call("write", np.copyto, (next_of(name), state[name])))
    schedule.items.append(Call("store", np.copyto, (block, beside)))
    schedule.items[:0] = before
    state[STATE] = block
