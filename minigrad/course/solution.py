"""The solution of an exercise, run in the learner's notebook: as it is, or with one thing wrong.

An exercise tagged ``engine`` asks for a part of the engine itself. The notebook goes on with the
learner's version when its check passes, and with the solution when it does not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from .folder import Course, shipped
from .steps import Cell

Namespace = dict[str, Any]
_WRITTEN = Path(__file__).parent / "checks"


@cache
def find_solution(id: str) -> Cell | None:
    """The cell of an exercise in the course of this package; None for an exercise of another."""
    course = Course(shipped())
    cells = course.step(int(id[:-1])).cells if int(id[:-1]) in course.paths else ()
    return next((cell for cell in cells if cell.exercise == id), None)


@cache
def mutations(id: str) -> tuple[dict[str, str], ...]:
    """Wrong solutions: the text ``old`` becomes ``new``; ``when`` and ``question`` as in Mistake."""
    path = _WRITTEN / f"step{int(id[:-1]):02d}.toml"
    return tuple(tomllib.loads(path.read_text("utf-8")).get(id, ())) if path.exists() else ()


def is_engine(id: str) -> bool:
    """Whether an exercise asks for a part of the engine."""
    cell = find_solution(id)
    return cell is not None and "engine" in cell.tags


def solve(cell: Cell, namespace: Namespace, old: str = "", new: str = "") -> tuple[Any, ...]:
    """Run a solution in a namespace; return what its last line hands to `check`."""
    definitions, _, handed = cell.source.rpartition("\ncheck(")
    if old not in definitions:
        raise ValueError(f"the solution of {cell.exercise} does not contain {old!r}")
    exec(compile(definitions.replace(old, new, 1), f"solution {cell.exercise}", "exec"), namespace)
    objects = eval(f"check({handed}", {**namespace, "check": lambda _, *objects: objects})
    return tuple(objects)


@contextmanager
def restored(namespace: Namespace) -> Iterator[None]:
    """Take back what is defined meanwhile."""
    before = dict(namespace)
    try:
        yield
    finally:
        for name in set(namespace) - set(before):
            del namespace[name]
        namespace.update(before)
