"""What kinds of input the samples of a record contain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opinfo import Sample


def flat(args: Any) -> list[Any]:
    """The values of a sample, those in lists too."""
    found = []
    for a in args:
        found += flat(a) if isinstance(a, list | tuple) else [a]
    return found


def arrays(sample: Sample) -> list[np.ndarray]:
    return [a for a in flat(sample.args) if isinstance(a, np.ndarray)]


def some(fits: Callable[[np.ndarray], bool]) -> Callable[[Sample], bool]:
    return lambda sample: any(fits(a) for a in arrays(sample))


def pairs(sample: Sample) -> list[tuple[np.ndarray, np.ndarray]]:
    found = arrays(sample)
    return [(a, b) for k, a in enumerate(found) for b in found[k + 1 :]]


def both_stretched(a: np.ndarray, b: np.ndarray) -> bool:
    """Each of the two is repeated along some axis of the other."""
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return shape not in (a.shape, b.shape)


FEATURES: dict[str, Callable[[Sample], bool]] = {
    "0-d": some(lambda a: a.ndim == 0),
    "empty": some(lambda a: a.size == 0),
    "stretched on both sides": lambda s: any(both_stretched(a, b) for a, b in pairs(s)),
    "different ranks": lambda s: any(a.ndim != b.ndim for a, b in pairs(s)),
    "not contiguous": some(
        lambda a: not (a.flags.c_contiguous or a.flags.f_contiguous) and min(a.strides) > 0
    ),
    "negative strides": some(lambda a: min(a.strides, default=0) < 0),
    "read-only": some(lambda a: not a.flags.writeable),
    "Fortran order": some(lambda a: a.flags.f_contiguous and not a.flags.c_contiguous),
    "float32": some(lambda a: a.dtype == np.float32),
    "the same object twice": lambda s: len({id(a) for a in arrays(s)}) < len(arrays(s)),
    "a Python number": lambda s: any(type(a) in (int, float, bool) for a in flat(s.args)),
}
