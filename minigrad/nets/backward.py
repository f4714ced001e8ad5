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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ProgramError, describe, did_you_mean, user_frame, wrong
from ..grad_names import EMPTY, GRAD, SCOPES, ZERO, GradNames
from ..primitives.arguments import ByName, Listed, Slots, Values
from ..static.backward.grad_ops import default_grad_op
from ..static.backward.passes import rename_writers
from ..static.program import operator as static_operator
from ..static.program.operator import check_operator, check_slots, op_info, several, slots_of
from ..static.run.interpreter import outer_reads
from ..static.run.kernels import refused, run_op

Given = Mapping[str, str | Sequence[str]]


class Scope(ByName):
    """Names and their values; a name that is not here is looked up in ``parent``.

    >>> step = Scope({"h": 2.0}, parent=Scope({"W": 3.0}))
    >>> step["h"], step["W"]
    (2.0, 3.0)
    """

    def __init__(self, values: Mapping[str, Any] | None = None, parent: Any = None) -> None:
        super().__init__(values or {})
        self.parent = parent

    def __missing__(self, name: str) -> Any:
        if self.parent is None:
            raise KeyError(name)
        return self.parent[name]


# -- operators ---------------------------------------------------------------------------------


class Operator(static_operator.Operator):
    """One operation, written down: ``Operator("mul", {"x": "a", "y": "b"}, {"out": "c"})``.

    A slot is given one name or a list of names; what it knows of itself is what an operator of a
    Program knows. Errors: `ProgramError` for an unknown type, slot or attr, with the nearest known
    one, and for a missing name.

    >>> scope = Scope({"a": 2.0, "b": 3.0})
    >>> Operator("mul", {"x": "a", "y": "b"}, {"out": "c"}).run(scope)
    >>> float(scope["c"])
    6.0
    """

    forward: "Operator | None" = None  #: what the result of `Backward` is the backward of

    def __init__(
        self, type: str, inputs: Given, outputs: Given, attrs: Mapping[str, Any] | None = None
    ) -> None:
        self._begin(type, attrs)
        self.inputs = slots_of(inputs)
        self.outputs = slots_of(outputs)
        info = op_info(str(type))
        check_slots(info, self)
        if not info.is_grad or info.forward is None:  # which may write one name twice
            check_operator(info, self)
        for slot in info.outputs:
            if slot not in self.outputs and not info.is_grad:
                raise wrong(f"{type} needs a name for its output {slot!r}", f'{{{slot!r}: "c"}}')

    def _begin(self, type: str, attrs=None) -> None:
        """What every operator has besides its slots, the user's line among it."""
        self.type = type
        self.attrs = dict(attrs or {})
        self.role = "forward"
        self.forward_op = self.copy_of = None
        frame = user_frame()
        self.code, self.lasti = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)

    def _values(self, scope) -> Values:
        """The values of the inputs by slot."""
        return {s: [read(scope, n, self) for n in listed] for s, listed in self.inputs.items()}

    def run(self, scope: Any) -> None:
        """Read the inputs by name, compute, write the outputs by name.

        ``scope`` is a `Scope`, a dictionary, or an executor's scope.
        Errors: `ProgramError` that names the input without value, or says what the kernel refused.
        """
        slots = self._values(scope)
        try:
            for name, value in run_op(self, slots):
                write(scope, name, value)
        except (ValueError, TypeError, IndexError, ArithmeticError) as error:
            raise refused(self, slots, error, line=self.source_line) from error


def read(scope, name: str, reader) -> Any:
    """The value of a name.  Errors: `ProgramError` with the names that have one."""
    try:
        value = scope[name]
    except KeyError:
        known = scope if isinstance(scope, Mapping) else scope.values
        hint = f"; give it before the run: scope[{name!r}] = …"
        if not name.endswith(GRAD):
            hint = did_you_mean(name, known)
        raise ProgramError(
            f"{name!r} has no value in this scope{hint}\n  read by {reader}"
        ) from None
    return np.asarray(getattr(value, "_data", value)) if not isinstance(value, list) else value


