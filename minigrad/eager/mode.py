"""Grad mode: whether ops leave a backward graph behind, per thread and per asyncio task.

The mode is one immutable record in a context variable, so an op pays a single look-up for all switches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from functools import wraps
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """The switches an op looks at."""

    grad: bool = True
    anomaly: bool = False
    saved_hooks: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None = None


GRAD = Mode()  #: the usual mode; the fast path of every op is ``mode is GRAD``
NO_GRAD = Mode(grad=False)
MODE: ContextVar[Mode] = ContextVar("minigrad_mode", default=GRAD)


class _Switch:
    """A context manager and decorator that changes the mode and restores it, exceptions included."""

    changes: Mapping[str, Any] = MappingProxyType({})

    def __init__(self) -> None:
        self._tokens: list[Token[Mode]] = []

    def __enter__(self) -> Any:
        mode = replace(MODE.get(), **self.changes)
        plain = not mode.anomaly and mode.saved_hooks is None
        self._tokens.append(MODE.set((GRAD if mode.grad else NO_GRAD) if plain else mode))
        return self

    def __exit__(self, *exception: object) -> None:
        MODE.reset(self._tokens.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            switch = object.__new__(
                type(self)
            )  # its own tokens: calls may overlap in threads and tasks
            switch.changes, switch._tokens = self.changes, []
            with switch:
                return function(*args, **kwargs)

        return switched


class no_grad(_Switch):
    """Ops inside leave no graph: ``with mg.no_grad(): ...`` or ``@mg.no_grad()``.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> with mg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    changes = MappingProxyType({"grad": False})


class enable_grad(_Switch):
    """Ops inside leave a graph, also within `no_grad`."""

    changes = MappingProxyType({"grad": True})


class set_grad_enabled(_Switch):
    """Switch grad mode by a bool: ``with mg.set_grad_enabled(training): ...``."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.changes = {"grad": bool(mode)}


class detect_anomaly(_Switch):
    """Name the first op that makes a NaN or an infinity, forward or backward: its inputs and the user's line.

    Errors: `AnomalyError`.  Only ops that take part in a gradient are looked at.

    >>> import minigrad as mg, numpy as np
    >>> x = mg.tensor([1.0, -1.0], requires_grad=True)
    >>> with mg.detect_anomaly(), np.errstate(invalid="ignore"):
    ...     mg.log(x)                                   # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    minigrad.errors.AnomalyError: log made nan
    """

    changes = MappingProxyType({"anomaly": True})


class saved_tensors_hooks(_Switch):
    """Pass every value that is saved for backward through ``pack``, and through ``unpack`` when it is read.

    ``pack(array)`` returns anything; ``unpack(packed)`` must give back an array of the same shape and dtype.
    """

    def __init__(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        super().__init__()
        self.changes = {"saved_hooks": (pack, unpack)}


def is_grad_enabled() -> bool:
    """Whether ops leave a graph here and now."""
    return MODE.get().grad
