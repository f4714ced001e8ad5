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
import keyword
import re
from functools import lru_cache
from collections.abc import Iterator
from typing import Any

import numpy as np

from .buffers import Plan
from .lower import _ShapeWhenRun
from .program import Operator
from .slabs import ALIGN
from .schedule import Array, Branch, Call, Loop, Schedule

_RESERVED = {"np", "parameters", "kernels", "constants", "prepare", "step", "reversed", "zip", "range", "slice", "list", "zeros", "too_many_steps"}
_BY_NAME = (np.maximum, np.minimum)            # NumPy wants their ``out=`` by name
STEP_LIMIT = 1_000_000


class Comment(ast.stmt):
    """A line of prose between statements; dropped before compiling."""

    _fields = ()

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Writer:
    """Turns one schedule into a syntax tree."""

    def __init__(self, schedule: Schedule, plan: Plan) -> None:
        self.schedule, self.plan = schedule, plan
        self.identifiers: dict[int, str] = {}
        self.keep: list[Any] = []                     # ids stay unique while their objects live
        self.taken = set(_RESERVED)
        self.table: dict[str, str] = {}               # identifier → name in the program
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.kernels: dict[str, Any] = {}
        self.scalars: dict[Any, str] = {}
        self.before: list[ast.stmt] = []              # the body of prepare
        self.bound: dict[str, str] = {}               # "np.add.reduce" → identifier
        self.op: Operator | None = None
        self.fixed: set[int] = set()                  # Arrays whose memory is the same in every run

    def module(self) -> ast.Module:
        """The whole source."""
        for name, array in self.schedule.state.items():
            target = self.name(array)
            self.fixed.add(id(array))
            self.before.append(_assign(target, _index("parameters", name_key(target))))
            self.table[target] = name
        for buffer in self.plan.buffers:
            self.buffer(buffer)
        feeds = [self.name(a) for a in self.schedule.feeds.values()]
        self.table.update(zip(feeds, self.schedule.feeds, strict=True))
        body = self.statements(self.schedule.items)
        body.append(ast.Return(ast.List([self.fetched(a) for a in self.schedule.fetched], ast.Load())))
        step = _function("step", feeds, body)
        fits = _function("fits", feeds, [ast.Return(self.fits(feeds))])
        made = _function("prepare", ["parameters", "kernels", "constants"], [*self.before, step, fits, ast.Return(ast.Tuple([_name("step"), _name("fits")], ast.Load()))])
        return ast.Module([made], [])

    def fits(self, feeds: list[str]) -> ast.expr:
        """Whether feeds are arrays of the shapes and dtypes that this source is for."""
        tests: list[ast.expr] = []
        for name, array in zip(feeds, self.schedule.feeds.values(), strict=True):
            dtype = self.unique(f"{array.dtype.name}_")
            self.before.append(_assign(dtype, _call("np.dtype", [ast.Constant(array.dtype.name)])))
            for left, right in (("type(x)", _path("np.ndarray")), ("x.shape", self.value(array.shape)), ("x.dtype", _name(dtype))):
                is_ = ast.Eq() if left == "x.shape" else ast.Is()
                node = _call("type", [_name(name)]) if left == "type(x)" else _path(left.replace("x", name, 1))
                tests.append(ast.Compare(node, [is_], [right]))
        return ast.BoolOp(ast.And(), tests) if tests else ast.Constant(True)

    def buffer(self, buffer: Any) -> None:
        """Memory that is used again in every run."""
        names = ", ".join(dict.fromkeys(clean(a.name) for a in buffer.holds if a.name))
        self.before.append(Comment(f"holds {names}" if names else "holds values on the way"))
        target = self.unique(buffer.name)
        for array in buffer.holds:
            self.identifiers[id(array)] = target
            self.fixed.add(id(array))
        like = buffer.like
        order = tuple(sorted(range(like.ndim), key=lambda k: -like.strides[k])) if not like.flags.c_contiguous else ()
        shape, dtype = tuple(like.shape[k] for k in order) if order else like.shape, like.dtype.name
        make = "zeros"
        if not self.kernels.setdefault("zeros", aligned_zeros) or "zeros" not in self.bound:
            self.bound["zeros"] = "zeros"
            self.before.insert(0, _assign("zeros", _index("kernels", "zeros")))
        made = _call(make, [self.value(shape), ast.Constant(dtype)])
        if order:
            made = _call("np.transpose", [made, self.value(tuple(order.index(k) for k in range(like.ndim)))])
        self.before.append(_assign(target, made))

    def fetched(self, array: Array) -> ast.expr:
        """A result: always an array of its own."""
        if id(array) in self.plan.placed and not array.fixed:
            return ast.Call(ast.Attribute(self.value(array), "copy", ast.Load()), [], [])
        return _call("np.array", [self.value(array)])

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
        context = _call("np.errstate", [], keywords)
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
        if call.kind == "view" and isinstance(call.out, Array) and id(call.args[0]) in self.fixed and not _arrays(call.args[1:]):
            self.before += self.item(call)
        elif id(call.out) in self.plan.constant:
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

    def call(self, call: Call) -> ast.stmt:
        """The statement of one call."""
        out = call.out
        place = call.into if call.into is not None else out if isinstance(out, Array) and id(out) in self.plan.placed else None
        if call.kind == "fill":
            return self.fill(call, place)
        if call.kind == "check":
            return self.check(call)
        if call.path == "[]=":
            place_in = ast.Subscript(self.value(call.args[0]), self.subscript(call.args[1]), ast.Store())
            return ast.Assign([place_in], self.value(call.args[2]))
        if call.path == "[]":
            value: ast.expr = ast.Subscript(self.value(call.args[0]), self.subscript(call.args[1]), ast.Load())
        elif call.path == ".astype":
            value = ast.Call(ast.Attribute(self.value(call.args[0]), "astype", ast.Load()), [self.value(call.args[1])], [])
        elif call.function is np.transpose and all(a is None for a in call.args[1:]) and not call.kwargs:
            value = ast.Attribute(self.value(call.args[0]), "T", ast.Load())
        elif call.kind == "opaque":
            value = ast.Call(_name(self.kernel(call)), *self.arguments(call))
        else:
            path = "np.dot" if call.function is np.matmul and _is_plain_product(call) else call.path
            value = ast.Call(self.function(path), *self.arguments(call, place))
        if call.kind in ("write", "store") or (place is not None and call.kind == "compute"):
            return ast.Expr(value)
        if isinstance(out, list):
            return ast.Assign([ast.Tuple([_name(self.name(a), ast.Store()) for a in out], ast.Store())], value)
        return _assign(self.name(out), value)

    def check(self, call: Call) -> ast.stmt:
        """A condition without which the kernel raises: then it is called, and does."""
        condition, expected, args, attrs = call.args
        test = self.value(condition)
        failing = Call("opaque", call.path + "_refuses", refusal(call.function), args, attrs, None)
        raises = ast.Expr(ast.Call(_name(self.kernel(failing)), *self.arguments(failing)))
        return ast.If(ast.UnaryOp(ast.Not(), test) if expected else test, [raises], [])

    def fill(self, call: Call, place: Array | None) -> ast.stmt:
        """An array of one value, or memory with nothing in it yet."""
        shape, value, dtype = call.args
        if place is not None:
            if value is None:
                return ast.Pass()
            return ast.Expr(ast.Call(ast.Attribute(self.value(place), "fill", ast.Load()), [self.value(value)], []))
        if value is None:
            return _assign(self.name(call.out), _call("np.empty", [self.value(tuple(shape) if isinstance(shape, list) else shape), self.value(dtype)]))
        return _assign(self.name(call.out), _call("np.full", [self.value(shape), self.value(value), self.value(dtype)]))

    def arguments(self, call: Call, place: Array | None = None) -> tuple[list[ast.expr], list[ast.keyword]]:
        """The arguments of a call; numbers beside arrays become arrays made once."""
        args = [self.operand(call, a) for a in call.args]
        if place is not None and call.path.endswith(".reduce") and call.kwargs.keys() <= {"axis", "keepdims"} and len(args) == 1:
            args += [self.value(call.kwargs.get("axis", 0)), ast.Constant(None), self.value(place)]
            return args + ([ast.Constant(True)] if call.kwargs.get("keepdims") else []), []
        keywords = [ast.keyword(k, self.value(v)) for k, v in call.kwargs.items() if not _is_default(k, v)]
        if place is not None and isinstance(call.function, np.ufunc) and not keywords and call.function not in _BY_NAME:
            args.append(self.value(place))
        elif place is not None and call.function is np.dot:
            args.append(self.value(place))
        elif place is not None:
            keywords.append(ast.keyword("out", self.value(place)))
        return args, keywords

    def operand(self, call: Call, value: Any) -> ast.expr:
        if call.kind != "compute" or type(value) not in (int, float) or not isinstance(call.function, np.ufunc):
            return self.value(value)
        dtypes = {a.dtype for a in call.args if isinstance(a, Array)}
        if len(dtypes) != 1 or next(iter(dtypes)).kind != "f":
            return self.value(value)
        return _name(self.scalar(value, dtypes.pop()))

    def scalar(self, value: float, dtype: np.dtype[Any]) -> str:
        """A number as an array without axes: NumPy takes it faster than a number of Python."""
        key = (repr(value), dtype)
        if key not in self.scalars:
            self.scalars[key] = self.unique("c" + clean(f"{value:g}".replace("-", "m").replace(".", "p")))
            self.before.append(_assign(self.scalars[key], _call("np.array", [self.value(value), ast.Constant(dtype.name)])))
        return self.scalars[key]

    def function(self, path: str) -> ast.expr:
        """``np.add``; methods of functions are bound once."""
        if path.count(".") < 2:
            return _path(path)
        if path not in self.bound:
            self.bound[path] = self.unique(path[3:].replace(".", "_"))
            self.before.append(_assign(self.bound[path], _path(path)))
        return _name(self.bound[path])

    def kernel(self, call: Call) -> str:
        """The identifier of a kernel that is called as it is."""
        known = next((n for n, f in self.kernels.items() if f is call.function), None)
        if known is None:
            known = self.unique(clean(call.path) + ("" if call.path.endswith("_refuses") else "_kernel"))
            self.kernels[known] = call.function
            self.before.append(_assign(known, _index("kernels", known)))
        return known

    # -- control flow ----------------------------------------------------------------------

    def loop(self, item: Loop) -> Iterator[ast.stmt]:
        """``while``, ``for`` over slices, ``for`` back over what the steps saved."""
        backward = isinstance(item.op, Operator) and item.op.type.endswith("_grad")
        lists = [(value, self.unique(self.name(made) + "_steps")) for value, made in item.stacked]
        frames = None
        if not backward and item.frames is not None and self.plan.is_read(item.frames):
            frames = self.name(item.frames)
            yield _assign(frames, ast.List([], ast.Load()))
        for _, target in lists:
            yield _assign(target, ast.List([], ast.Load()))
        for _, total, _ in item.totals:
            yield _assign(self.name(total), ast.Constant(None))
        if item.carried:
            yield self.assign_all([c[1] for c in item.carried], [c[0] for c in item.carried])
        body = self.test(item)
        body += self.statements(item.body)
        self.op = None
        for value, total, _ in item.totals:
            body.append(self.add_to(total, value))
        for value, target in lists:
            body.append(_append(target, self.value(value)))
        if frames is not None:
            body.append(_append(frames, ast.Tuple([self.value(v) for v in item.saved], ast.Load())))
        if item.carried:
            body.append(self.assign_all([c[1] for c in item.carried], [c[2] for c in item.carried]))
        yield self.header(item, body or [ast.Pass()], backward)
        if item.carried:
            yield self.assign_all([c[3] for c in item.carried], [c[1] for c in item.carried])
        for _, total, like in item.totals:
            nothing = ast.Compare(_name(self.name(total)), [ast.Is()], [ast.Constant(None)])
            yield ast.If(nothing, [_assign(self.name(total), _call("np.zeros_like", [self.value(like)]))], [])
        for (value, made), (_, target) in zip(item.stacked, lists, strict=True):
            yield self.stacked(item, value, made, target, backward)

    def test(self, item: Loop) -> list[ast.stmt]:
        if item.go_on is None:
            return []
        out = self.statements(item.test)
        stop = ast.UnaryOp(ast.Not(), _call("np.all", [self.value(item.go_on)]))
        return [*out, ast.If(stop, [ast.Break()], [])]

    def header(self, item: Loop, body: list[ast.stmt], backward: bool) -> ast.stmt:
        if item.go_on is not None:
            self.kernels.setdefault("too_many_steps", too_many_steps)
            if "too_many_steps" not in self.bound:
                self.bound["too_many_steps"] = "too_many_steps"
                self.before.append(_assign("too_many_steps", _index("kernels", "too_many_steps")))
            over = _call("range", [ast.Constant(STEP_LIMIT + 1)])
            return ast.For(_name("_", ast.Store()), over, body, [ast.Expr(_call("too_many_steps", []))])
        targets: list[ast.expr] = []
        sources: list[ast.expr] = []
        if backward:
            targets.append(self.taken_apart(item.saved, self.schedule.loops[id(item.frames)].saved))
            sources.append(_call("reversed", [self.value(item.frames)]))
        for seq, local in item.slices:
            targets.append(_name(self.name(local), ast.Store()))
            back = ast.Subscript(self.value(seq), ast.Slice(step=ast.Constant(-1)), ast.Load())
            sources.append(back if backward else self.value(seq))
        if len(targets) == 1:
            return ast.For(targets[0], sources[0], body, [])
        strict = [ast.keyword("strict", ast.Constant(True))]
        return ast.For(ast.Tuple(targets, ast.Store()), _call("zip", sources, strict), body, [])

    def taken_apart(self, pairs: list[Any], saved: list[Array]) -> ast.expr:
        """The names that what a step saved has here."""
        if not pairs:
            return _name("_", ast.Store())
        here = {id(value): made for value, made in pairs}
        names = [self.name(here[id(v)]) if id(v) in here else "_" for v in saved]
        return ast.Tuple([_name(n, ast.Store()) for n in names], ast.Store())

    def add_to(self, total: Array, value: Array) -> ast.stmt:
        """``total = value if total is None else np.add(total, value)``."""
        target = self.name(total)
        nothing = ast.Compare(_name(target), [ast.Is()], [ast.Constant(None)])
        more = _call("np.add", [_name(target), self.value(value)])
        return _assign(target, ast.IfExp(nothing, self.value(value), more))

    def stacked(self, item: Loop, value: Array, made: Array, target: str, backward: bool) -> ast.stmt:
        """The values of all steps as one array; none gives an empty one."""
        order = ast.Subscript(_name(target), ast.Slice(step=ast.Constant(-1)), ast.Load()) if backward else _name(target)
        shape = (0, *value.shape) if value.like is not None else (0,)
        dtype = value.dtype if value.like is not None else np.dtype(float)
        nothing = _call("np.zeros", [self.value(shape), self.value(dtype)])
        return _assign(self.name(made), ast.IfExp(_name(target), _call("np.stack", [order]), nothing))

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
                body.append(self.assign_all([r[2] for r in item.results], [r[k] for r in item.results]))
            if not item.backward and item.frames is not None and self.plan.is_read(item.frames):
                body.append(_assign(self.name(item.frames), ast.Tuple([self.value(v) for v in item.saved[k]], ast.Load())))
            sides.append(body or [ast.Pass()])
        self.op = None
        yield ast.If(_call("np.all", [self.value(item.pred)]), *sides)

    def assign_all(self, targets: list[Array], values: list[Array]) -> ast.stmt:
        """``a, b = c, d``."""
        left = [_name(self.name(t), ast.Store()) for t in targets]
        right = [self.value(v) for v in values]
        if len(left) == 1:
            return ast.Assign([left[0]], right[0])
        return ast.Assign([ast.Tuple(left, ast.Store())], ast.Tuple(right, ast.Load()))

    # -- names and values ------------------------------------------------------------------

    def name(self, array: Array) -> str:
        """The identifier of an Array."""
        array = self.schedule.same.get(id(array), array)
        found = self.identifiers.get(id(array))
        if found is None:
            found = self.identifiers[id(array)] = self.unique(clean(array.name) if array.name else "t1")
            self.keep.append(array)
            if array.name:
                self.table.setdefault(found, array.name)
        return found

    def unique(self, wanted: str) -> str:
        """An identifier nobody has."""
        if wanted in self.taken:
            stem, k = re.sub(r"\d+$", "", wanted) if wanted[0] == "t" and wanted[1:].isdigit() else wanted + "_", 2
            while f"{stem}{k}" in self.taken:
                k += 1
            wanted = f"{stem}{k}"
        self.taken.add(wanted)
        return wanted

    def value(self, value: Any) -> ast.expr:
        """The expression of an argument."""
        if isinstance(value, Array):
            return _name(self.name(value))
        if value is None or value is Ellipsis or type(value) in (bool, int, str):
            return ast.Constant(value)
        if type(value) is float:
            return ast.Constant(value) if np.isfinite(value) else _special(value)
        if isinstance(value, tuple):
            return ast.Tuple([self.value(v) for v in value], ast.Load())
        if isinstance(value, list):
            return ast.List([self.value(v) for v in value], ast.Load())
        if isinstance(value, slice):
            return _call("slice", [self.value(v) for v in (value.start, value.stop, value.step)])
        if isinstance(value, np.dtype) or isinstance(value, type):
            return ast.Constant(np.dtype(value).name)
        if isinstance(value, _ShapeWhenRun):
            return _call("np.shape", [self.value(value.array)])
        return _name(self.constant(np.asarray(value)))

    def subscript(self, index: Any) -> ast.expr:
        """An index as it stands in brackets."""
        if isinstance(index, tuple) and index:
            return ast.Tuple([self.subscript(i) for i in index], ast.Load())
        if isinstance(index, slice):
            bounds = [None if b is None else self.value(b) for b in (index.start, index.stop, index.step)]
            return ast.Slice(*bounds)
        return self.value(index)

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """An array known before the first run."""
        target = self.unique("k1")
        self.constants[target] = array
        self.before.append(_assign(target, _index("constants", target)))
        return target