def write(scope, name: str, value) -> None:
    """Set the value of a name in this scope, not in its parents; ``@EMPTY@`` is dropped."""
    if name != EMPTY:
        (scope if isinstance(scope, dict) else scope.values)[name] = value


class NetOp(Operator):
    """An operator that holds operators and runs them in order: ``NetOp(ops, "fc")``.

    ``outputs["out"]`` are the names that leave the net: the given ones, else those not read in it.

    >>> ops = [Operator("exp", {"x": "a"}, {"out": "b"}), Operator("exp", {"x": "b"}, {"out": "c"})]
    >>> NetOp(ops).outputs
    {'out': ['c'], 'inner': ['b']}
    """

    def __init__(
        self, ops: Iterable[Operator], name: str = "net", outputs: Iterable[str] | None = None
    ) -> None:
        self._begin(name)
        self.ops, self.name = list(ops), name
        for op in self.ops:
            if not isinstance(op, Operator):
                raise wrong(
                    f"a net holds operators and nets, not {describe(op)}",
                    'NetOp([Operator("exp", {"x": "a"}, {"out": "b"})])',
                )
        self.leaving = None if outputs is None else list(outputs)
        written = {n for op in operators(self) for n in op.output_names}
        for n in self.leaving or ():
            if n not in written:
                what = f"no operator of the net {name!r} writes its output {n!r}"
                raise wrong(what + did_you_mean(n, written))

    @property
    def inputs(self) -> Slots:  # type: ignore[override]
        """What the net reads and nobody in it has written before."""
        return {"x": outer_reads(operators(self))}

    @property
    def outputs(self) -> Slots:  # type: ignore[override]
        """What the net writes: names that leave it, and names that stay inside."""
        ops = list(operators(self))
        written = dict.fromkeys(n for op in ops for n in op.output_names if n != EMPTY)
        inside = {n for op in ops for n in (*op.input_names, *op.outputs.get("scopes", ()))}
        out = [n for n in written if n not in inside] if self.leaving is None else self.leaving
        return {"out": out, "inner": [n for n in written if n not in set(out)]}

    def run(self, scope: Any) -> None:
        """Run every operator in order, those of nets inside included."""
        for op in operators(self):
            op.run(scope)

    def __repr__(self) -> str:
        lines = "\n".join(map(repr, self.ops)).splitlines()
        return "\n    ".join([f"{self.type}:", *lines])


def operators(net: NetOp) -> Iterator[Operator]:
    """Every operator that computes, in order, those of nets inside included."""
    return (op for _, op in places(net))


def places(net: NetOp) -> Iterator[tuple[NetOp, Operator]]:
    """The same, each with the net that holds it."""
    for op in net.ops:
        if isinstance(op, NetOp):
            yield from places(op)
        else:
            yield net, op


