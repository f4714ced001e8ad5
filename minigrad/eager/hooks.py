"""Hooks: functions that see or change the gradients that pass a node, and the handle that removes one."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

from ..errors import DTypeError, describe, refusal

_next_key = count(1).__next__


class Hooks:
    """The rarely used part of a node: who wants to see or change the gradients that pass."""

    __slots__ = ("accumulated", "post", "pre", "retained", "tensor")

    def __init__(self) -> None:
        # output index → hooks on that output's gradient; the tensor that wants `.grad`
        self.tensor: dict[int, dict[int, Callable[..., Any]]] = {}
        self.retained: dict[int, weakref.ref[Any]] = {}
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.accumulated: dict[int, Callable[..., Any]] = {}  # of a leaf, behind its new `.grad`


class HookHandle:
    """Removes a hook: ``handle.remove()``, or use it as a context manager."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        if not callable(hook):
            what = f"a hook is a function, not {describe(hook)}"
            raise refusal(what, "the function itself, without parentheses", DTypeError)
        self._hooks, self._key = hooks, _next_key()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Remove the hook; doing so twice is fine."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
