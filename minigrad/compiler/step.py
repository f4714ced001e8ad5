"""compile: a Program becomes one readable NumPy function that runs it.

    specialise → decompose → dead_code → source

Each rung can be looked at: ``compile(prog, stop_after="dead_code")`` is a Program that prints and
runs.  The source is what runs: buffers, views and constants are made once, and every run is a
straight line of NumPy calls.
"""

import itertools
import linecache
import traceback
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..atomic import gc_paused
from ..errors import MinigradError, ProgramError, did_you_mean, told, wrong
from ..ops.shape import Shape
from ..primitives.arguments import ByName, Listed
from ..static.program.operator import names_of
from ..static.program.program import Program
from ..static.program.variable import Variable
from ..static.run.executor import (
    Executor,
    check_all_fed,
    data_of,
    fed_arrays,
    fed_shapes,
    feed_of_call,
)
from .lower import Lowering
from .memory import start_memory
from .passes.bias import fold_bias
from .passes.dce import drop_unneeded
from .passes.double_buffer import double_buffer
from .passes.in_place import make_in_place
from .program_passes import check_program, check_sizes, climb, limited_depth
from .source import Writer

RUNGS = ("specialise", "decompose", "dead_code", "source")


def compile(
    program: Program,
    feed: Mapping[Any, Any] | Iterable[Any] | None = None,
    fetch: Any = None,
    executor: Executor | None = None,
    stop_after: str | None = None,
    exact: bool = True,
    backend: str = "numpy",
    max_steps: int | None = None,
) -> Any:
    """A `Step` that runs a program as generated NumPy source.

    Args: ``feed``, arrays (or shapes) like those it will be called with, needed only where the program
    leaves sizes open; ``fetch``, a variable or a list of them;
    ``executor``, whose parameters it reads and updates (its own copies without);
    ``exact=False``, faster, with other last bits: products of all steps, and of a layer with its bias, at once;
    ``stop_after``, a rung of the ladder: returns the Program (``"source"``: the text) instead;
    ``backend="jax"``, a `JaxStep`: one pure function under `jax.jit`, where ``max_steps`` bounds while loops that
    are differentiated; ``backend="c"``, the same step from compiled C (`static.to_c` shows the text).
    Errors: `ProgramError` for unknown names and rungs.

    >>> from minigrad import static
    >>> import numpy as np
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [3]); y = (x * 2.0).sum()
    >>> step = static.compile(prog, fetch=y)
    >>> step(x=np.ones(3))
    array(6.)
    """
    traced = "p := mg.trace(function, example), fetch=p.outputs"
    check_program(program, "compile", traced if callable(program) else "program, feed, fetch")
    kind = Step
    if backend != "numpy":
        from ..backends.lowering import step_on

        kind = step_on(backend)
    if stop_after is not None and stop_after not in RUNGS:
        near = did_you_mean(stop_after, RUNGS)
        raise wrong(f"stop_after={stop_after!r} is no rung of the ladder{near}")
    in_order = exact or backend == "jax"  # whose compiler adds up in the order it likes
    step = kind(program, fetch, executor, in_order, max_steps)
    shapes = fed_shapes(program, feed)
    if stop_after is not None:
        return step.rung(shapes, stop_after)
    if not any(-1 in shape for shape in shapes.values()):
        step.build(shapes)
    return step