class RnnOp(Operator):
    """A step net over time.

    ``sequences``   name in the step → the sequence whose elements (first axis) it takes
    ``memories``    name at the start of a step → (name at its end, name of the first value)
    ``outputs``     name in the step → name of all its values, stacked
    ``last``        name at the end of a step → name of its last value

    What else the step net reads is shared by all steps.
    Errors: `ProgramError` for names the step net does not have, or one that is an element and a
    memory; at the run for sequences of different lengths.

    >>> step = NetOp([Operator("add", {"x": "h_pre", "y": "x"}, {"out": "h"})], "step")
    >>> scope = Scope({"xs": np.array([1.0, 2.0, 3.0]), "h0": 0.0})
    >>> RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}, {"h": "hT"}).run(scope)
    >>> scope["hs"], float(scope["hT"])
    (array([1., 3., 6.]), 6.0)
    """

    def __init__(
        self,
        stepnet: NetOp,
        sequences: Mapping[str, str],
        memories: Mapping[str, tuple[str, str]],
        outputs: Mapping[str, str],
        last: Mapping[str, str] | None = None,
    ) -> None:
        self._begin("rnn")
        self.stepnet = stepnet if isinstance(stepnet, NetOp) else NetOp([stepnet], "step")
        self.sequences, self.stacked, self.last = dict(sequences), dict(outputs), dict(last or {})
        self.starts = {pre: start for pre, (_, start) in memories.items()}
        self.memories = tuple((pre, now) for pre, (now, _) in memories.items())
        reads, nows = self.stepnet.input_names, [now for _, now in self.memories]
        for verb, wanted, known in (
            ("reads", [*self.sequences, *self.starts], reads),
            ("writes", [*nows, *self.stacked], self.stepnet.output_names),
            ("carries on", [*self.last], nows),
        ):
            for name in wanted:
                if name not in known:
                    what = f"the step net {self.stepnet.type!r} never {verb} {name!r}"
                    raise wrong(what + did_you_mean(name, known))
        if not self.sequences:
            raise wrong(
                "an RnnOp needs a sequence: its length is the number of steps",
                'sequences={"x": "xs"}: x in a step, xs outside',
            )
        for name in self.sequences.keys() & self.starts.keys():
            raise wrong(
                f"{name!r} is both an element of a sequence and a memory of an RnnOp",
                "a name of its own for each in the step net",
            )
        inside = self.sequences | self.starts
        self.inputs = {
            "x": [*self.sequences.values()],
            "start": [*self.starts.values()],
            "shared": [n for n in reads if n not in inside],
        }
        out, ends = [*self.stacked.values()], [*self.last.values()]
        self.outputs = {"out": out, "last": ends, "scopes": [(out + ends + ["rnn"])[0] + SCOPES]}

    def run(self, scope: Any) -> None:
        """Run the step net once per element; keep every step's scope."""
        sequences = [read(scope, name, self) for name in self.inputs["x"]]
        lengths = dict(zip(self.inputs["x"], map(len, sequences), strict=True))
        if len({*lengths.values()}) > 1:
            raise wrong(
                f"sequences of an RnnOp must be equally long, not {lengths}",
                "cut or fill them up to one length",
            )
        state = {pre: read(scope, start, self) for pre, start in self.starts.items()}
        steps = []
        for elements in zip(*sequences, strict=True):
            own = dict(zip(self.sequences, elements, strict=True))
            step = Scope(own | state, parent=scope)
            self.stepnet.run(step)
            state = {pre: step[now] for pre, now in self.memories}
            steps.append(step)
        ends = {now: state[pre] for pre, now in self.memories}
        for inner, outer in self.stacked.items():
            none = np.zeros((0, *np.shape(ends.get(inner, 0))))
            write(scope, outer, np.stack([step[inner] for step in steps]) if steps else none)
        for now, outer in self.last.items():
            write(scope, outer, ends[now])
        write(scope, self.outputs["scopes"][0], steps)


class RnnGradOp(Operator):
    """Run the backward step net in the scopes of the steps, last step first.

    Gradients of memories go from step to step; those of shared names are summed over the steps.
    ``seeds``: name in the step → name under which its gradient is given to the backward step net.

    >>> from minigrad.nets import Backward
    >>> step = NetOp([Operator("add", {"x": "h_pre", "y": "x"}, {"out": "h"})], "step")
    >>> rnn = RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}, {"h": "hT"})
    >>> Backward(rnn).outputs["start_grad"]
    ['h0@GRAD']
    """

    def __init__(self, rnn: RnnOp, stepnet: NetOp, seeds: Mapping[str, str]) -> None:
        self._begin("rnn_grad")
        self.at(rnn)
        self.stepnet, self.seeds = stepnet, dict(seeds)
        self.forward_op = rnn
        out, last, scopes = rnn.outputs.values()
        self.inputs = {**rnn.inputs, "scopes": scopes}
        self.inputs |= {"out_grad": grads(out), "last_grad": grads(last)}
        written, start = stepnet.output_names, grads(rnn.inputs["start"])
        x = [v + GRAD if n + GRAD in written else EMPTY for n, v in rnn.sequences.items()]
        shared = [g if g in written else EMPTY for g in grads(rnn.inputs["shared"])]
        self.outputs = {"x_grad": x, "start_grad": start, "shared_grad": shared}

    def run(self, scope: Any) -> None:
        """Walk the steps backwards."""
        rnn: Any = self.forward_op
        values = self._values(scope)
        (steps,) = values["scopes"]
        from_outside = dict(zip(rnn.stacked, values["out_grad"], strict=True))
        ends = dict(zip(rnn.last, values["last_grad"], strict=True))
        inside = [*rnn.sequences, *rnn.starts, *rnn.inputs["shared"]]
        given = values["x"] + values["start"] + values["shared"]
        gradients = dict(zip(inside, map(_zeros, given), strict=True))
        for pre, now in rnn.memories:
            gradients[pre] = ends.pop(now, gradients[pre])  # each end once
        for t, step in [*enumerate(steps)][::-1]:
            for name, seed in self.seeds.items():
                parts = [gradients[pre] for pre, now in rnn.memories if now == name]
                if name in from_outside:
                    parts.append(from_outside[name][t])
                write(step, seed, sum(parts[1:], start=parts[0]))
            self.stepnet.run(step)
            for name, so_far in gradients.items():
                made = step.get(name + GRAD, _zeros(step[name]))
                if name in rnn.sequences:
                    so_far[t] = made
                else:
                    gradients[name] = made if name in rnn.starts else so_far + made
        for name, v in zip(self.output_names, gradients.values(), strict=True):
            write(scope, name, v)


