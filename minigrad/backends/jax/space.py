"""``xp`` on JAX: every kernel with jax.numpy in NumPy's place.

Most kernels are pure functions of NumPy calls; they run retargeted, the same code with other globals.  The rest, those
write into arrays, loop over values or check them, have a counterpart in `kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...compiler.retarget import Retarget
from ...errors import ProgramError
from ...primitives.registry import REGISTRY, Primitive
from ..functional import Values
from .kernels import COUNTERPARTS, REFUSED

#: primitives whose arguments JAX would bring to another common dtype than NumPy does
_PRODUCTS = ("matmul", "matmul_nt", "matmul_tn", "linear", "concat", "stack", "sum")


class JaxSpace:
    """Every primitive by its type, as a function of JAX arrays; ``max_steps`` bounds loops that are differentiated."""

    def __init__(self, max_steps: int | None = None) -> None:
        self.max_steps = max_steps
        self._functions: dict[str, Callable[..., Any]] = {}
        self._retarget = Retarget(
            JaxNumPy(),
            lambda p, inputs, attrs: self._of(p)(*inputs, **attrs),
            lambda ufunc: getattr(jnp, ufunc.__name__),
        )

    def __getattr__(self, type: str) -> Callable[..., Any]:
        return self._of(REGISTRY[type])

    def _of(self, p: Primitive) -> Callable[..., Any]:
        if p.type not in self._functions:
            self._functions[p.type] = self._function(p)
        return self._functions[p.type]

    def _function(self, p: Primitive) -> Callable[..., Any]:
        if p.type in REFUSED:
            raise ProgramError(
                f"{p.type} has no counterpart in JAX: {REFUSED[p.type]}.\n"
                f"  repair: static.compile without backend, or static.Executor()"
            )
        kernel = COUNTERPARTS.get(p.type) or self._retarget.of(p.kernel)
        aligned = p.broadcasts or p.type in _PRODUCTS

        def call(*args: Any, **attrs: Any) -> Any:
            out = kernel(*(promoted(args) if aligned else args), **attrs)
            return jax.tree.map(strongly_typed, out)

        return call

    # -- control flow ------------------------------------------------------------------------

    def cond(self, pred: Any, yes: Callable[[], Values], no: Callable[[], Values]) -> Any:
        """The results of one of two functions."""
        return lax.cond(jnp.all(pred), yes, no)

    def scan(self, step: Callable[..., Any], starts: Values, sequences: Values) -> Any:
        """A step for each place of the sequences."""

        def one(carried: Values, slices: Values) -> Any:
            after, out = step(carried, slices)
            return _like(after, carried), (out, carried)

        ends, (stacked, carried) = lax.scan(one, starts, sequences)
        return ends, stacked, (carried, sequences, None)

    def while_loop(
        self,
        test: Callable[[Values], Any],
        step: Callable[[Values], Values],
        starts: Values,
        save: bool,
    ) -> Any:
        """Steps as long as the test holds."""
        if not save:
            more = lambda carried: jnp.all(test(carried))  # noqa: E731
            return lax.while_loop(more, lambda c: _like(step(c), c), starts), None
        if self.max_steps is None:
            raise ProgramError(
                "the gradient of a while loop needs the values of every step, and JAX must know how many to keep.\n"
                '  repair: static.compile(..., backend="jax", max_steps=100), or static.static_rnn'
            )
        return self._bounded(test, step, starts, self.max_steps)

    def _bounded(self, test: Any, step: Any, starts: Values, limit: int) -> Any:
        """A while loop of at most ``limit`` steps, which keeps what each of them began with."""

        def more(state: Any) -> Any:
            count, carried, _ = state
            return (count < limit) & jnp.all(test(carried))

        def one(state: Any) -> Any:
            count, carried, rows = state
            rows = tuple(r.at[count].set(c) for r, c in zip(rows, carried, strict=True))
            return count + 1, _like(step(carried), carried), rows

        room = tuple(jnp.zeros((limit, *s.shape), s.dtype) for s in starts)
        count, ends, rows = lax.while_loop(more, one, (0, starts, room))
        count = jax.pure_callback(
            _ended, jax.ShapeDtypeStruct((), np.int32), count, jnp.all(test(ends)), limit
        )
        return ends, (rows, (), count)

    def loop_grad(
        self, back: Callable[..., Any], kept: Any, seeds: Values, grads: Values, params: Values
    ) -> Any:
        """The steps backwards: gradients of the starts, of what the body reads from outside, of the sequences."""
        rows, sequences, count = kept
        totals = tuple(jnp.zeros_like(p) for p in params)

        def one(state: Any, row: Any) -> Any:
            grads, totals = state
            after, shares, slices = back(grads, *row)
            totals = tuple(t + s for t, s in zip(totals, shares, strict=True))
            return (_like(after, grads), totals), slices

        if count is None:
            (grads, totals), out = lax.scan(
                one, (grads, totals), (rows, sequences, seeds), reverse=True
            )
            return grads, totals, out

        def earlier(state: Any) -> Any:
            k, inner = state
            row = tuple(r[k - 1] for r in rows)
            return k - 1, one(inner, (row, (), ()))[0]

        _, (grads, totals) = lax.while_loop(
            lambda state: state[0] > 0, earlier, (count, (grads, totals))
        )
        return grads, totals, ()


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


def _like(values: Values, before: Values) -> Values:
    """The next carried values, in the dtypes they came with."""
    return tuple(v.astype(b.dtype) for v, b in zip(map(jnp.asarray, values), before, strict=True))


def _ended(count: Any, goes_on: Any, limit: Any) -> Any:
    """Runs while the program does.  Errors: `ProgramError` for a loop that was cut off."""
    if goes_on:
        raise ProgramError(
            f"a while loop did not end within max_steps={int(limit)}.\n"
            f"  repair: give static.compile a larger max_steps"
        )
    return np.asarray(count, np.int32)  # threads of JAX's own know no 64-bit mode
