"""A program under `jax.jit`: its functional source, traced by JAX once per set of shapes."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ...compiler.memory import start_values
from ...compiler.program_passes import limited_depth
from ...errors import MinigradError, ProgramError
from ...static.program.arguments import names_of
from ...static.program.operator import Operator
from ...static.program.program import Program
from ...static.program.variable import Variable
from ...static.run.feeds import check_all_fed, data_of, fed_arrays, fed_shapes, feed_of_call
from ..functional import FILENAME, functional_source
from ..lowering import lowered
from .space import JaxSpace


class JaxStep:
    """A program compiled by JAX: call it with the feeds, get what is fetched, as JAX arrays.

    Attributes: ``source``, the function that is traced; ``function``, that function of ``(parameters, feeds)``, for
    `jax.jit` with shardings of your own; ``parameters``, name → JAX array, replaced in every run; ``history``.
    A feed may be a JAX array: where it lies on several devices, so does the computation.  An error leaves the
    parameters as they were.
    """

    def __init__(
        self, program: Program, feed: Any, fetch: Any, executor: Any, max_steps: Any
    ) -> None:
        self.program, self.executor = program, executor
        self.single = isinstance(fetch, Variable | str)
        self.fetch = names_of(program, fetch, "fetch", root=True)
        self.data = data_of(program)
        self.space = JaxSpace(max_steps)
        self.history: list[str] = []
        self.source = ""
        self.function: Callable[..., Any] | None = None
        self._built: dict[Any, tuple[str, Any, Any]] = {}
        self._lines: dict[int, Operator] = {}
        with jax.enable_x64(True):
            self.parameters: dict[str, Any] = {
                n: jax.numpy.asarray(v) for n, v in start_values(program, executor).items()
            }
        shapes = fed_shapes(program, feed)
        if not any(-1 in s for s in shapes.values()):
            self.build(shapes)

    def __call__(self, *given: Any, **feed: Any) -> Any:
        """Run it; returns one array per fetched variable, or one array if a single variable is fetched.

        Feeds are named, ``step(x=…)``, or come as one dict.
        """
        with jax.enable_x64(True):
            fed = fed_arrays(self.program, feed_of_call(self.program, given, feed), kept=jax.Array)
        check_all_fed(self.program, fed, self.fetch)
        run = self.build(fed_shapes(self.program, {n: a.shape for n, a in fed.items()}))
        self._take_over()
        with jax.enable_x64(True):
            try:
                parameters, results = jax.block_until_ready(run(self.parameters, fed))
            except MinigradError:
                raise
            except Exception as error:
                said = _said(error) or self._untraceable(error)
                if said is None:
                    raise
                raise ProgramError(said) from error
        self.parameters = parameters
        if self.executor is not None:
            values = self.executor.scope.values
            values.update({n: np.array(v) for n, v in parameters.items()})
        return results[0] if self.single else results

    def build(self, shapes: dict[str, tuple[int, ...]]) -> Any:
        """The jitted function for these shapes, made if need be."""
        key = tuple(sorted(shapes.items()))
        if key not in self._built:
            with limited_depth():
                program = lowered(self.program, shapes, self.fetch)
                source, step, names, self._lines = functional_source(program, self.fetch)

            def function(parameters: Any, feeds: Any) -> Any:
                return step(self.space, parameters, *(feeds.get(n) for n in names))

            self._built[key] = source, function, jax.jit(function)
            said = ", ".join(f"{n} {list(s)}" for n, s in shapes.items()) or "no feeds"
            self.history.append(f"compiled for {said}")
        self.source, self.function, jitted = self._built[key]
        return jitted

    def _untraceable(self, error: Exception) -> str | None:
        """What is said of an operator that asks for values while JAX traces; None for other errors."""
        if not isinstance(error, (jax.errors.JAXTypeError, jax.errors.JAXIndexError)):
            return None
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == FILENAME]
        op = self._lines.get(frames[-1].lineno or 0) if frames else None
        if op is None:
            return None
        return (
            f"{op.type} needs values that JAX does not know when it traces: a mask as an index, say\n"
            f"  at {op.source_line}\n"
            f"  repair: mg.where(mask, x, 0.0), or run the program with static.Executor()"
        )

    def _take_over(self) -> None:
        """What others have put into the executor's scope since."""
        if self.executor is not None:
            with jax.enable_x64(True):
                for name, value in self.executor.scope.values.items():
                    if name in self.parameters:
                        self.parameters[name] = jax.numpy.asarray(value)

    def __repr__(self) -> str:
        return f"<JAX step: {', '.join(self.data)} → {', '.join(self.fetch)}>"


def _said(error: Exception) -> str | None:
    """What a callback of ours said, without the frames of JAX around it; None if it was none of ours."""
    _, marker, said = str(error).partition("ProgramError: ")
    return said.strip() if marker else None
