"""Grad ops written out in primitives: what `mul_grad` does, as multiplications.

A rule read on Variables appends the operators it is made of.  This gives second derivatives (a grad op on the path is
written out, then differentiated like any forward op) and `passes.decompose`, the first rung of the compiler.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from ..program.op_info import CONTROL, find_info
from ..program.program import EMPTY, Block, Operator, Variable
from .grad_ops import run_grad_op
from .second_cond import cond_written_out

if TYPE_CHECKING:
    from .passes import BackwardJob


def written_out(block: Block, op: Operator) -> tuple[list[Operator], dict[str, str]]:
    """The primitives a grad op is made of, as operators in no block, and output name → their name for it."""
    info = find_info(op.type)
    assert info is not None
    assert info.forward is not None
    program = block.program
    scratch = Block(program, block.idx, block.parent, block.forward_block)
    scratch.vars, scratch.written = block.vars, block.written
    program.blocks[block.idx] = scratch
    try:
        with program.block_guard(scratch), program.role_guard("backward"):
            slots = {
                s: [block.var(n) for n in names if n != EMPTY] for s, names in op.inputs.items()
            }
            results = run_grad_op(info.forward, slots, op.attrs, op.outputs)
    finally:
        program.blocks[block.idx] = block
    alias: dict[str, str] = {}
    for slot, values in results.items():
        for name, value in zip(op.outputs[slot], values, strict=True):
            if name != EMPTY and isinstance(value, Variable):
                alias[name] = value.name
    for made in scratch.ops:
        made.at(op)
        for name in made.output_names:
            block.vars[name].block = block
    return scratch.ops, alias


def expand_grad_op(
    job: BackwardJob, op: Operator, inputs: set[str], have: Container[str]
) -> list[Operator]:
    """The gradient of a grad op: its primitives once more, then their grad ops in reverse."""
    from .op_path import find_op_path
    from .passes import grad_ops_of

    block, grad_name = job.block, job.grad_name
    ops, alias = (cond_written_out if op.type in CONTROL else written_out)(block, op)
    made = list(ops)
    for part in made:  # they read the inputs of the grad op a second time
        part.copy_of, part.reads = op, tuple(n for n in part.input_names if n in op.input_names)
    ready: list[str] = []
    for name, inner in alias.items():
        if name in have:
            copy = Operator(
                "assign", {"x": [grad_name(name)]}, {"out": [grad_name(inner)]}, {}, "backward"
            )
            made.append(copy.at(op))
            ready.append(inner)
    for k, flow in find_op_path(block, ops, ready, inputs, job.no_grad, []):
        grads = grad_ops_of(job, ops[k], flow, ready)
        for grad in grads:
            grad.copy_of = op
        made += grads
        ready += sorted({*flow[0]})
    return made
