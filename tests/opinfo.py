"""Op records: what every primitive must do, said without using it.

A record holds a NumPy reference, sample inputs, inputs that must fail, the domain, and whether the
op is holomorphic (then its derivative is known to the last digits by a complex step).  The tests in
``tests/ops`` read this table; one asserts that it has a record for every registered primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minigrad.errors import DTypeError, ShapeError
from minigrad.primitives.registry import REGISTRY

RECORDS: dict[str, Record] = {}


@dataclass(frozen=True)
class Sample:
    """One call: positional inputs (arrays and numbers) and attrs."""

    args: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """One call that must fail, with the type and a part of the message."""

    args: tuple[Any, ...]
    attrs: dict[str, Any]
    error: type[Exception]
    message: str


@dataclass
class Record:
    """What is known about a primitive."""

    type: str
    reference: Callable[..., Any]
    samples: list[Sample]
    failures: list[Failure]
    holomorphic: bool = False
    domain: str = "all numbers"
    second: bool = True  # whether second derivatives are checked by differences
    rtol: float = 1e-12
    float32: float = 1e-5

    @property
    def primitive(self) -> Any:
        return REGISTRY[self.type]


def record(
    type: str,
    reference: Callable[..., Any],
    samples: Iterable[Sample],
    failures: Iterable[Failure] = (),
    **facts: Any,
) -> None:
    """Enter a record; the two failures that every op shares are added."""
    assert type not in RECORDS, type
    samples = list(samples)
    attrs = samples[0].attrs
    shared = [Failure(samples[0].args, {**attrs, "nonsense": 1}, TypeError, "nonsense")]
    RECORDS[type] = Record(type, reference, samples, [*failures, *shared], **facts)


def fails(error: type[Exception], message: str, *args: Any, **attrs: Any) -> Failure:
    return Failure(args, attrs, error, message)


def ragged(**attrs: Any) -> Failure:
    return fails(ShapeError, "rows of a list must be equally long", [[1.0], [1.0, 2.0]], **attrs)


RAGGED = fails(ShapeError, "rows of a list must be equally long", [[1.0], [1.0, 2.0]])
TEXT = fails(DTypeError, "pass Tensors, arrays or numbers", "text")


def s(*args: Any, **attrs: Any) -> Sample:
    return Sample(args, attrs)


# -- numbers -------------------------------------------------------------------------------

_rng = np.random.default_rng(20)


def draw(*shape: int, low: float = -2.0, high: float = 2.0, gap: float = 0.0) -> np.ndarray:
    """Numbers between two bounds, all different by far, none nearer to 0 than ``gap``."""
    n = int(np.prod(shape))
    grid = low + (high - low) * (np.arange(n) + 0.5) / max(n, 1)
    grid = grid + _rng.uniform(-0.2, 0.2, n) * (high - low) / max(n, 1)
    if gap:
        grid = np.where(np.abs(grid) < gap, np.copysign(gap, grid), grid)
    return np.asarray(_rng.permutation(grid).reshape(shape))


def strided(a: np.ndarray) -> np.ndarray:
    """The same numbers, every second place of a larger memory."""
    big = np.full((*a.shape[:-1], 2 * a.shape[-1]), 99, a.dtype)
    big[..., ::2] = a
    return big[..., ::2]


def backwards(a: np.ndarray) -> np.ndarray:
    """The same numbers with negative strides."""
    return np.flip(np.ascontiguousarray(np.flip(a)))


def readonly(a: np.ndarray) -> np.ndarray:
    b = a.copy()
    b.flags.writeable = False
    return b


def fortran(a: np.ndarray) -> np.ndarray:
    return np.asfortranarray(a)


def f32(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float32)


LAYOUTS = (np.array, f32, strided, backwards, readonly, fortran)

# -- families of samples -------------------------------------------------------------------


def unary(low: float = -2.0, high: float = 2.0, gap: float = 0.0, **attrs: Any) -> list[Sample]:
    """Any shape goes: 0-d, empty, every layout, float32, a Python number."""

    def d(*shape: int) -> np.ndarray:
        return draw(*shape, low=low, high=high, gap=gap)

    arrays = [d(), d(0, 3), d(4), d(2, 1, 3), *(layout(d(2, 3)) for layout in LAYOUTS), f32(d())]
    number = float(d(1)[0])
    return [*(s(a, **attrs) for a in arrays), s(number, **attrs)]


def binary(
    left: tuple[float, float] = (-2.0, 2.0),
    right: tuple[float, float] = (-2.0, 2.0),
    gap: float = 0.0,
    **attrs: Any,
) -> list[Sample]:
    """Broadcasting in both directions, different ranks, layouts, the same object twice, numbers."""

    def a(*shape: int) -> np.ndarray:
        return draw(*shape, low=left[0], high=left[1], gap=gap)

    def b(*shape: int) -> np.ndarray:
        return draw(*shape, low=right[0], high=right[1], gap=gap)

    low, high = max(left[0], right[0]), min(left[1], right[1])
    same = draw(2, 3, low=low, high=high, gap=gap)
    pairs: list[tuple[Any, Any]] = [
        (a(), b()),
        (a(3), b()),
        (a(2, 1, 3), b(4, 1)),
        (a(3), b(2, 3)),
        (a(1, 1), b(2, 2)),
        (a(0, 3), b(3)),
        (a(2, 3), b(0, 1, 3)),
        (strided(a(2, 3)), backwards(b(2, 3))),
        (readonly(a(2, 3)), fortran(b(2, 3))),
        (f32(a(2, 3)), f32(b(3))),
        (f32(a(3)), float(b(1)[0])),
        (float(a(1)[0]), b(2, 2)),
        (f32(a(2)), b(2)),
        (a(2, 2), float(b(1)[0])),
        (same, same),
    ]
    return [s(x, y, **attrs) for x, y in pairs]


def shaped(
    shape: tuple[int, ...],
    *attrs: dict[str, Any],
    low: float = -2.0,
    high: float = 2.0,
    gap: float = 0.0,
    more: Iterable[Sample] = (),
) -> list[Sample]:
    """One shape in every layout, the attrs taken in turn; then each set of attrs once more."""
    sets = list(attrs) or [{}]
    arrays = [layout(draw(*shape, low=low, high=high, gap=gap)) for layout in LAYOUTS]
    found = [s(a, **sets[k % len(sets)]) for k, a in enumerate(arrays)]
    found += [s(draw(*shape, low=low, high=high, gap=gap), **x) for x in sets]
    found += [
        s(draw(*shape, low=low, high=high, gap=gap), **sets[0]) for _ in range(8 - len(found))
    ]
    return [*found, *more]