def _zeros(value) -> Any:
    return np.zeros(np.shape(value), np.result_type(value, np.float16))


# -- an operator → its grad op, in four processes ------------------------------------------------


def primitive_of(op: Operator) -> Any:
    """The primitive whose rules make the grad op.  Errors: `ProgramError` if there is none."""
    info = op_info(op.type)
    if info.is_grad or info.forward is None or not info.forward.rules:
        raise wrong(
            f"{op.type!r} has no grad op: no gradient rule is declared\n  in {op}",
            "declare one: the primitive's .grad(x=lambda out_grad: …)",
        )
    return info.forward


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
    p = primitive_of(op)
    # 1. the type, 2. what its rules read, and 3. the gradients, in and out
    made = default_grad_op(None, op, p, {*op.input_names}, GradNames(set()))
    grad_op = Operator(made.type, made.inputs, made.outputs, made.attrs)  # 4. build
    grad_op.at(op).forward_op, grad_op.role = op, "backward"
    return grad_op


def rnn_grad_op(op: RnnOp, no_grad: set[str]) -> RnnGradOp:
    """The grad op of an RnnOp: `Backward` of its step net, with seeds for what leaves a step."""
    blocked = no_grad | {name for name, outer in op.sequences.items() if outer in no_grad}
    # outputs, ends of memories
    leave = dict.fromkeys([*op.stacked, *(now for _, now in op.memories)])
    seeded = [name for name in leave if name not in blocked]
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
        raise wrong(
            f"Backward takes an Operator, a NetOp or an RnnOp, not {describe(op)}",
            "Backward(NetOp([…])); static.append_backward(loss) in a Program",
        )
    blocked = set(several(no_grad))
    known = all_names(op)
    for name in sorted(blocked - known):
        hint = did_you_mean(name, sorted(known))
        raise wrong(f"no_grad names {name!r}, which {op.type!r} does not have{hint}")
    if not isinstance(op, NetOp | RnnOp):
        primitive_of(op)
    slots = ["out"] if isinstance(op, NetOp) else [s for s in op.outputs if s != "scopes"]
    leaving = [n for slot in slots for n in op.outputs[slot] if n not in blocked]
    return differentiate(op, blocked, grads(leaving))[0]


def differentiate(op: Operator, no_grad: set[str], seeds: list[str]) -> tuple[Operator, list[str]]:
    """The backward side, and the names under which each of the ``seeds`` is to be given to it."""
    refuse_second_values(op)
    net = NetOp(mirror(op, no_grad, set(seeds)), op.type + "_grad")
    renamed = add_up(net, seeds)
    backward = net.ops[0] if len(net.ops) == 1 else net
    backward.forward = op
    if isinstance(backward, NetOp):
        written = set(backward.output_names)
        backward.leaving = [n for n in dict.fromkeys(grads(op.input_names)) if n in written]
    return backward, renamed


