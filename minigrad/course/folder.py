"""The folder of a course: its steps by number, its notebooks, and how to find it."""

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import notebook
from .steps import FILE, CourseError, Step, read_step

#: Where an installed package keeps its course; a source tree holds it beside the package.
_SHIPPED = Path(__file__).resolve().parent / "shipped"
_SOURCE_TREE = Path(__file__).resolve().parents[2]
#: What is not copied with a course.
UNWANTED = shutil.ignore_patterns("__pycache__", ".*", "*.fresh.ipynb")
#: Numbers of the steps that begin a new file and carry nothing over.
FRESH = frozenset({1, 10, 13, 20})
#: Numbers of the steps that grow out of another one than the step before, which may be left out.
_GROWS_OUT_OF = {17: 15}


@dataclass(frozen=True)
class Course:
    """A folder that holds ``steps/`` and ``notebooks/``; one of notebooks alone has the package's steps."""

    root: Path

    @property
    def steps(self) -> Path:
        """Where the literate files stand."""
        own = self.root / "steps"
        return own if own.exists() else shipped() / "steps"

    @property
    def notebooks(self) -> Path:
        """Where the notebooks stand."""
        return self.root / "notebooks"

    @property
    def own(self) -> "Course":
        """Where a learner works: beside a source tree the copy in it, once it was opened."""
        copy = Course(self.root / "my_course")
        return copy if (copy.notebooks / "start.ipynb").exists() else self

    @cached_property
    def paths(self) -> dict[int, Path]:
        """The literate files by number.  Raises CourseError when two files share a number."""
        paths: dict[int, Path] = {}
        for path in sorted(self.steps.glob("step*.py")):
            match = FILE.fullmatch(path.name)
            if not match:
                raise CourseError("the name of a step is stepNN_words.py, with two digits", path)
            number = int(match[1])
            if paths.setdefault(number, path) != path:
                raise CourseError(f"step {number} is also {paths[number].name}; renumber one", path)
        return paths

    @property
    def _numbers(self) -> str:
        return f"{min(self.paths)}-{max(self.paths)}" if self.paths else "no steps"

    def step(self, number: int) -> Step:
        """Read one step.  Raises CourseError when there is no such step."""
        if number not in self.paths:
            raise CourseError(f"no step {number}; the course has {self._numbers}")
        return read_step(self.paths[number])

    def before(self, number: int) -> Step | None:
        """The step this one grows out of; None for a step that starts fresh."""
        before = _GROWS_OUT_OF.get(number, number - 1)
        return None if number in FRESH or before not in self.paths else self.step(before)

    def select(self, words: Iterable[str] = ()) -> list[Step]:
        """Steps named by ``3``, ``1-4``, ``start`` or a file name.

        Without words all: the start page, the steps, then other pages: the capstone.

        Raises CourseError for a word that names no step.
        """
        known = set(self.paths.values())
        pages = self.steps.glob("*.py")
        every = sorted(pages, key=lambda path: (path.stem != "start", path not in known, path))
        chosen: list[Path] = []
        for word in words:
            stem = Path(word).stem
            if span := re.fullmatch(r"(\d+)(?:-(\d+))?", stem):
                numbers = range(int(span[1]), int(span[2] or span[1]) + 1)
                named = [path for n, path in self.paths.items() if n in numbers]
            else:
                named = [path for path in every if stem in (path.stem, path.stem[:6])]
            if not named:
                advice = f"a number, a range (1-4) or start; the course has {self._numbers}"
                raise CourseError(f"{word!r} names no step; write {advice}")
            chosen += named
        return [read_step(path) for path in chosen or every]


def find_course(beginning: Path | None = None) -> Course:
    """The course around a folder (default: where we are), else the source tree of this package.

    Raises CourseError with advice where neither holds one.
    """
    here = (beginning or Path.cwd()).resolve()
    for root in (here, *here.parents, _SOURCE_TREE):
        if any((root / "steps").glob("step*.py")) or (root / "notebooks" / "start.ipynb").exists():
            return Course(root)
    raise CourseError(
        f"no course here: {here} holds neither steps/ nor notebooks/start.ipynb. "
        "Make one: minigrad new FOLDER"
    )


def shipped() -> Path:
    """The course that this package came with."""
    return _SHIPPED if _SHIPPED.exists() else _SOURCE_TREE


def verify_empty(folder: Path, command: str) -> None:
    """Raise CourseError where a folder, which a command is to make, holds anything."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CourseError(f"{folder} is not empty; name a new folder: minigrad {command} FOLDER")


def new_course(folder: Path) -> None:
    """Copy the course that this package came with into a new or empty folder.

    Raises CourseError where the folder holds anything: nobody's work is overwritten.
    """
    verify_empty(folder, "new")
    for part in ("steps", "notebooks"):
        shutil.copytree(shipped() / part, folder / part, ignore=UNWANTED)


def working_copy(course: Course) -> Course:
    """A source tree's notebooks in a folder of the learner's, which an update of the tree never meets.

    A newer notebook takes the place of one that nobody changed; any other course is its own copy.
    """
    if course.root != _SOURCE_TREE:
        return course
    for path in [*course.notebooks.glob("[!.]*.*"), *course.notebooks.glob("solved/*.ipynb")]:
        target = course.root / "my_course" / "notebooks" / path.relative_to(course.notebooks)
        if not target.exists() or _is_outdated(target, path):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return course.own


def _is_outdated(target: Path, path: Path) -> bool:
    try:
        mine, newer = notebook.read(target), notebook.read(path)
    except CourseError:  # whatever it is, it is the learner's
        return False
    before, now = (notebook.facts(each).get("sources") for each in (mine, newer))
    return before != now and not notebook.is_changed(mine)
