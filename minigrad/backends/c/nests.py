"""Loop nests: elementwise operators of one shape that run in the same loops.

Place   where an Array's elements are: a member of a struct, and how an index moves in it
Line    one elementwise call, or one sum over axes, as an expression of C
Nest    lines of one shape, written as one nest of loops; what only they read stays in a register
Part    anything else that is written at a piece: a product, a test, a loop of the program

Parts are in order.  A line joins the nest in front of it, if the shape is the same; a sum has a
nest of its own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import Any, NamedTuple

import numpy as np

from ...compiler.source import comment_of
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
    def offset(self) -> int:
        """In elements, from the beginning of the member."""
        begins = [a.__array_interface__["data"][0] for a in (self.view, self.base)]
        return (begins[0] - begins[1]) // self.view.itemsize if self.view.size else 0

    def shown(self, view) -> Place:
        """The same memory, seen as another view."""
        return replace(self, view=view)

    def __getitem__(self, index) -> Place:
        return self.shown(self.view[index])

    def element(self, shape: tuple[int, ...] | None = None) -> Element:
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

    def along(self, axes: list[int]) -> Element:
        """The same for some of the axes."""
        ups = tuple((e.along(axes), *rest) for e, *rest in self.looked_up)
        return self._replace(strides=tuple(self.strides[k] for k in axes), looked_up=ups)


def long_axes(shape: tuple[int, ...]) -> list[int]:
    """The axes of more than one element, or of none."""
    return [k for k, n in enumerate(shape) if n != 1]


def index_of(indices: Iterable[str], strides: Iterable[int], offset: int = 0, at: str = "") -> str:
    """``i * 16 + j``."""
    pairs = zip(indices, strides, strict=True)
    terms = [name if step == 1 else f"{name} * {step}" for name, step in pairs if step]
    terms = [at, *terms] if at else terms
    return " + ".join([*terms, str(offset)] if offset or not terms else terms)


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
    """``out = expression``; in a sum the expression may hold {out}, what is there so far."""

    out: Element
    text: str  # {0}, {1}, … stand for the operands
    operands: list[Element | str]
    op: Operator | None

    @property
    def kind(self) -> str:
        """The type in C."""
        return TYPES[self.out.dtype.name]

    def reads(self) -> list[Element]:
        """Operands in memory."""
        elements = [o for o in self.operands if isinstance(o, Element)]
        return elements + [at for e in [*elements, self.out] for at, *_ in e.looked_up]


@dataclass(eq=False)
class Part:
    """A piece of the text that is written by a function of its own; ``inner``, blocks that it has."""

    write: Callable[[], list[str]]
    reads: set[str]
    op: Operator | None = None
    inner: Iterable[list[Part]] = ()


class Nest(Part):
    """Loops over a shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(list, set())
        self.shape = shape
        self.lines: list[Line] = []

    def takes(self, line: Line) -> bool:
        """Whether a line sees the same numbers in this nest as behind it."""
        return len(self.lines) < LONGEST and not any(
            a.ref == b.ref and a != b
            for old in self.lines
            for a, b in [
                *((old.out, e) for e in [line.out, *line.reads()]),
                *((e, line.out) for e in old.reads()),
            ]
        )


def add_line(parts: list[Part], shape: tuple[int, ...], line: Line) -> None:
    """A line more, in the last nest if it may be; none where a value would be copied to where it is."""
    axes = long_axes(shape)
    shape = tuple(shape[k] for k in axes)
    line.out = line.out.along(axes)
    line.operands = [o.along(axes) if isinstance(o, Element) else o for o in line.operands]
    if line.text == "{0}" and line.operands == [line.out]:
        return
    nest = parts[-1] if parts else None
    if not isinstance(nest, Nest) or nest.shape != shape or not nest.takes(line):
        parts.append(nest := Nest(shape))
    nest.lines.append(line)
    nest.reads |= {e.ref for e in line.reads()}


def readers(parts: Iterable[Part]) -> Counter[str]:
    """Member → how many parts read it, those of inner blocks, too."""
    count = Counter[str]()
    for part in parts:
        count.update(part.reads)
        count.update(readers(chain.from_iterable(part.inner)))
    return count


