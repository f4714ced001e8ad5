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

import numpy as np

from ..errors import ProgramError, describe, user_line
from .op_info import CONTROL, OpInfo
from .program import Block, Operator, Program, Variable, default_program

CONTROL["while"] = OpInfo("while", ("x", "params"), ("out", "scopes"), ("sub_block", "cond_block", "carried", "next", "cond"))
CONTROL["cond"] = OpInfo("cond", ("pred", "params"), ("out", "scopes"), ("sub_block", "else_block", "true_out", "false_out"))
CONTROL["recurrent"] = OpInfo(
    "recurrent", ("seq", "x", "params"), ("stacked", "out", "scopes"), ("sub_block", "steps", "carried", "next", "step_out")
)


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any]) -> list[Variable]:
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
    program = default_program()
    outer = program.current_block()
    starts = [_as_start(program, outer, v) for v in _sequence(loop_vars, "loop_vars")]
    if not starts:
        raise ProgramError(f"while_loop needs at least one loop variable\n  at {user_line()}")
    block, carried = _body_block(program, outer, starts)
    with program.block_guard(block):
        results = _sequence(body(*carried), "the loop body's result")
        next_ = _results(program, block, results, starts, "the loop body")
    cond_block = program.create_block(block.idx)
    with program.block_guard(cond_block):
        pred = program.as_variable(cond(*carried), cond_block)
        if pred.dtype.kind != "b" or pred.shape not in ((), (1,)):
            raise ProgramError(f"the condition of while_loop must be one bool, not {pred!r}\n  at {user_line()}")
    attrs = {"sub_block": block.idx, "cond_block": cond_block.idx, "carried": [v.name for v in carried],
             "next": [v.name for v in next_], "cond": pred.name}
    params = _captured(program, [block, cond_block], {pred.name})
    return _append_control(program, outer, "while", {"x": [v.name for v in starts], "params": params}, starts, attrs)["out"]


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """``true_fn()`` or ``false_fn()``, decided when the program runs; both must return the same structure.

    Only the branch taken runs; the gradient of the other is zero.  Errors: `ProgramError`.
    """
    program = default_program()
    outer = program.current_block()
    pred = program.as_variable(pred, outer)
    if pred.dtype.kind != "b" or any(n != 1 for n in pred.shape):
        raise ProgramError(f"cond decides on one bool, not on {pred!r}; compare first, or use static.if_else for one decision per row\n  at {user_line()}")
    blocks, names, kinds, raw = [], [], [], None
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        block = program.create_block(outer.idx)
        with program.block_guard(block):
            raw = function()
            results = [program.as_variable(v, block) for v in ([] if raw is None else raw if isinstance(raw, list | tuple) else [raw])]
            own = _own_names(program, block, results)
        blocks.append(block)
        names.append([v.name for v in own])
        kinds.append((type(raw) if isinstance(raw, list | tuple) else None, own))
    (kind_t, t), (kind_f, f) = kinds
    if kind_t is not kind_f or len(t) != len(f):
        raise ProgramError(f"the branches of cond return different structures: {len(t)} value(s) and {len(f)} value(s)\n  at {user_line()}")
    likes = []
    for k, (a, b) in enumerate(zip(t, f, strict=True)):
        if a.dtype != b.dtype or len(a.shape) != len(b.shape) or any(m != n and -1 not in (m, n) for m, n in zip(a.shape, b.shape, strict=True)):
            raise ProgramError(f"the branches of cond return different types for value {k}: {a!r} and {b!r}\n  at {user_line()}")
        likes.append((tuple(m if m == n else -1 for m, n in zip(a.shape, b.shape, strict=True)), a.dtype))
    attrs = {"sub_block": blocks[0].idx, "else_block": blocks[1].idx, "true_out": names[0], "false_out": names[1]}
    inputs = {"pred": [pred.name], "params": _captured(program, blocks, set())}
    outs = _append_control(program, outer, "cond", inputs, likes, attrs)["out"]
    return outs[0] if kind_t is None and outs else type_of(kind_t)(outs)


def type_of(kind: Any) -> Callable[[Any], Any]:
    """How results are packed: as the branch function packed them."""
    return tuple if kind is tuple else list


def switch(cases: Sequence[tuple[Any, Callable[[], Any]]], default: Callable[[], Any]) -> Any:
    """The first case whose condition holds: ``switch([(x > 0, f), (x < 0, g)], default=h)``."""
    if not cases:
        return default()
    pred, function = cases[0]
    return cond(pred, function, default if len(cases) == 1 else lambda: switch(cases[1:], default))


def if_else(mask: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *rows: Any) -> Any:
    """Per row: the rows where ``mask`` holds go through ``true_fn``, the others through ``false_fn``, then are put together."""
    from ..ops import merge_rows, select_rows

    program = default_program()
    mask = program.as_variable(mask, program.current_block())
    if mask.dtype.kind != "b" or len(mask.shape) != 1:
        raise ProgramError(f"if_else takes one bool per row, not {mask!r}; for one decision use static.cond\n  at {user_line()}")
    no = ~mask
    yes = true_fn(*(select_rows(r, mask) for r in rows))
    other = false_fn(*(select_rows(r, no) for r in rows))
    return merge_rows(mask, yes, other)


