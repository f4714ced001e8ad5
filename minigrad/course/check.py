"""Exercises that check themselves: one green line, or one with a red mark and a hint.

>>> @checker("0a", hint="square means times itself")
... def square_it(square):
...     same("square(3)", square(3), 9)
>>> examine("0a", lambda x: x * x)
Verdict(id='0a', passed=True, text='✓ 0a passed')
>>> print(examine("0a", lambda x: 2 * x).text)
✗ 0a: square(3) is 6, expected 9. Hint: square means times itself
"""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import CourseError

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_LONGEST = 300
_GREEN, _RED, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


class Mismatch(Exception):
    """Something came out differently than expected.

    >>> str(Mismatch("the gradient", 2.0, 3.0))
    'the gradient is 2.0, expected 3.0'
    """

    def __init__(self, what: str, observed: object, expected: object) -> None:
        super().__init__(f"{what} is {shown(observed)}, expected {shown(expected)}")
        self.what, self.observed, self.expected = what, observed, expected


@dataclass(frozen=True)
class Checker:
    """A registered checker: its function and the hint shown with a red mark."""

    function: Callable[..., None]
    hint: str


@dataclass(frozen=True)
class Verdict:
    """What a check found: one line of text, without colours."""

    id: str
    passed: bool
    text: str


_CHECKERS: dict[str, Checker] = {}


def checker(id: str, *, hint: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function ``(object, …) -> None`` as the checker of exercise ``id``.

    Raises CourseError for an id that is not a number and a letter, and for one registered twice
    by different functions.
    """
    if not re.fullmatch(r"\d{1,2}[a-z]", id):
        raise CourseError(f"{id!r} is not the id of an exercise; write the step and a letter: '3a'")

    def register(function: Callable[..., None]) -> Callable[..., None]:
        known = _CHECKERS.get(id)
        if known is not None and _origin(known.function) != _origin(function):
            raise CourseError(
                f"exercise {id} has two checkers: {_origin(known.function)} "
                f"and {_origin(function)}; rename one"
            )
        _CHECKERS[id] = Checker(function, hint)
        return function

    return register


def check(id: str, *objects: object) -> None:
    """Check the learner's own object: print one line, green or marked red, whatever it does.

    ``objects`` are the object asked for, then the learner's classes that the checker needs.

    Raises CourseError where the course has no exercise of this id.
    """
    verdict = examine(id, *objects)
    mark, colon, words = verdict.text.partition(":")  # words are read best in the page's own colour
    print(f"{_GREEN if verdict.passed else _RED}{mark}{_PLAIN}{colon}{words}")


def examine(id: str, *objects: object) -> Verdict:
    """Run the checker of an exercise on the learner's objects.

    Raises CourseError where the course has no exercise of this id.
    """
    found = find_checker(id)
    if any(each is ... for each in objects):
        return _stub(id)
    try:
        found.function(*objects)
    except NotImplementedError as error:
        if str(error) in ("", "your turn"):
            return _stub(id)
        return _failed(id, f"NotImplementedError: {error}", found.hint)
    except Mismatch as error:
        return _failed(id, str(error), found.hint)
    except (Exception, SystemExit) as error:
        return _failed(
            id, f"your code raised {type(error).__name__}: {error}{_where(error)}", found.hint
        )
    return Verdict(id, True, f"✓ {id} passed")


def find_checker(id: str) -> Checker:
    """The checker of an exercise, its step's module loaded on first use.

    Raises CourseError where there is none, with the ids that there are.
    """
    match = re.fullmatch(r"(\d{1,2})[a-z]", id)
    if id not in _CHECKERS and match:
        _load(int(match[1]))
    if id in _CHECKERS:
        return _CHECKERS[id]
    near = registered(match[1]) if match else []
    known = (
        f"step {near[0][:-1]} has {', '.join(near)}"
        if near
        else "ids are a step and a letter: '3a'"
    )
    raise CourseError(f"no exercise {id!r}; {known}")


def registered(number: str) -> list[str]:
    """Ids of the checkers that have been loaded for a step."""
    return sorted(id for id in _CHECKERS if id[:-1] == number)


def same(what: str, observed: object, expected: object) -> None:
    """Raise Mismatch unless both are equal; arrays of any shape, or anything else that compares.

    >>> same("the shape", (2, 3), (2, 3))
    """
    if isinstance(observed, np.ndarray) or isinstance(expected, np.ndarray):
        equal = np.array_equal(np.asarray(observed), np.asarray(expected))
    else:
        equal = observed is expected or bool(observed == expected)
    if not equal:
        raise Mismatch(what, observed, expected)


def close(
    what: str, observed: Any, expected: Any, *, rtol: float = 1e-7, atol: float = 1e-10
) -> None:
    """Raise Mismatch unless shapes agree, and numbers within ``atol + rtol * abs(expected)``.

    >>> close("the sum", 0.1 + 0.2, 0.3)
    """
    try:
        numbers = np.asarray(observed, dtype=float)
    except (TypeError, ValueError):
        raise Mismatch(what, observed, expected) from None
    if numbers.shape != np.shape(expected) or not np.allclose(
        numbers, expected, rtol, atol, equal_nan=True
    ):
        raise Mismatch(what, observed, expected)


def raises(what: str, kind: type[BaseException], call: Callable[[], object]) -> BaseException:
    """The exception that ``call()`` raises; Mismatch when it is of another kind or none.

    >>> type(raises("int('x')", ValueError, lambda: int("x"))).__name__
    'ValueError'
    """
    try:
        got = call()
    except kind as error:
        return error
    except NotImplementedError:
        raise
    except Exception as error:
        raise Mismatch(
            f"the error of {what}", f"{type(error).__name__}: {error}", kind.__name__
        ) from error
    raise Mismatch(f"the outcome of {what}", got, f"an error of type {kind.__name__}")


def shown(value: object) -> str:
    """A value in one short line, without addresses."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, type):
        return value.__name__
    try:
        said = value if isinstance(value, str) else repr(value)
    except Exception as error:
        said = f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    return _line(said)


def _line(text: str) -> str:
    text = " ".join(_ADDRESS.sub("0x…", text).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _stub(id: str) -> Verdict:
    """Nothing was tried yet, so there is no hint yet."""
    return Verdict(id, False, f"✗ {id}: your turn")


def _failed(id: str, reason: str, hint: str) -> Verdict:
    return Verdict(id, False, f"✗ {id}: {_line(reason).rstrip('.')}. Hint: {_line(hint)}")


def _where(error: BaseException) -> str:
    """The line that raised of the cell that called `check`, where the traceback passes through it."""
    cell = next((f.filename for f in reversed(traceback.extract_stack()) if _is_cell(f)), None)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == cell:
            return f" (line {frame.lineno} of your cell)"
    return ""


def _is_cell(frame: traceback.FrameSummary) -> bool:
    return "ipykernel" in frame.filename or frame.filename.startswith("<ipython")


def _origin(function: Callable[..., None]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _load(number: int) -> None:
    name = f"minigrad.course.checks.step{number:02d}"
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
