"""Tensor arrays: values by number, written and read in loops.

An array is a Variable whose first axis counts its places; writing gives a new array, as everything in a program does,
so that a loop carries it like any other value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import ProgramError, refusal
from ...ops.index import getitem, setitem
from ...primitives.registry import REGISTRY
from .program import Variable, default_program


def create_array(capacity: int, shape: Iterable[int] = (), dtype: Any = "float64") -> Variable:
    """An array of ``capacity`` places, zeros of this shape.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     squares = static.create_array(4)
    ...     _, squares = static.while_loop(
    ...         lambda i, a: i < 4, lambda i, a: (i + 1, static.array_write(a, i, i * i * 1.0)), [0, squares])
    >>> static.Executor().run(prog, fetch_list=[squares])
    [array([0., 1., 4., 9.])]
    """
    sizes = (capacity, *shape)
    if not all(isinstance(n, int) and n >= 0 for n in sizes):
        what = f"create_array needs known sizes, not {list(sizes)}"
        raise refusal(what, "static.create_array(4, [3]): four values of shape [3]", ProgramError)
    attrs = {"shape": sizes, "dtype": np.dtype(dtype).name}
    block = default_program().current_block()
    made: Variable = block.append_primitive(REGISTRY["fill_constant"], (), attrs)
    return made


def array_write(array: Variable, index: Any, value: Any) -> Variable:
    """The array with ``value`` at a place.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     squares = static.array_write(static.create_array(3), 1, 4.0)
    >>> static.Executor().run(prog, fetch_list=[squares])
    [array([0., 4., 0.])]
    """
    return setitem(array, value, index)  # type: ignore[no-any-return]


def array_read(array: Variable, index: Any) -> Variable:
    """What stands at a place.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     place = static.array_read(static.array_write(static.create_array(3), 1, 4.0), 1)
    >>> static.Executor().run(prog, fetch_list=[place])
    [array(4.)]
    """
    return getitem(array, index)  # type: ignore[no-any-return]


def array_length(array: Variable) -> int:
    """The number of places.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     static.array_length(static.create_array(3))
    3
    """
    return len(array)
