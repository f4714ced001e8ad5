"""An exercise as the course knows it: its solution, its hints, and the mistakes made in it.

The solution stands in the step; hints, mistakes and simple checks stand in ``checks/stepNN.toml``.  Both run in
the learner's notebook: the solution as it is, or with one thing wrong.
"""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

from .folder import Course, shipped
from .steps import BEGIN, END, Cell

Namespace = dict[str, Any]
_WRITTEN = Path(__file__).parent / "checks"


class Mistake(NamedTuple):
    """One wrong answer that learners give: the solution, with ``new`` in place of ``old``.

    Without ``old``, ``new`` takes the place of the whole solution.
    """

    when: str  # ends the sentence "You get this when …"
    question: str
    new: str
    old: str = ""


@cache
def find_solution(id: str) -> Cell | None:
    """The cell of an exercise in the course of this package; None for an exercise of another."""
    course, number = Course(shipped()), int(id[:-1])
    cells = course.step(number).cells if number in course.paths else ()
    return next((cell for cell in cells if cell.exercise == id), None)


@cache
def written(number: int) -> dict[str, Any]:
    """What stands about the exercises of a step in its file: hints, mistakes, rows of checks."""
    path = _WRITTEN / f"step{number:02d}.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


def _of(id: str) -> Any:
    return written(int(id[:-1])).get(id, {})


def hints(id: str) -> tuple[str, ...]:
    """A question, a pointer, the answer."""
    return tuple(_of(id).get("hints", ()))


def rows(id: str, name: str = "rows") -> Any:
    """What a checker that is a function goes through, where that stands in a table of this name."""
    return _of(id)[name]


@cache
def mistakes(id: str) -> tuple[Mistake, ...]:
    """The known mistakes of an exercise."""
    return tuple(Mistake(**each) for each in _of(id).get("mistakes", ()))


def is_engine(id: str) -> bool:
    """Whether an exercise asks for a part of the engine.

    The notebook goes on with the learner's version when its check passes, and with the solution
    when it does not.
    """
    cell = find_solution(id)
    return cell is not None and "engine" in cell.tags


def solve(cell: Cell, namespace: Namespace, mistake: Mistake | None = None) -> tuple[Any, ...]:
    """Run a solution in a namespace; return what its last line hands to `check`.

    Raises ValueError where the solution does not hold what the mistake changes.
    """
    source = cell.source
    if mistake and mistake.old:
        if mistake.old not in source:
            raise ValueError(f"the solution of {cell.exercise} does not contain {mistake.old!r}")
        source = source.replace(mistake.old, mistake.new, 1)
    elif mistake:
        whole, new = rf"(?s)( *){BEGIN}\n.*?\n *{END}", mistake.new.strip("\n")
        source = re.sub(whole, lambda found: indent(new, found[1]), source, count=1)
    definitions, _, handed = source.rpartition("\ncheck(")
    exec(compile(definitions, f"solution {cell.exercise}", "exec"), namespace)
    objects = eval(f"check({handed}", {**namespace, "check": lambda _, *objects: objects})
    return tuple(objects)


@contextmanager
def restored(namespace: Namespace) -> Iterator[None]:
    """Take back what is defined meanwhile: names, and what stands in dictionaries and classes."""
    values = [*namespace.values(), namespace]
    tables = [(each, dict(each)) for each in values if isinstance(each, dict)]
    types = [each for each in values if isinstance(each, type)]
    here = namespace.get("__name__")
    classes = [(each, dict(vars(each))) for each in types if each.__module__ == here]
    try:
        yield
    finally:
        for table, content in tables:
            for name in table.keys() - content:  # never empty: what goes may still ask for names
                del table[name]
            for name, value in content.items():
                if table.get(name, content) is not value:
                    table[name] = value
        for each, attributes in classes:
            for name, value in attributes.items():
                if vars(each).get(name) is not value:
                    setattr(each, name, value)
