"""``static.compile(program, backend="c")``: a step whose function is compiled C."""

import ctypes
from typing import Any

import numpy as np

from ...compiler.memory import ALIGN, STATE, aligned_zeros, padded
from ...compiler.schedule import Call, arrays_in, replace_arrays
from ...compiler.step import Step, explained
from ...errors import ProgramError
from ...static.program.program import Program
from .build import load
from .nests import Place
from .text import Slower, Writer

#: bytes: a smaller feed is copied, which takes less time than to ask where it is
COPIED = 1 << 13
#: calls of NumPy that are worth a call of C; where no array has 1,000 elements, one more
FEWEST = 3


class CStep(Step):
    """A program compiled as C; called like a `Step`, with the same feeds, results, parameters and errors."""

    def built(self, program: Program) -> Any:
        """The function in C; in NumPy, and ``history`` says so, where that is faster."""
        try:
            return BuiltC(program, self)
        except Slower as why:
            self.history.append(f"in NumPy, which is faster: {str(why).splitlines()[0]}")
            return super().built(program)


class BuiltC:
    """The C for one set of shapes: ``run``; ``fits`` tells whether feeds have them."""

    def __init__(self, program: Program, step: CStep) -> None:
        writer = Writer(program, step.fetch, step.memory, step.exact, step.max_steps)
        items = writer.schedule.items
        calls = [c for c in items if getattr(c, "kind", "") not in ("view", "fill")]
        straight = all(isinstance(c, Call) for c in calls)
        if straight and len(calls) < FEWEST + all(a.size < 1000 for a in arrays_in(calls)):
            raise Slower(f"{len(calls)} calls of NumPy take no longer than one of C")
        self.writer, self.text, self.names = writer, writer.text(), writer.table
        self.function = load(self.text, step.exact)
        self.fed = [member.base for member in writer.members["f"]]
        self.addresses = (ctypes.c_void_p * len(self.fed))(*(fed.ctypes.data for fed in self.fed))
        sizes = {member.ref: padded(member.base) for member in writer.members["s"]}
        self.memory = rest = aligned_zeros(max(sum(sizes.values()), ALIGN), np.uint8)
        self.state = step.memory.arrays[STATE]
        self.blocks = {}  # member → the memory that begins with it
        for ref, size in sizes.items():
            self.blocks[ref], rest = rest, rest[size:]
        self.feeds = tuple(writer.schedule.feeds)
        self.run, self.fits = self.prepared()

    def array(self, place: Place) -> Any:
        """What NumPy sees at a place."""
        view, blocks = place.view, {**self.blocks}
        for member, fed in zip(self.writer.members["f"], self.fed, strict=True):
            blocks[member.ref] = fed
        block = blocks.get(place.ref, place.base)  # else a parameter, or known numbers
        begin = place.offset * view.itemsize
        return np.ndarray(view.shape, view.dtype, block, begin, view.strides)

    def prepared(self) -> tuple[Any, Any]:
        """``run`` and ``fits`` for these feeds, written out: a loop over them would take longer than the C.

        C changes parameters after everything that may fail, and no signal is seen in between.
        """
        names = {"array": np.ndarray, "point": self.point, "fail": self.fail}
        names |= {"function": self.function, "f": self.addresses}
        names["p"] = ctypes.c_void_p(self.state.ctypes.data)
        names["s"] = ctypes.c_void_p(self.memory.ctypes.data)
        results, feeds, tests, lines = [], [], ["True"], []
        for k, place in enumerate(self.writer.fetched):
            names[f"result{k}"] = self.array(place)
            results.append(f"result{k}.copy()")
        for k, fed in enumerate(self.fed):
            n = f"feed{k}"
            feeds.append(n)
            names |= {f"{n}_here": fed, f"{n}_dtype": fed.dtype}
            tests.append(
                f"type({n}) is array and {n}.shape == {fed.shape} and {n}.dtype is {n}_dtype"
            )
            show = f"{n}_here[...] = {n}" if fed.nbytes < COPIED else f"point({k}, {n})"
            lines += [f"    if {n} is not None:", f"        {show}"]
        said = ", ".join(feeds)
        text = [
            f"def run({said}):",
            *lines,
            "    if failed := function(p, s, f):",
            "        fail(failed)",
            f"    return [{', '.join(results)}]",
            f"def fits({said}):",
            f"    return {' and '.join(tests)}",
        ]
        exec("\n".join(text), names)
        return names["run"], names["fits"]

    def point(self, k: int, value) -> None:
        """Show C where a large feed is."""
        if not value.flags.carray:
            value = np.require(value, None, ["C", "A"])
        if np.may_share_memory(value, self.state):  # it changes while it is read
            value = value.copy()
        self.fed[k], self.addresses[k] = value, value.ctypes.data

    def fail(self, number: int) -> None:
        """Raise what NumPy's kernel raises with the values it failed with."""
        function, args, kwargs, op = self.writer.failures[number - 1]
        try:
            args, kwargs = replace_arrays(
                (args, kwargs), lambda a: self.array(self.writer.place(a))
            )
            function(*args, **kwargs)
        except Exception as error:
            raise explained(error, op) from error
        raise ProgramError(f"{op!r} failed\n  at {op.source_line}")

    def explained(self, error: Exception) -> Exception:
        """C raises nothing by itself."""
        return error
