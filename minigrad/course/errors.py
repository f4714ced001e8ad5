"""The one error of the course's machinery: it names the file and the line."""

from __future__ import annotations

from pathlib import Path


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
