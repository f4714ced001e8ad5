"""Backward of operators and nets: the design before Programs, kept runnable.

Vocabulary
    grad op     the operator from the gradients of the outputs to those of the inputs
    NOP         an empty net: stands where no gradient is wanted, or none arrives
    RnnOp       an operator that runs a step net once per element of a sequence

What has a gradient rule in the package's table of primitives has a grad op here.  The backward of
a net is a net with the same nesting, in reverse.

>>> fc = NetOp([Operator("matmul", {"x": "x", "y": "W"}, {"out": "z"}),
...             Operator("sigmoid", {"x": "z"}, {"out": "y"})], "fc")
>>> Backward(fc, no_grad={"x"})
fc_grad:
    z@GRAD = sigmoid_grad(out=y, out_grad=y@GRAD)
    @EMPTY@, W@GRAD = matmul_grad(x, W, out_grad=z@GRAD)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ..errors import ProgramError, describe, did_you_mean, wrong
from ..grad_names import EMPTY, GRAD, ZERO
from ..static.backward.grad_ops import Plan, plan_of
from ..static.backward.passes import rename_writers
from ..static.program.arguments import several
from ..static.program.op_info import op_info
from .operators import NetOp, Operator, Slots, names, places
from .rnn import RnnGradOp, RnnOp

# -- an operator → its grad op, in four processes ------------------------------------------------


def grad_type(op: Operator) -> str:
    """1. The type of the grad op, from the table.  Errors: `ProgramError` if there is none."""
    info = op_info(op.type)
    if info.is_grad or info.forward is None or not info.forward.rules:
        what = f"{op.type!r} has no grad op: no gradient rule is declared\n  in {op}"
        raise wrong(what, "declare one: the primitive's .grad(x=lambda out_grad: …)")
    return op.type + "_grad"


def _plan(op: Operator) -> Plan:
    """The slots of the grad op, as in a Program; where shapes are read, they are not known before the run."""
    p: Any = op_info(op.type).forward
    return plan_of(p, tuple(s for s in op.inputs if s in p.rules), tuple(op.inputs))


def copied_inputs(op: Operator) -> Slots:
    """2. The inputs and outputs whose values, shapes or dtypes the gradient rules read."""
    plan = _plan(op)
    slots = {slot for slot, *_ in plan.operands} | set(plan.results)
    forward = {**op.inputs, **op.outputs}
    return {s: list(listed) for s, listed in forward.items() if s in slots}


def added_gradients(op: Operator) -> tuple[Slots, Slots]:
    """3. The gradients of the outputs, to be read, and those of the inputs, to be written."""
    plan = _plan(op)
    reads = {slot: grads(op.outputs[s]) for s, slot in plan.given}
    return reads, {slot: grads(op.inputs[s]) for s, slot in plan.made}


def build_grad_op(op: Operator) -> Operator:
    """The grad op of an operator: look up the type, copy, add the gradients, build with its attrs.

    Errors: `ProgramError` for a type without gradient rule, and for a net.

    >>> build_grad_op(Operator("tanh", {"x": "a"}, {"out": "b"}))
    a@GRAD = tanh_grad(out=b, out_grad=b@GRAD)
    """
    if isinstance(op, NetOp):
        raise ProgramError(f"{op.type!r} is a net, and so is its backward; repair: Backward(net)")
    if isinstance(op, RnnOp):
        return rnn_grad_op(op, set())
    kind = grad_type(op)  # 1
    copied = copied_inputs(op)  # 2
    reads, writes = added_gradients(op)  # 3
    grad_op = Operator(kind, {**copied, **reads}, writes, op.attrs)  # 4
    grad_op.at(op).forward_op = op
    plan = _plan(op)  # of the other slots the shape is enough
    needed = {slot for slot, value, _ in plan.operands if value} | set(plan.results)
    grad_op.reads = tuple(n for slot, listed in copied.items() if slot in needed for n in listed)
    return grad_op


def rnn_grad_op(op: RnnOp, no_grad: set[str]) -> RnnGradOp:
    """The grad op of an RnnOp: `Backward` of its step net, with seeds for what leaves a step."""
    blocked = no_grad | {name for name, outer in op.sequences.items() if outer in no_grad}
    seeded = [name for name in op.carried if name not in blocked]
    stepnet, seeds = differentiate(op.stepnet, blocked, grads(seeded))
    assert isinstance(stepnet, NetOp)
    return RnnGradOp(op, stepnet, dict(zip(seeded, seeds, strict=True)))


def grads(listed: Iterable[str]) -> list[str]:
    """The names of the gradients."""
    return [name + GRAD for name in listed]


# -- a net → its backward net --------------------------------------------------------------------


def Backward(op: Operator, no_grad: Collection[str] = ()) -> Operator:
    """The operator from the gradients of ``op``'s outputs to those of its inputs.

    An Operator gives its grad op, a NetOp a net nested the same way, a blocked one the NOP.
    ``no_grad``: names that want no gradient.  Give the outputs' gradients (``loss@GRAD``) before it
    runs; its ``outputs["out"]`` are the gradients of the inputs of ``op``.
    Errors: `ProgramError` for an unknown name in ``no_grad``, a type without gradient, a name
    written twice.

    >>> from minigrad.nets import Scope
    >>> scope = Scope({"x": 3.0, "y@GRAD": 1.0})
    >>> square = Operator("mul", {"x": "x", "y": "x"}, {"out": "y"})
    >>> square.run(scope); Backward(square).run(scope)
    >>> float(scope["x@GRAD"])
    6.0
    """
    if not isinstance(op, Operator):
        what = f"Backward takes an Operator, a NetOp or an RnnOp, not {describe(op)}"
        raise wrong(what, "Backward(NetOp([…])); static.append_backward(loss) in a Program")
    blocked = set(several(no_grad))
    known = all_names(op)
    for name in sorted(blocked - known):
        hint = did_you_mean(name, sorted(known))
        raise wrong(f"no_grad names {name!r}, which {op.type!r} does not have{hint}")
    if not isinstance(op, NetOp | RnnOp):
        grad_type(op)
    return differentiate(op, blocked, grads(n for n in leaving(op) if n not in blocked))[0]


def differentiate(op: Operator, no_grad: set[str], seeds: list[str]) -> tuple[Operator, list[str]]:
    """The backward side, and the names under which each of the ``seeds`` is to be given to it."""
    refuse_second_values(op)
    net = mirror(op, no_grad, set(seeds))
    fill_zeros(net, seeds)
    renamed = add_up(net, seeds)
    backward = net.ops[0] if len(net.ops) == 1 else net
    backward.forward = op
    if isinstance(backward, NetOp):
        written = {n for _, inner in places(backward) for n in names(inner.outputs)}
        backward.leaving = [n for n in dict.fromkeys(grads(names(op.inputs))) if n in written]
    return backward, renamed


def mirror(op: Operator, no_grad: set[str], known: set[str]) -> NetOp:
    """Grad ops in reverse, nested as the operators are; ``known`` collects the gradients made."""
    root = NetOp([], op.type + "_grad")
    waiting, nets = [(op, root)], []
    while waiting:
        at, home = waiting.pop()
        if isinstance(at, NetOp):
            inner = NetOp([], at.type + "_grad")
            inner.forward_op = at
            home.ops.append(inner)
            nets.append(inner)
            waiting += [(each, inner) for each in at.ops]
        else:
            home.ops.append(grad_or_nop(at, no_grad, known))
    for net in reversed(nets):  # a net of NOPs is a NOP
        if all(isinstance(each, NetOp) and not each.ops for each in net.ops):
            net.ops.clear()
    return root


def grad_or_nop(op: Operator, no_grad: set[str], known: set[str]) -> Operator:
    """The grad op, or the NOP if nothing is wanted of it or nothing arrives."""
    p = None if isinstance(op, RnnOp) else op_info(op.type).forward
    slots = op.inputs if p is None else {s: op.inputs[s] for s in op.inputs if s in p.rules}
    reached = any(n + GRAD in known for n in names(op.outputs))
    if no_grad.issuperset(names(slots)) or not reached:
        nop = NetOp([], "nop")
        nop.forward_op = op
        return nop
    grad_op = rnn_grad_op(op, no_grad) if isinstance(op, RnnOp) else build_grad_op(op)
    for listed in grad_op.outputs.values():
        listed[:] = [EMPTY if n.removesuffix(GRAD) in no_grad else n for n in listed]
    known.update(n for n in names(grad_op.outputs) if n != EMPTY)
    return grad_op


def fill_zeros(net: NetOp, seeds: Iterable[str]) -> None:
    """A gradient that is read and that nobody makes: zeros, ``v@ZERO``, right before its reader."""
    known = set(seeds)
    before: dict[int, list[Operator]] = {}
    for _, op in places(net):
        for slot in (s for s in op.inputs if s.endswith("_grad")):
            for k, name in enumerate(op.inputs[slot]):
                if name not in known:
                    v = name.removesuffix(GRAD)
                    op.inputs[slot][k] = v + ZERO
                    fill = Operator("fill_zeros_like", {"x": v}, {"out": v + ZERO})
                    before.setdefault(id(op), []).append(fill)
        known.update(names(op.outputs))
    insert(net, before, {})


def add_up(net: NetOp, seeds: Sequence[str]) -> list[str]:
    """Several writers of one name: a name for each, in order, and one ``sum`` behind the last.

    A seed that the net writes, too, has the first writer outside; returned are the seeds' names.
    """
    renamed = list(seeds)
    after: dict[int, list[Operator]] = {}
    writers: dict[str, list[Any]] = {name: [(None, renamed, k)] for k, name in enumerate(renamed)}
    for _, op in places(net):
        for listed in op.outputs.values():
            for k, name in enumerate(listed):
                writers.setdefault(name, []).append((op, listed, k))
    for name, sites in writers.items():
        if name == EMPTY or len(sites) == 1:
            continue
        added = Operator("sum", {"x": rename_writers(name, sites)}, {"out": name})
        after.setdefault(id(sites[-1][0]), []).append(added)
    insert(net, {}, after)
    return renamed


def insert(net: NetOp, before: dict[int, list[Operator]], after: dict[int, list[Operator]]) -> None:
    """Put operators before and after others, each into the net where the other one stands."""
    nets = [net]
    for home in nets:
        nets += [op for op in home.ops if isinstance(op, NetOp)]
        home.ops[:] = [
            each
            for op in home.ops
            for each in (*before.get(id(op), ()), op, *after.get(id(op), ()))
        ]


def refuse_second_values(op: Operator) -> None:
    """A grad op may need the first value of a name: nobody may write it again."""
    writer: dict[str, Any] = dict.fromkeys(names(op.inputs))
    for _, at in places(NetOp([op])):
        for name in names(at.outputs):
            if name in writer:
                first = f"written by {writer[name]}" if writer[name] else f"an input of {op.type}"
                raise ProgramError(
                    f"{name!r} is {first}, and\n  {at}\n  gives it a second value, but a grad op "
                    f"may need the first one.\n  repair: write to a new name"
                )
            writer[name] = at


def leaving(op: Operator) -> list[str]:
    """The names whose gradients come from outside."""
    if isinstance(op, NetOp):
        return op.outputs["out"]
    return [name for slot, listed in op.outputs.items() if slot != "scopes" for name in listed]


def all_names(op: Operator) -> set[str]:
    """Every name an operator and the nets inside it use."""
    known: set[str] = set()
    waiting = [op]
    while waiting:
        for _, at in places(NetOp([waiting.pop()])):
            known |= {*names(at.inputs), *names(at.outputs)}
            waiting += [at.stepnet] if isinstance(at, RnnOp) else []
    return known


def fc(x: str, w: str, b: str, out: str, activation: str = "sigmoid") -> NetOp:
    """A fully connected layer, the usual example of a net: product, bias, activation.

    >>> [op.type for op in fc("x", "W", "b", "y").ops]
    ['matmul', 'add', 'sigmoid']
    """
    product = Operator("matmul", {"x": x, "y": w}, {"out": f"{out}.product"})
    total = Operator("add", {"x": f"{out}.product", "y": b}, {"out": f"{out}.sum"})
    return NetOp([product, total, Operator(activation, {"x": f"{out}.sum"}, {"out": out})], "fc")
