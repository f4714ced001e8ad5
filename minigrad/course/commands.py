"""What each command of ``minigrad`` does; each returns the exit status."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import build as building
from . import classroom, compare, execute, growth, isolated, notebook, progress
from . import recall as recalling
from . import site as site_folder
from .errors import CourseError
from .execute import Ran
from .folder import Course, find_course, new_course
from .launch import need
from .notebook import Notebook
from .steps import Step

_GREEN, _RED, _BLUE = "32", "31", "36"


@dataclass(frozen=True)
class Target:
    """One notebook of the course: the learner's or the solved one of a step."""

    course: Course
    step: Step
    solved: bool

    @property
    def path(self) -> Path:
        """Where it stands."""
        folder = self.course.notebooks / "solved" if self.solved else self.course.notebooks
        return folder / f"{self.step.name}.ipynb"

    @property
    def label(self) -> str:
        """The path as seen from the folder of the course."""
        return self.path.relative_to(self.course.root).as_posix()


def run(options: argparse.Namespace) -> int:
    """Execute notebooks in memory; 1 when a cell fails."""
    targets = _targets(find_course().own, options.steps, [options.solved])
    results = _executed(targets, [_on_disk(target) for target in targets])
    failed = 0
    for target, ran in zip(targets, results, strict=True):
        if ran.failure:
            failed += 1
            print(f"\n{target.label}, {ran.failure}\n{ran.failure.traceback}")
    print(f"{len(targets) - failed} of {len(targets)} notebooks run")
    return 1 if failed else 0


def check(options: argparse.Namespace) -> int:
    """Execute the learner's notebooks and list their exercises; 1 unless all pass."""
    if options.answers:
        return _check_class(Path(options.answers), options.steps)
    targets = _targets(find_course().own, options.steps, [False])
    results = _executed(targets, [_on_disk(target) for target in targets], go_on=True)
    passed = total = 0
    for target, ran in zip(targets, results, strict=True):
        verdicts = execute.verdicts(ran.notebook)
        for id in target.step.exercises:
            line = classroom.printable(verdicts.get(id, f"✗ {id}: its check did not run"))
            print(_coloured(line, {"✓": _GREEN, "✗": _RED}.get(line[0], "")))
            total += 1
            passed += line.startswith("✓")
        if ran.failure:
            print(f"  {target.label}, {classroom.printable(str(ran.failure))}")
    print(f"{passed} of {total} exercises pass")
    return 0 if passed == total else 1


def _check_class(folder: Path, words: Sequence[str]) -> int:
    """Execute what a class handed in and print a table; 1 unless all pass."""
    targets = {target.step.name: target for target in _targets(find_course(), words, [False])}
    known = [target.step for target in targets.values() if target.step.exercises]
    answers = classroom.handed_in(folder, known)
    places: list[tuple[str, str]] = []
    notebooks: list[Notebook] = []
    unread: list[str] = []
    for learner, each in answers.items():
        for name, path in each.items():
            try:
                notebooks.append(notebook.joined(notebook.read(path)))
                places.append((learner, name))
            except CourseError as error:  # one that is broken does not stop the others
                unread.append(str(error))
    handed_in = [path for each in answers.values() for path in each.values() if path.is_file()]
    with _progress([targets[name] for _, name in places]) as done:
        outcomes, put_back = isolated.run_all(notebooks, find_course(), handed_in, done)
    verdicts: dict[str, dict[str, str]] = {learner: {} for learner in answers}
    for (learner, _), outcome in zip(places, outcomes, strict=True):
        verdicts[learner] |= outcome.verdicts
    tried = {name for each in answers.values() for name in each}
    exercises = [id for step in known if words or step.name in tried for id in step.exercises]
    print("\n".join(classroom.table(verdicts, exercises)))
    unread += classroom.print_tests(folder, answers)
    notes = [
        f"{learner}, {name}, {outcome.failure}"
        for (learner, name), outcome in zip(places, outcomes, strict=True)
        if outcome.failure
    ]
    notes += [f"{path} was changed while the notebooks ran, and is put back" for path in put_back]
    for note in [*notes, *unread]:
        print(f"  {classroom.printable(note)}")
    missing = any(not v.get(e, "").startswith("✓") for v in verdicts.values() for e in exercises)
    return int(missing)


