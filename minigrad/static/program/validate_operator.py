"""What `Block.append_op` checks of an operator that is given slot by slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import ProgramError, describe, did_you_mean, refusal, user_line
from .naming import name_of, several
from .op_info import CONTROL, ROLES, OpInfo, list_slots, not_one_name
from .operator import EMPTY, Operator

#: what builds the operators that hold blocks
_BUILDERS = {"while": "while_loop", "cond": "cond", "recurrent": "static_rnn"}


def slots_of(given: Any, what: str) -> dict[str, list[str]]:
    """``{"x": variable or name or list}`` as ``{"x": [names]}``.  Errors: `ProgramError`."""
    if not isinstance(given or {}, Mapping):
        raise refusal(
            f"the {what} are a dict, slot → names, not {describe(given)}",
            '{"x": variable, "y": ["name"]}',
            ProgramError,
        )
    made = {}
    for slot, names in (given or {}).items():
        made[slot] = [name_of(n, f"slot {slot!r}") for n in several(names, f"slot {slot!r}")]
    return made


def check_operator(info: OpInfo, op: Operator) -> None:
    """The rules about one operator alone.  Errors: `ProgramError`."""
    if op.type in CONTROL:
        name = _BUILDERS.get(op.type, "append_backward")
        raise refusal(
            f"{op.type} holds blocks, which append_op cannot build", f"static.{name}", ProgramError
        )
    if op.role not in ROLES:
        raise ProgramError(
            f"{op.role!r} is no role{did_you_mean(str(op.role), ROLES)}\n  at {user_line()}"
        )
    if info.is_grad:
        _check_reads(info, op)
    lists = list_slots(info)
    for slot, names in (*op.inputs.items(), *op.outputs.items()):
        if len(names) != 1 and slot not in lists:
            raise not_one_name(op.type, slot, names)
    made = [n for n in op.output_names if n != EMPTY]
    if len(set(made)) < len(made):
        what = f"{op.type} writes one name twice: {made}"
        raise refusal(what, "a name of its own for each output", ProgramError)


def _check_reads(info: OpInfo, op: Operator) -> None:
    """A grad op has the slots that the rules of the gradients it makes read."""
    p = info.forward
    assert p is not None
    wanted = [s.removesuffix("_grad") for s in op.outputs]
    if not wanted:
        what = f"{op.type} needs a name for its result"
        raise refusal(what, 'outputs={"x_grad": "x@GRAD"}', ProgramError)
    for name in p.reads(wanted):
        if name in info.inputs and name not in op.inputs and name not in op.attrs:
            raise refusal(
                f"{op.type} needs the slot {name!r} for {', '.join(op.outputs)}",
                f"inputs={{{name!r}: …}}, the name it has for {op.type.removesuffix('_grad')}",
                ProgramError,
            )
