"""The passes of append_backward, one function each, in the order they run.

    find_op_path → make_raw_grad_ops → add_up_repeated_gradients → fill_missing_gradients
    → check_overwritten → append_to_block

They work on a list of operators that is not in the block yet.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ...primitives.registry import Primitive
from ..program.gradient_names import GradNames
from ..program.infer import infer_outputs
from ..program.op_info import find_info
from ..program.program import EMPTY, BackwardCall, Block, Operator
from ..program.variable import plain_variable
from .grad_ops import default_grad_op, make_grad_ops, plain_primitive
from .gradient_dtypes import several_dtypes, with_casts
from .op_path import Flow, Path, find_op_path
from .overwritten import check_overwritten, outputs_of, written_twice
from .second import expand_grad_op
from .sub_blocks import control_grad_op

Callback = Callable[[Block, dict[str, Any]], None]


@dataclass(eq=False)
class BackwardJob:
    """One call of append_backward on one block: what is wanted, what was made.

    ``reached``: wanted names that got a gradient; ``grad_of``: gradient → variable.
    """

    block: Block
    wanted: set[str]
    no_grad: set[str]
    names: GradNames
    trace: list[Any] | None = None
    callbacks: Sequence[Callback] | None = None
    ops: list[Operator] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    grad_of: dict[str, str] = field(default_factory=dict)
    pruned: list[tuple[str, str]] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)

    @property
    def grad_name(self) -> Callable[[str], str]:
        """Name of a variable → name of its gradient."""
        return self.names.__getitem__

    def build(
        self, seeds: list[tuple[str, Operator]], checkpoints: Iterable[Any] | None = None
    ) -> None:
        """Run the passes up to, but not including, appending."""
        forward = self.block.ops
        # a target that is cut hands nothing on; if all are cut, the seeds say what was asked
        seeds = [(n, op) for n, op in seeds if n not in self.no_grad] or seeds
        self.targets = [n for n, _ in seeds]
        path = find_op_path(
            self.block, forward, self.targets, self.wanted, self.no_grad, self.pruned
        )
        differentiated = [*self.targets, *chain.from_iterable(names for _, (names, _) in path)]
        self.reached = self.wanted.intersection(differentiated)
        self.names.name_all(differentiated)
        self.ops = make_raw_grad_ops(self, forward, path, seeds)
        self.grad_of = self.names.sources()
        self._show("raw")
        if checkpoints is not None:
            from .recompute import recompute_segments

            self.ops = recompute_segments(self.block, self.ops, checkpoints)
            self._show("recomputed")
        self.ops = add_up_repeated_gradients(self.ops, self.block.idx)
        self._show("added up")
        self.ops = fill_missing_gradients(self.ops, self.grad_of)
        self._show("zeros filled in")
        check_overwritten(self.block, self.ops)

    def append(self) -> None:
        """Append the operators, create their variables, call the callbacks."""
        program = self.block.program
        program.pruned += self.pruned
        written = self.block.written
        append_to_block(self.block, self.ops, self.grad_of, self.callbacks)
        gradients = dict(self.names)
        if not written.issuperset(self.grad_of):
            gradients = {v: g for v, g in gradients.items() if g in written}
        call = BackwardCall(self.block.idx, self.targets, self.no_grad, gradients)
        program.backward_calls.append(call)
        self._show("with variables")

    def _show(self, name: str) -> None:
        if self.trace is not None:
            self.trace.append((name, [op.copy() for op in self.ops]))


# -- grad ops ------------------------------------------------------------------------------


def make_raw_grad_ops(
    job: BackwardJob, forward: Sequence[Operator], path: Path, seeds: list[tuple[str, Operator]]
) -> list[Operator]:
    """Seeds first, then the grad ops of the path in reverse; gradients may be written several times."""
    made = [op for _, op in seeds]
    have = {name for name, _ in seeds}
    used = set[str]()  # names whose gradient so far was that of a value written later
    block, grads = job.block, job.names
    plain = {t: plain_primitive(t) for t in {forward[k].type for k, _ in path}}
    asked = not all(p is not None and _has_one_output(p) for p in plain.values())
    for k, (inputs, slots) in path:
        op = forward[k]
        p = plain[op.type]
        start = len(made)
        if p is not None:
            made.append(default_grad_op(block, op, p, inputs, slots, grads))
        else:
            made += grad_ops_of(job, op, (inputs, slots), have)
        if asked:  # only types that are not plain, or have several outputs, ask what is there
            for name in used.intersection(op.output_names) - have:
                _read_zeros(made, start, name, grads[name])
            used.update(have.intersection(op.output_names))
            have.difference_update(*op.outputs.values())
            have.update(inputs)
    return made


def _read_zeros(made: list[Operator], start: int, name: str, gradient: str) -> None:
    """Grad ops, from ``start`` on, read zeros for a gradient that holds what belongs to a later value of its name."""
    zeros = f"{gradient}@RENAME@zeros"
    for op in made[start:]:
        for slot, names in op.inputs.items():
            op.inputs[slot] = [zeros if n == gradient else n for n in names]
    slots = {"x": [name]}, {"out": [zeros]}
    made.insert(start, Operator("fill_zeros_like", *slots, {}, "backward").at(made[start]))


def grad_ops_of(job: BackwardJob, op: Operator, flow: Flow, have: Container[str]) -> list[Operator]:
    """The grad ops of an operator that has not simply one named after it."""
    inputs = set(flow[0])
    info = find_info(op.type)
    assert info is not None
    if info.forward is not None and not info.is_grad:
        return make_grad_ops(job.block, op, info.forward, flow, have, job.names)
    if info.forward is not None or op.type == "cond_grad":
        return expand_grad_op(job, op, inputs, have)
    return [control_grad_op(job, op, inputs, have)]


# -- add up --------------------------------------------------------------------------------


def add_up_repeated_gradients(ops: list[Operator], block_idx: int) -> list[Operator]:
    """A gradient written k > 1 times becomes k temporaries and one ``sum`` of k.

    The ``sum`` stands immediately before the first reader; for a gradient nobody reads, at the end.
    """
    repeated = {name for name in written_twice(outputs_of(ops)) if "@GRAD" in name}
    if not repeated:
        return ops
    writers: dict[str, list[tuple[list[str], int, Operator]]] = {}
    before: dict[int, list[Operator]] = {}
    counts: dict[str, int] = {}

    def close(name: str, position: int) -> None:
        sites = writers.pop(name)
        if len(sites) == 1:
            return
        parts = []
        for names, j, _ in sites:
            k = counts[name] = counts.get(name, -1) + 1
            names[j] = renamed(name, k, block_idx)
            parts.append(names[j])
        total = Operator("sum", {"x": parts}, {"out": [name]}, {}, "backward").at(sites[-1][2])
        before.setdefault(position, []).append(total)

    for position, op in enumerate(ops):
        for names in op.inputs.values():
            for name in names:
                if name in writers:
                    close(name, position)
        for names in op.outputs.values():
            for j, name in enumerate(names):
                if name in repeated:
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


# -- zeros ---------------------------------------------------------------------------------


def fill_missing_gradients(ops: list[Operator], grad_of: dict[str, str]) -> list[Operator]:
    """A gradient that an operator reads and nobody makes is zero: ``fill_zeros_like`` right before the reader.

    An operator with one output is on the path because the gradient of that output is made.
    """
    if all(_reads_one_gradient(t) for t in {op.type for op in ops}):
        return ops
    unmade = set(grad_of)
    out: list[Operator] = []
    for op in ops:
        for names in op.inputs.values():
            for name in names:
                if name in unmade:
                    slots = {"x": [grad_of[name]]}, {"out": [name]}
                    out.append(Operator("fill_zeros_like", *slots, {}, "backward").at(op))
                    unmade.remove(name)
        out.append(op)
        for names in op.outputs.values():
            for name in names:
                unmade.discard(name)
    return out


def _reads_one_gradient(op_type: str) -> bool:
    if op_type in ("fill_constant", "sum"):  # a seed, and what adds up gradients that are made
        return True
    info = find_info(op_type)
    p = info.forward if info is not None and info.is_grad else None
    return p is not None and _has_one_output(p)


def _has_one_output(p: Primitive) -> bool:
    return len(p.outputs) == 1 and not p.list_output


# -- into the block ------------------------------------------------------------------------


def append_to_block(
    block: Block,
    ops: Sequence[Operator],
    grad_of: dict[str, str],
    callbacks: Sequence[Callback] | None,
) -> None:
    """Append the operators; each gradient variable is created with the shape and dtype of its variable."""
    context: dict[str, Any] = {"grad_to_var": grad_of}
    clips = block.program.error_clips
    append = block.ops.append
    for op in with_casts(block, ops, grad_of) if several_dtypes(block) else ops:
        if op.type != "given":  # what a grad block is handed stands there already
            declare_outputs(block, op, grad_of)
            append(op)
        if clips:
            block.ops += error_clips(block, op, grad_of)
        if op.type == "given":
            continue
        if callbacks:
            context["op"] = op
            with block.program.role_guard("backward"):
                for callback in callbacks:
                    callback(block, context)
    block.program.changed()


def error_clips(block: Block, op: Operator, grad_of: dict[str, str]) -> list[Operator]:
    """Clips in place for the gradients that an operator completes, where their variables ask for it."""
    made = []
    for name in op.output_names:
        limits = block.program.error_clips.get(grad_of.get(name, ""))
        if limits is not None:
            attrs = {"min": limits[0], "max": limits[1]}
            made.append(Operator("clip", {"x": [name]}, {"out": [name]}, attrs, "backward").at(op))
    return made


def declare_outputs(block: Block, op: Operator, grad_of: dict[str, str]) -> None:
    """Note what a backward operator writes; create the variables that do not exist in this block."""
    variables, written = block.vars, block.written
    unknown = []
    for names in op.outputs.values():
        for name in names:
            if name not in variables:
                base = grad_of.get(name) or grad_of.get(name.partition("@RENAME@")[0], "")
                like = variables[base] if base in variables else block.find_var(base)
                if like is None:
                    unknown.append(name)
                    continue
                variables[name] = plain_variable(block, name, like.shape, like.dtype, False)
            written.add(name)
    if unknown and unknown != [EMPTY] * len(unknown):
        infer_outputs(block, op)
        written.update(unknown)
        written.discard(EMPTY)
