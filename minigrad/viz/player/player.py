"""`play`: step through a graph, forward and backward.

A `Player` shows itself as a page in a frame, which needs no kernel, as its drawing and its text where
nothing runs, and saves itself as one HTML file that needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...atomic import replacing
from ..adapters.names import Names, caller_variables
from ..adapters.of_scope import all_values, is_scope, names_of, step_list
from ..adapters.sources import record_of
from ..picture import Picture, view_of_any
from ..render.html import film_page, frame
from .events import run_events
from .film import Film


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
    record = record_of(x)
    shown = x if record is not None else with_last_iteration(with_all_values(x))
    view = view_of_any(shown, "auto", True, Names(names, caller_variables()), None)
    picture = Picture(view.graph, view=view)
    events = run_events(picture.graph, step_scopes(shown), record, view.whole)
    return Player(Film(picture.graph, events, picture), prediction=prediction)


def with_all_values(x: Any) -> Any:
    """A pair (program, scope) as (program, values by name); anything else as it is."""
    pair = isinstance(x, tuple) and len(x) == 2 and not isinstance(x[1], Mapping)
    return (x[0], all_values(x[1])) if pair and is_scope(x[1]) else x


def step_scopes(x: Any) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The step scopes among the values that came with a program: one dict per iteration."""
    values = x[1] if isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], Mapping) else {}
    found = {name: [names_of(step) or {} for step in step_list(v)] for name, v in values.items()}
    return {name: steps for name, steps in found.items() if steps}


def with_last_iteration(x: Any) -> Any:
    """A program and its values, among them those of the last iteration of each loop."""
    scopes = step_scopes(x)
    if not scopes:
        return x
    last = {name: value for frames in scopes.values() for name, value in frames[-1].items()}
    return x[0], {**last, **x[1]}


class Player:
    """A film with buttons: ``film`` holds drawing and events."""

    def __init__(self, film: Film, *, prediction: bool = False) -> None:
        self.film, self.prediction = film, prediction

    @property
    def graph(self) -> Any:
        """The neutral graph that is played."""
        return self.film.graph

    @property
    def events(self) -> list[Any]:
        """What happens, in order."""
        return self.film.events

    def save(self, path: str | Path) -> Path:
        """Write one HTML file that plays on its own; `ValueError` for another ending,
        `FileNotFoundError` for a folder that is not there.
        """
        target = Path(path)
        if target.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"cannot save a player as {target.name!r}: the ending must be .html")
        page = self._page().encode()
        with replacing(target) as file:
            file.write(page)
        return target

    def __repr__(self) -> str:
        return self.film.text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": self.film.text()}
        if (svg := self.film.picture.svg) is not None:
            bundle["image/svg+xml"] = svg
            bundle["text/html"] = frame(
                self._page(), self.graph.title or "player", self.film.picture.small_png()
            )
        return bundle

    def _page(self) -> str:
        return film_page(self.film, self.prediction)
