"""Watching calls: what really ran, when the objects themselves record nothing."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..graph.format import unwrap
from .names import caller_variables


class Event(NamedTuple):
    """One call: ("forward", function, inputs, outputs) or ("backward", function, gys, gxs)."""

    kind: str
    function: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


class watch:
    """Observe ``__call__``, ``forward`` and ``backward`` of classes while a block runs.

    Subclasses are included.  The classes are as before afterwards, also when the block raises.
    ``events`` holds the calls in the order in which they ended.  Forward calls made inside a
    backward call are not forward events of the graph.

    >>> class Double:
    ...     def forward(self, x): return 2 * x
    ...     def backward(self, gy): return 2 * gy
    >>> with watch(Double) as run:
    ...     f = Double()
    ...     y, gx = f.forward(3), f.backward(1)
    >>> [(e.kind, e.inputs, e.outputs) for e in run.events]
    [('forward', (3,), (6,)), ('backward', (1,), (2,))]
    """

    def __init__(self, *classes: type) -> None:
        if not classes or not all(isinstance(c, type) for c in classes):
            raise TypeError(f"watch needs classes, such as watch(Function); got {classes!r}")
        self.classes = classes
        self.events: list[Event] = []
        #: the same with the arrays as they were: later changes in place do not reach them
        self.snapshots: list[Event] = []
        self.names: dict[str, Any] = {}  # variables of the caller that hold what was seen
        # the calls that have not ended: (kind, id of the function)
        self._open: list[tuple[str, int]] = []
        self._before: dict[tuple[type, str], Any] = {}  # the methods, as they were

    def __enter__(self) -> "watch":
        family = [*self.classes]
        for cls in family:  # grows while it is walked: what subclasses define themselves
            self._wrap(cls)
            family += type.__subclasses__(cls)
        return self

    def __exit__(self, *_: object) -> None:
        for (cls, name), method in self._before.items():
            setattr(cls, name, method)
        self._before.clear()
        seen = {id(thing) for e in self.events for thing in (e.function, *e.inputs, *e.outputs)}
        self.names = {k: v for k, v in caller_variables().items() if id(v) in seen}

    def __repr__(self) -> str:
        kinds = [event.kind for event in self.events]
        return f"<watch: {kinds.count('forward')} forward, {kinds.count('backward')} backward>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        from ..picture import draw

        return draw(self)._repr_mimebundle_()

    def _wrap(self, cls: type) -> None:
        for name in ("__call__", "forward", "backward"):
            method = cls.__dict__.get(name)
            if callable(method) and (cls, name) not in self._before:
                self._before[cls, name] = method
                kind = "backward" if name == "backward" else "forward"
                setattr(cls, name, self._observed(method, kind))

    def _observed(self, method: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def observed(function, *inputs, **keywords) -> Any:
            for cls in type(function).__mro__[:-1]:  # a subclass made while watching
                if issubclass(cls, self.classes):
                    self._wrap(cls)
            call = (kind, id(function))
            if call in self._open:  # forward inside __call__, or super().backward()
                return method(function, *inputs, **keywords)
            before = tuple(map(_copied, inputs))
            self._open.append(call)
            try:
                result = method(function, *inputs, **keywords)
            finally:
                self._open.remove(call)
            outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
            if kind == "backward" or not any(name == "backward" for name, _ in self._open):
                self.events.append(Event(kind, function, inputs, outputs))
                copies = tuple(map(_copied, outputs))
                self.snapshots.append(Event(kind, function, before, copies))
            return result

        return observed


def _copied(value) -> Any:
    inner = unwrap(value)
    return inner.copy() if isinstance(inner, np.ndarray) else inner
