"""``static.compile(program, backend="c")``: a step whose function is compiled C."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...compiler.memory import Memory, aligned_zeros, start_values, too_many_steps
from ...compiler.pipeline import explained
from ...compiler.schedule import Array, replace_arrays
from ...compiler.step import Step
from ...errors import ProgramError
from ...static.program.program import Program
from .build import load
from .nests import Place
from .text import Writer, padded

COPIED = 1 << 15  #: bytes: a smaller feed is copied, which takes less time than to ask where it is


class CStep(Step):
    """A program compiled as C; called like a `Step`, with the same feeds, results, parameters and errors."""

    def __init__(
        self, program: Program, fetch: Any, executor: Any, exact: bool, max_steps: int | None
    ) -> None:
        super().__init__(program, fetch, executor, exact)
        self.max_steps = max_steps

    def start_memory(self, program: Program, executor: Any) -> Memory:
        """All parameters in one block, as ``struct parameters`` has them."""
        values = start_values(program, executor)
        block, begins = laid_out([*values.values()])
        held = {}
        for (name, value), begin in zip(values.items(), begins, strict=True):
            held[name] = np.ndarray(value.shape, value.dtype, block, begin)
            held[name][...] = value
        return Memory(held, {"": block}, [], {})

    def built(self, program: Program) -> Any:
        return BuiltC(program, self)


class BuiltC:
    """The C for one set of shapes: ``run``; ``fits`` tells whether feeds have them."""

    def __init__(self, program: Program, step: CStep) -> None:
        self.writer = Writer(program, step.fetch, step.parameters, step.exact, step.max_steps)
        self.text, self.names = self.writer.text(), self.writer.table
        self.function = load(self.text, step.exact)
        #: a feed: small ones are copied to memory of the step, large ones are read where they are
        self.fed = [np.empty_like(m.base) for m in self.writer.members["f"]]
        self.addresses = (ctypes.c_void_p * len(self.fed))(*[a.ctypes.data for a in self.fed])
        #: member → the block it lies in, and where it begins there; of a feed its number
        self.begins: dict[str, Any] = {m.ref: k for k, m in enumerate(self.writer.members["f"])}
        self.pointers = []
        for section, held in (("p", step.memory.arrays[""]), ("s", None)):
            members = self.writer.members[section]
            block, begins = laid_out([m.base for m in members])
            block = block if held is None else held
            pairs = zip(members, begins, strict=True)
            self.begins |= {member.ref: (block, begin) for member, begin in pairs}
            self.pointers.append(ctypes.c_void_p(block.ctypes.data))
        self.feeds = tuple(self.writer.schedule.feeds)
        self.fits = self.test([f"feed{k}" for k in range(len(self.fed))])
        self.results = [self.array(place) for place in self.writer.fetched]

    def array(self, place: Place) -> Any:
        """What NumPy sees at a place."""
        view, begin = place.view, place.offset * place.view.itemsize
        block: Any = self.begins.get(place.ref)
        if block is None:  # a table of known numbers
            return view
        if place.ref.startswith("f->"):
            block = self.fed[block]
        else:
            block, begin = block[0], begin + block[1]
        return np.ndarray(view.shape, view.dtype, block, begin, view.strides)

    def value(self, array: Array) -> Any:
        return self.array(self.writer.place(array))

    def test(self, names: list[str]) -> Any:
        """A function that tells whether feeds are arrays of the shapes and dtypes that this is for."""
        tests = [
            f"type({n}) is array and {n}.shape == {fed.shape} and {n}.dtype is {n}_dtype"
            for n, fed in zip(names, self.fed, strict=True)
        ]
        known = {f"{n}_dtype": fed.dtype for n, fed in zip(names, self.fed, strict=True)}
        source = f"lambda {', '.join(names)}: {' and '.join(tests) or True}"
        return eval(source, known | {"array": np.ndarray})

    def run(self, *values: Any) -> list[Any]:
        """Run it once.  C changes parameters after everything that may fail, and no signal is seen in between."""
        for k, (own, value) in enumerate(zip(self.fed, values, strict=True)):
            if own.nbytes < COPIED:
                own[...] = value
            else:
                self.fed[k] = value = np.require(value, None, ["C", "A"])
                self.addresses[k] = value.ctypes.data
        if failed := self.function(*self.pointers, self.addresses):
            self.fail(failed)
        return [r.copy() for r in self.results]

    def fail(self, number: int) -> None:
        """Raise what NumPy's kernel raises with the values it failed with."""
        function, args, kwargs, op = self.writer.failures[number - 1]
        try:
            if function == "steps":
                too_many_steps(*args)
            args = replace_arrays(args, self.value)
            function(*args, **replace_arrays(kwargs, self.value))
        except Exception as error:
            raise explained(error, op) from error
        raise ProgramError(f"{op!r} failed\n  at {op.source_line}")

    def explained(self, error: Exception) -> Exception:
        return error


def laid_out(arrays: list[Any]) -> tuple[Any, list[int]]:
    """A block of memory with room for arrays, as a struct has them, and where each begins."""
    *begins, size = np.cumsum([0, *map(padded, arrays)]).tolist()
    return aligned_zeros(max(size, 64), np.uint8), begins
