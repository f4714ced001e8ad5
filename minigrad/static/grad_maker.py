"""The grad op of an operator: which slots it reads, which gradients it writes, and how it runs.

The default maker reads everything off the gradient rules: the grad op of ``mul`` is ``mul_grad``, with an input slot for
each name the rules of the *wanted* inputs read and an output slot for each wanted gradient.  A primitive may have a
maker of its own (``grad_maker``) that reuses forward ops: the grad op of ``split`` is ``concat``.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ops.shape import sum_to, unbroadcast
from ..registry import Primitive
from .op_info import CONTROL, find_info

if TYPE_CHECKING:
    from .program import Block, Operator

#: name of a variable → name of its gradient
GradName = Callable[[str], str]


def differentiable_inputs(block: Block, op: Operator) -> list[tuple[str, str]]:
    """The (slot, name) pairs of an operator through which a gradient can flow."""
    info = find_info(op.type)
    if info is None:
        return []
    if op.type in CONTROL:
        return [(s, n) for s in info.inputs if s in ("x", "params") for n in op.inputs.get(s, ()) if _is_float(block, n)]
    if info.is_grad:
        names = [(s, n) for s, ns in op.inputs.items() for n in ns if s not in ("",)]
        return [(s, n) for s, n in names if n != "@EMPTY@" and _is_float(block, n)]
    primitive = info.forward
    assert primitive is not None
    return [(s, n) for s in primitive.rules for n in op.inputs.get(s, ()) if _is_float(block, n)]


def _is_float(block: Block, name: str) -> bool:
    var = block.find_var(name)
    return var is not None and var.dtype.kind == "f"


def make_grad_ops(block: Block, op: Operator, wanted: set[str], has_grad: Callable[[str], bool], grad_name: GradName) -> list[Operator]:
    """The grad ops of one operator of a straight line.

    ``wanted``: the input names that want a gradient; ``has_grad``: whether an output's gradient exists.
    """
    info = find_info(op.type)
    assert info is not None and info.forward is not None
    if info.forward.grad_maker is not None:
        made = info.forward.grad_maker(block, op, wanted, grad_name)
        if made is not None:
            return list(made)
    return [default_grad_op(block, op, info.forward, wanted, grad_name)]


def default_grad_op(block: Block, op: Operator, p: Primitive, wanted: set[str], grad_name: GradName) -> Operator:
    """``<type>_grad``, with exactly the slots that the wanted rules read."""
    from .program import EMPTY, Operator

    slots = [s for s in p.rules if any(n in wanted for n in op.inputs.get(s, ()))]
    reads = p.reads(slots)
    inputs: dict[str, list[str]] = {}
    read_values: list[str] = []
    for r in reads:
        if r in p.inputs or r in p.outputs:
            names = op.inputs.get(r) or op.outputs.get(r)
            if names:
                inputs[r] = list(names)
                read_values += names
        elif r.endswith("_grad"):
            inputs[r] = [grad_name(n) for n in op.outputs[r[:-5]]]
    for r in reads:
        base, _, what = r.rpartition("_")
        if what in ("shape", "dtype") and base in p.inputs and r not in p.attrs and base not in inputs and base in op.inputs:
            inputs[base] = list(op.inputs[base])
    if p.broadcasts:
        out_shape = block.var(op.outputs[p.outputs[0]][0]).shape
        for s in slots:
            shape = block.var(op.inputs[s][0]).shape
            if s not in inputs and (shape != out_shape or -1 in shape):
                inputs[s] = list(op.inputs[s])
    for slot, names in op.inputs.items():
        if slot.endswith("_like") and slot not in inputs:
            inputs[slot] = list(names)
    order = [*p.inputs, *p.outputs, *(f"{o}_grad" for o in p.outputs)]
    inputs = {s: inputs[s] for s in sorted(inputs, key=lambda s: order.index(s) if s in order else len(order))}
    outputs = {}
    for s in p.rules:
        names = op.inputs.get(s, [])
        if s in slots:
            outputs[f"{s}_grad"] = [grad_name(n) if n in wanted else EMPTY for n in names]
    made = Operator(op.type + "_grad", inputs, outputs, op.attrs, "backward", op)
    made.reads = tuple(dict.fromkeys(read_values))
    return made


def run_grad_op(p: Primitive, slots: dict[str, list[Any]], attrs: dict[str, Any], wanted: dict[str, list[bool]]) -> dict[str, list[Any]]:
    """Run the rules of a grad op on values by slot; returns values by output slot.

    The values may be arrays (the kernel of ``mul_grad``) or Variables (decomposition).
    """
    wanted_inputs = [s for s in p.rules if f"{s}_grad" in wanted]
    made: dict[str, Any] = {}
    for rule in p.wanted_rules(wanted_inputs):
        result = rule.function(*(_argument(p, r, slots, attrs) for r in rule.reads))
        made.update(zip(rule.inputs, result, strict=True) if rule.joint else [(rule.inputs[0], result)])
    out: dict[str, list[Any]] = {}
    for s in wanted_inputs:
        value = made[s]
        values = list(value) if s == p.list_input else [value]
        if p.broadcasts and s in slots:
            values = [_sum_back(v, slots[s][0]) for v in values]
        out[f"{s}_grad"] = values
    return out


def _sum_back(value: Any, like: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        shape = np.shape(like)
        return value if value.shape == shape else sum_to(value, shape)
    if value.shape == like.shape and -1 not in value.shape:
        return value
    return unbroadcast(value, shape=shape_of(like))


def shape_of(value: Any) -> Any:
    """The shape of an array, or of a Variable as far as it is known: else a `ShapeOf`."""
    from .program import ShapeOf, Variable

    if isinstance(value, Variable) and -1 in value.shape:
        return ShapeOf(value.name)
    return tuple(np.shape(value)) if not isinstance(value, Variable) else value.shape


def _argument(p: Primitive, name: str, slots: dict[str, list[Any]], attrs: dict[str, Any]) -> Any:
    if name in p.inputs or name in p.outputs:
        if name not in slots:
            return attrs.get(name)
        as_list = name == p.list_input or (p.list_output and name in p.outputs)
        return slots[name] if as_list else slots[name][0]
    if name.endswith("_grad") and name[:-5] in p.outputs:
        return slots[name] if p.list_output else slots[name][0]
    if name in p.attrs:
        if f"{name}_like" in slots:
            return shape_of(slots[f"{name}_like"][0])
        return attrs.get(name, p.attrs[name])
    base, _, what = name.rpartition("_")
    values = slots.get(base) or [attrs.get(base)]
    facts = [shape_of(v) if what == "shape" else getattr(v, "dtype", None) for v in values]
    return facts if base == p.list_input else facts[0]
