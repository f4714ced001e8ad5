"""How functions made of primitives refuse a call: with the user's line and a repair."""

from __future__ import annotations

from ..errors import MinigradError, ShapeError, user_line


def refusal(what: str, repair: str, error: type[MinigradError] = ShapeError) -> MinigradError:
    """An error to raise."""
    return error(f"{what}\n  at {user_line()}\n  repair: {repair}")