def mirror(op: Operator, no_grad: set[str], known: set[str]) -> list[Operator]:
    """Grad ops in reverse, nested as the operators are; ``known`` collects the gradients made.

    The NOP stands where nothing is wanted or nothing arrives.  Before a grad op stands what makes
    zeros, ``v@ZERO``, for each gradient that it reads and nobody makes.
    """
    if isinstance(op, NetOp):
        net = NetOp([], op.type + "_grad")
        net.forward_op = op
        for each in reversed(op.ops):
            net.ops += mirror(each, no_grad, known)
        if not list(operators(net)):  # a net of NOPs is a NOP
            net.ops.clear()
        return [net]
    slots = op.inputs if isinstance(op, RnnOp) else op_info(op.type).forward.rules
    wanted = {n for slot, listed in op.inputs.items() if slot in slots for n in listed}
    if wanted <= no_grad or known.isdisjoint(grads(op.output_names)):
        nop = NetOp([], "nop")
        nop.forward_op = op
        return [nop]
    grad_op = rnn_grad_op(op, no_grad) if isinstance(op, RnnOp) else build_grad_op(op)
    made: list[Operator] = []
    for slot, listed in grad_op.inputs.items():
        for k, name in enumerate(listed):
            if slot.endswith("_grad") and name not in known:
                v = name.removesuffix(GRAD)
                listed[k] = v + ZERO
                made.append(Operator("fill_zeros_like", {"x": v}, {"out": v + ZERO}))
    for listed in grad_op.outputs.values():
        listed[:] = [EMPTY if n.removesuffix(GRAD) in no_grad else n for n in listed]
    known.update(grad_op.output_names)
    return [*made, grad_op]


def add_up(net: NetOp, seeds: Sequence[str]) -> list[str]:
    """Several writers of one name: a name for each, in order, and one ``sum`` behind the last.

    A seed that the net writes, too, has the first writer outside; returned are the seeds' names.
    """
    renamed = list(seeds)
    writers: dict[str, Listed] = {name: [(None, renamed, k)] for k, name in enumerate(renamed)}
    for place in places(net):
        _, op = place
        for listed in op.outputs.values():
            for k, name in enumerate(listed):
                writers.setdefault(name, []).append((place, listed, k))
    for name, sites in reversed(writers.items()):  # of two sums in one place the first comes last
        if name != EMPTY and len(sites) > 1:
            holder, last = sites[-1][0]
            added = Operator("sum", {"x": rename_writers(name, sites)}, {"out": name})
            holder.ops.insert(holder.ops.index(last) + 1, added)
    return renamed


def refuse_second_values(op: Operator) -> None:
    """A grad op may need the first value of a name: nobody may write it again."""
    writer: ByName = dict.fromkeys(op.input_names)
    for at in operators(NetOp([op])):
        for name in at.output_names:
            if name in writer:
                first = f"written by {writer[name]}" if writer[name] else f"an input of {op.type}"
                raise ProgramError(
                    f"{name!r} is {first}, and\n  {at}\n  gives it a second value, but a grad op "
                    f"may need the first one.\n  repair: write to a new name"
                )
            writer[name] = at


def all_names(op: Operator) -> set[str]:
    """Every name an operator and the nets inside it use."""
    known = set[str]()
    for at in operators(NetOp([op])):
        known.update(at.input_names, at.output_names)
        if isinstance(at, RnnOp):
            known |= all_names(at.stepnet)
    return known


def fc(x: str, w: str, b: str, out: str, activation: str = "sigmoid") -> NetOp:
    """A fully connected layer, the usual example of a net: product, bias, activation.

    >>> [op.type for op in fc("x", "W", "b", "y").ops]
    ['matmul', 'add', 'sigmoid']
    """
    ops = [
        Operator("matmul", {"x": x, "y": w}, {"out": f"{out}.product"}),
        Operator("add", {"x": f"{out}.product", "y": b}, {"out": f"{out}.sum"}),
        Operator(activation, {"x": f"{out}.sum"}, {"out": out}),
    ]
    return NetOp(ops, "fc")
