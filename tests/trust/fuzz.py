"""What must hold for every random function; the seeded driver and Hypothesis ask the same questions."""

from __future__ import annotations

import numpy as np

from tests.trust import readings
from tests.trust.random_functions import Dual, RandomFunction, draw

EVERY = (
    32  #: source is generated for one function of so many: it takes ten times as long as the rest
)


class Mismatch(AssertionError):
    """Two readings of one function differ."""


def along(function: RandomFunction, directions: list[np.ndarray]) -> tuple[float, float]:
    """Value and slope in a direction, by dual numbers."""
    found = function(*(Dual(a, d) for a, d in zip(function.args, directions, strict=True)))
    return float(found.x), float(found.d)


def check(function: RandomFunction, seed: int = 0) -> None:
    """Eager against dual numbers, the program against eager, at times the generated source against the program.

    Raises `Mismatch`, or what an engine raises.
    """
    rng = np.random.default_rng(seed)
    value, grads = readings.eager(function, function.args)
    directions = [rng.uniform(-1, 1, a.shape) for a in function.args]
    expected, slope = along(function, directions)
    near("value", value, expected, 1e-9)
    ours = sum(float(np.sum(g * d)) for g, d in zip(grads, directions, strict=True))
    near("slope", ours, slope, 1e-8)
    prog, names = readings.with_gradients(function, function.args)
    agree("program", readings.run_program(prog, names, function.args), (value, grads), function)
    if seed % EVERY == 0:
        agree("source", readings.run_source(prog, names, function.args), (value, grads), function)


def check_seed(seed: int) -> None:
    """The function of a seed, of up to forty steps."""
    check(draw(seed, 40), seed)


def agree(
    what: str, found: readings.Found, eager: readings.Found, function: RandomFunction
) -> None:
    """The same bits where there are no blocks, else the same numbers."""
    ours, theirs = [found[0], *found[1]], [eager[0], *eager[1]]
    if function.straight:
        same_bits(ours, theirs)
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        near(f"{what} {k}", a, b, 1e-9)


def near(what: str, found: object, expected: object, tolerance: float) -> None:
    a, b = np.asarray(found), np.asarray(expected)
    if a.shape != b.shape or not np.all(np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b))):
        raise Mismatch(f"{what}: {a} is not {b}")


def same_bits(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.tobytes() != b.tobytes():
            raise Mismatch(f"result {k} differs in its last bits: {a!r} and {b!r}")
