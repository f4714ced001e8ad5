"""The schedule of a program as C: three structs and one function.

    struct parameters { float w[6]; … };        what updates change, and what is only read
    struct memory { float y[8]; … };            results, and every value that loops do not keep in registers
    struct feeds { const float *x; … };
    int step(struct parameters *p, struct memory *s, const struct feeds *f);    0, or the number of what failed

It is printed from the schedule that the NumPy source comes from.  Shapes, strides and offsets are constants; a view is
an index into the memory it shows.  Text of a program becomes identifiers and comments of plain letters only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.lower import Lowering
from ...compiler.memory import refusal
from ...compiler.passes.cse import merge_common_calls, one_value_each
from ...compiler.passes.dce import tidy
from ...compiler.schedule import Array, Branch, Call, Loop, arrays_in, changed_memory, current
from ...compiler.syntax import Identifiers, clean
from ...errors import ProgramError
from ...static.program.program import Program
from ...static.run.limits import STEP_LIMIT
from .nests import (
    LETTERS,
    Element,
    Line,
    Nest,
    Part,
    Parts,
    Place,
    comment,
    looped,
    nest_text,
    one_loop,
)

TYPES = {"float64": "double", "float32": "float", "bool": "uint8_t"}
TYPES |= {f"{sign}int{n}": f"{sign}int{n}_t" for sign in ("", "u") for n in (8, 16, 32, 64)}
#: words that no member may have
RESERVED = (
    "step parameters memory feeds loop auto break case char const continue default do double else enum extern float"
    " for goto if inline int long register restrict return short signed sizeof static struct switch typedef union"
    " unsigned void volatile while main errno"
)
MACROS = re.compile(
    r"(U?INT|FP_|M_|MATH_|HUGE|NAN|INFINITY|PTRDIFF|SIZE|SIG|WCHAR|WINT)[A-Z0-9_]*|\w+_t|numpy_\w+"
)
#: sums over axes: what they start from, and how an element is added to what is there so far
REDUCTIONS = {
    np.add: ("0", "{out} + {0}"),
    np.multiply: ("1", "{out} * {0}"),
    np.maximum: ("least", "(({0} > {out}) | ({0} != {0})) ? {0} : {out}"),
    np.minimum: ("greatest", "(({0} < {out}) | ({0} != {0})) ? {0} : {out}"),
    np.logical_or: ("0", "{out} | {0}"),
    np.logical_and: ("1", "{out} & {0}"),
    np.bitwise_or: ("0", "{out} | {0}"),
}
#: those of floating-point numbers along an axis
ALONG = {
    np.add: "{out} + pairwise_T(",
    np.maximum: "along_maximum_T({out}, ",
    np.minimum: "along_minimum_T({out}, ",
}
COPIES = {
    np.positive, np.array, np.asarray, np.broadcast_to, np.squeeze, np.ndarray.astype, np.copyto,
}  # fmt: skip
MOVES = {
    np.roll, np.tile, np.tril, np.triu, np.flip, np.diagonal, np.moveaxis, np.swapaxes, np.transpose, np.expand_dims,
}  # fmt: skip
TABLE = 1 << 16  #: elements of a table of places
LONGEST_SORT = 2048  #: numbers in a row that is sorted by putting each in its place


class Unsayable(Exception):
    """There is no C for a call here."""


class Writer(Identifiers):
    """Turns the schedule of a program into C."""

    def __init__(
        self, program: Program, fetch: list[str], parameters: Any, exact: bool, max_steps: Any
    ) -> None:
        self.exact, self.max_steps = exact, max_steps
        super().__init__(Lowering(program, fetch, limit=1000).schedule, RESERVED.split())
        for change in (one_value_each, merge_common_calls, tidy):
            change(self.schedule)
        self.op: Any = None
        self.places: dict[int, Any] = {}  # id of an Array → its Place, or what a loop saved
        self.members: dict[str, list[Place]] = {"p": [], "s": [], "f": []}
        self.known: dict[str, str] = {}  # member that holds one number all the time → the number
        self.tables: dict[Any, tuple[Place, str]] = {}
        self.failures: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        self.kept: set[str] = set()
        self.changed = changed_memory(self.schedule.items)
        self.parts = Parts()
        for name, value in parameters.items():
            place = self.member(np.empty(value.shape, value.dtype), name, "p")
            self.kept.add(place.ref)
            if name in self.schedule.state:
                self.put(self.schedule.state[name], place)
        for name, array in self.schedule.feeds.items():
            if array.like is None:
                raise ProgramError(f"the size of {name!r} is open: C is written for known sizes")
            self.put(array, self.member(np.empty_like(array.like), name, "f"))
        self.items(self.schedule.items)
        if any(id(array) in self.schedule.lists for array in self.schedule.fetched):
            raise ProgramError(
                "values from inside a loop are fetched, a list with one for each step, which C does not return.\n"
                "  repair: stack them in the program (static_rnn does), or compile without backend"
            )
        self.fetched = [self.owned(self.place(a)) for a in self.schedule.fetched]
        self.kept |= {place.ref for place in self.fetched}

    def unique(self, wanted: str) -> str:
        """An identifier nobody has, and no macro."""
        return super().unique(wanted + "_v" if MACROS.fullmatch(wanted) else wanted)

    # -- memory ---------------------------------------------------------------------------------

    def put(self, array: Array, place: Any) -> None:
        """Note where an Array is."""
        self.places[id(array)] = place
        self.keep.append(array)

    def new(self, array: Array, wanted: str = "", like: Any = None) -> Place:
        """Memory for an Array, as it lies in NumPy's."""
        like = array.like if like is None else like
        if like is None:
            raise Unsayable("its size is known only when it runs")
        spans = [(n - 1) * abs(s) for n, s in zip(like.shape, like.strides, strict=True)]
        dense = like.size * like.itemsize == sum(spans) + like.itemsize
        place = self.member(np.empty_like(like) if dense else _empty(like), wanted or array.name)
        self.put(array, place)
        return place

    def member(self, like: Any, wanted: str = "", section: str = "s") -> Place:
        """A member for an array."""
        if like.dtype.name not in TYPES:
            raise Unsayable(f"there are no {like.dtype} in this C")
        name = self.unique(clean(wanted) if wanted else "t1")
        self.members[section].append(Place(f"{section}->{name}", like, like))
        return self.members[section][-1]

    def place(self, value: Any) -> Place:
        """Where an Array is; an array that is known now is in a table."""
        if isinstance(value, Place):
            return value
        if isinstance(value, Array):
            array = current(value, self.schedule.same)
            if id(array) not in self.places:
                raise Unsayable("it reads what is no array")
            return self.places[id(array)]  # type: ignore[no-any-return]
        table = np.array(value, order="C")
        if table.dtype.name not in TYPES or table.size > TABLE:
            raise Unsayable(f"it holds {table.size:,} known numbers of {table.dtype}")
        key = table.dtype.name, table.shape, table.tobytes()
        if key not in self.tables:
            name, ctype = self.unique("k1"), TYPES[table.dtype.name]
            numbers = ", ".join(literal(v, table.dtype) for v in table.ravel().tolist()) or "0"
            text = f"static const {ctype} {name}[] = {{{numbers}}};"
            self.tables[key] = Place(name, table, table), text
        return self.tables[key][0]

    def owned(self, place: Place) -> Place:
        """The same numbers in memory of the step: what is fed may be fetched, too."""
        if place.ref.startswith("f->"):
            feed, place = place, self.member(_empty(place.view), place.name)
            self.copy(place, feed)
        return place

    # -- lines and parts ------------------------------------------------------------------------

    def line(
        self,
        out: Place,
        text: str,
        operands: Any,
        shape: Any = None,
        start: Any = None,
        to: Any = None,
    ) -> None:
        """One line; an operand is a Place, an Element or a text, and ``to`` the element that it writes."""
        shape = out.view.shape if shape is None else shape
        known = [self.known.get(o.ref, o) if isinstance(o, Place) else o for o in operands]
        if math.prod(shape) or start is not None:
            name = out.ref[3:] + "_" * (out.ref[3:] in _functions())
            elements = [o.element(shape) if isinstance(o, Place) else o for o in known]
            ctype = TYPES[out.view.dtype.name]
            line = Line(name, ctype, to or out.element(), text, elements, self.op, start)
            self.parts.line(shape, line, out.ref.startswith("p->"))

    def copy(self, out: Place, source: Place) -> None:
        """``out[...] = source``, in the dtype of ``out``."""
        if out != source:
            self.line(out, cast("{0}", source.view.dtype, out.view.dtype), [source])

    def part(
        self, write: Callable[[], list[str]], reads: Any, writes: Any, fails: bool = False, inner: Any = (),
    ) -> None:  # fmt: skip
        """A piece that is written by a function."""
        read, wrote = ({p.ref for p in places} for places in (reads, writes))
        self.parts.add(Part(write, read, wrote, self.op, fails, inner))

    def every(self, batch: Any, text: str, reads: list[Place], out: Place, core: int) -> None:
        """A function of C for each index of ``batch``; {0}, {1}, … are addresses of places, ``out`` the last one."""
        names = [f"i{k}" for k in range(len(batch))]
        at = [f"&{p.element_at([*names, *'0' * core])}" for p in (*reads, out)]
        if out.view.size:
            loops = looped(zip(names, batch, strict=True), [text.format(*at)])
            self.part(lambda: loops, reads, [out])

    def fail(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The statement that leaves; ``function`` then raises the error of NumPy's kernel."""
        self.failures.append((function, args, kwargs, self.op))
        self.kept |= {self.place(a).ref for a in arrays_in((args, kwargs))}
        return f"    return {len(self.failures)};"

    # -- calls ----------------------------------------------------------------------------------

    def items(self, items: list[Any]) -> None:
        """The parts of calls, loops and branches."""
        for item in items:
            self.op = item.op or self.op
            try:
                getattr(self, type(item).__name__.lower())(item)
            except Unsayable as why:
                what = self.op.type if self.op is not None else item.path
                line = getattr(self.op, "source_line", "")
                raise ProgramError(
                    f"{what} cannot be said in C: {why}\n  at {line}\n"
                    f"  repair: static.compile(program, …) without backend, which takes every operator"
                ) from None

    def call(self, call: Call) -> None:
        """By the kind of a call, by what its function is, or by its name."""
        function, args = call.function, call.args
        owner = getattr(function, "__self__", None)
        if call.kind in ("view", "fill", "slab", "check", "opaque"):
            getattr(self, call.kind)(call)
        elif function is np.matmul or function is np.dot:
            self.product(call)
        elif isinstance(function, np.ufunc):
            if call.kwargs or function.signature is not None:
                raise Unsayable(f"{call.path} with {', '.join(call.kwargs) or 'several axes'}")
            *loop, result = function.resolve_dtypes((*map(_dtype, args), None))
            self.formula(call, function.__name__, args, loop, result)
        elif isinstance(owner, np.ufunc):
            getattr(self, function.__name__)(owner, call)
        elif function in COPIES:
            source = self.place(args[function is np.copyto])
            out = self.place(args[0]) if function is np.copyto else self.out(call)
            if function is np.squeeze:
                source = source.shown(np.squeeze(source.view, *args[1:], **call.kwargs))
            self.copy(out, source.shown(np.broadcast_to(source.view, out.view.shape)))
        elif function in MOVES:
            self.moved(call)
        else:
            name = call.path.removeprefix("np.").removeprefix(".")
            name = {"[]": "getitem", "[]=": "setitem"}.get(name, name)
            write = getattr(self, f"say_{name}", None)
            if write is None:
                raise Unsayable(f"{call.path} has no counterpart here")
            write(call, *args, **call.kwargs)

    def out(self, call: Call) -> Place:
        """Where the result goes."""
        return self.place(call.into) if call.into is not None else self.new(call.out)

    def formula(self, call: Call, name: str, args: Any, loop: list[Any], result: Any) -> None:
        """An expression of the table, on operands brought to the dtype of its loop."""
        template, out = expression(name, loop[-1]), self.out(call)
        if template is None or any(d.name not in TYPES for d in [*loop, result]):
            raise Unsayable(f"there is no C for np.{name} on {loop[-1]}")
        whole = name in _expressions()["loops"] and loop[-1].kind == "f"
        if whole and {*loop, result, out.view.dtype} == {result}:
            self.mapped(name, out, [self.converted(a, result) for a in args])
            return
        text = typed(template, TYPES[loop[-1].name])
        operands: list[Any] = []
        texts: list[str] = []
        for k, (a, dtype) in enumerate(zip(args, loop, strict=True)):
            is_array = isinstance(a, Array) or np.ndim(a)
            operands.append(self.place(a) if is_array else literal(a, dtype))
            shown = f"{{{k}}}"
            texts.append(_atom(cast(shown, operands[k].view.dtype, dtype)) if is_array else shown)
        text = re.sub(r"\{(\d)\}", lambda m: texts[int(m[1])], text)
        if result.kind in "iu" and result.itemsize < 4:
            text = f"({TYPES[result.name]})({text})"
        text = cast(_atom(text), result, out.view.dtype) if result != out.view.dtype else text
        self.line(out, text, operands)

    def converted(self, value: Any, dtype: np.dtype[Any]) -> Place:
        """A value in memory, in a dtype."""
        if not isinstance(value, Array):
            return self.place(np.asarray(value, dtype))
        if value.dtype == dtype:
            return self.place(value)
        out = self.member(np.empty(value.shape, dtype), value.name)
        self.copy(out, self.place(value))
        return out

    def mapped(self, name: str, out: Place, operands: list[Place]) -> None:
        """A function of each element."""
        elements = [p.element(out.view.shape) for p in (*operands, out)]
        outer, count, given = one_loop(out.view.shape, elements)
        run = f"each_{name}_{TYPES[out.view.dtype.name]}({count}, {given});"
        if out.view.size:
            self.part(lambda: looped(outer, [run]), operands, [out])

    def view(self, call: Call) -> None:
        """Other elements of the same memory; a copy where there is no such view."""
        source, like = self.place(call.args[0]), call.args[0].like
        strided = call.function is np.lib.stride_tricks.as_strided
        if strided and like.strides != source.view.strides:
            laid_out = self.member(np.empty_like(like))
            self.copy(laid_out, source)
            source = laid_out
        view = call.function(source.view, *call.args[1:], **call.kwargs)
        if np.may_share_memory(view, source.view) or not view.size:
            self.put(call.out, source.shown(view))
        else:
            out = self.new(call.out, like=_empty(view))
            self.copy(out.shown(out.view.reshape(source.view.shape)), source)

    def fill(self, call: Call) -> None:
        """Memory of one value."""
        out, value = self.new(call.out), call.args[1]
        if value is not None:
            number = literal(value, out.view.dtype)
            if not {id(r) for r in call.out.roots} & self.changed:
                self.known[out.ref] = number
            self.line(out, number, [])

    def slab(self, call: Call) -> None:
        self.new(call.out)

    def check(self, call: Call) -> None:
        """A condition without which the kernel raises."""
        condition, expected, args, attrs = call.args
        place = self.place(condition)
        test = f"if ({'!' if expected else ''}{place.first})"
        leave = self.fail(refusal(call.function), args, attrs)
        self.part(lambda: [test, leave], [place], [], fails=True)

    def opaque(self, call: Call) -> None:
        """A kernel that could not be recorded, if there is an expression for it."""
        if call.path == "einsum":
            self.say_einsum(call, call.kwargs["subscripts"], *call.args)
            return
        dtype = self.place(call.args[0]).view.dtype
        if call.kwargs or dtype.kind != "f" or expression(call.path, dtype) is None:
            raise Unsayable("its kernel decides on values")
        call.into = None
        self.formula(call, call.path, call.args, [dtype] * len(call.args), dtype)

    # -- sums over axes, and products -------------------------------------------------------------

    def reduce(self, ufunc: Any, call: Call) -> None:
        """A sum over axes, with any operator."""
        how = {k: v for k, v in call.kwargs.items() if v is not None and k != "dtype"}
        axis, first = call.kwargs.get("axis", 0), how.pop("initial", None)
        wide, x = how.pop("keepdims", False), self.place(call.args[0])
        if how.keys() - {"axis"} or len(call.args) > 1 or ufunc not in REDUCTIONS:
            raise Unsayable(f"{call.path} with {', '.join(how) or 'several arguments'}")
        axes = range(x.view.ndim) if axis is None else np.atleast_1d(axis).tolist()
        axes = [a % x.view.ndim for a in axes] if x.view.ndim else []
        out = self.out(call)
        dtype = out.view.dtype
        stretched = out.view if wide else np.expand_dims(out.view, axes)
        to = out.shown(np.broadcast_to(stretched, x.view.shape)).element()
        start, text = REDUCTIONS[ufunc]
        one_type = x.view.dtype == dtype and dtype.kind == "f" and first is None
        inner = one_type and ALONG.get(ufunc)
        if inner and self.along(inner, x, axes, extreme(start, dtype), out, to):
            return
        if dtype.kind != "f":
            text = text.replace(" | ({0} != {0})", "")
        start = extreme(start, dtype) if first is None else literal(first, dtype)
        text = text.replace("{0}", cast("{0}", x.view.dtype, dtype))
        self.line(out, text, [x], x.view.shape, start, to)

    def along(
        self, text: str, x: Place, axes: list[int], start: str, out: Place, to: Element
    ) -> bool:
        """A sum in NumPy's order, where it runs along the innermost axis in memory; else False."""
        shape = x.view.shape
        order = [k for k, n in enumerate(shape) if n != 1]
        order.sort(key=lambda k: -abs(x.strides[k]))
        if not order or order[-1] not in axes:
            return False
        count, step = shape[order[-1]], x.strides[order.pop()]
        while order and order[-1] in axes and x.strides[order[-1]] == step * count:
            count *= shape[order.pop()]
        first = x.element()._replace(many=count).along(order)
        text = text.replace("T(", TYPES[out.view.dtype.name] + "(") + f"&{{0}}, {count}, {step})"
        self.line(out, text, [first], tuple(shape[k] for k in order), start, to.along(order))
        return True

    def accumulate(self, ufunc: Any, call: Call) -> None:
        """Sums so far along an axis."""
        x, out = self.place(call.args[0]), self.out(call)
        if ufunc not in (np.add, np.multiply) or not x.view.ndim:
            raise Unsayable(f"{call.path} has no counterpart here")
        x, out = (p.shown(np.moveaxis(p.view, call.kwargs.get("axis", 0), 0)) for p in (x, out))
        self.copy(out.shown(out.view[:1]), x.shown(x.view[:1]))
        after = _atom(cast("{1}", x.view.dtype, out.view.dtype))
        text = f"{{0}} {'+' if ufunc is np.add else '*'} {after}"
        self.line(
            out.shown(out.view[1:]), text, [out.shown(out.view[:-1]), x.shown(x.view[1:])], start=""
        )

    def product(self, call: Call) -> None:
        """Matrix products, of stacks, too."""
        x, y = (self.place(a) for a in call.args)
        out = self.out(call)
        if call.function is np.dot and max(x.view.ndim, y.view.ndim) > 2:
            raise Unsayable("np.dot of stacks")
        a, b, c = x, y, out
        if y.view.ndim == 1:
            b, c = y.shown(y.view[:, None]), c.shown(c.view[..., None])
        if x.view.ndim == 1:
            a, c = x.shown(x.view[None]), c.shown(c.view[..., None, :])
        self.multiply(a, b, c)

    def multiply(self, a: Place, b: Place, c: Place) -> None:
        """c = a b, of matrices or stacks of them."""
        *batch, m, n = c.view.shape
        k, dtype, letters = a.view.shape[-1], c.view.dtype, "abcdefgh"[: len(batch)]
        tiny = not self.exact and m * n * k <= 4096 and (b.strides[-1] == 1 or 1 in (m, n))
        if tiny or not k or dtype.kind == "b" or not a.view.dtype == b.view.dtype == dtype:
            said = [letters[len(batch) + 2 - p.view.ndim :] for p in (a, b)]
            self.contract(c, letters + "mn", [(a, said[0] + "mk"), (b, said[1] + "kn")])
            return
        wide = [p.shown(np.broadcast_to(p.view, (*batch, *p.view.shape[-2:]))) for p in (a, b, c)]
        steps = ", ".join(f"{{{i}}}, {p.strides[-2]}, {p.strides[-1]}" for i, p in enumerate(wide))
        text = f"product_{TYPES[dtype.name]}({m}, {n}, {k}, {steps});"
        self.every(batch, text, wide[:2], wide[2], 2)

    def contract(self, out: Place, labels: str, factors: list[tuple[Place, str]]) -> None:
        """Products added up over the letters that ``out`` does not have: a sum over axes."""
        letters = dict.fromkeys("".join(said for _, said in factors))
        order = [*labels[:-1], *(c for c in letters if c not in labels), *labels[-1:]]
        sizes = dict.fromkeys(order, 1)
        for place, said in factors:
            sizes |= {c: n for c, n in zip(said, place.view.shape, strict=True) if n != 1}
        dtype = out.view.dtype
        if dtype.kind not in "fiu" or len(set(labels)) != len(labels):
            raise Unsayable(f"products of {dtype} with these axes")

        def element(place: Place, said: str) -> Element:
            axes = list(zip(place.strides, place.view.shape, said, strict=True))
            steps = tuple(sum(s for s, n, d in axes if d == c and n > 1) for c in order)
            return place.element()._replace(strides=steps)

        casts = [_atom(cast(f"{{{k}}}", p.view.dtype, dtype)) for k, (p, _) in enumerate(factors)]
        text = "{out} + " + " * ".join(casts)
        elements = [element(*factor) for factor in factors]
        self.line(out, text, elements, tuple(sizes.values()), "0", element(out, labels))

    @staticmethod
    def is_product(given: str, labels: str) -> bool:
        """Whether an einsum is a product of two matrices, or of two stacks of them."""
        a, _, b = given.partition(",")
        own = [set(a) - set(b), set(b) - set(a), set(a) - set(labels)]
        return [len(s) for s in own] == [1, 1, 1] and len(a) == len(b) == len(labels)

    def say_einsum(self, call: Call, subscripts: str, *xs: Any, optimize: bool = False) -> None:
        if "." in subscripts:
            raise Unsayable("its axes are not all named")
        given, arrow, labels = subscripts.replace(" ", "").partition("->")
        if not arrow:
            labels = "".join(sorted(c for c in set(given) - {","} if given.count(c) == 1))
        factors = [(self.place(x), said) for x, said in zip(xs, given.split(","), strict=True)]
        if self.is_product(given, labels):
            (x, a), (y, b) = factors
            batch = [c for c in labels if c in a and c in b]
            m, n, k = (next(c for c in s if c not in t) for s, t in ((a, b), (b, a), (a, labels)))
            turned = [(x, a, [m, k]), (y, b, [k, n]), (self.out(call), labels, [m, n])]
            self.multiply(*(
                p.shown(np.transpose(p.view, [*map(said.index, [*batch, *last])]))
                for p, said, last in turned
            ))  # fmt: skip
            return
        self.contract(self.out(call), labels, factors)

    # -- other functions ------------------------------------------------------------------------

    def say_where(self, call: Call, *args: Any) -> None:
        dtype = call.out.dtype
        self.formula(call, "where", args, [np.dtype(bool), dtype, dtype], dtype)

    def say_clip(self, call: Call, *args: Any) -> None:
        self.formula(call, "clip", args, [call.out.dtype] * 3, call.out.dtype)

    def say_round(self, call: Call, x: Any, decimals: int = 0) -> None:
        if decimals:
            raise Unsayable("round to decimals")
        self.formula(call, "rint", (x,), [call.out.dtype], call.out.dtype)

    def say_concatenate(self, call: Call, arrays: Any, axis: int = 0) -> None:
        out, sources = self.out(call), [self.place(a) for a in arrays]
        ends = np.cumsum([p.view.shape[axis] for p in sources])
        for source, part in zip(sources, np.split(out.view, ends[:-1], axis), strict=True):
            self.copy(out.shown(part), source)

    def say_stack(self, call: Call, arrays: Any, axis: int = 0) -> None:
        out = self.out(call)
        for k, a in enumerate(arrays):
            self.copy(out.shown(np.moveaxis(out.view, axis, 0)[k, ...]), self.place(a))

    def moved(self, call: Call) -> None:
        """Elements in another place: each number of a table says which one, 0 that it is zero."""
        source = self.place(call.args[0])
        numbers = np.arange(1, source.view.size + 1).reshape(source.view.shape)
        chosen = call.function(numbers, *call.args[1:], **call.kwargs)
        element = self.chosen(source, np.concatenate([[0], _offsets(source).ravel()])[chosen])
        if chosen.all():
            self.line(self.out(call), "{0}", [element])
        else:
            self.line(self.out(call), "{0} ? {1} : 0", [self.place(chosen != 0), element])

    def say_argsort(self, call: Call, x: Any, axis: int = -1, kind: Any = None) -> Place:
        x = self.place(x)
        order = self.member(np.empty(x.view.shape, np.int64), "order")
        x_, order_ = (p.shown(np.moveaxis(np.atleast_1d(p.view), axis, -1)) for p in (x, order))
        *batch, n = x_.view.shape
        if n > LONGEST_SORT:
            raise Unsayable(f"rows of {n:,} are sorted elsewhere")
        steps = x_.strides[-1], order_.strides[-1]
        text = f"argsort_{TYPES[x.view.dtype.name]}({n}, {{0}}, {steps[0]}, {{1}}, {steps[1]});"
        self.every(batch, text, [x_], order_, 1)
        if call.out.dtype == np.int64 and call.path.endswith("argsort"):
            self.copy(self.out(call), order)
        return order

    def say_sort(self, call: Call, x: Any, axis: int = -1, kind: Any = None) -> None:
        index = _along(self.say_argsort(call, x, axis), self.place(x).view.shape, axis)
        self.pick(self.out(call), self.place(x), index, None)

    # -- places that are looked up ----------------------------------------------------------------

    def chosen(self, x: Place, offsets: Any) -> Element:
        """Elements in places that are known: a view where they lie regularly, a table else."""
        strides, first = _affine(offsets)
        if strides is not None:
            return Element(x.ref, strides, first, x.at)
        table = self.place(offsets.astype(np.int32)).element()
        return Element(x.ref, (0,) * offsets.ndim, 0, x.at, ((table, 0, 1),))

    def looked_up(self, x: Place, index: Any, call: Call | None) -> tuple[Element, Any]:
        """The element of ``x[index]`` for each index of the result, and its shape.

        ``call`` raises where the index points outside.
        """
        index = index if isinstance(index, tuple) else (index,)
        parts = [self.place(p) if isinstance(p, Array) else p for p in index]
        arrays = [p for p in map(self.place, filter(_is_array, parts))]
        if any(p.view.dtype.kind not in "iu" for p in arrays):
            raise Unsayable("a mask chooses how many")
        zero = [np.zeros(p.view.shape, int) if isinstance(p, Place) else p for p in parts]
        offsets = _offsets(x)[tuple(zero)]
        element = self.chosen(x, offsets)
        for k, place in enumerate(parts):
            if not isinstance(place, Place):
                continue
            rest = [p for p in parts[k:] if p is not None]
            behind = any(p is Ellipsis for p in parts[:k])
            axis = x.view.ndim - len(rest) if behind else sum(p is not None for p in parts[:k])
            length, size = x.view.shape[axis], place.view.size
            if call is not None:
                self.check_range(place, length, call)
            rows = np.expand_dims(
                _offsets(place).ravel(), [a for a in range(x.view.ndim) if a != axis]
            )
            every = np.broadcast_to(
                rows, [size if a == axis else n for a, n in enumerate(x.view.shape)]
            )
            own = (*zero[:k], np.arange(size).reshape(place.view.shape), *zero[k + 1 :])
            at = (self.chosen(place, every[own]), length, x.strides[axis])
            element = element._replace(looked_up=(*element.looked_up, at))
        return element, offsets.shape

    def check_range(self, index: Place, length: int, call: Call) -> None:
        """Leave if an index points outside."""
        names = [f"i{k}" for k in range(index.view.ndim)]
        at = index.element_at(names)
        test = [
            f"if ({at} < -{length} || {at} >= {length})",
            self.fail(call.function, call.args, call.kwargs),
        ]
        loops = looped(zip(names, index.view.shape, strict=True), test)
        self.part(lambda: loops, [index], [], fails=True)

    def pick(self, out: Place, x: Place, index: Any, call: Call | None) -> None:
        """``out = x[index]``."""
        self.line(out, "{0}", [self.looked_up(x, index, call)[0]])

    def say_getitem(self, call: Call, x: Any, index: Any) -> None:
        self.pick(self.out(call), self.place(x), index, call)

    def say_take(
        self, call: Call, x: Any, indices: Any, axis: Any = None, mode: str = "raise"
    ) -> None:
        source = self.place(x)
        if axis is None:
            flat = source.view.reshape(-1)
            if flat.size and not np.may_share_memory(flat, source.view):
                raise Unsayable("take from what does not lie in one piece")
            source, axis = source.shown(flat), 0
        if mode != "raise":
            raise Unsayable("take with a mode")
        at = indices if isinstance(indices, Array) else np.asarray(indices)
        self.pick(self.out(call), source, (*[slice(None)] * (axis % source.view.ndim), at), call)

    def say_take_along_axis(self, call: Call, x: Any, indices: Any, axis: int = -1) -> None:
        index = _along(self.place(indices), x.shape, axis)
        self.pick(self.out(call), self.place(x), index, call)

    def say_put_along_axis(
        self, call: Call, x: Any, indices: Any, values: Any, axis: int = -1
    ) -> None:
        self.say_setitem(call, x, _along(self.place(indices), x.shape, axis), values)

    def at(self, ufunc: Any, call: Call) -> None:
        """``np.add.at``: one after the other."""
        if ufunc is not np.add:
            raise Unsayable(f"{call.path} has no counterpart here")
        x, index, value = call.args
        text = "{out} | {0}" if x.dtype.kind == "b" else "{out} + {0}"
        self.say_setitem(call, x, index, value, text)

    def say_setitem(self, call: Call, x: Any, index: Any, value: Any, text: str = "{0}") -> None:
        """Values into places that are looked up, in order."""
        target = self.place(x)
        element, shape = self.looked_up(target, index, call)
        dtype = target.view.dtype
        given = self.place(value) if _is_array(value) else literal(value, dtype)
        if isinstance(given, Place):
            text = text.replace("{0}", _atom(cast("{0}", given.view.dtype, dtype)))
        self.line(target, text, [given], shape, "", element)

    # -- loops and branches -----------------------------------------------------------------------

    @contextmanager
    def block(self, items: list[Any]) -> Iterator[Parts]:
        """The parts of a body; what is said in the block comes behind it."""
        outer, op = self.parts, self.op
        self.parts = inner = Parts()
        self.items(items)
        self.op = op
        yield inner
        self.parts = outer

    def loop(self, loop: Loop) -> None:
        """``while`` and ``recurrent``, forwards and back."""
        if loop.gathered:
            raise Unsayable("values of every step are fetched")
        back, t = loop.op.type.endswith("_grad"), self.unique("step1")
        begins = []
        for start, begin, _, final in loop.carried:
            begins.append(self.new(begin, like=self.place(start).view))
            self.copy(begins[-1], self.place(start))
            self.put(final, begins[-1])
        frames = self.places[id(loop.frames)] if back else self.frames(loop)
        steps, count = frames["steps"], frames["count"]
        for seq, part in loop.slices:
            self.put(part, _row(self.place(seq), t))
        for value, here in loop.saved if back else ():
            self.put(here, _mapped(frames[id(value)], partial(_row, t=t)))
        for _, total, like in loop.totals:
            place = self.new(total, like=_empty(self.place(like).view))
            whole = count or place.view.dtype.kind != "f"
            self.line(place, "0" if whole else "-0.0", [])
        with self.block(loop.test) as test:
            pass
        with self.block(loop.body) as body:
            self.hand_on(loop, frames, begins, t, back)
        head = f"for (int {t} = 0; {t} < {steps}; {t}++) {{"
        if back:
            last = f"(int){count.first}" if count else steps
            head = f"for (int {t} = {last} - 1; {t} >= 0; {t}--) {{"
        before, stop, after, reads = [], [], [], [*begins, *([count] if count else [])]
        if loop.go_on is not None:
            limit = min(STEP_LIMIT, steps) if loop.saved else STEP_LIMIT
            leave = self.fail("steps", (limit,), {})
            go_on = self.place(loop.go_on)
            reads.append(go_on)
            head = f"for (int {t} = 0;; {t}++) {{"
            before, after = [f"{count.first} = 0;"], [f"{count.first} = {t} + 1;"]
            stop = [f"if (!{go_on.first})", "    break;", f"if ({t} == {limit})", leave]

        def write() -> list[str]:
            lines = [*self.written(test), *stop, *self.written(body), *after]
            return [*before, head, *_indent(lines), "}"]

        self.part(write, reads, reads[: len(begins) + bool(count)], bool(stop), (test, body))

    def frames(self, loop: Loop) -> dict[Any, Any]:
        """What a loop keeps for its grad op: the most steps it makes, the place of their number, values of each."""
        count = None
        if loop.go_on is None:
            steps = len(self.place(loop.slices[0][0]).view)
        elif loop.saved and self.max_steps is None:
            why = "the gradient of a while loop needs the values of every step: give max_steps=…"
            raise Unsayable(why)
        else:
            steps, count = self.max_steps or 0, self.member(np.empty(1, np.int64), "steps")
        frames = {"steps": steps, "count": count}
        if loop.frames is not None:
            self.put(loop.frames, frames)
        return frames

    def hand_on(self, loop: Loop, frames: Any, begins: list[Place], t: str, back: bool) -> None:
        """Behind a step: what it saves, adds up, stacks and hands to the next one."""

        def saved(place: Place) -> Place:
            whole = self.member(_rows(frames["steps"], place), f"{place.name}_saved")
            self.copy(_row(whole, t), place)
            return whole

        for value in () if back else loop.saved:
            frames[id(value)] = _mapped(self.places[id(current(value, self.schedule.same))], saved)
            self.keep.append(value)
        for value, total, _ in loop.totals:
            self.line(self.place(total), "{0} + {1}", [self.place(total), self.place(value)])
        for value, stack in loop.stacked:
            given = self.place(value)
            whole = self.new(stack, like=_rows(frames["steps"], given))
            self.copy(_row(whole, t), given)
        nexts = [self.place(c[2]) for c in loop.carried]
        for k, (begin, value) in enumerate(zip(begins, nexts, strict=True)):
            if value != begin and value.ref in {b.ref for b in begins}:
                nexts[k] = self.member(_empty(value.view), "held")
                self.copy(nexts[k], value)
        for begin, value in zip(begins, nexts, strict=True):
            self.copy(begin, value)

    def branch(self, branch: Branch) -> None:
        """``cond`` and its grad op."""
        pred = self.place(branch.pred)
        if pred.view.size != 1:
            raise Unsayable("a condition of several elements")
        saved = [*branch.saved[0], *branch.saved[1]]
        for value, here in saved if branch.backward else ():
            self.put(here, self.places[id(branch.frames)][id(value)])
        results: list[Place] = []
        sides = []
        for k, items in enumerate(branch.bodies):
            with self.block(items) as side:
                for n, row in enumerate(branch.results):
                    value = self.place(row[k])
                    if k == 0:
                        results.append(self.new(row[2], like=_empty(value.view)))
                    self.copy(results[n], value)
            sides.append(side)
        if branch.frames is not None and not branch.backward:
            frames = {id(v): self.places[id(current(v, self.schedule.same))] for v in saved}
            self.kept |= {p.ref for p in _places_in(frames)}
            self.put(branch.frames, frames)
            self.keep += saved

        def write() -> list[str]:
            yes, no = (_indent(self.written(side)) for side in sides)
            return [f"if ({pred.first}) {{", *yes, *(["} else {", *no] if no else []), "}"]

        self.part(write, [pred], results, inner=sides)

    # -- the text ---------------------------------------------------------------------------------

    def written(self, block: Parts) -> list[str]:
        """The text of parts."""
        out: list[str] = []
        for part in block.parts:
            if isinstance(part, Nest):
                out += nest_text(part, partial(self.is_needed, part))
            else:
                out += [comment(part.op), *part.write()]
        return out

    def is_needed(self, nest: Part, ref: str) -> bool:
        """Whether anything but this nest reads a member."""
        return ref in self.kept or bool(self.readers.get(ref, set()) - {id(nest)})

    def text(self) -> str:
        """The whole file."""
        self.readers = self.parts.readers()
        body = self.written(self.parts)
        words = set(re.findall(r"\b(?:[psf]->)?[A-Za-z]\w*", "\n".join(body)))
        structs = []
        for section, name in (("p", "parameters"), ("s", "memory"), ("f", "feeds")):
            used = [
                m for m in self.members[section] if section == "f" or m.ref in self.kept | words
            ]
            self.members[section], lines = used, [f"    {_declared(m)}" for m in used]
            structs += [f"struct {name} {{", *(lines or ["    char nothing;"]), "};", ""]
        unused = [f"(void){v};" for v in "psf" if not any(w.startswith(f"{v}->") for w in words)]
        tables = [text for place, text in self.tables.values() if place.ref in words]
        return "\n".join([
            "#include <math.h>", "#include <stdint.h>", "",
            *helpers_in("\n".join(body)), *tables, *([""] if tables else []), *structs,
            "int step(struct parameters *restrict p, struct memory *restrict s, const struct feeds *restrict f) {",
            *_indent([*unused, *body, "return 0;"]), "}", "",
        ])  # fmt: skip


def padded(array: Any) -> int:
    """The bytes of an array as a member, so that every member begins at a multiple of 64."""
    lanes: int = -(-array.nbytes // 64)
    return max(lanes, 1) * 64


def _declared(member: Place) -> str:
    base = member.base
    if member.ref.startswith("f->"):
        return f"const {TYPES[base.dtype.name]} *{member.name}; /* {[*base.shape]} */"
    size = f"{member.name}[{padded(base) // base.itemsize}]"
    return f"{TYPES[base.dtype.name]} {size}; /* {[*base.shape]} */"


def _row(place: Place, t: str) -> Place:
    """The part of a place that belongs to a step of a loop."""
    rows, step = place.view, f"{t} * {place.strides[0]}"
    view = rows[0, ...] if len(rows) else np.empty(rows.shape[1:], rows.dtype)
    return place._replace(view=view, at=f"{place.at} + {step}" if place.at else step)


def _rows(steps: int, place: Place) -> Any:
    """Room for a value of every step."""
    return np.empty((steps, *place.view.shape), place.view.dtype)


def _empty(like: Any) -> Any:
    return np.empty(like.shape, like.dtype)


def _places_in(value: Any) -> list[Place]:
    """Every place of a saved value, and of all that an inner loop saved."""
    if isinstance(value, dict):
        return [p for v in value.values() for p in _places_in(v)]
    return [value] if isinstance(value, Place) else []


def _mapped(value: Any, change: Callable[[Place], Place]) -> Any:
    """A saved value, or all that an inner loop saved, with every place changed."""
    if isinstance(value, dict):
        return {k: _mapped(v, change) for k, v in value.items()}
    return change(value) if isinstance(value, Place) else value


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _grid(shape: Any, strides: Any, first: int) -> Any:
    """``first + i * strides[0] + j * strides[1] + …`` for every index."""
    axes = zip(np.indices(shape, sparse=True), strides, strict=True)
    return sum((index * step for index, step in axes), start=np.full(shape, first))


def _offsets(place: Place) -> Any:
    """For each element its place in the member."""
    return _grid(place.view.shape, place.strides, place.offset)


def _affine(places: Any) -> tuple[Any, int]:
    """Strides (None where they are not regular) and the first of places."""
    if not places.size:
        return (0,) * places.ndim, 0
    first = int(places.flat[0])
    seconds = [np.moveaxis(places, k, 0)[min(1, n - 1)].flat[0] for k, n in enumerate(places.shape)]
    strides = tuple(int(s) - first for s in seconds)
    return strides if (_grid(places.shape, strides, first) == places).all() else None, first


def _along(indices: Place, shape: Any, axis: int) -> tuple[Any, ...]:
    """The index that ``take_along_axis`` stands for."""
    grid: list[Any] = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = indices
    return tuple(grid)


def _is_array(value: Any) -> bool:
    return isinstance(value, Array | Place | np.ndarray | list)


def _dtype(value: Any) -> Any:
    """What NumPy goes by: a dtype, or the type of a number of Python's."""
    if type(value) in (int, float, complex):
        return type(value)
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def _atom(text: str) -> str:
    plain = re.fullmatch(r"(\w+->)?[\w.]+(\[[^\]]*\])?|\{\d\}|\([^()]*\)", text)
    return text if plain else f"({text})"


def cast(text: str, given: np.dtype[Any], wanted: np.dtype[Any]) -> str:
    """An expression in another type.

    >>> cast("x", np.dtype(float), np.dtype(bool)), cast("x", np.dtype(bool), np.dtype(float))
    ('x != 0', '(double)x')
    """
    if given == wanted:
        return text
    if wanted.kind == "b":
        return f"{text} != 0"
    if given.kind == "f" and wanted.kind in "iu":
        text = f"whole_{TYPES[given.name]}({text})"
    return f"({TYPES[wanted.name]}){text}"


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """A number in C.

    >>> literal(0.1, np.dtype("float32")), literal(-2, np.dtype("int64")), literal(float("inf"), np.dtype(float))
    ('0.1f', '(-2)', 'INFINITY')
    """
    if dtype.kind == "f":
        number = dtype.type(value)
        if not np.isfinite(number):
            return "NAN" if np.isnan(number) else "INFINITY" if number > 0 else "(-INFINITY)"
        text = str(number) + ("f" if dtype.itemsize == 4 else "")
        return f"({text})" if np.signbit(number) else text
    number = int(value)
    if number == -(2**63):
        return "INT64_MIN"
    text = f"{'U' * (dtype.kind == 'u')}INT64_C({number})" if abs(number) >= 2**31 else str(number)
    return f"({text})" if number < 0 else text


def extreme(start: str, dtype: np.dtype[Any]) -> str:
    """The least or the greatest number of a dtype, if that is asked for."""
    if start not in ("least", "greatest"):
        return start
    least, greatest = {"f": (-np.inf, np.inf), "b": (0, 1)}.get(dtype.kind, (0, 0))
    if dtype.kind in "iu":
        least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    return literal(least if start == "least" else greatest, dtype)


@cache
def _expressions() -> ConfigParser:
    table = ConfigParser(interpolation=None)
    table.optionxform = str  # type: ignore[assignment,method-assign]
    table.read_string(Path(__file__).with_name("ufuncs.ini").read_text(encoding="utf-8"))
    return table


def expression(name: str, dtype: np.dtype[Any]) -> str | None:
    """The C of a function of numbers of a dtype.

    >>> expression("tanh", np.dtype(float)), expression("tanh", np.dtype(int))
    ('tanh{f}({0})', None)
    """
    table, kind = _expressions(), "i" if dtype.kind == "u" else dtype.kind
    sections = ["loops"] * (kind == "f") + [kind, "any"]
    return next((table[s][name] for s in sections if table.has_option(s, name)), None)


def loops_in(text: str) -> list[str]:
    """The functions of whole arrays that a text calls."""
    out: list[str] = []
    for way, name, ctype in sorted(set(re.findall(r"\b(each|along)_(\w+)_(float|double)\(", text))):
        template = str(expression(name, np.dtype(float)))
        several = "2" * (way == "each" and "{1}" in template)
        block = _helpers()[way + several].replace("NAME", name)
        ys = "y[i * ys]" if several else "y"
        says = typed(template, ctype).format("x[i * xs]", ys)
        out += [*_helper(block.replace("EXPRESSION", says), ctype), ""]
    return out


def typed(template: str, ctype: str) -> str:
    """An expression of the table for one type."""
    return template.replace("{T}", ctype).replace("{f}", "f" if ctype == "float" else "")


@cache
def _functions() -> set[str]:
    """What no variable may be called: functions, and variables of loops."""
    table = _expressions()
    texts = [text for kind in table.sections() for text in table[kind].values()]
    words = {word for text in texts for word in re.findall(r"[a-z]\w+", text)}
    words |= {f"{w}f" for w in words} | {f"{h}_{t}" for h in _helpers() for t in TYPES.values()}
    return words | {"p", "s", "f", "row", "sum", *LETTERS, *(f"i{k}" for k in range(32))}


@cache
def _helpers() -> dict[str, str]:
    text = Path(__file__).with_name("helpers.c").read_text(encoding="utf-8")
    blocks = re.split(r"^//// ", text, flags=re.M)[1:]
    return {b.split(None, 1)[0]: b for b in blocks}


def helpers_in(text: str) -> list[str]:
    """The helper functions that a text calls, for the types it calls them with."""
    out = loops_in(text)
    for name, block in reversed(_helpers().items()):
        for ctype in dict.fromkeys(TYPES.values()):
            if re.search(rf"\b{name}_{ctype}\(", "\n".join([text, *out])):
                out = [*_helper(block, ctype), "", *out]
    if any("loop numpy_" in line for line in out):
        out = [*_helper(_helpers()["loop"], ""), "", *out]
    return out


def _helper(block: str, ctype: str) -> list[str]:
    """A helper function for one type."""
    about, _, code = block.partition("\n")
    branch = 1 if ctype in ("float", "double") else 2
    code = re.sub(r"#if IS_FLOAT\n(.*?)#else\n(.*?)#endif\n", rf"\{branch}", code, flags=re.S)
    lines = re.sub(r"\bT\b|(?<=_)T\b", ctype, code).rstrip().splitlines()
    return [f"/* {about.split(None, 1)[1]} */", *lines]
