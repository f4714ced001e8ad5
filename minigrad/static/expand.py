"""Grad ops written out in primitives: what `mul_grad` does, as multiplications.

A rule read on Variables appends the operators it is made of.  This gives second derivatives (a grad op on the path is
written out, then differentiated like any forward op) and `decompose`, the first rung of the compiler.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .grad_maker import differentiable_inputs, make_grad_ops, run_grad_op
from .op_info import find_info
from .program import EMPTY, Block, Operator, Variable

if TYPE_CHECKING:
    from .backward import BackwardJob


def written_out(block: Block, op: Operator) -> tuple[list[Operator], dict[str, str]]:
    """The primitives a grad op is made of, as operators that are in no block, and output name → the name they give it."""
    info = find_info(op.type)
    assert info is not None and info.forward is not None
    program = block.program
    scratch = Block(program, block.idx, block.parent, block.forward_block)
    scratch.vars, scratch.written = block.vars, block.written
    program.blocks[block.idx] = scratch
    program._current.append(block.idx)
    try:
        with program.role_guard("backward"):
            slots = {s: [block.var(n) for n in names if n != EMPTY] for s, names in op.inputs.items()}
            wanted = {s: [n != EMPTY for n in names] for s, names in op.outputs.items()}
            results = run_grad_op(info.forward, slots, op.attrs, wanted)
    finally:
        program._current.pop()
        program.blocks[block.idx] = block
    alias = {}
    for slot, values in results.items():
        for name, value in zip(op.outputs[slot], values, strict=True):
            if name != EMPTY and isinstance(value, Variable):
                alias[name] = value.name
    for made in scratch.ops:
        made.code, made.lasti = op.code, op.lasti
    return scratch.ops, alias


def expand_grad_op(job: BackwardJob, op: Operator, inputs: set[str], have: set[str]) -> list[Operator]:
    """The gradient of a grad op: its primitives once more, then their grad ops in reverse."""
    from .backward import find_op_path

    block, grad_name = job.block, job.grad_name
    ops, alias = written_out(block, op)
    made = list(ops)
    ready: set[str] = set()
    for name, inner in alias.items():
        if name in have:
            made.append(Operator("assign", {"x": [grad_name(name)]}, {"out": [grad_name(inner)]}, {}, "backward", None))
            made[-1].code, made[-1].lasti = op.code, op.lasti
            job.grad_of[grad_name(inner)] = inner
            job.grad_of.setdefault(grad_name(name), name)
            ready.add(inner)
    for k, wanted in find_op_path(block, ops, ready, inputs, job.no_grad, []):
        part = ops[k]
        made += make_grad_ops(block, part, wanted, ready.__contains__, grad_name)
        for name in wanted:
            ready.add(name)
            job.grad_of[grad_name(name)] = name
        for name in part.output_names:
            job.grad_of.setdefault(grad_name(name), name)
    return made


def decompose(program: Any) -> Any:
    """A copy of the program in which every grad op is written out in primitives."""
    copy = program.clone()
    for block in copy.blocks:
        ops: list[Operator] = []
        names: dict[str, str] = {}
        for op in block.ops:
            info = find_info(op.type)
            if info is None or not info.is_grad:
                ops.append(op)
                continue
            parts, alias = written_out(block, op)
            for part in parts:
                part.forward_op = op.forward_op
            ops += parts
            for name, inner in alias.items():
                _rename_result(block, ops, parts, name, inner)
        block.ops = ops
        del names
    copy.history.append("decompose")
    copy.changed()
    return copy


def _rename_result(block: Block, ops: list[Operator], parts: list[Operator], name: str, inner: str) -> None:
    """Let the last primitive write the gradient's own name; an ``assign`` where that is not possible."""
    makers = [p for p in parts if inner in p.output_names]
    if len(makers) == 1 and inner not in {n for p in parts for n in p.input_names}:
        for slot, names in makers[0].outputs.items():
            makers[0].outputs[slot] = [name if n == inner else n for n in names]
        block.vars.pop(inner, None)
    else:
        ops.append(Operator("assign", {"x": [inner]}, {"out": [name]}, {}, "backward", None))


__all__ = ["decompose", "differentiable_inputs", "expand_grad_op", "written_out"]
