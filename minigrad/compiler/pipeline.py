"""From a program of primitives to a function: the passes over its calls, in order, and the source they come to."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np

from ..errors import ProgramError
from ..static.program.program import Program
from .buffers import plan_buffers
from .lower import lower
from .passes.bias import fold_bias
from .passes.borders import fill_once
from .passes.cse import merge_calls, one_value_each
from .passes.dce import drop_unread, tidy
from .passes.double_buffer import commit_at_once
from .passes.joined import join_in_place
from .passes.licm import hoist
from .passes.loop_products import rolled_at_once
from .passes.merge_updates import merge_updates
from .passes.pack_weights import turn_once
from .passes.pieces import from_pieces
from .passes.pooled import relu_after_pooling
from .passes.rates import scale_early
from .passes.stack_alike import alike_at_once
from .passes.unrolled_products import unrolled_at_once
from .schedule import Schedule
from .source import Writer
from .syntax import compile_tree, rendered

_numbers = itertools.count(1)


def scheduled(program: Program, step: Any) -> Schedule:
    """The calls of a program, after all passes; ``step`` says what is fetched and what lies in slabs."""
    if not step.exact:
        program = relu_after_pooling(program, step.fetch)
    schedule = lower(program, step.fetch)
    one_value_each(schedule)
    tidy(schedule)
    merge_calls(schedule)
    from_pieces(schedule, step.exact)
    hoist(schedule)
    tidy(schedule)
    if not step.exact:
        unrolled_at_once(schedule)
        rolled_at_once(schedule)
    alike_at_once(schedule, step.exact)
    join_in_place(schedule, step.exact)
    if not step.exact:
        turn_once(schedule)
    merge_updates(schedule, step.memory.slabs)
    if not step.exact:
        fold_bias(schedule, step.memory.slabs)
        drop_unread(schedule)
        scale_early(schedule)
    fill_once(schedule)
    commit_at_once(schedule, step.memory)
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
