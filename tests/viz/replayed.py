"""A film as the browser plays it: its script, replayed."""

from __future__ import annotations

from typing import NamedTuple

from minigrad.viz.player import Player


class Frame(NamedTuple):
    """The states of the nodes that events touch, and the texts known so far."""

    states: dict[str, str]
    texts: dict[str, list[str]]


def frame(film: Player, number: int) -> Frame:
    """What the first ``number`` steps leave on the page."""
    script = film.script
    states = {n: "done" if at < number else "pending" for n, at in script["first"].items()}
    texts = {n: [before for _, before in lines] for n, lines in script["live"].items()}
    for step in script["steps"][:number]:
        texts |= step["shows"]
    active = script["steps"][number - 1]["nodes"] if number else ()
    return Frame(states | dict.fromkeys(active, "active"), texts)
