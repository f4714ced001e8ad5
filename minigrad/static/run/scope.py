"""Where the values of a running program are, and what happened, in its order.

A Scope maps names to values and has a parent.  A loop makes one Scope per step and keeps them, since its grad block
reads the values of each step; that block runs in a Scope of its own inside the step's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...grad_names import EMPTY
from ...primitives.arguments import ByName

if TYPE_CHECKING:
    from ..program.block import Block
    from ..program.operator import Operator
    from ..program.program import Program


class Scope:
    """Names and their values; what is not here is looked for in the parent.

    >>> outer = Scope()
    >>> outer.values["w"] = 1.0
    >>> Scope(outer)["w"], "b" in outer
    (1.0, False)
    """

    __slots__ = ("block", "parent", "record", "values")

    def __init__(self, parent: Scope | None = None, block: int = 0) -> None:
        self.values: ByName = {}
        self.parent, self.block = parent, block
        self.record: Record | None = None  # of the last run that was given this scope

    def find(self, name: str) -> Any:
        """The value of a name, None if it has none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        return None

    def __getitem__(self, name: str) -> Any:
        value = self.find(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def __repr__(self) -> str:
        return f"<scope of block {self.block}: {', '.join(self.values)}>"


class Step(NamedTuple):
    """One thing a run did: ``kind`` is "enter", "op" or "leave".

    ``number`` is the place of an operator in its block, ``turn`` counts the turns of a loop from 0.
    ``values`` are those an operator wrote, or those a block found when it was entered.
    """

    kind: str
    block: int
    number: int | None
    turn: int | None
    values: ByName


class Record:
    """The steps of one run of ``program``.

    >>> from minigrad import static
    >>> program, scope = static.Program(), static.Scope()
    >>> with static.program_guard(program):
    ...     n = static.while_loop(lambda n: n < 2, lambda n: n + 1, [0])
    >>> _ = static.Executor().run(program, scope=scope)
    >>> print(*(s.kind for s in scope.record.steps if s.block == 2))  # the condition, three times
    enter op leave enter op leave enter op leave
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps: list[Step] = []
        self._reads: dict[int, dict[str, Operator]] = {}

    def enter(self, block: Block, scope: Scope, turn: int | None) -> None:
        """A block is entered; with the values that it reads from outside."""
        if block.idx not in self._reads:
            self._reads[block.idx] = outer_reads(block)
        self.steps.append(
            Step("enter", block.idx, None, turn, _known(scope, self._reads[block.idx]))
        )

    def ran(self, block: Block, number: int, op: Operator, scope: Scope, turn: int | None) -> None:
        """An operator ran and wrote its values."""
        values = _known(scope, op.output_names)
        self.steps.append(Step("op", block.idx, number, turn, values))

    def leave(self, block: Block, turn: int | None) -> None:
        """The last operator of a block has run."""
        self.steps.append(Step("leave", block.idx, None, turn, {}))


def outer_reads(block: Block) -> dict[str, Operator]:
    """The names that a block reads before it writes them, each with its first reader."""
    written = {EMPTY}
    readers: dict[str, Operator] = {}
    for op in block.ops:
        for name in op.input_names:
            if name not in written:
                readers.setdefault(name, op)
        written.update(op.output_names)
    return readers


def _known(scope: Scope, names: Iterable[str]) -> ByName:
    return {n: value for n in names if (value := scope.find(n)) is not None}
