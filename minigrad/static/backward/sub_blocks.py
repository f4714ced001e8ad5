"""The grad ops of control flow: a block of grad ops for each block.

The grad block's parent is the block that holds the grad op; its ``forward_block`` link leads to the forward block,
whose values of the step it reads.  Gradient names are local to the grad block, so a parameter read at every depth of a
nest has a gradient in each of its blocks and no two of them meet by accident.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import ProgramError, told
from ...grad_names import EMPTY, GradNames, part
from ...primitives.arguments import Attrs
from ..program.block import Block
from ..program.operator import Operator, backward_op
from ..program.variable import Variable
from .append import append_to_block
from .fan_in import add_up_repeated_gradients, fill_missing_gradients
from .grad_ops import GradName
from .op_path import dependence, find_op_path, over_all_steps
from .overwritten import check_overwritten
from .second import without_unread

if TYPE_CHECKING:
    from .append_backward import BackwardJob


def control_grad_op(
    job: BackwardJob, op: Operator, inputs: set[str], have: Container[str]
) -> Operator:
    """The grad op of a cond, while or recurrent op, with its grad blocks built."""
    if op.type.endswith("_grad"):
        what = f"second derivatives through {op.type[:-5]} are not available: {op.type} has no gradient rule."
        advice = "unroll the loop in Python, or use the eager engine (create_graph=True)"
        raise ProgramError(told(what, advice, op.source_line))
    return (_cond_grad if op.type == "cond" else _loop_grad)(job, op, inputs, have)


def _loop_grad(job: BackwardJob, op: Operator, inputs: set[str], have: Container[str]) -> Operator:
    g, body = job.grad_name, job.block.program.blocks[op.attrs["sub_block"]]
    carried, starts, params = op.attrs["carried"], op.inputs["x"], op.inputs["params"]
    steps, seqs = op.attrs.get("steps", []), op.inputs.get("seq", [])
    step_out, stacked = op.attrs.get("step_out", []), op.outputs.get("stacked", [])
    read = {p for p in params if p in inputs}
    read.update(s for s, q in zip(steps, seqs, strict=True) if q in inputs)
    flows, dependent = _flowing(body, op, inputs, read, have, job.no_grad)
    seeds_out = [s for s, v in zip(step_out, stacked, strict=True) if v in have and s in dependent]
    next_of = dict(zip(carried, op.attrs["next"], strict=True))
    seeds = [next_of[c] for c in flows] + seeds_out
    grad_block, seed_grads, local = _grad_block(job, body, seeds, {*flows, *read})
    carried_seeds = dict(zip(flows, seed_grads, strict=False))
    step_seeds = dict(zip(seeds_out, seed_grads[len(flows) :], strict=True))
    reads = {"x": [*starts], "params": [*params], "scopes": [*op.outputs["scopes"]]}
    reads["out_grad"] = _those(g, op.outputs["out"], carried, flows)
    reached = {c for c, s in zip(carried, starts, strict=True) if s in inputs}
    writes = {
        "x_grad": _those(g, starts, carried, reached.intersection(flows)),
        "params_grad": _those(g, params, params, inputs),
    }
    attrs = {
        "sub_block": grad_block.idx,
        "next_grad": [carried_seeds.get(c, EMPTY) for c in carried],
        "carried_grad": _those(local, carried, carried, flows),
        "params_local": _those(local, params, params, inputs),
    }
    if op.type == "recurrent":
        stacked_grad = _those(g, stacked, step_out, seeds_out)
        reads = {"seq": list(seqs), "stacked_grad": stacked_grad, **reads}
        writes = {"seq_grad": _those(g, seqs, seqs, inputs), **writes}
        attrs["step_out_grad"] = [step_seeds.get(s, EMPTY) for s in step_out]
        attrs["steps_grad"] = _those(local, steps, seqs, inputs)
    return Operator(f"{op.type}_grad", reads, writes, attrs, "backward", op)


def _those(
    naming: GradName, names: list[str], keys: list[str], wanted: Container[str]
) -> list[str]:
    """The gradients of the names whose keys are wanted; `EMPTY` in the places of the others."""
    pairs = zip(names, keys, strict=True)
    return [naming(name) if key in wanted else EMPTY for name, key in pairs]


def _flowing(
    body: Block,
    op: Operator,
    inputs: set[str],
    read: set[str],
    have: Container[str],
    no_grad: set[str],
) -> tuple[list[str], set[str]]:
    """The carried values that hand gradients on, and what in the body depends on something wanted.

    ``read``: what the body reads from outside, or of the sequences, and that wants a gradient.
    """
    carried, starts = op.attrs["carried"], op.inputs["x"]
    behind = dependence(body, [*carried, *read], no_grad)
    after = over_all_steps(op, behind)
    wanted = read | {c for c, s in zip(carried, starts, strict=True) if s in inputs}
    reaching = wanted | {c for c in carried if not after[c].isdisjoint(wanted)}
    dependent = {n for n, sources in behind.items() if not sources.isdisjoint(reaching)}
    asked = [c for c, out in zip(carried, op.outputs["out"], strict=True) if out in have]
    stacked = zip(op.attrs.get("step_out", ()), op.outputs.get("stacked", ()), strict=True)
    asked += [n for name, out in stacked if out in have for n in behind.get(name, ())]
    needed = set[str]().union(*(after.get(n, ()) for n in asked))
    flows = [
        c
        for c, n, start in zip(carried, op.attrs["next"], starts, strict=True)
        if c in needed and ((c in reaching and n in dependent) or start in inputs)
    ]
    return flows, dependent


def _cond_grad(job: BackwardJob, op: Operator, inputs: set[str], have: Container[str]) -> Operator:
    params, outs = op.inputs["params"], op.outputs["out"]
    attrs: Attrs = {}
    for prefix, block_attr in (("true", "sub_block"), ("false", "else_block")):
        block = job.block.program.blocks[op.attrs[block_attr]]
        results = op.attrs[f"{prefix}_out"]
        seeds = [n for n, o in zip(results, outs, strict=True) if o in have]
        grad_block, seed_grads, local = _grad_block(job, block, seeds, set(params) & inputs)
        seed_of = dict(zip(seeds, seed_grads, strict=True))
        attrs[block_attr] = grad_block.idx
        attrs[f"{prefix}_seeds"] = _those(seed_of.__getitem__, results, outs, have)
        attrs[f"{prefix}_params"] = _those(local, params, params, inputs)
    reads = {"pred": [*op.inputs["pred"]], "params": [*params], "scopes": [*op.outputs["scopes"]]}
    reads["out_grad"] = _those(job.grad_name, outs, outs, have)
    writes = {"params_grad": _those(job.grad_name, params, params, inputs)}
    return Operator("cond_grad", reads, writes, attrs, "backward", op)


def _grad_block(
    job: BackwardJob, body: Block, seeds: list[str], wanted: set[str]
) -> tuple[Block, list[str], GradName]:
    """The block of grad ops of a block: the gradients of ``seeds`` are given, those of ``wanted`` are made.

    Returns the block, under which names the seeds are given, and how gradients are named in it.
    A name may be a seed twice: then its two gradients are added up.
    """
    program = job.block.program
    grad_block = program.create_block(job.block.idx, forward_block=body.idx)
    taken = {n for op in body.ops for n in (*op.input_names, *op.output_names)}
    names_here = GradNames(taken | set(body.vars))
    local = names_here.__getitem__
    cut = {n: part(local(n), "cut") for n in seeds if n in job.no_grad}  # nobody reads these
    seed_ops = [
        Operator("given", {}, {"out": [cut.get(n) or local(n)]}, {}, "backward") for n in seeds
    ]
    path = find_op_path(body, body.ops, seeds, wanted, job.no_grad, job.pruned)
    inner = replace(job, block=grad_block, wanted=wanted, names=names_here, pruned=[])
    ops = inner.raw_grad_ops(
        body.ops, path, [(cut.get(n, n), op) for n, op in zip(seeds, seed_ops, strict=True)]
    )
    ops = add_up_repeated_gradients(ops, grad_block.idx)
    ops = fill_missing_gradients(ops, names_here.sources())
    ops = without_unread(grad_block, ops, wanted, names_here)
    check_overwritten(body, ops)
    names = [op.outputs["out"][0] for op in seed_ops]
    for name, seed in zip(names, seeds, strict=True):
        grad_block.vars.setdefault(name, Variable.like(grad_block, name, body.var(seed)))
    written = {n for op in ops for n in op.output_names} | set(names)
    for name in sorted(wanted):
        if local(name) not in written:
            ops.append(backward_op("fill_zeros_like", name, local(name)))
    grad_block.written.update(names)
    append_to_block(grad_block, ops, names_here.sources(), job.callbacks)
    return grad_block, names, local
