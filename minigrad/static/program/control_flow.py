"""Control flow as operators that hold blocks: cond, while_loop, static_rnn, switch, per-row if_else.

A loop is written without overwriting: the body reads the *carried* values of its step and computes the *next* ones,
under new names; the executor hands them on.  What a block reads from outside is listed in the slot ``params``, so a
loop looks to its surroundings like any op with inputs and outputs, and nests to any depth.

    while       x: start values · params → out: final values · scopes: one per step
                sub_block: the body; cond_block: the condition, evaluated in the scope of the step
    cond        pred · params → out · scopes;  sub_block: if true; else_block: if false
    recurrent   seq: sequences, cut along axis 0 · x: start states · params → stacked · out · scopes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import MinigradError, ProgramError, describe, refusal
from ...primitives.arguments import as_list
from .control_builders import (
    all_or_nothing,
    append_control,
    as_start,
    body_block,
    captured,
    check_callable,
    next_values,
    own_names,
    same_types,
    sequence,
)  # fmt: skip
from .op_info import CONTROL, OpInfo
from .program import Block, Program, Variable, default_program

CONTROL["while"] = OpInfo(
    "while",
    ("x", "params"),
    ("out", "scopes"),
    ("sub_block", "cond_block", "carried", "next", "cond"),
)
CONTROL["cond"] = OpInfo(
    "cond",
    ("pred", "params"),
    ("out", "scopes"),
    ("sub_block", "else_block", "true_out", "false_out"),
)


@all_or_nothing
def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any]
) -> list[Variable]:
    """Repeat ``body`` while ``cond`` holds; both take the loop variables, ``body`` returns their next values.

    Returns the final values.  Shapes and dtypes must stay the same from step to step.  A loop of no step at all
    returns its start values.  Errors: `ProgramError`.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     i, s = static.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s * 2.0), [0, 1.0])
    >>> static.Executor().run(prog, fetch_list=[s])
    [array(32.)]
    """
    check_callable(cond, "cond")
    check_callable(body, "body")
    program = default_program()
    outer = program.current_block()
    starts = [as_start(program, outer, v) for v in sequence(loop_vars, "loop_vars")]
    if not starts:
        what = "while_loop needs at least one loop variable"
        raise refusal(what, "loop_vars=[0], which counts the steps", ProgramError)
    block, carried = body_block(program, outer, starts)
    with program.block_guard(block):
        returned = sequence(body(*carried), "the loop body's result")
        next_ = next_values(program, block, returned, starts, "the loop body")
    cond_block = program.create_block(block.idx)
    with program.block_guard(cond_block):
        pred = _one_bool(
            program, cond_block, cond(*carried), "while_loop goes on while one bool holds"
        )
    attrs = {
        "sub_block": block.idx,
        "cond_block": cond_block.idx,
        "carried": [v.name for v in carried],
        "next": [v.name for v in next_],
        "cond": pred.name,
    }
    params = captured([block, cond_block], [pred.name])
    inputs = {"x": [v.name for v in starts], "params": params}
    return append_control(outer, "while", inputs, attrs, out=[(v.shape, v.dtype) for v in starts])[
        "out"
    ]


def _one_bool(program: Program, block: Block, value: Any, what: str) -> Variable:
    pred = program.as_variable(value, block)
    if pred.dtype.kind != "b" or any(n != 1 for n in pred.shape):
        raise refusal(
            f"{what}, not {pred!r}",
            "compare first (x > 0), or use static.if_else for one decision per row",
            ProgramError,
        )
    return pred


@all_or_nothing
def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """``true_fn()`` or ``false_fn()``, decided when the program runs; both must return the same structure.

    Only the branch taken runs; the gradient of the other is zero.  Errors: `ProgramError`.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [])
    ...     y = static.cond(x > 0, lambda: x * 2.0, lambda: -x)
    >>> static.Executor().run(prog, feed={"x": -3.0}, fetch_list=[y])
    [array(3.)]
    """
    check_callable(true_fn, "true_fn")
    check_callable(false_fn, "false_fn")
    program = default_program()
    outer = program.current_block()
    pred = _one_bool(program, outer, pred, "cond decides on one bool")
    true, kind, yes = _branch(program, outer, true_fn)
    false, other, no = _branch(program, outer, false_fn)
    if kind is not other or len(yes) != len(no):
        raise _different("cond", _shown(kind, yes), _shown(other, no))
    for k, (a, b) in enumerate(zip(yes, no, strict=True)):
        if not same_types(a, b):
            raise refusal(
                f"the branches of cond return different types for value {k}: {a!r} and {b!r}",
                "one shape and dtype for both: reshape, broadcast_to or astype in one of them",
                ProgramError,
            )
    attrs = {
        "sub_block": true.idx,
        "else_block": false.idx,
        "true_out": [v.name for v in yes],
        "false_out": [v.name for v in no],
    }
    inputs = {"pred": [pred.name], "params": captured([true, false])}
    types = [(_either(a.shape, b.shape), a.dtype) for a, b in zip(yes, no, strict=True)]
    outs = append_control(outer, "cond", inputs, attrs, out=types)["out"]
    return outs[0] if kind is None else kind(outs)


def _branch(
    program: Program, outer: Block, function: Callable[[], Any]
) -> tuple[Block, type | None, list[Variable]]:
    """The block of a branch, how it packs its results (None: one bare value), and the results."""
    block = program.create_block(outer.idx)
    with program.block_guard(block):
        raw = function()
        kind = (
            tuple
            if isinstance(raw, tuple)
            else list
            if isinstance(raw, list) or raw is None
            else None
        )
        values = [] if raw is None else [raw] if kind is None else raw
        return block, kind, own_names(block, [program.as_variable(v, block) for v in values])


def _shown(kind: type | None, values: Sequence[Any]) -> str:
    return "one value" if kind is None else f"a {kind.__name__} of {len(values)}"


def _different(name: str, yes: str, no: str) -> MinigradError:
    """What to raise for two branches whose results do not go together."""
    what = f"the branches of {name} return different structures: {yes} and {no}"
    return refusal(what, "return the same number of values from both", ProgramError)


def _either(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(m if m == n else -1 for m, n in zip(a, b, strict=True))


def switch(cases: Sequence[tuple[Any, Callable[[], Any]]], default: Callable[[], Any]) -> Any:
    """The first case whose condition holds: ``switch([(x > 0, f), (x < 0, g)], default=h)``.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [])
    ...     y = static.switch([(x > 0, lambda: x * 1.0), (x < 0, lambda: x * -1.0)], default=lambda: x + 9.0)
    >>> [static.Executor().run(prog, {"x": v}, [y])[0].item() for v in (-2.0, 0.0, 3.0)]
    [2.0, 9.0, 3.0]
    """
    check_callable(default, "default")
    if not isinstance(cases, list | tuple) or not all(
        isinstance(c, list | tuple) and len(c) == 2 for c in cases
    ):
        what = "switch takes a list of pairs (condition, function)"
        advice = "static.switch([(x > 0, lambda: x)], default=lambda: -x)"
        raise refusal(what, advice, ProgramError)
    if not cases:
        return default()
    (pred, function), rest = cases[0], cases[1:]
    return cond(pred, function, (lambda: switch(rest, default)) if rest else default)


@all_or_nothing
def if_else(
    mask: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *rows: Any
) -> Any:
    """Per row: the rows where ``mask`` holds go through ``true_fn``, the others through ``false_fn``.

    Both take the chosen rows of each of ``rows``; their results are put together in the order of the mask.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [3])
    ...     y = static.if_else(x > 0, lambda rows: rows * 10.0, lambda rows: rows * 0.0, x)
    >>> static.Executor().run(prog, {"x": [1.0, -2.0, 3.0]}, [y])
    [array([10., -0., 30.])]
    """
    from ...ops import merge_rows, select_rows

    check_callable(true_fn, "true_fn")
    check_callable(false_fn, "false_fn")
    program = default_program()
    mask = program.as_variable(mask, program.current_block())
    if mask.dtype.kind != "b" or len(mask.shape) != 1:
        what = f"if_else takes one bool per row, not {mask!r}"
        advice = "mask=x > 0 with x of shape [rows]; static.cond for one decision"
        raise refusal(what, advice, ProgramError)
    no = ~mask
    yes = true_fn(*(select_rows(r, mask) for r in rows))
    other = false_fn(*(select_rows(r, no) for r in rows))
    kind, kind_no = (type(v) if isinstance(v, list | tuple) else None for v in (yes, other))
    parts, parts_no = as_list(yes), as_list(other)
    if (kind is None) != (kind_no is None) or len(parts) != len(parts_no):
        raise _different("if_else", _shown(kind, parts), _shown(kind_no, parts_no))
    for value in (*parts, *parts_no):
        if not getattr(value, "shape", ()):
            what = f"the branches of if_else return rows, not {describe(value)}"
            raise refusal(what, "a row for each that came in: rows * 0.0 + 1.0", ProgramError)
    merged = [merge_rows(mask, a, b) for a, b in zip(parts, parts_no, strict=True)]
    return merged[0] if kind is None else kind(merged)
