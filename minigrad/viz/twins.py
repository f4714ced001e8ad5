"""Which grad op belongs to which operator, which gradient to which value.

Twins stand on one rank; a forward value that a grad op reads gets a dotted line to it.
"""

from __future__ import annotations

from .graph import Graph
from .spelling import EMPTY, base, is_gradient
from .wiring import Placed, Wiring


def twins(graph: Graph, forward: list[Placed], backward: list[Placed]) -> dict[str, Placed]:
    """Link each grad op with the operator it differentiates, each gradient with its value.

    Returns grad op node id -> the forward operator.  An op's own ``forward_op`` decides; where
    there is none, a grad op belongs to the last operator not yet taken that wrote the base of a
    gradient it reads and read the base of one it writes.
    """
    known = {id(f.op): f for f in forward}
    writers: dict[str, list[Placed]] = {}
    for f in forward:
        for name in f.outs:
            writers.setdefault(name, []).append(f)
    found: dict[str, Placed] = {}
    for g in backward:
        if g.node.kind in ("grad_op", "pruned"):
            twin = known.get(id(getattr(g.op, "forward_op", None))) or by_names(g, writers)
            if twin is not None:
                found[g.node.id] = twin
                if twin.node.twin is None:
                    graph.link(twin.node, g.node)
                else:
                    g.node.twin = twin.node.id  # one operator, several grad ops
    _link_values(graph, backward, found, reads=True)
    _link_values(graph, backward, found, reads=False)
    return found


def by_names(g: Placed, writers: dict[str, list[Placed]]) -> Placed | None:
    """The forward operator that a grad op belongs to, judged by its names."""
    written = {base(name) for name in g.outs if name != EMPTY}
    for name in g.ins:
        for f in reversed(writers.get(base(name), ())):
            if f.node.twin is None and (written & f.ins.keys() or not written):
                return f
    return None


def _link_values(
    graph: Graph, backward: list[Placed], found: dict[str, Placed], reads: bool
) -> None:
    """A gradient that a grad op reads belongs to an output of its operator, else to an input."""
    for g in backward:
        f = found.get(g.node.id)
        if f is None:
            continue
        for name, node in (g.ins if reads else g.outs).items():
            value = (f.outs if reads else f.ins).get(base(name))
            if value is None or value.twin or node.twin or node.kind in ("renamed", "data"):
                continue
            graph.link(value, node)


def link_rest(graph: Graph, forward: Wiring, backward: Wiring) -> None:
    """The gradients that no grad op reads or writes directly: sums of parts, given seeds."""
    for name, nodes in backward.versions.items():
        last = nodes[-1]
        part = last.kind in ("renamed", "data") or "@RENAME@" in name
        if part or last.twin or not is_gradient(name):
            continue
        values = forward.versions.get(base(name), ())
        free = [v for v in values if v.twin is None and v.side == "forward"]
        if free:
            graph.link(free[0], last)


# ---- saved values ---------------------------------------------------------------------------


def saved_lines(graph: Graph, backward: list[Placed], found: dict[str, Placed]) -> None:
    """A dotted line for each forward value a grad op reads; the drawing keeps the near ones."""
    for g in backward:
        f = found.get(g.node.id)
        if f is None:
            continue
        for name in g.saved:
            value = f.ins.get(name) or f.outs.get(name)
            if value is not None:
                graph.edge(value, g.node, "saved")
