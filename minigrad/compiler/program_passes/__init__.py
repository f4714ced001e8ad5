"""Passes: functions from Program to Program, one per file; together they are the ladder of the compiler.

    specialise → decompose → fold → merge_duplicates → dead_code      (then a schedule and its source, see `compiler`)

Every pass works on a copy, adds its name to ``history``, and leaves a program that prints and runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...errors import ProgramError, user_line
from ...static.program.program import Program
from .dead_code import dead_code
from .decompose import decompose
from .fold import fold
from .merge_duplicates import merge_duplicates
from .specialise import specialise

__all__ = [
    "LADDER",
    "climb",
    "dead_code",
    "decompose",
    "fold",
    "limited_depth",
    "merge_duplicates",
    "specialise",
]

#: rung → its pass, called with the program, the shapes of the feeds and the names that are fetched
LADDER: dict[str, Callable[[Program, Mapping[str, Any], list[str]], Program]] = {
    "specialise": lambda program, shapes, fetch: specialise(program, shapes),
    "decompose": lambda program, shapes, fetch: decompose(program),
    "fold": lambda program, shapes, fetch: fold(program, fetch),
    "merge_duplicates": lambda program, shapes, fetch: merge_duplicates(program, fetch),
    "dead_code": lambda program, shapes, fetch: dead_code(program, fetch),
}


def climb(
    program: Program, shapes: Mapping[str, Any], fetch: list[str]
) -> Iterator[tuple[str, Program]]:
    """Each rung with the Program that stands on it, from the first to the last.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [-1]); y = x * 2.0; z = x + 1.0
    >>> sizes = {rung: len(made.global_block().ops) for rung, made in climb(prog, {"x": (3,)}, [y.name])}
    >>> sizes["specialise"], sizes["dead_code"]
    (2, 1)
    """
    for rung, run in LADDER.items():
        program = run(program, shapes, fetch)
        yield rung, program


@contextmanager
def limited_depth() -> Iterator[None]:
    """Compile inside.  Errors: `ProgramError` where Python has no room for so many blocks inside each other."""
    try:
        yield
    except (RecursionError, SyntaxError) as error:
        raise ProgramError(
            f"the blocks of this program are nested too deep to be compiled\n  at {user_line()}\n"
            f"  repair: carry what inner loops and branches make, or run it with static.Executor()"
        ) from error
