"""What the builders of control flow share: blocks for bodies, results with names of their own, what is captured."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ...errors import ProgramError, describe, refusal
from ...ops.infer import fits
from ...primitives.registry import REGISTRY
from .infer import Type
from .program import EMPTY, Block, Operator, Program, Variable, default_program

P = ParamSpec("P")
R = TypeVar("R")


def all_or_nothing(build: Callable[P, R]) -> Callable[P, R]:
    """If building fails, the program is as it was before the call."""

    @wraps(build)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with default_program().transaction():
            return build(*args, **kwargs)

    return guarded


def check_callable(function: Any, what: str) -> None:
    """Errors: `ProgramError` unless ``function`` can be called."""
    if not callable(function):
        advice = f"{what}=lambda …: …, or the name of a function without calling it"
        raise refusal(f"{what} is a function, not {describe(function)}", advice, ProgramError)


def sequence(value: Any, what: str) -> list[Any]:
    """Several values as a list; one value as a list of one."""
    if isinstance(value, list | tuple):
        return list(value)
    if what == "loop_vars":
        what = f"loop_vars is a list of Variables or numbers, not {describe(value)}"
        raise refusal(what, "loop_vars=[0, x]", ProgramError)
    return [value]


def as_start(program: Program, outer: Block, value: Any) -> Variable:
    """What a loop starts from; numbers become constants."""
    number = isinstance(value, int | float | bool)
    return program.as_variable(np.asarray(value) if number else value, outer)


def body_block(
    program: Program, outer: Block, starts: list[Variable]
) -> tuple[Block, list[Variable]]:
    """A block for the body of a loop, and its carried values."""
    block = program.create_block(outer.idx)
    return block, [handed_in(block, v, v.shape, v.dtype.kind != "f") for v in starts]


def handed_in(block: Block, v: Variable, shape: tuple[int, ...], stop: bool) -> Variable:
    """What a step sees of a value of the loop: a variable of the body that nothing in it has to write."""
    name = block.program.unique_name(f"{v.name}@step")
    block.written.add(name)
    return block.create_var(name, shape, v.dtype, derived_stop=stop)


def same_types(a: Variable, b: Variable) -> bool:
    """Whether two Variables can take turns."""
    return a.dtype == b.dtype and fits(a.shape, b.shape)


def next_values(
    program: Program,
    block: Block,
    values: list[Any],
    starts: list[Variable],
    what: str,
    taken: Container[str] = (),
) -> list[Variable]:
    """What a step hands on, checked against what the loop started from."""
    if len(values) != len(starts):
        raise refusal(
            f"{what} returns {len(values)} value(s) for {len(starts)} loop variable(s)",
            "return the next value of every loop variable, in their order",
            ProgramError,
        )
    made = []
    for k, (start, value) in enumerate(zip(starts, values, strict=True)):
        if value is None:
            what = f"{what} returns None for loop variable {k}"
            raise refusal(what, "return the next value of every loop variable", ProgramError)
        number = isinstance(value, int | float)
        result = program.as_variable(np.asarray(value, start.dtype) if number else value, block)
        if not same_types(start, result):
            raise refusal(
                f"{what} changes loop variable {k}: it starts as {start!r} and goes on as "
                f"{result!r}",
                "shape and dtype must stay the same from step to step (astype, reshape, or "
                "a better start value)",
                ProgramError,
            )
        made.append(result)
    return own_names(block, made, taken)


def own_names(block: Block, values: list[Variable], taken: Container[str] = ()) -> list[Variable]:
    """Give every result a name of its own, made in this block: gradients then have one place each."""
    produced = {n for op in block.ops for n in op.output_names}
    seen: set[str] = set()
    out = []
    for v in values:
        if v.name in seen or v.name in taken or v.name not in produced:
            v = block.append_primitive(REGISTRY["assign"], (v,), {})
        seen.add(v.name)
        out.append(v)
    return out


def captured(blocks: list[Block], also: Sequence[str] = ()) -> list[str]:
    """The outer names that these blocks read, in order of first use."""
    local = {EMPTY, *(n for b in blocks for n in b.vars)}
    reads = [n for b in blocks for op in b.ops for n in op.input_names]
    return [n for n in dict.fromkeys([*reads, *also]) if n not in local]


def append_control(
    outer: Block,
    op_type: str,
    inputs: dict[str, list[str]],
    attrs: dict[str, Any],
    **types: list[Type],
) -> dict[str, list[Variable]]:
    """Append the operator; ``types`` are those of its outputs by slot."""
    unique = outer.program.unique_name
    reads = [n for s in ("x", "params", "seq") for n in inputs.get(s, ())]
    stop = all(outer.var(n).stop_gradient for n in reads)
    made = {
        slot: [
            outer.create_var(unique(op_type), s, d, derived_stop=stop or d.kind != "f")
            for s, d in ts
        ]
        for slot, ts in types.items()
    }
    scopes = outer.create_var(unique(f"{op_type}@SCOPES"), (), np.int64, derived_stop=True)
    outputs = {s: [v.name for v in vs] for s, vs in made.items()}
    op = Operator(op_type, inputs, {**outputs, "scopes": [scopes.name]}, attrs, outer.program.role)
    outer._append(op, user=True)
    return made
