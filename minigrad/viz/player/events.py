"""What happens, one event after the other: frame k of a player is the replay of the first k events.

The same list drives the widget, the static frames, the text log and the tests.  An event speaks
about nodes of one neutral graph, so one function serves watched calls, grad_fn graphs, nets and
programs alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..graph.format import NOT_YET, format_value
from ..graph.graph import Graph, Links, Node, in_order, is_op, live_lines
from ..render.words import ordered_ops

_VERBS = {
    "grad_op": "backward",
    "seed": "seed",
    "sum": "accumulate",
    "accumulate": "accumulate",
    "zeros": "zeros",
}
_VERBS_BACKWARD = {"op": "update", "folded": "backward"}
_WORDS = {
    "forward": "Forward",
    "backward": "Backward",
    "seed": "Seed",
    "accumulate": "Add up",
    "zeros": "Zeros",
    "update": "Update",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens.

    ``nodes`` light up; ``values`` says what their values are from now on (node id -> text);
    ``formula`` is the rule with its numbers; ``iteration`` counts from 0 inside a loop.
    """

    kind: str
    nodes: tuple[str, ...]
    text: str
    formula: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    iteration: int | None = None


# ---- running --------------------------------------------------------------------------------


def run_events(
    graph: Graph,
    scopes: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    record: Any = None,
    whole: Graph | None = None,
) -> list[Event]:
    """What runs, in its order: forward ops, seed, backward ops; blocks are entered and left.

    ``record`` is what a run of a program did, step by step: then that is played, nothing else.
    Without one the graph tells the order, and ``scopes`` the values of each turn of a loop: name of
    the step scopes -> one dict per turn.  ``whole`` is the graph before it was folded.
    """
    play = Running(graph, scopes or {})
    return list(play.events() if record is None else play.recorded(record, whole or graph))


