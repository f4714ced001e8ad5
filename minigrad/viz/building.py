"""How the backward part of a program came to be, pass by pass, as events for the player."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from .events import Event
from .graph import Graph, Node
from .reading import Links, is_op
from .spelling import op_words

#: What a pass does, found by a word in its name.
_PASS_WORDS = (
    ("append", ("append", "raw", "grad op", "grad_op", "make")),
    ("rename", ("rename", "add up", "added", "addup")),
    ("sum", ("sum",)),
    ("prune", ("prune", "remove", "no grad", "no_grad")),
    ("zeros", ("zero", "fill")),
    ("create", ("var", "create")),
)


def build_events(
    graph: Graph, trace: Sequence[tuple[str, Sequence[Any]]] | None = None
) -> list[Event]:
    """How the backward part came to be: append, rename, sum, prune, zeros, create variables.

    ``graph`` is the finished program, drawn with ``detail="pruned"``.  ``trace`` is what the
    builder recorded: (name of the pass, the operators after it); its order is kept and the changed
    lines are quoted.
    """
    told, links = passes(trace or ()), Links(graph)
    made = {
        "append": _appended(graph),
        "rename": _renamed(graph, links, told.get("rename", [])),
        "sum": _summed(graph, links),
        "prune": _pruned(graph, told.get("prune", [])),
        "zeros": _zeroed(graph, links),
        "create": _created(graph, links),
    }
    order = list(dict.fromkeys([*told, *made]))
    if "rename" in order and "sum" in order:  # one pass of the builder does both
        order.remove("sum")
        order.insert(order.index("rename") + 1, "sum")
    if "append" in order:
        order.insert(0, order.pop(order.index("append")))
    return [event for kind in order for event in made[kind]]


def passes(trace: Sequence[tuple[str, Sequence[Any]]]) -> dict[str, list[str]]:
    """Kind of pass -> the lines of the operator list it changed, by snapshots after each pass."""
    told: dict[str, list[str]] = {}
    before: list[str] = []
    for name, ops in trace:
        now = [op_words(op) if hasattr(op, "outputs") else str(op) for op in ops]
        changed = [d for d in difflib.ndiff(before, now) if d[:1] in "+-"]
        kind = next(
            (k for k, words in _PASS_WORDS if any(w in name.lower() for w in words)), "append"
        )
        told[kind] = [] if kind == "append" else changed
        before = now
    return told


def _of_kind(graph: Graph, *kinds: str) -> list[Node]:
    return [n for n in graph.nodes.values() if n.kind in kinds and n.side == "backward"]


def _appended(graph: Graph) -> list[Event]:
    ops = [
        n
        for n in graph.nodes.values()
        if n.side == "backward" and n.kind in ("grad_op", "seed") and is_op(n)
    ]
    made = []
    for op in ops:
        kind = "seed" if op.kind == "seed" else "append"
        what = (
            "the backward pass starts here"
            if op.kind == "seed"
            else f"the grad op of {_twin(graph, op)}"
        )
        made.append(Event(kind, (op.id,), f"Append #{op.number} {op.name}: {what}"))
    return made


def _twin(graph: Graph, node: Node) -> str:
    twin = graph.nodes.get(node.twin or "")
    return f"#{twin.number} {twin.name}" if twin is not None else "an earlier op"


def _renamed(graph: Graph, links: Links, told: list[str]) -> list[Event]:
    return [
        Event(
            "rename",
            (n.id, *(w.id for w in links.before[n.id])),
            f"Rename: this part of the gradient is now {n.name}{_quoted(told, n.name)}",
        )
        for n in _of_kind(graph, "renamed")
        if "@RENAME@" in n.name
    ]


def _summed(graph: Graph, links: Links) -> list[Event]:
    return [
        Event(
            "sum",
            (n.id, *(o.id for o in links.after[n.id])),
            f"Insert #{n.number} {n.name}: {len(links.before[n.id])} parts make {_outs(links, n)}",
        )
        for n in _of_kind(graph, "sum")
    ]


def _pruned(graph: Graph, told: list[str]) -> list[Event]:
    return [
        Event(
            "prune",
            (n.id,),
            f"Prune {n.name}: {', '.join(n.lines) or 'nothing needs it'}{_quoted(told, n.name)}",
        )
        for n in _of_kind(graph, "pruned")
    ]


def _zeroed(graph: Graph, links: Links) -> list[Event]:
    return [
        Event(
            "zeros",
            (n.id, *(o.id for o in links.after[n.id])),
            f"Insert #{n.number} {n.name}: nobody produces {_outs(links, n)}, so it is zero",
        )
        for n in _of_kind(graph, "zeros")
    ]


def _created(graph: Graph, links: Links) -> list[Event]:
    done = {o.id for n in _of_kind(graph, "sum", "zeros") for o in links.after[n.id]}
    kinds = _of_kind(graph, "gradient", "leaf_gradient", "renamed")
    grads = [n for n in kinds if n.id not in done and "@RENAME@" not in n.name]
    return [
        Event(
            "create",
            (n.id,),
            f"Create the variable {n.name}: shape and dtype from its forward name",
        )
        for n in grads
    ]


def _outs(links: Links, node: Node) -> str:
    return ", ".join(o.name for o in links.after[node.id])


def _quoted(told: list[str], word: str) -> str:
    """The changed line that speaks of a name: ``+`` in, ``-`` out."""
    line = next((line for line in told if word in line), "")
    return f" ({line[:200]})" if line else ""
