"""What a checker compares with: equal, close, a table of cases, and how deep the stack is.

>>> same("square(3)", 9, 9)
>>> close("the sum", 0.1 + 0.2, 0.3)
"""

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from traceback import walk_stack
from typing import Any

import numpy as np

from ..viz.graph.format import shorten

#: What is wrong with a walk that calls itself.
RECURSION = (
    "the walk {what} is a recursion: it opens a call per {per}, "
    "and raising Python's limit only moves the end"
)


class Wrong(Exception):
    """What is wrong with an answer, in one sentence."""


class Mismatch(Wrong):
    """Something came out differently than expected.

    >>> str(Mismatch("the gradient", 2.0, 3.0))
    'the gradient is 2.0, expected 3.0'
    """

    def __init__(self, what: str, observed: Any, expected: Any) -> None:
        super().__init__(f"{what} is {shown(observed)}, expected {shown(expected)}")
        self.what, self.observed, self.expected = what, observed, expected


def require(holds: object, what: str, observed: object, expected: object) -> None:
    """Raise Mismatch, in these words, unless something holds.

    >>> require(isinstance(9, int), "the answer", 9, "a whole number")
    """
    if not holds:
        raise Mismatch(what, observed, expected)


def instance(kinds, what: str, observed, expected: str, size: int | None = None) -> None:
    """Raise Mismatch, in these words, unless something is of a kind; of a ``size`` too, if one is given.

    >>> instance(tuple | list, "the pair", (1, 2), "two numbers", 2)
    """
    fits = isinstance(observed, kinds) and (size is None or len(observed) == size)
    require(fits, what, observed, expected)


def same(what: str, observed: Any, expected: Any) -> None:
    """Raise Mismatch unless both are equal; arrays of any shape, or anything else that compares.

    >>> same("the shape", (2, 3), (2, 3))
    """
    if isinstance(observed, np.ndarray) or isinstance(expected, np.ndarray):
        equal = np.array_equal(observed, expected)
    else:
        equal = observed is expected or bool(observed == expected)
    require(equal, what, _told(observed, expected), expected)


def close(what: str, observed: Any, expected: Any) -> None:
    """Raise Mismatch unless shapes agree, and numbers within ``1e-10 + 1e-7 * abs(expected)``.

    >>> close("the sum", 0.1 + 0.2, 0.3)
    """
    require(agree(observed, expected), what, _told(observed, expected), expected)


def _told(observed, expected) -> Any:
    """A text in quotes where none is expected: '1024.0' is no number, and 'None' is not None."""
    quoted = isinstance(observed, str) and not isinstance(expected, str)
    return f"'{observed}'" if quoted else observed


def agree(observed, expected) -> bool:
    """Whether shapes agree, and numbers nearly."""
    with suppress(TypeError, ValueError):
        if np.asarray(observed).dtype.kind in "US":  # a text is no number, though float() reads it
            return False
        numbers = np.asarray(observed, dtype=float)
        if numbers.shape == np.shape(expected):
            return np.allclose(numbers, expected, 1e-7, 1e-10, equal_nan=True)
    return False


def run_cases(
    helpers: Mapping[str, Any],
    takes: list[str],
    cases: Sequence[Sequence[Any]],
    *objects: object,
) -> None:
    """Judge the learner's objects by a table; expressions are made of them, and of helpers.

    A row holds words, an expression, its value; or, where more than one value is right, words, an
    expression, what is asked for in words, a condition; or a name and the expression that it
    stands for in the rows below.  Words quote a name, and a value may be one, in braces: ``{eps}``.

    >>> run_cases({}, ["square"], [("square(3)", "square(3)", 9)], lambda x: x * x)
    """
    expected = f"{len(takes)}: {', '.join(takes)}"
    count = len(objects)
    require(count == len(takes), "the number of objects given to check", count, expected)
    names = {**helpers, **dict(zip(takes, objects, strict=True))}
    for words, expression, *wanted in cases:
        what, value = words.format_map(names), eval(expression, names)
        match wanted:
            case []:
                names[words] = value
            case [expected, condition]:
                require(eval(condition, names), what, value, expected.format_map(names))
            case [expected]:
                if isinstance(expected, str) and expected.startswith("{"):
                    expected = names[expected[1:-1]]
                numbers = np.asarray(expected).dtype.kind in "bif"
                (close if numbers else same)(what, value, expected)


def stack_depth() -> int:
    """How many calls are open: a walk that recurses is as deep as its graph.

    >>> stack_depth() < (lambda: stack_depth())()
    True
    """
    return sum(1 for _ in walk_stack(sys._getframe(1)))


def shown(value: object) -> str:
    """A value in one short line, without addresses."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, type):
        return value.__name__
    try:
        with np.printoptions(legacy="1.25"):  # 2.0 rather than np.float64(2.0)
            text = value if isinstance(value, str) else repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    return one_line(text)


def one_line(text: str, limit: int = 300) -> str:
    """Text on one line that does nothing to a terminal, without addresses, cut where it is long.

    >>> one_line("\\x1b[2Janna\\n✓ 1a")
    '␛[2Janna ✓ 1a'
    """
    return shorten(" ".join(re.sub(r"\b0x[0-9a-fA-F]+", "0x…", text).split()), limit)
