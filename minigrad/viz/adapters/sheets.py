"""Operators on paper, for `of_program` and `of_net`: a sheet is one name space, a block or a net.

The first sheet holds both sides of the whole; what an operator holds (the body of a loop, a branch, a step net) is
a sheet of its own. Sheets say what their operators are, and how names look; here they are drawn and joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...grad_names import base, is_gradient
from ..graph.graph import Graph, Node, Region
from .inside import add_word
from .wiring import Placed, Wiring, link_rest, op_words, twins


class Sheet:
    """One name space; ``owner`` is the operator that holds it, ``attr`` what it is to that operator."""

    kind = ""  # what several of them are called
    words = ""  # in front of its operators in words

    def __init__(self, graph: Graph, owner: Placed | None = None, attr: str = "") -> None:
        self.graph, self.owner, self.attr = graph, owner, attr
        self.wiring = Wiring(graph, self.look)
        self.backward = owner is not None and owner.backward
        self.loop = False  # its operators run several times

    def draw(self) -> None:
        """Its operators, in the order in which they run."""
        raise NotImplementedError

    def look(self, name: str, written: bool) -> tuple[str, tuple[Any, ...], str, str]:
        """Kind, value if it is shown, words and tooltip of a name."""
        raise NotImplementedError

    def inside(self, placed: Placed) -> Iterator[Sheet]:
        """The sheets of what an operator holds."""
        raise NotImplementedError

    def frame(self, label: str, side: str) -> Region:
        """The frame of one of its sides."""
        holder = None if self.owner is None else self.owner.node.id
        return self.graph.region(label, side=side, holder=holder, strong=holder is not None)

    def finish(self) -> None:
        """All its operators are drawn: values get their frames, versions their words."""
        self.wiring.finish()

    def handed_over(self) -> Iterable[tuple[str, str]]:
        """(name at the end of a step, name at the start of the next), where the loop says so."""
        return ()

    def shared(self, name: str) -> bool:
        """Whether every step finds the same value under a name that none writes."""
        raise NotImplementedError

    def went_round(self, end: Node, start: Node) -> None:
        """One value that a step hands on to the next."""
        add_word(end, "before the step" if self.backward else "next")
        if self.backward:
            add_word(start, "after the step")
        label = "previous step" if self.backward else "next step"
        self.graph.edge(end, start, "loop", label=label)

    def join(self) -> None:
        """The line from the operator to what it holds, and the values that go round in it."""
        placed, versions = self.wiring.placed, self.wiring.versions
        if self.owner is not None and placed:
            first = [*placed[0].ins.values(), placed[0].node][0]
            self.graph.edge(self.owner.node, first, "sub_block")
        for end, start in self.handed_over() if self.loop else ():
            if end in versions and start in versions and end != start:
                self.went_round(versions[end][-1], versions[start][0])


def drawn(kind: str, first: Sheet, dropped: Iterable[tuple[Any, Node]]) -> list[Sheet]:
    """Draw a sheet and what its operators hold, to any depth; ``dropped`` are nodes of grad ops that are
    not there, each with the operator whose they would have been.
    """
    sheets, graph = [first], first.graph
    for sheet in sheets:  # grows while it is walked
        sheet.draw()
        for placed in sheet.wiring.placed:
            held = [*sheet.inside(placed)]
            placed.node.bold = bool(held)
            sheets += held
    for sheet in sheets:
        sheet.finish()
        sheet.join()
    _mirror(graph, sheets, dropped)
    every = [p for sheet in sheets for p in sheet.wiring.placed]
    grads = sum(p.backward for p in every)
    counts = [f"{len(every) - grads} ops"]
    counts += [f"{grads} grad ops"] if grads or kind == "Program" else []
    counts += [f"{len(sheets)} {first.kind}s"] if len(sheets) > 1 else []
    graph.title = f"{kind}: {', '.join(counts)}"
    for sheet in sheets:
        inside = sheet.words if len(sheets) > 1 else ""
        graph.steps += [f"{inside}#{p.node.number} {op_words(p.op)}" for p in sheet.wiring.placed]
    return sheets


def _mirror(graph: Graph, sheets: list[Sheet], dropped: Iterable[tuple[Any, Node]]) -> None:
    """Link each grad op and each gradient with its twin."""
    every = [p for sheet in sheets for p in sheet.wiring.placed]
    backward = [p for p in every if p.backward]
    forward = {id(p.op): p for p in every if p.node.side == "forward"}
    for op, node in dropped:
        if (twin := forward.get(id(op))) is not None and twin.node.twin is None:
            graph.link(twin.node, node)
    found = twins(graph, [*forward.values()], backward)
    held = {(s.owner.node.id, s.attr): s for s in sheets if s.owner is not None}
    for sheet in sheets:
        partner: Sheet | None = sheet
        if sheet.owner is not None and sheet.backward:
            owner = found.get(sheet.owner.node.id)
            partner = held.get((owner.node.id, sheet.attr)) if owner is not None else None
        if partner is not None:
            link_rest(graph, partner.wiring, sheet.wiring)
        if partner is not None and sheet.loop and sheet.backward:
            _add_over_steps(graph, partner, sheet)


def _add_over_steps(graph: Graph, forward: Sheet, backward: Sheet) -> None:
    """Gradients of what every step reads and none writes are added up over the steps."""
    added: set[str] = set()
    for name, nodes in backward.wiring.versions.items():
        read = forward.wiring.versions.get(base(name), [])
        only_read = len(read) == 1 and read[0].id not in forward.wiring.writer
        if is_gradient(name) and len(nodes) == 1 and only_read and forward.shared(base(name)):
            nodes[0].kind = "renamed"
            add_word(nodes[0], "+= over steps")
            added.add(nodes[0].id)
    for edge in graph.edges if added else ():
        if edge.head in added and edge.kind == "grad":
            edge.kind = "accumulate"
