"""Which lines of a node are results: known only after it ran."""

from __future__ import annotations

import re

from .format import NOT_YET
from .graph import Node, is_op

_NUMBERS = re.compile(r"[-−+\d.,e\[\]() ·/@²³]+|-?(inf|nan)|\[.*\] \w+")


def live_lines(node: Node) -> tuple[tuple[str, str], ...]:
    """The lines of a node that are not known before it ran, each with what stands there before.

    >>> live_lines(Node("n0", "value", "a", ("0.25",)))
    (('0.25', '—'),)
    >>> results = ("gx0 = b·gy = 8", "gx1 = a·gy = 4")
    >>> live_lines(Node("n1", "grad_op", "Mul", results, side="backward"))
    (('gx0 = b·gy = 8', 'gx0 = b·gy'), ('gx1 = a·gy = 4', 'gx1 = a·gy'))
    """
    if "live" in node.data:
        texts = [text for text in node.data["live"] if not text.endswith(NOT_YET)]
        return tuple(
            (text, f"{head} = {NOT_YET}" if sign else NOT_YET)
            for text in texts
            for head, sign, _ in [text.partition(" = ")]
        )
    if is_op(node):
        found = ((line, before_run(node, line)) for line in node.lines if node.side == "backward")
        return tuple((line, before) for line, before in found if line != before)
    return tuple((line, NOT_YET) for line in node.lines[:1] if line != NOT_YET)


def before_run(node: Node, line: str) -> str:
    """A line of a backward op without the numbers of this run."""
    if node.kind == "accumulate":
        return "" if any(c.isdigit() for c in line) else line
    head, sign, result = line.rpartition("= ")
    if not sign or (not _NUMBERS.fullmatch(result) and head):
        return line
    head = head.rstrip()
    return head if "=" in head or not head else f"{head} = {NOT_YET}"