def nest_text(nest: Nest, needed: Callable[[str], bool]) -> list[str]:
    """The text of a nest; ``needed`` tells whether anything else reads a member."""
    lines, kept = _alive(nest.lines, needed)
    elements = [e for line in lines for e in line.reads()] + [line.out for line in kept]
    axes = axes_of(nest.shape, elements, kept[0].out if kept else None)
    comments = [comment(line.op) for line in lines]
    one = len(set(comments)) == 1
    text, body = comments[: int(one)], []
    local: dict[Element, str] = {}
    names = {*TAKEN}
    for k, line in enumerate(lines):
        if not one and comments[k] != comments[k - 1 or -1]:
            body.append(comments[k])
        target = shown(line.out, axes)
        value = line.text.format(
            *(local.get(o) or shown(o, axes) for o in line.operands),  # type: ignore[arg-type]
            out=target,
        )
        if any(line.out in later.reads() for later in lines[k + 1 :]):
            local = {e: n for e, n in local.items() if e.ref != line.out.ref}
            name = line.out.ref.rpartition(">")[2]
            while name in names:
                name += "_"
            names.add(name)
            body.append(f"const {line.kind} {name} = {value};")
            local[line.out] = value = name
        if line in kept:
            body.append(f"{target} = {value};")
    if not axes and local:
        body = ["{", *indented(body), "}"]
    return text + looped(axes, body) if lines else []


def sum_text(line: Line, shape: tuple[int, ...], start: str) -> list[str]:
    """The text of a sum over axes, which stays in registers: one number, or a row of them.

    Without a ``start`` it goes on from what is in memory.
    """
    axes = axes_of(shape, [*line.reads(), line.out], line.out)
    kept = [a for a in axes if line.out.strides[a[-1]]]
    row = [*takewhile(lambda a: a in kept, reversed(axes))][::-1]
    sizes = [n for _, n, _ in row]
    size = math.prod(sizes)
    row = row if size <= LONGEST_ROW else []
    dense = [math.prod(sizes[k + 1 :]) for k in range(len(row))]
    here = f"row[{index_of([a[0] for a in row], dense)}]" if row else "sum"
    here = here if start else shown(line.out, axes)
    value = line.text.format(*(shown(o, axes) for o in line.operands), out=here)
    if not start:
        return looped(axes, [f"{here} = {value};"], ROLLED)
    body = [f"{line.kind} row[{size}];" if row else f"{line.kind} sum;"]
    body += looped(row, [f"{here} = {start};"])
    body += looped([*(a for a in axes if a not in kept), *row], [f"{here} = {value};"], ROLLED)
    body += looped(row, [f"{shown(line.out, axes)} = {here};"])
    outer = [a for a in kept if a not in row]
    return looped(outer, body) if outer else ["{", *indented(body), "}"]


def _alive(lines: list[Line], needed: Callable[[str], bool]) -> tuple[list[Line], list[Line]]:
    """The lines whose value is read; those of them whose value goes to memory."""
    read: set[str] = set()
    written: set[str] = set()
    alive, kept = [], []
    for line in reversed(lines):
        ref = line.out.ref
        if needed(ref) and ref not in written:
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
    order = long_axes(shape)
    if by is not None and not by.looked_up and 0 not in [by.strides[k] for k in order]:
        order.sort(key=lambda k: -abs(by.strides[k]))
    axes: list[Any] = []
    for k in order:
        if axes and all(s[axes[-1][-1]] == s[k] * shape[k] for s in strides):
            axes[-1] = (axes[-1][0], axes[-1][1] * shape[k], k)
        else:
            axes.append((LETTERS[len(axes)], shape[k], k))
    return axes


def looped(axes: Iterable[Any], body: list[str], inner: str = "") -> list[str]:
    """The body in loops over axes (variable, length, …); ``inner`` stands in front of all but the outermost."""
    axes = list(axes)
    count = "long" if any(n >= 2**31 for _, n, *_ in axes) else "int"
    for k, (name, length, *_) in reversed([*enumerate(axes)]):
        single = len(body) == 1 or (body[0][:4] == "for " and all(b[0] in " }" for b in body[1:]))
        head = f"for ({count} {name} = 0; {name} < {length}; {name}++)"
        body = [head, *indented(body)] if single else [head + " {", *indented(body), "}"]
        body = [inner, *body] if inner and k else body
    return body


def indented(lines: list[str]) -> list[str]:
    """One level deeper."""
    return ["    " + line for line in lines]


def comment(op: Operator | None) -> str:
    """An operator as a comment: nothing in it can end the comment."""
    text = comment_of(op) if op is not None else ""
    return "/* " + re.sub(r"[^A-Za-z0-9 _.,()=:;+<>\[\]-]", ".", text) + " */"
