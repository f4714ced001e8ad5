"""Operator: one operation of a Block, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import code_line
from ...primitives.arguments import Attrs, Names, Slots
from .op_info import find_info

BLOCK_ATTRS = ("sub_block", "else_block", "cond_block")


class Operator:
    """One operation of a Block: type, slots of names, attrs, role.

    ``forward_op``: what a grad op differentiates; ``copy_of``: what it computes again;
    ``reads``: the names whose *values* a backward operator needs (of others the shape is enough).

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     y = static.data("x", [3]) * 2.0
    >>> op = prog.global_block().ops[0]
    >>> op.type, op.inputs, op.outputs, op.attrs
    ('mul', {'x': ['x']}, {'out': ['mul_0']}, {'y': 2.0})
    """

    __slots__ = (
        "_reads", "attrs", "code", "copy_of", "forward_op", "inputs", "lasti", "outputs", "role", "type",
    )  # fmt: skip

    def __init__(
        self,
        type: str,
        inputs: Slots,
        outputs: Slots,
        attrs: Attrs | None = None,
        role: str = "forward",
        forward_op: Operator | None = None,
    ) -> None:
        self.type = type
        self.inputs = inputs
        self.outputs = outputs
        self.attrs: Attrs = {} if attrs is None else attrs
        self.role = role
        self.forward_op = forward_op
        self.code: Any = None if forward_op is None else forward_op.code
        self.lasti: int = 0 if forward_op is None else forward_op.lasti
        self.copy_of: Operator | None = None
        self._reads: Names | None = None

    @property
    def input_names(self) -> list[str]:
        """All names it reads, in slot order."""
        listed: list[str] = []
        for names in self.inputs.values():
            listed += names
        return listed

    @property
    def output_names(self) -> list[str]:
        """All names it writes, in slot order."""
        listed: list[str] = []
        for names in self.outputs.values():
            listed += names
        return listed

    @property
    def reads(self) -> Names | None:
        """The names whose values it needs: as set, else what the rules of a grad op read; None if nobody knows."""
        info = find_info(self.type) if self._reads is None and self.role == "backward" else None
        if info is None or not info.is_grad:
            return self._reads
        if info.forward is None:  # of a loop or a branch
            return tuple(self.inputs.get("params", ()))
        saved = info.forward.saved([slot.removesuffix("_grad") for slot in self.outputs])
        return tuple(n for slot in saved for n in self.inputs.get(slot, ()))

    @reads.setter
    def reads(self, names: Names) -> None:
        self._reads = names

    @property
    def primitive(self) -> Any:
        """The primitive whose kernel it runs, or whose gradient rules; None for control flow."""
        info = find_info(self.type)
        return None if info is None else info.forward

    @property
    def source_line(self) -> str:
        """The user's line that created it; a grad op has its forward op's."""
        return "" if self.code is None else code_line(self.code, self.lasti)

    @property
    def sub_blocks(self) -> dict[str, int]:
        """The blocks it holds: attr → block index."""
        return {k: v for k, v in self.attrs.items() if k in BLOCK_ATTRS}

    @property
    def block_names(self) -> list[str]:
        """The names by which values enter and leave the blocks it holds: they stand in attrs, alone or in lists."""
        held = self.attrs.values() if self.sub_blocks else ()
        listed = [n for value in held for n in (value if isinstance(value, list) else [value])]
        return [n for n in listed if isinstance(n, str)]

    def at(self, source: Operator) -> Operator:
        """The same operator, with the user's line of another."""
        self.code, self.lasti = source.code, source.lasti
        return self

    def copy(self, names: Mapping[str, str] | None = None) -> Operator:
        """An operator of its own lists, with other names for some values."""
        inputs = {s: list(n) for s, n in self.inputs.items()}
        outputs = {s: list(n) for s, n in self.outputs.items()}
        copy = Operator(self.type, inputs, outputs, {**self.attrs}, self.role, self.forward_op)
        copy._reads, copy.copy_of = self._reads, self.copy_of
        if names:
            for slots in (copy.inputs, copy.outputs):
                for slot, listed in slots.items():
                    slots[slot] = [names.get(n, n) for n in listed]
            if self.reads is not None:
                copy.reads = tuple(names.get(n, n) for n in self.reads)
            if "cond" in copy.attrs:
                copy.attrs["cond"] = names.get(copy.attrs["cond"], copy.attrs["cond"])
        return copy.at(self)

    def __repr__(self) -> str:
        from ..text.syntax import format_op

        return format_op(self)


Ops = Sequence[Operator]


def backward_op(kind: str, x: str, out: str, attrs: Attrs | None = None) -> Operator:
    """An operator of the backward part that makes one value from one."""
    return Operator(kind, {"x": [x]}, {"out": [out]}, attrs, "backward")
