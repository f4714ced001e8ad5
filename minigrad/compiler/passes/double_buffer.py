"""All parameters change in one call, or none does.

A signal such as Ctrl-C is seen between two calls of NumPy, never within one.  Plain descent on a
slab is one call already.  Where a step would write several arrays (Adam: parameters and two
moments), their next values are made in memory of their own, laid out like the block in which the
parameters live, and one copy of the whole block takes them over.
"""

import numpy as np

from ..memory import STATE
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
    stores = [c for c in schedule.items if c.kind == "store" and c.args[0].fixed]
    if len(stores) < 2:
        return
    recorder = stores[0].args[0].recorder
    block = Array(recorder, schedule.memory.arrays[STATE], "all_state", fixed=True)
    beside = Array(recorder, block.like, "next_state")
    before = [Call("slab", np.zeros, (block.shape, block.dtype), beside)]
    for store in stores:
        now, value = store.args
        place = Array(recorder, now.like, f"next_{now.name}", (beside,))
        begin = now.like.ctypes.data - block.like.ctypes.data
        before.append(Call("view", np.ndarray, (now.shape, now.dtype, beside, begin), place))
        store.args = place, value
    schedule.items[:] = [*before, *schedule.items, Call("store", np.copyto, (block, beside))]
    schedule.state[STATE] = block
