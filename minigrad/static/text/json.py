"""Programs as JSON: a closed schema, byte-identical from save to load to save, start values included.

    {"format": "minigrad program", "version": 1, "history": […], "inputs": […], "outputs": […],
     "error_clips": {name: [min, max], …},
     "pruned": [[grad op, why it was not made], …],
     "backward": [[block, [targets], [names cut], [[variable, gradient], …]], …],
     "blocks": [{"parent": -1, "forward": -1,
                 "variables": [[name, kind, dtype, shape, stop_gradient, derived stop_gradient], …],
                 "operators": [{"type": …, "role": …, "inputs": {slot: [names]},
                                "outputs": …, "attrs": …, "of": [block, op]}, …]}, …],
     "initial": {name: base64 of the little-endian bytes, …}}

``pruned`` and ``backward`` stand there if a backward part was appended.

`loader` reads it back.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from ...errors import ProgramFormatError, refusal
from ..program.program import Block, Operator, Program, Variable
from .literals import from_plain, to_plain

FORMAT, VERSION = "minigrad program", 1


def to_json(program: Program) -> str:
    """The JSON of a program.  Errors: `ProgramFormatError` if an attr cannot be stored."""
    place = {id(op): [b.idx, k] for b in program.blocks for k, op in enumerate(b.ops)}
    lines = [
        f'{{"format": {_text(FORMAT)}, "version": {VERSION}, "history": {_text(program.history)},',
        f' "inputs": {_text(program.inputs)}, "outputs": {_text(program.outputs)},',
        f' "error_clips": {_text({n: to_plain(list(c)) for n, c in program.error_clips.items()})},',
        *_backward_lines(program),
        ' "blocks": [',
        ",\n".join(_block_text(b, place) for b in program.blocks),
        " ],",
        ' "initial": {',
        ",\n".join(f"  {_text(n)}: {_text(_bytes_of(v))}" for n, v in program.initial.items()),
        " }}",
    ]
    return "\n".join(lines) + "\n"


def _backward_lines(program: Program) -> list[str]:
    if not program.backward_calls and not program.pruned:
        return []
    calls = [
        [c.block, c.targets, sorted(c.no_grad), list(c.gradients.items())]
        for c in program.backward_calls
    ]
    return [f' "pruned": {_text(program.pruned)},', f' "backward": {_text(calls)},']


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _block_text(block: Block, place: dict[int, list[int]]) -> str:
    variables = ",\n".join(f"    {_text(_variable_data(v))}" for v in block.vars.values())
    operators = ",\n".join(f"    {_text(_operator_data(op, place))}" for op in block.ops)
    return (
        f'  {{"parent": {block.parent}, "forward": {block.forward_block},\n   "variables": [\n{variables}\n   ],\n'
        f'   "operators": [\n{operators}\n   ]}}'
    )


def _variable_data(v: Variable) -> list[Any]:
    kind = (
        "data" if v.is_data else ("param" if v.trainable else "const") if v.persistable else "var"
    )
    return [v.name, kind, v.dtype.name, list(v.shape), v._stop, v._derived_stop]


def _operator_data(op: Operator, place: dict[int, list[int]]) -> dict[str, Any]:
    try:
        attrs = {k: to_plain(v) for k, v in op.attrs.items()}
        for plain in attrs.values():
            from_plain(plain)  # what cannot be read is not written
    except (TypeError, ValueError) as error:
        advice = "numbers, texts, arrays, dtypes, slices, or tuples of these"
        raise refusal(f"{op.type}: {error}", advice, ProgramFormatError) from None
    return {
        "type": op.type, "role": op.role, "inputs": op.inputs, "outputs": op.outputs, "attrs": attrs,
        "of": place.get(id(op.forward_op)),
    }  # fmt: skip


def _bytes_of(value: np.ndarray[Any, Any]) -> str:
    data = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(data.tobytes()).decode("ascii")
