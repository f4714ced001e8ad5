"""The pipeline: every pass over the calls of a program, in order, and the function they come to."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import ProgramError
from ..static.program.program import Program
from .buffers import plan_buffers
from .lower import lower
from .passes.bias import fold_bias
from .passes.dce import tidy
from .passes.double_buffer import double_buffer
from .passes.merge_updates import merge_updates
from .passes.one_value_each import one_value_each
from .schedule import Schedule
from .source import Writer

_numbers = itertools.count(1)


class Pass(NamedTuple):
    """One change of a schedule, which is its first argument.

    ``when`` says for which steps: "always", or "inexact" for what gives other last bits; ``more`` what else it is
    given, found by the step it is for.
    """

    run: Callable[..., Any]
    when: str = "always"
    more: Callable[[Any], tuple[Any, ...]] = lambda step: ()

    def applies(self, step: Any) -> bool:
        """Whether it changes anything for this step."""
        return self.when == "always" or not step.exact


PASSES = (
    Pass(one_value_each),
    Pass(tidy),
    Pass(merge_updates, more=lambda step: (step.memory.slabs,)),
    Pass(fold_bias, "inexact", lambda step: (step.memory.slabs,)),
    Pass(double_buffer, more=lambda step: (step.memory,)),
)


def scheduled(program: Program, step: Any) -> Schedule:
    """The calls of a program, after all passes; ``step`` says what is fetched and what lies in slabs."""
    schedule = lower(program, step.fetch)
    for each in PASSES:
        if each.applies(step):
            each.run(schedule, *each.more(step))
    return schedule


class Built:
    """The function for one set of shapes: ``run``; ``fits`` tells whether feeds have them."""

    def __init__(self, program: Program, step: Any) -> None:
        schedule = scheduled(program, step)
        writer = Writer(schedule, plan_buffers(schedule))
        self.filename = f"<minigrad compiled {next(_numbers)}>"
        space: dict[str, Any] = {"np": np}
        self.text, self.lines = writer.executed(writer.module(), self.filename, space)
        self.names = writer.table
        linecache.cache[self.filename] = (
            len(self.text),
            None,
            self.text.splitlines(True),
            self.filename,
        )
        weakref.finalize(self, linecache.cache.pop, self.filename, None)
        held = step.memory.arrays
        arrays = {target: held[name] for target, name in self.names.items() if name in held}
        self.run, self.fits = space["prepare"](arrays, writer.kernels, writer.constants)
        self.feeds = tuple(schedule.feeds)

    def explained(self, error: Exception) -> Exception:
        """An error in generated source, with the operator and the user's line."""
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                line = trace.tb_lineno
            trace = trace.tb_next
        op = self.lines.get(line or 0)
        if op is None:
            return error
        text = self.text.splitlines()[(line or 1) - 1].strip()
        return explained(error, op, f"\n  in the source, line {line}: {text}")


def explained(error: Exception, op: Any, where: str = "") -> ProgramError:
    """What a kernel raised, with the operator and the user's line."""
    what, _, advice = str(error).partition("; repair: ")
    repair = f"\n  repair: {advice}" if advice else ""
    return ProgramError(f"{op!r} failed: {what}\n  at {op.source_line}{where}{repair}")
