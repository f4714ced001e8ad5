"""The schedule of a program as C: three structs and one function.

    struct parameters { float w[6]; … };        what updates change, and what is only read
    struct memory { float y[8]; … };            results, and every value that loops do not keep in registers
    struct feeds { const float *x; … };
    int step(struct parameters *p, struct memory *s, const struct feeds *f);    0, or the number of what failed

It is printed from the schedule that the NumPy source comes from.  Shapes, strides and offsets are constants; a view is
an index into the memory it shows.  Text of a program becomes identifiers and comments of plain letters only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ...compiler.memory import Memory
from ...compiler.schedule import Branch, Loop
from ...static.program.program import Program
from ...static.run.limits import STEP_LIMIT
from .calls import Calls
from .expressions import TYPES, helpers_in
from .nests import Nest, Part, Place, comment, indented, nest_text, readers
from .page import Unsayable

#: lines: compilers take as long as the square of a function's length, so a longer text is cut into functions
LONG = 5000


class Writer(Calls):
    """Turns the schedule of a program into C."""

    def __init__(
        self, program: Program, fetch: list[str], memory: Memory, exact: bool, max_steps: Any
    ) -> None:
        super().__init__(program, fetch, memory, exact)
        self.max_steps = max_steps
        self.items(self.schedule.items)
        self.fetched = [self.place(a) for a in self.schedule.fetched]
        for k, place in enumerate(self.fetched):
            if place.ref.startswith("f->"):  # what is fed may be fetched, too
                self.fetched[k] = self.member(place.view, place.name)
                self.copy(self.fetched[k], place)
        self.kept |= {place.ref for place in self.fetched}

    def items(self, items: list[Any]) -> None:
        """The parts of calls, loops and branches."""
        self.join(items)
        for item in items:
            self.op = item.op or self.op
            try:
                getattr(self, type(item).__name__.lower())(item)
            except Unsayable as why:
                what = self.op.type if self.op is not None else item.path
                line = getattr(self.op, "source_line", "")
                raise why.kind(
                    f"{what} cannot be said in C: {why}\n  at {line}\n"
                    f"  repair: static.compile(program, …) without backend, which takes every operator"
                ) from None

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
        if loop.gathered:
            raise Unsayable("values of every step are fetched; static_rnn stacks them")
        back, t = loop.op.type.endswith("_grad"), self.unique("step1")
        begins = []
        for start, begin, _, final in loop.carried:
            begins.append(self.new(begin, self.place(start).view))
            self.copy(begins[-1], self.place(start))
            self.put(final, begins[-1])
        frames = self.places[id(loop.frames)] if back else self.frames(loop)
        steps, count = frames["steps"], frames["count"]
        for seq, part in loop.slices:
            self.put(part, row(self.place(seq), t))
        for value, here in loop.saved if back else ():
            self.put(here, mapped(frames[id(value)], partial(row, t=t)))
        for _, total, like in loop.totals:
            place = self.new(total, self.place(like).view)
            self.line(place, "{0}", [0.0 if count else -0.0])
        with self.block(loop.test) as test:
            pass
        with self.block(loop.body) as body:
            self.hand_on(loop, frames, begins, t, back)
        head = f"for (int {t} = 0; {t} < {steps}; {t}++) {{"
        if back:
            last = f"(int){count.first}" if count else steps
            head = f"for (int {t} = {last} - 1; {t} >= 0; {t}--) {{"
        before, stop, after = [], [], []
        reads = [*begins, *([count] if count else [])]
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
            return [*before, head, *indented(lines), "}"]

        self.part(write, reads, (test, body))

    def frames(self, loop: Loop) -> dict[Any, Any]:
        """What a loop keeps for its grad op: the most steps it makes, the place of their number, values of each."""
        count = None
        if loop.go_on is None:
            steps = len(self.place(loop.slices[0][0]).view)
        elif loop.saved and self.max_steps is None:
            raise Unsayable("its gradient needs the values of every step: give max_steps=…")
        else:
            steps, count = self.max_steps or 0, self.member(np.empty(1, np.int64), "steps")
        frames = {"steps": steps, "count": count}
        if loop.frames is not None:
            self.put(loop.frames, frames)
        return frames

    def hand_on(self, loop: Loop, frames: Any, begins: list[Place], t: str, back: bool) -> None:
        """Behind a step: what it saves, adds up, stacks and hands to the next one."""

        def stacked(place: Place, name: str) -> Place:
            rows = np.empty((frames["steps"], *place.view.shape), place.view.dtype)
            whole = self.member(rows, name)
            self.copy(row(whole, t), place)
            return whole

        for value in () if back else loop.saved:
            saved = self.places[id(value)]
            frames[id(value)] = mapped(saved, lambda p: stacked(p, f"{p.name}_saved"))
            self.keep.append(value)
        for value, total, _ in loop.totals:
            self.line(self.place(total), "{0} + {1}", [total, value])
        for value, stack in loop.stacked:
            self.put(stack, stacked(self.place(value), stack.name))
        nexts = [self.place(c[2]) for c in loop.carried]
        for k, (begin, value) in enumerate(zip(begins, nexts, strict=True)):
            if value != begin and value.ref in {b.ref for b in begins}:
                nexts[k] = self.member(value.view, "held")
                self.copy(nexts[k], value)
        for begin, value in zip(begins, nexts, strict=True):
            self.copy(begin, value)

    def branch(self, branch: Branch) -> None:
        """``cond`` and its grad op."""
        pred = self.place(branch.pred)
        saved = [*branch.saved[0], *branch.saved[1]]
        for value, here in saved if branch.backward else ():
            self.put(here, self.places[id(branch.frames)][id(value)])
        results: list[Place] = []
        sides = []
        for k, items in enumerate(branch.bodies):
            with self.block(items) as side:
                for n, values in enumerate(branch.results):
                    value = self.place(values[k])
                    if k == 0:
                        results.append(self.new(values[2], value.view))
                    self.copy(results[n], value)
            sides.append(side)
        if branch.frames is not None and not branch.backward:
            frames = {id(v): self.places[id(v)] for v in saved}
            mapped(frames, lambda place: self.kept.add(place.ref))
            self.put(branch.frames, frames)
            self.keep += saved

        def write() -> list[str]:
            yes, no = (indented(self.written(side)) for side in sides)
            return [f"if ({pred.first}) {{", *yes, *(["} else {", *no] if no else []), "}"]

        self.part(write, [pred], sides)

    # -- the text ---------------------------------------------------------------------------------

    def written(self, parts: list[Part]) -> list[str]:
        """The text of parts."""
        out: list[str] = []
        for part in parts:
            if isinstance(part, Nest):
                out += nest_text(part, partial(self.is_needed, part))
            else:
                out += [comment(part.op), *part.write()]
        return out

    def is_needed(self, nest: Nest, ref: str) -> bool:
        """Whether anything but this nest reads a member."""
        return ref in self.kept or bool(self.readers.get(ref, set()) - {nest})

    def text(self) -> str:
        """The whole file."""
        self.readers = readers(self.parts)
        pieces = [self.written([part]) for part in self.parts]
        longest = LONG // 10 if sum(map(len, pieces)) > LONG else LONG
        groups: list[list[str]] = [[]]
        for piece in pieces:
            if len(groups[-1]) > longest:
                groups.append([])
            groups[-1] += piece
        functions, calls = [], ["int failed;"] * (len(groups) > 1)
        for k, lines in enumerate(groups[:-1]):
            name = self.unique(f"part{k}")
            functions.append("static " + function(name, [*lines, "return 0;"]))
            calls += [f"if ((failed = {name}(p, s, f)) != 0)", "    return failed;"]
        functions.append(function("step", [*calls, *groups[-1], "return 0;"]))
        body = "\n".join(functions)
        words = self.kept | set(re.findall(r"\b(?:[psf]->)?[A-Za-z]\w*", body))
        tables = [text + "\n" for place, text in self.tables.values() if place.ref in words]
        structs = ""
        for section, name in (("p", "parameters"), ("s", "memory"), ("f", "feeds")):
            members = [m for m in self.members[section] if section == "f" or m.ref in words]
            self.members[section] = members
            lines = indented([declared(m) for m in members] or ["char nothing;"])
            structs += "\n".join([f"struct {name} {{", *lines, "};", "", ""])
        head = "#include <math.h>\n#include <stdint.h>\n\n" + helpers_in(body)
        return head + "".join([*tables, "\n" * bool(tables)]) + structs + body


def function(name: str, body: list[str]) -> str:
    """A function of what is in the three structs."""
    unused = [v for v in "psf" if not any(f"{v}->" in line or "(p, s, f)" in line for line in body)]
    lines = indented([*(f"(void){v};" for v in unused), *body])
    structs = (
        "struct parameters *restrict p, struct memory *restrict s, const struct feeds *restrict f"
    )
    return "\n".join([f"int {name}({structs}) {{", *lines, "}", ""])


def padded(array: Any) -> int:
    """The bytes of an array as a member, so that every member begins at a multiple of 64."""
    lanes: int = -(-array.nbytes // 64)
    return max(lanes, 1) * 64


def declared(member: Place) -> str:
    """A member in its struct."""
    base, ctype = member.base, TYPES[member.base.dtype.name]
    if member.ref.startswith("f->"):
        return f"const {ctype} *{member.name}; /* {[*base.shape]} */"
    return f"{ctype} {member.name}[{padded(base) // base.itemsize}]; /* {[*base.shape]} */"


def row(place: Place, t: str) -> Place:
    """The part of a place that belongs to a step of a loop."""
    rows, step = place.view, f"{t} * {place.strides[0]}"
    view = rows[0, ...] if len(rows) else np.empty(rows.shape[1:], rows.dtype)
    return place._replace(view=view, at=f"{place.at} + {step}" if place.at else step)


def mapped(value: Any, change: Callable[[Place], Any]) -> Any:
    """A saved value, or all that an inner loop saved, with every place changed."""
    if isinstance(value, dict):
        return {k: mapped(v, change) for k, v in value.items()}
    return change(value) if isinstance(value, Place) else value
