"""Real data that comes with the package: nothing is downloaded."""

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import describe, refusal, unmasked
from .errors.calls import check_functions
from .errors.other_libraries import TABLES, missing

__all__ = [
    "Alphabet", "DataLoader", "Labelled", "Windows",
    "digits", "names", "progress", "sonnets", "split", "windows",
]  # fmt: skip

Array = npt.NDArray[Any]
DATASETS = files("minigrad") / "datasets"


class Labelled(NamedTuple):
    """Examples and what they show.

    >>> Labelled(np.zeros((2, 8, 8)), np.array([3, 5])).labels.tolist()
    [3, 5]
    """

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
    with (DATASETS / "digits.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return Labelled(stored["images"] / 16.0, stored["labels"].astype(np.int64))


def split(data: Labelled, *, held_back: float = 0.2, seed: int = 0) -> tuple[Labelled, Labelled]:
    """Shuffle, then divide into examples to train with and examples held back for the test.

    Errors: `ValueError` unless ``held_back`` lies between 0 and 1.

    >>> train, test = split(digits())
    >>> len(train.labels), len(test.labels)
    (1438, 359)
    """
    if not 0 < held_back < 1:
        raise refusal(
            f"held_back is {held_back}: give the share to hold back, between 0 and 1",
            "split(data, held_back=0.2)",
        )
    order = np.random.default_rng(seed).permutation(len(data.labels))
    first = round(held_back * len(order))
    train, test = (
        Labelled(data.images[part], data.labels[part]) for part in (order[first:], order[:first])
    )
    return train, test


# -- text ----------------------------------------------------------------------------------------


def sonnets() -> str:
    """Six sonnets by William Shakespeare, 1609, in the public domain.

    >>> sonnets().splitlines()[0], len(sonnets().split("\\n\\n"))
    ("Shall I compare thee to a summer's day?", 6)
    """
    return (DATASETS / "sonnets.txt").read_text(encoding="utf-8")


def names() -> list[str]:
    """Two thousand first names of the census of the United States of 1990, in small letters.

    Source: U.S. Census Bureau, Frequently Occurring First Names, 1995, in the public domain.

    >>> len(names()), names()[:3]
    (2000, ['aaron', 'abbie', 'abby'])
    """
    return (DATASETS / "names.txt").read_text(encoding="utf-8").split()


class Alphabet:
    """The characters of a text, numbered in their order.

    >>> alphabet = Alphabet("banana")
    >>> len(alphabet), alphabet.encode("nab"), alphabet.decode([2, 0, 1])
    (3, array([2, 0, 1]), 'nab')
    """

    def __init__(self, text: str) -> None:
        self.characters = "".join(sorted(set(text)))
        self.numbers = {c: k for k, c in enumerate(self.characters)}

    def encode(self, text: str) -> Array:
        """The number of every character.  Errors: `ShapeError` for a character it does not have."""
        for c in text:
            if c not in self.numbers:
                raise refusal(
                    f"{c!r} is not among the characters {self.characters!r}",
                    "an Alphabet of a text that has it",
                )
        return np.array([self.numbers[c] for c in text], np.int64)

    def decode(self, numbers: Iterable[int]) -> str:
        """The characters of some numbers."""
        return "".join(self.characters[int(k)] for k in numbers)

    def __len__(self) -> int:
        return len(self.characters)


class Windows(NamedTuple):
    """Pieces of a sequence, and the same pieces one place further: what comes next.

    >>> windows(np.arange(4), 2).following.tolist()
    [[1, 2], [2, 3]]
    """

    given: Array
    following: Array


def windows(sequence: Array, length: int, every: int = 1) -> Windows:
    """All pieces of a length, one every ``every`` places: two arrays [pieces, length].

    >>> given, following = windows(np.arange(6), 3, every=2)
    >>> given.tolist(), following.tolist()
    ([[0, 1, 2], [2, 3, 4]], [[1, 2, 3], [3, 4, 5]])
    """
    if not 0 < length < len(sequence) or every < 1:
        raise refusal(
            f"windows(length={length}, every={every}) of a sequence of {len(sequence)}",
            f"the length must be from 1 to {len(sequence) - 1}, every at least 1",
        )
    pieces = np.lib.stride_tricks.sliding_window_view(sequence, length + 1)[::every]
    return Windows(pieces[:, :-1].copy(), pieces[:, 1:].copy())


# -- batches -------------------------------------------------------------------------------------


class DataLoader:
    """Batches of arrays of equal length, in a new order for every pass; the seed decides the orders.

    ``data``: an array, or several (`digits()`, a tuple): then a batch is a tuple.

    >>> loader = DataLoader((np.arange(5), np.arange(5) * 10), batch_size=2, shuffle=False)
    >>> [(x.tolist(), y.tolist()) for x, y in loader]
    [([0, 1], [0, 10]), ([2, 3], [20, 30]), ([4], [40])]
    """

    def __init__(
        self,
        data: Array | Sequence[Array],
        batch_size: int = 32,
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        self.single = isinstance(data, np.ndarray) or hasattr(data, "_data")
        parts = [data] if self.single else list(data)
        # parts that are names, or examples of two things
        odd = isinstance(data, dict) or (tuple in map(type, parts) and not isinstance(data, tuple))
        self.arrays = [np.asarray(getattr(unmasked(a), "_data", a)) for a in parts if not odd]
        lengths = {a.shape[:1] for a in self.arrays}
        if len(lengths) != 1 or () in lengths:
            shown = ", ".join(map(describe, self.arrays)) or describe(data)
            advice = "one axis 0 for all: DataLoader((images, labels))"
            added = "; of a dictionary (*data.values(),), of pairs (*map(np.array, zip(*data)),)"
            raise refusal(
                f"DataLoader takes arrays with equally many examples, not {shown}",
                advice + added * odd,
            )
        if not isinstance(batch_size, int | np.integer) or batch_size < 1:
            raise refusal(
                f"batch_size is {describe(batch_size)}: give a whole number above 0",
                "DataLoader((images, labels), batch_size=32)",
            )
        self.batch_size = int(batch_size)
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.seed = seed
        self.passes = 0

    def __len__(self) -> int:
        """The number of batches of a pass."""
        whole, rest = divmod(len(self.arrays[0]), self.batch_size)
        return whole + bool(rest and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        order = np.arange(len(self.arrays[0]))
        if self.shuffle:
            np.random.default_rng((self.seed, self.passes)).shuffle(order)
        self.passes += 1
        for k in range(len(self)):
            chosen = order[k * self.batch_size : (k + 1) * self.batch_size]
            batch = tuple(a[chosen] for a in self.arrays)
            yield batch[0] if self.single else batch

    def forever(self) -> Iterator[Any]:
        """Batch after batch, pass after pass."""
        if not len(self):
            batches = f"{len(self.arrays[0])} examples in batches of {self.batch_size}"
            raise refusal(
                f"a pass has no batch: {batches}, drop_last={self.drop_last}",
                "a smaller batch_size, or drop_last=False",
            )
        while True:
            yield from self


def progress(steps: Iterable[Any], words: str = "") -> Iterable[Any]:
    """The same steps, with a progress bar on the screen where tqdm is installed.

    >>> list(progress(range(0)))
    []
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return steps
    # only on a terminal
    return tqdm(steps, desc=words or None, disable=None)  # type: ignore[no-any-return]


check_functions(globals(), __all__)


def __getattr__(name: str) -> Any:
    raise missing("module 'minigrad.data'", name, TABLES["data"], None, "data", __all__)
