"""``xp`` on JAX: every kernel with jax.numpy in NumPy's place.

Most kernels are pure functions of NumPy calls; their twin has the same code and other globals.  The rest, those that
write into arrays, loop over values or check them, have a counterpart in `jax_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ProgramError
from ...primitives.registry import REGISTRY, Primitive
from ..space_twins import SpaceTwins
from .kernels import COUNTERPARTS, REFUSED
from .loops import JaxLoops

#: primitives whose arguments JAX would bring to another common dtype than NumPy does
_PRODUCTS = ("matmul", "matmul_nt", "matmul_tn", "linear", "concat", "stack", "sum")


class JaxSpace(JaxLoops):
    """Every primitive by its type, as a function of JAX arrays; ``max_steps`` bounds loops that are differentiated."""

    def __init__(self, max_steps: int | None = None) -> None:
        self.max_steps = max_steps
        self._functions: dict[str, Callable[..., Any]] = {}

    @cached_property
    def twins(self) -> SpaceTwins:
        """The twins of kernels without a counterpart."""
        return SpaceTwins(self, JaxNumPy(), lambda ufunc: getattr(jnp, ufunc.__name__))

    def __getattr__(self, type: str) -> Callable[..., Any]:
        found = self._functions.get(type)
        if found is None:
            found = self._functions[type] = self._function(REGISTRY[type])
        return found

    def _function(self, p: Primitive) -> Callable[..., Any]:
        if p.type in REFUSED:
            raise ProgramError(
                f"{p.type} has no counterpart in JAX: {REFUSED[p.type]}.\n"
                f"  repair: static.compile without backend, or static.Executor()"
            )
        kernel = COUNTERPARTS.get(p.type) or self.twins.of(p.kernel)  # type: ignore[arg-type]
        aligned = p.broadcasts or p.type in _PRODUCTS

        def call(*args: Any, **attrs: Any) -> Any:
            out = kernel(*(promoted(args) if aligned else args), **attrs)
            return jax.tree.map(strongly_typed, out)

        return call


class JaxNumPy:
    """jax.numpy; where it has no such name, NumPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name) if hasattr(jnp, name) else getattr(np, name)

    @staticmethod
    def result_type(*values: Any) -> np.dtype[Any]:
        """NumPy's own answer, which differs from JAX's."""
        return np.result_type(*(getattr(v, "dtype", v) for v in values))

    @contextmanager
    def errstate(self, **kwargs: Any) -> Iterator[None]:
        """JAX never warns."""
        yield


def promoted(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments in the dtype NumPy would compute in; masks stay masks."""
    kinds = {a.dtype for a in args if hasattr(a, "dtype") and a.dtype != bool}
    if len(kinds) < 2:
        return args
    common = np.result_type(*kinds)
    return tuple(a.astype(common) if hasattr(a, "dtype") and a.dtype != bool else a for a in args)


def strongly_typed(value: Any) -> Any:
    """An array whose dtype is its own, not that of a number in passing."""
    return jnp.asarray(value, jnp.asarray(value).dtype)
