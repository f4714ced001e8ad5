"""A check that optimizers and clips share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError, describe


def check_number(name: str, value: Any, below: float = float("inf")) -> None:
    """A real number from 0 on.  Errors: `ShapeError` that quotes it."""
    real = isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
    if not real or not 0 <= value < below:
        end = "" if below == float("inf") else f" and below {below}"
        raise ShapeError(f"{name} is {describe(value)}: give a number of at least 0{end}")
