"""What is known before the program runs is worked out now.

    a slot ``shape_like`` of a known shape      the attr ``shape``
    an elementwise op on constants, or one      ``fill_constant``
    number in another shape

The gradients of a sum are such constants: ones, times the factors on their way.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from ...primitives.registry import Primitive
from ...static.program.block import Block
from ...static.program.op_info import find_info
from ...static.program.operator import Operator
from ...static.program.program import Program
from ...static.run.kernels import like_value, run_kernel
from .names import forget_unused, written_once

_MOVES = {
    "reshape",
    "broadcast_to",
    "expand_reduced",
    "over_count",
    "expand_dims",
    "squeeze",
    "assign",
}
_LIKE = {"fill_zeros_like": 0.0, "fill_ones_like": 1.0}
_LIMIT = 1_000_000  #: elements of a result that is worked out to see whether they are all alike


def fold(program: Program, keep: Iterable[str] = ()) -> Program:
    """A copy in which everything known is worked out; ``keep`` names variables that must stay.

    Sums of constants are left as they are: how they are rounded depends on where the terms lie in memory.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", 3.0); y = w * w; pairs = static.append_backward(y)
    >>> from minigrad.compiler.program_passes import decompose
    >>> [op.type for op in fold(decompose(prog), ["w@GRAD"]).global_block().ops]
    ['mul', 'fill_constant', 'mul', 'mul', 'sum']
    """
    folded = program.clone()
    for block in folded.blocks:
        once = written_once(block)
        constants: dict[str, dict[str, Any]] = {}  # name → the attrs of its fill_constant
        for k, op in enumerate(block.ops):
            info = find_info(op.type)
            if info is not None and info.forward is not None and not info.is_grad:
                _shapes_as_attrs(block, op)
                op = block.ops[k] = _filled(block, op, info.forward, constants)
                if op.type == "fill_constant" and op.output_names[0] in once:
                    constants[op.output_names[0]] = op.attrs
    folded.history.append("fold")
    forget_unused(folded, set(keep))
    return folded


def _shapes_as_attrs(block: Block, op: Operator) -> None:
    for slot in [s for s in op.inputs if s.endswith("_like")]:
        shapes = [block.var(n).shape for n in op.inputs[slot]]
        if not any(-1 in shape for shape in shapes):
            del op.inputs[slot]
            attr = slot.removesuffix("_like")
            op.attrs[attr] = like_value(attr, shapes)


def _filled(block: Block, op: Operator, p: Primitive, constants: dict[str, Any]) -> Operator:
    """``fill_constant`` for an operator whose result is one value in every place; else the operator itself."""
    if not (p.broadcasts or op.type in _MOVES or op.type in _LIKE or op.type == "sum"):
        return op
    var = block.var(op.output_names[0])
    size = prod(var.shape)
    if -1 in var.shape or size > _LIMIT or var.dtype.kind not in "fiub":
        return op
    if op.type in _LIKE:
        value = _LIKE[op.type]
    elif op.type in _MOVES and prod(block.var(op.input_names[0]).shape) not in (1, size):
        return op
    else:
        value = _value(op, p, constants)
    if value is None:
        return op
    attrs = {"shape": var.shape, "value": value, "dtype": var.dtype.name}
    return Operator("fill_constant", {}, op.outputs, attrs, op.role, op.forward_op).at(op)


def _value(op: Operator, p: Primitive, constants: dict[str, Any]) -> Any:
    """What stands in every place of the result; None if that is not known, or not one value."""
    if not op.inputs or not constants.keys() >= set(op.input_names):
        return None
    slots = {s: [_array(constants[n]) for n in names] for s, names in op.inputs.items()}
    with np.errstate(all="ignore"):
        (result,) = map(np.asarray, run_kernel(p, slots, op.attrs))
    same = result.size and (result == result.flat[0]).all()
    return result.flat[0].item() if same else None


def _array(attrs: dict[str, Any]) -> Any:
    dtype = attrs.get("dtype", "float64")
    return np.broadcast_to(np.asarray(attrs.get("value", 0.0), dtype), attrs.get("shape", ()))
