"""What every backend starts from: a program for given shapes, in primitives only."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from ..compiler.program_passes import climb
from ..errors import ProgramError, did_you_mean, user_line
from ..static.program.program import Program


def lowered(program: Program, shapes: Mapping[str, tuple[int, ...]], fetch: list[str]) -> Program:
    """The rungs of the compiler that are programs: open sizes filled in, grad ops written out, duplicates merged."""
    *_, (_, made) = climb(program, shapes, fetch)
    return made


def needs(package: str, extra: str, what: str) -> None:
    """Errors: `ProgramError` with the command that installs the extra, if the package is not there."""
    if find_spec(package) is None:
        raise ProgramError(
            f"{what} needs {package}, which is not installed.\n  at {user_line()}\n"
            f'  repair: pip install "minigrad[{extra}]"'
        )


def on_backend(
    backend: str,
    program: Program,
    feed: Any,
    fetch: Any,
    executor: Any,
    max_steps: int | None,
) -> Any:
    """What ``static.compile(..., backend=...)`` returns.  Errors: `ProgramError` if there is no such backend here."""
    if backend != "jax":
        raise ProgramError(
            f"there is no backend {backend!r}{did_you_mean(backend, ['numpy', 'jax'])}\n  at {user_line()}"
        )
    needs("jax", "jax", 'backend="jax"')
    from .jax.step import JaxStep

    return JaxStep(program, feed, fetch, executor, max_steps)
