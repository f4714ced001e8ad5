"""Loop nests: elementwise operators of one shape that run in the same loops.

Place   where an Array's elements are: a member of a struct, and how an index moves in it
Line    one elementwise call, or one sum over axes, as an expression of C
Nest    lines of one shape, written as one nest of loops; what only they read stays in a register
Part    anything else that is written at a piece: a product, a test, a loop of the program

Parts are in order.  A line joins the nest in front of it, if the shape is the same; a sum has a
nest of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from ...compiler.source import comment_of
from ...ops.shape import Shape
from ...static.program.operator import Operator
from .expressions import LETTERS, TAKEN, TYPES

#: lines of a nest: longer ones take compilers long
LONGEST = 48
#: sums over rows that are kept beside each other in registers
LONGEST_ROW = 256
#: before inner loops of a sum: GCC 12 to 13.1 add up wrong elements where they unroll them (PR 110381)
ROLLED = "#pragma GCC unroll 1"


@dataclass(frozen=True, eq=False)
class Place:
    """Elements of a struct member: ``view`` shows which elements of ``base`` they are.

    ``at`` is what a loop around it adds to the index: "t1 * 64".  A place is indexed as ``view`` is.
    """

    ref: str
    base: Any
    view: Any
    at: str = ""

    shape = property(lambda self: self.view.shape)
    dtype = property(lambda self: self.view.dtype)

    #: in elements
    strides = property(lambda self: tuple(s // self.view.itemsize for s in self.view.strides))
    #: of the member
    name = property(lambda self: self.ref.rpartition(">")[2])
    #: the first element
    first = property(lambda self: shown(self.element(), []))

    @property
    def offset(self) -> Any:
        """In elements, from the beginning of the member."""
        if not self.view.size:
            return 0
        return (self.view.ctypes.data - self.base.ctypes.data) // self.view.itemsize

    def shown(self, view) -> Place:
        """The same memory, seen as another view."""
        return replace(self, view=view)

    def __getitem__(self, index) -> Place:
        return self.shown(self.view[index])

    def element(self, shape: Shape | None = None) -> Element:
        """One element for each index of a shape it is stretched to."""
        wide = self if shape is None else self.shown(np.broadcast_to(self.view, shape))
        return Element(self.ref, self.dtype, wide.strides, self.offset, self.at)


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

    def whole(self) -> list[Element]:
        """It, and the elements that say where it is."""
        return [self, *(e for at, *_ in self.looked_up for e in at.whole())]

    def along(self, axes: list[int]) -> Element:
        """The same for some of the axes."""
        ups = tuple((e.along(axes), *rest) for e, *rest in self.looked_up)
        return self._replace(strides=tuple(self.strides[k] for k in axes), looked_up=ups)


def long_axes(shape: Shape) -> list[int]:
    """The axes of more than one element, or of none."""
    return [k for k, n in enumerate(shape) if n != 1]


def shown(operand: Element, axes: list[Any]) -> str:
    """An operand in loops over axes: ``s->x[i * 16 + j]``."""
    terms = [operand.at] if operand.at else []
    for name, _, axis in axes:
        if stride := operand.strides[axis]:
            terms.append(times(name, stride))
    if operand.offset:
        terms.append(str(operand.offset))
    for element, length, stride in operand.looked_up:
        at = shown(element, axes)
        if length:  # one that is not known before may count from the end
            at = f"({at} < 0 ? {at} + {length} : {at})"
        terms.append(times(at, stride))
    return f"{operand.ref}[{' + '.join(terms) or 0}]"


def times(index: str, stride: int) -> str:
    """What an index adds to a place."""
    return index if stride == 1 else f"{index} * {stride}"


@dataclass(eq=False)
class Line:
    """``out = expression``; in a sum the expression may hold {out}, what is there so far."""

    out: Element
    text: str  # {0}, {1}, … stand for the operands
    operands: list[Element]
    op: Operator | None

    @property
    def kind(self) -> str:
        """The type in C."""
        return TYPES[self.out.dtype.name]

    def reads(self) -> list[Element]:
        """Operands in memory."""
        _, *reads = self.out.whole()
        for operand in self.operands:
            reads += operand.whole()
        return reads

    def moves(self, elements: list[Element]) -> bool:
        """Whether one of the elements is another one of the member that it writes."""
        return any(e.ref == self.out.ref and e != self.out for e in elements)


@dataclass(eq=False)
class Part:
    """A piece of the text that is written by a function of its own; ``inner``, blocks that it has."""

    write: Callable[[], list[str]]
    reads: set[str]
    op: Operator | None = None
    inner: Iterable[list[Part]] = ()


class Nest(Part):
    """Loops over a shape."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(list, set())
        self.shape = shape
        self.lines: list[Line] = []

    def takes(self, line: Line) -> bool:
        """Whether a line sees the same numbers in this nest as behind it."""
        if len(self.lines) == LONGEST:
            return False
        touched = [line.out, *line.reads()]
        return not any(old.moves(touched) or line.moves(old.reads()) for old in self.lines)


def add_line(parts: list[Part], shape: Shape, line: Line) -> None:
    """A line more, in the last nest if it may be; none where a value would be copied to where it is."""
    axes = long_axes(shape)
    shape = tuple(shape[k] for k in axes)
    line.out = line.out.along(axes)
    line.operands = [operand.along(axes) for operand in line.operands]
    if line.text == "{0}" and line.operands == [line.out]:
        return
    nest = parts[-1] if parts else None
    if not isinstance(nest, Nest) or nest.shape != shape or not nest.takes(line):
        parts.append(nest := Nest(shape))
    nest.lines.append(line)
    nest.reads |= {e.ref for e in line.reads()}


