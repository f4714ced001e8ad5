"""Grad ops written out in primitives: what `mul_grad` does, as multiplications.

A rule read on Variables appends the operators it is made of.  This gives second derivatives (a grad op on the path is
written out, then differentiated like any forward op) and `passes.decompose`, the first rung of the compiler.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from ...grad_names import EMPTY, SCOPES, GradNames, whole
from ..program.block import Block
from ..program.control_flow import captured
from ..program.infer import variables_of
from ..program.op_info import CONTROL, op_info
from ..program.operator import Operator, backward_op
from ..program.transform import copy_into, needed_ops
from ..program.variable import Variable
from ..run.kernels import run_grad_op
from .fan_in import outputs_of
from .op_path import find_op_path

if TYPE_CHECKING:
    from .append_backward import BackwardJob


def written_out(block: Block, op: Operator) -> tuple[list[Operator], dict[str, str]]:
    """The primitives a grad op is made of, as operators in no block, and output name → their name for it."""
    rules = op_info(op.type).forward
    program = block.program
    scratch = Block(program, block.idx, block.parent, block.forward_block)
    scratch.vars, scratch.written = block.vars, block.written
    program.blocks[block.idx] = scratch
    try:
        with program.block_guard(scratch), program.role_guard("backward"):
            results = run_grad_op(rules, variables_of(block, op), op.attrs, op.outputs)
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
    block, grad_name = job.block, job.grad_name
    ops, alias = (cond_written_out if op.type in CONTROL else written_out)(block, op)
    operators = list(ops)
    for part in operators:  # they read the inputs of the grad op a second time
        part.copy_of, part.reads = op, tuple(n for n in part.input_names if n in op.input_names)
    ready: list[str] = []
    for name, inner in alias.items():
        if name in have:
            copy = backward_op("assign", grad_name(name), grad_name(inner))
            copy.copy_of = op
            operators.append(copy.at(op))
            ready.append(inner)
    for k, flow in find_op_path(block, ops, ready, inputs, job.no_grad, []):
        grads = job.grad_ops_of(ops[k], flow, ready)
        for grad in grads:
            grad.copy_of = op
        operators += grads
        ready += sorted({*flow[0]})
    return operators


def without_unread(
    block: Block, ops: list[Operator], wanted: set[str], grads: GradNames
) -> list[Operator]:
    """The operators without those, of grad ops written out, whose results nobody reads; and without their sums."""
    if not any(op.copy_of for op in ops):
        return ops

    def stays(op: Operator, used: bool) -> bool:
        own = op.copy_of is None and op.type not in ("sum", "fill_zeros_like")
        return used or own or bool(op.sub_blocks)

    needed = needed_ops(ops, [grads[n] for n in wanted], stays)
    kept = outputs_of(needed)
    made = {*kept, *map(whole, kept)}
    for name in outputs_of(ops):
        if made.isdisjoint({name, grads.get(name)}):  # a gradient is declared like its variable
            block.vars.pop(name, None)
    return needed


def cond_written_out(block: Block, op: Operator) -> tuple[list[Operator], dict[str, str]]:
    """The cond that a ``cond_grad`` stands for, in no block yet, and gradient → its name there."""
    program = block.program
    attrs: dict[str, object] = {}
    branches = []
    for prefix, attr in (("true", "sub_block"), ("false", "else_block")):
        branch, attrs[f"{prefix}_out"] = _branch(block, op, prefix, attr)
        branches.append(branch)
        attrs[attr] = branch.idx
    alias = {}
    for name, param in zip(op.outputs["params_grad"], op.inputs["params"], strict=True):
        if name != EMPTY:
            inner = alias[name] = program.unique_name("cond")
            block.vars[inner] = Variable.like(block, inner, block.var(param))
    scopes = block.create_var(program.unique_name("cond" + SCOPES), (), "int64", derived_stop=True)
    inputs = {"pred": list(op.inputs["pred"]), "params": captured(branches)}
    outputs = {"out": list(alias.values()), "scopes": [scopes.name]}
    return [Operator("cond", inputs, outputs, attrs, "backward").at(op)], alias


def _branch(block: Block, op: Operator, prefix: str, attr: str) -> tuple[Block, list[str]]:
    """A new block: forward operators, gradients of the results, grad ops; and the names of the gradients made.

    Gradients have names of their own here: in a grad block they are named like those outside.
    """
    program = block.program
    grad = program.blocks[op.attrs[attr]]
    names = {n: program.unique_name(n) for n in grad.vars}
    branch = program.create_block(block.idx)
    operators: dict[int, Operator] = {}
    blocks: dict[int, int] = {}  # old index → new index
    _copy_nest(branch, program.blocks[grad.forward_block], operators, blocks, {})
    for local, gradient in zip(op.attrs[f"{prefix}_seeds"], op.inputs["out_grad"], strict=True):
        if local != EMPTY:
            branch.ops.append(backward_op("assign", gradient, names[local]).at(op))
    _copy_nest(branch, grad, operators, blocks, names)
    for copy in operators.values():
        copy.forward_op = operators.get(id(copy.forward_op), copy.forward_op)
    return branch, [names[n] for n in op.attrs[f"{prefix}_params"] if n != EMPTY]


def _copy_nest(
    target: Block,
    source: Block,
    operators: dict[int, Operator],
    blocks: dict[int, int],
    names: Mapping[str, str],
) -> None:
    """Copies of all that a block holds, the blocks inside included."""
    program, start = target.program, len(target.ops)
    blocks[source.idx] = target.idx
    copy_into(target, source, operators, names)
    for op in target.ops[start:]:
        for attr, index in op.sub_blocks.items():
            inner = program.blocks[index]
            parent = blocks.get(inner.parent, target.idx)
            forward = blocks.get(inner.forward_block, inner.forward_block)
            op.attrs[attr] = program.create_block(parent, forward).idx
            outer = {n: m for n, m in names.items() if n not in inner.vars}
            _copy_nest(program.blocks[op.attrs[attr]], inner, operators, blocks, outer)
