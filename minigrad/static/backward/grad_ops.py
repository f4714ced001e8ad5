"""The grad op of an operator: which slots it reads, which gradients it writes, and how it runs.

The default maker reads everything off the gradient rules: the grad op of ``mul`` is ``mul_grad``,
with an input slot for each name the rules of the *wanted* inputs read and an output slot for each
wanted gradient. A primitive may have a maker of its own (``grad_maker``) that reuses forward ops:
the grad op of ``assign`` is ``assign``.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import lru_cache
from typing import Any, NamedTuple

from ...grad_names import EMPTY, GradNames, part
from ...ops.shape import Shape
from ...primitives.arguments import Names, Slots
from ...primitives.registry import REGISTRY, Primitive
from ..program.block import Block
from ..program.op_info import find_info
from ..program.operator import Operator
from .op_path import Flow

#: name of a variable → name of its gradient
GradName = Callable[[str], str]


def plain_primitive(op_type: str) -> Any:
    """The primitive whose grad op is simply ``<type>_grad``; None for any other type of operator."""
    info = find_info(op_type)
    if info is None or info.is_grad or info.forward is None or info.forward.grad_maker is not None:
        return None
    return info.forward


def make_grad_ops(
    block: Block, op: Operator, p: Primitive, flow: Flow, have: Container[str], grads: GradNames
) -> list[Operator]:
    """The grad ops of one operator of a straight line, of primitive ``p``.

    ``flow``: the inputs that want a gradient, and their slots; ``have``: the outputs whose gradient exists.
    """
    if p.grad_maker is not None:
        grad_ops = p.grad_maker(block, op, set(flow[0]), have, grads.__getitem__)
        if grad_ops is not None:
            return _reading_first(list(grad_ops), op, grads)
    return [default_grad_op(block, op, p, flow, grads)]


def _reading_first(grad_ops: list[Operator], op: Operator, grads: GradNames) -> list[Operator]:
    """Several grad ops of an operator that overwrites an input: all read the gradient of its result, which has the
    name of what they write, from a copy that is made before them.
    """
    if len(grad_ops) == 1:
        return grad_ops
    copies = []
    for name in {n: None for n in op.output_names if n in op.input_names}:
        gradient = grads[name]
        copy = part(gradient, op.type)
        for grad_op in grad_ops:
            for slot, names in grad_op.inputs.items():
                grad_op.inputs[slot] = [copy if n == gradient else n for n in names]
        slots_of_copy = {"x": [gradient]}, {"out": [copy]}
        copies.append(Operator("assign", *slots_of_copy, {}, "backward", op))
    return copies + grad_ops


class Plan(NamedTuple):
    """Which slots the grad op has for some wanted inputs, and how it comes by them."""

    type: str
    operands: tuple[tuple[str, bool, bool], ...]  # input; is its value read; only if stretched
    results: Names  # outputs whose values are read
    given: tuple[tuple[str, str], ...]  # output, the slot of its gradient
    made: tuple[tuple[str, str], ...]  # input, the slot of its gradient


@lru_cache(maxsize=4096)
def plan_of(p: Primitive, wanted: Names, slots: Names) -> Plan:
    """The `Plan` for these wanted inputs of an operator with these input slots."""
    reads = p.reads(wanted)
    shapes = {r.rpartition("_")[0] for r in reads if r.endswith(("_shape", "_dtype"))}
    stretches = p.broadcasts and len(slots) > 1  # a single operand is as large as the result
    operands = []
    for s in p.inputs:
        if s in slots and (s in reads or s in shapes or (stretches and s in wanted)):
            operands.append((s, s in reads, s not in reads and s not in shapes))
    operands += [(s, False, False) for s in slots if s.endswith("_like")]
    results = tuple(o for o in p.outputs if o in reads)
    given = tuple((o, f"{o}_grad") for o in p.outputs if f"{o}_grad" in reads)
    made = tuple((s, f"{s}_grad") for s in p.inputs if s in wanted)
    return Plan(f"{p.type}_grad", tuple(operands), results, given, made)


def default_grad_op(
    block: Block, op: Operator, p: Primitive, flow: Flow, grads: GradNames
) -> Operator:
    """``<type>_grad``, with exactly the slots that the rules of the chosen inputs read."""
    (wanted, chosen), slots, results, own = flow, op.inputs, op.outputs, block.vars
    kind, operands, read, given, made = plan_of(p, chosen, (*slots,))
    inputs: Slots = {}
    full: Shape | None = None
    for s, _, if_stretched in operands:
        if if_stretched:  # its shape is read where its gradient may have to be summed to it
            if full is None:
                name = results["out"][0]
                full = (own[name] if name in own else block.var(name)).shape
            name = slots[s][0]
            shape = (own[name] if name in own else block.var(name)).shape
            if shape == full and -1 not in shape:
                continue
        inputs[s] = slots[s][:]
    for o in read:
        inputs[o] = results[o][:]
    for o, slot in given:
        names = results[o]
        inputs[slot] = [grads[names[0]]] if len(names) == 1 else [grads[n] for n in names]
    outputs: Slots = {}
    for s, slot in made:
        names = slots[s]
        if len(names) == 1:
            outputs[slot] = [grads[names[0]]]
        else:
            outputs[slot] = [grads[n] if n in wanted else EMPTY for n in names]
    return Operator(kind, inputs, outputs, op.attrs, "backward", op)


Made = list[Operator] | None


def _grad(op: Operator, kind: str, source: list[str], out: list[str]) -> Operator:
    grad_op = Operator(kind, {"x": source}, {"out": out}, {}, "backward", op)
    grad_op.reads = ()
    return grad_op


def of_sum(
    block: Block, op: Operator, wanted: set[str], have: Container[str], grad_name: GradName
) -> Made:
    """The gradient of every term is that of the sum, times one."""
    g = grad_name(op.outputs["out"][0])
    return [_grad(op, "scale", [g], [grad_name(n)]) for n in op.inputs["x"] if n in wanted]


def of_assign(
    block: Block, op: Operator, wanted: set[str], have: Container[str], grad_name: GradName
) -> Made:
    """The gradient of a copy is a copy of the gradient."""
    return [_grad(op, "assign", [grad_name(op.outputs["out"][0])], [grad_name(op.inputs["x"][0])])]


for _maker in (of_sum, of_assign):
    REGISTRY[_maker.__name__.removeprefix("of_")].grad_maker = _maker