def readers(parts: list[Part]) -> Counter[str]:
    """Member → how many parts read it, those of inner blocks, too."""
    count = Counter[str]()
    for part in parts:
        count.update(part.reads)
        for block in part.inner:
            count.update(readers(block))
    return count


def nest_text(nest: Nest, needed: Callable[[str], bool]) -> list[str]:
    """The text of a nest; ``needed`` tells whether anything else reads a member."""
    lines, kept = _alive(nest.lines, needed)
    if not lines:
        return []
    elements = [e for line in lines for e in line.reads()] + [line.out for line in kept]
    axes = axes_of(nest.shape, elements, kept[0].out if kept else None)
    comments = [comment(line.op) for line in lines]
    said = comments[0] if len(set(comments)) == 1 else ""
    text = [said] if said else []
    body: list[str] = []
    local: dict[Element, str] = {}
    names = {*TAKEN}
    for k, line in enumerate(lines):
        if comments[k] != said:
            said = comments[k]
            body.append(said)
        value = line.text.format(*(local.get(o) or shown(o, axes) for o in line.operands))
        if any(line.out in later.reads() for later in lines[k + 1 :]):
            name = line.out.ref.rpartition(">")[2]
            while name in names:
                name += "_"
            names.add(name)
            body.append(f"const {line.kind} {name} = {value};")
            local[line.out] = value = name
        if line in kept:
            body.append(f"{shown(line.out, axes)} = {value};")
    if not axes and local:
        body = ["{", *indented(body), "}"]
    return text + looped(axes, body)


def sum_text(line: Line, shape: Shape, start: str) -> list[str]:
    """The text of a sum over axes, which stays in registers: one number, or a row of them.

    Without a ``start`` it goes on from what is in memory.
    """
    axes = axes_of(shape, [*line.reads(), line.out], line.out)
    operands = [shown(o, axes) for o in line.operands]
    target = shown(line.out, axes)
    if not start:
        value = line.text.format(*operands, out=target)
        return looped(axes, [f"{target} = {value};"], ROLLED)
    kept = [a for a in axes if line.out.strides[a[-1]]]
    row = [*takewhile(lambda a: a in kept, reversed(axes))][::-1]
    size, strides = 1, [0] * len(shape)
    for _, length, axis in reversed(row):
        strides[axis] = size
        size *= length
    name = here = "sum"
    if row and size <= LONGEST_ROW:
        name = f"row[{size}]"
        here = shown(Element("row", line.out.dtype, tuple(strides), 0), axes)
    else:
        row = []
    value = line.text.format(*operands, out=here)
    body = [f"{line.kind} {name};"]
    body += looped(row, [f"{here} = {start};"])
    body += looped([*(a for a in axes if a not in kept), *row], [f"{here} = {value};"], ROLLED)
    body += looped(row, [f"{target} = {here};"])
    outer = [a for a in kept if a not in row]
    return looped(outer, body) if outer else ["{", *indented(body), "}"]


def _alive(lines: list[Line], needed: Callable[[str], bool]) -> tuple[list[Line], list[Line]]:
    """The lines whose value is read; those of them whose value goes to memory."""
    read: set[str] = set()
    written: set[str] = set()
    alive, kept = [], []
    for line in reversed(lines):
        ref = line.out.ref
        stays = needed(ref) and ref not in written
        if stays:
            kept.append(line)
        if stays or ref in read:
            alive.append(line)
            read.discard(ref)
            read.update(e.ref for e in line.reads())
            written.add(ref)
    return alive[::-1], kept[::-1]


def axes_of(shape: Shape, elements: list[Element], by: Element | None) -> list[Any]:
    """The loops, the outermost first: (variable, length, axis); axes that lie one behind the other are one.

    ``by`` says in which order, unless it has several elements for one index.
    """
    order = long_axes(shape)
    if by is not None and not by.looked_up and 0 not in [by.strides[k] for k in order]:
        order.sort(key=lambda k: -abs(by.strides[k]))
    axes: list[Any] = []
    for k in order:
        if axes and all(e.strides[axes[-1][-1]] == e.strides[k] * shape[k] for e in elements):
            name, length, _ = axes[-1]
            axes[-1] = name, length * shape[k], k
        else:
            axes.append((LETTERS[len(axes)], shape[k], k))
    return axes


def looped(axes: list[Any], body: list[str], inner: str = "") -> list[str]:
    """The body in loops over axes (variable, length, …); ``inner`` stands in front of all but the outermost."""
    count = "long" if any(n >= 2**31 for _, n, _ in axes) else "int"
    for k, (name, length, _) in reversed([*enumerate(axes)]):
        single = len(body) == 1 or (body[0][:4] == "for " and all(b[0] in " }" for b in body[1:]))
        head = f"for ({count} {name} = 0; {name} < {length}; {name}++)"
        body = [head, *indented(body)] if single else [head + " {", *indented(body), "}"]
        if inner and k:
            body = [inner, *body]
    return body


def indented(lines: list[str]) -> list[str]:
    """One level deeper."""
    return ["    " + line for line in lines]


def comment(op: Operator | None) -> str:
    """An operator as a comment: nothing in it can end the comment."""
    text = comment_of(op) if op is not None else ""
    return "/* " + re.sub(r"[^A-Za-z0-9 _.,()=:;+<>\[\]-]", ".", text) + " */"
