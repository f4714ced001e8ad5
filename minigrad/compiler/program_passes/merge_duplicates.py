"""Common subexpressions: what is computed twice from the same values is computed once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...static.program.block import Block
from ...static.program.op_info import find_info
from ...static.program.operator import Operator
from ...static.program.program import Program
from .names import (
    forget_unused,
    held_names,
    never_written,
    replace_in_readers,
    replace_inputs,
    written_once,
)


def merge_duplicates(program: Program, keep: Iterable[str] = ()) -> Program:
    """A copy in which equal operators on equal inputs are one; ``keep`` names variables that must stay.

    >>> from minigrad import static
    >>> import minigrad as mg
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [2]); y = mg.exp(x) * mg.exp(x)
    >>> print(merge_duplicates(prog))
    # made by: merge_duplicates
    block 0:
      data x: float64[2]
      exp_0 = exp(x)
      mul_0 = mul(exp_0, exp_0)
    """
    merged = program.clone()
    held = held_names(merged) | {*keep, *merged.outputs}
    constant = never_written(merged)
    for block in merged.blocks:
        _merge(block, held, constant)
    merged.history.append("merge_duplicates")
    forget_unused(merged, set(keep))
    return merged


def _merge(block: Block, held: set[str], given: set[str]) -> None:
    fixed = written_once(block)
    known = fixed | given
    first: dict[Any, Operator] = {}
    same: dict[str, str] = {}
    ops = []
    for op in block.ops:
        replace_inputs(op, same)
        key = _key(op, fixed, known)
        if key is None or not held.isdisjoint(op.output_names):
            ops.append(op)
        elif key in first:
            same.update(zip(op.output_names, first[key].output_names, strict=True))
        else:
            first[key] = op
            ops.append(op)
    block.ops = ops
    if same:
        replace_in_readers(block, same)


def _key(op: Operator, fixed: set[str], known: set[str]) -> Any:
    """What two operators must share to be the same; None for one that must not be merged."""
    info = find_info(op.type)
    if info is None or info.forward is None or info.is_grad:
        return None
    if not fixed.issuperset(op.output_names) or not known.issuperset(op.input_names):
        return None
    attrs = {k: _contents(v) for k, v in op.attrs.items()}
    return op.type, repr(sorted(op.inputs.items())), repr(sorted(attrs.items()))


def _contents(value: Any) -> Any:
    """An attr by all it contains: the text of a large array leaves elements out."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return [*map(_contents, value)] if isinstance(value, list | tuple) else value
