"""static_rnn: a step, run along the first axis of sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ProgramError, describe, refusal
from .control_builders import (
    all_or_nothing,
    append_control,
    as_start,
    body_block,
    captured,
    check_callable,
    handed_in,
    next_values,
    own_names,
    sequence,
)  # fmt: skip
from .op_info import CONTROL, OpInfo
from .program import Block, Program, Variable, default_program

CONTROL["recurrent"] = OpInfo(
    "recurrent",
    ("seq", "x", "params"),
    ("stacked", "out", "scopes"),
    ("sub_block", "steps", "carried", "next", "step_out"),
)


@all_or_nothing
def static_rnn(
    step: Callable[..., Any], inputs: Sequence[Any], states: Sequence[Any]
) -> tuple[list[Variable], list[Variable]]:
    """Run ``step(*slices, *states) -> (outputs, next_states)`` along axis 0 of the inputs.

    Returns the outputs of all steps, stacked along a new axis 0, and the final states.  An empty sequence gives empty
    outputs and the start states.  Errors: `ProgramError`.

    >>> import numpy as np
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [-1])
    ...     (sums,), (last,) = static.static_rnn(lambda x, s: ([s + x], [s + x]), [x], [0.0])
    >>> static.Executor().run(prog, feed={"x": np.array([1.0, 2.0, 3.0])}, fetch_list=[sums, last])
    [array([1., 3., 6.]), array(6.)]
    """
    check_callable(step, "step")
    program = default_program()
    outer = program.current_block()
    seqs = _sequences(program, outer, inputs)
    starts = [as_start(program, outer, v) for v in sequence(states, "states")]
    block, carried = body_block(program, outer, starts)
    slices = [handed_in(block, v, v.shape[1:], v.dtype.kind != "f") for v in seqs]
    with program.block_guard(block):
        returned = step(*slices, *carried)
        if not isinstance(returned, tuple) or len(returned) != 2:
            what = (
                f"the step of static_rnn returns (outputs, next_states), not {describe(returned)}"
            )
            raise refusal(what, "return [out, …], [state, …]", ProgramError)
        outs, states_ = (sequence(r, "a result of the step") for r in returned)
        outs = own_names(block, [program.as_variable(v, block) for v in outs])
        next_ = next_values(program, block, states_, starts, "the step", {v.name for v in outs})
    attrs = {
        "sub_block": block.idx,
        "steps": [v.name for v in slices],
        "carried": [v.name for v in carried],
        "next": [v.name for v in next_],
        "step_out": [v.name for v in outs],
    }
    names = {
        "seq": [v.name for v in seqs],
        "x": [v.name for v in starts],
        "params": captured([block]),
    }
    stacked = [((seqs[0].shape[0], *v.shape), v.dtype) for v in outs]
    final = [(v.shape, v.dtype) for v in starts]
    made = append_control(outer, "recurrent", names, attrs, stacked=stacked, out=final)
    return made["stacked"], made["out"]


def _sequences(program: Program, outer: Block, inputs: Any) -> list[Variable]:
    seqs = [program.as_variable(v, outer) for v in sequence(inputs, "inputs")]
    if not seqs or any(not v.shape for v in seqs):
        what = "static_rnn needs sequences: Variables with time as axis 0"
        raise refusal(what, "inputs=[x] with x of shape [steps, …]", ProgramError)
    if len({v.shape[0] for v in seqs} - {-1}) > 1:
        what = f"the sequences of static_rnn have different lengths: {seqs}"
        raise refusal(what, "cut or fill them up to one length", ProgramError)
    return seqs
