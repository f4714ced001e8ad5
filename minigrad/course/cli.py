"""The ``minigrad`` command: open the course, run it, build it, check it, compare its steps."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from . import commands, launch
from .errors import CourseError

_STEPS = "steps: 3, a range 1-4, or start; default: all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0, 1 for a failure, 2 for a request that makes no sense."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser, names = _parser()
    try:
        if not given or given[0] not in {*names, "-h", "--help"}:
            return launch.open_course(_opening(parser, given))
        options = parser.parse_args(given)
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except CourseError as error:
        print(f"minigrad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough: minigrad steps | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _opening(parser: argparse.ArgumentParser, given: list[str]) -> list[str]:
    """What is passed on to JupyterLab: options; a bare word is a command that does not exist."""
    if given and not given[0].startswith("-"):
        parser.error(f"no command {given[0]!r}; see minigrad --help")
    return given


def _parser() -> tuple[argparse.ArgumentParser, set[str]]:
    parser = argparse.ArgumentParser(
        prog="minigrad",
        description="Without a command: open the course in JupyterLab; "
        "options (--no-browser, --port=9999, …) are passed on to it.",
    )
    made = parser.add_subparsers(metavar="command")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], help: str
    ) -> argparse.ArgumentParser:
        sub = made.add_parser(name, help=help, description=help)
        sub.set_defaults(run=run)
        return sub

    sub = command(
        "run", commands.run, "execute notebooks without a browser; files stay as they are"
    )
    sub.add_argument("steps", nargs="*", help=_STEPS)
    sub.add_argument("--solved", action="store_true", help="the solved notebooks instead of yours")
    sub = command("check", commands.check, "which exercises of your notebooks pass")
    sub.add_argument("steps", nargs="*", help=_STEPS)
    sub.add_argument(
        "--class",
        dest="answers",
        metavar="FOLDER",
        help="a table of a class: a folder per learner, or files LEARNER_stepNN_….ipynb (their code is executed!)",
    )
    sub = command(
        "build", commands.build, "make the notebooks from steps/; a notebook you changed is kept"
    )
    sub.add_argument("steps", nargs="*", help=_STEPS)
    sub.add_argument(
        "--check", action="store_true", help="write nothing; say what differs from a fresh build"
    )
    sub = command("new", commands.new, "copy the course into a new folder, to work in")
    sub.add_argument("folder")
    sub = command("site", commands.site, "make a web site of the course, which runs in a browser")
    sub.add_argument("folder", nargs="?", default="site", help="a new folder; default: site")
    sub.add_argument("--serve", action="store_true", help="show it on this machine")
    sub.add_argument("--port", type=int, default=8000, help="where --serve shows it")
    sub.add_argument("--pyodide", metavar="FOLDER", help="Pyodide's release, to be served as well")
    sub.add_argument("--docs", metavar="FOLDER", help="finished pages to put beside the course")
    command("steps", commands.steps, "list the steps")
    sub = command(
        "recall", commands.recall, "three minutes of questions from the steps done so far"
    )
    sub.add_argument(
        "--test", action="store_true", help="twelve questions, before the course and after"
    )
    sub = command("diff", commands.diff, "what one step adds to another, with patches")
    sub.add_argument("before", type=int)
    sub.add_argument("after", type=int, nargs="?", help="default: the step after")
    return parser, set(made.choices)


if __name__ == "__main__":
    sys.exit(main())
