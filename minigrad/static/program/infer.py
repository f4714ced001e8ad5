"""Shapes and dtypes of an operator's outputs, found by running its kernel on stand-ins.

A size of -1 is tried as two different numbers: where the results differ, the output is -1 too.  So
no op declares its shape rule a second time; ops whose kernel cannot run on stand-ins give the
primitive an ``infer`` function. What is computed element by element is run on one element of each:
that costs no memory, however large the values are. Where broadcasting meets -1 and a size n, the
result has n: whether the open size is n or 1 shows when the program runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import MinigradError, ProgramError, wrong
from ...grad_names import EMPTY
from ...ops.shape import Array, DType, Shape, fits
from ...primitives.arguments import Attrs, Listed, Values
from ...primitives.registry import Primitive
from ..run.kernels import refused, run_grad_op, run_kernel, targets
from ..run.limits import check_room
from .operator import op_info
from .variable import Variable, plain_variable

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator


Type = tuple[Shape, DType]  #: shape and dtype
Variables = dict[str, list[Variable]]  #: slot → what is given there


_FOUND: dict[Any, list[Type]] = {}  # layers repeat, so most answers are known


_PLAIN = (int, float, bool, str, type(None))


def infer_outputs(block: Block, op: Operator) -> None:
    """Declare the outputs of an operator in its block, with shape and dtype; check those that exist.

    Control flow is left alone, and gradients that are declared: whoever builds them says what they
    are.
    """
    info = op_info(op.type)
    primitive, stop = info.forward, False
    if primitive is None:
        return
    if info.is_grad:
        names = op.output_names
        if all(n == EMPTY or block.has_var(n) for n in names):
            return
        types = _computed_types(op, primitive, variables_of(block, op))
    else:
        types, stop = _output_types(block, op, primitive)
        if not op.outputs:  # new variables, under names nobody has yet
            names = []
            for shape, dtype in types:
                name = block.program.unique_name(op.type)
                cut = stop or dtype.kind != "f"
                block.vars[name] = plain_variable(block, name, shape, dtype, cut)
                names.append(name)
            slots = [names] if len(primitive.outputs) == 1 else [[n] for n in names]
            op.outputs = dict(zip(primitive.outputs, slots, strict=True))
            return
        names = targets(primitive, op)
        if len(names) != len(types):
            what = f"{op.type} has {len(types)} outputs, {len(names)} names were given for them"
            raise wrong(what, f"a list of {len(types)} names")
    for name, (shape, dtype) in zip(names, types, strict=True):
        if name != EMPTY:
            _declare(block, op, name, shape, dtype, stop or dtype.kind != "f")


def variables_of(block: Block, op: Operator) -> Variables:
    """The inputs by slot."""
    return {s: [block.var(n) for n in names if n != EMPTY] for s, names in op.inputs.items()}


def _declare(block: Block, op: Operator, name: str, shape: Shape, dtype: DType, stop: bool) -> None:
    var = block.find_var(name)
    if var is None or (var.block is not block and block.forward_block >= 0):
        block.create_var(name, shape, dtype, derived_stop=stop)
        return
    if var.block is not block and not var.persistable:
        raise wrong(
            f"{op.type} in block {block.idx} writes {name!r} of block {var.block.idx}: what a "
            "block changes, it returns",
            "give the result a name of its own and return it from the branch or the body",
        )
    if var.dtype != dtype or not fits(var.shape, shape):
        if var.kind != "var" or name in var.block.written:
            what = f"{op.type} writes {dtype}{list(shape)} to {name!r}, which is {var.dtype}{list(var.shape)} already"
            raise wrong(what, "give the result a name of its own")
        var.shape, var.dtype = shape, dtype
    elif not var.is_data:
        var.shape = tuple(max(m, n) for m, n in zip(var.shape, shape, strict=True))
    var._derived_stop = var._derived_stop and stop


def _output_types(block: Block, op: Operator, p: Primitive) -> tuple[list[Type], bool]:
    """Shapes and dtypes of the outputs, and whether no gradient can flow to any input that has a rule."""
    key: Listed = [p, _hashable(op.attrs)]
    known, stop = key[1] is not None, True
    own, find = block.vars, block.var
    for slot, names in op.inputs.items():
        key.append(slot)
        for name in names:
            v = own[name] if name in own else find(name)
            key += v.shape, v.dtype
            if v.persistable and known_mask(v) is not None:
                known = False
            if stop and slot in p.rules and not v.stop_gradient:
                stop = False
    asked = tuple(key) if known else None
    types = _FOUND.get(asked)
    if types is None:
        types = _computed_types(op, p, variables_of(block, op))
        if isinstance(axis := op.attrs.get("axis"), list):  # which this kernel takes
            op.attrs["axis"] = tuple(axis)
        if known:
            if len(_FOUND) > 10_000:
                _FOUND.clear()
            _FOUND[asked] = types
    return types, stop


def _hashable(attrs: Attrs) -> Any:
    """A key for attrs, in which 1, 1.0 and True differ; None if there are attrs of other types."""
    for value in attrs.values():
        kind = type(value)
        if kind not in _PLAIN and not (kind is tuple and all(type(e) is int for e in value)):
            return None
    return tuple([(name, type(value), value) for name, value in attrs.items()])


def _computed_types(op: Operator, p: Primitive, variables: Variables) -> list[Type]:
    check_room(op, variables)
    if p.infer is not None and op.type == p.type:
        given = {slot: [(v.shape, v.dtype) for v in vs] for slot, vs in variables.items()}
        try:
            return [(tuple(s), np.dtype(d)) for s, d in p.infer(given, op.attrs)]
        except MinigradError:
            raise
        except Exception as error:
            raise refused(op, variables, error) from error
    same = all(-1 not in v.shape and v.dtype.kind != "b" for vs in variables.values() for v in vs)
    first = _try(op, p, variables, 3, True)  # a size for -1, and what masks hold
    other = first if same else _try(op, p, variables, 8, False)
    if len(first) != len(other):
        reason = ValueError("how many values it gives depends on a size -1: declare that size")
        raise refused(op, variables, reason)
    return [(common(a.shape, b.shape), a.dtype) for a, b in zip(first, other, strict=True)]


def common(a: Shape, b: Shape) -> Shape:
    """What two shapes have in common: an open size where they differ."""
    return tuple(n if n == m else -1 for n, m in zip(a, b, strict=True))


def _run_kernel(op: Operator, p: Primitive, values: Values) -> Listed:
    if p.broadcasts and not p.list_input:
        numbers = [op.attrs[n] for n in p.inputs if n in op.attrs]
        shapes = [np.shape(v) for vs in (*values.values(), numbers) for v in vs]
        try:
            full = np.broadcast_shapes(*shapes)
        except ValueError:
            pass  # the kernel says what does not fit
        else:
            first = {s: [v[(slice(1),) * v.ndim] for v in vs] for s, vs in values.items()}
            return [np.broadcast_to(a, full) for a in run_kernel(p, first, op.attrs)]
    return run_kernel(p, values, op.attrs)


def _try(op: Operator, p: Primitive, variables: Variables, size: int, mask: bool) -> list[Array]:
    values = stand_ins(p, variables, size, mask)
    try:
        with np.errstate(all="ignore"):
            if op.type == p.type:
                out = _run_kernel(op, p, values)
            else:
                gradients = run_grad_op(p, values, op.attrs, op.outputs)
                out = [v for slot in op.outputs for v in gradients[slot]]
    except MinigradError:
        raise
    except Exception as error:
        message = str(refused(op, variables, error))
        if any(-1 in v.shape for vs in variables.values() for v in vs):
            message += f"\n  a size -1 can be any number, and {size} does not fit: declare a size that must match"
        raise ProgramError(message) from error
    return [np.asarray(a) for a in out]


def matched(shapes: list[Shape]) -> list[Shape]:
    """Shapes that are broadcast together, with open sizes closed where another operand knows them.

    >>> matched([(-1, 2), (4, 2), (-1,)])
    [(4, 2), (4, 2), (2,)]
    """
    rank = max(map(len, shapes), default=0)
    full = ((1,) * (rank - len(s)) + s for s in shapes)
    known = [max(sizes) for sizes in zip(*full, strict=True)]
    return [
        tuple(m if n < 0 and m > 1 else n for n, m in zip(s, known[rank - len(s) :], strict=True))
        for s in shapes
    ]


def stand_ins(p: Primitive, variables: Variables, size: int, mask: bool) -> Values:
    """Arrays without memory: ones (zeros for integers, so that they can be indices); constant masks as they are."""
    shapes = [v.shape for vs in variables.values() for v in vs]
    closed = iter(matched(shapes) if p.broadcasts else shapes)
    values: Values = {slot: [] for slot in variables}
    for slot, vs in variables.items():
        for v in vs:
            shape = [size if n < 0 else n for n in next(closed)]
            known = known_mask(v)
            if known is None:
                filled = mask if v.dtype.kind == "b" else v.dtype.kind not in "iu"
                known = np.broadcast_to(np.asarray(filled, v.dtype), shape)
            values[slot].append(known)
    return values


def known_mask(v: Variable) -> Any:
    """A constant mask stands for itself, since shapes may depend on it."""
    if v.dtype.kind != "b" or not v.persistable:
        return None
    return v.program.initial.get(v.name)
