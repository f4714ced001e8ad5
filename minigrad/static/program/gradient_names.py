"""How gradients are named: ``v@GRAD``, or ``v@GRAD@2`` … where the name is taken."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .block import Block


GRAD = "@GRAD"  #: ``w@GRAD`` is the gradient of ``w``


_GRADIENT = re.compile(rf"(.+){GRAD}(@\d+)?")


def variable_of(name: str) -> str | None:
    """The variable whose gradient has this name; None for the parts of a gradient, and for any other name.

    >>> variable_of("w@GRAD@2"), variable_of("w@GRAD@RENAME@0")
    ('w', None)
    """
    found = _GRADIENT.fullmatch(name)
    return found[1] if found else None


class GradNames(dict[str, str]):
    """Variable → name of its gradient, made when it is asked for the first time."""

    def __init__(self, taken: set[str]) -> None:
        super().__init__()
        self.taken = taken

    def __missing__(self, name: str) -> str:
        made, k = f"{name}{GRAD}", 2
        while made in self.taken:
            made, k = f"{name}{GRAD}@{k}", k + 1
        self[name] = made
        return made

    def name_all(self, names: Iterable[str]) -> None:
        """Make the names of many gradients at once, unless one is taken: then they are made one by one."""
        made = {name: name + GRAD for name in names}
        if self.taken.isdisjoint(made.values()):
            self.update(made)

    def sources(self) -> dict[str, str]:
        """Gradient → variable, for all that were asked for."""
        return dict(zip(self.values(), self, strict=True))


def free_names(blocks: Iterable[Block]) -> GradNames:
    """The naming of one call of append_backward: no name that these blocks have already for a gradient.

    >>> from minigrad import static
    >>> prog = static.parse("block 0:\\n  data x: float64[2]\\n  x@GRAD = exp(x)")
    >>> free_names(prog.blocks)["x"]
    'x@GRAD@2'
    """
    return GradNames({name for b in blocks for name in b.vars if GRAD in name})
