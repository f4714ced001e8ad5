"""`play`: step through a graph, forward and backward.

A `Player` shows itself as a page in a frame, which needs no kernel, as its drawing and its text where
nothing runs, and saves itself as one HTML file that needs nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ...atomic import replacing
from ..adapters.names import Names, caller_variables
from ..adapters.sources import held_by, parted, record_of, values_in
from ..graph.format import LONGEST_LINE, NOT_YET, WIDEST, shorten, visible, wrapped
from ..graph.graph import is_op, live_lines
from ..picture import Picture, view_of_any
from ..render.html import frame, page
from .events import Event, run_events


def play(
    x: Any,
    *,
    prediction: bool = False,
    names: Mapping[str, Any] | None = None,
) -> Player:
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
    record, values = record_of(x), values_in(scope)
    steps = step_scopes(values)
    if record is None and scope is not None:  # of what a loop did, the last iteration is drawn
        last = {name: value for frames in steps.values() for name, value in frames[-1].items()}
        x = thing, {**last, **values}
    view = view_of_any(x, "auto", True, Names(names, caller_variables()), None)
    picture = Picture(view.graph, view=view)
    events = run_events(picture.graph, steps, record, view.whole)
    return Player(picture, events, prediction=prediction)


def step_scopes(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The step scopes of loops among the values of a program: one mapping per iteration."""
    found: dict[str, list[Any]] = {}
    for name, held in values.items():
        steps = [held_by(step) for step in held] if isinstance(held, list | tuple) else []
        if steps and None not in steps:
            found[name] = steps
    return found


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
        self, picture: Picture, events: Sequence[Event], *, prediction: bool = False
    ) -> None:
        self.picture, self.graph, self.prediction = picture, picture.graph, prediction
        self.events = [  # here the words of events become text of pictures and pages
            replace(e, text=visible(e.text), formula=visible(e.formula)) for e in events
        ]
        self.first: dict[str, int] = {}
        for i, event in enumerate(self.events):
            for node in event.nodes:
                self.first.setdefault(node, i)
        for never in self.graph.nodes.values():
            if never.state == "pending":  # it did not run
                self.first.setdefault(never.id, len(self.events))

    @functools.cached_property
    def live(self) -> dict[str, list[tuple[str, str]]]:
        """Node -> its texts that a frame may take back, each with what stands there before."""
        lines = {n: live_lines(self.graph.nodes[n]) for n in self.first}
        return {
            n: [pair for text, before in found for pair in _beside(text, before)]
            for n, found in lines.items()
            if found
        }

    def _said(self, event: Event, node: str) -> tuple[str, ...]:
        """The live texts of a node from an event on."""
        final = tuple(text for text, _ in self.live[node])
        value = event.values.get(node)
        if value is None:
            return final
        first = _beside(live_lines(self.graph.nodes[node])[0][0], value)
        return (*(text for _, text in first), *final[len(first) :])

    @property
    def opening(self) -> str:
        """What frame 0 says."""
        return (
            f"Nothing has run yet. {len(self.events)} steps follow."
            if self.events
            else "Nothing to play."
        )

    def text(self) -> str:
        """The log: one line per event."""
        lines = [
            f"{i}. {e.text}{f'  [{e.formula}]' if e.formula else ''}"
            for i, e in enumerate(self.events, 1)
        ]
        return "\n".join([visible(self.graph.title) or "Steps", *(lines or [self.opening])])

    @functools.cached_property
    def script(self) -> dict[str, Any]:
        """What happens as plain data: what the browser replays."""
        steps = [
            {
                "kind": e.kind,
                "nodes": list(e.nodes),
                "text": e.text,
                "formula": e.formula,
                "iteration": e.iteration,
                "shows": {n: list(self._said(e, n)) for n in e.nodes if n in self.live},
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

    def _question(self, event: Event) -> dict[str, str] | None:
        """What a learner can predict about an event: a value, else which operator it is."""
        for node, text in event.values.items():
            if not is_op(self.graph.nodes[node]) and text != NOT_YET:
                name = visible(self.graph.nodes[node].name)
                return _asked(node, f"{name} = ?", text.removesuffix(" (seed)"))
        op = self.graph.nodes[event.nodes[0]] if event.nodes else None
        if op is None or event.kind in ("enter", "leave"):
            return None
        for line, _ in live_lines(op) if op.side == "backward" else ():
            rule, sign, result = line.rpartition(" = ")
            if sign and "called" in op.data:
                return _asked(op.id, f"What is {visible(rule)} now?", result)
            if sign:
                return _asked(op.id, f"{visible(op.name)}: {visible(rule)} = ?", result)
        # one for the operator itself shows no box before it is answered
        return _asked(op.id, "Which operator comes next?", op.name) | {"operator": op.name}

    def save(self, path: str | Path) -> Path:
        """Write one HTML file that plays on its own; `ValueError` for another ending,
        `FileNotFoundError` for a folder that is not there.
        """
        target = Path(path)
        if target.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"cannot save a player as {target.name!r}: the ending must be .html")
        made = self._page().encode()
        with replacing(target) as file:
            file.write(made)
        return target

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": self.text()}
        if (svg := self.picture.svg) is not None:
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
    return {"node": node, "what": what, "answer": answer}


def _beside(text: str, other: str) -> list[tuple[str, str]]:
    """The rows of a text as it is drawn, each with what stands in it for another text."""
    drawn = wrapped(shorten(text, LONGEST_LINE))
    width = max(map(len, drawn)) if len(drawn) > 1 else WIDEST
    rows = wrapped(shorten(other, LONGEST_LINE), width)
    rows = [*rows[: len(drawn) - 1], " ".join(rows[len(drawn) - 1 :])]
    return list(zip_longest(drawn, rows, fillvalue=""))
