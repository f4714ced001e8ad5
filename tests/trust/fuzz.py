"""What must hold for every random function; the seeded driver and Hypothesis ask the same questions."""

from __future__ import annotations

import warnings

import numpy as np

from tests.trust import readings
from tests.trust.random_functions import Dual, RandomFunction, draw


class Mismatch(AssertionError):
    """Two readings of one function differ."""


def along(function: RandomFunction, directions: list[np.ndarray]) -> tuple[float, float]:
    """Value and slope in a direction, by dual numbers."""
    found = function(*(Dual(a, d) for a, d in zip(function.args, directions, strict=True)))
    return float(found.x), float(found.d)


def check(function: RandomFunction, seed: int = 0) -> None:
    """Eager against dual numbers, the program against eager.  Raises `Mismatch`, or what an engine raises."""
    rng = np.random.default_rng(seed)
    value, grads = readings.eager(function, function.args)
    directions = [rng.uniform(-1, 1, a.shape) for a in function.args]
    expected, slope = along(function, directions)
    near("value", value, expected, 1e-9)
    ours = sum(float(np.sum(g * d)) for g, d in zip(grads, directions, strict=True))
    near("slope", ours, slope, 1e-8)
    program_value, program_grads = readings.interpreted(function, function.args)
    if function.straight:
        same_bits([value, *grads], [program_value, *program_grads])
    for k, (a, b) in enumerate(zip([value, *grads], [program_value, *program_grads], strict=True)):
        near(f"program {k}", b, a, 1e-9)


def near(what: str, found: object, expected: object, tolerance: float) -> None:
    a, b = np.asarray(found), np.asarray(expected)
    if a.shape != b.shape or not np.all(np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b))):
        raise Mismatch(f"{what}: {a} is not {b}")


def same_bits(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.tobytes() != b.tobytes():
            raise Mismatch(f"result {k} differs in its last bits: {a!r} and {b!r}")


def fuzz(first: int, count: int, steps: int = 12) -> int | None:
    """The first seed whose function fails, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            try:
                check(draw(seed, steps), seed)
            except Exception:
                return seed
    return None
