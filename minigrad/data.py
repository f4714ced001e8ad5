"""Real data that comes with the package: nothing is downloaded."""
from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Labelled(NamedTuple):
    """Examples and what they show."""

    images: Array
    labels: Array


def digits() -> Labelled:
    """Handwritten digits, each with what it shows.

    Shapes: images (1797, 8, 8) with values from 0 to 1, labels (1797,) from 0 to 9.
    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
    Learning Repository, 1998 (CC BY 4.0).

    >>> images, labels = digits()
    >>> images.shape, labels.shape, float(images.max()), int(labels[0])
    ((1797, 8, 8), (1797,), 1.0, 0)
    """
    with (files("minigrad") / "datasets" / "digits.npz").open("rb") as file, \
            np.load(file, allow_pickle=False) as stored:
        return Labelled(stored["images"] / 16.0, stored["labels"].astype(np.int64))


def split(data: Labelled, *, held_back: float = 0.2, seed: int = 0) -> tuple[Labelled, Labelled]:
    """Shuffle, then divide into examples to train with and examples held back for the test.

    Errors: `ValueError` unless ``held_back`` lies between 0 and 1.

    >>> train, test = split(digits())
    >>> len(train.labels), len(test.labels)
    (1438, 359)
    """
    if not 0 < held_back < 1:
        raise ValueError(f"held_back is {held_back}: give the share to hold back, between 0 and 1")
    order = np.random.default_rng(seed).permutation(len(data.labels))
    first = round(held_back * len(order))
    test, train = order[:first], order[first:]
    return (Labelled(data.images[train], data.labels[train]),
            Labelled(data.images[test], data.labels[test]))
