"""Samples made from those of a record: the same values in other layouts, and the edge cases its reference accepts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tests.opinfo import LAYOUTS, Record, Sample
from tests.ops.features import FEATURES, arrays


def complete(records: Iterable[Record]) -> None:
    """Add a sample for every kind of input that a record has not got and its reference accepts."""
    for record in records:
        for name, has in FEATURES.items():
            if not any(has(s) for s in record.samples):
                record.samples += first_fitting(record, name)


#: the edge cases of these must fit something else that is given, or are refused where NumPy makes a vector
FIXED = (
    *("conv_transpose2d", "max_unpool", "max_pick", "tie_share", "mean_square_slope", "crop"),
    *("cumsum", "cumprod"),
)
EDGES = ("0-d", "empty", "a Python number", "the same object twice")


def consistent(record: Record, name: str, sample: Sample) -> bool:
    """Whether a change of the shapes leaves a sample that means something."""
    return name not in EDGES or (record.type not in FIXED and "shape" not in sample.attrs)


def first_fitting(record: Record, name: str) -> list[Sample]:
    """The first change of a sample that gives the wanted kind; none if there is none."""
    for sample in sorted(
        record.samples, key=lambda s: -max((a.ndim for a in arrays(s)), default=0)
    ):
        for changed in CHANGES.get(name, _layouts)(sample):
            fits = FEATURES[name](changed) and consistent(record, name, changed)
            if fits and accepted(record, changed):
                return [changed]
    return []


def accepted(record: Record, sample: Sample) -> bool:
    """Whether the reference computes it without a warning."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            record.reference(*sample.args, **sample.attrs)
    except Exception:
        return False
    return True


def mapped(sample: Sample, change: Callable[[np.ndarray], Any]) -> Sample:
    """The sample with every array changed, in lists too; what was one object stays one."""
    done: dict[int, Any] = {}

    def each(a: Any) -> Any:
        if isinstance(a, list | tuple):
            return type(a)(each(v) for v in a)
        if isinstance(a, np.ndarray):
            return done.setdefault(id(a), change(a))
        return a

    return Sample(tuple(each(a) for a in sample.args), sample.attrs)


def _layouts(sample: Sample) -> Iterator[Sample]:
    for layout in LAYOUTS:
        yield mapped(sample, lambda a, f=layout: f(a) if a.ndim else a)


def _float32(sample: Sample) -> Iterator[Sample]:
    yield mapped(sample, lambda a: a.astype(np.float32) if a.dtype.kind == "f" else a)


def _empty(sample: Sample) -> Iterator[Sample]:
    if all(a.ndim for a in arrays(sample)):
        yield mapped(sample, lambda a: a[:0])
        yield mapped(sample, lambda a: a[..., :0])


def _one_element(sample: Sample, make: Callable[[np.ndarray], Any]) -> Iterator[Sample]:
    (first, *rest) = sample.args or (None,)
    if isinstance(first, np.ndarray) and first.dtype.kind == "f" and first.size and not rest:
        yield Sample((make(first.reshape(-1)[:1]),), sample.attrs)


def _one_object(sample: Sample) -> Iterator[Sample]:
    floats = [
        k for k, a in enumerate(sample.args) if isinstance(a, np.ndarray) and a.dtype.kind == "f"
    ]
    for i in floats:
        for j in floats:
            if i < j:
                args = list(sample.args)
                args[j] = args[i]
                yield Sample(tuple(args), sample.attrs)


CHANGES: dict[str, Callable[[Sample], Iterator[Sample]]] = {
    "float32": _float32,
    "empty": _empty,
    "0-d": lambda s: _one_element(s, lambda a: np.array(a[0])),
    "a Python number": lambda s: _one_element(s, lambda a: float(a[0])),
    "the same object twice": _one_object,
    "stretched on both sides": lambda s: iter(()),
    "different ranks": lambda s: iter(()),
}
