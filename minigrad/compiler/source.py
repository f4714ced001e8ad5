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
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..static.program.names import SCOPES
from ..static.program.operator import Operator
from ..static.run.limits import STEP_LIMIT
from .buffers import Plan
from .memory import aligned_zeros, refusal, too_many_steps
from .schedule import Array, Branch, Call, Loop, Schedule, leaving
from .syntax import (
    Comment,
    Identifiers,
    append,
    assign,
    clean,
    dotted,
    entry,
    function,
    invoke,
    load,
    store,
)

_BY_NAME = (np.maximum, np.minimum)  # NumPy wants their ``out=`` by name
#: identifiers that mean something else in the source
RESERVED = {
    "np", "parameters", "kernels", "constants", "prepare", "step", "fits", "reversed", "zip", "range", "slice", "list",
    "type", "zeros", "too_many_steps", "results",
}  # fmt: skip
CHANGE = "parameters change from here on; an error before leaves them as they were"


class Writer(Identifiers):
    """Turns one schedule into a syntax tree."""

    def __init__(self, schedule: Schedule, plan: Plan) -> None:
        super().__init__(schedule, RESERVED)
        self.plan = plan
        self.kernels: dict[str, Any] = {}
        self.scalars: dict[Any, str] = {}
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
        prepare = function(
            "prepare",
            ["parameters", "kernels", "constants"],
            [
                *self.before,
                step,
                fits,
                ast.Return(ast.Tuple([load("step"), load("fits")], ast.Load())),
            ],
        )
        return ast.Module([prepare], [])

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
        memory = invoke("zeros", [self.value(shape), ast.Constant(dtype)])
        if order:
            memory = invoke(
                "np.transpose",
                [memory, self.value(tuple(order.index(k) for k in range(like.ndim)))],
            )
        self.before.append(ast.Assign([store(t) for t in targets.values()], memory))
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
            written = list(self.item(item))
            if not written:
                continue
            if not self.changing and _changes_state(item):
                self.changing = True
                out.insert(len(out) - bool(out and isinstance(out[-1], Comment)), Comment(CHANGE))
            for statement in written:
                statement.op = item.op  # type: ignore[attr-defined]
            if isinstance(item, Call) and item.ignores:
                self.silenced(out, written, item.ignores)
            else:
                out += written
        return out

    def silenced(
        self, out: list[ast.stmt], calls: list[ast.stmt], ignores: tuple[str, ...]
    ) -> None:
        """Calls whose kernel silences floating-point errors share one ``with``."""
        keywords = [ast.keyword(k, ast.Constant("ignore")) for k in ignores]
        last = out[-1] if out else None
        context = invoke("np.errstate", [], keywords)
        if isinstance(last, ast.With) and ast.dump(last.items[0].context_expr) == ast.dump(context):
            last.body += calls
        else:
            statement = ast.With([ast.withitem(context)], calls)
            statement.op = calls[0].op  # type: ignore[attr-defined]
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

    # -- calls -----------------------------------------------------------------------------

    def call(self, call: Call) -> ast.stmt:
        """The statement of one call."""
        out = call.out
        place = call.into
        if place is None and isinstance(out, Array) and id(out) in self.plan.placed:
            place = out
        if call.kind == "fill":
            return self.fill(call, place)
        if call.kind == "check":
            return self.check(call)
        if call.path == "[]=":
            x, index, value = call.args
            target = ast.Subscript(self.value(x), self.subscript(index), ast.Store())
            return ast.Assign([target], self.value(value))
        called = self.called(call, place)
        if call.kind in ("write", "store") or (place is not None and call.kind == "compute"):
            return ast.Expr(called)
        if isinstance(out, list):
            return ast.Assign([ast.Tuple([store(self.name(a)) for a in out], ast.Store())], called)
        return assign(self.name(out), called)

    def called(self, call: Call, place: Array | None) -> ast.expr:
        """The expression of one call, as one would write it: ``x[0]``, ``w.T``, ``np.add(x, y, out)``."""
        if call.kind == "opaque":
            return ast.Call(load(self.kernel(call)), *self.arguments(call))
        if call.path == "[]":
            x, index = call.args
            return ast.Subscript(self.value(x), self.subscript(index), ast.Load())
        if call.path == ".astype":
            x, dtype = call.args
            return ast.Call(
                ast.Attribute(self.value(x), "astype", ast.Load()), [self.value(dtype)], []
            )
        x, *more = call.args
        if call.function is np.transpose and not call.kwargs and all(a is None for a in more):
            return ast.Attribute(self.value(x), "T", ast.Load())
        path = "np.dot" if call.function is np.matmul and _is_plain_product(call) else call.path
        return ast.Call(self.function(path), *self.arguments(call, place))

    def check(self, call: Call) -> ast.stmt:
        """A condition without which the kernel raises: then it is called, and does."""
        condition, expected, args, attrs = call.args
        test = self.value(condition)
        failing = Call("opaque", call.path + "_refuses", refusal(call.function), args, attrs, None)
        raises = ast.Expr(ast.Call(load(self.kernel(failing)), *self.arguments(failing)))
        return ast.If(ast.UnaryOp(ast.Not(), test) if expected else test, [raises], [])

    def fill(self, call: Call, place: Array | None) -> ast.stmt:
        """An array of one value, or memory with nothing in it yet."""
        shape, value, dtype = call.args
        if place is not None:
            if value is None:
                return ast.Pass()
            return ast.Expr(
                ast.Call(
                    ast.Attribute(self.value(place), "fill", ast.Load()), [self.value(value)], []
                )
            )
        if value is None:
            return assign(
                self.name(call.out),
                invoke(
                    "np.empty",
                    [
                        self.value(tuple(shape) if isinstance(shape, list) else shape),
                        self.value(dtype),
                    ],
                ),
            )
        return assign(
            self.name(call.out),
            invoke("np.full", [self.value(shape), self.value(value), self.value(dtype)]),
        )

    def arguments(
        self, call: Call, place: Array | None = None
    ) -> tuple[list[ast.expr], list[ast.keyword]]:
        """The arguments of a call; numbers beside arrays become arrays made once."""
        args = [self.operand(call, a) for a in call.args]
        if (
            place is not None
            and call.path.endswith(".reduce")
            and call.kwargs.keys() <= {"axis", "keepdims"}
            and len(args) == 1
        ):
            args += [self.value(call.kwargs.get("axis", 0)), ast.Constant(None), self.value(place)]
            return args + ([ast.Constant(True)] if call.kwargs.get("keepdims") else []), []
        keywords = [
            ast.keyword(k, self.value(v)) for k, v in call.kwargs.items() if not _is_default(k, v)
        ]
        if (
            place is not None
            and isinstance(call.function, np.ufunc)
            and not keywords
            and call.function not in _BY_NAME
        ) or (place is not None and call.function is np.dot):
            args.append(self.value(place))
        elif place is not None:
            keywords.append(ast.keyword("out", self.value(place)))
        return args, keywords

    def operand(self, call: Call, value: Any) -> ast.expr:
        if (
            call.kind != "compute"
            or type(value) not in (int, float)
            or not isinstance(call.function, np.ufunc)
        ):
            return self.value(value)
        dtypes = {a.dtype for a in call.args if isinstance(a, Array)}
        if len(dtypes) != 1 or not _holds(next(iter(dtypes)), value):
            return self.value(value)
        shape = call.out.shape if call.function in _BY_NAME else ()  # three times as fast on arrays
        return load(self.scalar(value, dtypes.pop(), shape))

    def scalar(self, value: float, dtype: np.dtype[Any], shape: tuple[int, ...] = ()) -> str:
        """A number as an array, usually without axes: NumPy takes it faster than a number of Python."""
        key = (repr(value), dtype, shape)
        if key not in self.scalars:
            said = f"{value:g}".replace("-", "m").replace(".", "p")
            self.scalars[key] = self.unique("c" + clean(said))
            self.before.append(
                assign(
                    self.scalars[key],
                    invoke(
                        "np.full", [self.value(shape), self.value(value), ast.Constant(dtype.name)]
                    )
                    if shape
                    else invoke("np.array", [self.value(value), ast.Constant(dtype.name)]),
                )
            )
        return self.scalars[key]

    def function(self, path: str) -> ast.expr:
        """``np.add``; methods of functions are bound once."""
        if path.count(".") < 2:
            return dotted(path)
        if path not in self.bound:
            self.bound[path] = self.unique(path[3:].replace(".", "_"))
            self.before.append(assign(self.bound[path], dotted(path)))
        return load(self.bound[path])

    def kernel(self, call: Call) -> str:
        """The identifier of a kernel that is called as it is."""
        known = next((n for n, f in self.kernels.items() if f is call.function), None)
        if known is None:
            known = self.unique(
                clean(call.path) + ("" if call.path.endswith("_refuses") else "_kernel")
            )
            self.kernels[known] = call.function
            self.before.append(assign(known, entry("kernels", known)))
        return known

    # -- loops and branches ----------------------------------------------------------------

    def loop(self, item: Loop) -> Iterator[ast.stmt]:
        """``while``, ``for`` over slices, ``for`` back over what the steps saved."""
        backward = item.op.type.endswith("_grad")
        lists = [(value, self.unique(self.name(stack) + "_steps")) for value, stack in item.stacked]
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
        for (value, stack), (_, target) in zip(item.stacked, lists, strict=True):
            yield self.stacked(value, stack, target, backward)

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
                product = invoke("np.add.reduce", [rows])
            else:
                product = invoke(
                    "np.dot", [ast.Attribute(load(gathered[id(x)]), "T", ast.Load()), rows]
                )
            some.append(assign(target, product))
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
        here = {id(value): local for value, local in pairs}
        names = [self.name(here[id(v)]) if id(v) in here else "_" for v in saved]
        return ast.Tuple([store(n) for n in names], ast.Store())

    def add_to(self, total: Array, value: Array, own: bool) -> ast.stmt:
        """``total = value if total is None else np.add(total, value, total)``."""
        target = self.name(total)
        nothing = ast.Compare(load(target), [ast.Is()], [ast.Constant(None)])
        more = invoke("np.add", [load(target), self.value(value), *([load(target)] if own else [])])
        return assign(target, ast.IfExp(nothing, self.value(value), more))

    def stacked(self, value: Array, stack: Array, target: str, backward: bool) -> ast.stmt:
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
            self.name(stack), ast.IfExp(load(target), invoke("np.stack", [order]), nothing)
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


def _changes_state(item: Any) -> bool:
    """Whether a call writes into a parameter."""
    return isinstance(item, Call) and item.changed is not None and item.changed.fixed


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
    outs = ", ".join(clean(n) for n in op.output_names if SCOPES not in n)
    return f"{outs} = {op.type}({', '.join(args)})"[:120]


def _is_default(key: str, value: Any) -> bool:
    return (key == "keepdims" and value is False) or (key == "initial" and value is None)


def _holds(dtype: np.dtype[Any], value: float) -> bool:
    """Whether an array of this dtype can stand for a number."""
    if dtype.kind in "iu":
        return type(value) is int and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    return dtype.kind == "f"


def _is_plain_product(call: Call) -> bool:
    """Two matrices of one dtype: ``np.dot`` gives the same bits as ``np.matmul`` with half the overhead."""
    place = call.out if call.into is None else call.into
    arrays = [*call.args, place]
    plain = all(
        isinstance(a, Array) and a.like is not None and a.ndim == 2 and a.dtype == place.dtype
        for a in arrays
    )
    return plain and place.like.flags.c_contiguous and place.dtype.kind == "f"
