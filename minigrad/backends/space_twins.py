"""Twins of kernels for a space: they call its NumPy, and primitives by its own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.retarget import Twins


class SpaceTwins(Twins):
    """The twins of one space: ``numpy`` stands for NumPy, ``ufunc(f)`` for a universal function of it."""

    def __init__(self, space: Any, numpy: Any, ufunc: Callable[[np.ufunc], Any]) -> None:
        self.space, self.numpy, self.ufunc = space, numpy, ufunc
        self._spaces: dict[str, dict[str, Any]] = {}

    def _space(self, function: Any) -> dict[str, Any]:
        """Also what a module has bound of NumPy: ``_add_up = np.add.reduce``."""
        space = super()._space(function)
        for name, value in space.items():
            owner = getattr(value, "__self__", None)
            if isinstance(owner, np.ufunc):
                space[name] = getattr(self.ufunc(owner), value.__name__)
        return space

    def _applied(self, primitive: Any) -> Callable[..., Any]:
        def apply(*args: Any, **attrs: Any) -> Any:
            inputs, kept = primitive.bind(args, attrs)
            return getattr(self.space, primitive.type)(*inputs, **kept)

        return apply
