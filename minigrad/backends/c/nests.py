"""Loop nests: elementwise operators of one shape that run in the same loops.

Place   where an Array's elements are: a member of a struct, and how an index moves in it
Line    one elementwise call, or one sum over axes, as an expression of C
Nest    lines of one shape, written as one nest of loops; what only they read stays in a register
Part    anything else that is written at a piece: a product, a sort, a loop of the program

Parts are in order.  A line joins the last nest of its shape, unless something it must stay behind stands in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...compiler.source import comment_of
from ...static.program.operator import Operator

#: lines of a nest: longer ones take compilers long
LONGEST = 48
LONGEST_ROW = 256  #: numbers of a sum over rows that are kept beside each other
#: what may fail reads it, what changes a parameter writes it: so parameters change last
FAILS = "!"
#: what tests an index writes it, what uses one reads it
TESTED = "?"
LETTERS = "ijklmnpqruvwxyz"


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
        return self.element_at(["0"] * self.view.ndim)

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

    def element(self, shape: tuple[int, ...] = ()) -> Element:
        """One element for each index of a shape it is stretched to."""
        wide = self.shown(np.broadcast_to(self.view, shape)) if shape else self
        return Element(self.ref, wide.strides, self.offset, self.at)

    def element_at(self, indices: list[str], strides: Iterable[int] | None = None) -> str:
        """An element, for one expression per axis."""
        steps = self.strides if strides is None else strides
        return f"{self.ref}[{index_of(indices, steps, self.offset, self.at)}]"


class Element(NamedTuple):
    """An operand: which element of which member belongs to an index of the nest.

    ``looked_up`` adds to it what index arrays say: (their element, the length of the axis, its stride).  ``many`` says
    how many elements from there on are read.
    """

    ref: str
    strides: tuple[int, ...]
    offset: int
    at: str = ""
    looked_up: tuple[Any, ...] = ()
    many: int = 1  # how many elements from here on are read

    def along(self, axes: list[int]) -> Element:
        """The same for fewer axes."""
        ups = tuple((e.along(axes), *rest) for e, *rest in self.looked_up)
        return self._replace(strides=tuple(self.strides[k] for k in axes), looked_up=ups)


def index_of(indices: list[str], strides: Iterable[int], offset: int, at: str = "") -> str:
    """``i * 16 + j``."""
    out = at
    for name, step in zip(indices, strides, strict=True):
        if step and name != "0":
            term = name if abs(step) == 1 else f"{name} * {abs(step)}"
            sign = " - " if step < 0 else " + "
            out = f"{out}{sign}{term}" if out else (f"-{term}" if step < 0 else term)
    if out.startswith("-") and offset > 0:
        return f"{offset} - {out[1:]}"
    return f"{out} + {offset}" if out and offset > 0 else out or str(offset)


@dataclass(eq=False)
class Line:
    """``out = expression``, or, for a sum over axes, ``out = out op expression``."""

    name: str
    kind: str  # the type in C
    out: Element
    text: str  # {0}, {1}, … stand for the operands
    operands: list[Element | str]
    op: Operator | None
    start: str | None  # for a sum over axes: what {out}, what is there so far, begins with

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
            if e.ref in self.wrote and (self.wrote[e.ref] != e or e.looked_up or e.many > 1):
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
            self.reads.add(e.ref)
        # what a sum has so far is no value that others may read
        self.wrote[line.out.ref] = line.out if line.start is None else None
        self.writes.add(line.out.ref)


class Parts:
    """The parts of one block, in order."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.read: dict[str, int] = {}  # member → the last part that reads it
        self.wrote: dict[str, int] = {}
        self.nests: dict[Any, int] = {}  # shape → its last nest

    def add(self, part: Part) -> None:
        """A part behind all others."""
        self.parts.append(part)
        self._note(len(self.parts) - 1, part.reads, part.writes)

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
        after = max(
            [self.wrote.get(k, -1) for k in reads | writes] + [self.read.get(k, -1) for k in writes]
        )
        kind = shape, line.op is not None and line.op.role == "optimize"
        k = self.nests.get(kind, -1)
        nest: Any = self.parts[k] if k >= 0 else None
        if nest is None or k < after or not nest.takes(line):
            nest, k = Nest(line.op, shape), len(self.parts)
            self.parts.append(nest)
            self.nests[kind] = k
        nest.add(line)
        nest.writes |= writes
        self._note(k, reads, writes)

    def _note(self, k: int, reads: set[str], writes: set[str]) -> None:
        for key in reads:
            self.read[key] = max(k, self.read.get(key, -1))
        for key in writes:
            self.wrote[key] = max(k, self.wrote.get(key, -1))

    def readers(self) -> dict[str, set[int]]:
        """Member → the parts that read it, those of inner blocks, too."""
        out: dict[str, set[int]] = {}
        for part in self.parts:
            inner = [block.readers() for block in part.inner]
            own = part.own if part.inner else part.reads
            for found in [{ref: {id(part)} for ref in own}, *inner]:
                for ref, ids in found.items():
                    out.setdefault(ref, set()).update(ids)
        return out


