"""Compiling: a Program goes in, one readable NumPy function that runs it comes out.

step         `static.compile`: compiled for these shapes, and called; the passes over the schedule in their order
lower        the program's kernels are traced: a schedule of NumPy calls   (tracer)
schedule     what a program comes to in calls of NumPy; what its items read and change
program_passes  a Program with fewer and simpler operators, or with larger ones
passes       the schedule with fewer and larger calls, one file each
memory       where parameters live, and which values share memory
source       the schedule as a syntax tree   (syntax)
"""

from .step import Step, compile

__all__ = ["Step", "compile"]
