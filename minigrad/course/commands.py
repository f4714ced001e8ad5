"""What each command of ``minigrad`` does; each returns the exit status."""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minigrad.course import build as building
from minigrad.course import compare, growth
from minigrad.course import notebook as notebook_files
from minigrad.course.errors import CourseError
from minigrad.course.notebook import Notebook
from minigrad.course.steps import Course, Step, find_course

_VERDICT = re.compile(r"^([✓✗]) (\d{1,2}[a-z])\b.*$", re.M)


def open_course(options: Sequence[str]) -> int:
    """Trust the course's notebooks and open JupyterLab at the start page; options are passed on to it."""
    course = find_course()
    start = course.notebooks / "start.ipynb"
    if not start.exists():
        raise CourseError(f"{start} is missing; make the notebooks first: minigrad build")
    _need("jupyterlab", "opening the course")
    notebooks = [str(path) for path in sorted(course.notebooks.rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]
    subprocess.run([sys.executable, "-m", "jupyter", "trust", *notebooks], check=True, stdout=subprocess.DEVNULL)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(
        [str(course.root), *filter(None, [os.environ.get("PYTHONPATH")])])}
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={course.root}",
               f"--LabApp.default_url=/lab/tree/{start.relative_to(course.root).as_posix()}", *options]
    return subprocess.run(command, env=environment, check=False).returncode


def run(options: argparse.Namespace) -> int:
    """Execute notebooks in memory; 1 when a cell fails."""
    course, paths = _notebooks(options.steps, solved=options.solved)
    results = _executed(course, paths)
    failed = [(path, ran.failure) for path, ran in zip(paths, results, strict=True) if ran.failure]
    for path, failure in failed:
        print(f"\n{_relative(path, course)}, cell {failure.cell + 1}: {failure.name}: {failure.text}\n{failure.traceback}")
    print(f"{len(paths) - len(failed)} of {len(paths)} notebooks run")
    return 1 if failed else 0


def check(options: argparse.Namespace) -> int:
    """Execute the learner's notebooks and list their exercises; 1 unless all pass."""
    course, paths = _notebooks(options.steps, solved=False)
    results = _executed(course, paths, go_on=True)
    passed = total = 0
    for path, ran in zip(paths, results, strict=True):
        verdicts = _verdicts(ran.notebook)
        expected = course.select([path.stem])[0].exercises if _has_source(course, path) else tuple(verdicts)
        for id in expected:
            line = verdicts.get(id, f"✗ {id}: its check did not run")
            print(_coloured(line, "32" if line.startswith("✓") else "31"))
        total += len(expected)
        passed += sum(verdicts.get(id, "").startswith("✓") for id in expected)
        if ran.failure and ran.failure.name != "NotImplementedError":
            print(f"  {_relative(path, course)}, cell {ran.failure.cell + 1}: {ran.failure.name}: {ran.failure.text}")
    print(f"{passed} of {total} exercises pass")
    return 0 if passed == total else 1


def build(options: argparse.Namespace) -> int:
    """Make the notebooks, or compare them with what would be made; 1 when a check finds a difference."""
    course = find_course()
    chosen = course.select(options.steps)
    wanted = [(step, solved) for step in chosen for solved in (False, True) if step.exercises or not solved]
    made = [building.make(course, step, solved=solved) for step, solved in wanted]
    results = _executed_notebooks(course, made, [_label(step, solved) for step, solved in wanted])
    act = _compare_one if options.check else _write_one
    status = 0
    for (step, solved), ran in zip(wanted, results, strict=True):
        try:
            building.verify(step, ran, solved=solved)
            status |= act(course, step, solved, ran.notebook)
        except CourseError as error:
            print(error, file=sys.stderr)
            status = 1
    return status


def steps(options: argparse.Namespace) -> int:
    """List the steps: number, title, time, exercises, goal."""
    course = find_course()
    for number in course.paths:
        step = course.step(number)
        exercises = ", ".join(step.exercises) or "-"
        print(f"{number:2}  {step.title}\n    {step.goal} [{step.time or 'no time given'}; exercises {exercises}]")
    return 0


