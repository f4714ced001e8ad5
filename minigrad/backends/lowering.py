"""What every backend starts from: a program for given shapes, in primitives only."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from ..errors import ProgramError, did_you_mean, user_line
from ..primitives.registry import Primitive
from ..static.passes import climb
from ..static.program.op_info import find_info
from ..static.program.program import Operator, Program
from ..static.run.kernels import arguments


def lowered(program: Program, shapes: Mapping[str, tuple[int, ...]], fetch: list[str]) -> Program:
    """The rungs of the compiler that are programs: open sizes filled in, grad ops written out, duplicates merged."""
    *_, (_, made) = climb(program, shapes, fetch)
    return made


def primitive_of(op: Operator, backend: str) -> Primitive:
    """The primitive of an operator.  Errors: `ProgramError` for anything else, and types that are no identifiers."""
    info = find_info(op.type)
    if info is None or info.forward is None or info.is_grad or not op.type.isidentifier():
        raise ProgramError(
            f"{op.type} has no counterpart in {backend}.\n  at {op.source_line}\n"
            f"  repair: run it with static.Executor()"
        )
    return info.forward


def named_arguments(
    p: Primitive, op: Operator, shape_of: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the kernel is called with: `Name`s and numbers for inputs, and the attrs."""
    slots = {slot: [Name(n) for n in names] for slot, names in op.inputs.items()}
    return arguments(p, slots, op.attrs, shape_of)


class Name(str):
    """A variable's name, where a number or a text might stand, too."""


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