class Step:
    """A compiled program: call it with the feeds, get what is fetched.

    Attributes: ``source``, the text that runs; ``parameters``, name → array, updated in place;
    ``names``, identifier in the source → variable; ``history``, a line for every time it was
    compiled.  Its buffers are used again in every run, so a step belongs to one thread.
    """

    def __init__(
        self,
        program: Program,
        fetch,
        executor: Executor | None,
        exact: bool = True,
        max_steps: int | None = None,
    ) -> None:
        self.program = program
        self.executor = executor
        self.exact = exact
        self.max_steps = max_steps
        self.single = isinstance(fetch, Variable | str)
        self.fetch = names_of(program, fetch, "fetch")
        self.data = data_of(program)
        self.memory = self.start_memory(program, executor)
        self.parameters = self.memory.parameters
        self.history: list[str] = []
        self.source = ""
        self.names: dict[str, str] = {}
        self._built: dict[Any, Built] = {}
        self._current: Built | None = None

    def __call__(self, *given, **feed) -> Any:
        """Run it; returns one array per fetched variable, or one array if a single variable is fetched.

        Feeds are named, ``step(x=…)``, or come as one dict as for an Executor.  An error or an
        interrupt leaves all parameters, and what an optimizer remembers of them, as they were: one
        call changes all of it, after everything else has been computed.
        """
        if given:
            feed = feed_of_call(self.program, given, feed)
        built = self._current
        values: Any = feed.values()
        if built is None or tuple(feed) != built.feeds or not built.fits(*values):
            built, values = self.ready(feed)
        if self.executor is not None:
            self._read_scope(self.executor.scope.values)
        try:
            results = built.run(*values)
        except MinigradError:
            raise
        except Exception as error:
            raise built.explained(error) from error
        return results[0] if self.single else results

    # -- compiling -------------------------------------------------------------------------

    start_memory = staticmethod(start_memory)
    kept: Any = ()  #: classes of arrays that are fed as they are

    def built(self, program: Program) -> Any:
        """The function of a program of primitives."""
        return Built(program, self)

    def rung(self, shapes: dict[str, Shape], stop_after: str) -> Any:
        """What a rung of the ladder makes."""
        with limited_depth():
            for program in climb(self.program, shapes, self.fetch, self.exact):
                if program.history[-1] == stop_after:
                    return program
            check_sizes(shapes, "source")
            return self.built(program).text

    def build(self, shapes: dict[str, Shape]) -> "Built":
        """The function for these shapes of the feeds, compiled if need be."""
        key = tuple(shapes.items())
        if key not in self._built:
            with gc_paused(), limited_depth():
                *_, program = climb(self.program, shapes, self.fetch, self.exact)
                self._built[key] = self.built(program)
            said = ", ".join(f"{n} {list(s)}" for n, s in shapes.items()) or "no feeds"
            self.history.append(f"compiled for {said}")
        self._current = built = self._built[key]
        self.source = built.text
        self.names = built.names
        return built

    def ready(self, feed: ByName) -> "tuple[Built, Listed]":
        """The function for these feeds, compiled if need be, and its arguments in order."""
        fed = fed_arrays(self.program, feed, self.kept)
        check_all_fed(self.program, fed, self.fetch)
        shapes = fed_shapes(self.program, {n: a.shape for n, a in fed.items()})
        built = self.build(shapes)
        return built, [fed.get(n) for n in built.feeds]

    def _read_scope(self, values: ByName) -> None:
        """Take over what others have put into the executor's scope."""
        for name, array in self.parameters.items():
            other = values.get(name)
            if other is not array:
                if other is not None:
                    np.copyto(array, other)
                values[name] = array

    def __repr__(self) -> str:
        lines = len(self.source.splitlines())
        return f"<compiled step: {', '.join(self.data)} → {', '.join(self.fetch)}; {lines} lines>"


# -- The pipeline: every pass over the calls of a program, in order, and the function they come to


_numbers = itertools.count(1)
PASSES = drop_unneeded, double_buffer, make_in_place
INEXACT = (fold_bias,)  #: passes that give other last bits


class Built:
    """The function for one set of shapes: ``run``; ``fits`` tells whether feeds have them."""

    def __init__(self, program: Program, step) -> None:
        schedule = Lowering(program, step.fetch, step.memory).schedule
        for change in PASSES if step.exact else PASSES + INEXACT:
            change(schedule)
        writer = Writer(schedule)
        self.filename = f"<minigrad compiled {next(_numbers)}>"
        space: ByName = {"np": np}
        self.text, self.lines = writer.executed(writer.module(), self.filename, space)
        self.names = writer.table
        lines = self.text.splitlines(True)
        linecache.cache[self.filename] = len(self.text), None, lines, self.filename
        weakref.finalize(self, linecache.cache.pop, self.filename, None)
        held = step.memory.arrays
        arrays = {target: held[name] for target, name in self.names.items() if name in held}
        self.run, self.fits = space["prepare"](arrays, **writer.given)
        self.feeds = tuple(schedule.feeds)

    def explained(self, error: Exception) -> Exception:
        """An error in generated source, with the operator and the user's line."""
        for filename, line, _, text in traceback.extract_tb(error.__traceback__):
            if filename == self.filename and line in self.lines:
                where = f"\n  in the source, line {line}: {text}"
                return explained(error, self.lines[line], where)
        return error


def explained(error: Exception, op, where: str = "") -> ProgramError:
    """What a kernel raised, with the operator and the user's line."""
    what, _, advice = str(error).partition("; repair: ")
    return ProgramError(told(f"{op!r} failed: {what}", advice, op.source_line + where))
