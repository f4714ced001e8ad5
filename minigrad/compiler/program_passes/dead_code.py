"""Operators nobody asked for go: what neither a fetch nor a parameter depends on."""

from __future__ import annotations

from collections.abc import Iterable

from ...static.program.program import Program
from ...static.program.transform import drop_unused
from .names import is_state, names_inside, names_read


def dead_code(program: Program, fetch: Iterable[str]) -> Program:
    """A copy without the operators of the root block that neither the fetched nor the persistable variables need.

    >>> from minigrad import static
    >>> import minigrad as mg
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [2]); y = mg.exp(x); z = mg.sin(x)
    >>> [op.type for op in dead_code(prog, [y.name]).global_block().ops]
    ['exp']
    """
    copy = program.clone()
    root = copy.global_block()
    needed = set(fetch)
    ops = []
    for op in reversed(root.ops):
        wanted = any(n in needed or is_state(root, n) for n in op.output_names)
        if wanted or not set(fetch).isdisjoint(names_inside(copy, op)):
            needed.difference_update(op.output_names)
            needed.update(names_read(copy, op))
            ops.append(op)
    root.ops = ops[::-1]
    copy.history.append("dead_code")
    drop_unused(copy, set(fetch))
    return copy