def nest_text(nest: Nest, needed: Callable[[str], bool]) -> list[str]:
    """The text of a nest; ``needed`` tells whether anything else reads a member."""
    lines = _alive(nest.lines, needed)
    elements = [e for line in lines for e in line.reads()]
    stored = _stored(lines, needed)
    elements += [line.out for line in lines if line in stored]
    elements += [e for line in stored for e, *_ in line.out.looked_up]
    axes = _axes(nest.shape, elements, stored[0].out if stored else None)
    if len(lines) == 1 and lines[0].start:
        return _summed(lines[0], axes)
    text: list[str] = []
    for line in lines:
        if line.start:
            kept = [ax for ax in axes if line.out.strides[ax[-1]]]
            text += looped(kept, [f"{line.out.ref}[{_index(line.out, kept)}] = {line.start};"])
    body: list[str] = []
    local: dict[Element, str] = {}
    names: set[str] = set()
    only = {comment(line.op) for line in lines}
    said = only.pop() if len(only) == 1 else ""
    text = [said, *text] if said else text
    for line in lines:
        if comment(line.op) != said:
            said = comment(line.op)
            body.append(said)
        operands = [_operand(o, axes, local) for o in line.operands]
        target = _operand(line.out, axes, {})
        value = line.text.format(*operands, out=target)
        if line.start is not None:
            body.append(f"{target} = {value};")
            continue
        later = lines[lines.index(line) + 1 :]
        if any(line.out in n.reads() for n in later):
            name = line.name
            while name in names:
                name += "_"
            names.add(name)
            local = {e: n for e, n in local.items() if e.ref != line.out.ref}
            local[line.out] = name
            body.append(f"const {line.kind} {name} = {value};")
            value = name
        if line in stored:
            body.append(f"{target} = {value};")
    if not axes and local:
        body = ["{", *["    " + line for line in body], "}"]
    return text + looped(axes, body) if lines else []


def _summed(line: Line, axes: list[Any]) -> list[str]:
    """A sum over axes, alone in its nest, which stays in registers: one number, or a row of them."""
    kept = [a for a in axes if line.out.strides[a[-1]]]
    row = kept[-1:] if axes and kept[-1:] == axes[-1:] and axes[-1][1] <= LONGEST_ROW else []
    outer = kept[: len(kept) - len(row)]
    inner = [a for a in axes if a not in kept]
    here = f"row[{row[0][0]}]" if row else "sum"
    value = line.text.format(*[_operand(o, axes, {}) for o in line.operands], out=here)
    size = f"row[{row[0][1]}]" if row else "sum"
    body = [f"{line.kind} {size};", *looped(row, [f"{here} = {line.start};"])]
    body += looped([*inner, *row], [f"{here} = {value};"])
    body += looped(row, [f"{_operand(line.out, axes, {})} = {here};"])
    return [
        comment(line.op),
        *(looped(outer, body) if outer else ["{", *["    " + b for b in body], "}"]),
    ]


