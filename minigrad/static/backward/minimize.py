"""minimize: backward, clipping, weight decay and update operators in one program.

What an optimizer remembers about a parameter (velocity, moments, the number of steps) are
persistable variables; the update operators write the parameter's own name.  A run that fails
changes none of them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import wrong
from ...ops.shape import Array
from ..program.block import Block
from ..program.control_flow import same_types
from ..program.operator import op_info
from ..program.program import Program
from ..program.variable import Variable
from .append_backward import append_backward, check_loss
from .passes import Callback, written_twice

Pairs = list[tuple[Variable, Variable]]


def minimize(
    optimizer: Any,
    loss: Variable,
    parameter_list: Iterable[Any] | None = None,
    no_grad_set: Iterable[Any] | None = None,
    callbacks: Callback | Sequence[Callback] | None = None,
) -> Pairs:
    """Append backward and update operators; returns the (parameter, gradient) pairs of append_backward.

    ``optimizer`` is one of `minigrad.optim`: it says which update primitive (``type``, ``attrs``), what is remembered
    (``memory``), the learning rate, ``clip`` and ``weight_decay``.  Errors: `ProgramError`; then nothing was appended.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", [1.0, 2.0])
    ...     pairs = static.minimize(mg.optim.SGD(lr=0.25), (w * w).sum())
    >>> executor = static.Executor()
    >>> for _ in range(2):
    ...     _ = executor.run(prog)
    >>> executor.scope["w"]
    array([0.25, 0.5 ])
    """
    program = check_loss(loss).program
    _root_block(program, "minimize")
    with program.transaction():
        pairs = append_backward(loss, parameter_list, no_grad_set, callbacks)
        if pairs:
            apply_gradients(optimizer, pairs)
    return pairs


def apply_gradients(optimizer, pairs: Pairs) -> None:
    """Append the update operators for (parameter, gradient) pairs, those of append_backward or what became of them.

    Two losses in one program want both backward parts first, then both updates: a gradient reads
    the values that the parameters had in the forward part.  Errors: `ProgramError`; then nothing
    was appended.

    >>> from minigrad import optim, static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w, v = static.parameter("w", 1.0), static.parameter("v", 2.0)
    ...     product = w * v
    ...     first = static.append_backward(product, parameter_list=[w])
    ...     second = static.append_backward(product * product, parameter_list=[v])
    ...     optim.SGD(lr=0.5).apply_gradients(first)
    ...     optim.SGD(lr=0.25).apply_gradients(second)
    >>> executor = static.Executor()
    >>> _ = executor.run(prog)
    >>> executor.scope["w"], executor.scope["v"]
    (array(0.), array(1.))
    """
    pairs = list(pairs)
    _check_pairs(pairs)
    block = _root_block(pairs[0][0].program, "apply_gradients")
    program, grads = block.program, [g for _, g in pairs]
    with program.transaction(), program.role_guard("optimize"):
        if optimizer.clip is not None:
            grads = optimizer.clip(grads)
        if optimizer.weight_decay:
            grads = [g + p * optimizer.weight_decay for (p, _), g in zip(pairs, grads, strict=True)]
        # a rate for parameters of each dtype: a number that can be changed between runs, or what a schedule makes
        scheduled, rates = callable(optimizer.lr), {}
        count = _state(program, "step_count", np.asarray(0.0)) if scheduled else 0
        for dtype in dict.fromkeys(p.dtype for p, _ in pairs):
            rate = optimizer.rate(count)
            if not isinstance(rate, Variable):
                rate = _state(program, "learning_rate", np.asarray(rate, dtype))
            rates[dtype] = rate if rate.dtype == dtype else rate.astype(dtype)
        for (parameter, _), grad in zip(pairs, grads, strict=True):
            inputs = {"param": parameter, "grad": grad, "learning_rate": rates[parameter.dtype]}
            outputs = {"param_out": parameter}
            memory = optimizer.first_memory(parameter)
            for slot, value in zip(optimizer.memory, memory, strict=True):
                state = _state(program, f"{parameter.name}@{slot}", value)
                inputs[slot] = outputs[f"{slot}_out"] = state
            taken = {s: inputs[s] for s in op_info(optimizer.type).inputs if s in inputs}
            block.append_op(optimizer.type, taken, outputs, optimizer.attrs)
        if scheduled:
            block.append_op("increment", {"x": count}, {"out": count}, {"step": 1.0})


def _check_pairs(pairs: Pairs) -> None:
    """Errors: `ProgramError` for what are no pairs of a parameter and its gradient."""
    advice = "the pairs that static.append_backward(loss) returns"
    if not pairs:
        raise wrong("apply_gradients has no pairs: nothing would be trained", advice)
    for parameter, gradient in pairs:
        parameter.program.as_variable(gradient, parameter.program.current_block())
        if not parameter.persistable:
            raise wrong(
                f"{parameter.name!r} does not outlive a run, so it cannot be trained",
                'static.parameter("w", start)',
            )
        if not same_types(parameter, gradient):
            raise wrong(
                f"{gradient!r} is no gradient of {parameter!r}: shape and dtype differ", advice
            )
    for name in written_twice([parameter.name for parameter, _ in pairs]):
        what = f"the parameter {name!r} stands in two pairs"
        raise wrong(what, f"one pair ({name}, the sum of both gradients)")


def _root_block(program: Program, name: str) -> Block:
    block = program.current_block()
    if block.idx:
        what = f"{name} updates parameters in the root block, not in block {block.idx}"
        raise wrong(what, "call it behind the loop or the branch, not inside")
    return block


def _state(program: Program, name: str, value: Array) -> Variable:
    """A variable that outlives a run and is no parameter."""
    free = name if name not in program.blocks[0].vars else program.unique_name(name)
    return program.add_persistable(free, value, trainable=False)
