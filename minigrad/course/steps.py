"""Literate steps: find them, read them, and say file and line where one is malformed.

A step is a Python file in jupytext's percent format.  Cells that are active in the notebook only
are commented out in the file: importing it defines classes and functions and does nothing else.  A cell
tagged ``engine`` is a part of the engine and an exercise at once: its check alone is commented out.
"""

import ast
import importlib.util
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

#: Tags a cell may carry, besides the id of an exercise (``ex-3a``).
TAGS = {
    "active-ipynb", "carried", "engine", "exercise", "folded", "growth", "interactive", "mistake",
    "picture-F", "picture-B", "raises-exception", "steps", "varies",
}  # fmt: skip
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"

_MARKER = re.compile(r"# %%(?P<kind> \[markdown\])?(?P<title>[^=\[]*?)(\s+tags=(?P<tags>.*))?\s*$")
_EXERCISE = re.compile(r"ex-(\d{1,2}[a-z])")
FILE = re.compile(r"step(\d{2})_\w+\.py")


class CourseError(Exception):
    """A fault in the source of the course, or a request it cannot meet.

    >>> print(CourseError("unknown tag 'exercice'", Path("steps/step03.py"), 12))
    steps/step03.py:12: unknown tag 'exercice'
    """

    def __init__(self, message: str, path: Path | None = None, line: int | None = None) -> None:
        if path:
            near = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            message = f"{near}:{line}: {message}" if line else f"{near}: {message}"
        super().__init__(message)
        self.path, self.line = path, line


def need(module: str, purpose: str, extra: str = "course") -> None:
    """Raise CourseError, with advice, where a module is not installed."""
    if importlib.util.find_spec(module) is None:
        more = f"uv run --extra {extra} …, or beside an installed minigrad pip install 'minigrad[{extra}]'"
        raise CourseError(f"{purpose} needs {module}: {more}")


class Cell(NamedTuple):
    """One cell of a step; ``line`` is where its source begins in the file (from 1)."""

    kind: str
    source: str
    tags: tuple[str, ...]
    line: int

    @property
    def exercise(self) -> str | None:
        """The id of the exercise this cell holds: ``"3a"``, or None."""
        return next((tag[3:] for tag in self.tags if _EXERCISE.fullmatch(tag)), None)


class Step(NamedTuple):
    """A literate file: its cells and what its first cell says about it."""

    path: Path
    text: str
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """File and notebook name without suffix: ``step03_creator_links``."""
        return self.path.stem

    @property
    def number(self) -> int | None:
        """The number of the step; None for the start page."""
        match = FILE.fullmatch(self.path.name)
        return int(match[1]) if match else None

    @property
    def title(self) -> str:
        """The first heading, without ``Step N.``"""
        match = re.search(r"^# (?:Step \d+\. )?(.+)$", self._opening, re.M)
        return match[1].strip() if match else self.name

    @property
    def exercises(self) -> tuple[str, ...]:
        """Ids of the exercises, in order."""
        return tuple(cell.exercise for cell in self.cells if cell.exercise)

    @property
    def _opening(self) -> str:
        return self.cells[0].source if self.cells else ""

    def front(self, key: str) -> str:
        """What the first cell says about its ``"Goal"``: the line ``**Goal.** …``."""
        match = re.search(
            rf"^\*\*{key}\.?\*\*\.?[ ]*((?:.+\n?)+?)(?=\s*\Z|\n|\*\*\w+\.\*\*)", self._opening, re.M
        )
        return " ".join(match[1].split()) if match else ""


def read_step(path: Path) -> Step:
    """Read and verify a literate file.

    Raises CourseError, with file and line: an unknown tag, a missing or stray solution marker, an
    exercise without id or with one used twice, code that should be commented out, a file that is
    not Python.
    """
    text = path.read_text(encoding="utf-8")
    try:
        ast.parse(text)
        cells = tuple(_cells(text))
        _verify(cells, FILE.fullmatch(path.name))
    except SyntaxError as error:
        raise CourseError(f"not Python: {error.msg}", path, error.lineno) from None
    except CourseError as error:
        raise CourseError(str(error), path, error.line) from None
    return Step(path, text, cells)


def _cells(text: str) -> Iterator[Cell]:
    before, *pieces = re.split(r"^(# %%.*)$", text, flags=re.M)
    if re.search(r"^(?!#).*\S", before, re.M):
        raise CourseError("code before the first '# %%'; begin the file with a cell", line=1)
    number = before.count("\n") + 1
    for marker, body in zip(pieces[::2], pieces[1::2], strict=True):
        match = _MARKER.fullmatch(marker)
        if not match:
            advice = "write '# %% [markdown] tags=[\"a\"]'"
            raise CourseError(f"cannot read the cell marker {marker!r}; {advice}", line=number)
        try:
            tags = json.loads(match["tags"] or "[]")
        except json.JSONDecodeError:
            raise CourseError(
                f"tags are a list in double quotes, not tags={match['tags']}", line=number
            ) from None
        for tag in tags:
            if tag not in TAGS and not _EXERCISE.fullmatch(tag):
                known = ", ".join(sorted(TAGS))
                raise CourseError(f"unknown tag {tag!r}; known: {known}, ex-3a", line=number)
        kind = "markdown" if match["kind"] else "code"
        begun = number + body[: len(body) - len(body.lstrip())].count("\n")
        lines = body.strip().splitlines()
        if kind == "markdown" or "active-ipynb" in tags:
            for at, line in enumerate(lines, begun):
                if line.strip() and not line.startswith("#"):
                    said = "must start with '# ': this cell is active in the notebook only"
                    raise CourseError(f"{line.strip()!r} {said}", line=at)
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        if "engine" in tags:
            lines = [line.removeprefix("# ") if line[:8] == "# check(" else line for line in lines]
        yield Cell(kind, "\n".join(lines), tuple(tags), begun)
        number += body.count("\n")


def _verify(cells: Iterable[Cell], file: re.Match[str] | None) -> None:
    seen: dict[str, int] = {}
    for cell in cells:
        numbered = enumerate(map(str.strip, cell.source.splitlines()), cell.line)
        marks = [(line, number) for number, line in numbered if line in (BEGIN, END)]
        for k, (mark, number) in enumerate(marks):
            said = ""
            if "exercise" not in cell.tags:
                said = f'{mark!r} outside an exercise; add the tags "exercise", "ex-…"'
            elif mark != (BEGIN, END)[k % 2] or marks[k:] == [(BEGIN, number)]:
                said = f"{mark!r} alone: {BEGIN!r} and {END!r} stand in pairs"
            if said:
                raise CourseError(said, line=number)
        id, said = cell.exercise, ""
        if id is None:
            if "exercise" in cell.tags:
                said = 'an exercise needs its id among the tags: "ex-3a"'
        elif seen.setdefault(id, cell.line) != cell.line:
            said = f"exercise {id} stands already in line {seen[id]}; give one another letter"
        elif file and int(id[:-1]) != int(file[1]):
            said = f"exercise {id} belongs to step {id[:-1]}; call it {int(file[1])}a, …"
        elif BEGIN not in cell.source:
            said = f"exercise {id} has no {BEGIN!r}; put it above its solution"
        elif not re.search(rf"""\bcheck\(["']{id}["']""", cell.source):
            said = f'exercise {id} never calls check("{id}", …); end the cell with it'
        if said:
            raise CourseError(said, line=cell.line)