def diff(options: argparse.Namespace) -> int:
    """Print what one step adds to another."""
    course = find_course()
    before = course.step(options.before)
    after = course.step(options.before + 1 if options.after is None else options.after)
    found = growth.Growth(growth.definitions(before.text), growth.definitions(after.text))
    print(f"{before.name} → {after.name}")
    for line in growth.plain(found).splitlines():
        print(_coloured(line, {"+": "32", "-": "31", "@": "36"}.get(line[:1], "")))
    return 0


def _notebooks(words: Sequence[str], *, solved: bool) -> tuple[Course, list[Path]]:
    """The notebooks on disk that the words name."""
    course = find_course()
    folder = course.notebooks / "solved" if solved else course.notebooks
    if any((course.root / "steps").glob("step*.py")):
        paths = [building.target(course, step, solved=solved) for step in course.select(words)
                 if step.exercises or not solved]
    else:
        paths = sorted(folder.glob("s*.ipynb"))
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise CourseError(f"{missing[0]} is missing; make it first: minigrad build {missing[0].stem}")
    return course, paths


def _executed(course: Course, paths: Sequence[Path], *, go_on: bool = False) -> list[Any]:
    notebooks = [notebook_files.joined(notebook_files.read(path)) for path in paths]
    return _executed_notebooks(course, notebooks, [_relative(path, course) for path in paths], go_on)


def _executed_notebooks(course: Course, notebooks: Sequence[Notebook], labels: Sequence[str],
                        go_on: bool = False) -> list[Any]:
    """Execute with a progress bar."""
    _need("nbclient", "running notebooks")
    from minigrad.course import execute

    with _progress(len(notebooks)) as tell:
        return execute.run_all(notebooks, course.root, go_on=go_on, done=lambda index, ran: tell(labels[index]))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    from tqdm import tqdm  # type: ignore[import-untyped]

    with tqdm(total=total, unit="notebook", disable=None, leave=False) as bar:
        def tell(label: str) -> None:
            bar.set_postfix_str(label)
            bar.update()

        yield tell


def _write_one(course: Course, step: Step, solved: bool, made: Notebook) -> int:
    path = building.target(course, step, solved=solved)
    went = notebook_files.write(made, path)
    if went != path:
        print(f"{_relative(path, course)} holds your work and is kept; the fresh one is {_relative(went, course)}")
    else:
        print(_relative(path, course))
    return 0


def _compare_one(course: Course, step: Step, solved: bool, made: Notebook) -> int:
    path = building.target(course, step, solved=solved)
    found = compare.differences(notebook_files.read(path), made) if path.exists() else ["it is missing"]
    for line in found:
        print(f"{_relative(path, course)}: {line}")
    if found:
        print(f"  to mend: minigrad build {step.number or 'start'}")
    return 1 if found else 0


def _verdicts(notebook: Notebook) -> dict[str, str]:
    """The last line that each check printed."""
    from minigrad.course.execute import plain_text

    texts = [plain_text(output["text"]) for cell in notebook["cells"] for output in cell.get("outputs", [])
             if output["output_type"] == "stream"]
    return {match[2]: match[0] for text in texts for match in _VERDICT.finditer(text)}


def _has_source(course: Course, path: Path) -> bool:
    return (course.root / "steps" / f"{path.stem}.py").exists()


def _label(step: Step, solved: bool) -> str:
    return f"{step.name}{' solved' if solved else ''}"


def _relative(path: Path, course: Course) -> str:
    return path.relative_to(course.root).as_posix()


def _coloured(text: str, colour: str) -> str:
    plain = not colour or not sys.stdout.isatty() or "NO_COLOR" in os.environ
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"


def _need(module: str, purpose: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise CourseError(f"{purpose} needs {module}; install what the course needs: pip install 'minigrad[course]'")