def aligned_zeros(shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Zeros that start at a multiple of 64 bytes, as vector instructions like it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + ALIGN, np.uint8)
    begin = -raw.ctypes.data % ALIGN
    return raw[begin : begin + size].view(dtype).reshape(shape)


@lru_cache(maxsize=None)
def refusal(kernel: Any) -> Any:
    """A function that raises what a kernel raises on arguments it refuses."""

    def refuse(*args: Any, **attrs: Any) -> None:
        kernel(*args, **attrs)
        raise AssertionError(f"{kernel.__name__} accepts what its source was compiled to refuse")

    return refuse


def too_many_steps() -> None:
    """What a loop without end comes to."""
    raise RuntimeError(f"a while loop did not end within {STEP_LIMIT} steps")


def clean(name: str) -> str:
    """An identifier like a variable's name: ``w@GRAD`` is ``w_grad``.

    >>> clean("w@GRAD"), clean("h-1/new"), clean("lambda"), clean("3d")
    ('w_grad', 'h_1_new', 'lambda_', 'v3d')
    """
    text = re.sub(r"[^A-Za-z0-9_]", "_", name.replace("@GRAD", "_grad"))[:60]
    text = text if text[:1].isalpha() else "v" + text
    return text + "_" if keyword.iskeyword(text) or keyword.issoftkeyword(text) else text


