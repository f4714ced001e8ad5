"""The grad op of an operator: which slots it reads, which gradients it writes, and how it runs.

The default maker reads everything off the gradient rules: the grad op of ``mul`` is ``mul_grad``,
with an input slot for each name the rules of the *wanted* inputs read and an output slot for each
wanted gradient. A primitive may have a maker of its own (``grad_maker``) that reuses forward ops:
the grad op of ``assign`` is ``assign``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ...errors import ProgramError, told
from ...grad_names import EMPTY, GradNames, part, whole
from ...primitives.arguments import Attrs, Names, Slots
from ...primitives.registry import REGISTRY, Primitive
from ..program.block import Block
from ..program.control_flow import append_control, captured
from ..program.infer import variables_of
from ..program.operator import BRANCHES, CONTROL, Operator, backward_op, op_info, outputs_of, rows
from ..program.transform import copy_into, needed_ops
from ..program.variable import Variable
from ..run.kernels import run_op
from .op_path import dependence, find_op_path, over_all_steps
from .passes import append_to_block, read_instead

if TYPE_CHECKING:
    from .append_backward import BackwardJob


def grad_ops_of(
    job: BackwardJob, op: Operator, flow: list[str], have: Container[str]
) -> list[Operator]:
    """The grad ops of one operator.

    ``flow``: the inputs that want a gradient; ``have``: the outputs whose gradient exists.
    """
    info, inputs = op_info(op.type), set(flow)
    p = info.forward
    if info.is_grad:
        if p is None and op.type != "cond_grad":
            what = f"second derivatives through {op.type[:-5]} are not available: {op.type} has no gradient rule."
            advice = "unroll the loop in Python, or use the eager engine (create_graph=True)"
            raise ProgramError(told(what, advice, op.source_line))
        return expand_grad_op(job, op, inputs, have)
    if p is None:
        maker = _cond_grad if op.type == "cond" else _loop_grad
        return [maker(job, op, inputs, have)]
    if p.grad_maker is not None:
        return _reading_first(p.grad_maker(op, inputs, job.names), op, job.names)
    return [default_grad_op(job.block, op, p, inputs, job.names)]


def _reading_first(grad_ops: list[Operator], op: Operator, grads: GradNames) -> list[Operator]:
    """Several grad ops of an operator that overwrites an input: all read the gradient of its
    result, which has the name of what they write, from a copy that is made before them.
    """
    if len(grad_ops) == 1:
        return grad_ops
    copies = []
    for name in {n: None for n in op.output_names if n in op.input_names}:
        gradient = grads[name]
        copy = part(gradient, op.type)
        read_instead(grad_ops, gradient, copy)
        copies.append(backward_op("assign", gradient, copy, of=op))
    return copies + grad_ops


class Plan(NamedTuple):
    """Which slots the grad op has for some wanted inputs, and how it comes by them."""

    operands: tuple[tuple[str, bool], ...]  # input; only if stretched
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
        is_read = s in reads or s in shapes
        if s in slots and (is_read or (stretches and s in wanted)):
            operands.append((s, not is_read))
    operands += [(s, False) for s in slots if s.endswith("_like")]
    results = tuple(o for o in p.outputs if o in reads)
    given = tuple((o, f"{o}_grad") for o in p.outputs if f"{o}_grad" in reads)
    made = tuple((s, f"{s}_grad") for s in p.inputs if s in wanted)
    return Plan(tuple(operands), results, given, made)


def default_grad_op(
    block: Block | None, op: Operator, p: Primitive, wanted: set[str], grads: GradNames
) -> Operator:
    """``<type>_grad``, with exactly the slots that the rules of the chosen inputs read.

    Without a block nothing is known of shapes: what may be stretched is read.
    """
    slots, results, rules = op.inputs, op.outputs, p.rules
    chosen = [s for s in slots if s in rules and not wanted.isdisjoint(slots[s])]
    operands, read, given, made = plan_of(p, tuple(chosen), (*slots,))
    inputs: Slots = {}
    for s, if_stretched in operands:
        # its shape is read where its gradient may have to be summed to it
        if if_stretched and block is not None:
            x, out, own = slots[s][0], results["out"][0], block.vars
            shape = (own[x] if x in own else block.var(x)).shape
            full = (own[out] if out in own else block.var(out)).shape
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
        outputs[slot] = [grads[names[0]]] if len(names) == 1 else _those(grads, names, wanted)
    return Operator(f"{op.type}_grad", inputs, outputs, op.attrs, "backward", op)


def _handed_on(op: Operator, wanted: set[str], grads: GradNames) -> list[Operator]:
    """A maker: the gradient of every term is that of the result."""
    kind = "scale" if op.type == "sum" else "assign"
    (out,) = op.outputs["out"]
    terms = [n for n in op.inputs["x"] if n in wanted]
    return [backward_op(kind, grads[out], grads[n], of=op) for n in terms]


REGISTRY["sum"].grad_maker = REGISTRY["assign"].grad_maker = _handed_on


# -- The grad ops of control flow: a block of grad ops for each block ----------------------
#
# The grad block's parent is the block that holds the grad op; its ``forward_block`` link leads to the forward block,
# whose values of the step it reads.  Gradient names are local to the grad block, so a parameter read at every depth of
# a nest has a gradient in each of its blocks and no two of them meet by accident.


def _loop_grad(job: BackwardJob, op: Operator, inputs: set[str], have: Container[str]) -> Operator:
    g = job.names
    body = job.block.program.blocks[op.attrs["sub_block"]]
    carried = op.attrs["carried"]
    outs = op.outputs["out"]
    params = op.inputs["params"]
    read = set(params) & inputs
    read.update(element for element, seq in rows(op, "steps", "seq") if seq in inputs)
    handed_on = rows(op, "carried", "next", "x", "out")
    wanted = read | {c for c, _, start, _ in handed_on if start in inputs}
    # the carried values that hand gradients on: what is asked depends on them, they on something wanted
    behind = dependence(body, [*carried, *read], job.no_grad)
    after = over_all_steps(op, behind)
    reaching = read | {c for c in carried if not after[c].isdisjoint(wanted)}
    asked = {c for c, _, _, out in handed_on if out in have}
    step_seeds = {}
    for name, result in rows(op, "step_out", "stacked"):
        sources = behind.get(name, set())
        if result in have and not reaching.isdisjoint(sources):
            step_seeds[result] = name
            asked |= sources
    needed = set[str]().union(*(after.get(n, ()) for n in asked))
    flows = needed.intersection(reaching, carried)
    seeds = {out: name for c, name, _, out in handed_on if c in flows} | step_seeds
    grad_block, given, local = _grad_block(job, body, seeds, flows | read)
    reads = {"x": [*op.inputs["x"]], "params": [*params], "scopes": [*op.outputs["scopes"]]}
    reads["out_grad"] = _those(g, outs, given)
    x_grad = [g[v] if c in flows and v in inputs else EMPTY for c, _, v, _ in handed_on]
    writes = {"x_grad": x_grad, "params_grad": _those(g, params, inputs)}
    attrs = {
        "sub_block": grad_block.idx,
        "next_grad": _those(given, outs, given),
        "carried_grad": _those(local, carried, flows),
        "params_local": _those(local, params, inputs),
    }
    if op.type == "recurrent":
        seqs, stacked = op.inputs["seq"], op.outputs["stacked"]
        reads = {"seq": [*seqs], "stacked_grad": _those(g, stacked, given), **reads}
        writes = {"seq_grad": _those(g, seqs, inputs), **writes}
        attrs["step_out_grad"] = _those(given, stacked, given)
        attrs["steps_grad"] = _those(local, op.attrs["steps"], read)
    return Operator(f"{op.type}_grad", reads, writes, attrs, "backward", op)


def _those(grads: dict[str, str], names: list[str], wanted: Container[str]) -> list[str]:
    """The gradients of the names that are wanted; `EMPTY` in the places of the others."""
    return [grads[name] if name in wanted else EMPTY for name in names]


def _cond_grad(job: BackwardJob, op: Operator, inputs: set[str], have: Container[str]) -> Operator:
    params, outs = op.inputs["params"], op.outputs["out"]
    attrs: Attrs = {}
    for prefix, block_attr in BRANCHES.items():
        block = job.block.program.blocks[op.attrs[block_attr]]
        seeds = {out: name for out, name in rows(op, "out", f"{prefix}_out") if out in have}
        grad_block, given, local = _grad_block(job, block, seeds, set(params) & inputs)
        attrs[block_attr] = grad_block.idx
        attrs[f"{prefix}_seeds"] = _those(given, outs, given)
        attrs[f"{prefix}_params"] = _those(local, params, inputs)
    reads = {"pred": [*op.inputs["pred"]], "params": [*params], "scopes": [*op.outputs["scopes"]]}
    reads["out_grad"] = _those(job.names, outs, have)
    writes = {"params_grad": _those(job.names, params, inputs)}
    return Operator("cond_grad", reads, writes, attrs, "backward", op)


def _grad_block(
    job: BackwardJob, body: Block, seeds: dict[str, str], wanted: set[str]
) -> tuple[Block, dict[str, str], GradNames]:
    """The block of grad ops of a block: the gradients of ``seeds`` are given, those of ``wanted`` are made.

    ``seeds``: result of the operator → its name in the block.  Returns the grad block, result → the name under which
    its gradient is given, and how gradients are named in it.
    A name may be a seed twice: then its two gradients are added up.
    """
    grad_block = job.block.program.create_block(job.block.idx, forward_block=body.idx)
    used = {n for op in body.ops for n in (*op.input_names, *op.output_names)}
    local = GradNames(used.union(body.vars))
    inner = replace(job, block=grad_block, forward=body, wanted=wanted, names=local, trace=None)
    starts = {}
    for result, name in seeds.items():
        cut = part(local[name], "cut") if name in job.no_grad else ""  # nobody reads this
        seed_op = Operator("given", {}, {"out": [cut or local[name]]}, {}, "backward")
        starts[result] = cut or name, seed_op
    inner.build([*starts.values()])
    given = {result: op.outputs["out"][0] for result, (_, op) in starts.items()}
    written = outputs_of(inner.ops)
    for name in sorted(wanted):
        if local[name] not in written:
            inner.ops.append(backward_op("fill_zeros_like", name, local[name]))
    append_to_block(grad_block, inner.ops, local.sources(), job.callbacks)
    return grad_block, given, local


# -- Grad ops written out in primitives: what `mul_grad` does, as multiplications ----------
#
# A rule read on Variables appends the operators it is made of.  This gives second derivatives (a grad op on the path is
# written out, then differentiated like any forward op) and `passes.decompose`, the first rung of the compiler.


def written_out(block: Block, op: Operator) -> tuple[list[Operator], dict[str, str]]:
    """The primitives a grad op is made of, as operators in no block, and output name → their name for it."""
    program, start = block.program, len(block.ops)
    with program.block_guard(block), program.role_guard("backward"):
        results = run_op(op, variables_of(block, op))
    operators = [piece.at(op) for piece in block.ops[start:]]
    del block.ops[start:]
    alias = {}
    for name, value in results:
        if name != EMPTY and isinstance(value, Variable):
            alias[name] = value.name
    return operators, alias


def expand_grad_op(
    job: BackwardJob, op: Operator, inputs: set[str], have: Container[str]
) -> list[Operator]:
    """The gradient of a grad op: its primitives once more, then their grad ops in reverse."""
    block, grads = job.block, job.names
    write_out = cond_written_out if op.type in CONTROL else written_out
    ops, alias = write_out(block, op)
    operators = list(ops)
    ready: list[str] = []
    for name, inner in alias.items():
        if name in have:
            operators.append(backward_op("assign", grads[name], grads[inner]).at(op))
            ready.append(inner)
    for k, flow in find_op_path(block, ops, ready, inputs, job.no_grad):
        operators += grad_ops_of(job, ops[k], flow, ready)
        ready += flow
    for piece in operators:
        piece.copy_of = op
    return operators


def without_unread(job: BackwardJob) -> list[Operator]:
    """The operators without those, of grad ops written out, whose results nobody reads, and their sums."""
    ops, grads = job.ops, job.names
    if not any(op.copy_of for op in ops):
        return ops

    def stays(op: Operator, used: bool) -> bool:
        own = op.copy_of is None and op.forward_op is not None  # no sum, and no zeros
        return used or own or op.type == "given" or bool(op.sub_blocks)

    needed = needed_ops(ops, [grads[n] for n in job.reached], stays)
    kept = outputs_of(needed)
    made = {*kept, *map(whole, kept)}
    for name in outputs_of(ops):
        if made.isdisjoint({name, grads.get(name)}):  # a gradient is declared like its variable
            job.block.vars.pop(name, None)
    return needed


def cond_written_out(block: Block, op: Operator) -> tuple[list[Operator], dict[str, str]]:
    """The cond that a ``cond_grad`` stands for, in no block yet, and gradient → its name there."""
    attrs: Attrs = {}
    branches = []
    for prefix, attr in BRANCHES.items():
        branch, attrs[f"{prefix}_out"] = _branch(block, op, prefix, attr)
        branches.append(branch)
        attrs[attr] = branch.idx
    like = {name: block.var(param) for name, param in rows(op, "params_grad", "params")}
    inputs = {"pred": list(op.inputs["pred"]), "params": captured(branches)}
    with block.program.role_guard("backward"):
        results = append_control(block, "cond", inputs, attrs, out=like.values())["out"]
    alias = {name: result.name for name, result in zip(like, results, strict=True)}
    return [block.ops.pop().at(op)], alias


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

    def copy_nest(target: Block, source: Block, names: Mapping[str, str]) -> None:
        """Copies of all that a block holds, the blocks inside included."""
        start = len(target.ops)
        blocks[source.idx] = target.idx
        copy_into(target, source, operators, names)
        for op in target.ops[start:]:
            for attr, index in op.sub_blocks.items():
                inner = program.blocks[index]
                parent = blocks.get(inner.parent, target.idx)
                forward = blocks.get(inner.forward_block, inner.forward_block)
                copy = program.create_block(parent, forward)
                op.attrs[attr] = copy.idx
                copy_nest(copy, inner, {n: m for n, m in names.items() if n not in inner.vars})

    copy_nest(branch, program.blocks[grad.forward_block], {})
    for local, gradient in rows(op, f"{prefix}_seeds", "out_grad"):
        branch.ops.append(backward_op("assign", gradient, names[local]).at(op))
    copy_nest(branch, grad, names)
    for copy in operators.values():
        copy.forward_op = operators.get(id(copy.forward_op), copy.forward_op)
    return branch, [names[n] for n in op.attrs[f"{prefix}_params"] if n != EMPTY]
