"""Tensors that `mg.trace` meets become parameters and constants of its program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ProgramError, describe, refusal

if TYPE_CHECKING:
    from .program import Program
    from .variable import Variable


def lift(program: Program, tensor: Any) -> Variable:
    """The parameter or constant that a Tensor stands for.  Errors: `ProgramError` where nothing is traced."""
    if not program.lifts_tensors:
        raise refusal(
            f"a Tensor ({describe(tensor)}) cannot be mixed with Variables: it has a value now, "
            f"they get theirs when the program runs",
            "a constant is an array of NumPy: tensor.data, np.ones(shape); what is trained is "
            "static.parameter(name, tensor), what is fed static.data(name, shape)",
            ProgramError,
        )
    if program.derive is not None:
        program.derive(tensor)
    known = program.lifted.get(id(tensor))
    if known is not None:
        return program.blocks[0].vars[known[1]]
    if not tensor.is_leaf:
        raise refusal(
            f"a Tensor ({describe(tensor)}, grad_fn=<{tensor.grad_fn.name()}>) was computed outside of "
            f"the traced function, or changed in place: the program does not know what it came from",
            "compute it inside the function, or pass x.detach() for a constant",
            ProgramError,
        )
    if tensor.requires_grad:
        name = (
            tensor.name
            if tensor.name and tensor.name not in program.blocks[0].vars
            else program.unique_name("param")
        )
        made = program.add_persistable(name, tensor.detach().numpy(), trainable=True)
    else:
        made = program.constant(tensor.numpy())
    program.lifted[id(tensor)] = (tensor, made.name)
    return made
