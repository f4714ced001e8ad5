"""Several attributes change at once: all of them, or none.

A signal such as Ctrl-C is seen between two instructions of Python, never within a call of a function
written in C.  So everything is prepared first, and one such call sets it.
"""

from __future__ import annotations

from collections import deque
from itertools import starmap
from typing import Any


def set_all(changes: list[tuple[Any, str, Any]]) -> None:
    """Set attributes, given as (object, name, value); an interrupt finds all of them old or all new.

    >>> from types import SimpleNamespace
    >>> one, other = SimpleNamespace(), SimpleNamespace()
    >>> set_all([(one, "x", 1), (other, "x", 2)])
    >>> one.x, other.x
    (1, 2)
    """
    # old values live until all are set: what happens when they go may be Python code
    old = [getattr(holder, name, None) for holder, name, _ in changes]
    deque(starmap(setattr, changes), maxlen=0)
    del old
