"""Shapes and dtypes of an operator's outputs, found by running its kernel on stand-ins.

A size of -1 is tried as two different numbers: where the results differ, the output is -1 too.  So no op declares its
shape rule a second time; ops whose kernel cannot run on stand-ins give the primitive an ``infer`` function.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MinigradError, ProgramError, op_error
from ..registry import Primitive
from .op_info import CONTROL, find_info

if TYPE_CHECKING:
    from .program import Block, Operator

_TRIAL_SIZES = (3, 5)


def stand_in(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> Any:
    """An array that costs no memory: ones (zeros for integers, so that it can be an index)."""
    filled = np.zeros((), dtype) if dtype.kind in "iu" else np.ones((), dtype)
    return np.broadcast_to(filled, tuple(size if n < 0 else n for n in shape))


def infer_outputs(block: Block, op: Operator) -> None:
    """Declare the outputs of an operator in its block, with shape and dtype; check those that exist."""
    info = find_info(op.type)
    if info is None or op.type in CONTROL or info.is_grad:
        return                                              # whoever builds these declares their outputs
    primitive = info.forward
    assert primitive is not None
    found = _output_types(block, op, primitive)
    names = op.outputs
    if not names:
        prefix = op.type
        made = [block.program.unique_name(prefix) for _ in found]
        if len(primitive.outputs) > 1:
            op.outputs = {slot: [n] for slot, n in zip(primitive.outputs, made, strict=True)}
        else:
            op.outputs = {primitive.outputs[0]: made}
    stop = _stops(block, op, primitive)
    flat = [n for s in primitive.outputs for n in op.outputs.get(s, [])]
    if len(flat) != len(found) and len(op.outputs) == len(primitive.outputs):
        raise ProgramError(f"{op.type} has {len(found)} outputs, {len(flat)} names were given for them")
    types = found if primitive.list_output else [t for s, t in zip(primitive.outputs, found, strict=False) for _ in op.outputs.get(s, [])]
    for name, (shape, dtype) in zip(flat, types, strict=False):
        existing = block.find_var(name)
        if existing is None:
            block.create_var(name, shape, dtype, derived_stop=stop or dtype.kind != "f")
        elif existing.persistable and (existing.shape != shape or existing.dtype != dtype):
            raise ProgramError(
                f"{op.type} writes {dtype}{list(shape)} to {name!r}, which is {existing.dtype}{list(existing.shape)} and persistable"
            )
        else:
            existing.shape, existing.dtype = tuple(shape), dtype
            existing._derived_stop = existing._derived_stop and stop


def _stops(block: Block, op: Operator, primitive: Primitive) -> bool:
    if not primitive.rules:
        return True
    return all(block.var(n).stop_gradient for s in primitive.rules for n in op.inputs.get(s, []))


def _output_types(block: Block, op: Operator, p: Primitive) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    variables = {s: [block.var(n) for n in names] for s, names in op.inputs.items()}
    if p.infer is not None:
        given = {s: [(v.shape, v.dtype) for v in vs] for s, vs in variables.items()}
        return [(tuple(s), np.dtype(d)) for s, d in p.infer(given, op.attrs)]
    open_sizes = any(n < 0 for vs in variables.values() for v in vs for n in v.shape)
    trials = [_try(op, p, variables, size) for size in (_TRIAL_SIZES if open_sizes else _TRIAL_SIZES[:1])]
    first, last = trials[0], trials[-1]
    return [
        (tuple(n if n == m else -1 for n, m in zip(np.shape(a), np.shape(b), strict=True)), np.asarray(a).dtype)
        for a, b in zip(first, last, strict=True)
    ]


def _try(op: Operator, p: Primitive, variables: dict[str, list[Any]], size: int) -> list[Any]:
    values = {s: [stand_in(v.shape, v.dtype, size) for v in vs] for s, vs in variables.items()}
    try:
        with np.errstate(all="ignore"):
            out = run_kernel(p, values, op.attrs)
    except MinigradError:
        raise
    except Exception as error:
        flat = [v for vs in variables.values() for v in vs]
        names = [s for s, vs in variables.items() for _ in vs]
        attrs = {k: v for k, v in op.attrs.items() if v is not None}
        raise ProgramError(str(op_error(op.type, names, flat, attrs, error))) from error
    return list(out) if p.list_output or len(p.outputs) > 1 else [out]


def run_kernel(p: Primitive, slots: dict[str, list[Any]], attrs: dict[str, Any]) -> Any:
    """Call the kernel of a primitive with values by slot: numbers may stand in attrs, shapes in ``<attr>_like`` slots."""
    args: list[Any] = []
    for name in p.inputs:
        if name == p.list_input:
            args.extend(slots.get(name, ()))
        else:
            given = slots.get(name)
            args.append(given[0] if given else attrs.get(name))
    kept = {a: np.shape(slots[f"{a}_like"][0]) if f"{a}_like" in slots else attrs[a] for a in p.attrs if a in attrs or f"{a}_like" in slots}
    return p.kernel(*args, **kept)
