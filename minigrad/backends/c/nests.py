"""Loop nests: elementwise operators of one shape that run in the same loops.

Place   where an Array's elements are: a member of a struct, and how an index moves in it
Line    one elementwise call, or one sum over axes, as an expression of C
Nest    lines of one shape, written as one nest of loops; what only they read stays in a register
Part    anything else that is written at a piece: a product, a test, a loop of the program

Parts are in order.  A line joins the last nest of its shape, unless something it must stay behind stands in between.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...compiler.source import comment_of
from ...static.program.operator import Operator
from .expressions import LETTERS

#: lines of a nest: longer ones take compilers long
LONGEST = 48
#: sums over rows that are kept beside each other in registers
LONGEST_ROW = 256
#: what may fail reads it, what changes a parameter writes it: so parameters change last
FAILS = "!"
#: what tests an index writes it, what uses one reads it
TESTED = "?"


class Place(NamedTuple):
    """Elements of a struct member: ``view`` shows which elements of ``base`` they are.

    ``at`` is what a loop around it adds to the index: "t1 * 64".
    """

    ref: str
    base: Any
    view: Any
    at: str = ""

    @property
    def name(self) -> str:
        """The name of the member."""
        return self.ref.rpartition(">")[2]

    @property
    def first(self) -> str:
        """Its first element."""
        return shown(self.element(), [])

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements."""
        return tuple(s // self.view.itemsize for s in self.view.strides)

    @property
    def offset(self) -> int:
        """In elements, from the beginning of the member."""
        begins = [a.__array_interface__["data"][0] for a in (self.view, self.base)]
        return (begins[0] - begins[1]) // self.view.itemsize if self.view.size else 0

    def shown(self, view: Any) -> Place:
        """The same memory, seen as another view."""
        return self._replace(view=view)

    def element(self, shape: tuple[int, ...] | None = None) -> Element:
        """One element for each index of a shape it is stretched to."""
        wide = self if shape is None else self.shown(np.broadcast_to(self.view, shape))
        return Element(self.ref, self.view.dtype, wide.strides, self.offset, self.at)


class Element(NamedTuple):
    """An operand: which element of which member belongs to an index of the nest.

    ``looked_up`` adds to it what index arrays say: (their element, the length of the axis, its stride).
    """

    ref: str
    dtype: Any
    strides: tuple[int, ...]
    offset: int
    at: str = ""
    looked_up: tuple[Any, ...] = ()

    def along(self, axes: list[int]) -> Element:
        """The same for some of the axes."""
        ups = tuple((e.along(axes), *rest) for e, *rest in self.looked_up)
        return self._replace(strides=tuple(self.strides[k] for k in axes), looked_up=ups)


def index_of(indices: Iterable[str], strides: Iterable[int], offset: int = 0, at: str = "") -> str:
    """``i * 16 + j``."""
    out = at
    for name, step in zip(indices, strides, strict=True):
        if step:
            term = name if abs(step) == 1 else f"{name} * {abs(step)}"
            sign = "-" if step < 0 else "+" * bool(out)
            out = f"{out} {sign} {term}" if out else sign + term
    if out.startswith("-"):
        return f"{offset} - {out[1:]}" if offset else out
    return f"{out} + {offset}" if out and offset else out or str(offset)


def shown(operand: Element | str, axes: list[Any]) -> str:
    """An operand in loops over axes."""
    if isinstance(operand, str):
        return operand
    strides = [operand.strides[a[-1]] for a in axes]
    index = index_of([a[0] for a in axes], strides, operand.offset, operand.at)
    for element, length, stride in operand.looked_up:
        at = shown(element, axes)
        if length:  # one that is not known before may count from the end
            at = f"({at} < 0 ? {at} + {length} : {at})"
        at = at if stride == 1 else f"{at} * {stride}"
        index = at if index == "0" else f"{index} + {at}"
    return f"{operand.ref}[{index}]"


@dataclass(eq=False)
class Line:
    """``out = expression``; with a ``start`` the expression may hold {out}, what is there so far."""

    name: str
    kind: str  # the type in C
    out: Element
    text: str  # {0}, {1}, … stand for the operands
    operands: list[Element | str]
    op: Operator | None
    start: str | None  # what a sum over axes begins with; "" if it goes on from what is there
    alone: bool = False  # whether it shares its loops with nothing

    def reads(self) -> list[Element]:
        """Operands in memory."""
        elements = [o for o in self.operands if isinstance(o, Element)]
        return elements + [at for e in [*elements, self.out] for at, *_ in e.looked_up]


@dataclass(eq=False)
class Part:
    """A piece of the text that is written by a function of its own; ``inner``, blocks that it has."""

    write: Callable[[], list[str]]
    reads: set[str]
    writes: set[str]
    op: Operator | None = None
    fails: bool = False
    inner: Iterable[Parts] = ()

    def __post_init__(self) -> None:
        self.own = self.reads  # without what its blocks read
        inner = [part for block in self.inner for part in block.parts]
        self.reads = self.reads.union({FAILS} if self.fails else (), *(p.reads for p in inner))
        self.writes = self.writes.union({TESTED} if self.fails else (), *(p.writes for p in inner))


class Nest(Part):
    """Loops over a shape."""

    def __init__(self, op: Operator | None, shape: tuple[int, ...]) -> None:
        super().__init__(list, set(), set(), op)
        self.shape = shape
        self.lines: list[Line] = []
        self.read: dict[str, set[Any]] = {}  # member → the elements that are read
        self.wrote: dict[str, Any] = {}  # member → the element that is written

    def takes(self, line: Line) -> bool:
        """Whether a line sees the same numbers in this nest as behind it."""
        for e in line.reads():
            if e.ref in self.wrote and (self.wrote[e.ref] != e or e.looked_up):
                return False
        out = line.out
        if line.start is not None:
            free = out.ref not in self.read and out.ref not in self.wrote
        else:
            free = self.read.get(out.ref, {out}) == {out} == {self.wrote.get(out.ref, out)}
        return free and len(self.lines) < LONGEST

    def add(self, line: Line) -> None:
        """One line more."""
        self.lines.append(line)
        for e in line.reads():
            self.read.setdefault(e.ref, set()).add(e)
            self.own.add(e.ref)
        # what a sum has so far is no value that others may read
        self.wrote[line.out.ref] = line.out if line.start is None else None


class Parts:
    """The parts of one block, in order."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.read: dict[str, int] = {}  # member → the last part that reads it
        self.wrote: dict[str, int] = {}
        self.nests: dict[Any, int] = {}  # shape → its last nest

    def add(self, part: Part, reads: set[str], writes: set[str], k: int | None = None) -> None:
        """A part behind all others; or what a line adds to the k-th."""
        if k is None:
            k = len(self.parts)
            self.parts.append(part)
        part.reads |= reads
        part.writes |= writes
        self.read |= {key: max(k, self.read.get(key, -1)) for key in reads}
        self.wrote |= {key: max(k, self.wrote.get(key, -1)) for key in writes}

    def line(self, shape: tuple[int, ...], line: Line, state: bool) -> None:
        """A line, in the last nest of its shape or in a new one."""
        reads, writes = {e.ref for e in line.reads()}, {line.out.ref}
        if state:
            writes.add(FAILS)
        if any(isinstance(o, Element) and o.looked_up for o in [line.out, *line.operands]):
            reads.add(TESTED)
        axes = [k for k, n in enumerate(shape) if n != 1]
        shape = tuple(shape[k] for k in axes)
        line.out = line.out.along(axes)
        line.operands = [o.along(axes) if isinstance(o, Element) else o for o in line.operands]
        after = [self.wrote.get(key, -1) for key in reads | writes]
        after += [self.read.get(key, -1) for key in writes]
        kind = shape, line.alone, line.op is not None and line.op.role == "optimize"
        k: Any = self.nests.get(kind, -1)
        nest: Any = self.parts[k] if k >= 0 else None
        if nest is None or k < max(after) or line.alone or not nest.takes(line):
            self.nests[kind], k, nest = len(self.parts), None, Nest(line.op, shape)
        nest.add(line)
        self.add(nest, reads, writes, k)

    def readers(self) -> dict[str, set[int]]:
        """Member → the parts that read it, those of inner blocks, too."""
        out: dict[str, set[int]] = {}
        for part in self.parts:
            for found in [
                {ref: {id(part)} for ref in part.own},
                *(b.readers() for b in part.inner),
            ]:
                for ref, ids in found.items():
                    out[ref] = out.get(ref, set()) | ids
        return out


def nest_text(nest: Nest, needed: Callable[[str], bool]) -> list[str]:
    """The text of a nest; ``needed`` tells whether anything else reads a member."""
    lines, kept = _alive(nest.lines, needed)
    elements = [e for line in lines for e in line.reads()] + [line.out for line in kept]
    axes = axes_of(nest.shape, elements, kept[0].out if kept else None)
    if len(lines) == 1 and lines[0].start:
        return _summed(lines[0], axes)
    comments = [comment(line.op) for line in lines]
    one = len(set(comments)) == 1
    text, body = comments[: int(one)], []
    local: dict[Element, str] = {}
    names: set[str] = set()
    for k, line in enumerate(lines):
        if line.start:
            around = [a for a in axes if line.out.strides[a[-1]]]
            text += looped(around, [f"{shown(line.out, around)} = {line.start};"])
        if not one and comments[k] != comments[k - 1 or -1]:
            body.append(comments[k])
        target = shown(line.out, axes)
        value = line.text.format(
            *(local.get(o) or shown(o, axes) for o in line.operands),  # type: ignore[arg-type]
            out=target,
        )
        if line.start is None and any(line.out in later.reads() for later in lines[k + 1 :]):
            local = {e: n for e, n in local.items() if e.ref != line.out.ref}
            while line.name in names:
                line.name += "_"
            names.add(line.name)
            local[line.out] = line.name
            body.append(f"const {line.kind} {line.name} = {value};")
            value = line.name
        if line in kept:
            body.append(f"{target} = {value};")
    if not axes and local:
        body = ["{", *indented(body), "}"]
    return text + looped(axes, body) if lines else []


def _summed(line: Line, axes: list[Any]) -> list[str]:
    """A sum over axes, alone in its nest, which stays in registers: one number, or a row of them."""
    kept = [a for a in axes if line.out.strides[a[-1]]]
    behind = next((k for k, a in enumerate(reversed(axes)) if a not in kept), len(axes))
    row = axes[len(axes) - behind :]
    sizes = [n for _, n, _ in row]
    size = math.prod(sizes)
    row = row if size <= LONGEST_ROW else []
    dense = [math.prod(sizes[k + 1 :]) for k in range(len(row))]
    here = f"row[{index_of([a[0] for a in row], dense)}]" if row else "sum"
    value = line.text.format(*(shown(o, axes) for o in line.operands), out=here)
    body = [f"{line.kind} row[{size}];" if row else f"{line.kind} sum;"]
    body += looped(row, [f"{here} = {line.start};"])
    body += looped([*(a for a in axes if a not in kept), *row], [f"{here} = {value};"])
    body += looped(row, [f"{shown(line.out, axes)} = {here};"])
    outer = [a for a in kept if a not in row]
    return [comment(line.op), *(looped(outer, body) if outer else ["{", *indented(body), "}"])]


def _alive(lines: list[Line], needed: Callable[[str], bool]) -> tuple[list[Line], list[Line]]:
    """The lines whose value is read; those of them whose value goes to memory."""
    read: set[str] = set()
    written: set[str] = set()
    alive, kept = [], []
    for line in reversed(lines):
        ref = line.out.ref
        if needed(ref) and (line.start is not None or ref not in written):
            kept.append(line)
        if line in kept[-1:] or ref in read:
            alive.append(line)
            read = (read - {ref}).union(e.ref for e in line.reads())
            written.add(ref)
    return alive[::-1], kept[::-1]


def axes_of(shape: tuple[int, ...], elements: list[Element], by: Element | None) -> list[Any]:
    """The loops, the outermost first: (variable, length, axis); axes that lie one behind the other are one.

    ``by`` says in which order, unless it has several elements for one index.
    """
    strides = [s.strides for e in elements for s in (e, *(at for at, *_ in e.looked_up))]
    order = [k for k, n in enumerate(shape) if n != 1]
    if by is not None and not by.looked_up and 0 not in [by.strides[k] for k in order]:
        order.sort(key=lambda k: -abs(by.strides[k]))
    axes: list[Any] = []
    for k in order:
        if axes and all(s[axes[-1][-1]] == s[k] * shape[k] for s in strides):
            axes[-1] = (axes[-1][0], axes[-1][1] * shape[k], k)
        else:
            axes.append((LETTERS[len(axes)], shape[k], k))
    return axes


def looped(axes: Iterable[Any], body: list[str]) -> list[str]:
    """The body in loops over axes (variable, length, …)."""
    axes = list(axes)
    count = "long" if any(n >= 2**31 for _, n, *_ in axes) else "int"
    for name, length, *_ in reversed(axes):
        single = len(body) == 1 or (body[0][:4] == "for " and all(b[0] in " }" for b in body[1:]))
        head = f"for ({count} {name} = 0; {name} < {length}; {name}++)"
        body = [head, *indented(body)] if single else [head + " {", *indented(body), "}"]
    return body


def indented(lines: list[str]) -> list[str]:
    """One level deeper."""
    return ["    " + line for line in lines]


def comment(op: Operator | None) -> str:
    """An operator as a comment: nothing in it can end the comment."""
    text = comment_of(op) if op is not None else ""
    return "/* " + re.sub(r"[^A-Za-z0-9 _.,()=:;+<>\[\]-]", ".", text) + " */"
