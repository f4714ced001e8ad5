"""Grad ops written out in primitives: what `mul_grad` does, as multiplications.

A rule read on Variables appends the operators it is made of.  This gives second derivatives (a grad op on the path is
written out, then differentiated like any forward op) and `passes.decompose`, the first rung of the compiler.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from ..program.block import Block
from ..program.control_flow import captured
from ..program.names import EMPTY, SCOPES
from ..program.op_info import CONTROL, find_info
from ..program.operator import BLOCK_ATTRS, Operator
from ..program.program import Program
from ..program.variable import Variable
from ..run.kernels import run_grad_op
from .op_path import find_op_path

if TYPE_CHECKING:
    from .append_backward import BackwardJob


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
        grads = job.grad_ops_of(ops[k], flow, ready)
        for grad in grads:
            grad.copy_of = op
        made += grads
        ready += sorted({*flow[0]})
    return made


def cond_written_out(block: Block, op: Operator) -> tuple[list[Operator], dict[str, str]]:
    """The cond that a ``cond_grad`` stands for, in no block yet, and gradient → its name there."""
    program = block.program
    attrs: dict[str, object] = {}
    branches = []
    for prefix, attr in (("true", "sub_block"), ("false", "else_block")):
        made, attrs[f"{prefix}_out"] = _branch(block, op, prefix, attr)
        branches.append(made)
        attrs[attr] = made.idx
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
    made = program.create_block(block.idx)
    copier = BlockCopier(program)
    copier.copy_into(program.blocks[grad.forward_block], made, {})
    for local, given in zip(op.attrs[f"{prefix}_seeds"], op.inputs["out_grad"], strict=True):
        if local != EMPTY:
            slots = {"x": [given]}, {"out": [names[local]]}
            made.ops.append(Operator("assign", *slots, {}, "backward").at(op))
    copier.copy_into(grad, made, names)
    return made, [names[n] for n in op.attrs[f"{prefix}_params"] if n != EMPTY]


class BlockCopier:
    """Copies blocks with all they hold; what is copied later finds what was copied before."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.blocks: dict[int, int] = {}  # old index → new index
        self.operators: dict[int, Operator] = {}  # id of the old one → the new one

    def copy_into(self, source: Block, target: Block, names: Mapping[str, str]) -> None:
        """Append copies of the operators of ``source``, and of the blocks they hold, with other names for some."""
        self.blocks[source.idx] = target.idx
        for name, v in source.vars.items():
            made = Variable.like(target, names.get(name, name), v)
            made._stop, made._derived_stop = v._stop, v._derived_stop
            target.vars[made.name] = made
        target.written.update(names.get(n, n) for n in source.written)
        for op in source.ops:
            target.ops.append(self._operator(op, target, names))

    def _operator(self, op: Operator, target: Block, names: Mapping[str, str]) -> Operator:
        made = self.operators[id(op)] = op.copy()
        made.forward_op = self.operators.get(id(op.forward_op), op.forward_op)
        for slots in (made.inputs, made.outputs):
            for slot, listed in slots.items():
                slots[slot] = [names.get(n, n) for n in listed]
        if op.reads is not None:
            made.reads = tuple(names.get(n, n) for n in op.reads)
        for attr in BLOCK_ATTRS:
            if attr in op.attrs:
                made.attrs[attr] = self._block(op.attrs[attr], target, names).idx
        if "cond" in op.attrs:
            made.attrs["cond"] = names.get(op.attrs["cond"], op.attrs["cond"])
        return made

    def _block(self, index: int, around: Block, names: Mapping[str, str]) -> Block:
        source = self.program.blocks[index]
        parent = self.blocks.get(source.parent, around.idx)
        forward = self.blocks.get(source.forward_block, source.forward_block)
        made = self.program.create_block(parent, forward)
        self.copy_into(source, made, {n: m for n, m in names.items() if n not in source.vars})
        return made
