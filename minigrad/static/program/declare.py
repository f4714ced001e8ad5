"""What a program is declared to have: data that is fed, parameters that are trained, limits of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import ProgramError, describe, refusal
from .program import default_program
from .variable import Variable


def data(name: str, shape: Iterable[int | None], dtype: Any = np.float64) -> Variable:
    """A variable that is fed; a size of -1 (or None) is any size.  Errors: `ProgramError`.

    >>> from minigrad import static
    >>> with static.program_guard(static.Program()):
    ...     static.data("x", [-1, 3])
    Variable(x: float64[-1, 3])
    """
    if not isinstance(shape, Iterable):
        what = f"data {name!r}: the shape is a list of sizes, not {describe(shape)}"
        raise refusal(what, f"static.data({name!r}, [-1, 3])", ProgramError)
    sizes = tuple(-1 if n is None else n for n in shape)
    for n in sizes:
        if not isinstance(n, int | np.integer) or n < -1:
            what = f"data {name!r}: a size is -1 (any) or at least 0, not {n!r}"
            raise refusal(what, f"static.data({name!r}, [-1, 3])", ProgramError)
    try:
        known = np.dtype(dtype)
    except TypeError:
        known = np.dtype(object)
    if known.kind not in "fiub":
        what = (
            f"data {name!r}: a program computes with numbers and truth values, not with {dtype!r}"
        )
        raise refusal(what, "dtype='float64', 'float32', 'int64' or 'bool'", ProgramError)
    program = default_program()
    return program.global_block().create_var(
        name, map(int, sizes), known, is_data=True, derived_stop=True
    )


def parameter(name: str, init: Any, trainable: bool = True) -> Variable:
    """A persistable variable that training changes; ``init`` is its start value (array or Tensor).

    Errors: `ProgramError` for anything but real numbers, and for a name that is taken.

    >>> from minigrad import static
    >>> with static.program_guard(static.Program()):
    ...     static.parameter("w", [[1.0, 2.0]])
    Variable(w: float64[1, 2])
    """
    array = np.array(getattr(init, "_data", init))
    if array.dtype.kind in "iu":
        array = array.astype(float)
    if array.dtype.kind != "f":
        what = f"parameter {name!r} needs real numbers, not {describe(array)}"
        raise refusal(what, "an array, a Tensor or lists of numbers", ProgramError)
    return default_program().add_persistable(name, array, trainable)


def error_clip(variable: Variable, min: float, max: float) -> None:
    """Keep the gradient of a Variable between two numbers, from the moment it is produced.

    To be called before append_backward, which puts a ``clip`` in place right behind the operator that completes the
    gradient.  Errors: `ProgramError` unless ``min <= max``.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", 3.0); h = w * w
    ...     static.error_clip(h, -0.5, 0.5)
    ...     pairs = static.append_backward(h * 10.0)
    >>> static.Executor().run(prog, fetch_list=["w@GRAD"])
    [array(3.)]
    """
    if not isinstance(variable, Variable):
        what = f"error_clip takes a Variable, not {describe(variable)}"
        raise refusal(what, "static.error_clip(h, -1.0, 1.0)", ProgramError)
    if not min <= max:
        what = f"error_clip needs min <= max, not {min} and {max}"
        raise refusal(what, f"static.error_clip({variable.name}, -1.0, 1.0)", ProgramError)
    variable.program.error_clips[variable.name] = (float(min), float(max))
