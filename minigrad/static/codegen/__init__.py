"""Code generation: a Program becomes one readable NumPy function that runs it.

lower        the program's kernels are recorded: a schedule of NumPy calls
passes       the schedule with fewer and larger calls, one file each: `built.scheduled` has them in order,
             docs/design.md says what each does and whether sums keep their order
buffers      which values share memory
source       the schedule as a syntax tree
step         compiled for these shapes, and called
"""

from __future__ import annotations

from .step import Step, compile

__all__ = ["Step", "compile"]
