"""How gradients are named: ``v@GRAD``, or ``v@GRAD@2`` … where the name is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .block import Block


class GradNames(dict[str, str]):
    """Variable → name of its gradient, made when it is asked for the first time."""

    def __init__(self, taken: set[str]) -> None:
        super().__init__()
        self.taken = taken

    def __missing__(self, name: str) -> str:
        made, k = f"{name}@GRAD", 2
        while made in self.taken:
            made, k = f"{name}@GRAD@{k}", k + 1
        self[name] = made
        return made


def free_names(blocks: Iterable[Block]) -> Callable[[str], str]:
    """The naming of one call of append_backward: no name that these blocks have already.

    >>> from minigrad import static
    >>> prog = static.parse("block 0:\\n  data x: float64[2]\\n  x@GRAD = exp(x)")
    >>> free_names(prog.blocks)("x")
    'x@GRAD@2'
    """
    return GradNames({n for b in blocks for n in b.vars}).__getitem__
