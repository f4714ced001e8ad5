"""Grad ops that are forward ops: `split` ↔ `concat`, `sum` → one `scale` per term, `assign` → `assign`.

Each maker takes ``(block, op, wanted, have, grad_name)`` and returns the grad ops, or None where the plain
``<type>_grad`` is needed after all.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ...primitives.registry import REGISTRY
from ..program.block import Block
from ..program.operator import Operator
from .grad_ops import GradName

Made = list[Operator] | None


def _grad(op: Operator, kind: str, source: list[str], out: list[str], **attrs: Any) -> Operator:
    made = Operator(kind, {"x": source}, {"out": out}, attrs, "backward", op)
    made.reads = ()
    return made


def of_split(
    block: Block, op: Operator, wanted: set[str], have: Container[str], grad_name: GradName
) -> Made:
    """The gradients of the parts, joined."""
    attrs = {k: v for k, v in op.attrs.items() if k == "axis"}
    parts = [grad_name(n) for n in op.outputs["out"]]
    return [_grad(op, "concat", parts, [grad_name(op.inputs["x"][0])], **attrs)]


def of_concat(
    block: Block, op: Operator, wanted: set[str], have: Container[str], grad_name: GradName
) -> Made:
    """The gradient, cut where the values were joined; not where they were made flat or their lengths are known only
    later, nor where some parts are unwanted: a `split` without names for all parts could not be differentiated again.
    """
    axis = op.attrs.get("axis", 0)
    if axis is None:
        return None
    lengths = [block.var(n).shape[axis] for n in op.inputs["x"]]
    if -1 in lengths or not wanted.issuperset(op.inputs["x"]):
        return None
    out = [grad_name(n) for n in op.inputs["x"]]
    attrs: dict[str, Any] = {"num_or_sections": tuple(lengths)}
    if axis:
        attrs["axis"] = axis
    return [_grad(op, "split", [grad_name(op.outputs["out"][0])], out, **attrs)]


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


for _type, _maker in {
    "split": of_split,
    "concat": of_concat,
    "sum": of_sum,
    "assign": of_assign,
}.items():
    REGISTRY[_type].grad_maker = _maker
