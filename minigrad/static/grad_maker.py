"""The grad op of an operator: which slots it reads, which gradients it writes, and how it runs.

The default maker reads everything off the gradient rules: the grad op of ``mul`` is ``mul_grad``,
with an input slot for each name the rules of the *wanted* inputs read and an output slot for each
wanted gradient. A primitive may have a maker of its own (``grad_maker``) that reuses forward ops:
the grad op of ``split`` is ``concat``.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ops.shape import sum_to, unbroadcast
from ..registry import Primitive
from .infer import like_value
from .op_info import CONTROL, find_info
from .operator import EMPTY, Operator
from .variable import ShapeOf, Variable

if TYPE_CHECKING:
    from .block import Block

#: name of a variable → name of its gradient
GradName = Callable[[str], str]


def differentiable_inputs(block: Block, op: Operator) -> list[str]:
    """The input names of an operator through which a gradient can flow."""
    info = find_info(op.type)
    if info is None:
        return []
    if op.type in CONTROL:
        slots: Any = ("x", "params", "seq")
    elif info.is_grad:
        slots = op.inputs
    else:
        assert info.forward is not None
        slots = info.forward.rules
    find = block.find_var
    out = []
    for slot in slots:
        for name in op.inputs.get(slot, ()):
            var = find(name)
            if var is not None and var.dtype.kind == "f":
                out.append(name)
    return out


def differentiable_outputs(block: Block, op: Operator) -> list[str]:
    """The output names of an operator from which a gradient can flow back."""
    info = find_info(op.type)
    hidden: Any = ()
    if info is not None and info.forward is not None and not info.is_grad:
        hidden = info.forward.nondiff
    find = block.find_var
    out = []
    for slot, names in op.outputs.items():
        if slot not in hidden:
            for name in names:
                var = find(name)
                if var is not None and var.dtype.kind == "f":
                    out.append(name)
    return out


def make_grad_ops(
    block: Block, op: Operator, wanted: set[str], have: Container[str], grad_name: GradName
) -> list[Operator]:
    """The grad ops of one operator of a straight line.

    ``wanted``: the input names that want a gradient; ``have``: the outputs whose gradient exists.
    """
    info = find_info(op.type)
    assert info is not None
    assert info.forward is not None
    if info.forward.grad_maker is not None:
        made = info.forward.grad_maker(block, op, wanted, have, grad_name)
        if made is not None:
            return list(made)
    return [default_grad_op(block, op, info.forward, wanted, grad_name)]


@dataclass(slots=True)
class Plan:
    """What the rules of some inputs read, sorted by where it comes from."""

    values: frozenset[str]  # inputs whose values are read
    shapes: frozenset[str]  # inputs whose shape or dtype is read
    outputs: tuple[str, ...]  # outputs whose values are read
    gradients: tuple[str, ...]  # outputs whose gradients are read


@lru_cache(maxsize=4096)
def plan_of(p: Primitive, slots: tuple[str, ...]) -> Plan:
    """The `Plan` of the rules for these input slots."""
    reads = p.reads(slots)
    shapes = {r.rpartition("_")[0] for r in reads if r.endswith(("_shape", "_dtype"))}
    return Plan(
        frozenset(r for r in reads if r in p.inputs),
        frozenset(shapes & set(p.inputs)),
        tuple(r for r in reads if r in p.outputs),
        tuple(o for o in p.outputs if f"{o}_grad" in reads),
    )


def default_grad_op(
    block: Block, op: Operator, p: Primitive, wanted: set[str], grad_name: GradName
) -> Operator:
    """``<type>_grad``, with exactly the slots that the wanted rules read."""
    given = op.inputs
    slots = tuple([s for s in p.inputs if s in p.rules and not wanted.isdisjoint(given.get(s, ()))])
    plan = plan_of(p, slots)
    inputs: dict[str, list[str]] = {}
    reads: list[str] = []
    for s in p.inputs:
        names = given.get(s)
        if not names:
            continue
        if s in plan.values:
            inputs[s] = names.copy()
            reads += names
        elif s in plan.shapes or (p.broadcasts and s in slots and _sums_back(block, op, names[0])):
            inputs[s] = names.copy()
    for o in plan.outputs:
        inputs[o] = op.outputs[o].copy()
        reads += op.outputs[o]
    for o in plan.gradients:
        inputs[f"{o}_grad"] = [grad_name(n) for n in op.outputs[o]]
    for s, names in given.items():
        if s not in inputs and s.endswith("_like"):
            inputs[s] = names.copy()
    outputs = {
        f"{s}_grad": [grad_name(n) if n in wanted else EMPTY for n in given[s]] for s in slots
    }
    made = Operator(op.type + "_grad", inputs, outputs, op.attrs, "backward", op)
    made.reads = tuple(reads)
    return made


def _sums_back(block: Block, op: Operator, name: str) -> bool:
    """Whether the gradient of an operand may have to be summed to its shape."""
    shape = block.var(name).shape
    return -1 in shape or shape != block.var(op.output_names[0]).shape


def run_grad_op(
    p: Primitive, slots: dict[str, list[Any]], attrs: dict[str, Any], wanted: dict[str, list[bool]]
) -> dict[str, list[Any]]:
    """Run the rules of a grad op on values by slot; returns values by output slot.

    The values may be arrays (the kernel of ``mul_grad``) or Variables (decomposition).
    """
    wanted_inputs = [s for s in p.rules if f"{s}_grad" in wanted]
    made: dict[str, Any] = {}
    for rule in p.wanted_rules(wanted_inputs):
        result = rule.function(*(_argument(p, r, slots, attrs) for r in rule.reads))
        made.update(
            zip(rule.inputs, result, strict=True) if rule.joint else [(rule.inputs[0], result)]
        )
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
            return like_value(name, _shapes_of(slots[f"{name}_like"]))
        return attrs.get(name, p.attrs[name])
    base, _, what = name.rpartition("_")
    values = slots.get(base) or [attrs.get(base)]
    facts = _shapes_of(values) if what == "shape" else [getattr(v, "dtype", None) for v in values]
    return facts if base == p.list_input else facts[0]


def _shapes_of(values: list[Any]) -> list[Any]:
    """The shape of each; where one is open, all are read when the program runs."""
    found = [shape_of(v) for v in values]
    if any(isinstance(s, ShapeOf) for s in found):
        return [ShapeOf(v.name) for v in values]
    return found
