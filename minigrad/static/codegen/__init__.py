"""Code generation: a Program becomes one readable NumPy function that runs it.

lower        the program's kernels are recorded: a schedule of NumPy calls          (record, twins, names, control)
tidy         calls nobody needs go; updates come last, and into the parameters themselves
twice        equal calls are one
pieces       a sum of slices' gradients is put together
invariant    what every step of a loop computes alike comes before it
slabs        updates of many parameters become one
borders      what is zero in every run is filled once
unrolled, steps, bias   with ``exact=False``: products of all steps, and of a layer with its bias, at once    (stacks)
pooled, rates           with ``exact=False``: relu after pooling; the learning rate in the first gradient
buffers      which values share memory
source       the schedule as a syntax tree                                           (identifiers, loops, syntax)
step         compiled for these shapes, and called                                   (built)
"""

from __future__ import annotations

from .step import Step, compile

__all__ = ["Step", "compile"]
