"""Which known mistake an answer makes: each one is written down, run, and compared.

A mistake is the right answer with one thing wrong in it. The checker judges it as it judged the
learner's answer: where both stop at the same place with the same value, that is the mistake.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .judge import Mismatch, shown
from .solution import Namespace, find_solution, mutations, restored, solve
from .steps import Cell

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


def mistakes(id: str, namespace: Namespace | None = None) -> list[Mistake]:
    """The known mistakes of an exercise whose step has been loaded.

    Wrong solutions are run in the ``namespace`` of the notebook; without one they are left out.
    """
    return [*_MISTAKES.get(id, ()), *(() if namespace is None else _mutants(id, namespace))]


def _mutants(id: str, namespace: Namespace) -> Iterator[Mistake]:
    if (cell := find_solution(id)) is not None:
        for each in mutations(id):
            make = partial(_mutant, cell, namespace, each["old"], each["new"])
            yield Mistake(each["when"], each["question"], make)


def _mutant(cell: Cell, namespace: Namespace, old: str, new: str, *_: object) -> Objects:
    return solve(cell, namespace, old, new)


def diagnose(
    id: str,
    judge: Callable[..., None],
    objects: Objects,
    failure: BaseException,
    namespace: Namespace | None = None,
) -> Mistake | None:
    """The known mistake that ``judge`` refuses in the same way as these objects, if there is one."""
    for each in mistakes(id, namespace):
        try:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                restored({} if namespace is None else namespace),
            ):
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
    texts = [shown(str(each)) for each in (one, other)]
    if isinstance(one, (AttributeError, TypeError)):  # which name Python met first is chance
        texts = [re.sub(r"'[\w.]+'", "…", text) for text in texts]
    return type(one) is type(other) and texts[0] == texts[1]


def _equal(one: Any, other: Any) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        first, second = (np.asarray(each, dtype=float) for each in (one, other))
        return first.shape == second.shape and np.allclose(first, second, 1e-9, equal_nan=True)
    return shown(one) == shown(other)
