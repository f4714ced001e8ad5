"""The op path: which operators lie between the loss and something that wants a gradient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import ProgramError
from .grad_maker import differentiable_inputs, differentiable_outputs
from .op_info import find_info
from .program import Block, Operator

Path = list[tuple[int, set[str]]]  #: operators, last first: (index, inputs that want a gradient)


def find_op_path(
    block: Block,
    ops: Sequence[Operator],
    targets: Iterable[str],
    wanted: set[str],
    no_grad: set[str],
    pruned: list[tuple[str, str]],
) -> Path:
    """The operators that lie between a target and something wanted.

    First forward: which names depend on something wanted.  Then in reverse: which of those the targets depend on.
    """
    flows = _flows(block, ops, wanted, no_grad)
    needed, behind = set(targets), set(targets)  # by way of gradients; by value
    read: dict[str, int] = {}  # wanted name → the last operator whose gradient reaches it
    closed: dict[str, int] = {}  # … and an operator before that which gave it its value
    path: Path = []
    for k in range(len(ops) - 1, -1, -1):
        op, inputs = ops[k], flows[k]
        outputs = op.output_names
        used = not behind.isdisjoint(outputs)
        if used:
            behind.update(op.input_names)
        if inputs is None or needed.isdisjoint(outputs):
            if op.role == "forward" and (used or inputs):
                pruned.append(
                    (f"{op.type}_grad", f"#{k} {op.type}: {_why_not(op, inputs, used, no_grad)}")
                )
            needed.difference_update(outputs)
            closed.update((n, k) for n in outputs if n in read)
            continue
        path.append((k, inputs))
        if len(inputs) == 1:
            needed.difference_update(outputs)
        else:
            needed.difference_update([n for n in outputs if n not in inputs])
        needed |= inputs
        for name in inputs & wanted:
            if name in closed:
                raise ProgramError(_two_values(ops, name, k, closed[name], read[name]))
            read.setdefault(name, k)
    return path


def _flows(
    block: Block, ops: Sequence[Operator], wanted: set[str], no_grad: set[str]
) -> list[set[str] | None]:
    """For each operator the inputs through which gradients flow to something wanted; None if there are none."""
    reaching = set(wanted)
    flows: list[set[str] | None] = []
    for op in ops:
        inputs = reaching.intersection(differentiable_inputs(block, op)) - no_grad
        flows.append(inputs or None)
        if inputs:
            reaching.update(n for n in differentiable_outputs(block, op) if n not in no_grad)
        else:
            reaching.difference_update(n for n in op.output_names if n not in wanted)
    return flows


def _two_values(ops: Sequence[Operator], name: str, first: int, writer: int, last: int) -> str:
    return (
        f"{name!r} has two values on the way to the loss: #{first} {ops[first].type} reads one, "
        f"#{writer} {ops[writer].type} "
        f"overwrites it, #{last} {ops[last].type} reads the other; its gradient would mix both.\n"
        f"  overwritten at {ops[writer].source_line}\n  repair: give the result of {ops[writer].type} "
        f"a name of its own"
    )


def _why_not(op: Operator, inputs: set[str] | None, used: bool, no_grad: set[str]) -> str:
    if not used:
        return f"the loss does not depend on {', '.join(op.output_names)}"
    info = find_info(op.type)
    if info is not None and info.forward is not None and not info.forward.rules:
        return "it has no gradient rule"
    cut = [n for n in (*op.input_names, *op.output_names) if n in no_grad]
    if cut:
        return f"gradients end at {', '.join(dict.fromkeys(cut))}"
    return (
        "nothing wanted lies behind its inputs"
        if inputs is None
        else "gradients end before they come back to it"
    )
