"""The answers of a class: whose notebooks lie in a folder, and a table of what passes."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from . import notebook, progress
from .check import PASSED
from .judge import one_line
from .steps import CourseError, Step


def handed_in(
    folder: Path, steps: Sequence[Step], others: Sequence[Step] = ()
) -> tuple[dict[str, dict[str, Path]], list[str]]:
    """Learner → step → notebook, for the notebooks below a folder; notes about what was not taken.

    A learner is a folder (``anna/step05_many_inputs.ipynb``, however deep; an empty one handed in nothing) or what
    stands before the name of the step (``anna_step05_many_inputs.ipynb``, as learning platforms name downloads).

    Of two notebooks for one place the one that changed last is taken; ``others`` are further steps,
    about whose notebooks there is nothing to say.  Raises CourseError if nothing was handed in.
    """
    if not folder.is_dir():
        raise CourseError(f"there is no folder {folder}; name the one that holds their notebooks")
    names = [step.name for step in steps]
    known = names + [step.name for step in others]
    learners = (path.name for path in folder.iterdir() if path.is_dir())
    answers: dict[str, dict[str, Path]] = {n: {} for n in learners if not _is_hidden(n)}
    notes = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if any(map(_is_hidden, inside.parts)) or ".ipynb" not in path.name.lower():
            continue
        step, said = None, "the name of a notebook ends in .ipynb"
        if path.suffix.lower() == ".ipynb":
            step = _step(path, known)
            said = "neither its name nor its text says which step it is"
        if step is None:
            notes.append(f"{inside}: not checked: {said}")
        if step not in names:
            continue
        before = path.stem.lower().partition(step)[0]  # all of it, where the step is not in it
        prefix = path.stem[: len(before)].strip(_BETWEEN)
        learner = inside.parts[0] if len(inside.parts) > 1 else prefix
        if not learner:
            notes.append(f"{inside}: whose is it? One folder per learner, or the name before it")
            continue
        own = answers.setdefault(learner, {})
        if step in own:
            older, newer = sorted((own[step], path), key=lambda each: each.stat().st_mtime)
            said = f"{newer.name} is newer, and is checked instead"
            notes.append(f"{older.relative_to(folder)}: {said}")
            path = newer
        own[step] = path
    if not any(answers.values()):
        wanted = ", ".join(f"{name}.ipynb" for name in names[:3])
        said = f"no notebook of the course below {folder}: {wanted} …"
        raise CourseError("\n".join([said, *notes]))
    return dict(sorted(answers.items())), notes


_BETWEEN = " _-."  # what may stand between the name of a learner and of a file


def _is_hidden(part: str) -> bool:
    return part.startswith(".") or part == "__MACOSX"


def _step(path: Path, names: Sequence[str]) -> str | None:
    """The step that a notebook's name says; of a renamed one, the step its build noted in it."""
    said = next((name for name in names if name in path.stem.lower()), None)
    if said is None:
        with contextlib.suppress(CourseError):
            noted = notebook.facts(notebook.read(path)).get("step")
            said = noted if noted in names else None
    return said


def print_tests(folder: Path, learners: Iterable[str]) -> list[str]:
    """Print what the files of progress say about the twelve questions; what could not be read."""
    unread = []
    for learner in learners:
        beside = folder.glob(f"*{progress.FILE}")
        own = [p for p in beside if p.name.removesuffix(progress.FILE).strip(_BETWEEN) == learner]
        own += (folder / learner).rglob(progress.FILE)
        try:
            tests = [t for path in own for t in progress.read(path.parent, path.name)["tests"]]
            scores = [f"{int(test['right'])} of {int(test['of'])}" for test in tests]
        except (CourseError, LookupError, TypeError, ValueError, ArithmeticError) as error:
            unread.append(f"{learner}, {progress.FILE}, {error}")
        else:
            if scores:
                print(f"  {printable(learner)}, twelve questions: {', then '.join(scores)}")
    return unread


def printable(text: str) -> str:
    """What a learner's notebook says, on one line that does nothing to a terminal."""
    return one_line(text, 600)


def table(verdicts: Mapping[str, Mapping[str, str]], exercises: Sequence[str]) -> list[str]:
    """One line per learner, one column per exercise; the last line counts who passed.

    >>> for line in table({"anna": {"1a": "✓ 1a", "1b": "✓ 1b"}, "bo": {"1a": "✗ 1a: …"}}, ["1a", "1b"]):
    ...     print(line)
          1a  1b
    anna  ✓   ✓   2 of 2
    bo    ✗   ·   0 of 2
          1   1
    """
    rows = [["", *exercises, ""]]
    for learner, said in verdicts.items():
        marks = [said.get(exercise, "·")[:1] for exercise in exercises]
        rows.append([printable(learner), *marks, f"{marks.count(PASSED)} of {len(marks)}"])
    columns = list(zip(*rows, strict=True))
    passed = [str(column.count(PASSED)) for column in columns[1:-1]]
    widths = [max(map(len, column)) for column in columns]
    rows.append(["", *passed, ""])
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
