"""Where gradients flow from each output of an operator; for control flow this is read off its blocks.

A loop hands nothing on to a start value that the asked result does not depend on, a cond nothing to what only its other
results are made of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..program.op_info import CONTROL
from ..program.program import Block, Operator
from .grad_ops import differentiable_inputs, differentiable_outputs

Behind = dict[str, set[str]]  #: name → the sources that its value depends on, by way of gradients


def has_blocks(op_type: str) -> bool:
    """Whether gradients flow through blocks: only then do results of one operator depend on different inputs."""
    return op_type in CONTROL and not CONTROL[op_type].is_grad


def connections(block: Block, op: Operator, no_grad: Collection[str]) -> dict[str, set[str]]:
    """Differentiable output → the inputs that its gradient flows to."""
    inputs = {n for n in differentiable_inputs(block, op) if n not in no_grad}
    outputs = differentiable_outputs(block, op)
    if not has_blocks(op.type):
        return dict.fromkeys(outputs, inputs)
    through = _cond if op.type == "cond" else _loop
    made = through(block, op, no_grad)
    return {out: made[out] & inputs for out in outputs}


def dependence(body: Block, sources: Iterable[str], no_grad: Collection[str]) -> Behind:
    """What each name of a block depends on, of ``sources``, once the last operator has run."""
    behind = {n: {n} for n in sources if n not in no_grad}
    for op in body.ops:
        made = {}
        if not behind.keys().isdisjoint(op.input_names):
            for out, inputs in connections(body, op, no_grad).items():
                made[out] = set[str]().union(*(behind.get(n, ()) for n in inputs))
        for name in op.output_names:
            behind.pop(name, None)
        behind.update((n, s) for n, s in made.items() if s and n not in no_grad)
    return behind


def over_all_steps(op: Operator, behind: Behind) -> Behind:
    """Carried value → what it depends on after any number of steps, itself included."""
    carried = op.attrs["carried"]
    after = {
        c: {c} | behind.get(n, set[str]()) for c, n in zip(carried, op.attrs["next"], strict=True)
    }
    for middle in carried:  # every way over this value becomes a step
        for c in carried:
            if middle in after[c]:
                after[c] |= after[middle]
    return after


def _cond(block: Block, op: Operator, no_grad: Collection[str]) -> Behind:
    made: Behind = {out: set() for out in op.outputs["out"]}
    for attr, results in (("sub_block", "true_out"), ("else_block", "false_out")):
        branch = block.program.blocks[op.attrs[attr]]
        behind = dependence(branch, op.inputs["params"], no_grad)
        for out, name in zip(op.outputs["out"], op.attrs[results], strict=True):
            made[out] |= behind.get(name, set())
    return made


def _loop(block: Block, op: Operator, no_grad: Collection[str]) -> Behind:
    carried, steps = op.attrs["carried"], op.attrs.get("steps", [])
    outside = {p: p for p in op.inputs["params"]}
    outside |= zip(carried, op.inputs["x"], strict=True)
    outside |= zip(steps, op.inputs.get("seq", []), strict=True)
    behind = dependence(block.program.blocks[op.attrs["sub_block"]], outside, no_grad)
    after = over_all_steps(op, behind)
    made = {out: after[c] for out, c in zip(op.outputs["out"], carried, strict=True)}
    for out, name in zip(op.outputs.get("stacked", []), op.attrs.get("step_out", []), strict=True):
        made[out] = set[str]().union(*(after.get(n, {n}) for n in behind.get(name, ())))
    return {out: {outside[n] for n in names} for out, names in made.items()}
