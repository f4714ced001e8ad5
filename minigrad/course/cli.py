"""The ``minigrad`` command: open the course, run it, build it, check it, compare its steps.

Each command is a function of its name below; it returns the exit status.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..primitives.arguments import Function
from . import build as building
from . import classroom, execute, growth, isolated, launch, notebook, progress
from . import questions as recalling
from . import site as site_folder
from .check import PASSED, coloured
from .execute import Ran
from .folder import Course, find_course, new_course
from .notebook import Notebook
from .steps import CourseError, Step

_STEPS = "steps: 3, a range 1-4, or start; default: all"


class Target(NamedTuple):
    """One notebook of the course: the learner's or the solved one of a step."""

    course: Course
    step: Step
    solved: bool

    @property
    def path(self) -> Path:
        """Where it stands."""
        folder = self.course.notebooks / ("solved" if self.solved else "")
        return folder / f"{self.step.name}.ipynb"

    @property
    def label(self) -> str:
        """The path as seen from the folder of the course."""
        return self.path.relative_to(self.course.root).as_posix()


def run(options: argparse.Namespace) -> int:
    """Execute notebooks in memory; 1 when a cell fails."""
    targets = _targets(find_course().own, options.steps, [options.solved])
    failed = 0
    for target, ran in _executed(targets):
        if ran.failure:
            failed += 1
            print(f"\n{target.label}, {ran.failure}\n{ran.failure.traceback}")
    print(f"{len(targets) - failed} of {len(targets)} notebooks run")
    return int(failed > 0)


def check(options: argparse.Namespace) -> int:
    """Execute the learner's notebooks and list their exercises; 1 unless all pass."""
    if options.answers:
        return _check_class(options.answers, options.steps)
    targets = _targets(find_course().own, options.steps, [False])
    lines = []
    for target, ran in _executed(targets, go_on=True):
        verdicts = execute.verdicts(ran.notebook)
        for id in target.step.exercises:
            line = classroom.printable(verdicts.get(id, f"✗ {id}: its check did not run"))
            _show(line)
            lines.append(line)
        if ran.failure:
            print(f"  {target.label}, {classroom.printable(str(ran.failure))}")
    passed = sum(line.startswith(PASSED) for line in lines)
    print(f"{passed} of {len(lines)} exercises pass")
    return int(passed < len(lines))


def _check_class(folder: Path, words: Sequence[str]) -> int:
    """Execute what a class handed in and print a table; 1 unless all pass."""
    course = find_course()
    known = [step for step in course.select(words) if step.exercises]
    answers, notes = classroom.handed_in(folder, known, course.select())
    paths = {(learner, step): own[step] for learner, own in answers.items() for step in own}
    notebooks: dict[tuple[str, str], Notebook] = {}
    for place, path in paths.items():
        try:
            notebooks[place] = notebook.read(path)
        except CourseError as error:  # one that is broken does not stop the others
            notes.append(str(error))
    outcomes, changes = isolated.run_all([*notebooks.values()], course, [*paths.values()])
    verdicts: dict[str, dict[str, str]] = {learner: {} for learner in answers}
    own = {step.name: step.exercises for step in known}
    for (learner, name), outcome in zip(notebooks, outcomes, strict=True):
        verdicts[learner] |= {id: said for id, said in outcome.verdicts.items() if id in own[name]}
        if outcome.failure:
            notes.append(f"{learner}, {name}, {outcome.failure}")
    tried = {name for _, name in paths}
    exercises = [id for step in known if words or step.name in tried for id in step.exercises]
    print("\n".join(classroom.table(verdicts, exercises)))
    for note in [*notes, *changes, *classroom.print_tests(folder, answers)]:
        print(f"  {classroom.printable(note)}")
    marks = {said.get(id, "")[:1] for said in verdicts.values() for id in exercises}
    return int(marks != {PASSED})


def build(options: argparse.Namespace) -> int:
    """Make the notebooks, or compare them with what would be made; 1 when something is wrong."""
    course = find_course()
    targets = _targets(course, options.steps, [False, True])
    fresh = [building.make(course, target.step, solved=target.solved) for target in targets]
    results = execute.run_all(fresh, course.root)
    status = 0
    for target, ran in zip(targets, results, strict=True):
        try:
            building.verify(target.step, ran, solved=target.solved)
            if not target.solved:
                building.leave_guesses(target.step, ran.notebook)
            if options.check:
                lines = ["it is missing"]
                if target.path.exists():
                    lines = notebook.differences(notebook.read(target.path), ran.notebook)
                for line in lines:
                    print(f"{target.label}: {line}")
                if lines:
                    print(f"  to mend: minigrad build {target.step.number or target.step.name}")
                    status = 1
                continue
            path = notebook.write(ran.notebook, target.path)
            yours = f" holds your work and is kept; the fresh one stands beside it: {path.name}"
            print(target.label + (yours if path != target.path else ""))
        except CourseError as error:
            print(error, file=sys.stderr)
            status = 1
    return status


def new(options: argparse.Namespace) -> int:
    """Copy the course into a folder of the learner."""
    new_course(options.folder)
    print(f"the course is in {options.folder}; open it: cd {options.folder} && minigrad")
    return 0


