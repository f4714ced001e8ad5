"""Zeros around what is written in every run are written once, before the first run.

A convolution's padding, the gaps between the windows of a pooling layer: an array is filled with zeros, and a part
of it is written.  Where the same part is written in every run before anything is read, the rest stays zero.
Such an array keeps its memory to itself.  All bits stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..effects import written
from ..schedule import Array, Call, Schedule


def fill_once(schedule: Schedule) -> None:
    """Make such fills slabs: memory that is zero before the first run.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = mg.trace(lambda x: mg.conv2d(x, mg.ones([1, 1, 3, 3]), padding=1), mg.ones([1, 1, 8, 8]))
    >>> "fill(0)" in static.compile(prog, fetch=prog.outputs).source
    False
    """
    for k, call in enumerate(schedule.items):
        if is_zeros(call) and _is_written_first(call.out, schedule.items[k + 1 :]):
            call.kind, call.out.name = "slab", call.out.name or "bordered"


def is_zeros(item: Any) -> bool:
    """Whether a call makes an array of zeros, none of them negative."""
    if not isinstance(item, Call) or item.kind != "fill" or not item.out.is_root:
        return False
    value = item.args[1]
    return value is not None and np.ndim(value) == 0 and value == 0 and not np.signbit(value)


def _is_written_first(whole: Array, later: list[Any]) -> bool:
    """Whether parts of it are set, each as a whole and from other values, and read only afterwards."""
    count, is_read = 0, False
    for item in later:
        if any(a.shares(whole) for a in written([item])):
            if is_read or not _sets_a_part(item, whole):
                return False
            count += 1
        elif not (isinstance(item, Call) and item.kind == "view"):
            is_read = is_read or any(a.shares(whole) for a in item.reads())
    return count > 0


def _sets_a_part(item: Any, whole: Array) -> bool:
    """Whether all elements of a view become what other arrays say."""
    if not isinstance(item, Call) or "where" in item.kwargs:
        return False
    if item.kind == "write" and item.function is np.copyto:
        target, sources = item.args[0], item.args[1:]
    elif item.kind == "compute" and item.into is not None:
        target, sources = item.into, item.args
    else:
        return False
    own = any(isinstance(a, Array) and a.shares(whole) for a in sources)
    return len(target.roots) == 1 and not own
