"""Which known mistake an answer makes: each one is written down, run, and compared.

A mistake is the right answer with one thing wrong in it. The checker judges it as it judged the
learner's answer: where both stop at the same place with the same value, that is the mistake.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .judge import Mismatch, shown

Objects = tuple[Any, ...]


@dataclass(frozen=True)
class Mistake:
    """One wrong answer that learners give."""

    when: str  # ends the sentence "You get this when …"
    question: str  # the first hint; what follows are the hints of the exercise
    make: Callable[..., Objects]


_MISTAKES: dict[str, list[Mistake]] = {}


def mistake(
    id: str, when: str, question: str
) -> Callable[[Callable[..., Objects]], Callable[..., Objects]]:
    """Register a function as a mistake in exercise ``id``.

    The function gets what the learner gave to `check`, and returns it with the answer replaced.
    """

    def register(make: Callable[..., Objects]) -> Callable[..., Objects]:
        known = _MISTAKES.setdefault(id, [])
        known[:] = [each for each in known if each.when != when]
        known.append(Mistake(when, question, make))
        return make

    return register


def mistakes(id: str) -> list[Mistake]:
    """The known mistakes of an exercise whose step has been loaded."""
    return list(_MISTAKES.get(id, ()))


def diagnose(
    id: str, judge: Callable[..., None], objects: Objects, failure: BaseException
) -> Mistake | None:
    """The known mistake that ``judge`` refuses in the same way as these objects, if there is one."""
    for each in _MISTAKES.get(id, ()):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                judge(*each.make(*objects))
        except Exception as error:
            if _alike(error, failure):
                return each
    return None


def variant(cls: type, **methods: Callable[..., Any]) -> type:
    """A class with some methods replaced, under the same name."""
    return type(cls.__name__, (cls,), methods)


def _alike(one: BaseException, other: BaseException) -> bool:
    if isinstance(one, Mismatch) and isinstance(other, Mismatch):
        return one.what == other.what and _equal(one.observed, other.observed)
    return type(one) is type(other) and shown(str(one)) == shown(str(other))


def _equal(one: Any, other: Any) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        first, second = (np.asarray(each, dtype=float) for each in (one, other))
        return first.shape == second.shape and np.allclose(first, second, 1e-9, equal_nan=True)
    return shown(one) == shown(other)
