"""Memory and parts of a page of C: where every Array is, and what is done to it in order."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import numpy as np

from ...compiler.lower import lower
from ...compiler.memory import Memory
from ...compiler.passes.dce import drop_unneeded
from ...compiler.passes.in_place import make_in_place
from ...compiler.schedule import Array, Call, arrays_in, changed_memory, is_elementwise, makers_of
from ...compiler.syntax import Identifiers, clean
from ...compiler.tracer import Recorder
from ...errors import ProgramError
from ...static.program.program import Program
from .expressions import TYPES, cast, functions, literal, table
from .nests import Element, Line, Part, Place, add_line, axes_of, looped, shown, sum_text

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


class Unsayable(Exception):
    """There is no C for a call here; ``slow``, because NumPy is faster."""

    def __init__(self, why: str, slow: bool = False) -> None:
        super().__init__(why)
        self.kind = Slower if slow else ProgramError


class Slower(ProgramError):
    """NumPy does that faster."""


class Page(Identifiers):
    """What is written on: members of the structs, tables, parts."""

    def __init__(self, program: Program, fetch: list[str], memory: Memory, exact: bool) -> None:
        super().__init__(lower(program, fetch, recorder=Recorder(math.inf)), RESERVED.split())
        drop_unneeded(self.schedule)
        make_in_place(self.schedule)
        self.exact = exact
        self.op: Any = None
        self.places: dict[int, Any] = {}  # id of an Array → its Place, or what a loop saved
        self.keep: list[Any] = []  # ids stay unique while their objects live
        self.joined: dict[Array, tuple[Array, int]] = {}  # a part → the whole, where it begins
        used = [a for item in self.schedule.items for a in item.reads()]
        self.reads = Counter(used + self.schedule.fetched)
        self.members: dict[str, list[Place]] = {"p": [], "s": [], "f": []}
        self.tables: dict[Any, tuple[Place, str]] = {}
        self.failures: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        self.kept: set[str] = set()
        self.parts: list[Part] = []
        for name in memory.in_order():
            place = self.member(memory.parameters[name], name, "p")
            self.kept.add(place.ref)
            if name in self.schedule.state:
                self.put(self.schedule.state[name], place)
        for name, array in self.schedule.feeds.items():
            if array.like is None:
                raise ProgramError(f"the size of {name!r} is open: C is written for known sizes")
            self.put(array, self.member(array.like, name, "f"))

    def unique(self, wanted: str) -> str:
        """An identifier nobody has, and no macro."""
        return super().unique(wanted + "_v" if MACROS.fullmatch(wanted) else wanted)

    # -- memory ---------------------------------------------------------------------------------

    def put(self, array: Array, place: Any) -> None:
        """Note where an Array is."""
        self.places[id(array)] = place
        self.keep.append(array)

    def new(self, array: Array, like: Any = None) -> Place:
        """Memory for an Array, as it lies in NumPy's."""
        like = array.like if like is None else like
        if like is None:
            raise Unsayable("its size is known only when it runs")
        if id(array) not in self.places:  # else parts of it were made before
            if array in self.joined:
                whole, begin = self.joined[array]
                place = self.new(whole)
                part = place.view.reshape(-1)[begin : begin + like.size]
                self.put(array, place.shown(part.reshape(like.shape)))
            else:
                self.put(array, self.member(like, array.name))
        return self.places[id(array)]  # type: ignore[no-any-return]

    def join(self, items: list[Any]) -> None:
        """Let values be made in the memory of what they become, where nothing else may lie there."""
        makers, changed = makers_of(items), changed_memory(items)

        def free(array: Any) -> bool:
            known = isinstance(array, Array) and array in makers and array.like is not None
            fits = known and array.is_root and array.like.flags.c_contiguous
            return fits and makers[array].into is None and array not in changed

        for call in reversed([item for item in items if free(getattr(item, "out", None))]):
            root, first = self.joined.get(call.out, (call.out, 0))
            for part, begin in self.becoming(call, makers):
                lasts = self.reads[part] == 1 or root is call.out  # nothing is written over it
                if lasts and free(part) and part.dtype == call.out.dtype:
                    self.joined.setdefault(part, (root, first + begin))

    def becoming(self, call: Call, makers: dict[Array, Call]) -> list[tuple[Array, int]]:
        """The operands that become a part of a call's result, and where in it they begin.

        What is put one behind the other is made where it will stand, so no copy is left to do.  A function works in
        place, and so does what adds to a product, on an operand that nobody else reads.
        """
        if call.function in (np.concatenate, np.stack):
            views = [Place("", call.out.like, v) for v in parts_of(call, call.out.like)]
            pairs = zip(call.args[0], views, strict=True)
            return [
                (a, p.offset)
                for a, p in pairs
                if isinstance(a, Array) and p.view.flags.c_contiguous
            ]
        if not is_elementwise(call):
            return []
        alone = [a for a in call.reads() if self.reads[a] == 1 and a.shape == call.out.shape]
        if not table().has_option("loops", call.function.__name__):
            alone = [a for a in alone if a in makers and makers[a].function in PRODUCTS]
        return [(a, 0) for a in alone[:1]]

    def member(self, like: Any, wanted: str = "", section: str = "s") -> Place:
        """A member for an array."""
        if like.dtype.name not in TYPES:
            raise Unsayable(f"there are no {like.dtype} in this C")
        name = self.unique(clean(wanted) if wanted else "t1")
        like = np.empty_like(like)
        self.members[section].append(Place(f"{section}->{name}", like, like))
        return self.members[section][-1]

    def place(self, value: Any) -> Place:
        """Where an Array is; an array that is known now is in a table."""
        if isinstance(value, Place):
            return value
        if isinstance(value, Array):
            if id(value) not in self.places:
                raise Unsayable("it reads what is no array")
            return self.places[id(value)]  # type: ignore[no-any-return]
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

    # -- lines and parts ------------------------------------------------------------------------

    def line(
        self,
        out: Place,
        text: str,
        operands: Any,
        dtypes: Any = (),
        result: Any = None,
        shape: Any = None,
        start: Any = None,
        to: Any = None,
    ) -> None:
        """``out = text``, in which {0}, {1}, … are operands: Arrays, Places, Elements or numbers.

        Args: ``dtypes``, what each operand is brought to, and ``result``, what the text is of (else as ``out``);
        ``start``, what a sum over axes begins with, see `sum_text`; ``to``, the element that is written.
        """
        shape = out.view.shape if shape is None else shape
        if not math.prod(shape) and start is None:
            return
        dtype = out.view.dtype
        elements: list[Any] = []
        texts: list[str] = []
        for k, value in enumerate(operands):
            wanted = given = dtypes[k] if dtypes else dtype
            element: Any = value
            if isinstance(value, Element):
                given = value.dtype
            elif not isinstance(value, Array | Place) and np.ndim(value) == 0:
                element = literal(value, wanted)
            else:
                place = self.place(value)
                given = place.view.dtype
                element = place.element(shape)
            elements.append(element)
            texts.append(cast(f"{{{k}}}", given, wanted))
        said = re.sub(r"\{(\d)\}", lambda m: texts[int(m[1])], text)
        result = dtype if result is None else result
        if result.kind in "iu" and result.itemsize < 4 and text != "{0}":
            said = f"({TYPES[result.name]})({said})"
        if result != dtype:
            said = cast(f"({said})", result, dtype)
        name = out.name + "_" * (out.name in functions())
        kind, to = TYPES[dtype.name], to or out.element()
        line = Line(name, kind, to, said, elements, self.op)
        if start is None:
            add_line(self.parts, shape, line)
        else:
            self.part(sum_text(line, shape, start), line.reads())

    def copy(self, out: Place, source: Any) -> None:
        """``out[...] = source``, in the dtype of ``out``."""
        source = self.place(source) if isinstance(source, Array) else source
        shape = out.view.shape
        axes = [k for k, n in enumerate(shape) if n != 1]
        ends = [p.element(shape).along(axes) for p in (source, out) if isinstance(p, Place)]
        if len(ends) < 2 or ends[0] != ends[1]:  # else it is there already
            self.line(out, "{0}", [source])

    def part(self, write: Any, reads: Any, inner: Any = ()) -> None:
        """A piece: its lines, or a function that writes them."""
        lines = write if callable(write) else lambda: write
        self.parts.append(Part(lines, {p.ref for p in reads}, self.op, inner))

    def each(self, name: str, elements: list[Element], shape: Any, by: Element) -> None:
        """A function of elements, the last of which it writes, by NumPy's loop along the innermost axis."""
        *outer, (_, count, axis) = axes_of(shape, elements, by) or [("i", 1, None)]
        steps = [0 if axis is None else e.strides[axis] for e in elements]
        given = [f"&{shown(e, outer)}, {s}" for e, s in zip(elements, steps, strict=True)]
        helper = f"{'pairs' if len(elements) == 3 else 'each'}_{name}_{TYPES[by.dtype.name]}"
        if math.prod(shape):
            run = f"{helper}({count}, {', '.join(given)});"
            self.part(looped(outer, [run]), elements[:-1])

    def fail(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The statement that leaves; ``function`` then raises the error of NumPy's kernel."""
        self.failures.append((function, args, kwargs, self.op))
        self.kept |= {self.place(a).ref for a in arrays_in((args, kwargs))}
        return f"    return {len(self.failures)};"


def parts_of(call: Call, whole: Any) -> list[Any]:
    """The views of a ``whole`` that what is concatenated or stacked becomes."""
    parts, axis = call.args[0], call.kwargs.get("axis", 0)
    if call.function is np.stack:
        rows = np.moveaxis(whole, axis, 0)
        return [rows[k, ...] for k in range(len(rows))]
    ends = np.cumsum([np.shape(a)[axis] for a in parts])
    return np.split(whole, ends[:-1], axis)
