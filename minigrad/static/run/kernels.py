"""Kernels and gradient rules called by slots: values go in by the slots of an operator, and come out in their order."""

from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np

from ...errors import ProgramError, op_error, told
from ...grad_names import EMPTY
from ...ops.shape import sum_to, unbroadcast
from ...primitives.arguments import Args, Attrs, ByName, Listed, Values
from ...primitives.registry import Primitive
from ..program.operator import Operator, op_info
from ..program.variable import ShapeOf, Variable


def run_kernel(p: Primitive, slots: Values, attrs: Attrs) -> Listed:
    """The results of a kernel, called with values by slot.

    Numbers may stand in attrs; the shapes of the values in a slot ``<attr>_like`` stand for that
    attr.
    """
    args, options = arguments(p, slots, attrs)
    return results(p, p.kernel(*args, **options))


def arguments(
    p: Primitive,
    slots: Values,
    attrs: Attrs,
    shape: Callable[[Any], Any] = np.shape,
) -> tuple[Args, Attrs]:
    """What a kernel is called with: values and numbers for its inputs, and its attrs.

    ``shape`` gives the shape of a value in a slot ``<attr>_like``: for values of another kind than arrays.
    """
    args: Listed = []
    for name in p.inputs:
        values = slots.get(name, ())
        if name == p.list_input:
            args += values
        else:
            args.append(values[0] if values else attrs.get(name))
    options = {}
    for a in p.attrs:
        like = slots.get(f"{a}_like")
        if like:
            options[a] = like_value(a, [shape(v) for v in like])
        elif a in attrs:
            options[a] = attrs[a]
    return tuple(args), options


def like_value(attr: str, shapes: Listed) -> Any:
    """What a slot ``<attr>_like`` says: one shape; for the attr ``shapes`` a list of them."""
    return shapes if attr == "shapes" else shapes[0]


def results(p: Primitive, out) -> Listed:
    """What a kernel returned as a list: a value for each output, or for each place of its list."""
    return list(out) if p.several else [out]


def targets(p: Primitive, op: Operator) -> list[str]:
    """The names these values get; `EMPTY` for those nobody wants."""
    return [n for s in p.outputs for n in op.outputs.get(s, [EMPTY])]


def run_grad_op(p: Primitive, slots: Values, attrs: Attrs, asked: Container[str]) -> Values:
    """Run the rules of a grad op on values by slot; returns values by output slot, for the slots that are asked for.

    The values may be arrays (the kernel of ``mul_grad``) or Variables (decomposition).  A list slot
    gives a gradient for each of its values, also for those nobody named: one rule makes them
    together.
    """
    wanted_inputs = [s for s in p.rules if f"{s}_grad" in asked]
    gradients: ByName = {}
    for rule in p.wanted_rules(wanted_inputs):
        result = rule.function(*(_argument(p, r, slots, attrs) for r in rule.reads))
        found = result if rule.joint else [result]
        gradients.update(zip(rule.inputs, found, strict=True))
    out: Values = {}
    for s in wanted_inputs:
        value = gradients[s]
        values = list(value) if s == p.list_input else [value]
        if p.broadcasts and s in slots:
            values = [_sum_back(v, slots[s][0]) for v in values]
        out[f"{s}_grad"] = values
    return out


def run_op(op: Operator, slots: Values) -> Iterable[tuple[str, Any]]:
    """What a primitive or its grad op makes of values by slot, each with its name; `EMPTY` for what nobody wants."""
    info = op_info(op.type)
    p = info.forward
    if info.is_grad:
        gradients = run_grad_op(p, slots, op.attrs, op.outputs)
        names = [n for slot in gradients for n in op.outputs[slot]]
        values = [v for listed in gradients.values() for v in listed]
    else:
        names, values = targets(p, op), run_kernel(p, slots, op.attrs)
    if len(values) != len(names):
        raise ValueError(f"{len(values)} values for {len(names)} names")
    return zip(names, values, strict=True)


def _sum_back(value, like) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return sum_to(value, np.shape(like))
    if value.shape == like.shape and -1 not in value.shape:
        return value
    return unbroadcast(value, shape=shape_of(like))


def shape_of(value) -> Any:
    """The shape of an array, or of a Variable as far as it is known: else a `ShapeOf`."""
    if isinstance(value, Variable) and -1 in value.shape:
        return ShapeOf(value.name, value.ndim)
    return tuple(np.shape(value))


def _argument(p: Primitive, name: str, slots: Values, attrs: Attrs) -> Any:
    of = name.removesuffix("_grad")
    if name in p.inputs and name not in slots:
        return attrs.get(name)
    if name in p.inputs or of in p.outputs:
        as_list = name == p.list_input or (p.list_output and of in p.outputs)
        return slots[name] if as_list else slots[name][0]
    if name in p.attrs:
        if f"{name}_like" in slots:
            return like_value(name, _shapes_of(slots[f"{name}_like"]))
        return attrs.get(name, p.attrs[name])
    base, _, what = name.rpartition("_")
    values = slots.get(base) or [attrs.get(base)]
    facts = _shapes_of(values) if what == "shape" else [getattr(v, "dtype", None) for v in values]
    return facts if base == p.list_input else facts[0]


def _shapes_of(values: Listed) -> Listed:
    """The shape of each; where one is open, all are read when the program runs."""
    shapes = [shape_of(v) for v in values]
    if any(isinstance(s, ShapeOf) for s in shapes):
        return [ShapeOf(v.name, v.ndim) for v in values]
    return shapes


def refused(
    op: Operator,
    values: Values,
    error: Exception,
    place: str = "",
    line: str | None = None,
) -> ProgramError:
    """What to raise where the kernel or a rule of an operator refuses its values, given by slot."""
    slots = [slot for slot, listed in values.items() for _ in listed]
    flat = [v for listed in values.values() for v in listed]
    called = f"{place}{op.type}"
    found = op_error(called, slots, flat, op.attrs, error, line=line)
    if found is not error:
        return ProgramError(str(found))
    reason = str(error) or type(error).__name__
    return ProgramError(told(f"{called} failed: {reason}", "", line))