def static_rnn(step: Callable[..., Any], inputs: Sequence[Any], states: Sequence[Any]) -> tuple[list[Variable], list[Variable]]:
    """Run ``step(*slices, *states) -> (outputs, next_states)`` along axis 0 of the inputs.

    Returns the outputs of all steps, stacked along a new axis 0, and the final states.  An empty sequence gives empty
    outputs and the start states.
    """
    program = default_program()
    outer = program.current_block()
    seqs = [program.as_variable(v, outer) for v in _sequence(inputs, "inputs")]
    starts = [_as_start(program, outer, v) for v in _sequence(states, "states")]
    if not seqs or any(not v.shape for v in seqs):
        raise ProgramError(f"static_rnn needs sequences: Variables with time as axis 0\n  at {user_line()}")
    block, carried = _body_block(program, outer, starts)
    slices = [block.create_var(program.unique_name(f"{v.name}@step"), v.shape[1:], v.dtype, derived_stop=v.stop_gradient) for v in seqs]
    block.written.update(v.name for v in slices)
    with program.block_guard(block):
        returned = step(*slices, *carried)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ProgramError(f"the step of static_rnn returns (outputs, next_states)\n  at {user_line()}")
        outs = _own_names(program, block, [program.as_variable(v, block) for v in _sequence(returned[0], "outputs")])
        next_ = _results(program, block, _sequence(returned[1], "next_states"), starts, "the step")
    attrs = {"sub_block": block.idx, "steps": [v.name for v in slices], "carried": [v.name for v in carried],
             "next": [v.name for v in next_], "step_out": [v.name for v in outs]}
    names = {"seq": [v.name for v in seqs], "x": [v.name for v in starts], "params": _captured(program, [block], set())}
    length = seqs[0].shape[0]
    made = _append_control(program, outer, "recurrent", names, starts, attrs, [((length, *v.shape), v.dtype) for v in outs])
    return made["stacked"], made["out"]


# -- shared pieces -------------------------------------------------------------------------


def _sequence(value: Any, what: str) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if what == "loop_vars":
        raise ProgramError(f"loop_vars is a list of Variables or numbers, not {describe(value)}\n  at {user_line()}")
    return [value]


def _as_start(program: Program, outer: Block, value: Any) -> Variable:
    return program.as_variable(np.asarray(value) if isinstance(value, int | float | bool) else value, outer)


def _body_block(program: Program, outer: Block, starts: list[Variable]) -> tuple[Block, list[Variable]]:
    block = program.create_block(outer.idx)
    carried = [block.create_var(program.unique_name(f"{v.name}@step"), v.shape, v.dtype, derived_stop=v.dtype.kind != "f") for v in starts]
    block.written.update(v.name for v in carried)
    return block, carried


def _results(program: Program, block: Block, results: list[Any], starts: list[Variable], what: str) -> list[Variable]:
    made = [program.as_variable(np.asarray(v, s.dtype) if isinstance(v, int | float) else v, block) for v, s in zip(results, starts, strict=False)]
    if len(results) != len(starts):
        raise ProgramError(f"{what} returns {len(results)} value(s) for {len(starts)} loop variable(s)\n  at {user_line()}")
    for k, (start, result) in enumerate(zip(starts, made, strict=True)):
        same_shape = len(start.shape) == len(result.shape) and all(m == n or -1 in (m, n) for m, n in zip(start.shape, result.shape, strict=True))
        if start.dtype != result.dtype or not same_shape:
            raise ProgramError(
                f"{what} changes loop variable {k}: it starts as {start!r} and goes on as {result!r}.\n  at {user_line()}\n"
                f"  repair: shape and dtype must stay the same from step to step (astype, reshape, or a better start value)"
            )
    return _own_names(program, block, made)


def _own_names(program: Program, block: Block, results: list[Variable]) -> list[Variable]:
    """Give every result a name of its own, made in this block: gradients then have one place each."""
    seen: set[str] = set()
    out = []
    produced = {n for op in block.ops for n in op.output_names}
    for v in results:
        if v.name in seen or v.name not in produced:
            v = block.append_primitive(_assign(), (v,), {})
        seen.add(v.name)
        out.append(v)
    return out


def _assign() -> Any:
    from ..registry import REGISTRY

    return REGISTRY["assign"]


def _captured(program: Program, blocks: list[Block], also: set[str]) -> list[str]:
    """The outer names that these blocks read, in order of first use."""
    local = {n for b in blocks for n in b.vars}
    reads = [n for b in blocks for op in b.ops for n in op.input_names]
    return list(dict.fromkeys(n for n in [*reads, *sorted(also)] if n not in local and n != "@EMPTY@"))


def _append_control(
    program: Program, outer: Block, op_type: str, inputs: dict[str, list[str]], likes: list[Any], attrs: dict[str, Any], stacked: Any = None
) -> dict[str, list[Variable]]:
    outputs: dict[str, list[Variable]] = {}
    stop = all(outer.var(n).stop_gradient for s in ("x", "params", "seq") for n in inputs.get(s, ()))
    groups = {"stacked": stacked or [], "out": [(v.shape, v.dtype) if isinstance(v, Variable) else v for v in likes]}
    for slot, types in groups.items():
        if slot == "stacked" and stacked is None:
            continue
        outputs[slot] = [outer.create_var(program.unique_name(op_type), s, d, derived_stop=stop or d.kind != "f") for s, d in types]
    scopes = outer.create_var(program.unique_name(f"{op_type}@SCOPES"), (), np.int64, derived_stop=True)
    names = {s: [v.name for v in vs] for s, vs in outputs.items()}
    op = Operator(op_type, inputs, {**names, "scopes": [scopes.name]}, attrs)
    op.role = program.role
    outer._append(op, user=True)
    return outputs
