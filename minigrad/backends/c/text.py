"""The schedule of a program as C: three structs and one function.

    struct parameters { float w[6]; … };        what updates change, and what is only read
    struct memory { float y[8]; … };            results, and every value that loops do not keep in registers
    struct feeds { const float *x; … };
    int step(struct parameters *p, struct memory *s, const struct feeds *f);    0, or the number of what failed

It is printed from the schedule that the NumPy source comes from.  Shapes, strides and offsets are
constants; a view is an index into the memory it shows.  Text of a program becomes identifiers and
comments of plain letters only.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...compiler.lower import Lowering
from ...compiler.memory import Memory, padded, refusal, too_many_steps
from ...compiler.passes.dce import drop_unneeded
from ...compiler.passes.in_place import make_in_place
from ...compiler.schedule import Array, Branch, Call, Loop, arrays_in, changed_memory, makers_of
from ...compiler.syntax import Identifiers, clean
from ...compiler.tracer import Recorder
from ...errors import ProgramError, told
from ...ops.index import along, slices_at
from ...ops.linalg import explicit
from ...static.program.program import Program
from ...static.run.limits import STEP_LIMIT
from ..replay import Walk, index_arrays, loop_dtypes, mapped
from . import nests
from .expressions import EXPRESSIONS, TYPES, DType, cast, expression, helpers_in, literal, neutral
from .nests import Element, Line, Nest, Part, Place, axes_of, indented, looped, shown

#: words that no member may have
RESERVED = (
    "step parameters memory feeds loop auto break case char const continue default do double else enum extern float"
    " for goto if inline int long register restrict return short signed sizeof static struct switch typedef union"
    " unsigned void volatile while main errno"
)
MACROS = re.compile(
    r"(U?INT|FP_|M_|MATH_|HUGE|NAN|INFINITY|PTRDIFF|SIZE|SIG|WCHAR|WINT)[A-Z0-9_]*|\w+_t|numpy_\w+"
)
PRODUCTS = (np.matmul, np.dot)
TABLE = 1 << 16  #: elements of a table of known numbers
#: functions and kernels of the table beside the ufuncs
NAMED = {"np.where": "where", "np.clip": "clip", "np.round": "rint", "erf": "erf", "gelu": "gelu"}
COPIES = {np.array, np.asarray, np.ndarray.astype}
MOVES = {
    np.roll, np.tile, np.tril, np.triu, np.flip, np.diagonal, np.moveaxis, np.swapaxes, np.transpose, np.expand_dims,
    np.concatenate, np.stack,
}  # fmt: skip
#: multiplications of a product of matrices that take less time than to call BLAS
LITTLE = 512
#: multiplications of a product that OpenBLAS makes without copies of what it multiplies
UNCOPIED = 1_000_000
#: multiplications of an einsum that is written as loops
SMALL = 1 << 16
#: a sum of fewer numbers is a loop of its own: NumPy adds up so few one after the other, too
FEW = 8
#: products of a turned weight after which a copy that lies in rows has paid
OFTEN = 8
#: lines: compilers take as long as the square of a function's length, so a longer text is cut into functions
LONG = 1500


class Slower(ProgramError):
    """NumPy does that faster."""


class Unsayable(Exception):
    """There is no C for a call here."""

    kind = ProgramError


class Slow(Unsayable):
    """There is none because NumPy is faster."""

    kind = Slower


class Writer(Identifiers, Walk):
    """Turns the schedule of a program into C: members of the structs, tables, and parts in their order."""

    def __init__(
        self, program: Program, fetch: list[str], memory: Memory, exact: bool, max_steps
    ) -> None:
        schedule = Lowering(program, fetch, recorder=Recorder(math.inf)).schedule
        super().__init__(schedule, RESERVED.split())
        drop_unneeded(schedule)
        make_in_place(schedule)
        self.exact, self.max_steps = exact, max_steps
        self.places: dict[Any, Any] = {}  # where an Array is, or what a loop saved
        self.members: dict[str, list[Place]] = {"p": [], "s": [], "f": []}
        self.tables: dict[Any, Place] = {}  # known numbers
        self.failures: list[Any] = []  # what raises, on what, and whose it is
        self.kept: set[str] = set()
        self.parts: list[Part] = []
        self.turned: dict[Array, Place] = {}  # a weight → what it is turned, in rows
        try:
            arrays = memory.parameters
            for name in sorted(arrays, key=lambda name: arrays[name].ctypes.data):
                place = self.member(arrays[name], name, "p")
                self.kept.add(place.ref)
                if name in schedule.state:
                    self.places[schedule.state[name]] = place
            for name, array in schedule.feeds.items():
                self.places[array] = self.member(array.like, name, "f")
            if not exact:
                self.turn_weights()
            self.lay_out_parts()
            self.items(schedule.items)
            self.fetched = [self.place(a) for a in schedule.fetched]
        except Unsayable as why:
            what = getattr(self.op, "type", "a parameter or data")
            line = getattr(self.op, "source_line", "")
            advice = "static.compile(program, …) without backend, which takes every operator"
            raise why.kind(told(f"{what} cannot be said in C: {why}", advice, line)) from None
        for k, place in enumerate(self.fetched):
            if place.ref.startswith("f->"):  # what is fed may be fetched, too
                self.fetched[k] = self.copied(place, place.view, place.name)
        self.kept |= {place.ref for place in self.fetched}

    def unique(self, wanted: str) -> str:
        """An identifier nobody has, and no macro."""
        return super().unique(wanted + "_v" if MACROS.fullmatch(wanted) else wanted)

    def turn_weights(self) -> None:
        """Copy weights that many products read turned into rows, with which BLAS is faster."""
        makers = makers_of(self.schedule.items)
        factors = arrays_in([c.args[1] for c in makers.values() if c.function in PRODUCTS])
        turned = [makers[f] for f in factors if f in makers and _turns(makers[f])]
        reads = Counter(view.args[0] for view in turned)
        for view in turned:
            weight = view.args[0]
            if weight.fixed and reads[weight] >= OFTEN and weight not in self.turned:
                self.op = view.op
                source = self.place(weight)
                rows = np.empty_like(view.out.like, order="C")
                source_turned = source.shown(source.view.T)
                self.turned[weight] = self.copied(source_turned, rows, f"{weight.name}_turned")

    def lay_out_parts(self) -> None:
        """Let what is concatenated be made in its place in the whole, where neither changes later."""
        makers, changed = makers_of(self.schedule.items), changed_memory(self.schedule.items)
        for call in makers.values():
            if call.function is not np.concatenate or call.out in changed:
                continue
            self.op = call.op
            whole = self.new(call.out)
            for part, view in zip(call.args[0], parts_of(call, whole.view), strict=True):
                made = isinstance(part, Array) and part.is_root and part in makers
                alike = made and part.dtype == view.dtype and part.like.strides == view.strides
                if alike and part not in changed and part not in self.places:
                    self.places[part] = whole.shown(view)

    # -- memory ---------------------------------------------------------------------------------

    def new(self, array: Array, like=None) -> Place:
        """Memory for an Array, as it lies in NumPy's."""
        like = array.like if like is None else like
        if like is None:
            raise Unsayable("its size is known only when it runs")
        if array not in self.places:
            self.places[array] = self.member(like, array.name)
        return self.places[array]  # type: ignore[no-any-return]

    def member(self, like, wanted: str = "", section: str = "s") -> Place:
        """A member for an array."""
        if like.dtype.name not in TYPES:
            raise Unsayable(f"there are no {like.dtype} in this C")
        name = self.unique(clean(wanted) if wanted else "t1")
        like = np.empty_like(like) if section == "s" else like
        self.members[section].append(Place(f"{section}->{name}", like, like))
        return self.members[section][-1]

    def place(self, value) -> Place:
        """Where an Array is; an array that is known now is in a table."""
        if isinstance(value, Place):
            return value
        if isinstance(value, Array):
            if value not in self.places:
                raise Unsayable("it reads what is no array")
            return self.places[value]  # type: ignore[no-any-return]
        table = np.array(value, order="C")
        if table.dtype.name not in TYPES or table.size > TABLE:
            raise Unsayable(f"it holds {table.size:,} known numbers of {table.dtype}")
        key = table.dtype.name, table.shape, table.tobytes()
        if key not in self.tables:
            self.tables[key] = Place(self.unique("k1"), table, table)
        return self.tables[key]

    # -- lines and parts ------------------------------------------------------------------------

    def line(
        self,
        out: Place,
        text: str,
        operands,
        loop=(),
        shape=None,
        start=None,
        to=None,
    ) -> None:
        """``out = text``, in which {0}, {1}, … are operands: Arrays, Places, Elements or numbers.

        Args: ``loop``, the dtypes that operands are brought to, and that of the text (else as ``out``);
        ``start``, what a sum over axes begins with, see `sum_text` (then {0} is the sum so far, and {1} the first
        operand); ``to``, the element that is written.
        """
        shape = out.shape if shape is None else shape
        if not math.prod(shape) and start is None:
            return
        *dtypes, result = loop or [out.dtype] * (len(operands) + 1)
        elements: list[Any] = []
        texts = [] if start is None else ["{out}"]
        for value, wanted in zip(operands, dtypes, strict=True):
            if isinstance(value, Element):
                element = value
            elif isinstance(value, Array | Place) or np.ndim(value):
                element = self.place(value).element(shape)
            else:
                texts.append(literal(value, wanted))
                continue
            texts.append(cast(f"{{{len(elements)}}}", element.dtype, wanted))
            elements.append(element)
        said = text.format(*texts)
        if result.kind in "iu" and result.itemsize < 4 and text != "{0}":
            said = f"({TYPES[result.name]})({said})"
        if result != out.dtype:
            said = cast(f"({said})", result, out.dtype)
        line = Line(to or out.element(), said, elements, self.op)
        if start is None:
            nests.add_line(self.parts, shape, line)
        else:
            self.part(nests.sum_text(line, shape, start), line.reads())

    def copy(self, out: Place, source) -> None:
        """``out[...] = source``, in the dtype of ``out``."""
        self.line(out, "{0}", [source])

    def copied(self, place: Place, like, wanted: str) -> Place:
        """A copy in a member of its own, which lies in memory as ``like`` does."""
        out = self.member(like, wanted)
        self.copy(out, place)
        return out

    def part(self, write, reads, inner=()) -> None:
        """A piece: its lines, or a function that writes them."""
        lines = write if callable(write) else lambda: write
        self.parts.append(Part(lines, {p.ref for p in reads}, self.op, inner))

    def each(self, name: str, elements: list[Element], shape, by: Element) -> None:
        """A function of elements, the last of which it writes, by NumPy's loop along the innermost axis."""
        *outer, (_, count, axis) = axes_of(shape, elements, by) or [("i", 1, None)]
        steps = [0 if axis is None else e.strides[axis] for e in elements]
        given = [f"&{shown(e, outer)}, {s}" for e, s in zip(elements, steps, strict=True)]
        helper = f"{'pairs' if len(elements) == 3 else 'each'}_{name}_{TYPES[by.dtype.name]}"
        if math.prod(shape):
            run = f"{helper}({count}, {', '.join(given)});"
            self.part(looped(outer, [run]), elements[:-1])

    def fail(self, function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The statement that leaves; ``function`` then raises the error of NumPy's kernel."""
        self.failures.append((function, args, kwargs, self.op))
        self.kept |= {self.place(a).ref for a in arrays_in((args, kwargs))}
        return f"    return {len(self.failures)};"

    # -- calls, loops and branches ----------------------------------------------------------------

    def call(self, call: Call) -> None:
        """By the kind of a call, or by what its function is."""
        function, args = call.function, call.args
        owner = getattr(function, "__self__", None)
        if call.kind in ("view", "fill", "check"):
            getattr(self, call.kind)(call)
        elif function in PRODUCTS:
            self.product(call)
        elif isinstance(owner, np.ufunc):
            getattr(self, function.__name__)(owner, call)
        elif isinstance(function, np.ufunc) and not call.kwargs:
            self.formula(call, function.__name__, loop_dtypes(function, args))
        elif function in COPIES:
            self.copy(self.out(call), args[0])
        elif function is np.copyto:
            self.copy(self.place(args[0]), args[1])
        elif function in MOVES:
            self.moved(call)
        elif call.path in NAMED:
            dtypes = [call.out.dtype] * (len(args) + 1)
            if function is np.where:
                dtypes[0] = np.dtype(bool)
            self.formula(call, NAMED[call.path], dtypes)
        elif call.path in ("[]", "np.take", "np.take_along_axis"):
            self.copy(self.out(call), self.looked_up(call)[0])
        elif call.path == "[]=":
            self.write(call, "{1}")
        elif call.path == "np.einsum":
            self.einsum(call, *args)
        else:
            kind = Slow if function in (np.sort, np.argsort) else Unsayable
            raise kind(f"{call.path} has no counterpart here")

    def out(self, call: Call) -> Place:
        """Where the result goes."""
        return self.place(call.into) if call.into is not None else self.new(call.out)

    def formula(self, call: Call, name: str, loop) -> None:
        """An expression of the table; ``loop``, the dtypes operands are brought to, and the result's."""
        *dtypes, result = loop
        text, out = expression(name, dtypes[-1]), self.out(call)
        rounded = call.function is np.round and any(call.args[1:])
        if text is None or call.kwargs or rounded:
            raise Unsayable(f"there is no C for {call.path} on {dtypes[-1]}")
        if name in EXPRESSIONS["loops"] and result.kind == "f" and out.dtype == result:
            places = [self.converted(a, result) for a in call.args]
            elements = [place.element(out.shape) for place in (*places, out)]
            self.each(name, elements, out.shape, elements[-1])
        else:
            self.line(out, text, call.args, loop)

    def converted(self, value, dtype: DType) -> Place:
        """A value in memory, in a dtype."""
        place = self.place(value if isinstance(value, Array) else np.asarray(value, dtype))
        if place.dtype == dtype:
            return place
        return self.copied(place, np.empty(place.shape, dtype), place.name)

    def view(self, call: Call) -> None:
        """Other elements of the same memory; a copy where there is no such view."""
        array, *how = call.args
        source = self.place(array)
        view = call.function(source.view, *how, **call.kwargs)
        if _turns(call) and array in self.turned:
            self.places[call.out] = self.turned[array]
        elif np.may_share_memory(view, source.view) or not view.size:
            self.places[call.out] = source.shown(view)
        else:
            out = self.new(call.out, view)
            self.copy(out.shown(out.view.reshape(source.shape)), source)

    def fill(self, call: Call) -> None:
        """Memory of one value."""
        out, value = self.new(call.out), call.args[1]
        if value is not None:
            self.copy(out, value)

    def check(self, call: Call) -> None:
        """A condition without which the kernel raises."""
        condition, args, attrs = call.args
        place = self.place(condition)
        self.part([f"if (!{place.first})", self.fail(refusal(call.function), args, attrs)], [place])

    # -- sums over axes, and products -------------------------------------------------------------

    def reduce(self, ufunc, call: Call) -> None:
        """A sum over axes, with any operator; along the innermost one NumPy's loop, which has an order of its own."""
        name, kwargs = ufunc.__name__, call.kwargs
        x, out = self.place(call.args[0]), self.out(call)
        shape, dtype = x.shape, out.dtype
        text = expression(name, dtype)
        if text is None:
            raise Unsayable(f"there is no C for {call.path} on {dtype}")
        axis, first = kwargs.get("axis", 0), kwargs.get("initial")
        given = out.view
        if not kwargs.get("keepdims"):
            every = axis is None or not shape
            given = np.expand_dims(given, tuple(range(len(shape))) if every else axis)
        to, each = out.shown(given).element(shape), x.element()
        if first is None:
            first = neutral(ufunc, dtype)
        axes = axes_of(shape, [to, each], each)
        if axes and dtype.kind == "f" and x.dtype == dtype:
            _, count, k = axes[-1]
            if count >= (nests.LONGEST_ROW + 1 if to.strides[k] else FEW):
                self.copy(out, first)
                self.each(name, [to, each, to], shape, each)
                return
        self.line(out, text, [x], shape=shape, start=literal(first, dtype), to=to)

    def accumulate(self, ufunc, call: Call) -> None:
        """Sums so far along an axis."""
        out = self.out(call)
        x = self.converted(call.args[0], out.dtype)
        axis = call.kwargs.get("axis", 0)
        x, out = (p.shown(np.moveaxis(p.view, axis, 0)) for p in (x, out))
        self.copy(out[:1], x[:1])
        elements = [p.element() for p in (out[:-1], x[1:], out[1:])]
        self.each(ufunc.__name__, elements, out[1:].shape, elements[-1])

    def product(self, call: Call) -> None:
        """Matrix products, of stacks, too."""
        a, b = (self.place(x) for x in call.args)
        c = self.out(call)
        if call.function is np.dot and max(a.view.ndim, b.view.ndim) > 2:
            raise Unsayable("np.dot of stacks")
        if b.view.ndim == 1:
            b, c = b[:, None], c[..., None]
        if a.view.ndim == 1:
            a, c = a[None], c[..., None, :]
        *batch, m, n = c.shape
        k, dtype = a.shape[-1], c.dtype
        little = not self.exact and m * n * k <= LITTLE
        if little or not k or dtype.kind == "b" or not a.dtype == b.dtype == dtype:
            self.products(c, c[..., None, :], a[..., None], b[..., None, :, :])
            return
        if not c.view.size:
            return
        elements = [p.element((*batch, *p.shape[-2:])) for p in (a, b, c)]
        axes = axes_of(tuple(batch), elements, None)
        given = [f"&{shown(e, axes)}, {e.strides[-2]}, {e.strides[-1]}" for e in elements]
        name, sizes = "product", f"{m}, {n}, {k}"
        large = dtype.kind == "f" and m * n * k > UNCOPIED >= 8 * n * k
        if large and elements[1].strides[-1] == 1 and not self.exact:
            name, sizes = "product_by_rows", f"{UNCOPIED // (n * k) // 8 * 8}, {sizes}"
        text = f"{name}_{TYPES[dtype.name]}({sizes}, {', '.join(given)});"
        self.part(looped(axes, [text]), [a, b])

    def products(self, out: Place, to: Place, *factors: Place) -> None:
        """Products added up over the axes that ``to``, which shows ``out``, does not have."""
        if out.dtype.kind not in "fiu":
            raise Unsayable(f"products of {out.dtype}")
        shape = np.broadcast_shapes(*(p.shape for p in factors))
        text = "{0} + " + " * ".join(f"{{{k}}}" for k in range(1, len(factors) + 1))
        self.line(out, text, factors, shape=shape, start="0", to=to.element(shape))

    def einsum(self, call: Call, subscripts: str, *xs) -> None:
        """A sum of products over named axes."""
        places = [self.place(x) for x in xs]
        terms, labels = explicit(subscripts, [x.view.ndim for x in places])
        order = labels + "".join(sorted({*"".join(terms)} - {*labels}))
        factors, out = [], self.out(call)
        for x, said in zip(places, terms, strict=True):
            own = "".join(c for c in order if c in said)
            # a view, of diagonals, too
            view = np.einsum(f"{said}->{own}", x.view) if said else x.view
            axes = [slice(None) if c in said else None for c in order]
            factors.append(x.shown(view[(*axes, ...)]))
        if np.broadcast(*(p.view for p in factors)).size > SMALL:
            raise Slow(f"more than {SMALL:,} products are added up elsewhere")
        self.products(out, out[..., *[None] * (len(order) - len(labels))], *factors)

    # -- elements in other places -------------------------------------------------------------------

    def moved(self, call: Call) -> None:
        """Elements in another place: the function moves numbers, which say what comes from where; 0 is a zero."""
        source, *more = call.args
        out = self.out(call)
        if isinstance(source, list | tuple):
            for part, view in zip(source, parts_of(call, out.view), strict=True):
                self.copy(out.shown(view), part)
            return
        source = self.place(source)
        chosen = call.function(offsets(source) + 1, *more, **call.kwargs)
        element = self.chosen(source, np.maximum(chosen - 1, 0))
        if chosen.all():
            self.copy(out, element)
        else:
            loop = out.dtype, np.dtype(bool), out.dtype
            self.line(out, "{1} ? {0} : 0", [element, chosen != 0], loop)

    def chosen(self, x: Place, at) -> Element:
        """Elements in places that are known: a view where they lie regularly, a table else."""
        first, strides = 0, [0] * at.ndim
        if at.size:
            first = int(at.flat[0])
            for k in nests.long_axes(at.shape):
                strides[k] = int(np.diff(at, axis=k).flat[0])
        element = Element(x.ref, x.dtype, tuple(strides), first, x.at)
        if np.array_equal(grid(at.shape, strides, first), at):
            return element
        table = self.place(at.astype(np.int32)).element()
        return element._replace(strides=(0,) * at.ndim, offset=0, looked_up=((table, 0, 1),))

    def looked_up(self, call: Call) -> tuple[Element, Any]:
        """The element of ``x[index]`` for each index of the result, and its shape; ``call`` raises else."""
        x, index = self.place(call.args[0]), call.args[1]
        axis = call.kwargs.get("axis")
        if call.path == "np.take":
            if axis is None:
                x, axis = x.shown(x.view.reshape(-1)), 0
                if not np.may_share_memory(x.view, x.base):
                    raise Unsayable("take from what does not lie in one piece")
            index = slices_at(index, axis, x.view.ndim)
        elif call.path == "np.take_along_axis":
            index = along(index, x.shape, int(call.args[2]))
        if any(a.dtype.kind not in "iu" for a in arrays_in(index)):
            raise Unsayable("a mask chooses how many")
        at, arrays = index_arrays(offsets(x), index, Array)
        element = self.chosen(x, at)
        for array, axis, which in arrays:
            place, length = self.place(array), x.shape[axis]
            self.check_range(place, length, call)
            up = self.chosen(place, offsets(place).ravel()[which]), length, x.strides[axis]
            element = element._replace(looked_up=(*element.looked_up, up))
        return element, at.shape

    def check_range(self, index: Place, length: int, call: Call) -> None:
        """Leave if an index points outside."""
        element = index.element()
        axes = axes_of(index.shape, [element], element)
        at = shown(element, axes)
        leave = self.fail(call.function, call.args, call.kwargs)
        test = looped(axes, [f"if ({at} < -{length} || {at} >= {length})", leave])
        self.part(test, [index])

    def write(self, call: Call, text: str) -> None:
        """Values into places that are looked up, one after the other: {1} is a value, {0} what is there."""
        out = self.place(call.args[0])
        element, shape = self.looked_up(call)
        self.line(out, text, [call.args[2]], shape=shape, start="", to=element)

    def at(self, ufunc, call: Call) -> None:
        """``np.add.at``."""
        self.write(call, str(expression(ufunc.__name__, call.args[0].dtype)))

    # -- loops and branches -----------------------------------------------------------------------

    @contextmanager
    def block(self, items: list[Any]) -> Iterator[list[Part]]:
        """The parts of a body; what is said in the block comes behind it."""
        outer, op, self.parts = self.parts, self.op, []
        self.items(items)
        self.op = op
        yield self.parts
        self.parts = outer

    def loop(self, loop: Loop) -> None:
        """``while`` and ``recurrent``, forwards and back."""
        back, t = loop.backward, self.unique("step1")
        begins = []
        for start, begin, _, final in loop.carried:
            place = self.places[final] = self.new(begin, self.place(start).view)
            self.copy(place, start)
            begins.append(place)
        steps = self.most_steps(loop.frames.item if back else loop)
        frames = self.places[loop.frames] if back else {}
        if loop.go_on is not None:
            frames["count"] = self.member(np.empty(1, np.int64), "steps")
        count: Any = frames.get("count")
        self.places[loop.frames] = frames
        for seq, part in loop.slices:
            self.places[part] = row(self.place(seq), t)
        for value, here in loop.saved if back else ():
            self.places[here] = mapped(frames[value], partial(row, t=t))
        for _, total, like in loop.totals:
            place = self.new(total, self.place(like).view)
            self.copy(place, 0.0 if count else -0.0)
        with self.block(loop.test) as test, self.block(loop.body) as body:
            self.hand_on(loop, steps, frames, begins, t)
        head = f"for (int {t} = 0; {t} < {steps}; {t}++) {{"
        if back:
            last = f"(int){count.first}" if count else steps
            head = f"for (int {t} = {last} - 1; {t} >= 0; {t}--) {{"
        before, stop, after = [], [], []
        reads = [place for place in (*begins, count) if place]
        if loop.go_on is not None:
            limit = min(STEP_LIMIT, steps) if loop.saved else STEP_LIMIT
            leave = self.fail(too_many_steps, (limit,), {})
            go_on = self.place(loop.go_on)
            reads.append(go_on)
            head = f"for (int {t} = 0;; {t}++) {{"
            before, after = [f"{count.first} = 0;"], [f"{count.first} = {t} + 1;"]
            stop = [f"if (!{go_on.first})", "    break;", f"if ({t} == {limit})", leave]

        def write() -> list[str]:
            lines = [*self.written(test), *stop, *self.written(body), *after]
            return [*before, head, *indented(lines), "}"]

        self.part(write, reads, (test, body))

    def most_steps(self, loop: Loop) -> int:
        """How many steps a loop makes at most, if its grad op needs what they save."""
        if loop.go_on is None:
            return len(self.place(loop.slices[0][0]).view)
        if loop.saved and self.max_steps is None:
            raise Unsayable("its gradient needs the values of every step: give max_steps=…")
        return self.max_steps or 0

    def hand_on(self, loop: Loop, steps: int, frames, begins: list[Place], t: str) -> None:
        """Behind a step: what it saves, adds up, stacks and hands to the next one."""

        def stacked(place: Place, name: str) -> Place:
            whole = self.member(np.empty((steps, *place.shape), place.dtype), name)
            self.copy(row(whole, t), place)
            return whole

        for value in () if loop.backward else loop.saved:
            frames[value] = mapped(self.places[value], lambda p: stacked(p, f"{p.name}_saved"))
        for value, total, _ in loop.totals:
            self.line(self.place(total), "{0} + {1}", [total, value])
        for value, stack in loop.stacked:
            self.places[stack] = stacked(self.place(value), stack.name)
        nexts = [self.place(c[2]) for c in loop.carried]
        changed = {begin.ref for begin in begins}
        for k, value in enumerate(nexts):
            if value.ref in changed and value.element() != begins[k].element():
                nexts[k] = self.copied(value, value.view, "held")
        for begin, value in zip(begins, nexts, strict=True):
            self.copy(begin, value)

    def branch(self, branch: Branch) -> None:
        """``cond`` and its grad op."""
        pred = self.place(branch.pred)
        saved = [*branch.saved[0], *branch.saved[1]]
        for value, here in saved if branch.backward else ():
            self.places[here] = self.places[branch.frames][value]
        sides = []
        for k, items in enumerate(branch.bodies):
            with self.block(items) as side:
                for *values, result in branch.results:
                    value = self.place(values[k])
                    self.copy(self.new(result, value.view), value)
            sides.append(side)
        if not branch.backward:
            frames = {v: self.places[v] for v in saved}
            mapped(frames, lambda place: self.kept.add(place.ref))
            self.places[branch.frames] = frames

        def write() -> list[str]:
            yes, no = (indented(self.written(side)) for side in sides)
            if no:
                yes += ["} else {", *no]
            return [f"if ({pred.first}) {{", *yes, "}"]

        self.part(write, [pred], sides)

    # -- the text ---------------------------------------------------------------------------------

    def written(self, parts: list[Part]) -> list[str]:
        """The text of parts."""
        out: list[str] = []
        for part in parts:
            if isinstance(part, Nest):
                out += nests.nest_text(part, partial(self.is_needed, part))
            else:
                out += [nests.comment(part.op), *part.write()]
        return out

    def is_needed(self, nest: Nest, ref: str) -> bool:
        """Whether anything but this nest reads a member."""
        return ref in self.kept or self.readers[ref] > (ref in nest.reads)

    def text(self) -> str:
        """The whole file."""
        self.readers = nests.readers(self.parts)
        pieces = [self.written([part]) for part in self.parts]
        longest = LONG // 10 if sum(map(len, pieces)) > LONG else LONG
        functions: list[str] = []
        calls: list[str] = []
        rest: list[str] = []
        for piece in pieces:
            if len(rest) > longest:
                name = self.unique(f"part{len(functions)}")
                functions.append("static " + function(name, rest))
                calls += [f"if ((failed = {name}(p, s, f)) != 0)", "    return failed;"]
                rest = []
            rest += piece
        calls = ["int failed;", *calls] if calls else []
        body = "\n".join([*functions, function("step", calls + rest)])
        words = self.kept | set(re.findall(r"\b(?:[psf]->)?[A-Za-z]\w*", body))
        tables = "".join(declared(t) + "\n" for t in self.tables.values() if t.ref in words)
        self.members["s"] = [m for m in self.members["s"] if m.ref in words]
        structs, names = "", ("parameters", "memory", "feeds")
        for name, members in zip(names, self.members.values(), strict=True):
            lines = indented([declared(m) for m in members] or ["char nothing;"])
            structs += "\n".join([f"struct {name} {{", *lines, "};", "", ""])
        head = "#include <math.h>\n#include <stdint.h>\n\n" + helpers_in(body)
        return head + (tables and tables + "\n") + structs + body


def _turns(call: Call) -> bool:
    """Whether a call reverses the axes."""
    return call.function is np.transpose and len(call.args) + len(call.kwargs) == 1


def function(name: str, body: list[str]) -> str:
    """A function of what is in the three structs."""
    text = "\n".join(body)
    unused = [v for v in "psf" if f"{v}->" not in text and "(p, s, f)" not in text]
    lines = indented([*(f"(void){v};" for v in unused), *body, "return 0;"])
    structs = (
        "struct parameters *restrict p, struct memory *restrict s, const struct feeds *restrict f"
    )
    return "\n".join([f"int {name}({structs}) {{", *lines, "}", ""])


def declared(member: Place) -> str:
    """A member in its struct, or a table."""
    base, ctype = member.base, TYPES[member.base.dtype.name]
    if "->" not in member.ref:
        numbers = ", ".join(literal(v, base.dtype) for v in base.ravel().tolist()) or "0"
        return f"static const {ctype} {member.ref}[] = {{{numbers}}};"
    if member.ref.startswith("f->"):
        return f"const {ctype} *{member.name}; /* {[*base.shape]} */"
    return f"{ctype} {member.name}[{padded(base) // base.itemsize}]; /* {[*base.shape]} */"


def row(place: Place, t: str) -> Place:
    """The part of a place that belongs to a step of a loop; of no steps, one that nobody reads."""
    step = f"{t} * {place.strides[0]}"
    at = f"{place.at} + {step}" if place.at else step
    if not place.shape[0]:
        none = np.empty(place.shape[1:], place.dtype)
        return replace(place, base=none, view=none, at=at)
    return replace(place[0, ...], at=at)


def parts_of(call: Call, whole) -> list[Any]:
    """The views of a ``whole`` that what is concatenated or stacked becomes."""
    parts, axis = call.args[0], call.kwargs.get("axis", 0)
    if call.function is np.stack:
        rows = np.moveaxis(whole, axis, 0)
        return [rows[k, ...] for k in range(len(rows))]
    ends = np.cumsum([np.shape(a)[axis] for a in parts])
    return np.split(whole, ends[:-1], axis)


def grid(shape, strides, first: int) -> Any:
    """``first + i * strides[0] + j * strides[1] + …`` for every index."""
    axes = zip(np.indices(shape, sparse=True), strides, strict=True)
    return sum((index * step for index, step in axes), start=np.full(shape, first))


def offsets(place: Place) -> Any:
    """For each element its place in the member."""
    return grid(place.shape, place.strides, place.offset)
