"""Retargeting: the code of a kernel with something else in NumPy's place.

A kernel is ordinary Python.  A function with the same code and other globals, in which ``np`` is a recorder, jax.numpy
or a writer of ONNX nodes, does for those what the kernel does for arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np


class Retarget:
    """Kernels for one other NumPy: ``numpy`` stands for it.

    ``call(primitive, inputs, attrs)`` says what a primitive does that a kernel calls (its retargeted kernel without);
    ``ufunc`` gives the counterpart of what a module has bound, such as ``_add_up = np.add.reduce``.
    """

    def __init__(
        self,
        numpy: Any,
        call: Callable[..., Any] | None = None,
        ufunc: Callable[[np.ufunc], Any] | None = None,
    ) -> None:
        self.numpy, self.ufunc = numpy, ufunc
        self.call = call or (lambda p, inputs, attrs: self.of(p.kernel)(*inputs, **attrs))
        self._globals: dict[str, dict[str, Any]] = {}  # by module

    def of(self, function: Any) -> Any:
        """A function of ops, retargeted."""
        retargeted = FunctionType(
            function.__code__,
            self._globals_of(function),
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        retargeted.__kwdefaults__ = function.__kwdefaults__
        return retargeted

    def _globals_of(self, function: Any) -> dict[str, Any]:
        names = self._globals.get(function.__module__)
        if names is None:
            names = self._globals[function.__module__] = dict(function.__globals__)
            for name, value in list(names.items()):
                owner = getattr(value, "__self__", None)
                if value is np:
                    names[name] = self.numpy
                elif hasattr(value, "primitive"):
                    names[name] = self._primitive(value.primitive)
                elif isinstance(value, FunctionType) and value.__module__.startswith(
                    "minigrad.ops."
                ):
                    names[name] = self.of(value)
                elif self.ufunc is not None and isinstance(owner, np.ufunc):
                    names[name] = getattr(self.ufunc(owner), value.__name__)
        return names

    def _primitive(self, primitive: Any) -> Callable[..., Any]:
        def apply(*args: Any, **attrs: Any) -> Any:
            return self.call(primitive, *primitive.bind(args, attrs))

        return apply
