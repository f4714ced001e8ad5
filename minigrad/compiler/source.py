"""The schedule as source: one function of straight-line NumPy, built as a syntax tree.

    def prepare(parameters, kernels, constants):      # runs once: names, buffers, views
        w = parameters['w']
        def step(x):                                  # runs every time
            ...
            return [loss]
        return step

Comments say which operator a call belongs to.  Every identifier is made here: letters, digits and underscores.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..static.program.program import Operator
from .buffers import Plan
from .identifiers import RESERVED, clean
from .loop_source import LoopSource
from .runtime import aligned_zeros
from .schedule import Array, Branch, Call, Loop, Schedule
from .syntax import Comment, assign, dotted, entry, function, invoke, load, store

CHANGE = "parameters change from here on; an error before leaves them as they were"


class Writer(LoopSource):
    """Turns one schedule into a syntax tree."""

    def __init__(self, schedule: Schedule, plan: Plan) -> None:
        self.schedule, self.plan = schedule, plan
        self.identifiers: dict[int, str] = {}
        self.keep: list[Any] = []  # ids stay unique while their objects live
        self.taken = set(RESERVED)
        self.counts: dict[str, int] = {}
        self.table: dict[str, str] = {}  # identifier → name in the program
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.kernels: dict[str, Any] = {}
        self.scalars: dict[Any, str] = {}
        self.before: list[ast.stmt] = []  # the body of prepare
        self.bound: dict[str, str] = {}  # "np.add.reduce" → identifier
        self.op: Operator | None = None
        self.changing = False  # parameters, from here on
        self.fixed: set[int] = set()  # Arrays whose memory is the same in every run

    def module(self) -> ast.Module:
        """The whole source."""
        for name, array in self.schedule.state.items():
            target = self.name(array)
            self.fixed.add(id(array))
            self.before.append(assign(target, entry("parameters", target)))
            self.table[target] = name
        for buffer in self.plan.buffers:
            self.buffer(buffer)
        feeds = [self.name(a) for a in self.schedule.feeds.values()]
        self.table.update(zip(feeds, self.schedule.feeds, strict=True))
        body = self.body(self.schedule.items)
        step = function("step", feeds, body)
        fits = function("fits", feeds, [ast.Return(self.fits(feeds))])
        made = function(
            "prepare",
            ["parameters", "kernels", "constants"],
            [
                *self.before,
                step,
                fits,
                ast.Return(ast.Tuple([load("step"), load("fits")], ast.Load())),
            ],
        )
        return ast.Module([made], [])

    def body(self, items: list[Any]) -> list[ast.stmt]:
        """The statements of a run.  Results are copied before parameters change: copying needs memory, and may fail."""
        last = len(items) - (1 if items and _changes_state(items[-1]) else 0)
        out = self.statements(items[:last])
        results = ast.List([self.fetched(a) for a in self.schedule.fetched], ast.Load())
        if last == len(items):
            return [*out, ast.Return(results)]
        out.append(assign("results", results))
        return [*out, *self.statements(items[last:]), ast.Return(load("results"))]

    def fits(self, feeds: list[str]) -> ast.expr:
        """Whether feeds are contiguous arrays of the shapes and dtypes that this source is for."""
        tests: list[ast.expr] = []
        for name, array in zip(feeds, self.schedule.feeds.values(), strict=True):
            dtype = self.unique(f"{array.dtype.name}_")
            self.before.append(assign(dtype, invoke("np.dtype", [ast.Constant(array.dtype.name)])))
            kind, shape = invoke("type", [load(name)]), dotted(f"{name}.shape")
            tests += [
                ast.Compare(kind, [ast.Is()], [dotted("np.ndarray")]),
                ast.Compare(shape, [ast.Eq()], [self.value(array.shape)]),
                ast.Compare(dotted(f"{name}.dtype"), [ast.Is()], [load(dtype)]),
                dotted(f"{name}.flags.c_contiguous"),
            ]
        return ast.BoolOp(ast.And(), tests) if tests else ast.Constant(True)

    def buffer(self, buffer: Any) -> None:
        """Memory that is used again in every run."""
        targets: dict[str, str] = {}  # what the values are called → identifier
        for array in buffer.holds:
            wanted = clean(array.name or buffer.name)
            if wanted not in targets:
                targets[wanted] = self.unique(wanted)
                if array.name:
                    self.table.setdefault(targets[wanted], array.name)
            self.identifiers[id(array)] = targets[wanted]
            self.fixed.add(id(array))
        if len(targets) > 1:
            self.before.append(Comment("one memory, used in turn"))
        like = buffer.like
        order = (
            tuple(sorted(range(like.ndim), key=lambda k: -like.strides[k]))
            if not like.flags.c_contiguous
            else ()
        )
        shape, dtype = tuple(like.shape[k] for k in order) if order else like.shape, like.dtype.name
        if "zeros" not in self.bound:
            self.kernels["zeros"] = aligned_zeros
            self.bound["zeros"] = "zeros"
            self.before.insert(0, assign("zeros", entry("kernels", "zeros")))
        made = invoke("zeros", [self.value(shape), ast.Constant(dtype)])
        if order:
            made = invoke(
                "np.transpose", [made, self.value(tuple(order.index(k) for k in range(like.ndim)))]
            )
        self.before.append(ast.Assign([store(t) for t in targets.values()], made))
        if buffer.start:
            fill = ast.Attribute(load(next(iter(targets.values()))), "fill", ast.Load())
            self.before.append(ast.Expr(ast.Call(fill, [ast.Constant(buffer.start)], [])))

    def fetched(self, array: Array) -> ast.expr:
        """A result: always an array of its own; from inside loops a list."""
        if id(array) in self.schedule.lists:
            return self.value(array)
        if id(array) in self.plan.placed and not array.fixed:
            return ast.Call(ast.Attribute(self.value(array), "copy", ast.Load()), [], [])
        return invoke("np.array", [self.value(array)])

    # -- calls -----------------------------------------------------------------------------

    def statements(self, items: list[Any]) -> list[ast.stmt]:
        """The statements of calls in order, each operator with its comment."""
        out: list[ast.stmt] = []
        for item in items:
            if isinstance(item, Call) and self.hoisted(item):
                continue
            if item.op is not self.op and item.op is not None:
                self.op = item.op
                text = comment_of(item.op)
                if not (out and any(isinstance(s, Comment) and s.text == text for s in out[-6:])):
                    out.append(Comment(text))
            made = list(self.item(item))
            if not made:
                continue
            if not self.changing and _changes_state(item):
                self.changing = True
                out.insert(len(out) - bool(out and isinstance(out[-1], Comment)), Comment(CHANGE))
            for statement in made:
                statement.op = item.op  # type: ignore[attr-defined]
            if isinstance(item, Call) and item.ignores:
                self.silenced(out, made, item.ignores)
            else:
                out += made
        return out

    def silenced(self, out: list[ast.stmt], made: list[ast.stmt], ignores: tuple[str, ...]) -> None:
        """Calls whose kernel silences floating-point errors share one ``with``."""
        keywords = [ast.keyword(k, ast.Constant("ignore")) for k in ignores]
        last = out[-1] if out else None
        context = invoke("np.errstate", [], keywords)
        if isinstance(last, ast.With) and ast.dump(last.items[0].context_expr) == ast.dump(context):
            last.body += made
        else:
            statement = ast.With([ast.withitem(context)], made)
            statement.op = made[0].op  # type: ignore[attr-defined]
            out.append(statement)

    def hoisted(self, call: Call) -> bool:
        """Views of memory that stays, and arrays of one value, are made once, before the first run."""
        if call.kind == "slab":
            return True
        if (
            call.kind == "view"
            and isinstance(call.out, Array)
            and all(id(a) in self.fixed for a in call.reads())
        ) or id(call.out) in self.plan.constant:
            self.before += self.item(call)
        else:
            return False
        self.fixed.add(id(call.out))
        return True

    def item(self, item: Any) -> Iterator[ast.stmt]:
        """The statements of one item."""
        if isinstance(item, Loop):
            yield from self.loop(item)
        elif isinstance(item, Branch):
            yield from self.branch(item)
        else:
            statement = self.call(item)
            if not isinstance(statement, ast.Pass):
                yield statement


def _changes_state(item: Any) -> bool:
    """Whether a call writes into a parameter."""
    target = (
        (item.args[0] if item.kind == "store" else item.into) if isinstance(item, Call) else None
    )
    return target is not None and target.fixed


def comment_of(op: Operator) -> str:
    """``h = mul(a, b)``, and for backward calls ``grad of: h = mul(a, b)``."""
    if op.role == "backward" and op.forward_op is not None:
        return "grad of: " + _said(op.forward_op)
    return _said(op)


def _said(op: Operator) -> str:
    args = [clean(n) for n in op.input_names]
    args += [
        f"{k}={v!r}"
        for k, v in op.attrs.items()
        if isinstance(v, bool | int | float)
        or (isinstance(v, tuple) and len(v) < 5 and all(isinstance(e, int) for e in v))
    ]
    outs = ", ".join(clean(n) for n in op.output_names if "@SCOPES" not in n)
    return f"{outs} = {op.type}({', '.join(args)})"[:120]
