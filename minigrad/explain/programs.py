"""why, for programs: how the gradient of a Variable comes about, or where exactly the way to the loss is cut."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from ..static.backward.op_path import connections, differentiable_inputs
from ..static.program.block import Block
from ..static.program.op_info import has_blocks, op_info
from ..static.program.operator import Operator
from ..static.program.program import BackwardCall
from ..static.program.variable import Variable
from .explanation import Shown

MOST_PATHS = 8


@dataclass(repr=False)
class ProgramExplanation(Shown):
    """What `explain` found: ``count`` paths from the variable to the loss, or ``cuts``, why there is none.

    ``paths`` holds the first of them.
    """

    name: str
    gradient: str = ""
    paths: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    count: int = 0

    def __str__(self) -> str:
        if self.gradient:
            head = f"the gradient of {self.name} is {self.gradient}, from {self.count} path(s):"
            more = self.count - len(self.paths)
            rest = [f"  … and {more} more"] if more > 0 else []
            return "\n".join([head, *(f"  {p}" for p in self.paths), *rest])
        if len(self.cuts) == 1:
            return f"{self.name} has no gradient: {self.cuts[0]}"
        return "\n".join([f"{self.name} has no gradient:", *(f"  {c}" for c in self.cuts)])


def explain(variable: Variable) -> ProgramExplanation:
    """Where the gradient of a Variable comes from, or the exact cut.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w, v = static.parameter("w", 1.0), static.parameter("v", 2.0)
    ...     h = mg.exp(w)
    ...     h.stop_gradient = True
    ...     pairs = static.append_backward(h * v)
    >>> print(explain(v))
    the gradient of v is v@GRAD, from 1 path(s):
      v → #1 mul → mul_0
    >>> print(explain(w))
    w has no gradient: stop_gradient at exp_0, which #0 exp makes of w
    """
    block = variable.block
    calls = [c for c in block.program.backward_calls if c.block == block.idx or block.idx == 0]
    name = variable.name
    if variable.dtype.kind != "f":
        cut = f"it holds {variable.dtype} numbers, and only floating-point values have gradients"
        return ProgramExplanation(name, cuts=[cut])
    for call in reversed(calls):
        if name not in call.gradients:
            continue
        gradient, inner = call.gradients[name], block.program.blocks[call.block]
        if inner.find_var(gradient) is None:
            return ProgramExplanation(name, cuts=[f"its gradient {gradient} was pruned away"])
        count, paths = _paths(inner, variable, call)
        if count:  # else it is there, and zero
            return ProgramExplanation(name, gradient, paths, count=count)
    if not calls:
        cut = "no backward part was appended yet: static.append_backward(loss)"
        return ProgramExplanation(name, cuts=[cut])
    cuts = _cuts(block.program.blocks[calls[-1].block], variable, calls[-1])
    return ProgramExplanation(name, cuts=cuts)


def _paths(block: Block, variable: Variable, call: BackwardCall) -> tuple[int, list[str]]:
    """How many paths lead from the variable, from its first value, to a target, and the first of them.

    An operator that reads a value twice counts once.
    """
    name, ops = variable.name, block.ops[: call.begin(block)]
    made = (k for k, op in enumerate(ops, 1) if name in op.output_names)
    begin = 0 if variable.is_data or variable.persistable else next(made, 0)
    onward = _onward(block, ops, call)

    touching: dict[str, list[int]] = {}
    for k, op in enumerate(ops):
        for touched in {*onward.get(k, ()), *op.output_names}:
            touching.setdefault(touched, []).append(k)

    def steps(name: str, start: int) -> list[tuple[int, str]]:
        """(operator, output) for all that read this value of the name before it is overwritten."""
        found: list[tuple[int, str]] = []
        places = touching.get(name, [])
        for k in places[bisect_left(places, start) :]:
            if k in onward:
                found += [(k, out) for out in onward[k].get(name, ())]
            if name in ops[k].output_names:
                break
        return found

    ways: dict[tuple[str, int], int] = {}
    for k in range(len(ops), -1, -1):  # what follows an operator is counted before it
        for at in {name} if k == 0 else {*ops[k - 1].output_names}:
            after = sum(ways[out, j + 1] for j, out in steps(at, k))
            ways[at, k] = after + (at in call.targets)
    shown: list[str] = []
    waiting = [(name, begin, name)]
    while waiting and len(shown) < MOST_PATHS:
        at, k, text = waiting.pop()
        if at in call.targets:
            shown.append(text)
        waiting += reversed(
            [
                (out, j + 1, f"{text} → #{j} {ops[j].type} → {out}")
                for j, out in steps(at, k)
                if ways[out, j + 1]
            ]
        )
    return ways[name, begin], shown


def _onward(
    block: Block, ops: list[Operator], call: BackwardCall
) -> dict[int, dict[str, list[str]]]:
    """The operators whose gradients matter: index → input → the outputs whose gradients flow to it."""
    needed, onward = set(call.targets) - call.no_grad, dict[int, dict[str, list[str]]]()
    for k in reversed(range(len(ops))):
        if needed.isdisjoint(ops[k].output_names):
            continue
        ways: dict[str, list[str]] = {}
        for out, inputs in connections(block, ops[k], call.no_grad).items():
            if out in needed:
                for name in inputs:
                    ways.setdefault(name, []).append(out)
        if ways:
            onward[k] = ways
            needed |= ways.keys()
    return onward


def _cuts(block: Block, variable: Variable, call: BackwardCall) -> list[str]:
    """Walk forward from the variable; note where each way ends."""
    ops = block.ops[: call.begin(block)]
    readers: dict[str, list[int]] = {}
    for k, op in enumerate(ops):
        for name in dict.fromkeys(op.input_names):
            readers.setdefault(name, []).append(k)
    if variable.cuts:
        return ["it is marked stop_gradient"]
    if variable.name in call.no_grad:
        return ["it is in no_grad_set"]
    cuts: list[str] = []
    seen, waiting = {variable.name}, [variable.name]
    for name in waiting:
        if name in call.targets:
            return [_not_asked(variable)]
        if name not in readers:
            cuts.append(f"dead branch: no operator before the loss reads {name}")
        for k in readers.get(name, ()):
            cut, through = _through(block, ops[k], k, name, call)
            cuts += cut
            waiting += [n for n in through if n not in seen]
            seen.update(through)
    return list(dict.fromkeys(cuts))


def _through(
    block: Block, op: Operator, k: int, name: str, call: BackwardCall
) -> tuple[list[str], list[str]]:
    """Where the way is cut at an operator, and the outputs it goes on to."""
    if name not in differentiable_inputs(block, op):
        primitive = op_info(op.type).forward
        if primitive is not None and not primitive.rules:
            return [f"#{k} {op.type} has no gradient rule"], []
        slot = next(s for s, names in op.inputs.items() if name in names)
        return [f"#{k} {op.type} has no gradient for its input {slot!r}"], []
    cuts, through = [], []
    flows = connections(block, op, call.no_grad)
    for out in op.output_names:
        var = block.find_var(out)
        if var is not None and var.cuts:
            cuts.append(f"stop_gradient at {out}, which #{k} {op.type} makes of {name}")
        elif out in call.no_grad:
            cuts.append(f"no_grad_set holds {out}, which #{k} {op.type} makes of {name}")
        elif name in flows.get(out, ()):
            through.append(out)
    if has_blocks(op.type) and not cuts and not through:
        cuts = [f"no result of #{k} {op.type} depends on {name} by way of gradients"]
    return cuts, through


def _not_asked(variable: Variable) -> str:
    if variable.persistable:
        return "nobody asked for it: it is not in parameter_list, or not trainable"
    return (
        "nobody asked for it, and nothing that was asked for lies behind it: "
        "set stop_gradient = False before append_backward, or call static.gradients"
    )
