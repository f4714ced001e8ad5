"""append_backward and gradients: write the gradient program behind the forward program.

    check_loss → what is cut → what is wanted → the passes (`passes`)

``trace=[]`` collects the list of operators after every pass.  An error leaves the program as it was.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...atomic import gc_paused
from ...errors import describe, wrong
from ...grad_names import GradNames, free_names
from ...ops.shape import fits
from ...primitives.arguments import Attrs, as_list
from ...primitives.registry import REGISTRY
from ..program.block import Block
from ..program.operator import Operator, Ops, names_of, op_info
from ..program.program import BackwardCall
from ..program.variable import Variable
from . import passes
from .grad_ops import default_grad_op, grad_ops_of, without_unread
from .op_path import Path, find_op_path
from .passes import Callback

Seeds = list[tuple[str, Operator]]  #: a target, and what makes its gradient


def append_backward(
    loss: Variable,
    parameter_list: Iterable[Any] | None = None,
    no_grad_set: Iterable[Any] | None = None,
    callbacks: Callback | Sequence[Callback] | None = None,
    trace: list[Any] | None = None,
) -> list[tuple[Variable, Variable]]:
    """Append the operators that compute the gradient of ``loss``; returns (parameter, gradient) pairs.

    Args: ``parameter_list``, the only variables that want a gradient (all trainable ones by default,
    in the order of creation); ``no_grad_set``, variables whose gradient counts as zero; ``callbacks``,
    called as ``(block, context)`` after each operator that is appended, inside loops and branches, too;
    ``trace``, a list that gets (pass, operators) after every pass.
    Errors: `ProgramError`; then the program is as before the call.
    Source: the backward building of Fluid, with its repairs (see docs/design.md).

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", 3.0)
    ...     ((_, gradient),) = static.append_backward(w * w)
    >>> static.Executor().run(prog, fetch_list=[gradient])
    [array(6.)]
    """
    block = check_loss(loss)
    program = block.program
    callbacks = as_list(callbacks or [])
    with program.transaction(), gc_paused():
        if parameter_list is None:  # what the user set to False asks for a gradient, as data may
            parameters = program.parameters()
            asked = [v for b in block.lookup() for v in b.vars.values() if v._stop is False]
            asked += parameters
        else:
            names = names_of(program, parameter_list, "parameter_list", root=True)
            asked = parameters = [program.global_block().vars[name] for name in names]
        job = _appended(block, [(loss, None)], asked, no_grad_set, trace, callbacks)
        return [(v, g) for v in parameters if (g := job.gradient(v)) is not None]


def gradients(
    targets: Any,
    inputs: Any,
    target_gradients: Any = None,
    no_grad_set: Iterable[Any] | None = None,
    trace: list[Any] | None = None,
) -> list[Variable | None]:
    """Append the gradient of targets with respect to any variables; one Variable or None per input.

    ``target_gradients`` are the seeds, ones by default; several targets add up.
    An input that no target depends on gives None, and so does one whose gradient is cut: marked ``stop_gradient``, or
    in ``no_grad_set``.  Applied to a gradient, this makes second derivatives.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", 3.0)
    ...     (first,) = static.gradients(w**3, [w])
    ...     (second,) = static.gradients(first, [w])
    >>> static.Executor().run(prog, fetch_list=[first, second])
    [array(27.), array(18.)]
    """
    outs, ins = as_list(targets), as_list(inputs)
    seeds = [None] * len(outs) if target_gradients is None else as_list(target_gradients)
    if len(seeds) != len(outs):
        what = f"{len(outs)} targets need {len(outs)} target_gradients, {len(seeds)} were given"
        raise wrong(what, "a list with one for each target; None for a seed of ones")
    for kind, given in (("targets", outs), ("inputs", ins)):
        if not given:
            raise wrong(f"gradients({kind}=[]) names no Variable", "static.gradients(loss, [w, b])")
    for value in outs + ins:
        if not isinstance(value, Variable):
            what = f"gradients() takes Variables, not {describe(value)}"
            raise wrong(what, "Variables of a Program; mg.grad takes Tensors")
    block = outs[0].program.current_block()
    with block.program.transaction(), gc_paused():
        for v in outs + ins:
            block.program.as_variable(v, block)
        for target in outs:
            if target.dtype.kind != "f":
                what = f"target {target.name!r} is {target.dtype}: only floating-point values have gradients"
                raise wrong(what, f"{target.name}.astype(float), where it is made")
        job = _appended(block, zip(outs, seeds, strict=True), ins, no_grad_set, trace)
        return [job.gradient(v) for v in ins]


def _appended(
    block: Block,
    starts: Iterable[tuple[Variable, Any]],
    asked: Iterable[Variable],
    no_grad_set: Iterable[Any] | None,
    trace: list[Any] | None,
    callbacks: Sequence[Callback] = (),
) -> "BackwardJob":
    """The backward part from targets, each with its seed, to what is asked for, appended to the block."""
    no_grad = block.program._marked().union(names_of(block.program, no_grad_set, "no_grad_set"))
    wanted = {v.name for v in asked} - no_grad
    job = BackwardJob(
        block, block, wanted, no_grad, free_names(block.program.blocks), trace, callbacks
    )
    job.build([(target.name, _seed_op(job, target, seed)) for target, seed in starts])
    job.append()
    return job


def _seed_op(job: "BackwardJob", target: Variable, seed) -> Operator:
    kind, given, attrs = "fill_ones_like", {"x": [target.name]}, Attrs()
    if seed is not None:
        var = job.block.program.as_variable(seed, job.block)
        if not fits(var.shape, target.shape):
            what = f"the seed {var!r} must have the shape of its target {target!r}"
            raise wrong(what, f"a seed of shape {list(target.shape)}")
        kind, given = "assign", {"x": [var.name]}
        if -1 in (*var.shape, *target.shape):  # sizes are compared when it runs
            given["shape_like"], kind = [target.name], "reshape"
    elif -1 not in target.shape:
        ones = {"shape": target.shape, "value": 1.0, "dtype": target.dtype.name}
        kind, given = "fill_constant", {}
        attrs = job.block._operator(REGISTRY[kind], (), ones).attrs  # without defaults
    seed_op = Operator(kind, given, {"out": [job.names[target.name]]}, attrs, "loss")
    for maker in reversed(job.block.ops):  # whose line the seed has, too
        if target.name in maker.output_names:
            return seed_op.at(maker)
    return seed_op


# -- pass 1 to 3: what is asked ------------------------------------------------------------


def check_loss(loss) -> Block:
    """The block of the loss.  Errors: `ProgramError` unless it is a scalar that an operator of the program made."""
    if not isinstance(loss, Variable):
        repair = "a Variable of a Program"
        if hasattr(loss, "backward"):
            repair = "loss.backward(), then optimizer.step(); a Program has Variables"
        raise wrong(f"append_backward starts from a Variable, not from {describe(loss)}", repair)
    block = loss.program.current_block()
    if any(n != 1 for n in loss.shape):
        what = f"the loss must be one number, but {loss!r} has the shape {list(loss.shape)}"
        advice = f"reduce it first ({loss.name}.mean() or .sum()), or use static.gradients with target_gradients"
        raise wrong(what, advice)
    if loss.dtype.kind != "f":
        what = f"the loss must be a floating-point number, but {loss!r} is {loss.dtype}"
        raise wrong(what, "a loss made of floating-point values")
    if not any(loss.name in b.written for b in block.lookup()):
        kind = "data" if loss.is_data else "a parameter"
        what = f"no operator of this program computes the loss {loss.name!r}; it is {kind}"
        raise wrong(what, "the Variable that an operator made, such as x.sum()")
    return block


@dataclass
class BackwardJob:
    """One call of append_backward on one block: what is wanted, and what `build` makes of it.

    ``reached``: wanted names that got a gradient; ``gaps``: whether a grad op may read a gradient that nobody made: of
    one that is not plain, or whose operator has several outputs.
    """

    block: Block
    forward: Block  # whose operators are differentiated
    wanted: set[str]
    no_grad: set[str]
    names: GradNames
    trace: list[Any] | None
    callbacks: Sequence[Callback]

    def gradient(self, v: Variable) -> Variable | None:
        """The gradient of a variable that was asked for; None where none arrives."""
        return self.block.vars.get(self.names[v.name]) if v.name in self.reached else None

    def build(self, seeds: Seeds) -> None:
        """Run the passes up to, but not including, appending."""
        forward = self.forward
        # a target that is cut hands nothing on; if all are cut, the seeds say what was asked
        seeds = [(n, op) for n, op in seeds if n not in self.no_grad] or seeds
        self.targets = [n for n, _ in seeds]
        path = find_op_path(forward, forward.ops, self.targets, self.wanted, self.no_grad)
        flowing = {n for _, flow in path for n in flow}
        self.reached = self.wanted & flowing.union(self.targets)
        self.ops = self.raw_grad_ops(forward.ops, path, seeds)
        self._show("raw")
        self.ops = passes.add_up_repeated_gradients(self.ops, self.block.idx)
        self._show("added up")
        sources = self.names.sources() if self.gaps else {}
        self.ops = passes.fill_missing_gradients(self.ops, sources)
        self.ops = without_unread(self)
        self._show("zeros filled in")
        passes.check_overwritten(forward, self.ops)

    def append(self) -> None:
        """Append the operators, create their variables, call the callbacks."""
        block, written = self.block, self.block.written
        passes.append_to_block(block, self.ops, self.names.sources(), self.callbacks)
        gradients = {v: g for v, g in self.names.items() if g in written}
        call = BackwardCall(block.idx, self.targets, self.no_grad, gradients)
        block.program.backward_calls.append(call)
        self._show("with variables")

    def _show(self, name: str) -> None:
        if self.trace is not None:
            self.trace.append((name, [op.copy() for op in self.ops]))

    def raw_grad_ops(self, forward: Ops, path: Path, seeds: Seeds) -> list[Operator]:
        """Seeds first, then the grad ops of the path in reverse; gradients may be written several times."""
        grad_ops = [op for _, op in seeds]
        have = {name for name, _ in seeds}
        used = set[str]()  # names whose gradient so far was that of a value written later
        block, grads = self.block, self.names
        plain = {t: _plain_primitive(t) for t in {forward[k].type for k, _ in path}}
        self.gaps = any(p is None or p.several for p in plain.values())
        for k, flow in path:
            op = forward[k]
            if not self.gaps:
                grad_ops.append(default_grad_op(block, op, plain[op.type], {*flow}, grads))
                continue
            start = len(grad_ops)
            grad_ops += grad_ops_of(self, op, flow, have)
            for name in used.intersection(op.output_names) - have:
                passes.read_zeros(grad_ops, start, name, grads[name])
            used.update(have.intersection(op.output_names))
            have.difference_update(*op.outputs.values())
            have.update(flow)
        return grad_ops


def _plain_primitive(op_type: str) -> Any:
    """The primitive whose grad op is simply ``<type>_grad``; None for any other type of operator."""
    info = op_info(op_type)
    return None if info.is_grad or getattr(info.forward, "grad_maker", None) else info.forward
