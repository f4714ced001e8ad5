"""Code generation: a Program becomes one readable NumPy function that runs it.

lower        the program's kernels are recorded: a schedule of NumPy calls          (record, twins, names, control)
tidy, slabs  calls nobody needs go; updates of many parameters become one
buffers      which values share memory
source       the schedule as a syntax tree                                           (identifiers, loops, syntax)
step         compiled for these shapes, and called
"""

from __future__ import annotations

from .step import Step, compile

__all__ = ["Step", "compile"]
