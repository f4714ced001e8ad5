"""Grad mode: whether ops leave a backward graph behind, per thread and per asyncio task.

The mode is one immutable record in a context variable, so an op pays a single look-up for all
switches.
"""

from contextlib import ContextDecorator
from contextvars import ContextVar
from copy import copy
from functools import wraps
from inspect import iscoroutinefunction, isgeneratorfunction
from typing import Any, NamedTuple

from ..errors import DTypeError, describe, refusal
from ..primitives.arguments import ByName, Function
from ..primitives.dispatch import EAGER


class Mode(NamedTuple):
    """The switches an op looks at."""

    grad: bool = True
    anomaly: bool = False
    saved_hooks: tuple[Function, Function] | None = None
    recorder: Function | None = None
    draw: Function = lambda make: make()  # who gives the random numbers that ``make()`` draws


GRAD = Mode()  #: the usual mode; the fast path of every op is ``mode is GRAD``
MODE: ContextVar[Mode] = ContextVar("minigrad_mode", default=GRAD)


class _Switch(ContextDecorator):
    """A context manager and decorator that changes the mode and restores it, exceptions included.

    As a decorator it works with and without parentheses, on functions, generators and coroutines; each call
    has a copy of the switch, for calls may overlap in threads and tasks.
    """

    changes: ByName
    #: what `__exit__` resets, and the same of the blocks around it
    _entered: Any = None

    def __init_subclass__(cls, **changes) -> None:
        if changes:
            cls.changes = changes

    def __new__(cls, *given, **keywords) -> Any:
        made = object.__new__(cls)
        if cls.__init__ is _Switch.__init__ and given and callable(given[0]):
            return made(given[0])  # ``@mg.no_grad`` without parentheses
        return made

    def __init__(self) -> None:
        """It takes no arguments."""

    def __enter__(self) -> Any:
        mode = MODE.get()._replace(**self.changes)
        self._entered = MODE.set(GRAD if mode == GRAD else mode), self._entered
        return self

    def __exit__(self, *exception) -> None:
        token, self._entered = self._entered
        MODE.reset(token)

    def __call__(self, function: Any) -> Any:
        if iscoroutinefunction(function):

            async def switched(*args, **kwargs) -> Any:
                with copy(self):
                    return await function(*args, **kwargs)
        elif isgeneratorfunction(function):

            def switched(*args, **kwargs) -> Any:  # type: ignore[misc]
                return _steps(function(*args, **kwargs), self)
        else:
            return super().__call__(function)
        return wraps(function)(switched)

    def _recreate_cm(self) -> "_Switch":
        return copy(self)


def _steps(generator, switch: _Switch) -> Any:
    """A generator whose steps run in a mode; between them its caller's mode is untouched."""
    step, value = generator.send, None
    while True:
        try:
            with copy(switch):
                made = step(value)
        except StopIteration as end:
            return end.value
        try:
            step, value = generator.send, (yield made)
        except GeneratorExit:
            generator.close()
            raise
        except BaseException as error:
            step, value = generator.throw, error


class no_grad(_Switch, grad=False):
    """Ops inside leave no graph: ``with mg.no_grad(): ...`` or ``@mg.no_grad()``.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> with mg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """


class enable_grad(_Switch, grad=True):
    """Ops inside leave a graph, also within `no_grad`.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> with mg.no_grad(), mg.enable_grad():
    ...     (x * x).requires_grad
    True
    """


class set_grad_enabled(_Switch):
    """Switch grad mode by a bool, at once: a plain call, or ``with mg.set_grad_enabled(training): ...``.

    A with block or a decorated function restores the mode afterwards; a plain call lasts.

    >>> import minigrad as mg
    >>> with mg.set_grad_enabled(False):
    ...     mg.is_grad_enabled()
    False
    """

    _ahead = False  # whether the mode was set by the call and not yet by a with block

    def __init__(self, mode: bool) -> None:
        self.changes = {"grad": bool(mode)}
        super().__enter__()
        self._ahead = True

    def __enter__(self) -> Any:
        if self._ahead:
            self._ahead = False
            return self
        return super().__enter__()

    def __call__(self, function: Any) -> Any:
        if self._ahead:
            self._ahead = False
            self.__exit__()
        return super().__call__(function)


class detect_anomaly(_Switch, anomaly=True):
    """Name the first op that makes a NaN or an infinity, forward or backward: its inputs and the user's line.

    Errors: `AnomalyError`.  Only ops that take part in a gradient are looked at.

    >>> import minigrad as mg, numpy as np
    >>> x = mg.tensor([1.0, -1.0], requires_grad=True)
    >>> with mg.detect_anomaly(), np.errstate(invalid="ignore"):
    ...     mg.log(x)                                   # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    minigrad.errors.AnomalyError: log made nan
    """


class saved_tensors_hooks(_Switch):
    """Pass every value that is saved for backward through ``pack``, and through ``unpack`` when it is read.

    ``pack(array)`` returns anything; ``unpack(packed)`` must give back an array of the same shape and dtype.

    >>> import minigrad as mg
    >>> kept = []
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> with mg.saved_tensors_hooks(lambda a: kept.append(a) or len(kept) - 1, kept.__getitem__):
    ...     y = mg.square(x)
    >>> y.backward()
    >>> len(kept), x.grad
    (1, tensor(4.))
    """

    def __init__(self, pack: Function, unpack: Function) -> None:
        self.changes = {"saved_hooks": (pack, unpack)}
        for hook in (pack, unpack):
            if not callable(hook):
                what = f"saved_tensors_hooks takes two functions, not {describe(hook)}"
                raise refusal(what, "pack and unpack: lambda a: a", DTypeError)


class recorded(_Switch):
    """Tell ``recorder(primitive, args, attrs, outputs)`` of every op that leaves a node.

    >>> import minigrad as mg
    >>> x, seen = mg.tensor(2.0, requires_grad=True), []
    >>> with recorded(lambda primitive, *call: seen.append(primitive.type)):
    ...     y = mg.sum(x * x)
    >>> seen
    ['mul', 'reduce_sum']
    """

    def __init__(self, recorder: Function) -> None:
        self.changes = {"recorder": recorder}


class drawing(_Switch):
    """Let ``draw(make)`` give the random numbers that an op would draw by ``make()``.

    >>> import minigrad as mg
    >>> with drawing(lambda make: 2 * make()):
    ...     mg.uniform([2], 1.0, 1.0, generator=0)
    tensor([2., 2.])
    """

    def __init__(self, draw: Function) -> None:
        self.changes = {"draw": draw}


EAGER["draw"] = lambda make: MODE.get().draw(make)


def is_grad_enabled() -> bool:
    """Whether ops leave a graph here and now.

    >>> import minigrad as mg
    >>> mg.is_grad_enabled(), mg.no_grad(mg.is_grad_enabled)()
    (True, False)
    """
    return MODE.get().grad
