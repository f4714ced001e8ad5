"""What an error says by itself: it also quotes the user's line, and in a test that line may hold the very words."""

from __future__ import annotations

import re


def said(error: BaseException) -> str:
    """The text of an error, with the places of the user's lines, without what stands in them.

    >>> said(ValueError("no 'w'\\n  at cell.py:3: f('w')\\n  repair: g"))
    "no 'w'\\n  at cell.py:3\\n  repair: g"
    """
    return re.sub(r"(\w+\.py:\d+): .*", r"\1", str(error))
