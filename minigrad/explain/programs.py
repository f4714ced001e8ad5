"""why, for programs: how the gradient of a Variable comes about, or where exactly the way to the loss is cut."""

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from ..errors import DTypeError, describe, refusal
from ..grad_names import GRAD
from ..static.backward.op_path import connections, differentiable_inputs
from ..static.program.block import Block
from ..static.program.operator import has_blocks, op_info
from ..static.program.program import BackwardCall
from ..static.program.transform import needed_ops
from ..static.program.variable import Variable
from .paths import Explanation, Flow, Paths, because, forward_trouble, size_of, trouble

MOST_PATHS = 8

#: a name and which of its values: an operator that writes it makes the next
_Value = tuple[str, int]


def explain(variable: Variable, scope=None) -> Explanation:
    """Where the gradient of a Variable comes from, or the exact cut; with the ``scope`` of a run, from its numbers.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w, v = static.parameter("w", -1.0), static.parameter("v", 2.0)
    ...     h = mg.exp(v)
    ...     h.stop_gradient = True
    ...     pairs = static.append_backward(h * mg.relu(w))
    >>> print(explain(w))
    the gradient of w is w@GRAD, from 1 path:
      w → #1 relu → relu_0 → #2 mul → mul_0
    >>> print(explain(v))
    v has no gradient: stop_gradient at exp_0, which #0 exp makes of v
    >>> scope = static.Scope()
    >>> _ = static.Executor().run(prog, scope=scope)
    >>> print(explain(w, scope).note)
      every number of it is 0: lost first by #5 relu_grad, which got 7.39 and gave zeros (saved out: 0, 1 of 1 are 0)
    """
    block = variable.block
    name = variable.name
    program = block.program
    calls = [c for c in program.backward_calls if block.idx in (c.block, 0)]
    ran = getattr(getattr(scope, "record", None), "program", None)
    if scope is not None and ran is not program:
        what = f"{name} is explained from the Scope of a run of its program, not from {describe(scope)}"
        advice = "mg.why(w); or mg.why(w, scope), behind exe.run(program, feed, scope=scope)"
        raise refusal(what, advice, DTypeError)
    if variable.dtype.kind != "f":
        return because(name, "whole_numbers", dtype=variable.dtype)
    for call in reversed(calls):
        gradient = call.gradients.get(name)
        inner = program.blocks[call.block]
        if gradient is None:
            continue
        if inner.find_var(gradient) is None:
            return because(name, "pruned", gradient=gradient)
        count, paths = _paths(inner, variable, call)
        if count:  # else it is there, and zero
            told = Explanation(name, paths=paths, gradient=gradient, count=count)
            if scope is not None:
                _tell_numbers(told, inner, call, scope)
            return told
    if not calls:
        return because(name, "no_backward_part")
    cuts = _cuts(program.blocks[calls[-1].block], variable, calls[-1])
    reason = cuts[0] if len(cuts) == 1 else "".join(f"\n  {c}" for c in cuts)
    return Explanation(name, reason=reason)


class _Ran(NamedTuple):
    """An operator of a run, read as a node: ``next_functions`` has what it made, or nobody for each input."""

    seq: int
    type: str
    saved: dict[str, Any]
    slots: list[str]
    next_functions: list[Any]

    def name(self) -> str:
        return f"#{self.seq} {self.type}"


def _tell_numbers(told: Explanation, block: Block, call: BackwardCall, scope) -> None:
    """The gradient of the last run of a block, and where it became 0, NaN, infinite, small or large."""
    begin = call.begin(block)
    ops = block.ops
    steps = [s for s in scope.record.steps if s.block == block.idx]
    entered = max(k for k, s in enumerate(steps) if s.kind == "enter")
    values = dict(steps[entered].values)
    needed = needed_ops(ops[begin:], [told.gradient])
    counts = dict.fromkeys((n for op in needed for n in op.input_names), 1)
    read = {n for op in ops[begin:] if op.role == "backward" for n in op.input_names}
    forward = []
    flows = []
    for step in (s for s in steps[entered:] if s.kind == "op"):
        op = ops[step.number]
        made = step.values
        held = {s: values.get(n[0]) for s, n in op.inputs.items() if n and GRAD not in n[0]}
        came = [size_of(values[n]) for n in op.input_names if GRAD in n and n in values]
        values |= made
        if step.number < begin:
            held["out"] = next(iter(made.values()), None)
            nobody = [(None, 0)] * len(op.inputs)
            forward.append(_Ran(step.number, op.type, held, [*op.inputs], nobody))
        elif came and op.role in ("loss", "backward"):
            node = _Ran(step.number, op.type, held, [], [n for n in op.output_names if n in made])
            for k, n in enumerate(node.next_functions):
                flows.append(Flow(node, k, (n, 0), max(came), size_of(made[n]), n not in read))
    told.total = values[told.gradient]
    alarms = (forward_trouble(target, values[target], forward[::-1]) for target in call.targets)
    alarm = next(filter(any, alarms), None)
    told.remark(*alarm or trouble(flows, counts, (told.gradient, 0), told.total))


