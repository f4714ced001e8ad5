"""Passes: functions from Program to Program, one per file; together they are the `ladder` of the compiler.

    specialise → decompose → fold → merge_duplicates → dead_code      (then a schedule and its source, see `compiler`)

Every pass works on a copy, adds its name to ``history``, and leaves a program that prints and runs.
"""

from __future__ import annotations

from .dead_code import dead_code
from .decompose import decompose
from .fold import fold
from .ladder import LADDER, climb, limited_depth
from .merge_duplicates import merge_duplicates
from .specialise import specialise

__all__ = [
    "LADDER",
    "climb",
    "dead_code",
    "decompose",
    "fold",
    "limited_depth",
    "merge_duplicates",
    "specialise",
]