class Running:
    """Walks the operators of a graph in the order in which they run, with a stack of its own."""

    def __init__(self, graph: Graph, scopes: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self.graph, self.links, self.scopes = graph, Links(graph), scopes
        self.now: dict[str, Any] = {}  # the values of names at this moment of a run
        self.inside: dict[str, list[str | None]] = {}
        for edge in graph.edges:
            if edge.kind == "sub_block":
                region = edge.head if edge.head in graph.regions else graph.nodes[edge.head].region
                self.inside.setdefault(edge.tail, []).append(region)
        self.held = {r for regions in self.inside.values() for r in regions}
        self.ops: dict[str | None, list[Node]] = {}
        ops = {op.id: op for op in ordered_ops(graph)}
        for name in in_order(ops, lambda op: makers(ops[op], self.links, ops)):
            if (node := ops[name]).kind != "pruned":
                self.ops.setdefault(self.holder(node.region), []).append(node)
        self.seeds = [
            n
            for n in graph.nodes.values()
            if n.kind == "seed" and not is_op(n) and not self.links.before[n.id]
        ]

    def holder(self, region: str | None) -> str | None:
        """The sub-block a region lies in; None for the outermost drawing."""
        return next((r for r in self.graph.around(region) if r in self.held), None)

    def given(self) -> Iterator[Event]:
        """The gradients that somebody gives to start with, once."""
        seeds, self.seeds = self.seeds, []
        for node in seeds:
            words = f"Seed: {said(node)} starts the backward pass"
            yield Event("seed", (node.id,), words, values=shown(node))

    # -- what a run did

    def recorded(self, record: Any, whole: Graph) -> Iterator[Event]:
        """The steps of a run in their order; what runs inside a folded box is one step of it."""
        ops = {n.data["place"]: n for n in whole.nodes.values() if "place" in n.data}
        holders = {b: n for n in ops.values() for b in n.data.get("holds", ())}
        boxes = {m: n for n in self.graph.nodes.values() for m in n.data.get("members", ())}
        inside: dict[int, list[Node]] = {}
        for node in self.graph.nodes.values():
            if "place" in node.data:
                inside.setdefault(node.data["place"][0], []).append(node)
        turns: list[int | None] = []  # of the blocks that are entered, from the outermost
        box: tuple[Node, dict[str, Any]] | None = None  # that is running, and what it wrote
        for done in record.steps:
            op = ops.get((done.block, done.number))
            place = boxes.get(op.id) if op is not None else None
            if box is not None and done.kind == "op" and place is not box[0]:
                yield self.step(box[0], turns[-1], box[1])
                box = None
            if done.kind == "enter":
                turns.append(done.turn if done.turn is not None or not turns else turns[-1])
                holder = holders.get(done.block)
                yield from self.passed(done, holder, inside.get(done.block, []), turns[-1])
            elif done.kind == "leave":
                holder = holders.get(done.block)
                yield from self.passed(done, holder, inside.get(done.block, []), turns.pop())
            elif place is not None:
                if place.kind == "folded":
                    box = (place, (box[1] if box else {}) | done.values)
            elif op is not None and op.id in self.graph.nodes:
                node = self.graph.nodes[op.id]
                if node.side == "backward" and len(turns) == 1:
                    yield from self.given()
                yield self.step(node, turns[-1], done.values)
        if box is not None:
            yield self.step(box[0], None, box[1])
        yield from self.given()

    def passed(
        self, done: Any, holder: Node | None, inside: list[Node], turn: int | None
    ) -> Iterator[Event]:
        """A sub-block that is drawn is entered, with what it finds, or left."""
        if holder is None or holder.id not in self.graph.nodes or not inside:
            return
        label = holder.data["holds"][done.block]
        where = label if turn is None else f"{label}, step {turn}"
        if done.kind == "leave":
            yield Event("leave", (holder.id,), f"Leave {where}", iteration=turn)
            return
        found = self.sources(inside)
        self.now |= done.values
        values: dict[str, str] = {}
        for name in found:
            values |= scoped(self.graph.nodes[name], done.values)
        yield Event("enter", (holder.id, *found), f"Enter {where}", values=values, iteration=turn)

    # -- what the graph and the step scopes tell

    def events(self) -> Iterator[Event]:
        """The operators in the order of the graph; nobody noted which of them ran, and how often."""
        yield from self.run(None, None, {})
        yield from self.given()

    def run(
        self, region: str | None, iteration: int | None, values: Mapping[str, Any]
    ) -> Iterator[Event]:
        """The operators of a block, each after what it holds.  Blocks nest only as deep as a program does."""
        for node in self.ops.get(region, []):
            if node.side == "backward" and node.region not in self.held:
                yield from self.given()
            yield from self.nested(node, iteration)
            yield self.step(node, iteration, values)

    def step(self, node: Node, iteration: int | None, values: Mapping[str, Any]) -> Event:
        """One operator runs and writes its values."""
        kind = verb(node)
        outs = [n for n in self.links.after[node.id] if not is_op(n)]
        texts = dict(shown(node))
        self.now |= values
        for out in outs:
            unknown = {out.id: NOT_YET} if values and shown(out) else shown(out)
            texts |= scoped(out, values) or unknown
        return Event(
            kind,
            (node.id, *(n.id for n in outs)),
            self.words(kind, node, outs, texts, iteration),
            formula(node, self.now),
            texts,
            iteration,
        )

    def words(
        self,
        kind: str,
        node: Node,
        outs: list[Node],
        texts: Mapping[str, str],
        iteration: int | None,
    ) -> str:
        """One sentence for the text log and the screen reader."""
        if "called" in node.data:
            return f"Add up at {node.name}: {node.lines[0]}"
        number = f"#{node.number} " if node.number is not None else ""
        into = ", ".join(dict.fromkeys(n.name for n in self.links.before[node.id] if n.name))
        made = [f"{n.name} = {texts[n.id]}" if texts.get(n.id) else n.name for n in outs if n.name]
        if not outs:
            made = [text for text, _ in live_lines(node)]
        takes = f" takes {into}" if into else ""
        gives = f" gives {', '.join(made)}" if made else ""
        again = "" if iteration is None else f" (step {iteration})"
        joined = f"{takes} and{gives}" if takes and gives else takes + gives
        return f"{_WORDS[kind]} {number}{node.name}{joined}{again}"

    def nested(self, node: Node, iteration: int | None) -> Iterator[Event]:
        """What an operator with blocks does: enter, run, leave; turn by turn, a test before each.

        Backward goes from the last turn to the first.
        """
        regions = sorted(self.inside.get(node.id, ()), key=lambda r: not self.tests(r))
        frames = [*self.iterations(node), {}] if regions else [{}]
        turns = [(t, region) for t in range(len(frames) - 1) for region in regions]
        turns = turns if node.side == "forward" else sorted(turns, key=lambda turn: -turn[0])
        turns += [(len(frames) - 1, r) for r in regions if self.tests(r)]  # what ends a loop
        for t, region in turns:
            yield from self.once(
                node, region, iteration, t, (frames[t - 1] if t else {}, frames[t])
            )

    def tests(self, region: str | None) -> bool:
        """Is it the block of a condition?"""
        return self.graph.regions[str(region)].label.endswith(": condition")

    def once(
        self,
        node: Node,
        region: str | None,
        iteration: int | None,
        t: int,
        frames: tuple[Mapping[str, Any], Mapping[str, Any]],
    ) -> Iterator[Event]:
        """A block is entered, runs, and is left; what it overwrites has the value that the iteration
        before it left.
        """
        inside = self.ops.get(region, [])
        label = self.graph.regions[str(region)].label
        at, where = (t, f"{label}, step {t}") if self.scopes else (iteration, label)
        written = {out.name for op in inside for out in self.links.after[op.id]}
        values: dict[str, str] = {}
        for name in self.sources(inside):
            source = self.graph.nodes[name]
            values |= scoped(source, frames[source.name not in written])
        nodes = (node.id, *self.sources(inside))
        yield Event("enter", nodes, f"Enter {where}", values=values, iteration=at)
        yield from self.run(region, at, frames[1])
        yield Event("leave", (node.id,), f"Leave {where}", iteration=at)

    def sources(self, inside: list[Node]) -> list[str]:
        """What an iteration finds when it starts."""
        read = dict.fromkeys(n.id for op in inside for n in self.links.before[op.id])
        return [n for n in read if not self.links.before[n]]

    def iterations(self, node: Node) -> Sequence[Mapping[str, Any]]:
        """The values of each iteration of a loop, where known; else one unknown iteration."""
        near = [*self.links.before[node.id], *self.links.after[node.id]]
        known = {n.name for n in near} | set(node.reads)
        for name, frames in self.scopes.items():
            if name in known or name.partition("@")[0] in known:
                return frames
        return [{}]


def makers(op: Node, links: Links, known: Mapping[str, Node]) -> list[str]:
    """The operators that an operator waits for: those that feed it, directly or by a value."""
    feeds = links.before[op.id]
    every = dict.fromkeys(
        [*(m.id for n in feeds for m in links.before[n.id]), *(n.id for n in feeds)]
    )
    return [name for name in every if name in known]


def verb(node: Node) -> str:
    """What kind of event it is that a node runs."""
    if node.side == "backward" and node.kind in _VERBS_BACKWARD:
        return _VERBS_BACKWARD[node.kind]
    return _VERBS.get(node.kind, "forward")


def shown(node: Node) -> dict[str, str]:
    """The value a node shows at the end, if it shows one."""
    lines = live_lines(node)
    return {node.id: lines[0][0]} if lines and not is_op(node) else {}


def scoped(node: Node, values: Mapping[str, Any]) -> dict[str, str]:
    """The value a node has in one iteration."""
    name = node.data.get("variable", node.name)
    known = name in values and node.kind != "scopes"
    return {node.id: format_value(values[name])} if known else {}


def said(node: Node) -> str:
    text = shown(node).get(node.id, "").removesuffix(" (seed)")
    return f"{node.name} = {text}" if any(c.isdigit() for c in text) else node.name


def formula(node: Node, values: Mapping[str, Any]) -> str:
    """The rule of an operator, its numbers and what comes out: ``g·(1 − e²) = 1·(1 − 0.9987) = …``."""
    if "slots" in node.data:
        return "  ".join(slot.worked(values) for slot in node.data["slots"])
    return "  ".join(line for line in node.lines if "=" in line)
