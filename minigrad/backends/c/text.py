"""The schedule of a program as C: two structs and one function.

    struct parameters { float w[6]; … };        what updates change, and what is only read
    struct memory { float x[8]; … };            feeds, results, and every value that loops do not keep in registers
    int step(struct parameters *p, struct memory *s);       0, or the number of what failed

It is printed from the schedule that the NumPy source comes from.  Shapes, strides and offsets are constants; a view is
an index into the memory it shows.  Text of a program becomes identifiers and comments of plain letters only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from configparser import ConfigParser
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.lower import Lowering
from ...compiler.memory import refusal
from ...compiler.passes.cse import merge_common_calls, one_value_each
from ...compiler.passes.dce import drop_unread, tidy
from ...compiler.passes.products import batch_unrolled_products
from ...compiler.schedule import Array, Branch, Call, Loop, arrays_in, changed_memory, current
from ...compiler.syntax import Identifiers, clean
from ...errors import ProgramError
from ...static.program.program import Program
from ...static.run.limits import STEP_LIMIT
from .nests import (
    FAILS,
    LETTERS,
    TESTED,
    Element,
    Line,
    Nest,
    Part,
    Parts,
    Place,
    comment,
    looped,
    nest_text,
)

TYPES = {
    "float64": "double", "float32": "float", "bool": "bool", "int64": "int64_t", "int32": "int32_t", "int16": "int16_t",
    "int8": "int8_t", "uint64": "uint64_t", "uint32": "uint32_t", "uint16": "uint16_t", "uint8": "uint8_t",
}  # fmt: skip
#: words that no member may have
RESERVED = (
    "step parameters memory auto break case char const continue default do double else enum extern float for goto if"
    " inline int long register restrict return short signed sizeof static struct switch typedef union unsigned void"
    " volatile while bool true false main errno"
)
MACROS = re.compile(
    r"(U?INT|FP_|M_|MATH_|HUGE|NAN|INFINITY|PTRDIFF|SIZE|SIG|WCHAR|WINT)[A-Z0-9_]*|\w+_t"
)
#: sums over axes: what they start from, and how an element is added to what is there so far
REDUCTIONS = {
    np.add: ("0", "{out} + {0}"),
    np.multiply: ("1", "{out} * {0}"),
    np.maximum: ("least", "(({0} > {out}) | ({0} != {0})) ? {0} : {out}"),
    np.minimum: ("greatest", "(({0} < {out}) | ({0} != {0})) ? {0} : {out}"),
    np.logical_or: ("false", "{out} || {0}"),
    np.logical_and: ("true", "{out} && {0}"),
    np.bitwise_or: ("0", "{out} | {0}"),
}
COPIES = {
    np.positive,
    np.array,
    np.asarray,
    np.broadcast_to,
    np.squeeze,
    np.ndarray.astype,
    np.copyto,
}
MOVES = {
    np.roll,
    np.tile,
    np.tril,
    np.triu,
    np.flip,
    np.diagonal,
    np.moveaxis,
    np.swapaxes,
    np.transpose,
    np.expand_dims,
}
TABLE = 1 << 16  #: elements of a table of places


class Unsayable(Exception):
    """There is no C for a call here."""


class Writer(Identifiers):
    """Turns the schedule of a program into C."""

    def __init__(
        self,
        program: Program,
        fetch: list[str],
        parameters: Any,
        exact: bool,
        max_steps: int | None,
    ) -> None:
        self.exact, self.max_steps = exact, max_steps
        self.op: Any = None
        lowering = Lowering(program, fetch, limit=1000)
        super().__init__(lowering.schedule, RESERVED.split())
        for change in (one_value_each, merge_common_calls, tidy):
            change(self.schedule)
        if not exact:
            batch_unrolled_products(self.schedule)
            drop_unread(self.schedule)
        self.places: dict[int, Any] = {}
        self.members: dict[str, list[tuple[str, str, int, str]]] = {"p": [], "s": []}
        self.memory: dict[str, tuple[str, Any]] = {}  # member → its section, an array like it
        self.layout: dict[
            str, list[tuple[str, str, int, str]]
        ] = {}  # the members that the text has
        self.known: dict[str, str] = {}  # member that holds one number all the time → the number
        self.tables: list[str] = []
        self.tested: set[Any] = set()
        self.failures: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        self.packed: dict[Any, Place] = {}
        self.versions: Counter[str] = Counter()  # member → how often it has been written
        self.kept: set[str] = set()
        self.changed = changed_memory(self.schedule.items)
        self.parts = Parts()
        for name, value in parameters.items():
            array = self.schedule.state.get(name)
            place = self.place_of(np.empty(value.shape, value.dtype), name, "p")
            if array is not None:
                self.places[id(array)] = place
            self.kept.add(place.ref)
        for name, array in self.schedule.feeds.items():
            if array.like is None:
                raise ProgramError(f"the size of {name!r} is open: C is written for known sizes")
            self.kept.add(self.new(array, wanted=name).ref)
        self.items(self.schedule.items, self.parts)
        self.fetched = [self.result(a) for a in self.schedule.fetched]
        self.kept |= {place.ref for place in self.fetched}

    def unique(self, wanted: str) -> str:
        """An identifier nobody has, and no macro."""
        return super().unique(wanted + "_v" if MACROS.fullmatch(wanted) else wanted)

    # -- memory ---------------------------------------------------------------------------------

    def new(self, array: Array, wanted: str = "", like: Any = None) -> Place:
        """Memory for an Array, as it lies in NumPy's."""
        like = array.like if like is None else like
        if like is None:
            raise Unsayable("its size is known only when it runs")
        dense = like.size * like.itemsize == _extent(like)
        like = np.empty_like(like) if dense else np.empty(like.shape, like.dtype)
        place = self.place_of(like, wanted or array.name)
        self.places[id(array)] = place
        self.keep.append(array)
        return place

    def place_of(self, like: Any, wanted: str, section: str = "s") -> Place:
        """A member for an array."""
        if like.dtype.name not in TYPES:
            raise Unsayable(f"there are no {like.dtype} in this C")
        name = self.unique(clean(wanted) if wanted else "t1")
        lanes = 64 // like.itemsize
        self.members[section].append(
            (
                name,
                TYPES[like.dtype.name],
                -(-max(like.size, 1) // lanes) * lanes,
                str(list(like.shape)),
            )
        )
        self.memory[f"{section}->{name}"] = section, like
        return Place(f"{section}->{name}", like, like)

    def place(self, value: Any) -> Place:
        """Where an Array is, or an array that is known now."""
        if isinstance(value, Place):
            return value
        if not isinstance(value, Array):
            return self.constant_place(np.asarray(value))
        array = current(value, self.schedule.same)
        if id(array) not in self.places:
            raise Unsayable("it reads what is no array")
        return self.places[id(array)]  # type: ignore[no-any-return]

    def constant_place(self, array: Any) -> Place:
        """A table of known numbers."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        if array.dtype.name not in TYPES or array.size > TABLE:
            raise Unsayable(f"it holds {array.size:,} known numbers of {array.dtype}")
        key = array.dtype.name, array.shape, array.tobytes()
        if key not in self.packed:
            name = self.unique("k1")
            numbers = ", ".join(literal(v, array.dtype) for v in array.ravel().tolist()) or "0"
            self.tables.append(f"static const {TYPES[array.dtype.name]} {name}[] = {{{numbers}}};")
            self.packed[key] = Place(name, array, array)
        return self.packed[key]

    def result(self, array: Array) -> Place:
        if id(array) in self.schedule.lists:
            raise ProgramError(
                "values from inside a loop are fetched, a list with one for each step, which C does not return.\n"
                "  repair: stack them in the program (static_rnn does), or compile without backend"
            )
        return self.place(array)

    # -- lines and parts ------------------------------------------------------------------------

    def line(
        self,
        parts: Parts,
        out: Place,
        text: str,
        operands: Iterable[Any],
        shape: Any = None,
        start: str | None = None,
        strides: Any = None,
    ) -> None:
        """One line; an operand is a Place, an Element or a text."""
        shape = out.view.shape if shape is None else shape
        element = out.element()
        if isinstance(strides, Element):
            element = strides
        elif strides is not None:
            element = element._replace(strides=strides)
        said: list[Any] = []
        for o in operands:
            if isinstance(o, Place):
                said.append(self.known.get(o.ref) or o.element(shape))
            else:
                said.append(o)
        if math.prod(shape) or start is not None:
            self.versions[out.ref] += 1
            name = re.sub(r".*>", "", out.ref)
            name += "_" if name in _functions() else ""
            line = Line(name, TYPES[out.view.dtype.name], element, text, said, self.op, start)
            parts.line(shape, line, out.ref.startswith("p->"))

    def copy(self, parts: Parts, out: Place, source: Place) -> None:
        """``out[...] = source``, in the dtype of ``out``."""
        if out != source:
            self.line(parts, out, self.cast("{0}", source.view.dtype, out.view.dtype), [source])

    def cast(self, text: str, given: Any, wanted: Any) -> str:
        """An expression in another type."""
        if given == wanted:
            return text
        if wanted.kind == "b":
            return f"{text} != 0"
        if given.kind == "f" and wanted.kind in "iu":
            text = f"whole_{TYPES[given.name]}({text})"
        return f"({TYPES[wanted.name]}){text}"

    def part(self, parts: Parts, write: Callable[[], list[str]], reads: Iterable[Place], writes: Iterable[Place],
             fails: bool = False) -> None:  # fmt: skip
        """A piece that is written by a function."""
        op = self.op
        read = {p.ref for p in reads} | ({FAILS} if fails else set())
        for p in writes:
            self.versions[p.ref] += 1
        wrote = {p.ref for p in writes} | ({TESTED} if fails else set())
        parts.add(Part(lambda w: [comment(op), *write()], read, wrote, op))

    def fail(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The statement that leaves; ``function`` then raises the error of NumPy's kernel."""
        self.failures.append((function, args, kwargs, self.op))
        return f"return {len(self.failures)};"

    # -- calls ----------------------------------------------------------------------------------

    def items(self, items: list[Any], parts: Parts) -> None:
        """The parts of calls, loops and branches."""
        for item in items:
            self.op = item.op or self.op
            try:
                if isinstance(item, Call):
                    self.call(item, parts)
                elif isinstance(item, Branch):
                    self.branch(item, parts)
                else:
                    self.loop(item, parts)
            except Unsayable as why:
                what = self.op.type if self.op is not None else item.path
                line = getattr(self.op, "source_line", "")
                raise ProgramError(
                    f"{what} cannot be said in C: {why}\n  at {line}\n"
                    f"  repair: static.compile(program, …) without backend, which takes every operator"
                ) from None

    def call(self, call: Call, parts: Parts) -> None:
        function, args = call.function, call.args
        owner = getattr(function, "__self__", None)
        if call.kind in ("view", "fill", "slab", "check", "opaque"):
            getattr(self, call.kind)(call, parts)
        elif function is np.matmul or function is np.dot:
            self.product(call, parts)
        elif isinstance(function, np.ufunc):
            self.elementwise(call, parts)
        elif isinstance(owner, np.ufunc):
            getattr(self, function.__name__)(owner, call, parts)
        elif function in COPIES:
            if function is np.copyto:
                out, source = self.place(args[0]), self.place(args[1])
                self.copy(parts, out, source.shown(np.broadcast_to(source.view, out.view.shape)))
            else:
                source = self.place(args[0])
                view = source.view
                if function in (np.broadcast_to, np.squeeze):
                    view = function(view, *args[1:], **call.kwargs)
                self.copy(parts, self.out(call), source.shown(view))
        elif function in MOVES:
            self.moved(call, parts)
        else:
            name = call.path.removeprefix("np.").removeprefix(".")
            name = {"[]": "getitem", "[]=": "setitem"}.get(name, name)
            write = getattr(self, f"say_{name}", None)
            if write is None:
                raise Unsayable(f"{call.path} has no counterpart here")
            write(call, parts, *args, **call.kwargs)

    def out(self, call: Call) -> Place:
        """Where the result goes."""
        return self.place(call.into) if call.into is not None else self.new(call.out)

    def elementwise(self, call: Call, parts: Parts, template: str = "") -> None:
        """A ufunc: its expression on operands brought to the dtype of its loop."""
        if call.kwargs or call.function.signature is not None:
            raise Unsayable(f"{call.path} with {', '.join(call.kwargs) or 'several axes'}")
        given = [_dtype(a) for a in call.args]
        *loop, result = call.function.resolve_dtypes((*given, None))
        self.formula(call, parts, call.function.__name__, call.args, loop, result)

    def formula(
        self,
        call: Call,
        parts: Parts,
        name: str,
        args: Any,
        loop: list[Any],
        result: Any,
        kind: str = "",
    ) -> None:
        """An expression of the table, element by element."""
        template = expression(name, kind or loop[-1].kind)
        if template is None or any(d.name not in TYPES for d in [*loop, result]):
            raise Unsayable(f"there is no C for np.{name} on {loop[-1]}")
        ctype = TYPES[loop[-1].name]
        casts: list[str] = []
        operands: list[Any] = []
        for k, (a, dtype) in enumerate(zip(args, loop, strict=True)):
            if isinstance(a, Array) or np.ndim(a):
                place = self.place(a)
                casts.append(_atom(self.cast(f"{{{k}}}", place.view.dtype, dtype)))
                operands.append(place)
            else:
                casts.append(f"{{{k}}}")
                operands.append(literal(a, dtype))
        if name in ("tanh", "exp") and not self.exact:
            template = f"fast_{name}_{ctype}({{0}})"
        elif (
            name in ("tanh", "exp") and ctype == "float"
        ):  # rounded once, and in the lanes of a vector
            template = f"(float)fast_{name}_double((double){{0}})"
        suffix = "f" if ctype == "float" else ""
        numbered = re.sub(
            r"\{(\d)\}",
            lambda m: casts[int(m[1])],
            template.replace("{T}", ctype).replace("{f}", suffix),
        )
        out = self.out(call)
        small = result.kind in "iu" and result.itemsize < 4
        text = f"({TYPES[result.name]})({numbered})" if small else numbered
        text = self.cast(_atom(text), result, out.view.dtype) if result != out.view.dtype else text
        self.line(parts, out, text, operands)

    def view(self, call: Call, parts: Parts) -> None:
        """Other elements of the same memory; a copy where there is no such view."""
        source = self.place(call.args[0])
        if (
            call.function is np.lib.stride_tricks.as_strided
            and call.args[0].like.strides != source.view.strides
        ):
            laid_out = self.place_of(np.empty_like(call.args[0].like), "")
            self.copy(parts, laid_out, source)
            source = laid_out
        view = call.function(source.view, *call.args[1:], **call.kwargs)
        if np.may_share_memory(view, source.view) or not view.size:
            self.places[id(call.out)] = source.shown(view)
            self.keep.append(call.out)
        else:
            out = self.new(call.out, like=np.empty(view.shape, view.dtype))
            self.copy(parts, out.shown(out.view.reshape(source.view.shape)), source)

    def fill(self, call: Call, parts: Parts) -> None:
        """Memory of one value."""
        out, value = self.new(call.out), call.args[1]
        if value is None:
            return
        number = literal(value, out.view.dtype)
        if not {id(r) for r in call.out.roots} & self.changed:
            self.known[out.ref] = number
        self.line(parts, out, number, [])

    def slab(self, call: Call, parts: Parts) -> None:
        self.new(call.out)

    def check(self, call: Call, parts: Parts) -> None:
        """A condition without which the kernel raises."""
        condition, expected, args, attrs = call.args
        place = self.place(condition)
        test = place.element_at(["0"] * place.view.ndim)
        leave = self.fail(refusal(call.function), args, attrs)
        self.kept |= {self.place(a).ref for a in arrays_in(args)}
        self.part(
            parts,
            lambda: [f"if ({'!' if expected else ''}{test})", f"    {leave}"],
            [place],
            [],
            fails=True,
        )

    def opaque(self, call: Call, parts: Parts) -> None:
        """A kernel that could not be recorded, if there is an expression for it."""
        if call.path == "einsum":
            self.say_einsum(call, parts, call.kwargs["subscripts"], *call.args)
            return
        places = [self.place(a) for a in call.args]
        dtype = places[0].view.dtype
        if call.kwargs or dtype.kind != "f" or expression(call.path, "f") is None:
            raise Unsayable("its kernel decides on values")
        call.into = None
        self.formula(call, parts, call.path, call.args, [dtype] * len(places), dtype)

    def reduce(self, ufunc: Any, call: Call, parts: Parts) -> None:
        """A sum over axes, with any operator."""
        how = dict(call.kwargs)
        axis, first = how.pop("axis", 0), how.pop("initial", None)
        keepdims, _ = how.pop("keepdims", False), how.pop("dtype", None)
        x = self.place(call.args[0])
        if (
            len(call.args) > 1
            or any(v is not None for v in how.values())
            or ufunc not in REDUCTIONS
        ):
            raise Unsayable(f"{call.path} with {', '.join(how) or 'several arguments'}")
        axes = _axes_of(axis, x.view.ndim)
        out = self.out(call)
        wide = out.view if keepdims else np.expand_dims(out.view, axes)
        strides = out.shown(np.broadcast_to(wide, x.view.shape)).strides
        dtype = out.view.dtype
        if (
            self.exact
            and ufunc is np.add
            and first is None
            and dtype.kind == "f"
            and self.pairwise(parts, x, axes, out, strides)
        ):
            return
        start, text = REDUCTIONS[ufunc]
        if dtype.kind in "iu" and "!=" in text:
            text = text.replace(" | ({0} != {0})", "")
        start = extreme(start, dtype) if start in ("least", "greatest") else start
        start = start if first is None else literal(first, dtype)
        text = text.replace("{0}", self.cast("{0}", x.view.dtype, dtype))
        self.line(parts, out, text, [x], x.view.shape, start, strides)

    def pairwise(self, parts: Parts, x: Place, axes: Any, out: Place, strides: Any) -> bool:
        """A sum in NumPy's order, where it runs along the innermost axis in memory; else False."""
        shape = x.view.shape
        order = [k for k, n in enumerate(shape) if n != 1]
        order.sort(key=lambda k: -abs(x.strides[k]))
        if not order or order[-1] not in axes:
            return False
        run = [order.pop()]
        while (
            order
            and order[-1] in axes
            and x.strides[order[-1]] == x.strides[run[0]] * shape[run[0]]
        ):
            run.insert(0, order.pop())
        count, step = math.prod(shape[k] for k in run), x.strides[run[-1]]
        first = x.element()._replace(many=count).along(order)
        text = f"{{out}} + pairwise_{TYPES[out.view.dtype.name]}(&{{0}}, {count}, {step})"
        kept = tuple(shape[k] for k in order)
        self.line(parts, out, text, [first], kept, "0", tuple(strides[k] for k in order))
        return True

    def accumulate(self, ufunc: Any, call: Call, parts: Parts) -> None:
        """Sums so far along an axis."""
        x, out = self.place(call.args[0]), self.out(call)
        if ufunc not in (np.add, np.multiply) or not x.view.ndim:
            raise Unsayable(f"{call.path} has no counterpart here")
        axis = call.kwargs.get("axis", 0)

        def cut(place: Place, *ends: Any) -> Place:
            return place.shown(np.moveaxis(place.view, axis, 0)[slice(*ends)])

        self.copy(parts, cut(out, 1), cut(x, 1))
        after = _atom(self.cast("{1}", x.view.dtype, out.view.dtype))
        text = f"{{0}} {'+' if ufunc is np.add else '*'} {after}"
        self.line(parts, cut(out, 1, None), text, [cut(out, -1), cut(x, 1, None)], start="")

    # -- products -------------------------------------------------------------------------------

    def product(self, call: Call, parts: Parts) -> None:
        """Matrix products, of stacks, too."""
        x, y = (self.place(a) for a in call.args)
        out = self.out(call)
        if call.function is np.dot and max(x.view.ndim, y.view.ndim) > 2:
            raise Unsayable("np.dot of stacks")
        a = x.shown(x.view[None]) if x.view.ndim == 1 else x
        b = y.shown(y.view[:, None]) if y.view.ndim == 1 else y
        c = out.shown(out.view[..., None]) if y.view.ndim == 1 else out
        c = c.shown(c.view[..., None, :]) if x.view.ndim == 1 else c
        *batch, m, n = c.view.shape
        k, dtype, letters = a.view.shape[-1], c.view.dtype, "abcdefgh"[: len(batch)]
        tiny = not self.exact and m * n * k <= 4096 and (b.strides[-1] == 1 or 1 in (m, n))
        steps: list[Any] = [_blas_steps(p) for p in (a, b, c)]
        one_type = a.view.dtype == b.view.dtype == dtype and dtype.kind == "f"
        if tiny or not one_type or None in steps or steps[2][1] != 1 or not k:
            said = [letters[len(batch) + 2 - p.view.ndim :] for p in (a, b)]
            self.contract(parts, c, letters + "mn", [(a, said[0] + "mk"), (b, said[1] + "kn")])
            return
        wide = [p.shown(np.broadcast_to(p.view, (*batch, *p.view.shape[-2:]))) for p in (a, b, c)]
        loops = [(f"i{d}", size) for d, size in enumerate(batch)]
        first = [
            f"&{p.element_at([*(v for v, _ in loops), '0', '0'])}, {s[0]}, {s[1]}"
            for p, s in zip(wide, steps, strict=True)
        ]
        text = (
            f"product_{TYPES[dtype.name]}({m}, {n}, {k}, {', '.join(first).removesuffix(', 1')});"
        )
        if c.view.size:
            self.part(parts, lambda: looped(loops, [text]), [a, b], [out])

    def contract(
        self, parts: Parts, out: Place, labels: str, factors: list[tuple[Place, str]]
    ) -> None:
        """Products added up over the letters that ``out`` does not have: a sum over axes."""
        sizes = {
            c: n for p, said in factors for c, n in zip(said, p.view.shape, strict=True) if n != 1
        }
        letters = dict.fromkeys("".join(said for _, said in factors))
        order = [c for c in labels[:-1]] + [c for c in letters if c not in labels] + [*labels[-1:]]
        shape = tuple(sizes.get(c, 1) for c in order)

        def steps(place: Place, said: str) -> tuple[int, ...]:
            axes = list(zip(place.strides, place.view.shape, said, strict=True))
            return tuple(sum(s for s, n, d in axes if d == c and n > 1) for c in order)

        if out.view.dtype.kind not in "fiu" or len(set(labels)) != len(labels):
            raise Unsayable(f"products of {out.view.dtype} with these axes")
        casts = [
            _atom(self.cast(f"{{{k}}}", p.view.dtype, out.view.dtype))
            for k, (p, _) in enumerate(factors)
        ]
        elements = [p.element()._replace(strides=steps(p, said)) for p, said in factors]
        self.line(
            parts, out, "{out} + " + " * ".join(casts), elements, shape, "0", steps(out, labels)
        )

    def say_einsum(
        self, call: Call, parts: Parts, subscripts: str, *xs: Any, optimize: bool = False
    ) -> None:
        given, arrow, labels = subscripts.replace(" ", "").partition("->")
        if not arrow:
            labels = "".join(sorted(c for c in set(given) - {","} if given.count(c) == 1))
        factors = [(self.place(x), said) for x, said in zip(xs, given.split(","), strict=True)]
        self.contract(parts, self.out(call), labels, factors)

    # -- other functions ------------------------------------------------------------------------

    def say_where(self, call: Call, parts: Parts, test: Any, x: Any, y: Any) -> None:
        dtype = call.out.dtype
        self.formula(
            call, parts, "where", (test, x, y), [np.dtype(bool), dtype, dtype], dtype, "any"
        )

    def say_clip(self, call: Call, parts: Parts, x: Any, low: Any, high: Any) -> None:
        dtype = call.out.dtype
        self.formula(call, parts, "clip", (x, low, high), [dtype] * 3, dtype)

    def say_round(self, call: Call, parts: Parts, x: Any, decimals: int = 0) -> None:
        if decimals:
            raise Unsayable("round to decimals")
        self.formula(call, parts, "rint", (x,), [call.out.dtype], call.out.dtype)

    def say_concatenate(self, call: Call, parts: Parts, arrays: Any, axis: int = 0) -> None:
        out, begin = self.out(call), 0
        for a in arrays:
            source = self.place(a)
            cut = [slice(None)] * out.view.ndim
            cut[axis] = slice(begin, begin + source.view.shape[axis])
            begin += source.view.shape[axis]
            self.copy(parts, out.shown(out.view[tuple(cut)]), source)

    def say_stack(self, call: Call, parts: Parts, arrays: Any, axis: int = 0) -> None:
        out = self.out(call)
        for k, a in enumerate(arrays):
            self.copy(parts, out.shown(np.moveaxis(out.view, axis, 0)[k, ...]), self.place(a))

    def moved(self, call: Call, parts: Parts) -> None:
        """Elements in another place: each number of a table says which one, 0 that it is zero."""
        source = self.place(call.args[0])
        numbers = np.arange(1, source.view.size + 1).reshape(source.view.shape)
        chosen = call.function(numbers, *call.args[1:], **call.kwargs)
        offsets = np.concatenate([[0], _offsets(source).ravel()])[chosen]
        element = self.chosen(source, offsets)
        if chosen.all():
            self.line(parts, self.out(call), "{0}", [element])
        else:
            there = self.place(chosen != 0)
            self.line(parts, self.out(call), "{0} ? {1} : 0", [there, element])

    def say_argsort(
        self, call: Call, parts: Parts, x: Any, axis: int = -1, kind: Any = None
    ) -> Place:
        """The rank of each element is how many come before it; each goes to the place of its rank."""
        source = self.place(x)
        order = (
            self.out(call)
            if call.out.dtype == np.int64
            else self.place_of(np.empty(source.view.shape, np.int64), "order")
        )
        view = np.moveaxis(source.view, axis, -1) if source.view.ndim else source.view[None]
        n = view.shape[-1]
        if n > 2048:
            raise Unsayable(f"rows of {n:,} are sorted elsewhere")
        rank = self.place_of(np.empty(view.shape, np.int64), "rank")
        operands = [
            source.shown(np.broadcast_to(v, (*view.shape, n)))
            for v in (view[..., None, :], view[..., None])
        ]
        operands.append(self.place(np.tri(n, k=-1, dtype=bool)))
        equal = "{0} == {1} || ({0} != {0} && {1} != {1})"
        text = f"{{out}} + ({{0}} < {{1}} || ({{0}} == {{0}} && {{1}} != {{1}}) || ({{2}} && ({equal})))"
        self.line(parts, rank, text, operands, (*view.shape, n), "0", (*rank.strides, 0))
        target = order.shown(
            np.moveaxis(order.view, axis, -1) if order.view.ndim else order.view[None]
        )
        *rows, step = target.strides
        element = Element(
            target.ref, (*rows, 0), target.offset, target.at, ((rank.element(), 0, step),)
        )
        self.line(parts, target, "{0}", [self.place(np.arange(n))], view.shape, "", element)
        return order

    def say_sort(self, call: Call, parts: Parts, x: Any, axis: int = -1, kind: Any = None) -> None:
        order = self.say_argsort(call, parts, x, axis)
        index = _along(order, self.place(x).view.shape, axis)
        self.line(parts, self.out(call), "{0}", [self.looked_up(parts, self.place(x), index, None)])

    # -- places that are looked up ----------------------------------------------------------------

    def chosen(self, x: Place, offsets: Any) -> Element:
        """Elements in places that are known: a view where they lie regularly, a table else."""
        regular = _affine(offsets)
        if regular is not None:
            return Element(x.ref, regular[0], regular[1], x.at)
        table = self.place(offsets.astype(np.int32)).element()
        return Element(x.ref, (0,) * offsets.ndim, 0, x.at, ((table, 0, 1),))

    def looked_up(self, parts: Parts, x: Place, index: Any, call: Call | None) -> Element:
        """The element of ``x[index]`` for each index of the result; ``call`` raises where it points outside."""
        index = index if isinstance(index, tuple) else (index,)
        if any(p.view.dtype.kind not in "iu" for p in map(self.place, filter(_is_array, index))):
            raise Unsayable("a mask chooses how many")
        runs = {
            k: p if isinstance(p, Place) else self.place(p)
            for k, p in enumerate(index)
            if isinstance(p, Array | Place)
        }
        zero = tuple(
            np.zeros(runs[k].view.shape, int) if k in runs else p for k, p in enumerate(index)
        )
        element = self.chosen(x, _offsets(x)[zero])
        for k, place in runs.items():
            rest = [p for p in index[k:] if p is not None]
            behind = any(p is Ellipsis for p in index[:k])
            axis = x.view.ndim - len(rest) if behind else sum(p is not None for p in index[:k])
            length = x.view.shape[axis]
            if call is not None:
                self.check_range(parts, place, length, call)
            shape = [place.view.size if a == axis else 1 for a in range(x.view.ndim)]
            every = np.broadcast_to(
                _offsets(place).reshape(shape),
                [place.view.size if a == axis else n for a, n in enumerate(x.view.shape)],
            )
            own = (*zero[:k], np.arange(place.view.size).reshape(place.view.shape), *zero[k + 1 :])
            regular: Any = _affine(every[own])
            at = Element(place.ref, regular[0], regular[1], place.at)
            element = element._replace(
                looked_up=(*element.looked_up, (at, length, x.strides[axis]))
            )
        return element

    def check_range(self, parts: Parts, index: Place, length: int, call: Call) -> None:
        """Leave if an index points outside."""
        key = index.element(), index.view.shape, length, self.versions[index.ref], id(parts)
        if key in self.tested:
            return
        self.tested.add(key)
        names = [f"i{k}" for k in range(index.view.ndim)]
        leave = self.fail(call.function, call.args, call.kwargs)
        self.kept |= {self.place(a).ref for a in call.reads()}
        at = index.element_at(names)
        test = [f"if ({at} < -{length} || {at} >= {length})", f"    {leave}"]
        loops = looped(zip(names, index.view.shape, strict=True), test)
        self.part(parts, lambda: loops, [index], [], fails=True)

    def say_getitem(self, call: Call, parts: Parts, x: Any, index: Any) -> None:
        self.line(parts, self.out(call), "{0}", [self.looked_up(parts, self.place(x), index, call)])

    def say_take(
        self, call: Call, parts: Parts, x: Any, indices: Any, axis: Any = None, **how: Any
    ) -> None:
        source = self.place(x)
        if axis is None:
            flat = source.view.reshape(-1)
            if flat.size and not np.may_share_memory(flat, source.view):
                raise Unsayable("take from what does not lie in one piece")
            source, axis = source.shown(flat), 0
        if how.get("mode", "raise") != "raise":
            raise Unsayable("take with a mode")
        at = indices if isinstance(indices, Array) else np.asarray(indices)
        index = (*[slice(None)] * (axis % source.view.ndim), at)
        self.line(parts, self.out(call), "{0}", [self.looked_up(parts, source, index, call)])

    def say_take_along_axis(
        self, call: Call, parts: Parts, x: Any, indices: Any, axis: int = -1
    ) -> None:
        index = _along(self.place(indices), call.args[0].shape, axis)
        self.line(parts, self.out(call), "{0}", [self.looked_up(parts, self.place(x), index, call)])

    def say_put_along_axis(
        self, call: Call, parts: Parts, x: Any, indices: Any, values: Any, axis: int = -1
    ) -> None:
        self.scatter(call, parts, x, _along(self.place(indices), x.shape, axis), values, "{0}")

    def say_setitem(self, call: Call, parts: Parts, x: Any, index: Any, value: Any) -> None:
        self.scatter(call, parts, x, index, value, "{0}")

    def at(self, ufunc: Any, call: Call, parts: Parts) -> None:
        """``np.add.at``: one after the other."""
        if ufunc is not np.add:
            raise Unsayable(f"{call.path} has no counterpart here")
        x, index, value = call.args
        self.scatter(
            call, parts, x, index, value, "{out} || {0}" if x.dtype.kind == "b" else "{out} + {0}"
        )

    def scatter(self, call: Call, parts: Parts, x: Any, index: Any, value: Any, text: str) -> None:
        """Values into places that are looked up, in order."""
        target = self.place(x)
        element = self.looked_up(parts, target, index, call)
        zero = tuple(np.zeros(np.shape(p) if not isinstance(p, Place) else p.view.shape, int) if _is_array(p) else p
                     for p in (index if isinstance(index, tuple) else (index,)))  # fmt: skip
        shape = target.view[zero].shape
        dtype = target.view.dtype
        given = self.place(value) if _is_array(value) else literal(value, dtype)
        if isinstance(given, Place):
            text = text.replace("{0}", _atom(self.cast("{0}", given.view.dtype, dtype)))
        self.line(parts, target, text, [given], shape, "", element)

    # -- loops and branches -----------------------------------------------------------------------

    def block(self, items: list[Any], behind: Callable[[Parts], None]) -> Parts:
        """The parts of a body; ``behind`` adds what it hands on."""
        op, inner = self.op, Parts()
        self.items(items, inner)
        self.op = op
        behind(inner)
        return inner

    def around(
        self,
        parts: Parts,
        inner: list[Parts],
        write: Callable[[], list[str]],
        reads: list[Place],
        writes: list[Place],
        fails: bool = False,
    ) -> None:
        """A loop or branch as one part."""
        every = [p for block in inner for p in block.parts]
        read = {k for p in every for k in p.reads} | {p.ref for p in reads}
        wrote = {k for p in every for k in p.writes} | {p.ref for p in writes}
        op = self.op
        if fails:
            read.add(FAILS)
        part = Part(lambda w: [comment(op), *write()], read, wrote, op)
        part.shape = inner, {p.ref for p in reads}
        parts.add(part)

    def loop(self, loop: Loop, parts: Parts) -> None:
        """``while`` and ``recurrent``, forwards and back."""
        if loop.gathered:
            raise Unsayable("values of every step are fetched")
        back = loop.op.type.endswith("_grad")
        t = self.unique("step1")
        begins = []
        for start, begin, _, final in loop.carried:
            given = self.place(start)
            place = self.new(begin, like=given.view)
            self.copy(parts, place, given)
            begins.append(place)
            self.places[id(final)] = place
            self.keep.append(final)
        steps, count = self.steps(loop, back)
        turns = count.element_at(["0"]) if count else ""
        for seq, part in loop.slices:
            whole = self.place(seq)
            at = _plus(whole.at, f"{t} * {whole.strides[0]}")
            rest = (
                whole.view[0, ...]
                if len(whole.view)
                else np.empty(whole.view.shape[1:], whole.view.dtype)
            )
            self.places[id(part)] = whole._replace(view=rest, at=at)
            self.keep.append(part)
        if back:
            self.bind(self.places[id(loop.frames)], loop, t)
        for _, total, like in loop.totals:
            shape = self.place(like).view
            place = self.new(total, like=np.empty(shape.shape, shape.dtype))
            self.line(parts, place, "0" if count or shape.dtype.kind != "f" else "-0.0", [])
        test = self.block(loop.test, lambda inner: None)
        body = self.block(
            loop.body, lambda inner: self.hand_on(loop, inner, begins, t, steps, back)
        )
        go_on = None if loop.go_on is None else self.place(loop.go_on)
        reads = [*begins, *([go_on] if go_on else [])]

        def write() -> list[str]:
            if go_on is None and back and count:
                head = f"for (int {t} = (int){turns} - 1; {t} >= 0; {t}--) {{"
            elif go_on is None:
                head = (
                    f"for (int {t} = {steps - 1}; {t} >= 0; {t}--) {{"
                    if back
                    else f"for (int {t} = 0; {t} < {steps}; {t}++) {{"
                )
            else:
                head = f"for (int {t} = 0;; {t}++) {{"
            lines = self.written(body)
            if go_on is not None:
                stop = [f"if (!{go_on.element_at(['0'] * go_on.view.ndim)})", "    break;"]
                lines = [*self.written(test), *stop, f"if ({t} == {limit})", f"    {leave}", *lines]
                if count:
                    lines.append(f"{turns} = {t} + 1;")
            first = [f"{turns} = 0;"] if count and go_on is not None else []
            return [*first, head, *_indent(lines), "}"]

        limit, leave = STEP_LIMIT, ""
        if go_on is not None:
            if loop.saved:
                limit = min(limit, steps)
            leave = self.fail("steps", (limit,), {})
        extra = [count] if count else []
        self.around(
            parts, [test, body], write, [*reads, *extra], [*begins, *extra], fails=go_on is not None
        )

    def steps(self, loop: Loop, back: bool) -> tuple[int, Any]:
        """How many steps a loop makes at most, and, for while loops, where their number is."""
        if back:
            frames = self.places[id(loop.frames)]
            return frames["steps"], frames["count"]
        if loop.go_on is None:
            steps, count = len(self.place(loop.slices[0][0]).view), None
        else:
            if loop.saved and self.max_steps is None:
                raise Unsayable(
                    "the gradient of a while loop needs the values of every step: give max_steps=…"
                )
            steps, count = self.max_steps or 0, self.place_of(np.empty(1, np.int64), "steps")
        self.places[id(loop.frames)] = {"steps": steps, "count": count, "values": {}}
        return steps, count

    def bind(self, frames: Any, loop: Loop, t: str) -> None:
        """What the steps saved, under its names in the grad block."""
        for value, here in loop.saved:
            saved = frames["values"][id(value)]
            self.places[id(here)] = _map_places(
                saved,
                lambda p: p._replace(
                    view=p.view[0, ...] if len(p.view) else p.view,
                    at=_plus(p.at, f"{t} * {p.strides[0]}"),
                ),
            )
            self.keep.append(here)

    def hand_on(
        self, loop: Loop, inner: Parts, begins: list[Place], t: str, steps: int, back: bool
    ) -> None:
        """Behind a step: what it saves, adds up, stacks and hands to the next one."""
        if not back:
            frames = self.places[id(loop.frames)]
            for value in loop.saved:
                frames["values"][id(value)] = _map_places(
                    self.places[id(current(value, self.schedule.same))],
                    lambda p: self.saved(inner, p, steps, t),
                )
                self.keep.append(value)
        for value, total, _ in loop.totals:
            place = self.place(total)
            self.line(inner, place, "{0} + {1}", [place, self.place(value)])
        for value, stack in loop.stacked:
            given = self.place(value)
            out = self.new(stack, like=np.empty((steps, *given.view.shape), given.view.dtype))
            at = f"{t} * {out.strides[0]}"
            rest = out.view[0, ...] if steps else np.empty(given.view.shape, given.view.dtype)
            self.copy(inner, out._replace(view=rest, at=at), given)
        nexts = [self.place(c[2]) for c in loop.carried]
        mine = {b.ref for b in begins}
        for k, (begin, value) in enumerate(zip(begins, nexts, strict=True)):
            if value.ref in mine and value != begin:
                held = self.place_of(np.empty(value.view.shape, value.view.dtype), "held")
                self.copy(inner, held, value)
                nexts[k] = held
        for begin, value in zip(begins, nexts, strict=True):
            self.copy(inner, begin, value)

    def saved(self, inner: Parts, place: Place, steps: int, t: str) -> Place:
        """Room for a value of every step, which this step fills."""
        out = self.place_of(
            np.empty((steps, *place.view.shape), place.view.dtype),
            re.sub(r".*>", "", place.ref) + "_saved",
        )
        rest = out.view[0, ...] if steps else place.view
        self.copy(inner, out._replace(view=rest, at=f"{t} * {out.strides[0]}"), place)
        return out

    def branch(self, branch: Branch, parts: Parts) -> None:
        """``cond`` and its grad op."""
        pred = self.place(branch.pred)
        if branch.backward:
            for k in (0, 1):
                for value, here in branch.saved[k]:
                    self.places[id(here)] = self.places[id(branch.frames)]["values"][id(value)]
                    self.keep.append(here)
        results: list[Place] = []

        def hand_on(k: int) -> Callable[[Parts], None]:
            def behind(inner: Parts) -> None:
                for n, row in enumerate(branch.results):
                    given = self.place(row[k])
                    if len(results) == n:
                        results.append(
                            self.new(row[2], like=np.empty(given.view.shape, given.view.dtype))
                        )
                    self.copy(inner, results[n], given)

            return behind

        sides = [self.block(branch.bodies[k], hand_on(k)) for k in (0, 1)]
        if not branch.backward and branch.frames is not None:
            values = {
                id(v): self.places[id(current(v, self.schedule.same))]
                for k in (0, 1)
                for v in branch.saved[k]
            }
            self.keep += [v for k in (0, 1) for v in branch.saved[k]]
            self.kept |= {p.ref for v in values.values() for p in _places_in(v)}
            self.places[id(branch.frames)] = {"values": values}
        test = pred.element_at(["0"] * pred.view.ndim)
        if pred.view.size != 1:
            raise Unsayable("a condition of several elements")

        def write() -> list[str]:
            yes, no = (_indent(self.written(side)) for side in sides)
            return [f"if ({test}) {{", *yes, *(["} else {", *no] if no else []), "}"]

        self.around(parts, sides, write, [pred], results)

    # -- the text ---------------------------------------------------------------------------------

    def written(self, block: Parts) -> list[str]:
        """The text of parts."""
        out: list[str] = []
        for part in block.parts:
            if isinstance(part, Nest):
                out += nest_text(part, partial(self.is_needed, part))
            else:
                out += part.write(self)
        return out

    def is_needed(self, nest: Part, ref: str) -> bool:
        """Whether anything but this nest reads a member."""
        return ref in self.kept or bool(self.readers.get(ref, set()) - {id(nest)})

    def text(self) -> str:
        """The whole file."""
        self.readers: dict[str, set[int]] = {}
        _note_readers(self.parts, self.readers)
        body = self.written(self.parts)
        used = "\n".join(body)
        words = set(re.findall(r"\b(?:[ps]->)?[A-Za-z]\w*", used))
        structs = []
        for section, name in (("p", "parameters"), ("s", "memory")):
            rows = self.layout[section] = [
                row for row in self.members[section] if f"{section}->{row[0]}" in self.kept | words
            ]
            lines = [f"    {ctype} {n}[{count}]; /* {shape} */" for n, ctype, count, shape in rows]
            structs += [f"struct {name} {{", *(lines or ["    char nothing;"]), "};", ""]
        unused = [f"(void){v};" for v in "ps" if not any(w.startswith(f"{v}->") for w in words)]
        function = [
            "int step(struct parameters *restrict p, struct memory *restrict s) {",
            *_indent([*unused, *body, "return 0;"]),
            "}",
        ]
        head = ["#include <math.h>", "#include <stdbool.h>", "#include <stdint.h>", ""]
        tables = [t for t in self.tables if t.split("[")[0].split()[-1] in words]
        return (
            "\n".join(
                [*head, *helpers_in(used), *tables, *([""] if tables else []), *structs, *function]
            )
            + "\n"
        )


def _note_readers(parts: Parts, readers: dict[str, set[int]]) -> None:
    for part in parts.parts:
        inner, own = ([], part.reads) if isinstance(part, Nest) or not part.shape else part.shape
        for block in inner:
            _note_readers(block, readers)
        for ref in own:
            readers.setdefault(ref, set()).add(id(part))


def _places_in(value: Any) -> list[Place]:
    if isinstance(value, Place):
        return [value]
    inner = [*value["values"].values(), *([value["count"]] if value.get("count") else [])]
    return [p for v in inner for p in _places_in(v)]


def _map_places(value: Any, change: Callable[[Place], Place]) -> Any:
    """A saved value, or all that an inner loop saved, with every place changed."""
    if isinstance(value, Place):
        return change(value)
    out = {**value, "values": {k: _map_places(v, change) for k, v in value["values"].items()}}
    if value.get("count"):
        out["count"] = change(value["count"])
    return out


def _plus(at: str, more: str) -> str:
    return f"{at} + {more}" if at else more


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _extent(like: Any) -> int:
    return (
        sum((n - 1) * abs(s) for n, s in zip(like.shape, like.strides, strict=True)) + like.itemsize
        if like.size
        else 0
    )


def _offsets(place: Place) -> Any:
    """For each element its place in the member."""
    out: Any = np.full(place.view.shape, place.offset)
    for k, (n, s) in enumerate(zip(place.view.shape, place.strides, strict=True)):
        out += (np.arange(n) * s).reshape([-1 if k == a else 1 for a in range(place.view.ndim)])
    return out


def _affine(places: Any) -> tuple[tuple[int, ...], int] | None:
    """Strides and offset of places that lie regularly; else None."""
    if not places.size:
        return (0,) * places.ndim, 0
    first = int(places[(0,) * places.ndim])
    steps = [
        int(np.moveaxis(places, k, 0)[1:2].flat[0]) - first if n > 1 else 0
        for k, n in enumerate(places.shape)
    ]
    again = first + sum(
        (np.arange(n) * s).reshape([-1] + [1] * (places.ndim - k - 1))
        for k, (n, s) in enumerate(zip(places.shape, steps, strict=True))
    )
    return (
        (tuple(steps), first)
        if np.array_equal(np.broadcast_to(again, places.shape), places)
        else None
    )


def _blas_steps(place: Place) -> tuple[int, int] | None:
    """How far rows and columns of a matrix lie apart, if BLAS can say it; a single one says nothing."""
    (r, c), (sr, sc) = place.view.shape[-2:], place.strides[-2:]
    if (sc == 1 or c == 1) and (r == 1 or sr >= c):
        return (sr if r > 1 else c), 1
    if (sr == 1 or r == 1) and (c == 1 or sc >= r):
        return 1, sc
    return None


def _along(indices: Place, shape: Any, axis: int) -> tuple[Any, ...]:
    """The index that ``take_along_axis`` stands for."""
    grid: list[Any] = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = indices
    return tuple(grid)


def _is_array(value: Any) -> bool:
    return isinstance(value, Array | Place | np.ndarray | list)


def _axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    axes = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    return tuple(a % ndim for a in axes) if ndim else ()


def _dtype(value: Any) -> Any:
    """What NumPy goes by: a dtype, or the type of a number of Python's."""
    if type(value) in (int, float, complex):
        return type(value)
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def _atom(text: str) -> str:
    plain = re.fullmatch(r"(\w+->)?[\w.]+(\[[^\]]*\])?|\{\d\}|\([^()]*\)", text)
    return text if plain else f"({text})"


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """A number in C.

    >>> literal(0.1, np.dtype("float32")), literal(-2, np.dtype("int64")), literal(float("inf"), np.dtype(float))
    ('0.1f', '(-2)', 'INFINITY')
    """
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "f":
        number = dtype.type(value)
        if not np.isfinite(number):
            return "NAN" if np.isnan(number) else "INFINITY" if number > 0 else "(-INFINITY)"
        text = str(number) + ("f" if dtype.itemsize == 4 else "")
        return f"({text})" if np.signbit(number) else text
    number = int(value)
    if number == -(2**63):
        return "INT64_MIN"
    text = (
        str(number)
        if abs(number) < 2**31
        else f"INT64_C({number})"
        if dtype.kind == "i"
        else f"UINT64_C({number})"
    )
    return f"({text})" if number < 0 else text


def extreme(which: str, dtype: np.dtype[Any]) -> str:
    """The least or the greatest number of a dtype."""
    if dtype.kind == "f":
        return "-INFINITY" if which == "least" else "INFINITY"
    if dtype.kind == "b":
        return "false" if which == "least" else "true"
    limits = np.iinfo(dtype)
    return literal(limits.min if which == "least" else limits.max, dtype)


@cache
def _expressions() -> ConfigParser:
    table = ConfigParser(interpolation=None)
    table.optionxform = str  # type: ignore[assignment,method-assign]
    table.read_string(Path(__file__).with_name("ufuncs.ini").read_text(encoding="utf-8"))
    return table


def expression(name: str, kind: str) -> str | None:
    """The C of a function for a kind of dtype.

    >>> expression("tanh", "f"), expression("tanh", "i")
    ('tanh{f}({0})', None)
    """
    table, kind = _expressions(), {"u": "i"}.get(kind, kind)
    special = table[kind].get(name) if kind in table else None
    return special or table["any"].get(name)


@cache
def _functions() -> set[str]:
    """What no variable may be called: functions, and variables of loops."""
    table = _expressions()
    texts = [text for kind in table.sections() for text in table[kind].values()]
    words = {word for text in texts for word in re.findall(r"[a-z]\w+", text)}
    words |= {f"{w}f" for w in words} | {f"{h}_{t}" for h in _helpers() for t in TYPES.values()}
    return words | {"p", "s", "row", "sum", *LETTERS, *(f"i{k}" for k in range(32))}


@cache
def _helpers() -> dict[str, str]:
    text = Path(__file__).with_name("helpers.c").read_text(encoding="utf-8")
    blocks = re.split(r"^//// ", text, flags=re.M)[1:]
    return {b.split(None, 1)[0]: b for b in blocks}


def helpers_in(text: str) -> list[str]:
    """The helper functions that a text calls, for the types it calls them with."""
    out: list[str] = []
    for name, block in reversed(_helpers().items()):
        head, _, code = block.partition("\n")
        for ctype in TYPES.values():
            if re.search(rf"\b{name}_{ctype}\(", "\n".join([text, *out])):
                for kind, holds in (("32", ctype == "float"), ("", ctype in ("float", "double"))):
                    pick = rf"#if IS_FLOAT{kind}\n(.*?)#else\n(.*?)#endif\n"
                    code = re.sub(pick, lambda m: m[1 if holds else 2], code, flags=re.S)  # noqa: B023
                about = f"/* {head.split(None, 1)[1]} */"
                lines = re.sub(r"\bT\b|(?<=_)T\b", ctype, code).rstrip().splitlines()
                out = [about, *lines, "", *out]
                code = block.partition("\n")[2]
    return out
