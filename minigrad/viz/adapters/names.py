"""What things are called: a name given to `draw`, the object's own, or the variable of the caller
that holds it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

_HERE = str(Path(__file__).parent.parent)
_MOST = 100_000  # variables looked at: a caller with more is not a notebook


class Names:
    """Finds and remembers one name per object; an object without one is ``%1``, ``%2``, … in the
    order of asking.
    """

    def __init__(
        self, given: Mapping[str, Any] | None = None, found: Mapping[str, Any] | None = None
    ) -> None:
        self._by_id = _by_identity(found or {}) | _by_identity(given or {})
        self._given = {id(v) for v in (given or {}).values()}
        self._unnamed: dict[int, str] = {}
        self._kept: list[Any] = []  # an id is only good while its object lives
        self.things = [*(given or {}).values(), *(found or {}).values()]

    def also(self, found: Mapping[str, Any]) -> None:
        """Names for what has none yet."""
        self._by_id = _by_identity(found) | self._by_id

    def __call__(self, thing: Any) -> str:
        """The name of one object."""
        return self.known(thing) or self._number(thing)

    def known(self, thing: Any) -> str:
        """The name of one object, or an empty text: given, its own, the caller's, in this order."""
        mine = self._by_id.get(id(thing), "")
        if id(thing) in self._given:
            return mine
        own = getattr(thing, "name", None)
        return own if isinstance(own, str) and own else mine

    def _number(self, thing: Any) -> str:
        if id(thing) not in self._unnamed:
            self._unnamed[id(thing)] = f"%{len(self._unnamed) + 1}"
            self._kept.append(thing)
        return self._unnamed[id(thing)]


def _by_identity(variables: Mapping[str, Any]) -> dict[int, str]:
    found: dict[int, str] = {}
    for name, thing in variables.items():
        found.setdefault(id(thing), name)
        held = getattr(type(thing), "_data", None) and thing._data  # what a node saves of a Tensor
        if held is not None and not isinstance(held, (int, float)):
            found.setdefault(id(held), name)
    return found


def caller_variables() -> dict[str, Any]:
    """The variables of the nearest caller outside this folder: its locals, then its globals.

    Names that start with an underscore are left out: notebooks keep old results under them.
    """
    frame = _outside(sys._getframe())
    if frame is None:
        return {}
    return {
        **_public(frame.f_locals.items()),
        **{k: v for k, v in _public(frame.f_globals.items()).items() if k not in frame.f_locals},
    }


def _public(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    shown = [(k, v) for k, v in list(items)[:_MOST] if not k.startswith("_")]
    return dict(shown)


def _outside(frame: FrameType | None) -> FrameType | None:
    while frame is not None and (
        frame.f_code.co_filename.startswith(_HERE) or "__minigrad_ops__" in frame.f_globals
    ):
        frame = frame.f_back
    return frame
