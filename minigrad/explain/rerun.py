"""Backward once more, on remembered values: what every node gave, for `mg.why` and for pictures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..eager import backward
from ..eager.backward import Walk
from ..eager.grad_fn import FREED, REMEMBERED_BYTES, Node, Output, unpack


def nodes_below(*roots: Node) -> dict[Node, Node | None]:
    """Every node below the roots, with the node from which it was reached first."""
    found: dict[Node, Node | None] = dict.fromkeys(roots)
    queue = list(found)
    for node in queue:
        for nxt, _ in node.next_functions:
            if nxt is not None and nxt not in found:
                found[nxt] = node
                queue.append(nxt)
    return found


@contextmanager
def remembered_values(nodes: Iterable[Node]) -> Iterator[bool]:
    """Let freed values that are remembered be read for a while; False if some are not."""
    if any(getattr(n, s) is FREED for n in nodes for s in n.saved_slots):
        yield False
        return
    freed = [n for n in nodes if n.freed]
    try:
        for node in freed:
            node.freed = False
        yield True
    finally:
        for node in freed:
            node.freed = True


def rerun(
    root: Node,
    index: int,
    seed: Any,
    nodes: Iterable[Node],
    targets: list[Any] | None,
    unknown: Collection[Node] = (),
) -> dict[tuple[Node, int], Any] | None:
    """(node, slot) → what it gave, in the order of the walk; None where values are forgotten.

    Nodes that are ``unknown`` do not run, nor do their hooks.
    """
    noted: dict[tuple[Node, int], Any] = {}

    class Noting(Walk):
        def _leaf(self, n: Any, g: Any, wanted: Any) -> None:
            super()._leaf(n, None if n in unknown else g, wanted)

        def _one(self, n: Any, g: Any, wanted: Any, running: Any) -> None:
            if n not in unknown:
                super()._one(n, g, wanted, running)

        def _give(self, n: Any, g: Any, grads: Any) -> None:
            for k, ((m, _), p) in enumerate(zip(n.next_functions, grads, strict=True)):
                if p is not None and m is not None:
                    noted[n, k] = np.array(p)
            super()._give(n, g, grads)

    with remembered_values(nodes) as complete:
        if seed is None or not complete:
            return None
        walk = Noting(targets, False, nested=True)
        walk.anomaly = False
        try:
            walk.start(Output(root, index) if not root.outputs else root, seed)
            walk.run()
        finally:
            walk.clear()
    return noted


def remembered(root: Node) -> dict[str, Any]:
    """What the last backward did: ``seed``, ``gradients`` (node, slot) → array, ``saved`` of a node.

    Empty when it began elsewhere.  A node whose saved values are large or forgotten, or that has a
    hook, does not run again: what it gave is not told, nor what comes after it.
    """
    ref, (index, seed) = backward.last_start[0], backward.last_start[1] or (0, None)
    if ref is None or ref() is not root or seed is None:
        return {}
    nodes = nodes_below(root)
    unknown = nodes_below(*(n for n in nodes if n.hooks is not None or not _remembers(n)))
    known = [n for n in nodes if n not in unknown]
    saved = {n: {s[7:]: unpack(getattr(n, s)) for s in n.saved_slots} for n in known}  # _saved_x: x
    gradients = rerun(root, index, seed, known, None, unknown) or {}
    return {"seed": seed, "gradients": gradients, "saved": saved}


def _remembers(node: Node) -> bool:
    """Does a node still have its saved values, and are they small?"""
    values = [getattr(node, slot) for slot in node.saved_slots]
    parts = [p for v in values for p in (v if isinstance(v, list) else [v])]
    small = sum(getattr(p, "nbytes", 0) for p in parts) <= REMEMBERED_BYTES
    return small and all(v is not FREED for v in values)
