"""What users pass: Variables or names, one or several, and operators slot by slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import MinigradError, describe, did_you_mean, wrong
from ...grad_names import EMPTY, GRAD
from ...primitives.arguments import Slots
from .operator import CONTROL, ROLES, Operator, OpInfo
from .variable import Variable

if TYPE_CHECKING:
    from .program import Program


def several(given: Any) -> list[Any]:
    """The items of a list, tuple, set …; one Variable or name counts as a list of one, None as none at all.

    >>> several("w"), several(("w", "b")), several(None)
    (['w'], ['w', 'b'], [])
    """
    if given is None:
        return []
    if isinstance(given, Variable | str):
        return [given]
    return list(given)


def name_of(item: Any, what: str) -> str:
    """The name that a Variable or a text stands for.  Errors: `ProgramError` for anything else."""
    if isinstance(item, Variable):
        return item.name
    if not isinstance(item, str):
        what = f"{what} holds Variables or names, not {describe(item)}"
        raise wrong(what, "a Variable, or its name in quotes")
    return str(item)


def unwritten(name: str) -> MinigradError:
    """What to raise where a value is read that nobody has computed: `verify` finds this before."""
    what = f"{name!r} is read before anything wrote it"
    return wrong(what, "static.verify(program) names the operator")


def names_of(program: Program, given: Any, what: str, root: bool = False) -> list[str]:
    """The names that were given, all of them known (with ``root``, in block 0).  Errors: `ProgramError`."""
    names = [name_of(item, what) for item in several(given)]
    blocks = program.blocks[:1] if root else program.blocks
    for name in names:
        if not any(name in b.vars for b in blocks):
            known = did_you_mean(name, dict.fromkeys(n for b in blocks for n in b.vars))
            where = "variable of the root block" if root else "variable of this program"
            what = f"{what} names {name!r}, which is no {where}{known}"
            repair = "static.append_backward(loss) makes gradients, of what the loss depends on"
            raise wrong(what, repair if name.endswith(GRAD) else "")
    return names


#: what builds the operators that hold blocks
_BUILDERS = {"while": "while_loop", "cond": "cond", "recurrent": "static_rnn"}


def slots_of(given: Any) -> Slots:
    """``{"x": variable or name or list}`` as ``{"x": [names]}``.  Errors: `ProgramError`."""
    slots = {}
    for slot, names in (given or {}).items():
        slots[slot] = [name_of(n, f"slot {slot!r}") for n in several(names)]
    return slots


def check_operator(info: OpInfo, op: Operator) -> None:
    """The rules about one operator alone.  Errors: `ProgramError`."""
    if op.type in CONTROL:
        name = _BUILDERS.get(op.type, "append_backward")
        what = f"{op.type} holds blocks, which append_op cannot build"
        raise wrong(what, f"static.{name}")
    if op.role not in ROLES:
        what = f"{op.role!r} is no role{did_you_mean(str(op.role), ROLES)}"
        raise wrong(what)
    if info.is_grad:
        _check_reads(info, op)
    outputs = [n for n in op.output_names if n != EMPTY]
    if len(set(outputs)) < len(outputs):
        what = f"{op.type} writes one name twice: {outputs}"
        raise wrong(what, "a name of its own for each output")


def _check_reads(info: OpInfo, op: Operator) -> None:
    """A grad op has the slots that the rules of the gradients it makes read."""
    p = info.forward
    wanted = [s.removesuffix("_grad") for s in op.outputs]
    if not wanted:
        what = f"{op.type} needs a name for its result"
        raise wrong(what, 'outputs={"x_grad": "x@GRAD"}')
    for name in p.reads(wanted):
        if name in info.inputs and name not in op.inputs and name not in op.attrs:
            what = f"{op.type} needs the slot {name!r} for {', '.join(op.outputs)}"
            advice = f"inputs={{{name!r}: …}}, the name it has for {op.type.removesuffix('_grad')}"
            raise wrong(what, advice)
