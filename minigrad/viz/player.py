"""`play`: step through a graph, forward and backward.

What happens is a list of events, one after the other: frame k is the replay of the first k.  The
same list drives the widget, the text log and the tests.  An event speaks about nodes of one neutral
graph, so one class serves watched calls, grad_fn graphs, nets and programs alike.  A `Player` shows
itself as a page in a frame, which needs no kernel, as its drawing and its text where nothing runs,
and saves itself as one HTML file that needs nothing else.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from .adapters.names import Names, caller_variables
from .adapters.sources import held_by, parted, record_of, values_in
from .graph.format import LONGEST_LINE, NOT_YET, WIDEST, format_value, shorten, visible, wrapped
from .graph.graph import Graph, Links, Node, grouped, in_order, is_op, live_lines, number_of
from .picture import Picture, saved, view_of_any
from .render.html import frame, page
from .render.words import ordered_ops

Values = Mapping[str, Any]  # by name
Turns = Mapping[str, Sequence[Values]]  # of each step scopes, the values of every turn
Texts = Mapping[str, str]  # by node
NOTHING: Values = MappingProxyType({})

#: what kind of event it is that a node of some kind runs, on the backward side
_VERBS = {
    "op": "update",
    "folded": "backward",
    "grad_op": "backward",
    "seed": "seed",
    "sum": "accumulate",
    "accumulate": "accumulate",
    "zeros": "zeros",
}


def play(x: Any, *, prediction: bool = False, names: Values | None = None) -> "Player":
    """Step through whatever `draw` can draw.

    A program plays as it runs. A pair ``(program, scope)`` plays what
    ``Executor.run(program, …, scope=scope)`` did: every turn and test of a loop, the branch that was
    taken.  A pair ``(program, values)`` shows values; those of step scopes turn by turn.
    ``prediction=True`` asks for each next value before it shows it.

    Raises `TypeError` for something without a graph.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True, name="x")
    >>> print(type(mg.play(x * x)).__name__)
    Player
    """
    thing, scope = parted(x)
    record = record_of(x)
    values = values_in(scope)
    steps = step_scopes(values)
    if record is None and scope is not None:  # of what a loop did, the last iteration is drawn
        last: dict[str, Any] = {}
        for frames in steps.values():
            last |= frames[-1]
        x = thing, last | values
    view = view_of_any(x, "auto", True, Names(names, caller_variables()), None)
    picture = Picture(view.graph, view=view)
    events = run_events(picture.graph, steps, record, view.whole)
    return Player(picture, events, prediction=prediction)


def step_scopes(values: Values) -> dict[str, list[Any]]:
    """The step scopes of loops among the values of a program: one mapping per iteration."""
    steps = {}
    for name, held in values.items():
        each = [held_by(step) for step in held] if isinstance(held, list | tuple) else []
        if each and None not in each:
            steps[name] = each
    return steps


class Player:
    """One drawing and a list of events: frame k shows the drawing after the first k events.

    The drawing is made once, with every value in it; a frame only changes classes (``pending``,
    ``active``, ``done``) and takes back the texts that are not known yet.  `script` says so as plain
    data, and the player in the browser replays it.

    >>> from minigrad.viz import Graph
    >>> g = Graph()
    >>> x, f = g.node("leaf", "x", lines=("3",)), g.node("op", "Square")
    >>> _ = g.edge(x, f), g.edge(f, g.node("output", "y", lines=("9",)))
    >>> player = Player(Picture(g), [Event("forward", ("n1", "n2"), "Square gives 9", values={"n2": "9"})])
    >>> player.live, player.script["steps"][0]["shows"]
    ({'n2': [('9', '—')]}, {'n2': ['9']})
    """

    def __init__(
        self, picture: Picture, events: "Sequence[Event]", *, prediction: bool = False
    ) -> None:
        self.picture = picture
        self.graph = picture.graph
        self.prediction = prediction
        self.events = [  # here the words of events become text of pictures and pages
            e._replace(text=visible(e.text), formula=visible(e.formula)) for e in events
        ]
        self.first: dict[str, int] = {}
        never = [n.id for n in self.graph if n.state == "pending"]  # they did not run
        for i, nodes in enumerate([*(e.nodes for e in self.events), never]):
            for node in nodes:
                self.first.setdefault(node, i)

    @functools.cached_property
    def live(self) -> dict[str, list[tuple[str, str]]]:
        """Node -> its texts that a frame may take back, each with what stands there before."""
        live = {}
        for name in self.first:
            if lines := live_lines(self.graph.nodes[name]):
                live[name] = [row for both in lines for row in _beside(*both)]
        return live

    def _said(self, event: "Event", node: str) -> list[str]:
        """The live texts of a node from an event on."""
        texts = [text for text, _ in self.live[node]]
        if node in event.values:
            final = live_lines(self.graph.nodes[node])[0][0]
            first = [text for _, text in _beside(final, event.values[node])]
            texts[: len(first)] = first
        return texts

    @property
    def opening(self) -> str:
        """What frame 0 says."""
        steps = f"Nothing has run yet. {len(self.events)} steps follow."
        return steps if self.events else "Nothing to play."

    def text(self) -> str:
        """The log: one line per event."""
        lines = [visible(self.graph.title) or "Steps"]
        for i, event in enumerate(self.events, 1):
            formula = f"  [{event.formula}]" if event.formula else ""
            lines.append(f"{i}. {event.text}{formula}")
        return "\n".join(lines if self.events else [*lines, self.opening])

    @functools.cached_property
    def script(self) -> dict[str, Any]:
        """What happens as plain data: what the browser replays."""
        steps = [
            {
                "kind": e.kind,
                "nodes": e.nodes,
                "text": e.text,
                "formula": e.formula,
                "iteration": e.iteration,
                "shows": {n: self._said(e, n) for n in e.nodes if n in self.live},
                "ask": self._question(e),
            }
            for e in self.events
        ]
        return {
            "title": self.graph.title,
            "opening": self.opening,
            "first": self.first,
            "live": self.live,
            "steps": steps,
        }

    def _question(self, event: "Event") -> dict[str, str] | None:
        """What a learner can predict about an event: a value, else which operator it is."""
        for node, text in event.values.items():
            if text != NOT_YET:
                name = self.graph.nodes[node].name
                return _asked(node, f"{name} = ?", text.removesuffix(" (seed)"))
        if event.kind in ("enter", "leave"):
            return None
        op = self.graph.nodes[event.nodes[0]]
        for line, _ in live_lines(op) if op.side == "backward" else ():
            rule, sign, result = line.rpartition(" = ")
            if sign:
                what = f"What is {rule} now?" if "called" in op.data else f"{op.name}: {rule} = ?"
                return _asked(op.id, what, result)
        # one for the operator itself shows no box before it is answered
        return _asked(op.id, "Which operator comes next?", op.name) | {"operator": op.name}

    def save(self, path: str | Path) -> Path:
        """Write one HTML file that plays on its own; `ValueError` for another ending,
        `FileNotFoundError` for a folder that is not there.
        """
        return saved(self, "player", path, {".html": Player._page, ".htm": Player._page})

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_) -> dict[str, Any]:
        bundle = {"text/plain": self.text()}
        if svg := self.picture.svg:
            bundle["image/svg+xml"] = svg
            title = self.graph.title or "player"
            bundle["text/html"] = frame(self._page(), title, self.picture.small_png())
        return bundle

    def _page(self) -> str:
        """A page that plays, with the code of the player, the drawing and the events."""
        data = {"script": self.script, "frame": 0, "prediction": self.prediction}
        title = self.graph.title or "Backward, step by step"
        return page("player.js", self.picture.svg, data, self.text(), title, "All steps in words")


def _asked(node: str, what: str, answer: str) -> dict[str, str]:
    return {"node": node, "what": visible(what), "answer": answer}


def _beside(text: str, other: str) -> list[tuple[str, str]]:
    """The rows of a text as it is drawn, each with what stands in it for another text."""
    drawn = wrapped(shorten(text, LONGEST_LINE))
    width = max(map(len, drawn)) if len(drawn) > 1 else WIDEST
    rows = wrapped(shorten(other, LONGEST_LINE), width)
    rows = [*rows[: len(drawn) - 1], " ".join(rows[len(drawn) - 1 :])]
    return list(zip_longest(drawn, rows, fillvalue=""))


# ---- What happens ----


class Event(NamedTuple):
    """One thing that happens.

    ``nodes`` light up; ``values`` says what their values are from now on (node id -> text);
    ``formula`` is the rule with its numbers; ``iteration`` counts from 0 inside a loop.
    """

    kind: str
    nodes: tuple[str, ...]
    text: str
    formula: str = ""
    values: Texts = NOTHING
    iteration: int | None = None


def run_events(
    graph: Graph, scopes: Turns = NOTHING, record=None, whole: Graph | None = None
) -> list[Event]:
    """What runs, in its order: forward ops, seed, backward ops; blocks are entered and left.

    ``record`` is what a run of a program did, step by step: then that is played, nothing else.
    Without one the graph tells the order, and ``scopes`` the values of each turn of a loop: name of
    the step scopes -> one dict per turn.  ``whole`` is the graph before it was folded.
    """
    play = Running(graph, scopes)
    ran = play.run(None, None, {}) if record is None else play.recorded(record, whole or graph)
    return [*ran, *play.given()]


class Running:
    """Walks the operators of a graph in the order in which they run, with a stack of its own."""

    def __init__(self, graph: Graph, scopes: Turns) -> None:
        self.graph = graph
        self.links = Links(graph)
        self.scopes = scopes
        self.now: dict[str, Any] = {}  # the values of names at this moment of a run
        #: the operator that holds it, by the region of a sub-block
        self.holders = {r.id: r.holder for r in graph.regions.values() if r.holder}
        before = self.links.before
        ops = {op.id: op for op in ordered_ops(graph) if op.kind != "pruned"}
        order = in_order(ops, lambda name: [n.id for n in before[name]])
        self.ops = grouped((ops[name] for name in order if name in ops), self.block_of)
        self.seeds = [n for n in graph if n.kind == "seed" and not (is_op(n) or before[n.id])]

    def block_of(self, op: Node) -> str | None:
        """The sub-block that an operator stands in; None for the outermost drawing."""
        return next((r for r in self.graph.around(op.region) if r in self.holders), None)

    def given(self) -> Iterator[Event]:
        """The gradients that somebody gives to start with, once."""
        seeds, self.seeds = self.seeds, []
        for node in seeds:
            texts = shown([node])
            text = texts.get(node.id, "").removesuffix(" (seed)")
            what = f"{node.name} = {text}" if any(map(str.isdigit, text)) else node.name
            yield Event("seed", (node.id,), f"Seed: {what} starts the backward pass", values=texts)

    # -- what a run did

    def recorded(self, record, whole: Graph) -> Iterator[Event]:
        """The steps of a run in their order; what runs inside a folded box is one step of it."""
        stands = {m: n for n in self.graph for m in (n.id, *n.data.get("members", ()))}
        drawn = {n.data["place"]: stands[n.id] for n in whole if "place" in n.data}
        placed = [n for n in self.graph if "place" in n.data]
        inside = grouped(placed, lambda n: n.data["place"][0])
        turns = [None]  # of the blocks that are entered, from the outermost
        box = None  # that is running
        wrote: dict[str, Any] = {}  # by the box
        for done in record.steps:
            place = drawn.get((done.block, done.number))
            if box and done.kind == "op" and place is not box:
                yield self.step(box, turns[-1], wrote)
                box = None
                wrote = {}
            if done.kind == "enter":
                turns.append(turns[-1] if done.turn is None else done.turn)
            within = inside.get(done.block, [])
            region = next(map(self.block_of, within), None)
            if region and done.kind != "op":
                self.now |= done.values
                found = within if done.kind == "enter" else []
                yield self.passed(done.kind, region, turns[-1], found, done.values)
            if done.kind == "leave":
                turns.pop()
            elif place and place.kind == "folded":
                box = place
                wrote |= done.values
            elif place and place.data["place"] == (done.block, done.number):
                if place.side == "backward" and place.region not in self.holders:
                    yield from self.given()
                yield self.step(place, turns[-1], done.values)
        if box:
            yield self.step(box, None, wrote)

    # -- what the graph and the step scopes tell

    def run(self, region: str | None, iteration: int | None, values: Values) -> Iterator[Event]:
        """The operators of a block in the order of the graph, each after what it holds: nobody noted which
        of them ran, and how often.  Blocks nest only as deep as a program does.
        """
        for node in self.ops.get(region, ()):
            if node.side == "backward" and node.region not in self.holders:
                yield from self.given()
            yield from self.nested(node, iteration)
            yield self.step(node, iteration, values)

    def step(self, node: Node, iteration: int | None, values: Values) -> Event:
        """One operator runs and writes its values; a sentence for the text log and the screen reader."""
        outs = [n for n in self.links.after[node.id] if not is_op(n)]
        self.now |= values
        texts = shown(outs)
        if values:
            texts = dict.fromkeys(texts, NOT_YET) | scoped(outs, values)
        takes = dict.fromkeys(n.name for n in self.links.before[node.id] if n.name)
        gives = [f"{n.name} = {texts[n.id]}" if texts.get(n.id) else n.name for n in outs if n.name]
        if not outs:
            gives = [text for text, _ in live_lines(node)]
        both = [("takes", takes), ("gives", gives)]
        told = " and ".join(f"{does} {', '.join(names)}" for does, names in both if names)
        again = "" if iteration is None else f" (step {iteration})"
        kind = "forward" if node.side == "forward" else _VERBS[node.kind]
        what = "Add up" if kind == "accumulate" else kind.capitalize()
        said = f"{what} {number_of(node)}{node.name}{' ' * bool(told)}{told}{again}"
        if "called" in node.data:
            said = f"Add up at {node.name}: {node.lines[0]}"
        # its numbers, and what comes out: g·(1 − e²) = 1·(1 − 0.9987) = …
        if "slots" in node.data:
            rules = [slot.worked(self.now) for slot in node.data["slots"]]
        else:
            rules = [line for line in node.lines if "=" in line]
        nodes = (node.id, *(n.id for n in outs))
        return Event(kind, nodes, said, "  ".join(rules), texts, iteration)

    def nested(self, node: Node, iteration: int | None) -> Iterator[Event]:
        """What an operator with blocks does: enter, run, leave; turn by turn, a test before each.

        Backward goes from the last turn to the first.  What a block overwrites has, when it is
        entered, the value that the turn before left.
        """
        held = [region for region, holder in self.holders.items() if holder == node.id]
        tests = [r for r in held if self.graph.regions[r].label.endswith(": condition")]
        step = 1 if node.side == "forward" else -1
        # nothing is known before the first turn and after the last
        frames = [*self.iterations(node), {}]
        last = len(frames) - 1
        blocks = sorted(held, key=lambda region: region not in tests)  # tests first
        turns = [(t, region) for t in range(last)[::step] for region in blocks]
        turns += [(last, test) for test in tests]  # a test ends a loop
        for t, region in turns:
            inside = self.ops.get(region, [])
            at = t if self.scopes else iteration
            written = {out.name for op in inside for out in self.links.after[op.id]}
            now = {name: value for name, value in frames[t].items() if name not in written}
            yield self.passed("enter", region, at, inside, {**frames[t - step], **now})
            yield from self.run(region, at, frames[t])
            yield self.passed("leave", region, at)

    def passed(
        self,
        kind: str,
        region: str,
        turn: int | None,
        inside: Sequence[Node] = (),
        values: Values = NOTHING,
    ) -> Event:
        """A block is entered, with what the operators inside find there, or left."""
        said = f"{kind.capitalize()} {self.graph.regions[region].label}"
        if turn is not None:
            said += f", step {turn}"
        read = {n.id: n for op in inside for n in self.links.before[op.id]}
        sources = [n for n in read.values() if not self.links.before[n.id]]
        nodes = (self.holders[region], *(n.id for n in sources))
        return Event(kind, nodes, said, "", scoped(sources, values), turn)

    def iterations(self, node: Node) -> Sequence[Values]:
        """The values of each iteration of a loop, where known; else one unknown iteration."""
        near = [*self.links.before[node.id], *self.links.after[node.id]]
        known = {n.name for n in near} | set(node.reads)
        for name, frames in self.scopes.items():
            if name in known or name.partition("@")[0] in known:
                return frames
        return [{}]


def shown(nodes: Iterable[Node]) -> dict[str, str]:
    """The values that nodes show at the end, of those that show one."""
    return {n.id: text for n in nodes for text, _ in live_lines(n)[:1]}


def scoped(nodes: Iterable[Node], values: Values) -> dict[str, str]:
    """The values that nodes have, of those in ``values``."""
    known = [n for n in nodes if n.kind != "scopes" and n.name in values]
    return {n.id: format_value(values[n.name]) for n in known}