def build(options: argparse.Namespace) -> int:
    """Make the notebooks, or compare them with what would be made; 1 when something is wrong."""
    targets = _targets(find_course(), options.steps, [False, True])
    made = [building.make(each.course, each.step, solved=each.solved) for each in targets]
    finish = _compare if options.check else _write
    status = 0
    for target, ran in zip(targets, _executed(targets, made), strict=True):
        try:
            building.verify(target.step, ran, solved=target.solved)
            if not target.solved:
                building.leave_guesses(target.step, ran.notebook)
            status |= finish(target, ran.notebook)
        except CourseError as error:
            print(error, file=sys.stderr)
            status = 1
    return status


def new(options: argparse.Namespace) -> int:
    """Copy the course into a folder of the learner."""
    new_course(Path(options.folder))
    print(f"the course is in {options.folder}; open it: cd {options.folder} && minigrad")
    return 0


def site(options: argparse.Namespace) -> int:
    """Make the course a folder of static files, or show one."""
    folder = Path(options.folder)
    if not (options.serve and (folder / "site.json").exists()):
        pyodide, docs = (value and Path(value) for value in (options.pyodide, options.docs))
        site_folder.build(find_course(), folder, pyodide, docs)
        print(
            f"the course is in {folder}, for any web server; look at it: minigrad site {folder} --serve"
        )
    if options.serve:
        site_folder.serve(folder, options.port)
    return 0


def steps(options: argparse.Namespace) -> int:
    """List the steps: number, title, time, exercises, goal."""
    course = find_course()
    for number in course.paths:
        step = course.step(number)
        facts = f"[{step.time or 'no time given'}; exercises {', '.join(step.exercises) or '-'}]"
        print(f"{number:2}  {step.title}  {facts}\n    {step.goal}")
    return 0


def recall(options: argparse.Namespace) -> int:
    """Ask what is due, or the twelve questions; 1 unless something was right."""
    course = find_course().own
    if options.test:
        return int(not recalling.examine(course.notebooks))
    last = (progress.here(course) or max(course.paths) + 1) - 1
    if not recalling.kinds(last):
        raise CourseError("do step 1 first: what passes there is asked here")
    return int(not recalling.recall(course.notebooks, last))


def diff(options: argparse.Namespace) -> int:
    """Print what one step adds to another."""
    course = find_course()
    before = course.step(options.before)
    after = course.step(options.before + 1 if options.after is None else options.after)
    found = growth.Growth(growth.definitions(before.text), growth.definitions(after.text))
    print(f"{before.name} → {after.name}")
    for line in growth.plain(found).splitlines():
        print(_coloured(line, {"+": _GREEN, "-": _RED, "@": _BLUE}.get(line[:1], "")))
    return 0


def _targets(course: Course, words: Sequence[str], kinds: Sequence[bool]) -> list[Target]:
    """The notebooks that the words name; only a step with exercises has a solved one."""
    return [
        Target(course, step, solved)
        for step in course.select(words)
        for solved in kinds
        if step.exercises or not solved
    ]


def _on_disk(target: Target) -> Notebook:
    if not target.path.exists():
        raise CourseError(f"{target.label} is missing: minigrad build {target.step.name}")
    return notebook.joined(notebook.read(target.path))


def _executed(
    targets: Sequence[Target], notebooks: Sequence[Notebook], go_on: bool = False
) -> list[Ran]:
    """Execute with a progress bar."""
    if not targets:
        return []
    with _progress(targets) as done:
        return execute.run_all(notebooks, targets[0].course.root, go_on=go_on, done=done)


@contextlib.contextmanager
def _progress(targets: Sequence[Target]) -> Iterator[Callable[[int], None]]:
    need("nbclient", "running notebooks")
    from tqdm import tqdm

    with tqdm(total=len(targets), unit="notebook", disable=None, leave=False) as bar:

        def done(index: int) -> None:
            bar.set_postfix_str(targets[index].step.name)
            bar.update()

        yield done


def _write(target: Target, made: Notebook) -> int:
    went = notebook.write(made, target.path)
    kept = f" holds your work and is kept; the fresh one stands beside it: {went.name}"
    print(target.label + (kept if went != target.path else ""))
    return 0


def _compare(target: Target, made: Notebook) -> int:
    known = target.path.exists()
    found = compare.differences(notebook.read(target.path), made) if known else ["it is missing"]
    for line in found:
        print(f"{target.label}: {line}")
    if found:
        print(f"  to mend: minigrad build {target.step.number or target.step.name}")
    return 1 if found else 0


def _coloured(text: str, colour: str) -> str:
    plain = not colour or not sys.stdout.isatty() or "NO_COLOR" in os.environ
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"