def name_key(identifier: str) -> str:
    """The key of a parameter in what ``prepare`` is given."""
    return identifier


def comment_of(op: Operator) -> str:
    """``h = mul(a, b)``, and for backward calls ``grad of: h = mul(a, b)``."""
    if op.role in ("backward",) and op.forward_op is not None:
        return "grad of: " + _said(op.forward_op)
    return _said(op)


def _said(op: Operator) -> str:
    args = [clean(n) for n in op.input_names]
    args += [f"{k}={v!r}" for k, v in op.attrs.items() if isinstance(v, bool | int | float) or (isinstance(v, tuple) and len(v) < 5 and all(isinstance(e, int) for e in v))]
    outs = ", ".join(clean(n) for n in op.output_names if not n.endswith("@SCOPES_0"))
    return f"{outs} = {op.type}({', '.join(args)})"[:120]


def _is_default(key: str, value: Any) -> bool:
    return (key == "keepdims" and value is False) or (key == "initial" and value is None)


def _arrays(values: Any) -> bool:
    return any(isinstance(v, Array) for v in values)


def _is_plain_product(call: Call) -> bool:
    """Two matrices of one dtype: ``np.dot`` gives the same bits as ``np.matmul`` with half the overhead."""
    place = call.out if call.into is None else call.into
    arrays = [*call.args, place]
    plain = all(isinstance(a, Array) and a.like is not None and a.ndim == 2 and a.dtype == place.dtype for a in arrays)
    return plain and place.like.flags.c_contiguous and place.dtype.kind == "f"


def _name(identifier: str, context: Any = None) -> ast.Name:
    return ast.Name(identifier, context or ast.Load())


def _path(path: str) -> ast.expr:
    first, *rest = path.split(".")
    node: ast.expr = _name(first)
    for part in rest:
        node = ast.Attribute(node, part, ast.Load())
    return node


def _call(path: str, args: list[ast.expr], keywords: list[ast.keyword] | None = None) -> ast.Call:
    return ast.Call(_path(path), args, keywords or [])


def _assign(target: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([_name(target, ast.Store())], value)


def _append(target: str, value: ast.expr) -> ast.Expr:
    return ast.Expr(_call(f"{target}.append", [value]))


def _index(table: str, key: str) -> ast.expr:
    return ast.Subscript(_name(table), ast.Constant(key), ast.Load())


def _special(value: float) -> ast.expr:
    if np.isnan(value):
        return _path("np.nan")
    return _path("np.inf") if value > 0 else ast.UnaryOp(ast.USub(), _path("np.inf"))


def _function(name: str, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    args = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
    return ast.FunctionDef(name, args, body, [])
