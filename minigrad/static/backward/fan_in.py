"""How many gradients a value gets: several are added up, none is zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from ...grad_names import GRAD, part
from ..program.operator import Operator, Ops, backward_op

#: where a gradient is written: the operator, one of its lists of names, the place in it
Writer = tuple[Operator, list[str], int]


def add_up_repeated_gradients(ops: list[Operator], block_idx: int) -> list[Operator]:
    """A gradient written k > 1 times becomes k temporaries and one ``sum`` of k.

    The ``sum`` stands immediately before the first reader; for a gradient nobody reads, at the end.
    """
    repeated = {name for name in written_twice(outputs_of(ops)) if GRAD in name}
    if not repeated:
        return ops
    out: list[Operator] = []
    writers: dict[str, list[Writer]] = {}
    counts: dict[str, int] = {}
    label = f"block{block_idx}@" if block_idx else ""

    def close(name: str) -> None:
        sites = writers.pop(name)
        if len(sites) == 1:
            return
        first = counts.get(name, 0)
        counts[name] = first + len(sites)
        parts = rename_writers(name, sites, label, first)
        total = Operator("sum", {"x": parts}, {"out": [name]}, {}, "backward")
        out.append(total.at(sites[-1][0]))

    for op in ops:
        for names in op.inputs.values():
            for name in names:
                if name in writers:
                    close(name)
        out.append(op)
        for names in op.outputs.values():
            for j, name in enumerate(names):
                if name in repeated:
                    writers.setdefault(name, []).append((op, names, j))
    for name in list(writers):
        close(name)
    return out


def rename_writers(
    gradient: str, sites: Sequence[tuple[Any, list[str], int]], label: str = "", first: int = 0
) -> list[str]:
    """Each writer of a gradient makes a part of it: returns the names of the parts, counted from ``first``."""
    parts = [part(gradient, f"{label}{first + k}") for k in range(len(sites))]
    for name, (_, names, j) in zip(parts, sites, strict=True):
        names[j] = name
    return parts


def read_zeros(made: list[Operator], start: int, name: str, gradient: str) -> None:
    """Grad ops, from ``start`` on, read zeros for a gradient that holds what belongs to a later value of its name."""
    zeros = part(gradient, "zeros")
    for op in made[start:]:
        for slot, names in op.inputs.items():
            op.inputs[slot] = [zeros if n == gradient else n for n in names]
    made.insert(start, backward_op("fill_zeros_like", name, zeros).at(made[start]))


def fill_missing_gradients(ops: list[Operator], grad_of: dict[str, str]) -> list[Operator]:
    """A gradient that an operator reads and nobody makes is zero: ``fill_zeros_like`` right before the reader.

    An operator with one output is on the path because the gradient of that output is made.
    """
    unmade = set(grad_of)
    out: list[Operator] = []
    for op in ops:
        for names in op.inputs.values():
            for name in names:
                if name in unmade:
                    out.append(backward_op("fill_zeros_like", grad_of[name], name).at(op))
                    unmade.remove(name)
        out.append(op)
        for names in op.outputs.values():
            for name in names:
                unmade.discard(name)
    return out


def outputs_of(ops: Ops) -> list[str]:
    """The names that operators write, in their order."""
    return [*chain.from_iterable(names for op in ops for names in op.outputs.values())]


def written_twice(names: list[str]) -> set[str]:
    """The names that stand there more than once."""
    if len(set(names)) == len(names):
        return set()
    return {name for name, count in Counter(names).items() if count > 1}
