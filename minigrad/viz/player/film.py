"""One drawing and a list of events: frame k shows the drawing after the first k events.

The drawing is made once, with every value in it; a frame only changes classes (``pending``,
``active``, ``done``) and takes back the texts that are not known yet.  `Film.script` says the same
as plain data, which is all that the player in the browser gets.
"""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from ..graph.format import LONGEST_LINE, NOT_YET, shorten, visible, wrapped
from ..graph.graph import Graph, is_op
from ..graph.inside import live_lines
from ..graph.style import FONT, GREY, PAPER, TEXT
from ..picture import Picture
from .events import Event

_SVG = "{http://www.w3.org/2000/svg}"
_STATES = ("pending", "active", "done")


@dataclass(frozen=True)
class Frame:
    """What one frame shows: the states of the nodes that events touch, the texts known so far."""

    number: int
    text: str
    formula: str
    iteration: int | None
    states: Mapping[str, str]
    texts: Mapping[str, tuple[str, ...]]


class Film:
    """The frames of one drawing.

    >>> g = Graph()
    >>> x, f = g.node("leaf", "x", lines=("3",)), g.node("op", "Square")
    >>> _ = g.edge(x, f), g.edge(f, g.node("output", "y", lines=("9",)))
    >>> film = Film(g, [Event("forward", ("n1", "n2"), "Square gives 9", values={"n2": "9"})])
    >>> film.frame(0).states, film.frame(0).texts, film.frame(1).texts
    ({'n1': 'pending', 'n2': 'pending'}, {'n2': ('—',)}, {'n2': ('9',)})
    """

    def __init__(
        self, graph: Graph, events: Sequence[Event], picture: Picture | None = None
    ) -> None:
        self.graph = graph
        self.picture = picture or Picture(graph)  # the drawing at the end of the film
        self.events = [  # here the words of events become text of pictures and pages
            replace(e, text=visible(e.text), formula=visible(e.formula)) for e in events
        ]
        self.first: dict[str, int] = {}
        for i, event in enumerate(self.events):
            for node in event.nodes:
                self.first.setdefault(node, i)
        for never in graph.nodes.values():
            if never.state == "pending":  # it did not run
                self.first.setdefault(never.id, len(self.events))

    def __len__(self) -> int:
        """The number of frames: one more than events."""
        return len(self.events) + 1

    @functools.cached_property
    def live(self) -> dict[str, list[tuple[str, str]]]:
        """Node -> its texts that a frame may take back, each with what stands there before."""
        lines = {n: live_lines(self.graph.nodes[n]) for n in self.first}
        return {
            n: [pair for text, before in found for pair in _beside(text, before)]
            for n, found in lines.items()
            if found
        }

    def frame(self, number: int) -> Frame:
        """The replay of the first ``number`` events."""
        number = max(0, min(number, len(self.events)))
        event = self.events[number - 1] if number else None
        states = {n: "done" if at < number else "pending" for n, at in self.first.items()}
        states |= dict.fromkeys(event.nodes if event else (), "active")
        return Frame(
            number,
            event.text if event else self.opening,
            event.formula if event else "",
            event.iteration if event else None,
            states,
            self._texts(number),
        )

    def _texts(self, number: int) -> dict[str, tuple[str, ...]]:
        texts = {n: tuple(before for _, before in lines) for n, lines in self.live.items()}
        for event in self.events[:number]:
            for node in event.nodes:
                if node in texts:
                    texts[node] = self._said(event, node)
        return texts

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

    # -- renderings

    def svg(self, number: int) -> str | None:
        """One frame as a static SVG, or None without a layout engine."""
        if self.picture.svg is None:
            return None
        frame = self.frame(number)
        root = ET.fromstring(self.picture.svg)
        for part in root.iter(f"{_SVG}g"):
            node = part.get("id", "").rpartition("-")[2]
            ends = [frame.states.get(c) for c in part.get("class", "").split()]
            if node in frame.states:
                self._set(part, node, frame)
            elif "pending" in ends and "edge" in part.get("class", ""):
                _fade(part)
        ET.register_namespace("", _SVG[1:-1])
        return ET.tostring(root, encoding="unicode")

    def _set(self, part: ET.Element, node: str, frame: Frame) -> None:
        kept = [c for c in part.get("class", "").split() if c not in _STATES]
        part.set("class", " ".join([*kept, frame.states[node]]))
        known = {
            text: now
            for (text, _), now in zip(
                self.live.get(node, ()), frame.texts.get(node, ()), strict=True
            )
        }
        for text in part.iter(f"{_SVG}text"):
            if text.text in known:
                _write(text, known[text.text])

    def text(self, number: int | None = None) -> str:
        """The log up to a frame: one line per event."""
        shown = self.events if number is None else self.events[:number]
        lines = [
            f"{i}. {e.text}{f'  [{e.formula}]' if e.formula else ''}"
            for i, e in enumerate(shown, 1)
        ]
        return "\n".join([visible(self.graph.title) or "Steps", *(lines or [self.opening])])

    def static_frames(self) -> list[tuple[str, str | None]]:
        """First, middle and last frame: (what it says, its SVG)."""
        return [
            (f"Step {k} of {len(self.events)}. {self.frame(k).text}", self.svg(k))
            for k in dict.fromkeys((0, (len(self.events) + 1) // 2, len(self.events)))
        ]

    @functools.cached_property
    def script(self) -> dict[str, Any]:
        """The film as plain data: what the browser replays."""
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
                return _asked(node, name, text.removesuffix(" (seed)"))
        op = self.graph.nodes[event.nodes[0]] if event.nodes else None
        if op is None or event.kind in ("enter", "leave"):
            return None
        for line, _ in live_lines(op) if op.side == "backward" else ():
            rule, sign, result = line.rpartition(" = ")
            if sign:
                return _asked(op.id, f"{visible(op.name)}: {visible(rule)}", result)
        return _asked(op.id, "", op.name)


def _asked(node: str, what: str, answer: str) -> dict[str, str]:
    """A question; one for the ``operator`` itself shows no box before it is answered."""
    if what:
        return {"node": node, "what": f"{what} = ?", "answer": answer}
    return {
        "node": node,
        "what": "Which operator comes next?",
        "answer": answer,
        "operator": answer,
    }


def _beside(text: str, other: str) -> list[tuple[str, str]]:
    """The rows of a text as it is drawn, each with what stands in it for another text."""
    drawn, rows = (wrapped(shorten(t, LONGEST_LINE)) for t in (text, other))
    rows = [*rows[: len(drawn) - 1], " ".join(rows[len(drawn) - 1 :])]
    return list(zip_longest(drawn, rows, fillvalue=""))


def _fade(line: ET.Element) -> None:
    """A line to or from something that is not there yet is grey."""
    for part in line:
        for ink in ("stroke", "fill"):
            if part.get(ink, "none").lower() not in ("none", "white", PAPER.lower(), TEXT.lower()):
                part.set(ink, GREY)


def _write(text: ET.Element, words: str) -> None:
    """Put other words in the place of a text, in its middle; the width of a letter is a guess."""
    if text.get("text-anchor") == "start" and text.text:
        letter = 0.6 * float(text.get("font-size") or 10)
        if len(words) < len(text.text):
            left = float(text.get("x") or 0) + letter * (len(text.text) - len(words)) / 2
            text.set("x", f"{left:.2f}")
        elif words == NOT_YET:  # a dash is wider than the digit it stands for
            text.set("textLength", f"{letter:.2f}")
            text.set("lengthAdjust", "spacingAndGlyphs")
    text.text = words


# ---- First, middle and last frame of a film in one static SVG, for viewers that run nothing ----


_SPACE = "http://www.w3.org/2000/svg"
_CAPTION, _GAP = 22.0, 10.0  # height of a caption, space between two frames
MOST = 150  # nodes: of a larger graph only the first frame is drawn


def sheet(film: Film) -> str | None:
    """The frames one below the other, each under its words; None without a layout engine."""
    if len(film.graph.nodes) > MOST:
        return film.svg(0)
    frames = film.static_frames()
    roots = [ET.fromstring(svg) for _, svg in frames if svg is not None]
    if len(roots) < len(frames):
        return None
    left, top, width, height = map(float, roots[0].get("viewBox", "0 0 100 100").split())
    step = height + _CAPTION + _GAP
    page = _page(film, width, step * len(frames) - _GAP)
    for k, (root, (words, _)) in enumerate(zip(roots, frames, strict=True)):
        page.append(_caption(words, k * step, width))
        page.append(_frame(root, k, -left, k * step + _CAPTION - top))
    ET.register_namespace("", _SPACE)
    return ET.tostring(page, encoding="unicode")


def _page(film: Film, width: float, height: float) -> ET.Element:
    size = {
        "width": f"{width:g}pt",
        "height": f"{height:g}pt",
        "viewBox": f"0 0 {width:g} {height:g}",
    }
    page = ET.Element(f"{{{_SPACE}}}svg", {**size, "role": "img", "class": "mg-sheet"})
    for tag, words in (("title", film.graph.title or "Steps"), ("desc", film.text())):
        ET.SubElement(page, f"{{{_SPACE}}}{tag}").text = "\n".join(map(visible, words.splitlines()))
    return page


def _caption(words: str, y: float, width: float) -> ET.Element:
    """The words of a frame on a strip of paper: no text may stand on the page."""
    strip = ET.Element(f"{{{_SPACE}}}g", {"transform": f"translate(0,{y:g})"})
    box = {
        "x": "0.5",
        "y": "0.5",
        "width": f"{width - 1:g}",
        "height": f"{_CAPTION - 3:g}",
        "rx": "4",
    }
    ET.SubElement(strip, f"{{{_SPACE}}}rect", {**box, "fill": PAPER, "stroke": GREY})
    place = {"x": "7", "y": "14", "font-family": FONT, "font-size": "11", "fill": TEXT}
    said = ET.SubElement(strip, f"{{{_SPACE}}}text", place)
    said.text = shorten(words, max(12, int(width / 7)))
    return strip


def _frame(root: ET.Element, k: int, x: float, y: float) -> ET.Element:
    """A drawing as a part of the page, with ids of its own."""
    old = root.get("id", "mg")
    new = f"{old}f{k}"
    for part in root.iter():
        if part.get("id"):
            part.set("id", str(part.get("id")).replace(old, new, 1))
        if part.tag == f"{{{_SPACE}}}style" and part.text:
            part.text = part.text.replace(f"#{old}", f"#{new}")
    frame = ET.Element(
        f"{{{_SPACE}}}g", {"id": new, "class": "mg-picture", "transform": f"translate({x:g},{y:g})"}
    )
    frame.extend(list(root))
    return frame
