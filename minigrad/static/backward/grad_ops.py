"""The grad op of an operator: which slots it reads, which gradients it writes, and how it runs.

The default maker reads everything off the gradient rules: the grad op of ``mul`` is ``mul_grad``,
with an input slot for each name the rules of the *wanted* inputs read and an output slot for each
wanted gradient. A primitive may have a maker of its own (``grad_maker``) that reuses forward ops:
the grad op of ``split`` is ``concat``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ops.shape import sum_to, unbroadcast
from ...primitives.registry import Primitive
from ..program.gradient_names import GradNames
from ..program.op_info import CONTROL, find_info
from ..program.operator import EMPTY, Operator
from ..program.variable import ShapeOf, Variable
from ..run.kernels import like_value

if TYPE_CHECKING:
    from ..program.block import Block

#: name of a variable → name of its gradient
GradName = Callable[[str], str]


def flow_slots(op_type: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The input and output slots of a type through which gradients can flow, as far as the type decides it."""
    info = find_info(op_type)
    if info is None:
        return (), ()
    if info.is_grad:
        return info.inputs, info.outputs
    if op_type in CONTROL:
        return ("x", "params", "seq"), info.outputs
    p = info.forward
    assert p is not None
    return tuple(p.rules), tuple(o for o in p.outputs if o not in p.nondiff)


def differentiable_inputs(block: Block, op: Operator) -> list[str]:
    """The input names of an operator through which a gradient can flow."""
    return floating(block, (n for s in flow_slots(op.type)[0] for n in op.inputs.get(s, ())))


def differentiable_outputs(block: Block, op: Operator) -> list[str]:
    """The output names of an operator from which a gradient can flow back."""
    return floating(block, (n for s in flow_slots(op.type)[1] for n in op.outputs.get(s, ())))


def floating(block: Block, names: Iterable[str]) -> list[str]:
    """Those of the names that hold floating-point values."""
    find = block.find_var
    return [n for n in names if (var := find(n)) is not None and var.dtype.kind == "f"]


def plain_primitive(op_type: str) -> Primitive | None:
    """The primitive whose grad op is simply ``<type>_grad``; None for any other type of operator."""
    info = find_info(op_type)
    if info is None or info.is_grad or info.forward is None or info.forward.grad_maker is not None:
        return None
    return info.forward


def make_grad_ops(
    block: Block,
    op: Operator,
    p: Primitive,
    flow: tuple[Collection[str], tuple[str, ...]],
    have: Container[str],
    grads: GradNames,
) -> list[Operator]:
    """The grad ops of one operator of a straight line, of primitive ``p``.

    ``flow``: the inputs that want a gradient, and their slots; ``have``: the outputs whose gradient exists.
    """
    wanted, slots = flow
    if p.grad_maker is not None:
        grad_ops = p.grad_maker(block, op, set(wanted), have, grads.__getitem__)
        if grad_ops is not None:
            return _reading_first(list(grad_ops), op, grads)
    return [default_grad_op(block, op, p, wanted, slots, grads)]


def _reading_first(grad_ops: list[Operator], op: Operator, grads: GradNames) -> list[Operator]:
    """Several grad ops of an operator that overwrites an input: all read the gradient of its result, which has the
    name of what they write, from a copy that is made before them.
    """
    if len(grad_ops) == 1:
        return grad_ops
    copies = []
    for name in {n: None for n in op.output_names if n in op.input_names}:
        gradient = grads[name]
        copy = f"{gradient}@RENAME@{op.type}"
        for grad_op in grad_ops:
            for slot, names in grad_op.inputs.items():
                grad_op.inputs[slot] = [copy if n == gradient else n for n in names]
        slots_of_copy = {"x": [gradient]}, {"out": [copy]}
        copies.append(Operator("assign", *slots_of_copy, {}, "backward", op))
    return copies + grad_ops


@dataclass(slots=True)
class Plan:
    """Which slots the grad op has for some wanted inputs, and how it comes by them."""

    type: str
    operands: tuple[
        tuple[str, bool, bool], ...
    ]  # input, is its value read, only if it was stretched
    results: tuple[str, ...]  # outputs whose values are read
    given: tuple[tuple[str, str], ...]  # output, the slot of its gradient
    made: tuple[tuple[str, str], ...]  # input, the slot of its gradient


@lru_cache(maxsize=4096)
def plan_of(p: Primitive, wanted: tuple[str, ...], slots: tuple[str, ...]) -> Plan:
    """The `Plan` for these wanted inputs of an operator with these input slots."""
    reads = p.reads(wanted)
    shapes = {r.rpartition("_")[0] for r in reads if r.endswith(("_shape", "_dtype"))}
    stretches = p.broadcasts and len(slots) > 1  # a single operand is as large as the result
    operands = []
    for s in p.inputs:
        if s in slots and (s in reads or s in shapes or (stretches and s in wanted)):
            operands.append((s, s in reads, s not in reads and s not in shapes))
    operands += [(s, False, False) for s in slots if s.endswith("_like")]
    return Plan(
        f"{p.type}_grad",
        tuple(operands),
        tuple(o for o in p.outputs if o in reads),
        tuple((o, f"{o}_grad") for o in p.outputs if f"{o}_grad" in reads),
        tuple((s, f"{s}_grad") for s in p.inputs if s in wanted),
    )


def default_grad_op(
    block: Block,
    op: Operator,
    p: Primitive,
    wanted: Collection[str],
    chosen: tuple[str, ...],
    grads: GradNames,
) -> Operator:
    """``<type>_grad``, with exactly the slots that the rules of the chosen inputs read."""
    slots, results = op.inputs, op.outputs
    plan = plan_of(p, chosen, (*slots,))
    inputs: dict[str, list[str]] = {}
    full: tuple[int, ...] | None = None
    for s, _, if_stretched in plan.operands:
        if if_stretched:  # its shape is read where its gradient may have to be summed to it
            if full is None:
                full = block.var(results["out"][0]).shape
            shape = block.var(slots[s][0]).shape
            if shape == full and -1 not in shape:
                continue
        inputs[s] = slots[s][:]
    for o in plan.results:
        inputs[o] = results[o][:]
    for o, slot in plan.given:
        names = results[o]
        inputs[slot] = [grads[names[0]]] if len(names) == 1 else [grads[n] for n in names]
    outputs: dict[str, list[str]] = {}
    for s, slot in plan.made:
        names = slots[s]
        outputs[slot] = (
            [grads[names[0]]]
            if len(names) == 1
            else [grads[n] if n in wanted else EMPTY for n in names]
        )
    return Operator(plan.type, inputs, outputs, op.attrs, "backward", op)


def run_grad_op(
    p: Primitive, slots: dict[str, list[Any]], attrs: dict[str, Any], asked: Container[str]
) -> dict[str, list[Any]]:
    """Run the rules of a grad op on values by slot; returns values by output slot, for the slots that are asked for.

    The values may be arrays (the kernel of ``mul_grad``) or Variables (decomposition).  A list slot gives a gradient
    for each of its values, also for those nobody named: one rule makes them together.
    """
    wanted_inputs = [s for s in p.rules if f"{s}_grad" in asked]
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