def _paths(block: Block, variable: Variable, call: BackwardCall) -> tuple[int, Paths]:
    """How many paths lead from the variable, from its first value, to a target, and the first of them.

    An operator that reads a value twice counts once.
    """
    name = variable.name
    ops = block.ops[: call.begin(block)]
    targets = {*call.targets} - call.no_grad
    version = Counter[str]()  # of a name: the number of values it had
    #: what reads a value, and what it makes
    steps: dict[_Value, list[tuple[int, _Value]]] = defaultdict(list)
    for k, op in enumerate(ops):
        flows = connections(block, op, call.no_grad).items()
        read = [(steps[n, version[n]], out) for out, inputs in flows for n in inputs]
        version.update({*op.output_names})
        for further, out in read:
            further.append((k, (out, version[out])))
            steps.setdefault((out, version[out]), [])
    begin = (name, 0 if variable.is_data or variable.persistable else min(version[name], 1))
    steps.setdefault(begin, [])
    ways: dict[_Value, int] = {}
    for value, further in reversed(steps.items()):  # what follows an operator is counted before it
        ways[value] = (value[0] in targets) + sum(ways[out] for _, out in further)
    shown: Paths = []
    waiting = [(begin, name)]
    while waiting and len(shown) < MOST_PATHS:
        value, text = waiting.pop()
        if value[0] in targets:
            shown.append(((text,), None))
        further = [s for s in reversed(steps[value]) if ways[s[1]]]
        waiting += [(out, f"{text} → #{k} {ops[k].type} → {out[0]}") for k, out in further]
    return ways[begin], shown


def _cuts(block: Block, variable: Variable, call: BackwardCall) -> list[str]:
    """Walk forward from the variable; note where each way ends."""
    ops = block.ops[: call.begin(block)]
    readers = defaultdict(list)
    for k, op in enumerate(ops):
        for name in {*op.input_names}:
            readers[name].append(k)
    if variable.cuts:
        return ["it is marked stop_gradient"]
    if variable.name in call.no_grad:
        return ["it is in no_grad_set"]
    cuts = []
    seen, waiting = {variable.name}, [variable.name]
    for name in waiting:
        if name in call.targets:
            if variable.persistable:
                return ["nobody asked for it: it is not in parameter_list, or not trainable"]
            return [
                "nobody asked for it, and nothing that was asked for lies behind it: "
                "set stop_gradient = False before append_backward, or call static.gradients"
            ]
        if not readers[name]:
            cuts.append(f"dead branch: no operator before the loss reads {name}")
        for k in readers[name]:
            cut, through = _through(block, k, name, call)
            cuts += cut
            waiting += [n for n in through if n not in seen]
            seen.update(through)
    return list(dict.fromkeys(cuts))


def _through(block: Block, k: int, name: str, call: BackwardCall) -> tuple[list[str], list[str]]:
    """Where the way is cut at an operator, and the outputs it goes on to."""
    op = block.ops[k]
    by = f"#{k} {op.type}"
    if name not in differentiable_inputs(block, op):
        primitive = op_info(op.type).forward
        if primitive is not None and not primitive.rules:
            return [f"{by} has no gradient rule"], []
        slot = next(s for s, names in op.inputs.items() if name in names)
        return [f"{by} has no gradient for its input {slot!r}"], []
    cuts = []
    through = []
    flows = connections(block, op, call.no_grad)
    for out in op.output_names:
        var = block.find_var(out)
        if var is not None and var.cuts:
            cuts.append(f"stop_gradient at {out}, which {by} makes of {name}")
        elif out in call.no_grad:
            cuts.append(f"no_grad_set holds {out}, which {by} makes of {name}")
        elif name in flows.get(out, ()):
            through.append(out)
    if has_blocks(op.type) and not cuts and not through:
        cuts = [f"no result of {by} depends on {name} by way of gradients"]
    return cuts, through
