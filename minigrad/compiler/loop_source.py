"""Source of loops and branches."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..static.program.program import Operator
from ..static.run.limits import STEP_LIMIT
from .call_source import CallSource
from .effects import leaving
from .runtime import too_many_steps
from .schedule import Array, Branch, Call, Loop
from .syntax import append, assign, entry, invoke, load, store


class LoopSource(CallSource):
    """The part of the writer that is about loops and branches."""

    op: Operator | None
    statements: Any

    def loop(self, item: Loop) -> Iterator[ast.stmt]:
        """``while``, ``for`` over slices, ``for`` back over what the steps saved."""
        backward = item.op.type.endswith("_grad")
        lists = [(value, self.unique(self.name(made) + "_steps")) for value, made in item.stacked]
        factors = {id(a): a for p in item.products for a in p[:2] if a is not None}
        gathered = {k: self.unique(self.name(a) + "_steps") for k, a in factors.items()}
        frames = None
        if not backward and item.frames is not None and self.plan.is_read(item.frames):
            frames = self.name(item.frames)
            yield assign(frames, ast.List([], ast.Load()))
        for target in [t for _, t in lists] + list(gathered.values()):
            yield assign(target, ast.List([], ast.Load()))
        for _, every in item.gathered:
            yield assign(self.name(every), ast.List([], ast.Load()))
        for _, total, _ in item.totals:
            yield assign(self.name(total), ast.Constant(None))
        if item.carried:
            yield self.assign_all([c[1] for c in item.carried], [c[0] for c in item.carried])
        body = self.test(item)
        body += self.statements(item.body)
        self.op = None
        body += self.adding_up(item)
        body += [append(target, self.value(value)) for value, target in lists]
        for value, every in item.gathered:
            is_list = id(value) in self.schedule.lists
            one = self.value(value) if is_list else invoke("np.array", [self.value(value)])
            body.append(append(self.name(every), one))
        body += [append(target, self.value(factors[k])) for k, target in gathered.items()]
        if frames is not None:
            body.append(append(frames, ast.Tuple([self.value(v) for v in item.saved], ast.Load())))
        if item.carried:
            body.append(self.assign_all([c[1] for c in item.carried], [c[2] for c in item.carried]))
        yield self.header(item, body or [ast.Pass()], backward)
        yield from self.ends(item, backward)
        if item.products:
            yield self.products(item, gathered)
        for (value, made), (_, target) in zip(item.stacked, lists, strict=True):
            yield self.stacked(value, made, target, backward)

    def adding_up(self, item: Loop) -> Iterator[ast.stmt]:
        """What a step adds to each total: in place, unless the first summand is used elsewhere, too."""
        fresh = {id(c.out) for c in item.body if isinstance(c, Call) and c.kind == "compute"}
        left = Counter(id(r) for a in leaving(item) for r in a.roots)
        for value, total, _ in item.totals:
            own = value.is_root and left[id(value)] == 1 and value.ndim > 0
            yield self.add_to(total, value, own and id(value) in fresh)

    def ends(self, item: Loop, backward: bool) -> Iterator[ast.stmt]:
        """What the last step leaves; a total to which no step added is zero, lists of a way back are turned."""
        if item.carried:
            yield self.assign_all([c[3] for c in item.carried], [c[1] for c in item.carried])
        for _, total, like in item.totals:
            nothing = ast.Compare(load(self.name(total)), [ast.Is()], [ast.Constant(None)])
            yield ast.If(
                nothing, [assign(self.name(total), invoke("np.zeros_like", [self.value(like)]))], []
            )
        for _, every in item.gathered if backward else ():
            turned = ast.Slice(step=ast.Constant(-1))
            yield assign(
                self.name(every), ast.Subscript(load(self.name(every)), turned, ast.Load())
            )

    def products(self, item: Loop, gathered: dict[int, str]) -> ast.stmt:
        """The products of all steps' factors; zeros if there was no step."""
        some: list[ast.stmt] = [
            assign(t, invoke("np.concatenate", [load(t)])) for t in gathered.values()
        ]
        none: list[ast.stmt] = []
        for x, g, total, like in item.products:
            rows, target = load(gathered[id(g)]), self.name(total)
            if x is None:
                made = invoke("np.add.reduce", [rows])
            else:
                made = invoke(
                    "np.dot", [ast.Attribute(load(gathered[id(x)]), "T", ast.Load()), rows]
                )
            some.append(assign(target, made))
            none.append(assign(target, invoke("np.zeros_like", [self.value(like)])))
        return ast.If(load(next(iter(gathered.values()))), some, none)

    def test(self, item: Loop) -> list[ast.stmt]:
        if item.go_on is None:
            return []
        out = self.statements(item.test)
        stop = ast.UnaryOp(ast.Not(), invoke("np.all", [self.value(item.go_on)]))
        return [*out, ast.If(stop, [ast.Break()], [])]

    def header(self, item: Loop, body: list[ast.stmt], backward: bool) -> ast.stmt:
        if item.go_on is not None:
            self.kernels.setdefault("too_many_steps", too_many_steps)
            if "too_many_steps" not in self.bound:
                self.bound["too_many_steps"] = "too_many_steps"
                self.before.append(assign("too_many_steps", entry("kernels", "too_many_steps")))
            over = invoke("range", [ast.Constant(STEP_LIMIT + 1)])
            return ast.For(
                store("_"),
                over,
                body,
                [ast.Expr(invoke("too_many_steps", [ast.Constant(STEP_LIMIT)]))],
            )
        targets: list[ast.expr] = []
        sources: list[ast.expr] = []
        if backward:
            saved: Any = self.schedule.loops[id(item.frames)].saved
            targets.append(self.taken_apart(item.saved, saved))
            sources.append(invoke("reversed", [self.value(item.frames)]))
        for seq, local in item.slices:
            targets.append(store(self.name(local)))
            back = ast.Subscript(self.value(seq), ast.Slice(step=ast.Constant(-1)), ast.Load())
            sources.append(back if backward else self.value(seq))
        if len(targets) == 1:
            return ast.For(targets[0], sources[0], body, [])
        strict = [ast.keyword("strict", ast.Constant(True))]
        return ast.For(ast.Tuple(targets, ast.Store()), invoke("zip", sources, strict), body, [])

    def taken_apart(self, pairs: list[Any], saved: list[Array]) -> ast.expr:
        """The names that what a step saved has here."""
        if not pairs:
            return store("_")
        here = {id(value): made for value, made in pairs}
        names = [self.name(here[id(v)]) if id(v) in here else "_" for v in saved]
        return ast.Tuple([store(n) for n in names], ast.Store())

    def add_to(self, total: Array, value: Array, own: bool) -> ast.stmt:
        """``total = value if total is None else np.add(total, value, total)``."""
        target = self.name(total)
        nothing = ast.Compare(load(target), [ast.Is()], [ast.Constant(None)])
        more = invoke("np.add", [load(target), self.value(value), *([load(target)] if own else [])])
        return assign(target, ast.IfExp(nothing, self.value(value), more))

    def stacked(self, value: Array, made: Array, target: str, backward: bool) -> ast.stmt:
        """The values of all steps as one array; none gives an empty one."""
        order = (
            ast.Subscript(load(target), ast.Slice(step=ast.Constant(-1)), ast.Load())
            if backward
            else load(target)
        )
        shape = (0, *value.shape) if value.like is not None else (0,)
        dtype = value.dtype if value.like is not None else np.dtype(float)
        nothing = invoke("np.zeros", [self.value(shape), self.value(dtype)])
        return assign(
            self.name(made), ast.IfExp(load(target), invoke("np.stack", [order]), nothing)
        )

    def branch(self, item: Branch) -> Iterator[ast.stmt]:
        """``if`` and ``else``; each side sets the results, and saves what backward reads."""
        sides = []
        for k in (0, 1):
            body: list[ast.stmt] = []
            if item.backward and item.saved[k]:
                saved = self.schedule.loops[id(item.frames)].saved[k]
                taken = self.taken_apart(item.saved[k], saved)
                body.append(ast.Assign([taken], self.value(item.frames)))
            self.op = None
            body += self.statements(item.bodies[k])
            if item.results:
                body.append(
                    self.assign_all([r[2] for r in item.results], [r[k] for r in item.results])
                )
            if not item.backward and item.frames is not None and self.plan.is_read(item.frames):
                body.append(
                    assign(
                        self.name(item.frames),
                        ast.Tuple([self.value(v) for v in item.saved[k]], ast.Load()),
                    )
                )
            sides.append(body or [ast.Pass()])
        self.op = None
        yield ast.If(invoke("np.all", [self.value(item.pred)]), *sides)

    def assign_all(self, targets: list[Array], values: list[Array]) -> ast.stmt:
        """``a, b = c, d``."""
        left: list[ast.expr] = [store(self.name(t)) for t in targets]
        right = [self.value(v) for v in values]
        if len(left) == 1:
            return ast.Assign([left[0]], right[0])
        return ast.Assign([ast.Tuple(left, ast.Store())], ast.Tuple(right, ast.Load()))
