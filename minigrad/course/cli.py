"""The ``minigrad`` command: open the course, run it, build it, check it, compare its steps.

Each command is a function of its name below; it returns the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import build as building
from . import classroom, execute, growth, isolated, launch, notebook, progress
from . import questions as recalling
from . import site as site_folder
from .execute import Ran
from .folder import Course, find_course, new_course
from .launch import need
from .notebook import Notebook
from .steps import CourseError, Step

_STEPS = "steps: 3, a range 1-4, or start; default: all"
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
    failed = 0
    for target, ran in zip(targets, _executed(map(_on_disk, targets)), strict=True):
        if ran.failure:
            failed += 1
            print(f"\n{target.label}, {ran.failure}\n{ran.failure.traceback}")
    print(f"{len(targets) - failed} of {len(targets)} notebooks run")
    return int(failed > 0)


def check(options: argparse.Namespace) -> int:
    """Execute the learner's notebooks and list their exercises; 1 unless all pass."""
    if options.answers:
        return _check_class(Path(options.answers), options.steps)
    targets = _targets(find_course().own, options.steps, [False])
    passed = total = 0
    results = _executed(map(_on_disk, targets), go_on=True)
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
    return int(passed < total)


def _check_class(folder: Path, words: Sequence[str]) -> int:
    """Execute what a class handed in and print a table; 1 unless all pass."""
    course = find_course()
    known = [step for step in course.select(words) if step.exercises]
    answers = classroom.handed_in(folder, known)
    verdicts: dict[str, dict[str, str]] = {learner: {} for learner in answers}
    read: list[tuple[str, str, Notebook]] = []
    notes: list[str] = []
    for learner, each in answers.items():
        for name, path in each.items():
            try:
                read.append((learner, name, notebook.joined(notebook.read(path))))
            except CourseError as error:  # one that is broken does not stop the others
                notes.append(str(error))
    files = [path for each in answers.values() for path in each.values() if path.is_file()]
    with _progress(len(read)) as bar:
        outcomes, put_back = isolated.run_all([each[2] for each in read], course, files, bar.update)
    for (learner, name, _), outcome in zip(read, outcomes, strict=True):
        verdicts[learner] |= outcome.verdicts
        if outcome.failure:
            notes.append(f"{learner}, {name}, {outcome.failure}")
    notes += [f"{path} was changed while the notebooks ran, and is put back" for path in put_back]
    tried = {name for each in answers.values() for name in each}
    exercises = [id for step in known if words or step.name in tried for id in step.exercises]
    print("\n".join(classroom.table(verdicts, exercises)))
    notes += classroom.print_tests(folder, answers)
    for note in notes:
        print(f"  {classroom.printable(note)}")
    return int(any(not v.get(e, "").startswith("✓") for v in verdicts.values() for e in exercises))


def build(options: argparse.Namespace) -> int:
    """Make the notebooks, or compare them with what would be made; 1 when something is wrong."""
    targets = _targets(find_course(), options.steps, [False, True])
    made = [(building.make(t.course, t.step, solved=t.solved), t.course.root) for t in targets]
    finish = _compare if options.check else _write
    status = 0
    for target, ran in zip(targets, _executed(made), strict=True):
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


def _on_disk(target: Target) -> tuple[Notebook, Path]:
    if not target.path.exists():
        raise CourseError(f"{target.label} is missing: minigrad build {target.step.name}")
    return notebook.joined(notebook.read(target.path)), target.course.root


def _executed(runs: Iterable[tuple[Notebook, Path]], go_on: bool = False) -> list[Ran]:
    """Execute notebooks, each in its root."""
    runs = list(runs)
    with _progress(len(runs)) as bar:
        return execute.run_all(runs, go_on=go_on, done=bar.update)


def _progress(total: int) -> Any:
    """A bar that moves on with each notebook."""
    need("nbclient", "running notebooks")
    from tqdm import tqdm

    return tqdm(total=total, unit="notebook", disable=None, leave=False)


def _write(target: Target, made: Notebook) -> int:
    went = notebook.write(made, target.path)
    kept = f" holds your work and is kept; the fresh one stands beside it: {went.name}"
    print(target.label + (kept if went != target.path else ""))
    return 0


def _compare(target: Target, made: Notebook) -> int:
    known = target.path.exists()
    found = notebook.differences(notebook.read(target.path), made) if known else ["it is missing"]
    for line in found:
        print(f"{target.label}: {line}")
    if found:
        print(f"  to mend: minigrad build {target.step.number or target.step.name}")
    return 1 if found else 0


def _coloured(text: str, colour: str) -> str:
    plain = not colour or not sys.stdout.isatty() or "NO_COLOR" in os.environ
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0, 1 for a failure, 2 for a request that makes no sense."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser, names = _parser()
    try:
        if given and (given[0] in names or given[0] in ("-h", "--help")):
            options = parser.parse_args(given)
            run: Callable[[argparse.Namespace], int] = options.run
            return run(options)
        if given and not given[0].startswith("-"):
            parser.error(f"no command {given[0]!r}; see minigrad --help")
        return launch.open_course(given)
    except CourseError as error:
        print(f"minigrad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough: minigrad steps | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> tuple[argparse.ArgumentParser, set[str]]:
    parser = argparse.ArgumentParser(
        prog="minigrad",
        description="Without a command: open the course in JupyterLab; "
        "options (--no-browser, --port=9999, …) are passed on to it.",
    )
    made = parser.add_subparsers(metavar="command")

    def command(
        run: Callable[[argparse.Namespace], int], help: str, some_steps: bool = False
    ) -> argparse.ArgumentParser:
        sub = made.add_parser(run.__name__, help=help, description=help)
        sub.set_defaults(run=run)
        if some_steps:
            sub.add_argument("steps", nargs="*", help=_STEPS)
        return sub

    sub = command(run, "execute notebooks without a browser; files stay as they are", True)
    sub.add_argument("--solved", action="store_true", help="the solved notebooks instead of yours")
    sub = command(check, "which exercises of your notebooks pass", True)
    said = "a folder per learner, or files LEARNER_stepNN_….ipynb (their code is executed!)"
    about = f"a table of a class: {said}"
    sub.add_argument("--class", dest="answers", metavar="FOLDER", help=about)
    sub = command(build, "make the notebooks from steps/; a notebook you changed is kept", True)
    about = "write nothing; say what differs from a fresh build"
    sub.add_argument("--check", action="store_true", help=about)
    sub = command(new, "copy the course into a new folder, to work in")
    sub.add_argument("folder")
    sub = command(site, "make a web site of the course, which runs in a browser")
    sub.add_argument("folder", nargs="?", default="site", help="a new folder; default: site")
    sub.add_argument("--serve", action="store_true", help="show it on this machine")
    sub.add_argument("--port", type=int, default=8000, help="where --serve shows it")
    sub.add_argument("--pyodide", metavar="FOLDER", help="Pyodide's release, to be served as well")
    sub.add_argument("--docs", metavar="FOLDER", help="finished pages to put beside the course")
    command(steps, "list the steps")
    sub = command(recall, "three minutes of questions from the steps done so far")
    about = "twelve questions, before the course and after"
    sub.add_argument("--test", action="store_true", help=about)
    sub = command(diff, "what one step adds to another, with patches")
    sub.add_argument("before", type=int)
    sub.add_argument("after", type=int, nargs="?", help="default: the step after")
    return parser, set(made.choices)


if __name__ == "__main__":
    sys.exit(main())
