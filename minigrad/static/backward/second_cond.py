"""The grad op of a cond, written as a cond: each branch computes its forward values again, then their gradients.

So second derivatives through a cond are those of any cond.  Loops keep one scope per step, which no loop can read back:
they have no such form.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..program.block import Block
from ..program.control_builders import captured
from ..program.operator import BLOCK_ATTRS, EMPTY, Operator
from ..program.program import Program
from ..program.variable import Variable


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
    scopes = block.create_var(program.unique_name("cond@SCOPES"), (), "int64", derived_stop=True)
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