def _alive(lines: list[Line], needed: Callable[[str], bool]) -> list[Line]:
    """Without lines that nobody reads."""
    read: set[str] = set()
    alive = []
    for line in reversed(lines):
        if needed(line.out.ref) or line.out.ref in read:
            alive.append(line)
            read |= {e.ref for e in line.reads()}
    return alive[::-1]


def _stored(lines: list[Line], needed: Callable[[str], bool]) -> list[Line]:
    """The lines whose value goes to memory: the last ones of what is read elsewhere."""
    last = {line.out.ref: line for line in lines}
    return [n for n in lines if n.start is not None or (last[n.out.ref] is n and needed(n.out.ref))]


def _axes(shape: tuple[int, ...], elements: list[Element], first: Element | None) -> list[Any]:
    """The loops, the outermost first: (variable, length, axis); axes that lie one behind the other are one."""
    strides = [s.strides for e in elements for s in (e, *(at for at, *_ in e.looked_up))]
    order = [k for k, n in enumerate(shape) if n != 1]
    if first is not None and not first.looked_up and 0 not in [first.strides[k] for k in order]:
        order.sort(key=lambda k: -abs(first.strides[k]))
    axes: list[Any] = []
    for k in order:
        joins = axes and all(s[axes[-1][-1]] == s[k] * shape[k] for s in strides)
        if joins:
            axes[-1] = (axes[-1][0], axes[-1][1] * shape[k], k)
        else:
            axes.append((LETTERS[len(axes)], shape[k], k))
    return axes


def one_loop(shape: tuple[int, ...], elements: list[Element]) -> tuple[list[Any], int, str]:
    """The loops around a call for one axis, that axis' length, and address and step of each element."""
    *outer, (_, count, axis) = _axes(shape, elements, elements[-1]) or [("i", 1, None)]
    steps = [0 if axis is None else e.strides[axis] for e in elements]
    given = [f"&{_operand(e, outer, {})}, {step}" for e, step in zip(elements, steps, strict=True)]
    return outer, count, ", ".join(given)


def _index(element: Element, axes: list[Any]) -> str:
    return index_of(
        [a[0] for a in axes], [element.strides[a[-1]] for a in axes], element.offset, element.at
    )


def _operand(operand: Element | str, axes: list[Any], local: dict[Element, str]) -> str:
    if isinstance(operand, str):
        return operand
    if operand in local:
        return local[operand]
    index = _index(operand, axes)
    for at, length, stride in operand.looked_up:
        place = f"{at.ref}[{_index(at, axes)}]"
        index += f" + ({place} < 0 ? {place} + {length} : {place}) * {stride}"
    return f"{operand.ref}[{index}]"


def looped(axes: Iterable[Any], body: list[str]) -> list[str]:
    """The body in loops over axes (variable, length, …)."""
    axes = list(axes)
    count = "long" if any(n >= 2**31 for _, n, *_ in axes) else "int"
    for name, length, *_ in reversed(axes):
        single = len(body) == 1 or (body[0].startswith("for ") and _one(body))
        head = f"for ({count} {name} = 0; {name} < {length}; {name}++)"
        inner = ["    " + line for line in body]
        body = [head, *inner] if single else [head + " {", *inner, "}"]
    return body


def _one(body: list[str]) -> bool:
    """Whether lines that begin with ``for`` are one statement."""
    return all(line.startswith((" ", "}")) for line in body[1:])


def comment(op: Operator | None) -> str:
    """An operator as a comment: nothing in it can end the comment."""
    text = comment_of(op) if op is not None else ""
    return "/* " + re.sub(r"[^A-Za-z0-9 _.,()=:;+<>\[\]-]", ".", text) + " */"
