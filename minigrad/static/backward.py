"""append_backward: write the gradient program behind the forward program.

One function per pass, in this order; each can be looked at (``trace=[]`` collects the op list after every pass):

    check_loss → no_grad_names → wanted_names → find_op_path → make_raw_grad_ops
    → add_up_repeated_gradients → fill_missing_gradients → append_to_block (creates the variables, calls the callbacks)

The passes work on a list of operators that is not in the block yet, so an error leaves the program as it was.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ProgramError, describe, did_you_mean, user_line
from .control_grad import control_grad_op
from .expand import expand_grad_op
from .grad_maker import differentiable_inputs, make_grad_ops
from .op_info import CONTROL, find_info
from .program import EMPTY, Block, Operator, Program, Variable

Callback = Callable[[Block, dict[str, Any]], None]


def append_backward(
    loss: Variable, parameter_list: Iterable[Any] | None = None, no_grad_set: Iterable[Any] | None = None,
    callbacks: Sequence[Callback] | None = None, checkpoints: Iterable[Any] | None = None, trace: list[Any] | None = None,
) -> list[tuple[Variable, Variable]]:
    """Append the operators that compute the gradient of ``loss``; returns (parameter, gradient) pairs.

    Args: ``parameter_list``, the only variables that want a gradient (all trainable ones by default, in the order of
    creation); ``no_grad_set``, variables whose gradient counts as zero; ``callbacks``, called as ``(block, context)`` after
    each appended operator; ``checkpoints``, forward values to keep: the others are computed again in the backward part;
    ``trace``, a list that gets (pass, operators) after every pass.
    Errors: `ProgramError`; then the program is as before the call.
    Source: the backward building of Fluid, with its repairs (see docs/design.md).
    """
    block = check_loss(loss)
    program = block.program
    no_grad = no_grad_names(block, no_grad_set)
    parameters = _parameters(program, parameter_list)
    wanted = {v.name for v in parameters if v.name not in no_grad} | _asked_by_flag(block, no_grad, parameter_list)
    job = BackwardJob(block, wanted, no_grad, first_names(block, [loss.name, *wanted]), trace)
    seed = Operator("fill_constant", {}, {"out": [job.grad_name(loss.name)]}, _seed_attrs(loss), "loss")
    seed.code, seed.lasti = _maker(block, loss.name)
    job.build([(loss.name, seed)], checkpoints)
    job.append(callbacks)
    found = [(v, block.find_var(job.grad_name(v.name))) for v in parameters]
    return [(v, g) for v, g in found if g is not None and v.name in job.reached]


def gradients(
    targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Any] | None = None, trace: list[Any] | None = None
) -> list[Variable | None]:
    """Append the gradient of targets with respect to any variables; one Variable or None per input.

    ``target_gradients`` are the seeds, ones by default; several targets add up.
    An input that no target depends on gives None.  Applied to a gradient, this makes second derivatives.
    """
    outs, ins = _list(targets), _list(inputs)
    seeds = [None] * len(outs) if target_gradients is None else _list(target_gradients)
    if len(seeds) != len(outs):
        raise ProgramError(f"{len(outs)} targets need {len(outs)} target_gradients, {len(seeds)} were given")
    if not outs or not all(isinstance(v, Variable) for v in [*outs, *ins]):
        raise ProgramError(f"gradients() takes Variables, not {describe(next(v for v in [*outs, *ins, None] if not isinstance(v, Variable)))}\n  at {user_line()}")
    block = outs[0].program.current_block()
    for v in [*outs, *ins, *(s for s in seeds if s is not None)]:
        block.program.as_variable(v, block)
    no_grad = no_grad_names(block, no_grad_set)
    job = BackwardJob(block, {v.name for v in ins}, no_grad - {v.name for v in ins}, first_names(block, [v.name for v in [*outs, *ins]]), trace)
    starts = []
    for target, seed in zip(outs, seeds, strict=True):
        if target.dtype.kind != "f":
            raise ProgramError(f"target {target.name!r} is {target.dtype}: only floating-point values have gradients")
        starts.append((target.name, _seed_op(job, target, seed)))
    job.build(starts)
    job.append(None)
    return [block.find_var(job.grad_name(v.name)) if v.name in job.reached else None for v in ins]


def _seed_op(job: BackwardJob, target: Variable, seed: Any) -> Operator:
    out = {"out": [job.grad_name(target.name)]}
    if seed is not None:
        if isinstance(seed, Variable) and seed.shape != target.shape:
            raise ProgramError(f"the seed {seed!r} must have the shape of its target {target!r}")
        var = job.block.program.as_variable(seed, job.block)
        made = Operator("assign", {"x": [var.name]}, out, {}, "loss")
    elif -1 in target.shape:
        made = Operator("fill_ones_like", {"x": [target.name]}, out, {}, "loss")
    else:
        made = Operator("fill_constant", {}, out, _seed_attrs(target), "loss")
    made.code, made.lasti = _maker(job.block, target.name)
    return made


def _seed_attrs(loss: Variable) -> dict[str, Any]:
    return {"shape": loss.shape, "value": 1.0, "dtype": loss.dtype.name}


def _maker(block: Block, name: str) -> tuple[Any, int]:
    for op in reversed(block.ops):
        if name in op.output_names:
            return op.code, op.lasti
    return None, 0


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


# -- pass 1 to 3: what is asked ------------------------------------------------------------


def check_loss(loss: Any) -> Block:
    """The block of the loss.  Errors: `ProgramError` unless it is a scalar that an operator of the program made."""
    if not isinstance(loss, Variable):
        raise ProgramError(f"append_backward starts from a Variable, not from {describe(loss)}\n  at {user_line()}")
    block = loss.program.current_block()
    if loss.shape not in ((), (1,)) and not all(n == 1 for n in loss.shape):
        raise ProgramError(
            f"the loss must be one number, but {loss!r} has the shape {list(loss.shape)}.\n  at {user_line()}\n"
            f"  repair: reduce it first ({loss.name}.mean() or .sum()), or use static.gradients with target_gradients"
        )
    if loss.dtype.kind != "f":
        raise ProgramError(f"the loss must be a floating-point number, but {loss!r} is {loss.dtype}")
    if not any(loss.name in b.written for b in block.lookup()):
        raise ProgramError(f"no operator of this program computes the loss {loss.name!r}; it is {'data' if loss.is_data else 'a parameter'}")
    return block


def no_grad_names(block: Block, no_grad_set: Iterable[Any] | None) -> set[str]:
    """The names whose gradient counts as zero: marked ``stop_gradient`` by the user, or in ``no_grad_set``."""
    cut = {v.name for v in block.program.all_variables() if v.cuts}
    known: list[str] | None = None
    for item in no_grad_set or ():
        name = item.name if isinstance(item, Variable) else str(item)
        if not any(name in b.vars for b in block.program.blocks):
            known = [v.name for v in block.program.all_variables()] if known is None else known
            raise ProgramError(f"no_grad_set names {name!r}, which is no variable of this program{did_you_mean(name, known)}\n  at {user_line()}")
        cut.add(name)
    return cut


def _parameters(program: Program, parameter_list: Iterable[Any] | None) -> list[Variable]:
    if parameter_list is None:
        return program.parameters()
    found = []
    for item in parameter_list:
        name = item.name if isinstance(item, Variable) else str(item)
        var = program.global_block().vars.get(name)
        if var is None:
            known = [v.name for v in program.parameters()]
            raise ProgramError(f"parameter_list names {name!r}, which is no variable of this program{did_you_mean(name, known)}\n  at {user_line()}")
        found.append(var)
    return found


def _asked_by_flag(block: Block, no_grad: set[str], parameter_list: Any) -> set[str]:
    """Variables whose ``stop_gradient`` the user set to False ask for a gradient, as data may."""
    if parameter_list is not None:
        return set()
    return {v.name for b in block.lookup() for v in b.vars.values() if v._stop is False and v.name not in no_grad and not v.trainable}


def first_names(block: Block, roots: Iterable[str]) -> Callable[[str], str]:
    """How gradients are named: ``v@GRAD``, or ``v@GRAD@2`` … where an earlier call has taken the name."""
    taken: dict[str, str] = {}
    existing: set[str] = {n for b in block.program.blocks for n in b.vars}

    def grad_name(name: str) -> str:
        made = taken.get(name)
        if made is None:
            made, k = f"{name}@GRAD", 2
            while made in existing:
                made, k = f"{name}@GRAD@{k}", k + 1
            taken[name] = made
        return made

    return grad_name


# -- the job -------------------------------------------------------------------------------


@dataclass(eq=False)
class BackwardJob:
    """One call of append_backward on one block: what is wanted, what was made."""

    block: Block
    wanted: set[str]
    no_grad: set[str]
    grad_name: Callable[[str], str]
    trace: list[Any] | None = None
    ops: list[Operator] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    grad_of: dict[str, str] = field(default_factory=dict)          # gradient → variable
    pruned: list[tuple[str, str]] = field(default_factory=list)
    new_blocks: int = 0

    def build(self, seeds: list[tuple[str, Operator]], checkpoints: Iterable[Any] | None = None) -> None:
        """Run the passes up to, but not including, appending."""
        forward = self.block.ops
        path = find_op_path(self.block, forward, [n for n, _ in seeds], self.wanted, self.no_grad, self.pruned)
        start = len(self.block.program.blocks)
        try:
            self.ops = make_raw_grad_ops(self, forward, path, seeds)
            self._show("raw")
            if checkpoints is not None:
                from .recompute import recompute_segments

                self.ops = recompute_segments(self.block, self.ops, checkpoints)
                self._show("recomputed")
            self.ops = add_up_repeated_gradients(self.ops, self.block.idx)
            self._show("added up")
            self.ops = fill_missing_gradients(self.ops, self.block, self.grad_of)
            self._show("zeros filled in")
            check_overwritten(self.block, self.ops)
        except BaseException:
            del self.block.program.blocks[start:]
            raise

    def _show(self, name: str) -> None:
        if self.trace is not None:
            copies = []
            for op in self.ops:
                copy = Operator(op.type, {s: list(v) for s, v in op.inputs.items()}, {s: list(v) for s, v in op.outputs.items()}, op.attrs, op.role, op.forward_op)
                copy.reads = op.reads
                copies.append(copy)
            self.trace.append((name, copies))

    def append(self, callbacks: Sequence[Callback] | None) -> None:
        """Append the operators, create their variables, call the callbacks."""
        self.block.program.pruned += self.pruned
        append_to_block(self.block, self.ops, self.grad_of, callbacks)
        self._show("with variables")


# -- pass 4: the op path -------------------------------------------------------------------


def find_op_path(
    block: Block, ops: Sequence[Operator], targets: Iterable[str], wanted: set[str], no_grad: set[str], pruned: list[tuple[str, str]]
) -> list[tuple[int, set[str]]]:
    """The operators that lie between a target and something wanted: (index, the inputs that want a gradient).

    First forward: which names depend on something wanted.  Then in reverse: which of those the targets depend on.
    """
    reaching: set[str] = set(wanted)
    flows: list[set[str] | None] = []
    for op in ops:
        inputs = {n for _, n in differentiable_inputs(block, op)} & reaching
        inputs -= no_grad
        flows.append(inputs or None)
        for name in op.output_names:
            if inputs and name not in no_grad and _carries(block, op, name):
                reaching.add(name)
            elif name in reaching and name not in wanted:
                reaching.discard(name)
    needed = set(targets)
    path: list[tuple[int, set[str]]] = []
    for k in range(len(ops) - 1, -1, -1):
        op, inputs = ops[k], flows[k]
        if needed.isdisjoint(op.output_names):
            if op.role == "forward" and inputs:
                pruned.append((f"{op.type}_grad", f"#{k} {op.type}: the loss does not depend on {', '.join(op.output_names)}"))
            continue
        if inputs is None:
            if op.role == "forward":
                pruned.append((f"{op.type}_grad", f"#{k} {op.type}: {_why_not(block, op, no_grad)}"))
            needed.difference_update(op.output_names)
            continue
        path.append((k, inputs))
        needed.difference_update(n for n in op.output_names if n not in inputs)
        needed |= inputs
    return path


def _carries(block: Block, op: Operator, name: str) -> bool:
    info = find_info(op.type)
    if info is not None and info.forward is not None and not info.is_grad:
        slot = next(s for s, names in op.outputs.items() if name in names)
        if slot in info.forward.nondiff:
            return False
    var = block.find_var(name)
    return var is not None and var.dtype.kind == "f"


def _why_not(block: Block, op: Operator, no_grad: set[str]) -> str:
    info = find_info(op.type)
    if info is not None and info.forward is not None and not info.forward.rules:
        return "it has no gradient rule"
    cut = [n for n in op.input_names if n in no_grad]
    if cut:
        return f"gradients end at {', '.join(cut)}"
    return "nothing wanted lies behind its inputs"


# -- pass 5: grad ops ----------------------------------------------------------------------


def make_raw_grad_ops(job: BackwardJob, forward: Sequence[Operator], path: list[tuple[int, set[str]]], seeds: list[tuple[str, Operator]]) -> list[Operator]:
    """Seeds first, then the grad ops of the path in reverse; gradients may be written several times."""
    block, grad_name = job.block, job.grad_name
    made = [op for _, op in seeds]
    have: set[str] = set()
    for name, _ in seeds:
        have.add(name)
        job.grad_of[grad_name(name)] = name
        if name in job.wanted:
            job.reached.add(name)
    for k, inputs in path:
        op = forward[k]
        if have.isdisjoint(op.output_names):
            continue
        if op.type in CONTROL:
            grads = [control_grad_op(job, op, inputs, have)]
        else:
            info = find_info(op.type)
            assert info is not None
            if info.is_grad:
                grads = expand_grad_op(job, op, inputs, have)
            else:
                grads = make_grad_ops(block, op, inputs, have.__contains__, grad_name)
        made += grads
        have.difference_update(n for n in op.output_names if n not in inputs)
        for name in sorted(inputs):
            have.add(name)
            job.grad_of[grad_name(name)] = name
            if name in job.wanted:
                job.reached.add(name)
        for name in op.output_names:
            job.grad_of.setdefault(grad_name(name), name)
    return made


# -- pass 6: add up ------------------------------------------------------------------------


def add_up_repeated_gradients(ops: list[Operator], block_idx: int) -> list[Operator]:
    """A gradient written k > 1 times becomes k temporaries and one ``sum`` of k.

    The ``sum`` stands immediately before the first reader; for a gradient nobody reads, at the end.
    """
    writers: dict[str, list[tuple[list[str], int, Operator]]] = {}
    before: dict[int, list[Operator]] = {}
    counts: dict[str, int] = {}
    closed: list[tuple[int, Operator]] = []

    def close(name: str, position: int) -> None:
        sites = writers.pop(name, None)
        if sites is None or len(sites) == 1:
            return
        parts = []
        for names, j, _ in sites:
            part = renamed(name, counts.get(name, 0), block_idx)
            counts[name] = counts.get(name, 0) + 1
            names[j] = part
            parts.append(part)
        total = Operator("sum", {"x": parts}, {"out": [name]}, {}, "backward", None)
        total.code, total.lasti = sites[-1][2].code, sites[-1][2].lasti
        before.setdefault(position, []).append(total)

    for position, op in enumerate(ops):
        for names in op.inputs.values():
            for name in names:
                if name in writers:
                    close(name, position)
        for names in op.outputs.values():
            for j, name in enumerate(names):
                if name != EMPTY and _is_gradient(name):
                    writers.setdefault(name, []).append((names, j, op))
    for name in list(writers):
        close(name, len(ops))
    if not before:
        return ops
    out: list[Operator] = []
    for position, op in enumerate(ops):
        out += before.get(position, ())
        out.append(op)
    return out + before.get(len(ops), [])


def renamed(name: str, k: int, block_idx: int) -> str:
    """The temporary name of the k-th writer of a gradient."""
    return f"{name}@RENAME@{k}" if block_idx == 0 else f"{name}@RENAME@block{block_idx}@{k}"


def _is_gradient(name: str) -> bool:
    return "@GRAD" in name


# -- pass 7: zeros -------------------------------------------------------------------------


def fill_missing_gradients(ops: list[Operator], block: Block, grad_of: dict[str, str]) -> list[Operator]:
    """A gradient that an operator reads and nobody makes is zero: ``fill_zeros_like`` right before the reader."""
    made: set[str] = set()
    out: list[Operator] = []
    for op in ops:
        for names in op.inputs.values():
            for name in names:
                base = grad_of.get(name)
                if base is not None and name not in made and not block.has_var(name):
                    zero = Operator("fill_zeros_like", {"x": [base]}, {"out": [name]}, {}, "backward", op.forward_op)
                    zero.forward_op = None
                    zero.code, zero.lasti = op.code, op.lasti
                    out.append(zero)
                    made.add(name)
        out.append(op)
        made.update(op.output_names)
    return out


def check_overwritten(block: Block, ops: Sequence[Operator]) -> None:
    """A value that a grad op reads must still be there: an error that names both operators if it was overwritten."""
    last: dict[str, int] = {}
    repeated: set[str] = set()
    for k, op in enumerate(block.ops):
        for name in op.output_names:
            if name in last:
                repeated.add(name)
            elif (v := block.find_var(name)) is not None and (v.is_data or v.persistable or name not in block.vars):
                repeated.add(name)
            last[name] = k
    if not repeated:
        return
    position = {id(op): k for k, op in enumerate(block.ops)}
    for op in ops:
        f = op.forward_op
        if f is None or id(f) not in position:
            continue
        for name in op.reads or ():
            if name not in repeated:
                continue
            at = position[id(f)]
            own_output = name in f.output_names and name not in f.input_names
            later = last[name] > at or (last[name] == at and not own_output)
            if later:
                writer = block.ops[last[name]]
                raise ProgramError(
                    f"{op.type} needs the value that {name!r} had at #{at} {f.type}, but #{last[name]} {writer.type} overwrites it.\n"
                    f"  read at {f.source_line}\n  overwritten at {writer.source_line}\n"
                    f"  repair: give the result of {writer.type} a name of its own"
                )


# -- pass 8 and 9: into the block ----------------------------------------------------------


def append_to_block(block: Block, ops: Sequence[Operator], grad_of: dict[str, str], callbacks: Sequence[Callback] | None) -> None:
    """Append the operators; each gradient variable is created with the shape of its variable."""
    context: dict[str, Any] = {"grad_to_var": grad_of}
    for op in ops:
        declare_outputs(block, op, grad_of)
        block.ops.append(op)
        block.written.update(op.output_names)
        for callback in callbacks or ():
            context["op"] = op
            with block.program.role_guard("backward"):
                callback(block, context)
    block.program.changed()


def declare_outputs(block: Block, op: Operator, grad_of: dict[str, str]) -> None:
    """Create the output variables of a backward operator that do not exist in this block."""
    for names in op.outputs.values():
        for name in names:
            if name == EMPTY or name in block.vars:
                continue
            base = grad_of.get(name) or grad_of.get(name.partition("@RENAME@")[0])
            like = block.find_var(base) if base is not None else None
            if like is not None:
                block.vars[name] = Variable(block, name, like.shape, like.dtype)
    if any(n != EMPTY and n not in block.vars for n in op.output_names):
        from .infer import infer_outputs

        infer_outputs(block, op)
        for name in op.output_names:
            if name != EMPTY and name not in block.vars:
                block.create_var(name, (), np.float64)
