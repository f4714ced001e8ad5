"""What generated source calls besides NumPy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..static.run.limits import endless
from .passes.flat_parameters import ALIGN


def aligned_zeros(shape: Any, dtype: Any) -> Any:
    """Zeros that start at a multiple of 64 bytes, as vector instructions like it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + ALIGN, np.uint8)
    begin = -raw.ctypes.data % ALIGN
    return raw[begin : begin + size].view(dtype).reshape(shape)


@cache
def refusal(kernel: Any) -> Any:
    """A function that raises what a kernel raises on arguments it refuses."""

    def refuse(*args: Any, **attrs: Any) -> None:
        kernel(*args, **attrs)
        # never reached: the source calls this only where the kernel took the branch that raises
        raise AssertionError(f"{kernel.__name__} accepts what its source was compiled to refuse")

    return refuse


def too_many_steps(limit: int) -> None:
    """What a loop without end comes to."""
    advice = "a condition that becomes false, or static.Executor().run(…, step_limit=…)"
    raise RuntimeError(f"{endless(limit)}; repair: {advice}")
