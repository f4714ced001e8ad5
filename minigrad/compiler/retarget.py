"""Twins of kernels: the same code with another NumPy, whose constructors give `Array`s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from .schedule import Array, Unrecordable


class Twins:
    """The twins that belong to one recorder."""

    def __init__(self, recorder: Any) -> None:
        self.numpy = _RecordingNumPy(recorder)
        self._spaces: dict[str, dict[str, Any]] = {}

    def of(self, function: FunctionType) -> Any:
        """The twin of a function of ops."""
        twin = FunctionType(
            function.__code__,
            self._space(function),
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        twin.__kwdefaults__ = function.__kwdefaults__
        return twin

    def _space(self, function: FunctionType) -> dict[str, Any]:
        """The globals of a module of ops, in which ``np`` and the functions of ops are their recording twins."""
        space = self._spaces.get(function.__module__)
        if space is None:
            space = self._spaces[function.__module__] = dict(function.__globals__)
            for name, value in list(space.items()):
                if value is np:
                    space[name] = self.numpy
                elif hasattr(value, "primitive"):
                    space[name] = self._applied(value.primitive)
                elif isinstance(value, FunctionType) and value.__module__.startswith(
                    "minigrad.ops."
                ):
                    space[name] = self.of(value)
        return space

    def _applied(self, primitive: Any) -> Callable[..., Any]:
        def apply(*args: Any, **attrs: Any) -> Any:
            inputs, kept = primitive.bind(args, attrs)
            return self.of(primitive.kernel)(*inputs, **kept)

        return apply


class _StrideTricks:
    """``np.lib.stride_tricks``, as far as kernels use it."""

    @staticmethod
    def as_strided(x: Any, shape: Any = None, strides: Any = None, writeable: bool = True) -> Any:
        if not isinstance(x, Array):
            return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=writeable)
        return x.recorder.strided(x, tuple(shape), tuple(strides))


class _RecordingNumPy:
    """NumPy, with constructors that know Arrays."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self.lib = SimpleNamespace(stride_tricks=_StrideTricks)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, Array):
            return value if dtype is None else value.astype(dtype, copy=False)
        return np.asarray(value, dtype)

    def array(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, Array):
            return (
                self._recorder.copy(value) if dtype in (None, value.dtype) else value.astype(dtype)
            )
        return np.array(value, dtype)

    def zeros(self, shape: Any, dtype: Any = float) -> Any:
        return self._recorder.fill(shape, 0, dtype)

    def ones(self, shape: Any, dtype: Any = float) -> Any:
        return self._recorder.fill(shape, 1, dtype)

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        return self._recorder.fill(shape, None, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, Array):
            raise Unrecordable("a fill value from an array")
        return self._recorder.fill(
            shape, value, np.asarray(value).dtype if dtype is None else dtype
        )

    @contextmanager
    def errstate(self, **kwargs: Any) -> Iterator[None]:
        before = self._recorder.ignores
        self._recorder.ignores = (*before, *[k for k, v in kwargs.items() if v == "ignore"])
        try:
            yield
        finally:
            self._recorder.ignores = before
