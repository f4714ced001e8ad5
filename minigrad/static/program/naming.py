"""What users pass where names are expected: Variables or names, one or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...errors import MinigradError, ProgramError, describe, did_you_mean, refusal, told
from .gradient_names import GRAD
from .variable import Variable

if TYPE_CHECKING:
    from .program import Program


def several(given: Any, what: str) -> list[Any]:
    """The items of a list, tuple, set …; one Variable or name counts as a list of one, None as none at all.

    >>> several("w", "fetch_list"), several(("w", "b"), "fetch_list"), several(None, "fetch_list")
    (['w'], ['w', 'b'], [])
    """
    if given is None:
        return []
    if isinstance(given, Variable | str):
        return [given]
    if not isinstance(given, Iterable):
        what = f"{what} is a list of Variables or names, not {describe(given)}"
        raise refusal(what, "a list like [loss, 'w']", ProgramError)
    return list(given)


def name_of(item: Any, what: str) -> str:
    """The name that a Variable or a text stands for.  Errors: `ProgramError` for anything else."""
    if isinstance(item, Variable):
        return item.name
    if not isinstance(item, str):
        what = f"{what} holds Variables or names, not {describe(item)}"
        raise refusal(what, "a Variable, or its name in quotes", ProgramError)
    return str(item)


def unwritten(name: str) -> MinigradError:
    """What to raise where a value is read that nobody has computed: `verify` finds this before."""
    what = f"{name!r} is read before anything wrote it"
    return refusal(what, "static.verify(program) names the operator", ProgramError)


def names_of(program: Program, given: Any, what: str, root: bool = False) -> list[str]:
    """The names that were given, all of them known (with ``root``, in block 0).  Errors: `ProgramError`."""
    names = [name_of(item, what) for item in several(given, what)]
    blocks = program.blocks[:1] if root else program.blocks
    for name in names:
        if not any(name in b.vars for b in blocks):
            known = did_you_mean(name, dict.fromkeys(n for b in blocks for n in b.vars))
            where = "variable of the root block" if root else "variable of this program"
            what = f"{what} names {name!r}, which is no {where}{known}"
            repair = "static.append_backward(loss) makes gradients, of what the loss depends on"
            raise ProgramError(told(what, repair if name.endswith(GRAD) else ""))
    return names
