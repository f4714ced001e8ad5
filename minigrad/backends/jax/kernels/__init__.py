"""Counterparts of kernels that cannot run on JAX as they are: they write into arrays, or look at values.

One table, type → function of the same arguments, filled family by family as in `minigrad.ops`.  Writing becomes
``x.at[...].set``; what a kernel checks about *values* is not checked here, since there are none while JAX traces.
"""

from __future__ import annotations

from . import elementwise, index, shape, windows  # noqa: F401  (they fill the table)
from .table import COUNTERPARTS

__all__ = ["COUNTERPARTS", "REFUSED"]

_ROWS = "how many rows a mask chooses is not known while JAX traces; use where instead"
REFUSED = {"select_rows": _ROWS, "spread_rows": _ROWS, "merge_rows": _ROWS}
