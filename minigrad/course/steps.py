"""Literate steps: find them, read them, and say file and line where one is malformed.

A step is a Python file in jupytext's percent format.  Cells that are active in the notebook only
are commented out in the file: importing it defines classes and functions and does nothing else.  A cell
tagged ``engine`` is a part of the engine and an exercise at once: its check alone is commented out.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

#: Tags a cell may carry, besides the id of an exercise (``ex-3a``).
TAGS = {
    "active-ipynb",
    "carried",
    "engine",
    "exercise",
    "folded",
    "growth",
    "interactive",
    "mistake",
    "picture-F",
    "picture-B",
    "raises-exception",
    "steps",
    "varies",
}
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"

_MARKER = re.compile(r"# %%(?P<kind> \[markdown\])?(?P<title>[^=\[]*?)(?P<tags>\s+tags=.*)?\s*$")
_EXERCISE = re.compile(r"ex-(\d{1,2}[a-z])")
FILE = re.compile(r"step(\d{2})_\w+\.py")


class CourseError(Exception):
    """A fault in the source of the course, or a request it cannot meet.

    >>> print(CourseError("unknown tag 'exercice'", Path("steps/step03.py"), 12))
    steps/step03.py:12: unknown tag 'exercice'
    """

    def __init__(self, message: str, path: Path | None = None, line: int | None = None) -> None:
        at = "" if line is None else f":{line}"
        place = "" if path is None else f"{_near(path)}{at}: "
        super().__init__(place + message)
        self.path, self.line = path, line


def _near(path: Path) -> Path:
    """A path as seen from the working directory, where it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@dataclass(frozen=True)
class Cell:
    """One cell of a step; ``line`` is where its source begins in the file (from 1)."""

    kind: str
    source: str
    tags: tuple[str, ...]
    line: int

    @property
    def exercise(self) -> str | None:
        """The id of the exercise this cell holds: ``"3a"``, or None."""
        return next((tag[3:] for tag in self.tags if _EXERCISE.fullmatch(tag)), None)


@dataclass(frozen=True)
class Step:
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

    @cached_property
    def title(self) -> str:
        """The first heading, without ``Step N.``"""
        match = re.search(r"^# (?:Step \d+\. )?(.+)$", self._opening, re.M)
        return match[1].strip() if match else self.name

    @property
    def goal(self) -> str:
        """The line ``**Goal.** …`` of the first cell."""
        return self._front("Goal")

    @property
    def time(self) -> str:
        """The line ``**Time.** …`` of the first cell."""
        return self._front("Time")

    @property
    def needs(self) -> str:
        """The line ``**Needs.** …`` of the first cell."""
        return self._front("Needs")

    @property
    def exercises(self) -> tuple[str, ...]:
        """Ids of the exercises, in order."""
        return tuple(cell.exercise for cell in self.cells if cell.exercise)

    @property
    def _opening(self) -> str:
        return self.cells[0].source if self.cells else ""

    def _front(self, key: str) -> str:
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
    except SyntaxError as error:
        raise CourseError(f"not Python: {error.msg}", path, error.lineno) from None
    cells = tuple(_cells(path, text))
    _verify(path, cells)
    return Step(path, text, cells)


def _cells(path: Path, text: str) -> Iterator[Cell]:
    header: tuple[str, tuple[str, ...]] | None = None
    lines: list[str] = []
    begun = 1
    for number, line in enumerate([*text.splitlines(), "# %%"], 1):
        if not line.startswith("# %%"):
            lines.append(line)
            continue
        if header is not None:
            yield _cell(path, *header, lines, begun)
        elif any(each.strip() and not each.startswith("#") for each in lines):
            raise CourseError("code before the first '# %%'; begin the file with a cell", path, 1)
        header, lines, begun = _header(path, line, number), [], number + 1


def _header(path: Path, line: str, number: int) -> tuple[str, tuple[str, ...]]:
    match = _MARKER.fullmatch(line)
    if not match:
        raise CourseError(
            f"cannot read the cell marker {line!r}; write '# %% [markdown] tags=[\"a\"]'",
            path,
            number,
        )
    try:
        tags = json.loads(match["tags"].split("=", 1)[1]) if match["tags"] else []
    except json.JSONDecodeError:
        raise CourseError(
            f"tags are a list in double quotes, not {match['tags'].strip()}", path, number
        ) from None
    for tag in tags:
        if tag not in TAGS and not _EXERCISE.fullmatch(tag):
            raise CourseError(
                f"unknown tag {tag!r}; known: {', '.join(sorted(TAGS))}, ex-3a", path, number
            )
    return ("markdown" if match["kind"] else "code"), tuple(tags)


def _cell(path: Path, kind: str, tags: tuple[str, ...], lines: list[str], begun: int) -> Cell:
    while lines and not lines[0].strip():
        lines, begun = lines[1:], begun + 1
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    if kind == "markdown" or "active-ipynb" in tags:
        lines = [_uncommented(path, line, number) for number, line in enumerate(lines, begun)]
    if "engine" in tags:
        lines = [line.removeprefix("# ") if line.startswith("# check(") else line for line in lines]
    return Cell(kind, "\n".join(lines), tags, begun)


def _uncommented(path: Path, line: str, number: int) -> str:
    if not line.strip():
        return ""
    if not line.startswith("#"):
        raise CourseError(
            f"{line.strip()!r} must start with '# ': this cell is active in the notebook only",
            path,
            number,
        )
    return line[2:] if line.startswith("# ") else line[1:]


def _verify(path: Path, cells: Iterable[Cell]) -> None:
    seen: dict[str, int] = {}
    number = FILE.fullmatch(path.name)
    for cell in cells:
        _verify_markers(path, cell)
        id, said = cell.exercise, ""
        if id is None:
            if "exercise" in cell.tags:
                said = 'an exercise needs its id among the tags: "ex-3a"'
        elif id in seen:
            said = f"exercise {id} stands already in line {seen[id]}; give one another letter"
        elif number and int(id[:-1]) != int(number[1]):
            said = f"exercise {id} belongs to step {id[:-1]}; call it {int(number[1])}a, …"
        elif BEGIN not in cell.source:
            said = f"exercise {id} has no {BEGIN!r}; put it above its solution"
        elif not re.search(rf"""\bcheck\(["']{id}["']""", cell.source):
            said = f'exercise {id} never calls check("{id}", …); end the cell with it'
        if said:
            raise CourseError(said, path, cell.line)
        seen |= {id: cell.line} if id else {}


def _verify_markers(path: Path, cell: Cell) -> None:
    numbered = enumerate(cell.source.splitlines(), cell.line)
    marks = [(number, line.strip()) for number, line in numbered if line.strip() in (BEGIN, END)]
    if marks and "exercise" not in cell.tags:
        said = f'{marks[0][1]!r} outside an exercise; add the tags "exercise", "ex-…"'
        raise CourseError(said, path, marks[0][0])
    for k, (number, mark) in enumerate(marks):
        follows = marks[k + 1][1] if k + 1 < len(marks) else ""
        if mark != (BEGIN, END)[k % 2] or (mark == BEGIN and follows == ""):
            raise CourseError(f"{mark!r} alone: {BEGIN!r} and {END!r} stand in pairs", path, number)