def site(options: argparse.Namespace) -> int:
    """Make the course a folder of static files, or show one."""
    folder = options.folder
    if not (options.serve and (folder / "site.json").exists()):
        site_folder.build(find_course(), folder, options.pyodide, options.docs)
        print(f"the course is in {folder}; look at it: minigrad site {folder} --serve")
    if options.serve:
        site_folder.serve(folder, options.port)
    return 0


def steps(options: argparse.Namespace) -> int:
    """List the steps: number, title, time, exercises, goal."""
    course = find_course()
    for number in course.paths:
        step = course.step(number)
        time, goal = step.front("Time") or "no time given", step.front("Goal")
        exercises = ", ".join(step.exercises) or "-"
        print(f"{number:2}  {step.title}  [{time}; exercises {exercises}]\n    {goal}")
    return 0


def recall(options: argparse.Namespace) -> int:
    """Ask what is due, or the twelve questions; 1 unless something was right."""
    course = find_course().own
    if options.test:
        return int(not recalling.examine(course.notebooks))
    step = progress.here(course)
    last = step.number - 1 if step and step.number else max(course.paths)
    if not recalling.kinds(last):
        raise CourseError("do step 1 first: what passes there is asked here")
    return int(not recalling.recall(course.notebooks, last))


def diff(options: argparse.Namespace) -> int:
    """Print what one step adds to another."""
    course = find_course()
    before = course.step(options.before)
    after = course.step(options.before + 1 if options.after is None else options.after)
    grown = growth.Growth(growth.definitions(before.text), growth.definitions(after.text))
    print(f"{before.name} → {after.name}")
    for line in growth.plain(grown).splitlines():
        _show(line)
    return 0


def _targets(course: Course, words: Sequence[str], kinds: Sequence[bool]) -> list[Target]:
    """The notebooks that the words name; only a step with exercises has a solved one."""
    return [
        Target(course, step, solved)
        for step in course.select(words)
        for solved in kinds
        if step.exercises or not solved
    ]


def _executed(targets: Sequence[Target], go_on: bool = False) -> Iterable[tuple[Target, Ran]]:
    """The notebooks as they stand, executed in the folder of their course; each as it comes."""
    for target in targets:
        if not target.path.exists():
            raise CourseError(f"{target.label} is missing: minigrad build {target.step.name}")
    runs = [notebook.read(target.path) for target in targets]
    root = targets[0].course.root if targets else Path()
    return zip(targets, execute.run_all(runs, root, go_on=go_on), strict=True)


def _show(line: str) -> None:
    """Print a line, on a terminal in the colour of the sign that it begins with."""
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    print(line if plain else coloured(line), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0, 1 for a failure, 2 for a request that makes no sense."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser, commands = _parser()
    try:
        if words and words[0] in (*commands, "-h", "--help"):
            options = parser.parse_args(words)
            return int(options.run(options))
        if words and not words[0].startswith("-"):
            parser.error(f"no command {words[0]!r}; see minigrad --help")
        return launch.open_course(words)
    except CourseError as error:
        print(f"minigrad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough: minigrad steps | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> tuple[argparse.ArgumentParser, Iterable[str]]:
    """The parser, and the names of the commands."""
    parser = argparse.ArgumentParser(
        prog="minigrad",
        description="Without a command: open the course in JupyterLab; "
        "options (--no-browser, --port=9999, …) are passed on to it.",
    )
    commands = parser.add_subparsers(metavar="command")

    def command(run: Function, help: str) -> Function:
        subparser = commands.add_parser(run.__name__, help=help, description=help)
        subparser.set_defaults(run=run)
        return subparser.add_argument

    add = command(run, "execute notebooks without a browser; files stay as they are")
    add("steps", nargs="*", help=_STEPS)
    add("--solved", action="store_true", help="the solved notebooks instead of yours")
    add = command(check, "which exercises of your notebooks pass")
    add("steps", nargs="*", help=_STEPS)
    said = "a folder per learner, or files LEARNER_stepNN_….ipynb (their code is executed!)"
    add("--class", dest="answers", type=Path, metavar="FOLDER", help=f"a table of a class: {said}")
    add = command(build, "make the notebooks from steps/; a notebook you changed is kept")
    add("steps", nargs="*", help=_STEPS)
    about = "write nothing; say what differs from a fresh build"
    add("--check", action="store_true", help=about)
    add = command(new, "copy the course into a new folder, to work in")
    add("folder", type=Path)
    add = command(site, "make a web site of the course, which runs in a browser")
    add("folder", type=Path, nargs="?", default=Path("site"), help="a new folder; default: site")
    add("--serve", action="store_true", help="show it on this machine")
    add("--port", type=int, default=8000, help="where --serve shows it")
    add("--pyodide", type=Path, metavar="FOLDER", help="Pyodide's release, to be served as well")
    add("--docs", type=Path, metavar="FOLDER", help="finished pages to put beside the course")
    command(steps, "list the steps")
    add = command(recall, "three minutes of questions from the steps done so far")
    add("--test", action="store_true", help="twelve questions, before the course and after")
    add = command(diff, "what one step adds to another, with patches")
    add("before", type=int)
    add("after", type=int, nargs="?", help="default: the step after")
    return parser, commands.choices


if __name__ == "__main__":
    sys.exit(main())
