"""The op path: which operators lie between the loss and something that wants a gradient.

For control flow this is read off its blocks: a loop hands nothing on to a start value that the
asked result does not depend on, a cond nothing to what only its other results are made of.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from ...errors import ProgramError
from ...primitives.arguments import Names
from ..program.block import Block
from ..program.operator import BRANCHES, Operator, Ops, find_info, has_blocks, op_info, rows
from ..program.program import Pruned
from ..program.transform import needed_ops
from .passes import lost, written_inside

#: operators, last first, each with its inputs that want a gradient
Path = list[tuple[int, list[str]]]


def find_op_path(
    block: Block, ops: Ops, targets: Iterable[str], wanted: set[str], no_grad: set[str]
) -> Path:
    """The operators that lie between a target and something wanted; the program notes which do not, and why.

    First forward: which names depend on something wanted.  Then in reverse: which of those the
    targets depend on.
    """
    flows, behind = _flows(block, ops, wanted, no_grad)
    inside = dict([*written_inside(block, ops)][::-1])  # name → the first that writes it
    needed = set(targets) - no_grad
    #: wanted name → the last operator whose gradient reaches it; a target's is there already
    read = dict.fromkeys(needed, len(ops))
    closed: dict[str, int] = {}  # … and an operator before that which gave it its value
    path: Path = []
    left_out = list[int]()
    for k in range(len(ops) - 1, -1, -1):
        flow = flows[k]
        asked = needed.intersection(ops[k].output_names)
        needed -= asked
        if k in behind:
            # a target: of what is read later it was said there
            for name in needed & behind[k].keys():
                if not behind[k][name].isdisjoint(flow):
                    raise _written_before(None, name, ops[k])
            sources = set[str]().union(*(behind[k].get(name, ()) for name in asked))
            flow = [name for name in flow if name in sources]
        if not asked or not flow:
            left_out.append(k)
            closed.update((n, k) for n in ops[k].output_names if n in read)
            continue
        path.append((k, flow))
        for name in flow:
            needed.add(name)
            if inside and inside.get(name, k + 1) <= k:
                raise _written_before(ops[k], name, ops[inside[name]])
            if name in closed:
                raise _two_values(ops, name, k, closed[name], read[name])
            if name in wanted:
                read.setdefault(name, k)
    kept = {*map(id, needed_ops(ops, targets))} if left_out else set[int]()
    for k in left_out:
        op, inputs = ops[k], flows[k]
        used = id(op) in kept
        if op.role == "forward" and (used or inputs):
            reason = _why_not(op, inputs, used, no_grad)
            block.program.pruned.append(Pruned(f"{op.type}_grad", reason, op))
    return path


Behind = dict[str, set[str]]  #: name → the sources that its value depends on, by way of gradients


def _flows(
    block: Block, ops: Ops, wanted: set[str], no_grad: set[str]
) -> tuple[list[list[str]], dict[int, Behind]]:
    """For each operator the inputs through which gradients flow to something wanted.

    Also, by the place of an operator that holds blocks, its `connections`.
    """
    reaching = set(floating(block, wanted - no_grad))
    slots_of_type = {t: (*flow_slots(t), has_blocks(t)) for t in {op.type for op in ops}}
    own, find = block.vars, block.find_var
    flows: list[list[str]] = []
    behind: dict[int, Behind] = {}
    for op in ops:
        sources, results, holds_blocks = slots_of_type[op.type]
        read, written = op.inputs, op.outputs
        inputs: list[str] = []
        for slot in sources:
            if slot in read:
                for name in read[slot]:
                    if name in reaching:
                        inputs.append(name)
        if not inputs:
            reaching.difference_update(n for n in op.output_names if n not in wanted)
        elif holds_blocks:
            behind[len(flows)] = connected = connections(block, op, no_grad)
            reaching.update(
                n for n, at in connected.items() if not at.isdisjoint(inputs) and n not in no_grad
            )
            if op.type != "cond":  # what a step writes, the next one reads
                inputs += [n for n in read["params"] if n in reaching and n not in inputs]
        else:
            for slot in results:
                for name in written.get(slot, ()):
                    var = own[name] if name in own else find(name)
                    if var is not None and var.dtype.kind == "f" and name not in no_grad:
                        reaching.add(name)
        flows.append(inputs)
    return flows, behind


def _two_values(ops: Ops, name: str, first: int, writer: int, last: int) -> ProgramError:
    what = f"{name!r} has two values on the way to the loss: #{first} {ops[first].type} reads one, #{writer} "
    other = f"#{last} {ops[last].type} reads" if last < len(ops) else "the target is"
    what += f"{ops[writer].type} overwrites it, {other} the other; its gradient would mix both."
    return lost(what, None, ops[writer])


def _written_before(reader: Operator | None, name: str, writer: Operator) -> ProgramError:
    reads = "the target is" if reader is None else f"{reader.type} reads"
    what = f"{reads} {name!r}, which {writer.type} writes in a block: no gradient follows it there."
    return lost(what, reader, writer, "written")


def _why_not(op: Operator, inputs: list[str], used: bool, no_grad: set[str]) -> str:
    if not used:
        return f"the loss does not depend on {', '.join(op.output_names)}"
    p = op_info(op.type).forward
    if p is not None and not p.rules:
        return "it has no gradient rule"
    cut = [n for n in (*op.input_names, *op.output_names) if n in no_grad]
    if cut:
        return f"gradients end at {', '.join(dict.fromkeys(cut))}"
    if not inputs:
        return "nothing wanted lies behind its inputs"
    return "gradients end before they come back to it"


def connections(block: Block, op: Operator, no_grad: Collection[str]) -> Behind:
    """Differentiable output → the inputs that its gradient flows to.

    What the blocks of an operator write and outlives them depends on its inputs, too.
    """
    inputs = {*differentiable_inputs(block, op)}.difference(no_grad)
    if not has_blocks(op.type):
        results = flow_slots(op.type)[1]
        outputs = floating(block, (n for s in results for n in op.outputs.get(s, ())))
        return dict.fromkeys(outputs, inputs)
    through = _cond if op.type == "cond" else _loop
    behind = through(block, op, no_grad)
    return {out: behind[out] & inputs for out in floating(block, behind)}


def dependence(body: Block, sources: Iterable[str], no_grad: Collection[str]) -> Behind:
    """What each name of a block depends on, of ``sources``, once the last operator has run."""
    behind = {n: {n} for n in sources if n not in no_grad}
    for op in body.ops:
        after = {}
        if not behind.keys().isdisjoint(op.input_names):
            for out, inputs in connections(body, op, no_grad).items():
                after[out] = set[str]().union(*(behind.get(n, ()) for n in inputs))
        for name in op.output_names:
            behind.pop(name, None)
        for name, at in after.items():
            if at and name not in no_grad:
                behind[name] = at | behind.get(name, set())
    return behind


def over_all_steps(op: Operator, behind: Behind, states: Iterable[str] = ()) -> Behind:
    """Carried value or state → what it depends on after any number of steps, itself included."""
    handed_on = dict(rows(op, "carried", "next"))
    handed_on |= {state: state for state in states}
    after = {c: {c} | behind.get(n, set()) for c, n in handed_on.items()}
    for middle in after:  # every way over this value becomes a step
        for c in after:
            if middle in after[c]:
                after[c] |= after[middle]
    return after


def _cond(block: Block, op: Operator, no_grad: Collection[str]) -> Behind:
    sources: Behind = defaultdict(set)
    for prefix, attr in BRANCHES.items():
        branch = block.program.blocks[op.attrs[attr]]
        behind = dependence(branch, op.inputs["params"], no_grad)
        for out, name in rows(op, "out", f"{prefix}_out"):
            sources[out] |= behind.get(name, set())
        for name in _states(branch, behind):
            sources[name] |= behind[name]
    return sources


def _states(body: Block, behind: Behind) -> list[str]:
    """The names from outside that a block has given another value."""
    return [n for n, at in behind.items() if n not in body.vars and at != {n}]


def _loop(block: Block, op: Operator, no_grad: Collection[str]) -> Behind:
    outside = dict(rows(op, "carried", "x") + rows(op, "steps", "seq"))
    body = block.program.blocks[op.attrs["sub_block"]]
    behind = dependence(body, [*outside, *op.inputs["params"]], no_grad)
    states = _states(body, behind)
    after = over_all_steps(op, behind, states)
    sources = {out: after[c] for out, c in rows(op, "out", "carried")}
    sources |= {name: after[name] for name in states}
    for out, name in rows(op, "stacked", "step_out"):
        sources[out] = set()
        for n in behind.get(name, ()):
            sources[out] |= after.get(n, {n})
    return {out: {outside.get(n, n) for n in names} for out, names in sources.items()}


def flow_slots(op_type: str) -> tuple[Names, Names]:
    """The input and output slots of a type through which gradients can flow, as far as the type decides it."""
    info = find_info(op_type)
    if info is None:
        return (), ()
    if info.is_grad:
        return info.inputs, info.outputs
    if info.forward is None:
        return ("x", "params", "seq"), info.outputs
    p = info.forward
    return tuple(p.rules), tuple(o for o in p.outputs if o not in p.nondiff)


def differentiable_inputs(block: Block, op: Operator) -> list[str]:
    """The input names of an operator through which a gradient can flow."""
    return floating(block, (n for s in flow_slots(op.type)[0] for n in op.inputs.get(s, ())))


def floating(block: Block, names: Iterable[str]) -> list[str]:
    """Those of the names that hold floating-point values."""
    own, find = block.vars, block.find_var
    known = ((n, own[n] if n in own else find(n)) for n in names)
    return [n for n, var in known if var is not None and var.dtype.kind == "f"]
