"""The grad ops of control flow: a block of grad ops for each block.

The grad block's parent is the block that holds the grad op; its ``forward_block`` link leads to the forward block,
whose values of the step it reads.  Gradient names are local to the grad block, so a parameter read at every depth of a
nest has a gradient in each of its blocks and no two of them meet by accident.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .grad_maker import differentiable_inputs
from .op_info import CONTROL, OpInfo
from .program import EMPTY, Block, Operator, Variable

if TYPE_CHECKING:
    from .backward import BackwardJob

_LOOP = ("sub_block", "next_grad", "carried_grad", "params_local")
CONTROL["while_grad"] = OpInfo("while_grad", ("x", "params", "scopes", "out_grad"), ("x_grad", "params_grad"), _LOOP, is_grad=True)
CONTROL["recurrent_grad"] = OpInfo(
    "recurrent_grad", ("seq", "x", "params", "scopes", "stacked_grad", "out_grad"), ("seq_grad", "x_grad", "params_grad"),
    (*_LOOP, "step_out_grad", "steps_grad"), is_grad=True,
)
CONTROL["cond_grad"] = OpInfo(
    "cond_grad", ("pred", "params", "scopes", "out_grad"), ("params_grad",),
    ("sub_block", "else_block", "true_seeds", "false_seeds", "true_params", "false_params"), is_grad=True,
)


def control_grad_op(job: BackwardJob, op: Operator, inputs: set[str], have: set[str]) -> Operator:
    """The grad op of a cond, while or recurrent op, with its grad blocks built."""
    if op.type.endswith("_grad"):
        from ..errors import ProgramError

        raise ProgramError(
            f"second derivatives through {op.type[:-5]} are not available: {op.type} has no gradient rule.\n  at {op.source_line}\n"
            f"  repair: unroll the loop in Python, or use the eager engine (create_graph=True)"
        )
    return (_cond_grad if op.type == "cond" else _loop_grad)(job, op, inputs, have)


def _loop_grad(job: BackwardJob, op: Operator, inputs: set[str], have: set[str]) -> Operator:
    program, g = job.block.program, job.grad_name
    body = program.blocks[op.attrs["sub_block"]]
    carried, next_ = op.attrs["carried"], op.attrs["next"]
    steps, step_out = op.attrs.get("steps", []), op.attrs.get("step_out", [])
    starts, params, seqs = op.inputs["x"], op.inputs["params"], op.inputs.get("seq", [])
    wanted_params = [p for p in params if p in inputs]
    wanted_steps = [s for s, q in zip(steps, seqs, strict=True) if q in inputs]
    outs, stacked = op.outputs["out"], op.outputs.get("stacked", [])
    seeds_out = [s for s, v in zip(step_out, stacked, strict=True) if v in have]

    # what depends on something wanted, from step to step until nothing new comes
    reaching = {c for c, s in zip(carried, starts, strict=True) if s in inputs} | set(wanted_params) | set(wanted_steps)
    while True:
        found = _reaching(body, reaching, job.no_grad)
        more = {c for c, n in zip(carried, next_, strict=True) if n in found} - reaching
        if not more:
            break
        reaching |= more
    # and what the wanted outputs depend on
    needed = {n for n, o in zip(next_, outs, strict=True) if o in have} | set(seeds_out)
    while True:
        behind = _behind(body, needed, job.no_grad)
        more = {n for c, n in zip(carried, next_, strict=True) if c in behind} - needed
        if not more:
            break
        needed |= more
    flows = [k for k, (c, n) in enumerate(zip(carried, next_, strict=True)) if c in reaching and n in needed and n in found]
    flows += [k for k in range(len(carried)) if k not in flows and next_[k] in needed and starts[k] in inputs]
    flows.sort()

    wanted = {carried[k] for k in flows} | set(wanted_params) | set(wanted_steps)
    seeds = [next_[k] for k in flows] + [s for s in seeds_out if s in found]
    grad_block, local = _grad_block(job, body, seeds, wanted)
    chosen = set(flows)
    made_inputs = {
        "x": list(starts), "params": list(params), "scopes": list(op.outputs["scopes"]),
        "out_grad": [g(o) if k in chosen else EMPTY for k, o in enumerate(outs)],
    }
    outputs = {
        "x_grad": [g(s) if k in chosen and s in inputs else EMPTY for k, s in enumerate(starts)],
        "params_grad": [g(p) if p in inputs else EMPTY for p in params],
    }
    attrs = {
        "sub_block": grad_block.idx,
        "next_grad": [local(n) if k in chosen else EMPTY for k, n in enumerate(next_)],
        "carried_grad": [local(c) if k in chosen else EMPTY for k, c in enumerate(carried)],
        "params_local": [local(p) if p in inputs else EMPTY for p in params],
    }
    if op.type == "recurrent":
        made_inputs = {"seq": list(seqs), "stacked_grad": [g(v) if s in seeds else EMPTY for s, v in zip(step_out, stacked, strict=True)], **made_inputs}
        outputs = {"seq_grad": [g(q) if q in inputs else EMPTY for q in seqs], **outputs}
        attrs["step_out_grad"] = [local(s) if s in seeds else EMPTY for s in step_out]
        attrs["steps_grad"] = [local(s) if q in inputs else EMPTY for s, q in zip(steps, seqs, strict=True)]
    made = Operator(f"{op.type}_grad", made_inputs, outputs, attrs, "backward", op)
    made.reads = tuple(params)
    return made


def _cond_grad(job: BackwardJob, op: Operator, inputs: set[str], have: set[str]) -> Operator:
    program, g = job.block.program, job.grad_name
    params = op.inputs["params"]
    attrs: dict[str, Any] = {}
    outs = op.outputs["out"]
    for prefix, block_attr in (("true", "sub_block"), ("false", "else_block")):
        block = program.blocks[op.attrs[block_attr]]
        names = op.attrs[f"{prefix}_out"]
        seeds = [n for n, o in zip(names, outs, strict=True) if o in have]
        grad_block, local = _grad_block(job, block, seeds, set(params) & inputs)
        attrs[block_attr] = grad_block.idx
        attrs[f"{prefix}_seeds"] = [local(n) if o in have else EMPTY for n, o in zip(names, outs, strict=True)]
        attrs[f"{prefix}_params"] = [local(p) if p in inputs else EMPTY for p in params]
    made = Operator(
        "cond_grad",
        {"pred": list(op.inputs["pred"]), "params": list(params), "scopes": list(op.outputs["scopes"]), "out_grad": [g(o) if o in have else EMPTY for o in outs]},
        {"params_grad": [g(p) if p in inputs else EMPTY for p in params]}, attrs, "backward", op,
    )
    made.reads = tuple(params)
    return made


def _reaching(body: Block, sources: set[str], no_grad: set[str]) -> set[str]:
    """The names of a block that depend on the sources by way of gradients."""
    found = set(sources)
    for op in body.ops:
        names = {n for _, n in differentiable_inputs(body, op)} - no_grad
        if names & found:
            found.update(n for n in op.output_names if n not in no_grad and body.var(n).dtype.kind == "f")
    return found


def _behind(body: Block, targets: set[str], no_grad: set[str]) -> set[str]:
    """The names of a block that the targets depend on by way of gradients."""
    needed = set(targets)
    for op in reversed(body.ops):
        if not needed.isdisjoint(op.output_names):
            needed |= {n for _, n in differentiable_inputs(body, op)} - no_grad
    return needed


def _grad_block(job: BackwardJob, body: Block, seeds: list[str], wanted: set[str]) -> tuple[Block, Any]:
    """The block of grad ops of a block: gradients of ``seeds`` are given, those of ``wanted`` are made, zeros if need be."""
    from .backward import BackwardJob, add_up_repeated_gradients, append_to_block, fill_missing_gradients, find_op_path, make_raw_grad_ops

    program = job.block.program
    made = program.create_block(job.block.idx, forward_block=body.idx)
    names: dict[str, str] = {}

    def local(name: str) -> str:
        return names.setdefault(name, f"{name}@GRAD")

    inner = BackwardJob(made, wanted, job.no_grad, local, None)
    given = [Operator("given", {}, {"out": [local(n)]}, {}, "backward") for n in seeds]
    path = find_op_path(body, body.ops, seeds, wanted, job.no_grad, job.pruned)
    for name in [*seeds, *sorted(wanted)]:
        _declare(made, local(name), body.var(name))
        inner.grad_of[local(name)] = name
    ops = make_raw_grad_ops(inner, body.ops, path, list(zip(seeds, given, strict=True)))
    ops = add_up_repeated_gradients(ops, made.idx)
    ops = _with_zeros(fill_missing_gradients(ops, made, inner.grad_of), ops, made, inner)
    ops = [op for op in ops if op.type != "given"]
    written = {n for op in ops for n in op.output_names} | {local(n) for n in seeds}
    for name in sorted(wanted):
        if local(name) not in written:
            ops.append(Operator("fill_zeros_like", {"x": [name]}, {"out": [local(name)]}, {}, "backward"))
    append_to_block(made, ops, inner.grad_of, None)
    return made, local


def _with_zeros(filled: list[Operator], ops: list[Operator], block: Block, inner: Any) -> list[Operator]:
    """Declared gradients of wanted names that an op reads before anyone made them are zero, too."""
    made: set[str] = set()
    out: list[Operator] = []
    for op in filled:
        for name in op.input_names:
            if name in inner.grad_of and name not in made and name in block.vars and not any(name in o.output_names for o in filled):
                out.append(Operator("fill_zeros_like", {"x": [inner.grad_of[name]]}, {"out": [name]}, {}, "backward"))
                made.add(name)
        out.append(op)
        made.update(op.output_names)
    return out


def _declare(block: Block, name: str, like: Variable) -> None:
    if name not in block.vars:
        block.vars[name] = Variable(block, name, like.shape, like.dtype)
