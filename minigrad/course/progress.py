"""Where a learner is: exercises that passed, cards to recall, tests taken; one local file."""

import json
import os
from pathlib import Path

from ..atomic import replacing
from ..primitives.arguments import ByName
from .folder import Course, find_course
from .mine import OFF
from .steps import CourseError, Step

FILE = "my_progress.json"


def read(folder: Path, name: str = FILE) -> ByName:
    """What the file in a folder says: ``passed``, ``cards``, ``tests``.

    Raises CourseError for a file that is none of ours.
    """
    path = folder / name
    known: ByName = {"passed": [], "cards": {}, "tests": []}
    try:
        said = known | json.loads(path.read_text(encoding="utf-8")) if path.exists() else known
        cards = [*said["cards"].values()]
        for values, kind in ((said["passed"], str), (cards, dict), (said["tests"], dict)):
            if not isinstance(values, list) or not all(isinstance(v, kind) for v in values):
                raise ValueError("it holds something else")
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CourseError(
            f"this is no progress ({error}); move it away to begin anew", path
        ) from None
    return said


def write(folder: Path, progress: ByName) -> None:
    """Replace the file in a folder."""
    with replacing(folder / FILE) as file:
        file.write((json.dumps(progress, indent=1) + "\n").encode())


def passed(id: str, folder: Path) -> None:
    """Note that an exercise passed."""
    progress = read(folder)
    if id not in progress["passed"]:
        write(folder, progress | {"passed": [*progress["passed"], id]})


def here(course: Course, folder: Path | None = None) -> Step | None:
    """The first step with an exercise that has not passed; None at the end."""
    done = set(read(folder or course.notebooks)["passed"])
    steps = map(course.step, course.paths)
    return next((step for step in steps if not done.issuperset(step.exercises)), None)


class Here:
    """Where the learner is, in a notebook beside the file: a line with a link."""

    def __repr__(self) -> str:
        try:
            course = find_course()
            done = [] if OFF in os.environ else read(Path())["passed"]
        except OSError:  # in a browser's tab that may keep nothing, no folder can be read
            done = []
        if not done:
            return "No exercise has passed yet: begin with step 1."
        link = "[the capstone](capstone.ipynb)"
        if step := here(course, Path()):
            link = f"[{step.number}. {step.title}]({step.name}.ipynb)"
        return f"{len(done)} exercises have passed. Go on with {link}."

    _repr_markdown_ = __repr__
