"""Which known mistake an answer makes: each one is run, and compared.

A mistake is the solution with one thing wrong in it. The checker judges it as it judged the
learner's answer: where both stop at the same place with the same value, that is the mistake.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .judge import Mismatch, shown
from .solution import Mistake, Namespace, find_solution, mistakes, restored, solve


def diagnose(
    id: str, judge: Callable[..., None], failure: BaseException, namespace: Namespace | None
) -> Mistake | None:
    """The known mistake that ``judge`` refuses with the same failure, if there is one.

    Mistakes are run in the ``namespace`` of the notebook; without one nothing is tried.
    """
    cell = find_solution(id)
    if namespace is None or cell is None:
        return None
    for each in mistakes(id):
        try:
            with contextlib.redirect_stdout(io.StringIO()), restored(namespace):
                judge(*solve(cell, namespace, each))
        except Exception as error:
            if _alike(error, failure):
                return each
    return None


def _alike(one: BaseException, other: BaseException) -> bool:
    if isinstance(one, Mismatch) and isinstance(other, Mismatch):
        return one.what == other.what and _equal(one.observed, other.observed)
    texts = [shown(str(each)) for each in (one, other)]
    if isinstance(one, AttributeError):  # whose attribute Python met first is chance
        texts = [re.sub(r"^'NoneType' .*|'[\w.]+' object", "…", text) for text in texts]
    elif isinstance(one, TypeError):
        texts = [re.sub(r"'[\w.]+'", "…", text) for text in texts]
    return type(one) is type(other) and texts[0] == texts[1]


def _equal(one: Any, other: Any) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        first, second = (np.asarray(each, dtype=float) for each in (one, other))
        return first.shape == second.shape and np.allclose(first, second, 1e-9, equal_nan=True)
    return shown(one) == shown(other)
