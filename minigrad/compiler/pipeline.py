"""The pipeline: every pass over the calls of a program, in order, and the function they come to."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ProgramError
from ..static.program.program import Program
from .buffers import plan_buffers
from .lower import lower
from .passes.bias import fold_bias
from .passes.cse import merge_calls, one_value_each
from .passes.dce import drop_unread, tidy
from .passes.double_buffer import commit_at_once
from .passes.merge_updates import merge_updates
from .passes.products import rolled_at_once, unrolled_at_once
from .passes.stack_alike import alike_at_once
from .schedule import Schedule
from .source import Writer
from .syntax import compile_tree, rendered

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Pass:
    """One change of a schedule, called with it and the step it is for.

    ``reorders`` says that sums are taken in another order: such a pass runs with ``exact=False`` only.
    """

    run: Callable[[Schedule, Any], None]
    reorders: bool = False


PASSES: dict[str, Pass] = {
    "one_value_each": Pass(lambda schedule, step: one_value_each(schedule)),
    "merge_calls": Pass(lambda schedule, step: merge_calls(schedule)),
    "tidy": Pass(lambda schedule, step: tidy(schedule)),
    "unrolled_at_once": Pass(lambda schedule, step: unrolled_at_once(schedule), reorders=True),
    "rolled_at_once": Pass(lambda schedule, step: rolled_at_once(schedule), reorders=True),
    "alike_at_once": Pass(lambda schedule, step: alike_at_once(schedule, step.exact)),
    "merge_updates": Pass(lambda schedule, step: merge_updates(schedule, step.memory.slabs)),
    "fold_bias": Pass(lambda schedule, step: fold_bias(schedule, step.memory.slabs), reorders=True),
    "drop_unread": Pass(lambda schedule, step: drop_unread(schedule), reorders=True),
    "commit_at_once": Pass(lambda schedule, step: commit_at_once(schedule, step.memory)),
}


def scheduled(program: Program, step: Any) -> Schedule:
    """The calls of a program, after all passes; ``step`` says what is fetched and what lies in slabs."""
    schedule = lower(program, step.fetch)
    for each in PASSES.values():
        if not (each.reorders and step.exact):
            each.run(schedule, step)
    return schedule


class Built:
    """The function for one set of shapes: ``run``; ``fits`` tells whether feeds have them."""

    def __init__(self, program: Program, step: Any) -> None:
        schedule = scheduled(program, step)
        writer = Writer(schedule, plan_buffers(schedule))
        module = writer.module()
        self.filename = f"<minigrad compiled {next(_numbers)}>"
        self.text, self.lines = rendered(module)
        self.names = writer.table
        space: dict[str, Any] = {"np": np}
        exec(compile_tree(module, self.filename), space)
        linecache.cache[self.filename] = (
            len(self.text),
            None,
            self.text.splitlines(True),
            self.filename,
        )
        weakref.finalize(self, linecache.cache.pop, self.filename, None)
        held = step.memory.arrays
        given = {target: held[name] for target, name in self.names.items() if name in held}
        self.run, self.fits = space["prepare"](given, writer.kernels, writer.constants)
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
        what, _, advice = str(error).partition("; repair: ")
        where = f"\n  at {op.source_line}\n  in the source, line {line}: {text}"
        repair = f"\n  repair: {advice}" if advice else ""
        return ProgramError(f"{op!r} failed: {what}{where}{repair}")
