"""The op path: which operators lie between the loss and something that wants a gradient."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...errors import ProgramError
from ..program.op_info import find_info
from ..program.program import Block, Operator
from .dependence import connections, has_blocks
from .grad_ops import floating, flow_slots
from .overwritten import repair

Flow = tuple[Collection[str], tuple[str, ...]]  #: the inputs that want a gradient, and their slots
Flows = list[Flow | None]  #: one per operator, None where nothing wanted lies behind it
Path = list[tuple[int, Flow]]  #: operators, last first
FEW = 8  #: so many names are looked through one by one; more are a set


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
    flows, through_blocks = _flows(block, ops, wanted, no_grad)
    targets = list(targets)
    needed = set(targets) - no_grad
    read: dict[str, int] = {}  # wanted name → the last operator whose gradient reaches it
    closed: dict[str, int] = {}  # … and an operator before that which gave it its value
    path: Path = []
    left_out: list[int] = []
    for k in range(len(ops) - 1, -1, -1):
        flow, asked = flows[k], []
        for names in ops[k].outputs.values():
            for name in names:
                if name in needed:
                    needed.remove(name)
                    asked.append(name)
        if flow is not None and k in through_blocks:
            behind = set[str]().union(*(through_blocks[k].get(name, ()) for name in asked))
            flow = ([name for name in flow[0] if name in behind], flow[1])
        if flow is None or not asked or not flow[0]:
            left_out.append(k)
            if read:
                closed.update((n, k) for n in ops[k].output_names if n in read)
            continue
        path.append((k, flow))
        for name in flow[0]:
            needed.add(name)
            if name in wanted:
                if name in closed:
                    raise ProgramError(_two_values(ops, name, k, closed[name], read[name]))
                read.setdefault(name, k)
    if left_out:
        pruned += _left_out(ops, set(left_out), set(targets), flows, no_grad)
    return path


def _left_out(
    ops: Sequence[Operator],
    indices: set[int],
    behind: set[str],
    flows: Flows,
    no_grad: set[str],
) -> list[tuple[str, str]]:
    """The grad ops that are not made, last first, with the reasons; ``behind`` starts as the targets."""
    found = []
    for k in range(len(ops) - 1, -1, -1):
        op, flow = ops[k], flows[k]
        used = not behind.isdisjoint(op.output_names)
        if used:
            behind.update(op.input_names)
        if k in indices and op.role == "forward" and (used or flow):
            reason = _why_not(op, flow, used, no_grad)
            found.append((f"{op.type}_grad", f"#{k} {op.type}: {reason}"))
    return found


def _flows(
    block: Block, ops: Sequence[Operator], wanted: set[str], no_grad: set[str]
) -> tuple[Flows, dict[int, dict[str, set[str]]]]:
    """For each operator the inputs through which gradients flow to something wanted; `connections` of control flow."""
    reaching = set(floating(block, wanted - no_grad))
    slots: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    own, find = block.vars, block.find_var
    flows: Flows = []
    through_blocks: dict[int, dict[str, set[str]]] = {}
    for k, op in enumerate(ops):
        known = slots.get(op.type)
        if known is None:
            known = slots[op.type] = flow_slots(op.type)
        sources, results = known
        given = op.inputs
        inputs: list[str] = []
        through: tuple[str, ...] = ()
        for slot in sources:
            if slot in given:
                before = len(inputs)
                for name in given[slot]:
                    if name in reaching:
                        inputs.append(name)
                if len(inputs) > before:
                    through += (slot,)
        if not inputs:
            flows.append(None)
            if not reaching.isdisjoint(op.output_names):
                reaching.difference_update(n for n in op.output_names if n not in wanted)
            continue
        flows.append((inputs if len(inputs) <= FEW else set(inputs), through))
        made = op.outputs
        if has_blocks(op.type):
            through_blocks[k] = connections(block, op, no_grad)
            reached = [
                o for o, behind in through_blocks[k].items() if not behind.isdisjoint(inputs)
            ]
            reaching.update(o for o in reached if o not in no_grad)
            continue
        for slot in results:
            if slot in made:
                for name in made[slot]:
                    var = own[name] if name in own else find(name)
                    if var is not None and var.dtype.kind == "f" and name not in no_grad:
                        reaching.add(name)
    return flows, through_blocks


def _two_values(ops: Sequence[Operator], name: str, first: int, writer: int, last: int) -> str:
    return (
        f"{name!r} has two values on the way to the loss: #{first} {ops[first].type} reads one, "
        f"#{writer} {ops[writer].type} "
        f"overwrites it, #{last} {ops[last].type} reads the other; its gradient would mix both.\n"
        f"  overwritten at {ops[writer].source_line}\n  repair: {repair(ops[writer])}"
    )


def _why_not(op: Operator, flow: Flow | None, used: bool, no_grad: set[str]) -> str:
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
        if flow is None
        else "gradients end before they come back to it"
    )
