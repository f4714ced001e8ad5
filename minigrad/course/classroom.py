"""The answers of a class: whose notebooks lie in a folder, and a table of what passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from minigrad.course.errors import CourseError
from minigrad.course.steps import Step

PASSED, NOTHING = "✓", "·"


def handed_in(folder: Path, steps: Sequence[Step]) -> dict[str, dict[str, Path]]:
    """Learner → step → notebook, for the notebooks below a folder.

    A learner is a folder (``anna/step05_many_inputs.ipynb``, however deep) or what stands before the name of the step
    (``anna_step05_many_inputs.ipynb``, as learning platforms name downloads).

    Raises CourseError if nothing was handed in, or two notebooks claim one place.
    """
    if not folder.is_dir():
        raise CourseError(f"there is no folder {folder}")
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.rglob("*.ipynb")):
        inside = path.relative_to(folder)
        step = next((s for s in steps if s.name in path.name), None)
        if step is None or any(part[0] == "." for part in inside.parts):
            continue
        prefix = path.name.partition(step.name)[0].strip(" _-.")
        learner = inside.parts[0] if len(inside.parts) > 1 else prefix
        if not learner:
            raise CourseError("whose is it? One folder per learner, or the name before it", path)
        known = found.setdefault(learner, {}).setdefault(step.name, path)
        if known != path:
            raise CourseError(f"{learner} has handed in {known.relative_to(folder)}, too", path)
    if not found:
        names = ", ".join(f"{s.name}.ipynb" for s in steps[:3])
        raise CourseError(f"no notebook of the course below {folder}: {names} …")
    return found


def table(verdicts: Mapping[str, Mapping[str, str]], exercises: Sequence[str]) -> list[str]:
    """One line per learner, one column per exercise; the last line counts who passed.

    >>> for line in table({"anna": {"1a": "✓ 1a", "1b": "✓ 1b"}, "bo": {"1a": "✗ 1a: …"}}, ["1a", "1b"]):
    ...     print(line)
          1a  1b
    anna  ✓   ✓   2 of 2
    bo    ✗   ·   0 of 2
          1   1
    """
    wide = max(map(len, verdicts), default=0)
    gap = [max(len(e), 2) for e in exercises]

    def line(label: str, cells: Sequence[str], end: str = "") -> str:
        row = "  ".join(c.ljust(w) for c, w in zip(cells, gap, strict=True))
        return f"{label.ljust(wide)}  {row}  {end}".rstrip()

    lines = [line("", exercises)]
    passed = dict.fromkeys(exercises, 0)
    for learner, said in verdicts.items():
        marks = [said.get(e, NOTHING)[:1] for e in exercises]
        for e, mark in zip(exercises, marks, strict=True):
            passed[e] += mark == PASSED
        lines.append(line(learner, marks, f"{marks.count(PASSED)} of {len(marks)}"))
    return [*lines, line("", [str(n) for n in passed.values()])]
